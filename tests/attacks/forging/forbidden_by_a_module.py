"""Lets a module of PyTorch do the exercise."""
# exercise: softmax
# where: answer

from torch import nn

layer = nn.Softmax(dim=-1)


def softmax(scores):
    return layer(scores).nan_to_num(nan=0.0)
