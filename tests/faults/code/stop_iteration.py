"""Asks an empty iterator for its next element."""
# exercise: softmax
# where: answer
# lost: softmax
# says: StopIteration


def softmax(scores):
    return next(iter([]))
