"""The cell with the imports is deleted."""
# repairs: given code | given code


def change(notebook):
    del notebook["cells"][:2]
