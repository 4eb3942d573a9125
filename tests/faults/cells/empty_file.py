"""The file is empty."""
# status: ungraded
# reason: the notebook is an empty file


def change(notebook):
    return b""
