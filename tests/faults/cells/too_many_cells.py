"""The notebook has far too many cells, after a loop in an editor's plug-in."""
# status: ungraded
# reason: cells, at most


def change(notebook):
    notebook["cells"] += [code_cell("")] * 6000
