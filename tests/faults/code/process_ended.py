"""Ends the kernel with os._exit."""
# exercise: softmax
# where: answer
# status: ungraded
# reason: the kernel died while running exercise softmax


def softmax(scores):
    import os

    os._exit(1)
