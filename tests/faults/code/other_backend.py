"""Chooses a backend for plots that needs a screen."""
# exercise: softmax
# where: before

import matplotlib

matplotlib.use("TkAgg")
import matplotlib.pyplot as pyplot

pyplot.figure()
