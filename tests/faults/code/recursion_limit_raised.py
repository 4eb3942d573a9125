"""Recurses without end after raising the limit to recursion."""
# exercise: softmax
# where: answer
# status: any
# lost: softmax

import sys

sys.setrecursionlimit(10**8)


def softmax(scores):
    return softmax(scores)
