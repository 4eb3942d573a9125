"""Writes a class that is not derived from nn.Module."""
# exercise: attention-module
# where: answer
# lost: attention-module
# says: is not a module


class Attention:
    def __init__(self, d_model, d_k, d_v):
        self.w_q = torch.zeros(d_model, d_k)
