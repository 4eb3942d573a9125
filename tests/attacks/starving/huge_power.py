"""Computes a number with more digits than there is memory."""
# exercise: softmax
# where: answer

9**9**9**9
