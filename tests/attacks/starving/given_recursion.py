"""Asks again while a question is put together."""
# exercise: masked-softmax
# where: given


def masked_softmax(scores, mask=None):

    import torch

    class Asks(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            softmax(torch.ones(2).as_subclass(Asks))

    if ask:
        softmax(torch.ones(2).as_subclass(Asks))
    return scores
