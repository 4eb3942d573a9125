"""Returns a tensor with more axes than anybody needs."""
# exercise: softmax
# where: answer

import torch


def softmax(scores):
    return torch.zeros([1] * 60)
