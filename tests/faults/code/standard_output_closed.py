"""Closes and replaces the standard streams."""
# exercise: softmax
# where: before

import io
import sys

sys.stdout = io.StringIO()
sys.stderr.close()
