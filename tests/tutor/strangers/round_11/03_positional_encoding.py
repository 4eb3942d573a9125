# ruff: noqa
# fmt: off

# === exercise: order-behaviour | function: order_behaviour | kind: plain | what is wrong: the closeness test averages the signed differences instead of their absolute values, so the differences of merely reordered rows cancel and every equivariant (or wrongly reordered) output is also called invariant
# told: told
# now: named
# says: differences that cancel each other
def order_behaviour(
    outputs: torch.Tensor, outputs_of_permuted: torch.Tensor, permutation: torch.Tensor
) -> dict[str, bool]:
    def close(a, b):
        return abs((a - b).mean().item()) < 1e-5

    answer = {"equivariant": False, "invariant": close(outputs, outputs_of_permuted)}
    if outputs.ndim == 2:
        answer["equivariant"] = close(outputs[permutation], outputs_of_permuted)
    return answer


# === exercise: order-behaviour | function: order_behaviour | kind: subtle | what is wrong: treats the two properties as excluding each other: as soon as the output is invariant it answers equivariant False, although both hold when every token gets the same vector
# told: named
# now: named
# says: the two treated as opposites
def order_behaviour(
    outputs: torch.Tensor, outputs_of_permuted: torch.Tensor, permutation: torch.Tensor
) -> dict[str, bool]:
    if torch.allclose(outputs, outputs_of_permuted, atol=1e-5):
        return {"equivariant": False, "invariant": True}
    if outputs.ndim == 1:
        return {"equivariant": False, "invariant": False}
    reordered = torch.index_select(outputs, 0, permutation)
    same = torch.allclose(reordered, outputs_of_permuted, atol=1e-5)
    return {"equivariant": same, "invariant": False}


# === exercise: order-behaviour | function: order_behaviour | kind: double | what is wrong: reorders the rows with the inverse permutation (row permutation[t] of the result is row t of the outputs) AND answers for a pooled output that it is equivariant whenever it is invariant instead of always False
# told: named
# now: named
# says: permuted by the inverse, and pooled output called equivariant
def order_behaviour(
    outputs: torch.Tensor, outputs_of_permuted: torch.Tensor, permutation: torch.Tensor
) -> dict[str, bool]:
    moved = outputs.clone()
    if outputs.ndim > 1:
        for t, target in enumerate(permutation.tolist()):
            moved[target] = outputs[t]
    equivariant = torch.allclose(moved, outputs_of_permuted, atol=1e-5)
    invariant = torch.allclose(outputs, outputs_of_permuted, atol=1e-5)
    return {"equivariant": equivariant, "invariant": invariant}


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: plain | what is wrong: uses the column number c in the exponent c/d for every column, so a cosine column has the exponent (2i+1)/d instead of the 2i/d of its sine
# told: named
# now: named
# says: an exponent for every column
def sinusoidal_positional_encoding(
    length: int, d_model: int, base: float = 10_000.0
) -> torch.Tensor:
    if d_model % 2 != 0:
        raise ValueError(f"d_model must be even, got {d_model}")
    pe = torch.zeros(length, d_model)
    p = torch.arange(length, dtype=torch.float32)
    for c in range(d_model):
        angle = p / base ** (c / d_model)
        if c % 2 == 0:
            pe[:, c] = torch.sin(angle)
        else:
            pe[:, c] = torch.cos(angle)
    return pe


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: subtle | what is wrong: computes in float64 for accuracy and never converts back, so the table is float64 and not float32 as asked (the values are right)
# told: named
# now: named
# says: float32 expected
def sinusoidal_positional_encoding(
    length: int, d_model: int, base: float = 10_000.0
) -> torch.Tensor:
    if d_model % 2:
        raise ValueError("the width has to be even")
    positions = torch.arange(length, dtype=torch.float64)
    exponents = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angles = torch.outer(positions, base**-exponents)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: double | what is wrong: the base is fixed at 10000 inside the logarithm and the argument base is ignored AND an odd d_model is not refused with a ValueError, the last cosine is simply cut off
# told: named
# now: named
# says: base not used
def sinusoidal_positional_encoding(
    length: int, d_model: int, base: float = 10_000.0
) -> torch.Tensor:
    pe = torch.zeros(length, d_model)
    position = torch.arange(0, length, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(
        torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model)
    )
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)[:, : d_model // 2]
    return pe


# === exercise: wavelengths | function: wavelengths | kind: plain | what is wrong: counts the pairs from 1 instead of from 0, so the exponents run from 2/d to 1 and the wavelengths from 2π·base^(2/d) to 2π·base
# told: named
# now: named
# says: pairs counted from 1
def wavelengths(d_model: int, base: float = 10_000.0) -> torch.Tensor:
    half, rest = divmod(d_model, 2)
    if rest:
        raise ValueError("d_model must be even")
    result = []
    for pair in range(1, half + 1):
        speed = 1 / base ** (2 * pair / d_model)
        result.append(2 * math.pi / speed)
    return torch.tensor(result)


# === exercise: wavelengths | function: wavelengths | kind: double | what is wrong: rounds every wavelength up to a whole number of positions AND does not refuse an odd d_model with a ValueError
# told: named
# now: named
# says: rounded to whole positions
def wavelengths(d_model: int, base: float = 10_000.0) -> torch.Tensor:
    exponent = torch.arange(0, d_model, 2, dtype=torch.float32) / d_model
    radians_per_position = 1.0 / torch.pow(base, exponent)
    positions = 2 * torch.pi / radians_per_position
    return torch.ceil(positions)


# === exercise: shift-matrix | function: shift_matrix | kind: subtle | what is wrong: multiplies the one-step matrix offset times in a range(offset) loop, which does nothing for a negative offset: every shift back gives the identity
# told: named
# now: named
# says: a negative offset shifts nothing
def shift_matrix(offset: int, d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2 == 1:
        raise ValueError("d_model must be even")
    one_step = torch.zeros(d_model, d_model, dtype=torch.float64)
    for c in range(0, d_model, 2):
        w = base ** (-c / d_model)
        one_step[c, c] = math.cos(w)
        one_step[c, c + 1] = -math.sin(w)
        one_step[c + 1, c] = math.sin(w)
        one_step[c + 1, c + 1] = math.cos(w)
    result = torch.eye(d_model, dtype=torch.float64)
    for _ in range(offset):
        result = result @ one_step
    return result.float()


# === exercise: shift-matrix | function: shift_matrix | kind: double | what is wrong: lays the matrix out for all sines first and then all cosines (four diagonal quarters) instead of 2 × 2 blocks along the diagonal AND has the minus sign at the lower left instead of the upper right, so it is transposed
# told: named
# now: named
# says: transposed: made for column vectors, and laid out for a sine block and a cosine block
def shift_matrix(offset: int, d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2:
        raise ValueError(f"odd width {d_model}")
    b = offset / base ** (torch.arange(0, d_model, 2) / d_model)
    C, S = torch.diag(torch.cos(b)), torch.diag(torch.sin(b))
    upper = torch.cat((C, S), dim=1)
    lower = torch.cat((-S, C), dim=1)
    return torch.cat((upper, lower), dim=0)


# === exercise: diagnose-encoding | function: diagnose_encoding | kind: plain | what is wrong: asks in the wrong order: the first entry is tested for 0 before the column that stands still, so the table with the misplaced exponent, which starts with .8415, is called "cosine first"
# told: named
# now: named
# says: misplaced exponent taken for cosine first
def diagnose_encoding(encoding: torch.Tensor) -> str:
    d = encoding.shape[1]
    if abs(encoding[0, 0].item()) > 1e-4:
        return "cosine first"
    if encoding[1:, 0].std() < 1e-4:
        return "exponent outside the base"
    angle = torch.atan2(encoding[1, -2], encoding[1, -1]).item()
    found_base = (1 / angle) ** (d / (d - 2))
    return "base 1000" if found_base < 3000 else "right"


# === exercise: diagnose-encoding | function: diagnose_encoding | kind: subtle | what is wrong: tells the bases apart by the sine of the second pair at position 1 with a fixed tolerance of .015, which is right for small d but calls a table with base 1000 "right" for wide tables such as d = 512
# told: named
# now: named
# says: right at one size only
def diagnose_encoding(encoding: torch.Tensor) -> str:
    T, d = encoding.shape
    first_column = encoding[1:, 0]
    if torch.allclose(first_column, first_column[0].expand(T - 1), atol=1e-5):
        return "exponent outside the base"
    if not torch.isclose(encoding[0, 0], torch.zeros(()), atol=1e-5):
        return "cosine first"
    should_be = math.sin(1 / 10_000 ** (2 / d))
    if abs(encoding[1, 2].item() - should_be) < 0.015:
        return "right"
    return "base 1000"


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: subtle | what is wrong: calls F.dropout with the probability only, whose default is training=True, so entries are dropped in evaluation mode too whenever dropout is not 0
# told: named
# now: named
# says: dropout in evaluation mode
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_length: int = 5_000, dropout: float = 0.0):
        super().__init__()
        self.register_buffer(
            "pe", sinusoidal_positional_encoding(max_length, d_model), persistent=False
        )
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seq_len = x.size(-2)
        if seq_len > self.pe.size(0):
            raise ValueError(f"{seq_len} tokens, but only {self.pe.size(0)} positions")
        z = x + self.pe[:seq_len]
        return F.dropout(z, self.drop.p)


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: double | what is wrong: multiplies the embeddings by the square root of d_model before adding the table, which nobody asked for here, AND registers the buffer without persistent=False, so the table is saved in the state dict
# told: named
# now: named
# says: the buffer is persistent
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_length: int = 5_000, dropout: float = 0.0):
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.max_length = max_length
        self.dropout = nn.Dropout(p=dropout)
        table = sinusoidal_positional_encoding(max_length, d_model)
        self.register_buffer("table", table)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        *_, T, _ = x.shape
        if T > self.max_length:
            raise ValueError("sequence longer than the table")
        return self.dropout(self.scale * x + self.table[:T])


# === exercise: learned-module | function: LearnedPositionalEncoding | kind: plain | what is wrong: takes 0.02 for the variance: the start values are multiplied by the square root of 0.02, so their standard deviation is 0.141 instead of 0.02
# told: named
# now: named
# says: the weights start too large
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length: int, d_model: int, dropout: float = 0.0):
        super().__init__()
        start = math.sqrt(0.02) * torch.randn(max_length, d_model)
        self.table = nn.Parameter(start)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[-2]
        if T > len(self.table):
            raise ValueError(f"{T} tokens are too many, the table has {len(self.table)}")
        return self.dropout(x + self.table[:T])


# === exercise: learned-module | function: LearnedPositionalEncoding | kind: subtle | what is wrong: takes the number of tokens from axis 1 for three axes and from axis 0 otherwise, so with more leading axes, such as (B, H, T, d), it takes B for T and fails, adds the wrong rows or misses a sequence that is too long
# told: named
# now: named
# says: length read from the wrong axis
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length: int, d_model: int, dropout: float = 0.0):
        super().__init__()
        self.max_length = max_length
        self.table = nn.Parameter(torch.empty(max_length, d_model))
        nn.init.normal_(self.table, mean=0.0, std=0.02)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batched = x.dim() == 3
        n_tokens = x.shape[1] if batched else x.shape[0]
        if n_tokens > self.max_length:
            raise ValueError(f"at most {self.max_length} tokens, got {n_tokens}")
        rows = self.table[:n_tokens]
        return self.drop(x + rows)


# === exercise: rotary-encoding | function: apply_rotary | kind: plain | what is wrong: overwrites the even columns first and then computes the odd columns from the new even values instead of the old ones
# told: named
# now: named
# says: the second of a pair computed from the new first
def apply_rotary(x: torch.Tensor, base: float = 10_000.0) -> torch.Tensor:
    T, d_k = x.shape[-2:]
    if d_k % 2:
        raise ValueError("d_k must be even")
    pos = torch.arange(T, dtype=torch.float32, device=x.device)[:, None]
    freq = base ** (-torch.arange(0, d_k, 2, dtype=torch.float32, device=x.device) / d_k)
    theta = pos * freq
    cos, sin = theta.cos(), theta.sin()
    first, second = x[..., 0::2], x[..., 1::2]
    first = first * cos - second * sin
    second = first * sin + second * cos
    return torch.stack((first, second), dim=-1).flatten(-2).to(x.dtype)


# === exercise: rotary-encoding | function: apply_rotary | kind: double | what is wrong: pairs column i with column i + d_k/2 instead of neighbouring columns AND does not convert back to the type of x, so a bfloat16 input comes out as float32
# told: named
# now: named
# says: pairs (i, i + d/2) in place of (2i, 2i + 1)
def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary(x: torch.Tensor, base: float = 10_000.0) -> torch.Tensor:
    dim = x.shape[-1]
    if dim % 2 != 0:
        raise ValueError("need an even number of features")
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, device=x.device).float() / dim))
    t = torch.arange(x.shape[-2], device=x.device).float()
    freqs = torch.einsum("t,i->ti", t, inv_freq)
    emb = torch.cat((freqs, freqs), dim=-1)
    return x * emb.cos() + rotate_half(x) * emb.sin()
