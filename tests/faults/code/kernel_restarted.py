"""Restarts the kernel from a cell, as some tutorials advise after installing."""
# exercise: softmax
# where: after

import IPython

IPython.Application.instance().kernel.do_shutdown(True)
