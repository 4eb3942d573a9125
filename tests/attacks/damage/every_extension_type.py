"""Sends each extension type of the format with a body that does not fit it."""
# exercise: softmax
# where: answer
# status: ungraded
# reason: it sent what was not asked for

import os
import random
import socket
import stat

import msgpack


def softmax(scores):
    from autograder.boundary.channel import Channel

    draw = random.Random(0)
    frames = [
        msgpack.packb({"value": msgpack.ExtType(kind, draw.randbytes(size))})
        for kind in range(12)
        for size in (0, 1, 9, 100)
    ]
    for descriptor in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                raw = socket.socket(fileno=os.dup(descriptor))
                for frame in frames:
                    raw.sendall(len(frame).to_bytes(4, "big") + frame)
                    Channel(raw).send({"value": {"odd": frame}})
        except (OSError, ValueError):
            pass
    return scores
