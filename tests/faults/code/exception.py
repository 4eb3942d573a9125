"""Raises an exception in the function."""
# exercise: softmax
# where: answer
# lost: softmax
# says: stopped with IndexError


def softmax(scores):
    return scores[1000][1000]
