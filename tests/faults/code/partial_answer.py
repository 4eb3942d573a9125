"""Makes the answer with functools.partial."""
# exercise: causal-mask
# where: answer

import functools


def lower(length, diagonal):
    return torch.ones(length, length).tril(diagonal).bool()


causal_mask = functools.partial(lower, diagonal=0)
