"""Raises an error in the function that says what was asked."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    asked = """\
raise ValueError(str(value))
"""
    listen(notebook, asked=asked)
