"""Searches with an expression that takes longer than the universe is old."""
# exercise: softmax
# where: answer

import re

re.match(r"(a+)+$", "a" * 64 + "b")
