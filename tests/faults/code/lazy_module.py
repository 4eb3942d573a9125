"""Makes the parameters in the first call, not in __init__."""
# exercise: attention-module
# where: answer
# lost: attention-module


class Attention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.sizes = d_model, d_k, d_v

    def forward(self, x_q, x_kv=None, mask=None):
        self.w_q = nn.Parameter(torch.zeros(self.sizes[:2]))
        return x_q @ self.w_q, None
