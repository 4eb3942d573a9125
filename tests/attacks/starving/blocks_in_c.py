"""Waits inside the C library, where Python cannot interrupt it."""
# exercise: softmax
# where: answer
# limited: stopped after

import ctypes

libc = ctypes.PyDLL(None)
while True:
    libc.sleep(1000)
