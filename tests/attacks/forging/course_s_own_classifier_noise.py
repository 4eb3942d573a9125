"""Hands in the course's own classifier with some noise."""
# chapter: 10_vision
# exercise: own-vit
# where: models

from tests import disguises as d


def models():
    return {"vit": d.of(SHIPPED_DIGITS, d.noise(0.1))}
