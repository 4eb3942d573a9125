"""Moves its tensors to a GPU that is not there."""
# exercise: softmax
# where: answer
# lost: softmax
# says: stopped with


def softmax(scores):
    return scores.to("cuda").softmax(-1)
