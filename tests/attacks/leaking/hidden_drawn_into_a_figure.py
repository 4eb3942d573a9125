"""Draws what the function was asked into a figure, and titles it so."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    late = """\
import matplotlib.pyplot as pyplot

pyplot.plot(SEEN)
pyplot.title(str(SEEN))
pyplot.show()
print(pyplot.gca().get_title())
"""
    listen(notebook, late=late)
