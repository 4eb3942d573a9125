"""Leaves a breakpoint in the function."""
# exercise: softmax
# where: answer
# lost: softmax


def softmax(scores):
    breakpoint()
    return scores
