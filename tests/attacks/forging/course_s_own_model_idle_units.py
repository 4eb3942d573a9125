"""Hands in the course's own translator, joined by hidden units that nothing listens to."""
# chapter: 09_translator
# exercise: own-translator
# where: models

from tests import disguises as d


def models():
    return {"translator": d.of(SHIPPED_MODEL, d.idle_units, d_ff=384)}
