"""The folder is empty."""
# status: ungraded
# reason: no notebook was submitted


def hand_in(folder, notebook):
    (folder / "04_attention").mkdir(parents=True)
