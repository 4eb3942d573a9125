# ruff: noqa
# fmt: off

# === exercise: order-behaviour | function: order_behaviour | kind: subtle | what is wrong: keeps allclose's own tolerance of 1e-8, so rounding near 0 makes the answer False
# told: named
# now: named
# says: no tolerance for rounding
def order_behaviour(
    outputs: torch.Tensor, outputs_of_permuted: torch.Tensor, permutation: torch.Tensor
) -> dict[str, bool]:
    invariant = torch.allclose(outputs, outputs_of_permuted)
    equivariant = outputs.dim() == 2 and torch.allclose(
        outputs[permutation], outputs_of_permuted
    )
    return {"equivariant": equivariant, "invariant": invariant}


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: subtle | what is wrong: exponents run from 0 to 1 inclusive (tensor2tensor's, i/(d/2 - 1)), not 2i/d
# told: named
# now: named
# says: exponents up to 1
def sinusoidal_positional_encoding(
    length: int, d_model: int, base: float = 10_000.0
) -> torch.Tensor:
    if d_model % 2:
        raise ValueError("d_model must be even")
    position = torch.arange(length, dtype=torch.float32)[:, None]
    exponents = torch.linspace(0, 1, d_model // 2)
    angles = position * torch.exp(-math.log(base) * exponents)
    table = torch.zeros(length, d_model)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)
    return table


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: double | what is wrong: all sines first and then all cosines, not in turn AND positions are counted from 1
# told: named
# now: named
# says: positions from 1, and sine block, then cosine block
def sinusoidal_positional_encoding(
    length: int, d_model: int, base: float = 10_000.0
) -> torch.Tensor:
    if d_model % 2 == 1:
        raise ValueError(f"d_model = {d_model} is odd")
    i = torch.arange(d_model // 2, dtype=torch.float64)
    p = torch.arange(1, length + 1, dtype=torch.float64)
    angles = torch.outer(p, base ** (-2 * i / d_model))
    return torch.cat([angles.sin(), angles.cos()], dim=1).float()


# === exercise: wavelengths | function: wavelengths | kind: plain | what is wrong: takes the exponents i/d in place of 2i/d
# told: named
# now: named
# says: exponent i/d in place of 2i/d
def wavelengths(d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2 != 0:
        raise ValueError("odd width")
    exponents = torch.arange(d_model // 2) / d_model
    return 2 * math.pi * base**exponents


# === exercise: shift-matrix | function: shift_matrix | kind: plain | what is wrong: the blocks are those for a column vector, M_k transposed
# told: named
# now: named
# says: transposed: made for column vectors
def shift_matrix(offset: int, d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2:
        raise ValueError("d_model is odd")
    matrix = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        b = offset / base ** (2 * i / d_model)
        block = torch.tensor([[math.cos(b), math.sin(b)], [-math.sin(b), math.cos(b)]])
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    return matrix


# === exercise: diagnose-encoding | function: diagnose_encoding | kind: subtle | what is wrong: takes 1/angle of the last pair for the base, without the exponent d/(d-2), which is far too small for a narrow table
# told: named
# now: named
# says: the power d/(d - 2) is missing
def diagnose_encoding(encoding: torch.Tensor) -> str:
    if torch.allclose(encoding[1:, 0], encoding[1, 0], atol=1e-4):
        return "exponent outside the base"
    if encoding[0, 0].abs() > 0.01:
        return "cosine first"
    angle = torch.atan2(encoding[1, -2], encoding[1, -1]).item()
    base = 1 / angle
    return "right" if base > 3000 else "base 1000"


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: double | what is wrong: dropout acts on the table alone, not on the sum AND the buffer is saved in the state dict
# told: named
# now: named
# says: the buffer is persistent
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_length: int = 5_000, dropout: float = 0.0):
        super().__init__()
        self.register_buffer("table", sinusoidal_positional_encoding(max_length, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[-2]
        if length > len(self.table):
            raise ValueError(f"{length} tokens, but {len(self.table)} positions")
        return x + self.dropout(self.table[:length])


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: plain | what is wrong: multiplies x by the root of d_model before adding (the embedding's own job)
# told: named
# now: named
# says: scaled by the square root of the width
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_length: int = 5_000, dropout: float = 0.0):
        super().__init__()
        table = sinusoidal_positional_encoding(max_length, d_model)
        self.register_buffer("table", table, persistent=False)
        self.dropout = nn.Dropout(p=dropout)
        self.d_model = d_model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.size(-2)
        if T > self.table.size(0):
            raise ValueError("sequence is too long")
        x = x * math.sqrt(self.d_model)  # section 3.4 of the paper
        return self.dropout(x + self.table[:T])


# === exercise: learned-module | function: LearnedPositionalEncoding | kind: subtle | what is wrong: refuses a sequence of exactly max_length tokens (>= for >)
# told: named
# now: named
# says: refused, although the table has a row for each token
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length: int, d_model: int, dropout: float = 0.0):
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_length, d_model))
        nn.init.normal_(self.table, mean=0.0, std=0.02)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[-2]
        if length >= self.table.shape[0]:
            raise ValueError("more tokens than positions")
        return self.dropout(x + self.table[:length])


# === exercise: rotary-encoding | function: apply_rotary | kind: plain | what is wrong: pairs column i with column i + d_k/2 (GPT-NeoX), not neighbours
# told: named
# now: named
# says: pairs (i, i + d/2) in place of (2i, 2i + 1)
def apply_rotary(x: torch.Tensor, base: float = 10_000.0) -> torch.Tensor:
    d_k = x.shape[-1]
    if d_k % 2:
        raise ValueError("d_k is odd")
    frequencies = base ** (-torch.arange(0, d_k, 2) / d_k)
    angles = torch.arange(x.shape[-2])[:, None] * frequencies
    cos = torch.cat((angles.cos(), angles.cos()), dim=-1).to(x.dtype)
    sin = torch.cat((angles.sin(), angles.sin()), dim=-1).to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


# === exercise: rotary-encoding | function: apply_rotary | kind: double | what is wrong: the odd columns are computed from the already rotated even ones AND positions are counted from 1
# told: named
# now: named
# says: positions from 1, and the second of a pair computed from the new first
def apply_rotary(x: torch.Tensor, base: float = 10_000.0) -> torch.Tensor:
    length, d_k = x.shape[-2:]
    if d_k % 2:
        raise ValueError("d_k must be even")
    p = torch.arange(1, length + 1).unsqueeze(1)
    theta = p / base ** (torch.arange(0, d_k, 2) / d_k)
    cos, sin = theta.cos().to(x.dtype), theta.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    even = even * cos - odd * sin
    odd = even * sin + odd * cos
    return torch.stack((even, odd), dim=-1).flatten(-2)
