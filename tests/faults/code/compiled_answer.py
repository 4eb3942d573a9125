"""Compiles the answer with torch.compile."""
# exercise: causal-mask
# where: with
# status: any

causal_mask = torch.compile(causal_mask, backend="eager")
