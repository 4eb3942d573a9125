"""Enters inference mode and never leaves it."""
# exercise: softmax
# where: before
# lost: softmax
# says: no gradient

mode = torch.inference_mode()
mode.__enter__()
