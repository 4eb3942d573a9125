"""Hands in the course's own translator with each unit larger before and smaller after."""
# chapter: 09_translator
# exercise: own-translator
# where: models

from tests import disguises as d


def models():
    return {"translator": d.of(SHIPPED_MODEL, d.scaled_units)}
