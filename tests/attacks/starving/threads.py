"""Starts threads until no more can be started."""
# exercise: softmax
# where: answer
# status: ungraded
# reason: threads

import threading
import time

while True:
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
