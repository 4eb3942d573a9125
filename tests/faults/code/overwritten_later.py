"""Overwrites the function by its result in a cell of its own below."""
# exercise: softmax
# where: after
# lost: softmax
# says: is not a function

softmax = softmax(torch.zeros(2, 3))
