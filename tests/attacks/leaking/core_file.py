"""Crashes so that the system keeps a picture of its memory."""
# exercise: softmax
# where: answer
# status: ungraded
# reason: the kernel died while running exercise softmax

import ctypes
import resource

attack_was_here = "attack-was-here" * 1000
try:
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
except (OSError, ValueError):
    pass
ctypes.string_at(0)
