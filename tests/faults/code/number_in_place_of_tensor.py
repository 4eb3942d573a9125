"""Returns a Python number."""
# exercise: softmax
# where: answer
# lost: softmax
# says: not a tensor


def softmax(scores):
    return 1.0
