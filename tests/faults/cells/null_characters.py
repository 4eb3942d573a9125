"""A cell holds null characters."""


def change(notebook):
    notebook["cells"].insert(2, code_cell("x = 1\0\0"))
