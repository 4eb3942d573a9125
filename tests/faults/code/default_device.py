"""Makes a device the default that is not there."""
# exercise: softmax
# where: before
# lost: worked-context | causal-mask

torch.set_default_device("meta")
