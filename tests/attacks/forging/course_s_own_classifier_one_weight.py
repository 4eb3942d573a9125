"""Hands in the course's own classifier with a single weight moved."""
# chapter: 10_vision
# exercise: own-vit
# where: models

from tests import disguises as d


def models():
    return {"vit": d.of(SHIPPED_DIGITS, d.one_weight)}
