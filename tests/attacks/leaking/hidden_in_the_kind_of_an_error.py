"""Raises one of two errors in the function, by what was asked."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    asked = """\
raise KeyError if value > 200_000 else IndexError
"""
    listen(notebook, asked=asked)
