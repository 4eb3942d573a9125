"""Hands in the course's own translator with each hidden unit written twice and halved."""
# chapter: 09_translator
# exercise: own-translator
# where: models

from tests import disguises as d


def models():
    return {"translator": d.of(SHIPPED_MODEL, d.doubled_units, d_ff=512)}
