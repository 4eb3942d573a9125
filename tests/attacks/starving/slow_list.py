"""Returns a list that gives an item every tenth of a second, for ever."""
# exercise: softmax
# where: answer
# limited: softmax had not returned after

import time


class Slow(list):
    def __iter__(self):
        while True:
            time.sleep(0.1)
            yield 1.0


def softmax(scores):
    return Slow([1.0])
