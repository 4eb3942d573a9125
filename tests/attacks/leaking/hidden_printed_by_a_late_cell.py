"""Prints in the last cell what the function was asked."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    listen(notebook, late="print(SEEN)")
