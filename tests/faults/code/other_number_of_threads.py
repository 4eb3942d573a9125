"""Asks for more threads than there are processors, and for none."""
# exercise: softmax
# where: before

torch.set_num_threads(16)
torch.set_num_interop_threads(16)
