"""Writes to standard error below Python's own streams."""
# exercise: softmax
# where: answer

import os

for _ in range(10_000):
    os.write(2, b"x" * 10_000)
    os.write(1, b"x" * 10_000)
