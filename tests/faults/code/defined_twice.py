"""Defines the function twice in a cell; the second one is right."""
# exercise: causal-mask
# where: answer


def causal_mask(length):
    return None


def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).tril()
