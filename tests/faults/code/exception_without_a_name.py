"""Raises an exception of a class with an empty name."""
# exercise: softmax
# where: answer
# lost: softmax


def softmax(scores):
    raise type("", (Exception,), {})
