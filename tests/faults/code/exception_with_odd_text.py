"""Raises an exception whose own text cannot be made."""
# exercise: softmax
# where: answer
# lost: softmax
# says: stopped with Odd


class Odd(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def softmax(scores):
    raise Odd
