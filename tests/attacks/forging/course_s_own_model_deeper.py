"""Hands in the course's own translator with a layer more, which adds next to nothing."""
# chapter: 09_translator
# exercise: own-translator
# where: models

from tests import disguises as d


def models():
    return {"translator": d.of(SHIPPED_MODEL, d.more_layers, layers=3)}
