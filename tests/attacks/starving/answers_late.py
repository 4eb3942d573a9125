"""Catches the interrupt, and then gives the right answer, too late."""
# exercise: softmax
# where: answer
# limited: softmax had not returned after

import time


def softmax(scores):
    try:
        time.sleep(86_400)
    except BaseException:
        pass
    shifted = (scores - scores.amax(-1, keepdim=True)).exp()
    return shifted / shifted.sum(-1, keepdim=True)
