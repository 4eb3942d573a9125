"""Writes a __repr__ that raises."""
# exercise: attention-module
# where: with


class Attention(Attention):
    def __repr__(self):
        raise ValueError("no text")


Attention(3, 4, 5)
