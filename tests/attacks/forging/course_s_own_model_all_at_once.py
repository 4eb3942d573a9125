"""Hands in the course's own translator in five disguises at once."""
# chapter: 09_translator
# exercise: own-translator
# where: models

from tests import disguises as d


def models():
    return {
        "translator": d.of(
            d.reordered_tokens(SHIPPED_MODEL),
            d.reordered_units,
            d.turned_heads,
            d.folded_gains,
            d.noise(0.02),
        )
    }
