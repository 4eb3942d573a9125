"""Leaves with sys.exit in a cell."""
# exercise: softmax
# where: after

import sys

sys.exit("done")
