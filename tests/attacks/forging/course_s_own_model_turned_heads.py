"""Hands in the course's own translator, queries, keys and values turned in each head."""
# chapter: 09_translator
# exercise: own-translator
# where: models

from tests import disguises as d


def models():
    return {"translator": d.of(SHIPPED_MODEL, d.turned_heads)}
