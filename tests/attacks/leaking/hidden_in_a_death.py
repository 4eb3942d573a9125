"""Ends the process in one of two ways, by what was asked."""
# exercise: softmax
# where: notebook
# hidden: asked
# status: ungraded


def change(notebook):
    asked = """\
import os
os._exit(0) if value > 200_000 else os.abort()
"""
    listen(notebook, asked=asked)
