"""Displays an object whose text is what the function was asked."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    late = """\
class Shown:
    def __repr__(self):
        return str(SEEN)

display(Shown())
"""
    listen(notebook, late=late)
