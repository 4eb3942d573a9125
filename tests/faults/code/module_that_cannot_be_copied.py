"""Keeps something in a module that cannot be copied."""
# exercise: attention-module
# where: with

import threading


class Attention(Attention):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.lock, self.lines = threading.Lock(), (line for line in "ab")
