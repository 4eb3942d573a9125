"""Leaves an endless loop in a cell of its own."""
# exercise: softmax
# where: after
# limited: stopped after 5 seconds

while True:
    pass
