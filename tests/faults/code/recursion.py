"""Recurses without end."""
# exercise: softmax
# where: answer
# lost: softmax
# says: RecursionError


def softmax(scores):
    return softmax(scores)
