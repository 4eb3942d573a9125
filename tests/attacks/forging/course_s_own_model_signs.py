"""Hands in the course's own translator, the signs of queries and keys changed."""
# chapter: 09_translator
# exercise: own-translator
# where: models

from tests import disguises as d


def models():
    return {"translator": d.of(SHIPPED_MODEL, d.exchanged_queries)}
