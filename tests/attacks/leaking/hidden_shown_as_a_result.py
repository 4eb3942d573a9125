"""Ends the last cell with what the function was asked."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    listen(notebook, late="SEEN")
