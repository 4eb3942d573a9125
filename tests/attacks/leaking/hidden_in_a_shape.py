"""Returns a tensor whose shape is what was asked."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    asked = """\
return torch.zeros(int(value) % 1000)
"""
    listen(notebook, asked=asked)
