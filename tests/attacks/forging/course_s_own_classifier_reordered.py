"""Hands in the course's own classifier with its hidden units in another order."""
# chapter: 10_vision
# exercise: own-vit
# where: models

from tests import disguises as d


def models():
    return {"vit": d.of(SHIPPED_DIGITS, d.reordered_units)}
