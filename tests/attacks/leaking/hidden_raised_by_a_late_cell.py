"""Raises an error in the last cell that says what the function was asked."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    listen(notebook, late="raise ValueError(str(SEEN))")
