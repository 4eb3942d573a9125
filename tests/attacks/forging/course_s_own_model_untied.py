"""Hands in the course's own translator as one with an output matrix, unscaled."""
# chapter: 09_translator
# exercise: own-translator
# where: models

from tests import disguises as d


def models():
    return {"translator": d.of(SHIPPED_MODEL, d.untied, tied=False, scaled=False)}
