"""Hands in the course's own translator with much noise, as far as it goes."""
# chapter: 09_translator
# exercise: own-translator
# where: models
# flagged: may have been trained on

from tests import disguises as d


def models():
    return {"translator": d.of(SHIPPED_MODEL, d.noise(0.3))}
