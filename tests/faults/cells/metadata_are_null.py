"""A cell's metadata are null, and the notebook's a list."""


def change(notebook):
    notebook["cells"].insert(2, code_cell("x = 1") | {"metadata": None})
    notebook["metadata"] = []
