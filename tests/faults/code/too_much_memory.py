"""Makes a matrix of far too many rows."""
# exercise: softmax
# where: after

torch.zeros(200_000, 200_000)
