"""Returns a sparse tensor."""
# exercise: softmax
# where: answer
# lost: softmax


def softmax(scores):
    return scores.detach().to_sparse()
