"""Puts a built module where the class was asked for."""
# exercise: attention-module
# where: with
# lost: attention-module

Attention = Attention(3, 4, 5)
