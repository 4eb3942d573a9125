"""Prints a letter now and then, for ever, in a call."""
# exercise: softmax
# where: answer
# limited: softmax had not returned after

import time


def softmax(scores):
    while True:
        print("x", end="", flush=True)
        time.sleep(0.01)
