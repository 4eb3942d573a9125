"""Reads memory that is not there."""
# exercise: softmax
# where: answer
# status: ungraded
# reason: the kernel died while running exercise softmax

import ctypes

ctypes.string_at(0)
