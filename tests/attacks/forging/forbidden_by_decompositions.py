"""Takes the steps that PyTorch's compiler makes of it."""
# exercise: softmax
# where: answer

from torch._decomp import decompositions


def softmax(scores):
    return decompositions._softmax(scores, -1, False).nan_to_num(nan=0.0)
