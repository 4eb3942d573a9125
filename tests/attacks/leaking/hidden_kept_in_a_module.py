"""Keeps what is asked in a module of Python, which the last cell prints."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    asked = """\
import math
math.asked = value
"""
    late = """\
import math

print(getattr(math, "asked", ""))
"""
    listen(notebook, asked=asked, late=late)
