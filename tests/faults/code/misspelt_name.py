"""Gives the function another name."""
# exercise: softmax
# where: answer
# lost: softmax
# says: is not there


def soft_max(scores):
    return torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)
