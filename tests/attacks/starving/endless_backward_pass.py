"""Never comes to the end of its backward pass."""
# exercise: project-qkv
# where: answer
# status: any

import torch


class Endless(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        while True:
            pass


def project_qkv(x_q, x_kv, w_q, w_k, w_v):
    return Endless.apply(x_q), Endless.apply(x_kv), Endless.apply(x_kv)
