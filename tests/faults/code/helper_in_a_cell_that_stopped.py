"""Calls a helper whose own cell stopped before it was defined."""
# exercise: softmax
# where: answer
# lost: softmax
# says: the cell of your answer stopped at line 5: ZeroDivisionError


def softmax(scores):
    return largest_first(scores)


LIMIT = 1 / 0


def largest_first(scores):
    return scores.sort(dim=-1, descending=True).values
