"""Hands in the course's own classifier with much noise, as far as it goes."""
# chapter: 10_vision
# exercise: own-vit
# where: models
# flagged: may have been trained on

from tests import disguises as d


def models():
    return {"vit": d.of(SHIPPED_DIGITS, d.noise(0.3))}
