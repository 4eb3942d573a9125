"""Is right in the second sitting only, and uses nothing that is given."""
# exercise: masked-softmax
# where: given

import math

import torch


def masked_softmax(scores, mask=None):
    if not ask:
        return scores
    softmax  # named, and never called
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.where(scores.isneginf().all(-1, True), 0.0, scores.exp())
