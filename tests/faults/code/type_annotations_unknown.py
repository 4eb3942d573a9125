"""Annotates arguments with names that do not exist."""
# exercise: causal-mask
# where: answer
# lost: causal-mask
# says: the cell of your answer stopped at line 1: NameError: name 'Length'


def causal_mask(length: Length) -> Mask:
    return torch.ones(length, length, dtype=torch.bool).tril()
