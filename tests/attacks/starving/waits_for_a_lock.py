"""Waits for a lock that nobody will ever release."""
# exercise: softmax
# where: answer

import threading


def softmax(scores):
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
