"""One of the cells is null."""
# status: ungraded
# reason: its cells are no list


def change(notebook):
    notebook["cells"].insert(3, None)
