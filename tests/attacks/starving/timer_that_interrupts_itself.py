"""Has a timer interrupt it a thousand times a second."""
# exercise: softmax
# where: answer
# status: any

import signal

signal.signal(signal.SIGALRM, lambda *_: sum(range(10_000)))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)


def softmax(scores):
    while True:
        pass
