"""Raises the checks' own failure, with a mistake of its own making."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    asked = """\
from autograder.expect import CheckFailure
raise CheckFailure(str(value), mistake=str(value), why=str(value))
"""
    listen(notebook, asked=asked)
