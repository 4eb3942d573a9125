"""Hands in the course's own translator, its tokens and their rows in another order."""
# chapter: 09_translator
# exercise: own-translator
# where: models

from tests import disguises as d


def models():
    return {"translator": d.reordered_tokens(SHIPPED_MODEL)}
