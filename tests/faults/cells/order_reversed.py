"""All cells are in reverse order."""
# status: any
# repairs: any
# lost: any


def change(notebook):
    notebook["cells"].reverse()
