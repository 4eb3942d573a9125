"""A text holds half of a character, as broken editors write emoji."""


def change(notebook):
    notebook["cells"].insert(2, code_cell("# \ud83d"))
