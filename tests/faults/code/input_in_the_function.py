"""Asks the user something in the function."""
# exercise: softmax
# where: answer
# lost: softmax


def softmax(scores):
    return scores * float(input("temperature: "))
