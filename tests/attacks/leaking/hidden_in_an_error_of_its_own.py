"""Raises an error of a class that is named by what was asked."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    asked = """\
raise type(f"Asked{int(value)}", (Exception,), {})()
"""
    listen(notebook, asked=asked)
