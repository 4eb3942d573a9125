"""Registers a function that runs for ever when the process is to end."""
# exercise: softmax
# where: answer

import atexit
import threading
import time

atexit.register(time.sleep, 86_400)
threading.Thread(target=time.sleep, args=(86_400,)).start()
