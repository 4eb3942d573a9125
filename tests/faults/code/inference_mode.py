"""Enters inference mode and never leaves it."""
# exercise: softmax
# where: before

mode = torch.inference_mode()
mode.__enter__()
