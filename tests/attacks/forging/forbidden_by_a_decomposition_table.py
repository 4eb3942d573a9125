"""Looks it up in the table of PyTorch's compiler."""
# exercise: softmax
# where: answer

import torch
from torch._decomp import decomposition_table as table


def softmax(scores):
    return table[torch.ops.aten._softmax.default](scores, -1, False).nan_to_num(nan=0.0)
