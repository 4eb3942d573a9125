"""Asks PyTorch for deterministic algorithms only."""
# exercise: softmax
# where: before

torch.use_deterministic_algorithms(True)
