"""Sends questions that are no questions."""
# exercise: masked-softmax
# where: given


def masked_softmax(scores, mask=None):

    import torch

    odd = [None, 1, "x", [], {}, {"do": 1}, {"do": "call"}, CALL, torch.ones(2)]
    odd += [CALL | {"name": 1}, CALL | {"name": "softmax", "seed": -1}]
    odd += [CALL | {"name": "softmax", "seed": 2**63, "wanted": [1]}]
    odd += [CALL | {"name": "softmax", "args": [scores]}]
    odd += [CALL | {"name": "softmax", "args": (scores,), "wanted": [True] * 9}]
    odd += [CALL | {"name": "softmax", "kwargs": {1: scores}}]
    odd += [CALL | {"name": "softmax", "state": {"x": None}, "more": 1}]
    odd += [CALL | {"do": "pull", "name": "softmax", "cotangents": (1, "x")}]
    for question in odd if ask else ():
        try:
            ask(question)
        except Exception:
            pass
    return scores
