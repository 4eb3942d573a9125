"""Prints what was asked when Python or the function ends."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    asked = """\
import atexit
atexit.register(print, value)
import weakref
weakref.finalize(softmax, print, value)
"""
    listen(notebook, asked=asked)
