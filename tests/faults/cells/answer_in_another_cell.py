"""An answer is written into a new cell, and its own cell deleted."""
# repairs: cell softmax: found without its metadata


def change(notebook):
    at = find(notebook, "softmax")
    notebook["cells"][at] = code_cell(notebook["cells"][at]["source"])
