"""Defines the function twice in a cell; the second one is wrong."""
# exercise: causal-mask
# where: answer
# lost: causal-mask


def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).tril()


def causal_mask(length):
    return torch.ones(length, length)
