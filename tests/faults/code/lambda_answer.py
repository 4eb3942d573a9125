"""Writes the answer as a lambda."""
# exercise: causal-mask
# where: answer

causal_mask = lambda length: torch.ones(length, length, dtype=torch.bool).tril()
