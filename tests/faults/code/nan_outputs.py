"""Returns NaN where all scores are minus infinity."""
# exercise: softmax
# where: answer
# lost: softmax


def softmax(scores):
    return torch.exp(scores - scores.amax(-1, keepdim=True)) / 0
