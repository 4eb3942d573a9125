"""Leaves with sys.exit in the function."""
# exercise: softmax
# where: answer
# lost: softmax
# says: SystemExit


def softmax(scores):
    import sys

    sys.exit(1)
