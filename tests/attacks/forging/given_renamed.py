"""Hands in the stand-in for its own wrong answer as the next answer."""
# exercise: masked-softmax
# where: given

masked_softmax = softmax
