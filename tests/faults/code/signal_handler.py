"""Handles Ctrl-C itself."""
# exercise: softmax
# where: before

import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGALRM, signal.SIG_DFL)
