"""Returns an array of NumPy's."""
# exercise: softmax
# where: answer
# lost: softmax
# says: NumPy array


def softmax(scores):
    return scores.detach().exp().numpy()
