"""Returns a Python number."""
# exercise: softmax
# where: answer
# lost: softmax
# says: a number in place of a tensor


def softmax(scores):
    return 1.0
