"""Leaves shared memory, semaphores and a message queue of the old kind."""
# exercise: softmax
# where: answer

import ctypes

libc = ctypes.CDLL(None, use_errno=True)
KEY, CREATE = 0xA77AC, 0o1666
libc.shmget(KEY, 4096, CREATE)
libc.semget(KEY, 1, CREATE)
libc.msgget(KEY, CREATE)
