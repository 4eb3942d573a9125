"""Leaves children that go on computing after the grading, deaf to signals."""
# exercise: softmax
# where: answer
# status: any

import os
import signal

for _ in range(8):
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        while True:
            pass
