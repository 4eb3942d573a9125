"""Sends arguments that are larger than any exercise's."""
# exercise: masked-softmax
# where: given


def masked_softmax(scores, mask=None):

    import torch

    if ask:
        for size in (4_000_000, 2**22):
            softmax(torch.ones(size, 1))
            softmax(torch.ones(1, dtype=torch.int8).expand(2**33))
    return scores
