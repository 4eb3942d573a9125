"""A cell of the student's own has no source, no metadata and no outputs."""


def change(notebook):
    notebook["cells"].insert(2, {"cell_type": "code"})
