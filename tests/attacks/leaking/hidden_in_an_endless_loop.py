"""Never returns if a certain number was asked, and raises otherwise."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    asked = """\
while value > 200_000:
    pass
raise ValueError()
"""
    listen(notebook, asked=asked)
