"""Leaves a number, a figure and a text on last lines, as one does to look at them."""
# exercise: softmax
# where: with

softmax(torch.zeros(2, 2))
3
