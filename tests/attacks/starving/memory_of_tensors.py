"""Fills memory with tensors in a call that a check makes."""
# exercise: softmax
# where: answer
# status: any

import torch

kept = []


def softmax(scores):
    while True:
        kept.append(torch.ones(5_000_000))
