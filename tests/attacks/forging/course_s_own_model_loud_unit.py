"""Hands in the course's own translator, beside one idle unit a million times as large."""
# chapter: 09_translator
# exercise: own-translator
# where: models

from tests import disguises as d


def models():
    return {"translator": d.of(SHIPPED_MODEL, d.loud_idle_unit, d_ff=257)}
