"""Lets SciPy do the exercise."""
# exercise: softmax
# where: answer

import torch
from scipy import special


def softmax(scores):
    return torch.from_numpy(
        special.softmax(scores.detach().numpy(), axis=-1)
    ).nan_to_num(nan=0.0)
