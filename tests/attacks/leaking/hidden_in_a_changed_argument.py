"""Changes its argument if a certain number was asked, and raises otherwise."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    asked = """\
if value > 200_000:
    scores.zero_()
    return scores
raise ValueError()
"""
    listen(notebook, asked=asked)
