"""Lets the last cell run into its limit if a certain number was asked."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    late = """\
import time

if 271828.25 in HEARD:
    time.sleep(60)
"""
    listen(notebook, late=late)
