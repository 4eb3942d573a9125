# ruff: noqa
# fmt: off

# === exercise: order-behaviour | function: order_behaviour | kind: plain | what is wrong: compares with the inverse permutation (outputs_of_permuted is reordered instead of outputs)
# told: named
# now: named
# says: permuted by the inverse
def order_behaviour(
    outputs: torch.Tensor, outputs_of_permuted: torch.Tensor, permutation: torch.Tensor
) -> dict[str, bool]:
    invariant = torch.allclose(outputs, outputs_of_permuted, atol=1e-5)
    equivariant = False
    if outputs.ndim == 2:
        equivariant = torch.allclose(outputs_of_permuted[permutation], outputs, atol=1e-5)
    return {"equivariant": equivariant, "invariant": invariant}


# === exercise: order-behaviour | function: order_behaviour | kind: subtle | what is wrong: recognises a pooled output by its length, so a pooled vector with d = T is treated as T rows and may be called equivariant
# told: named
# now: named
# says: pooled output called equivariant
def order_behaviour(outputs, outputs_of_permuted, permutation):
    def close(a, b):
        return torch.allclose(a, b, atol=1e-5)

    has_a_row_per_token = outputs.shape[0] == permutation.shape[0]
    answer = {}
    answer["invariant"] = close(outputs, outputs_of_permuted)
    answer["equivariant"] = has_a_row_per_token and close(
        outputs_of_permuted, outputs[permutation]
    )
    return answer


# === exercise: order-behaviour | function: order_behaviour | kind: double | what is wrong: judges invariance from the mean over the tokens (so every equivariant model counts as invariant); and answers equivariant = invariant for a pooled output instead of False
# told: named
# now: named
# says: order of the rows ignored, and pooled output called equivariant
def order_behaviour(outputs, outputs_of_permuted, permutation):
    # the order does not matter if the average stays what it was
    before = outputs.mean(dim=0)
    after = outputs_of_permuted.mean(dim=0)
    inv = torch.allclose(before, after, atol=1e-5)

    if outputs.dim() == 1:
        equi = inv
    else:
        expected = torch.stack([outputs[p] for p in permutation.tolist()])
        equi = torch.allclose(outputs_of_permuted, expected, atol=1e-5)
    return {"equivariant": equi, "invariant": inv}


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: plain | what is wrong: takes the exponent i/d instead of 2i/d
# told: named
# now: named
# says: exponent i/d in place of 2i/d
def sinusoidal_positional_encoding(
    length: int, d_model: int, base: float = 10_000.0
) -> torch.Tensor:
    if d_model % 2 == 1:
        raise ValueError("d_model must be even")
    position = torch.arange(length, dtype=torch.float32)[:, None]
    pair = torch.arange(d_model // 2, dtype=torch.float32)
    angle = position / base ** (pair / d_model)
    table = torch.empty(length, d_model)
    table[:, 0::2] = torch.sin(angle)
    table[:, 1::2] = torch.cos(angle)
    return table


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: subtle | what is wrong: computes in double precision and returns float64 instead of float32
# told: named
# now: named
# says: float32 expected
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError(f"odd width {d_model}")
    # double precision, so that positions far away are exact as well
    p = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
    theta = p / torch.pow(torch.tensor(base, dtype=torch.float64), two_i / d_model)
    return torch.stack([theta.sin(), theta.cos()], dim=-1).flatten(-2)


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: double | what is wrong: puts all sines in the left half and all cosines in the right half; and ignores base (10000 is written into the formula)
# told: named
# now: named
# says: sine block, then cosine block
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    if d_model % 2 != 0:
        raise ValueError("need pairs of columns")
    freqs = torch.exp(-math.log(10000.0) * torch.arange(0, d_model, 2).float() / d_model)
    angles = torch.outer(torch.arange(length).float(), freqs)
    return torch.cat((angles.sin(), angles.cos()), dim=1)


# === exercise: wavelengths | function: wavelengths | kind: plain | what is wrong: multiplies 2π by the turning speed instead of dividing by it (2π / base^(2i/d))
# told: named
# now: named
# says: divided by the power of the base
def wavelengths(d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2 != 0:
        raise ValueError("d_model must be even")
    exponents = torch.arange(0, d_model, 2) / d_model
    speed = 1 / base**exponents
    return 2 * math.pi * speed


# === exercise: wavelengths | function: wavelengths | kind: subtle | what is wrong: linspace includes its end, so the exponents run up to 1 and the last wavelength is 2π · base
# told: named
# now: named
# says: the last wavelength put at 2π times the base
def wavelengths(d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("an odd width leaves one column without a partner")
    n_pairs = d_model // 2
    exponents = torch.linspace(0, 1, n_pairs)
    radians_per_position = torch.pow(base, -exponents)
    return 2 * torch.pi / radians_per_position


# === exercise: wavelengths | function: wavelengths | kind: double | what is wrong: uses the exponent i/d instead of 2i/d; and refuses an odd width by an assert (AssertionError, not ValueError)
# told: named
# now: named
# says: exponent i/d in place of 2i/d
def wavelengths(d_model, base=10_000.0):
    assert d_model % 2 == 0, "d_model must be even"
    result = []
    for i in range(d_model // 2):
        result.append(2 * math.pi * base ** (i / d_model))
    return torch.tensor(result)


# === exercise: shift-matrix | function: shift_matrix | kind: plain | what is wrong: the blocks are transposed (minus sign in the lower left), which shifts back instead of on
# told: named
# now: named
# says: transposed: made for column vectors
def shift_matrix(offset: int, d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2:
        raise ValueError("d_model has to be even")
    b = offset / base ** (torch.arange(0, d_model, 2) / d_model)
    top = torch.stack([b.cos(), b.sin()], dim=-1)
    bottom = torch.stack([-b.sin(), b.cos()], dim=-1)
    blocks = torch.stack([top, bottom], dim=-2)
    return torch.block_diag(*blocks)


# === exercise: shift-matrix | function: shift_matrix | kind: subtle | what is wrong: fits a matrix by least squares; the slow columns are nearly collinear, so the result is no block-diagonal rotation matrix and holds only for the fitted rows
# told: named
# now: named
# says: entries outside the 2 × 2 blocks
def shift_matrix(offset, d_model, base=10_000.0):
    if d_model % 2 == 1:
        raise ValueError("d_model must be even")
    k = abs(offset)
    rows = 4 * d_model + k
    position = torch.arange(rows, dtype=torch.float32)[:, None]
    angle = position / base ** (torch.arange(0, d_model, 2) / d_model)
    table = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)
    here, there = table[: rows - k], table[k:]
    if offset < 0:
        here, there = there, here
    # PE[p] @ M = PE[p + k] for all rows at once: solve for M
    return torch.linalg.lstsq(here, there).solution


# === exercise: shift-matrix | function: shift_matrix | kind: double | what is wrong: takes the absolute value of the offset, so that negative offsets shift on; and does not refuse an odd width
# told: named
# now: named
# says: sign of the offset lost
def shift_matrix(offset, d_model, base=10_000.0):
    steps = abs(offset)
    m = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        b = steps / base ** (2 * i / d_model)
        s, c = math.sin(b), math.cos(b)
        left = 2 * i
        right = left + 1
        m[left, left] = c
        m[left, right] = -s
        m[right, left] = s
        m[right, right] = c
    return m


# === exercise: diagnose-encoding | function: diagnose_encoding | kind: plain | what is wrong: asks for the first entry before the standing column, so the table with the misplaced exponent (first entry .8415) is called "cosine first"
# told: named
# now: named
# says: misplaced exponent taken for cosine first
def diagnose_encoding(encoding: torch.Tensor) -> str:
    d = encoding.shape[1]
    if encoding[0, 0].abs() > 1e-4:
        return "cosine first"
    if encoding[1:, 0].std() < 1e-4:
        return "exponent outside the base"
    angle = torch.atan2(encoding[1, d - 2], encoding[1, d - 1]).item()
    base = (1 / angle) ** (d / (d - 2))
    return "base 1000" if base < 3000 else "right"


# === exercise: diagnose-encoding | function: diagnose_encoding | kind: plain | what is wrong: takes a wrong norm as the sign of the misplaced exponent, but that table has the right norm and "cosine first" has not: the two are exchanged
# told: named
# now: named
# says: cosine first taken for a misplaced exponent
def diagnose_encoding(encoding):
    T, d = encoding.shape
    norms = (encoding**2).sum(dim=1)
    if not torch.allclose(norms, torch.full((T,), d / 2), atol=1e-3):
        return "exponent outside the base"
    if abs(float(encoding[0, 0])) > 0.01:
        return "cosine first"
    w = math.atan2(float(encoding[1, -2]), float(encoding[1, -1]))
    log_base = -math.log10(w) * d / (d - 2)
    if log_base > 3.5:
        return "right"
    return "base 1000"


# === exercise: diagnose-encoding | function: diagnose_encoding | kind: subtle | what is wrong: takes the last exponent for 1 instead of (d-2)/d when solving for the base: right at large d, "base 1000" for every right table at small d
# told: named
# now: named
# says: the power d/(d - 2) is missing
def diagnose_encoding(encoding):
    first_column = encoding[1:, 0]
    if torch.allclose(first_column, first_column[0].expand_as(first_column), atol=1e-5):
        return "exponent outside the base"
    if not torch.isclose(encoding[0, 0], torch.tensor(0.0), atol=1e-4):
        return "cosine first"
    sine, cosine = encoding[1, -2], encoding[1, -1]
    base = 1.0 / torch.atan2(sine, cosine)
    # half way between 10^3 and 10^4
    if base > 10**3.5:
        return "right"
    return "base 1000"


# === exercise: diagnose-encoding | function: diagnose_encoding | kind: double | what is wrong: looks for a standing column anywhere, and the slow cosines of a right table nearly stand, too; and tells the base by a fixed threshold on the second pair's sine, which fits d = 4 only
# told: named
# now: named
# says: cosine first taken for a misplaced exponent
def diagnose_encoding(encoding):
    spread = encoding[1:].std(dim=0)
    if (spread < 1e-3).any():
        return "exponent outside the base"
    if encoding[0, 0] != 0:
        return "cosine first"
    if encoding[1, 2] < 0.02:
        return "right"
    else:
        return "base 1000"


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: plain | what is wrong: the table is a trainable parameter instead of a buffer
# told: named
# now: named
# says: the encoding is a parameter
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_length: int = 5_000, dropout: float = 0.0):
        super().__init__()
        self.table = nn.Parameter(sinusoidal_positional_encoding(max_length, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[-2]
        if T > self.table.shape[0]:
            raise ValueError(f"{T} tokens, but only {self.table.shape[0]} positions")
        return self.dropout(x + self.table[:T])


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: subtle | what is wrong: the buffer is persistent (the default), so the table is saved in the state_dict
# told: named
# now: named
# says: the buffer is persistent
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        super().__init__()
        self.max_length = max_length
        self.drop = nn.Dropout(p=dropout)
        pe = sinusoidal_positional_encoding(max_length, d_model)
        self.register_buffer("pe", pe)

    def forward(self, x):
        n_tokens = x.size(-2)
        if n_tokens > self.max_length:
            raise ValueError("sequence too long")
        return self.drop(x + self.pe[:n_tokens, :])


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: subtle | what is wrong: += adds the encoding into the caller's tensor (changes the argument in place)
# told: named
# now: named
# says: changes its argument in place
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        super().__init__()
        self.register_buffer(
            "table", sinusoidal_positional_encoding(max_length, d_model), persistent=False
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        *_, length, _ = x.shape
        if length > len(self.table):
            raise ValueError(f"at most {len(self.table)} tokens, got {length}")
        x += self.table[:length]
        x = self.dropout(x)
        return x


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: double | what is wrong: reads T from axis 1, which is the width when there is no batch; and dropout acts on the encoding only, not on the sum
# told: named
# now: named
# says: length read from the wrong axis
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        super().__init__()
        encoding = sinusoidal_positional_encoding(max_length, d_model)
        self.register_buffer("encoding", encoding, persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        seq_len = x.shape[1]
        if seq_len > self.encoding.shape[0]:
            raise ValueError("too many tokens")
        positions = self.dropout(self.encoding[:seq_len])
        return x + positions


# === exercise: learned-module | function: LearnedPositionalEncoding | kind: plain | what is wrong: the table starts with a standard deviation of 1 instead of 0.02
# told: named
# now: named
# says: the weights start too large
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length: int, d_model: int, dropout: float = 0.0):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[-2]
        if T > self.table.shape[0]:
            raise ValueError("more tokens than positions")
        return self.dropout(x + self.table[:T])


# === exercise: learned-module | function: LearnedPositionalEncoding | kind: subtle | what is wrong: dropout acts on the embeddings before the table is added, not on the sum
# told: named
# now: named
# says: dropout on the embeddings only
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_length, d_model))
        nn.init.normal_(self.table, mean=0.0, std=0.02)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        length = x.size(-2)
        if length > self.table.size(0):
            raise ValueError(f"the table has {self.table.size(0)} rows, not {length}")
        return self.drop(x) + self.table[:length]


# === exercise: learned-module | function: LearnedPositionalEncoding | kind: double | what is wrong: draws uniform numbers from 0 to 0.02 instead of normal ones; and refuses a sequence of exactly max_length tokens (>= instead of >)
# told: named
# now: named
# says: the weights do not start around 0
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__()
        self.max_length = max_length
        start = 0.02 * torch.rand(max_length, d_model)
        self.table = nn.Parameter(start)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        T = x.shape[-2]
        if T >= self.max_length:
            raise ValueError("sequence too long for this table")
        rows = self.table[torch.arange(T)]
        return self.dropout(x + rows)


# === exercise: rotary-encoding | function: apply_rotary | kind: plain | what is wrong: pairs column i with column i + d_k/2 instead of neighbouring columns
# told: named
# now: named
# says: pairs (i, i + d/2) in place of (2i, 2i + 1)
def apply_rotary(x: torch.Tensor, base: float = 10_000.0) -> torch.Tensor:
    T, d_k = x.shape[-2:]
    if d_k % 2:
        raise ValueError("d_k must be even")
    half = d_k // 2
    freqs = base ** (-torch.arange(0, d_k, 2).float() / d_k)
    angles = torch.arange(T).float()[:, None] * freqs
    cos, sin = angles.cos(), angles.sin()
    x1, x2 = x[..., :half], x[..., half:]
    rotated = torch.cat([x1 * cos - x2 * sin, x1 * sin + x2 * cos], dim=-1)
    return rotated.to(x.dtype)


# === exercise: rotary-encoding | function: apply_rotary | kind: subtle | what is wrong: computes positions and angles in the type of x: in bfloat16 the positions above 256 and the angles are rounded
# told: named
# now: named
# says: angles rounded to the type of x
def apply_rotary(x, base=10_000.0):
    if x.shape[-1] % 2 == 1:
        raise ValueError("an odd d_k has no pairs")
    T, d_k = x.shape[-2], x.shape[-1]
    position = torch.arange(T, dtype=x.dtype, device=x.device).unsqueeze(-1)
    exponent = torch.arange(0, d_k, 2, dtype=x.dtype, device=x.device) / d_k
    theta = position / base**exponent
    even = x[..., 0::2]
    odd = x[..., 1::2]
    new_even = even * theta.cos() - odd * theta.sin()
    new_odd = even * theta.sin() + odd * theta.cos()
    return torch.stack((new_even, new_odd), dim=-1).flatten(-2)


# === exercise: rotary-encoding | function: apply_rotary | kind: double | what is wrong: counts positions from 1; and turns backwards (the signs of the sines are exchanged): the scores are right nevertheless
# told: named
# now: named
# says: rotated backwards, and positions from 1
def apply_rotary(x, base=10_000.0):
    *_, T, d = x.shape
    if d % 2 != 0:
        raise ValueError(f"d_k = {d} is odd")
    pos = torch.arange(1, T + 1, dtype=torch.float32)
    omega = 1.0 / base ** (torch.arange(0, d, 2, dtype=torch.float32) / d)
    ang = torch.einsum("t,i->ti", pos, omega)
    c, s = torch.cos(ang), torch.sin(ang)
    a, b = x[..., ::2], x[..., 1::2]
    out = torch.stack([a * c + b * s, b * c - a * s], dim=-1)
    return out.reshape(x.shape).type_as(x)


# === exercise: rotary-encoding | function: apply_rotary | kind: double | what is wrong: the second entry of a pair is computed from the new first one (the slices are views of the result); and an odd d_k is not refused with a ValueError
# told: named
# now: named
# says: the second of a pair computed from the new first
def apply_rotary(x, base=10_000.0):
    T, d_k = x.shape[-2], x.shape[-1]
    position = torch.arange(T, dtype=torch.float32)[:, None]
    angle = position / base ** (torch.arange(0, d_k, 2) / d_k)
    cos, sin = torch.cos(angle), torch.sin(angle)
    result = x.clone()
    first = result[..., 0::2]
    second = result[..., 1::2]
    result[..., 0::2] = (first * cos - second * sin).to(x.dtype)
    result[..., 1::2] = (first * sin + second * cos).to(x.dtype)
    return result


# === exercise: wavelengths | function: wavelengths | kind: plain | what is wrong: the exponents run from 0 to 1 including 1 (linspace), so the last wavelength is 2π·base
# told: named
# now: named
# says: the last wavelength put at 2π times the base
def wavelengths(d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2 != 0:
        raise ValueError("d_model has to be even")
    pairs = d_model // 2
    exponents = torch.linspace(0, 1, pairs)
    return 2 * math.pi * torch.pow(torch.tensor(float(base)), exponents)


# === exercise: rotary-encoding | function: apply_rotary | kind: plain | what is wrong: pairs column i with column i + d_k/2 instead of neighbouring columns
# told: named
# now: named
# says: pairs (i, i + d/2) in place of (2i, 2i + 1)
def apply_rotary(x: torch.Tensor, base: float = 10_000.0) -> torch.Tensor:
    T, d_k = x.shape[-2:]
    if d_k % 2:
        raise ValueError(f"d_k = {d_k} is odd")
    freq = base ** (-torch.arange(0, d_k, 2, device=x.device).float() / d_k)
    theta = torch.outer(torch.arange(T, device=x.device).float(), freq)
    cos, sin = theta.cos(), theta.sin()
    first, second = x.chunk(2, dim=-1)
    rotated = torch.cat(
        (first * cos - second * sin, first * sin + second * cos), dim=-1
    )
    return rotated.to(x.dtype)


# === exercise: diagnose-encoding | function: diagnose_encoding | kind: subtle | what is wrong: takes 1/angle of the last pair for the base, as if its exponent were 1 and not (d-2)/d; small widths (d = 4 and so on) with the base 10000 are called base 1000
# told: named
# now: named
# says: the power d/(d - 2) is missing
def diagnose_encoding(encoding: torch.Tensor) -> str:
    first_column = encoding[1:, 0]
    if torch.allclose(first_column, first_column[:1].expand_as(first_column), atol=1e-4):
        return "exponent outside the base"
    if abs(encoding[0, 0].item()) > 1e-3:
        return "cosine first"
    sine, cosine = encoding[1, -2], encoding[1, -1]
    angle = torch.atan2(sine, cosine).item()
    base = 1 / angle
    if base > math.sqrt(1_000 * 10_000):
        return "right"
    return "base 1000"


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: subtle | what is wrong: dropout acts on the embeddings only and not on the sum (equal in evaluation mode)
# told: named
# now: named
# says: dropout on the embeddings only
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_length: int = 5_000, dropout: float = 0.0):
        super().__init__()
        pe = sinusoidal_positional_encoding(max_length, d_model)
        self.register_buffer("pe", pe, persistent=False)
        self.drop = nn.Dropout(p=dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seq_len = x.size(-2)
        if seq_len > self.pe.size(0):
            raise ValueError(f"{seq_len} tokens, but only {self.pe.size(0)} positions")
        x = self.drop(x)
        return x + self.pe[:seq_len]


# === exercise: shift-matrix | function: shift_matrix | kind: double | what is wrong: (1) the exponent is i/d instead of 2i/d; (2) the blocks are transposed (minus sign in the lower left)
# told: named
# now: named
# says: transposed: made for column vectors, and exponent i/d in place of 2i/d
def shift_matrix(offset: int, d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2 == 1:
        raise ValueError("odd d_model")
    M = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        b = offset / base ** (i / d_model)
        row = 2 * i
        M[row, row] = math.cos(b)
        M[row, row + 1] = math.sin(b)
        M[row + 1, row] = -math.sin(b)
        M[row + 1, row + 1] = math.cos(b)
    return M


# === exercise: learned-module | function: LearnedPositionalEncoding | kind: double | what is wrong: (1) the table is drawn uniformly from 0 to 0.02 instead of normally with mean 0 and standard deviation 0.02; (2) a sequence of exactly max_length tokens is refused
# told: named
# now: named
# says: the weights do not start around 0
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length: int, d_model: int, dropout: float = 0.0):
        super().__init__()
        self.max_length = max_length
        self.table = nn.Parameter(0.02 * torch.rand(max_length, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[-2]
        if T >= self.max_length:
            raise ValueError(f"only {self.max_length} positions, but {T} tokens")
        positions = torch.arange(T, device=x.device)
        return self.dropout(x + F.embedding(positions, self.table))
