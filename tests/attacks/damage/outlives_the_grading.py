"""Leaves a process in a session of its own that nobody waits for."""
# exercise: softmax
# where: answer

import os
import signal
import sys
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        sys.stdout = sys.stderr = open(os.devnull, "w")
        time.sleep(3600)
    os._exit(0)
