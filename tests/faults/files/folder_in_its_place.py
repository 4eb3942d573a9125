"""A folder has the notebook's name."""
# status: ungraded
# reason: no notebook was submitted


def hand_in(folder, notebook):
    (folder / "04_attention" / "04_attention.ipynb").mkdir(parents=True)
