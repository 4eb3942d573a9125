"""The file is JSON, but a list."""
# status: ungraded
# reason: not a notebook


def change(notebook):
    return b"[1, 2, 3]"
