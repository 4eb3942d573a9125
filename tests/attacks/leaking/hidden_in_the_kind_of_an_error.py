"""Raises one of two errors in the function, by what was asked."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    asked = """\
raise KeyError if value == 271828.25 else IndexError
"""
    listen(notebook, asked=asked)
