"""Raises KeyboardInterrupt, left over from trying something."""
# exercise: softmax
# where: answer
# lost: softmax


def softmax(scores):
    raise KeyboardInterrupt
