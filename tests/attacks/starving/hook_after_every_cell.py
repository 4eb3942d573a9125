"""Sleeps for a day in a hook that runs after each cell."""
# exercise: softmax
# where: answer
# status: any

import time

get_ipython().events.register("post_run_cell", lambda *_: time.sleep(86_400))
