"""Asks for a tensor of a petabyte."""
# exercise: softmax
# where: answer

import torch


def softmax(scores):
    return torch.empty(2**48)
