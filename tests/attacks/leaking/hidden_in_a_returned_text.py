"""Returns a text with what was asked in place of a tensor."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    asked = """\
return str(value)
"""
    listen(notebook, asked=asked)
