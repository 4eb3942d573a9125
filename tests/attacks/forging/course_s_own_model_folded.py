"""Hands in the course's own translator, the norms' gains given to the next matrices."""
# chapter: 09_translator
# exercise: own-translator
# where: models

from tests import disguises as d


def models():
    return {"translator": d.of(SHIPPED_MODEL, d.folded_gains)}
