"""The list of cells is null."""
# status: ungraded
# reason: its cells are no list


def change(notebook):
    notebook["cells"] = None
