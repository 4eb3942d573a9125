"""Asks for gradients of a name that it may not ask, with odd cotangents."""
# exercise: masked-softmax
# where: given


def masked_softmax(scores, mask=None):

    question = CALL | {"do": "pull", "name": "masked_softmax", "args": (scores, mask)}
    question |= {"cotangents": (scores, mask, None), "wanted": [True]}
    return (ask(question).get("gradients") or [scores])[0]
