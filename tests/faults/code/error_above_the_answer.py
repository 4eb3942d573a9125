"""Fails in the line above the function, in the answer's cell."""
# exercise: softmax
# where: answer
# lost: softmax
# says: the cell of your answer stopped at line 1: ZeroDivisionError: division by zero

STEP = 1 / 0


def softmax(scores):
    return scores
