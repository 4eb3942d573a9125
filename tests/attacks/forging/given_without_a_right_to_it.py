"""Uses a stand-in in an answer that has no use for it when it is right."""
# exercise: causal-mask
# where: given

import torch


def causal_mask(length):
    later = torch.ones(length, length).triu(1) * -torch.inf
    return softmax(later) > 0
