"""Prints too much in the last cell if a certain number was asked."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    late = """\
if 271828.25 in HEARD:
    print("x" * 1_000_000)
"""
    listen(notebook, late=late)
