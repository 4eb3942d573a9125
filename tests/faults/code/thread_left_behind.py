"""Starts a thread that is still running at the end."""
# exercise: softmax
# where: after

import threading
import time

threading.Thread(target=time.sleep, args=(600,)).start()
