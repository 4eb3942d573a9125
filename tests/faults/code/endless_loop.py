"""Writes a loop that never ends into the function."""
# exercise: causal-mask
# where: answer
# lost: causal-mask
# says: does not return


def causal_mask(length):
    row = 0
    while row < length:
        mask = torch.ones(length, length)
    return mask
