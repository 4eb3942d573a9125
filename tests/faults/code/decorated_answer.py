"""Puts a cache around the answer."""
# exercise: causal-mask
# where: answer

from functools import lru_cache


@lru_cache
def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).tril()
