"""Returns an array of NumPy's."""
# exercise: softmax
# where: answer
# lost: softmax
# says: ndarray


def softmax(scores):
    return scores.detach().exp().numpy()
