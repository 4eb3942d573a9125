"""Raises an error in a cell between the exercises: what follows still runs."""
# exercise: softmax
# where: after

undefined_name + 1
