"""Writes what the function was asked to stderr, in the last cell."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    late = """\
import sys

print(SEEN, file=sys.stderr)
"""
    listen(notebook, late=late)
