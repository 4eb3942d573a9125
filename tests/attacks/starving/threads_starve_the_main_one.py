"""Starves its own main thread with threads that need no lock of Python's."""
# exercise: softmax
# where: answer
# status: any

import hashlib
import threading

DATA = bytes(50_000_000)


def spin():
    while True:
        hashlib.sha256(DATA).digest()


for _ in range(32):
    threading.Thread(target=spin, daemon=True).start()


def softmax(scores):
    while True:
        pass
