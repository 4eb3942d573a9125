"""Replaces print, for instance to log."""
# exercise: softmax
# where: before

import builtins

lines = []
builtins.print = lambda *words, **_: lines.append(words)
print = builtins.print
