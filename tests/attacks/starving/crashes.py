"""Crashes the interpreter by reading where there is nothing."""
# exercise: softmax
# where: answer
# status: ungraded
# reason: crashed (SIGSEGV)

import ctypes


def softmax(scores):
    ctypes.string_at(0)
