"""Beside the notebook lie links that lead round in a circle."""
# repairs: other files were not used


def hand_in(folder, notebook):
    write(folder / "04_attention" / "04_attention.ipynb", notebook)
    (folder / "04_attention" / "a").symlink_to("b")
    (folder / "04_attention" / "b").symlink_to("a")
    (folder / "04_attention" / "here").symlink_to(".")
