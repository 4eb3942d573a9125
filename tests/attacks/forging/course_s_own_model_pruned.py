"""Hands in the course's own translator without an eighth of its hidden units."""
# chapter: 09_translator
# exercise: own-translator
# where: models

from tests import disguises as d


def models():
    return {"translator": d.of(SHIPPED_MODEL, d.pruned_units, d_ff=224)}
