"""Annotates arguments with names that do not exist."""
# exercise: causal-mask
# where: answer
# lost: causal-mask
# says: is not there


def causal_mask(length: Length) -> Mask:
    return torch.ones(length, length, dtype=torch.bool).tril()
