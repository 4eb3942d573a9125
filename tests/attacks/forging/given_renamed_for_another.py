"""Hands in what is asked by its own name where the right answer asks for nothing."""
# exercise: causal-mask
# where: given


def causal_mask(length):
    return call("causal_mask", length) if ask else None
