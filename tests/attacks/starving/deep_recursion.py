"""Recurses without end, in Python and in a class's own methods."""
# exercise: softmax
# where: answer
# status: any


class Deep:
    def __getattr__(self, name):
        return getattr(self, name + "x")


def softmax(scores):
    import sys

    sys.setrecursionlimit(10**9)
    return Deep().softmax
