"""The notebook lies in the student's folder, not in the chapter's."""
# repairs: the notebook was not in a folder


def hand_in(folder, notebook):
    write(folder / "04_attention.ipynb", notebook)
