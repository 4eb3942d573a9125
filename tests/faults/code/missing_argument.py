"""Gives the function one argument too many."""
# exercise: causal-mask
# where: answer
# lost: causal-mask
# says: does not accept the arguments


def causal_mask(length, width):
    return torch.ones(length, width).tril().bool()
