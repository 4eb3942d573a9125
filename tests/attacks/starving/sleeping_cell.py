"""Sleeps for a day."""
# exercise: softmax
# where: answer
# limited: cell softmax: stopped after

import time

time.sleep(86_400)
