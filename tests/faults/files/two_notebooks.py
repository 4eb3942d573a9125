"""Two notebooks are handed in, and none has the right name."""
# status: ungraded
# reason: several notebooks


def hand_in(folder, notebook):
    write(folder / "04_attention" / "final.ipynb", notebook)
    write(folder / "04_attention" / "really final.ipynb", notebook)
