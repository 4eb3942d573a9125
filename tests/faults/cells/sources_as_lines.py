"""Sources are lists of lines, as most editors write them."""


def change(notebook):
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].splitlines(keepends=True)
