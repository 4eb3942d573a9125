"""Leaves an anonymous memory file and a named piece of shared memory."""
# exercise: softmax
# where: answer

import os
from multiprocessing import shared_memory

os.memfd_create("attack-was-here")
try:
    block = shared_memory.SharedMemory("attack-was-here", create=True, size=4096)
    block.buf[:15] = b"attack-was-here"
except OSError:
    pass
