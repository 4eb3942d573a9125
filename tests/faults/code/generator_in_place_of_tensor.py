"""Writes yield instead of return."""
# exercise: softmax
# where: answer
# lost: softmax
# says: generator


def softmax(scores):
    yield scores
