"""Forgets super().__init__() in a module."""
# exercise: attention-module
# where: answer
# lost: attention-module
# says: super().__init__()


class Attention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        self.w_q = nn.Parameter(torch.zeros(d_model, d_k))
