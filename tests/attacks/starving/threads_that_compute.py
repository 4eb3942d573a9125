"""Leaves threads that go on computing while the checks run."""
# exercise: softmax
# where: answer
# status: any

import threading


def spin():
    while True:
        sum(range(100_000))


for _ in range(8):
    threading.Thread(target=spin, daemon=True).start()
