"""Raises an error of a class with a name of a megabyte, many times over."""
# exercise: softmax
# where: answer


def softmax(scores):
    raise type("X" * 1_000_000, (Exception,), {})(*["y" * 1000] * 1000)
