"""Clears what was shown and updates displays of other cells to say "passed"."""
# exercise: softmax
# where: after

from IPython.display import clear_output, display

display("passed", display_id="test-softmax")
clear_output(wait=False)
display("passed", display_id="test-softmax", update=True)
