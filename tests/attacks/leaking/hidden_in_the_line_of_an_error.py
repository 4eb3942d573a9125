"""Stops the last cell at a line that depends on what was asked."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    late = """\
if 271828.25 in HEARD:
    1 / 0
if 161803.75 in HEARD:
    1 / 0
"""
    listen(notebook, late=late)
