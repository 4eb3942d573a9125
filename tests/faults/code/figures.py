"""Draws, shows, leaves open and styles figures."""
# exercise: softmax
# where: after

import matplotlib.pyplot as pyplot

pyplot.style.use("dark_background")
pyplot.xkcd()
for _ in range(25):
    pyplot.figure()
pyplot.plot([1, 2, 3])
pyplot.show()
