"""Makes float64 the default type and leaves it so."""
# exercise: softmax
# where: before

torch.set_default_dtype(torch.float64)
