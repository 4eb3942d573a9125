"""Returns a tensor of half a gigabyte."""
# exercise: softmax
# where: answer

import torch


def softmax(scores):
    return torch.zeros(2**27)
