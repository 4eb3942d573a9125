"""Aborts the kernel."""
# exercise: softmax
# where: answer
# status: ungraded
# reason: the kernel died while running exercise softmax

import os


def softmax(scores):
    os.abort()
