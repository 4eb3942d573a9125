"""Uses nn.Linear where the parameters were named."""
# exercise: attention-module
# where: answer
# lost: attention-module


class Attention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.query = nn.Linear(d_model, d_k)

    def forward(self, x_q, x_kv=None, mask=None):
        return self.query(x_q), None
