"""Raises the checks' own error, as if a forbidden name were used."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    asked = """\
from autograder.interface import StudentError
raise StudentError("forbidden", f"uses {value}")
"""
    listen(notebook, asked=asked)
