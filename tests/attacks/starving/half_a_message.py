"""Sends half a reply, and then nothing more."""
# exercise: softmax
# where: answer
# status: ungraded
# reason: it could not be interrupted

import gc
import time

from autograder.boundary.channel import Channel

line = next(each for each in gc.get_objects() if type(each) is Channel)._socket

line.sendall((1000).to_bytes(4, "big") + bytes(500))
while True:
    try:
        time.sleep(86_400)
    except BaseException:
        pass
