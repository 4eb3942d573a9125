# ruff: noqa
# fmt: off

# === exercise: order-behaviour | function: order_behaviour | kind: subtle | what is wrong: applies the permutation to the wrong output (outputs_of_permuted[permutation] == outputs), that is the inverse
# told: named
# now: named
# says: permuted by the inverse
def order_behaviour(
    outputs: torch.Tensor, outputs_of_permuted: torch.Tensor, permutation: torch.Tensor
) -> dict[str, bool]:
    invariant = torch.allclose(outputs, outputs_of_permuted, atol=1e-5)
    if outputs.ndim == 1:
        equivariant = False
    else:
        equivariant = torch.allclose(
            outputs_of_permuted[permutation], outputs, atol=1e-5
        )
    return {"equivariant": equivariant, "invariant": invariant}


# === exercise: order-behaviour | function: order_behaviour | kind: double | what is wrong: compares sorted rows, so any order of the same rows counts as equivariant AND a pooled output that is invariant is called equivariant, too
# told: shown
# now: named
# says: order of the rows ignored, and pooled output called equivariant
def order_behaviour(
    outputs: torch.Tensor, outputs_of_permuted: torch.Tensor, permutation: torch.Tensor
) -> dict[str, bool]:
    invariant = torch.allclose(outputs, outputs_of_permuted, atol=1e-5)
    a, _ = outputs.sort(dim=0)
    b, _ = outputs_of_permuted.sort(dim=0)
    equivariant = torch.allclose(a, b, atol=1e-5)
    return {"equivariant": equivariant, "invariant": invariant}


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: subtle | what is wrong: sines in the first half of the columns and cosines in the second half (tensor2tensor's layout); same numbers for d_model = 2
# told: named
# now: named
# says: sine block, then cosine block
def sinusoidal_positional_encoding(
    length: int, d_model: int, base: float = 10_000.0
) -> torch.Tensor:
    if d_model % 2 != 0:
        raise ValueError("d_model must be even")
    position = torch.arange(length).unsqueeze(1)
    divisors = torch.exp(torch.arange(0, d_model, 2) * (math.log(base) / d_model))
    angles = position / divisors
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=1)


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: double | what is wrong: the exponent is i/d in place of 2i/d AND base is ignored, 10000 is written into the formula
# told: named
# now: named
# says: exponent i/d in place of 2i/d
def sinusoidal_positional_encoding(
    length: int, d_model: int, base: float = 10_000.0
) -> torch.Tensor:
    if d_model % 2:
        raise ValueError(f"d_model = {d_model} is odd")
    table = torch.zeros(length, d_model)
    for p in range(length):
        for i in range(d_model // 2):
            angle = p / 10000 ** (i / d_model)
            table[p, 2 * i] = math.sin(angle)
            table[p, 2 * i + 1] = math.cos(angle)
    return table


# === exercise: wavelengths | function: wavelengths | kind: subtle | what is wrong: exponents by linspace from 0 to 1 inclusive, so the last wavelength is 2π·base
# told: named
# now: named
# says: the last wavelength put at 2π times the base
def wavelengths(d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2:
        raise ValueError("odd")
    exponents = torch.linspace(0, 1, d_model // 2)
    return 2 * math.pi * base**exponents


# === exercise: shift-matrix | function: shift_matrix | kind: plain | what is wrong: the blocks are transposed (column convention M @ PE), so it shifts back
# told: named
# now: named
# says: transposed: made for column vectors
def shift_matrix(offset: int, d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2:
        raise ValueError("d_model must be even")
    i = torch.arange(0, d_model, 2)
    b = offset / base ** (i / d_model)
    M = torch.zeros(d_model, d_model)
    M[i, i] = torch.cos(b)
    M[i + 1, i + 1] = torch.cos(b)
    M[i, i + 1] = torch.sin(b)
    M[i + 1, i] = -torch.sin(b)
    return M


# === exercise: diagnose-encoding | function: diagnose_encoding | kind: double | what is wrong: tests one entry (row 1 equals row 2 rounded in column 2) and so misses the still column for wide tables AND tells base by a fixed limit on the angle of the last pair that holds only for small d
# told: named
# now: named
# says: misplaced exponent not noticed
def diagnose_encoding(encoding: torch.Tensor) -> str:
    T, d = encoding.shape
    if encoding[0, 0] != 0 and encoding[0, 1] < 0.5:
        return "cosine first"
    if torch.allclose(encoding[1:, 2], encoding[1, 2].expand(T - 1), atol=1e-2):
        return "exponent outside the base"
    angle = torch.asin(encoding[1, d - 2])
    return "base 1000" if angle > 0.02 else "right"


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: subtle | what is wrong: the buffer is persistent, so the table is saved
# told: named
# now: named
# says: the buffer is persistent
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_length: int = 5_000, dropout: float = 0.0):
        super().__init__()
        self.register_buffer(
            "table", sinusoidal_positional_encoding(max_length, d_model)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[-2]
        if T > self.table.shape[0]:
            raise ValueError(f"{T} tokens, but only {self.table.shape[0]} positions")
        return self.dropout(x + self.table[:T])


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: double | what is wrong: T is taken from axis 1, which is d_model for a single sequence AND refuses T = max_length, too (>= in place of >)
# told: named
# now: named
# says: refused, although the table has a row for each token
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_length: int = 5_000, dropout: float = 0.0):
        super().__init__()
        self.max_length = max_length
        pe = sinusoidal_positional_encoding(max_length, d_model)
        self.register_buffer("pe", pe, persistent=False)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.size(1)
        if length >= self.max_length:
            raise ValueError("too long")
        return self.dropout(x + self.pe[:length, :])


# === exercise: learned-module | function: LearnedPositionalEncoding | kind: subtle | what is wrong: adds the table in place (x += ...), which changes the caller's embeddings
# told: named
# now: named
# says: changes its argument in place
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length: int, d_model: int, dropout: float = 0.0):
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_length, d_model).normal_(0, 0.02))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[-2]
        if length > len(self.table):
            raise ValueError("sequence too long")
        x += self.table[:length]
        return self.dropout(x)


# === exercise: rotary-encoding | function: apply_rotary | kind: subtle | what is wrong: pairs column i with column i + d_k/2 (GPT-NeoX / Llama rotate_half); equal for d_k = 2
# told: named
# now: named
# says: pairs (i, i + d/2) in place of (2i, 2i + 1)
def apply_rotary(x: torch.Tensor, base: float = 10_000.0) -> torch.Tensor:
    length, d_k = x.shape[-2:]
    if d_k % 2:
        raise ValueError("d_k must be even")
    frequencies = 1.0 / base ** (torch.arange(0, d_k, 2).float() / d_k)
    angles = torch.outer(torch.arange(length).float(), frequencies)
    angles = torch.cat((angles, angles), dim=-1)
    first, second = x.chunk(2, dim=-1)
    rotated = torch.cat((-second, first), dim=-1)
    return (x * angles.cos() + rotated * angles.sin()).to(x.dtype)


# === exercise: rotary-encoding | function: apply_rotary | kind: double | what is wrong: the odd columns are computed from the even ones already rotated (a view changed in place on a copy) AND result is float32 whatever the type of x
# told: named
# now: named
# says: the second of a pair computed from the new first
def apply_rotary(x: torch.Tensor, base: float = 10_000.0) -> torch.Tensor:
    T, d_k = x.shape[-2], x.shape[-1]
    if d_k % 2 == 1:
        raise ValueError(f"odd d_k: {d_k}")
    theta = torch.arange(T)[:, None] / base ** (torch.arange(0, d_k, 2) / d_k)
    cos, sin = theta.cos(), theta.sin()
    out = x.clone().float()
    out[..., 0::2] = out[..., 0::2] * cos - out[..., 1::2] * sin
    out[..., 1::2] = out[..., 0::2] * sin + out[..., 1::2] * cos
    return out
