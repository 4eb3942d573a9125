"""Sends numbers of every kind, sizes of 0, nan and infinity."""
# exercise: masked-softmax
# where: given


def masked_softmax(scores, mask=None):

    import torch

    for dtype in (torch.complex64, torch.uint64, torch.float16, torch.bool, torch.int8):
        for size in ((0,), (0, 5), (2**40, 0), (), (1,) * 60):
            try:
                softmax(torch.zeros(size, dtype=dtype) / 0)
            except Exception:
                pass
    return scores
