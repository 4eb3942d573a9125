"""Only the checkpoint of the notebook was handed in."""
# status: ungraded
# reason: no notebook was submitted


def hand_in(folder, notebook):
    write(
        folder / "04_attention" / ".ipynb_checkpoints" / "04_attention.ipynb", notebook
    )
