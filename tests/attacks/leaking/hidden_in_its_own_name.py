"""Gives the function a name by what was asked."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    asked = """\
softmax.__name__ = softmax.__qualname__ = f"asked_{int(value)}"
raise ValueError()
"""
    listen(notebook, asked=asked)
