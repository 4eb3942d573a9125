"""Returns what was asked, for the message to show."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    asked = """\
return scores
"""
    listen(notebook, asked=asked)
