# ruff: noqa
# fmt: off

# === exercise: order-behaviour | function: order_behaviour | kind: plain | what is wrong: equivariance is tested by sorting both outputs and comparing what is in them, so every reordering of the rows counts (also the inverse permutation's 20, 30, 10), not only the one by the permutation, which is never used
# told: named
# now: named
# says: order of the rows ignored
def order_behaviour(outputs, outputs_of_permuted, permutation):
    invariant = torch.allclose(outputs, outputs_of_permuted, atol=1e-5)
    equivariant = False
    if outputs.ndim == 2:
        # the same rows must come out, only their places may change
        before = outputs.sort(dim=0).values
        after = outputs_of_permuted.sort(dim=0).values
        equivariant = torch.allclose(before, after, atol=1e-5)
    return {"equivariant": equivariant, "invariant": invariant}


# === exercise: order-behaviour | function: order_behaviour | kind: subtle | what is wrong: the two properties are treated as if they excluded each other: an invariant model is never called equivariant, which is wrong when both hold (every token gets the same vector)
# told: named
# now: named
# says: the two treated as opposites
def order_behaviour(
    outputs: torch.Tensor, outputs_of_permuted: torch.Tensor, permutation: torch.Tensor
) -> dict[str, bool]:
    if torch.allclose(outputs_of_permuted, outputs, atol=1e-5):
        return {"equivariant": False, "invariant": True}
    if outputs.ndim == 2 and torch.allclose(
        outputs_of_permuted, outputs[permutation], atol=1e-5
    ):
        return {"equivariant": True, "invariant": False}
    return {"equivariant": False, "invariant": False}


# === exercise: order-behaviour | function: order_behaviour | kind: subtle | what is wrong: a pooled output is recognised by its first size differing from T instead of by its number of axes, so a pooled output with d = T has its features permuted and can be called equivariant (for example the same constant vector twice)
# told: named
# now: named
# says: pooled output called equivariant
def order_behaviour(
    outputs: torch.Tensor, outputs_of_permuted: torch.Tensor, permutation: torch.Tensor
) -> dict[str, bool]:
    def close(a, b):
        return torch.allclose(a, b, atol=1e-5)

    has_rows = outputs.shape[0] == permutation.shape[0]
    return {
        "equivariant": has_rows and close(outputs_of_permuted, outputs[permutation]),
        "invariant": close(outputs_of_permuted, outputs),
    }


# === exercise: order-behaviour | function: order_behaviour | kind: double | what is wrong: torch.equal compares exactly, so differences by rounding (1e-7) count as differences; the permutation is applied to outputs_of_permuted instead of outputs, which tests for the inverse permutation
# told: named
# now: named
# says: no tolerance for rounding
def order_behaviour(outputs, outputs_of_permuted, permutation):
    invariant = torch.equal(outputs, outputs_of_permuted)
    per_token = outputs.dim() == 2
    equivariant = per_token and torch.equal(outputs_of_permuted[permutation], outputs)
    return {"equivariant": equivariant, "invariant": invariant}


# === exercise: order-behaviour | function: order_behaviour | kind: double | what is wrong: the values are 0-dimensional tensors from .all() instead of Python bools; for a pooled output "equivariant" is set to the same as "invariant" instead of False
# told: named
# now: named
# says: tensors in place of Python bools
def order_behaviour(
    outputs: torch.Tensor, outputs_of_permuted: torch.Tensor, permutation: torch.Tensor
) -> dict[str, bool]:
    invariant = torch.isclose(outputs_of_permuted, outputs, atol=1e-5).all()
    if outputs.ndim == 1:
        # nothing to reorder: R does nothing to a pooled vector
        equivariant = invariant
    else:
        reordered = outputs[permutation]
        equivariant = torch.isclose(outputs_of_permuted, reordered, atol=1e-5).all()
    return {"equivariant": equivariant, "invariant": invariant}


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: plain | what is wrong: all sines are put into the first half of the columns and all cosines into the second (as in tensor2tensor) instead of alternating even and odd columns
# told: named
# now: named
# says: sine block, then cosine block
def sinusoidal_positional_encoding(
    length: int, d_model: int, base: float = 10_000.0
) -> torch.Tensor:
    if d_model % 2 == 1:
        raise ValueError(f"d_model must be even, not {d_model}")
    position = torch.arange(length, dtype=torch.float64)[:, None]
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angle = position / base ** exponent
    return torch.cat((angle.sin(), angle.cos()), dim=-1).float()


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: plain | what is wrong: the cosine columns use an exponent of their own, (2i+1)/d, instead of the exponent 2i/d of their sine, so the two columns of a pair have different angles
# told: named
# now: named
# says: an exponent for every column
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("d_model must be even")
    position = torch.arange(length, dtype=torch.float64)[:, None]
    column = torch.arange(d_model, dtype=torch.float64)[None, :]
    table = position / base ** (column / d_model)  # angles, (T, d)
    table[:, 0::2] = torch.sin(table[:, 0::2])  # even: 2i
    table[:, 1::2] = torch.cos(table[:, 1::2])  # odd: 2i+1
    return table.to(torch.float32)


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: subtle | what is wrong: 10000 is written into the formula and the argument base is never used, so every other base gives the table of base 10000
# told: named
# now: named
# says: base not used
def sinusoidal_positional_encoding(
    length: int, d_model: int, base: float = 10_000.0
) -> torch.Tensor:
    if d_model % 2 != 0:
        raise ValueError("an odd width leaves a sine without its cosine")
    pe = torch.zeros(length, d_model)
    position = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    div_term = torch.exp(
        torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10000.0) / d_model)
    )
    pe[:, 0::2] = torch.sin(position * div_term).float()
    pe[:, 1::2] = torch.cos(position * div_term).float()
    return pe


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: subtle | what is wrong: the table is computed in float64 and returned in float64; the values are right, but float32 is required
# told: named
# now: named
# says: float32 expected
def sinusoidal_positional_encoding(
    length: int, d_model: int, base: float = 10_000.0
) -> torch.Tensor:
    if d_model % 2:
        raise ValueError("d_model must be even")
    # double precision, so that far positions are exact, too
    p = torch.arange(length, dtype=torch.double).reshape(-1, 1)
    two_i = torch.arange(0, d_model, 2, dtype=torch.double)
    angles = p / torch.pow(base, two_i / d_model)
    pairs = torch.stack((torch.sin(angles), torch.cos(angles)), dim=-1)
    return pairs.flatten(1)


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: double | what is wrong: cosines are in the even columns and sines in the odd ones, the other way round; an odd d_model is not refused but gets a table with one column of the last pair missing
# told: named
# now: named
# says: cosine first
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    pos = torch.arange(length, dtype=torch.float64)[:, None]
    omega = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    theta = pos * omega
    table = torch.empty(length, d_model)
    table[:, 0::2] = theta.cos().float()
    # with an odd width the last pair has only one column
    table[:, 1::2] = theta.sin()[:, : d_model // 2].float()
    return table


# === exercise: wavelengths | function: wavelengths | kind: plain | what is wrong: the exponents are i/d instead of 2i/d (the pairs are counted in steps of 1), so the wavelengths reach only about the square root of what they should
# told: named
# now: named
# says: exponent i/d in place of 2i/d
def wavelengths(d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2:
        raise ValueError("d_model must be even")
    pair = torch.arange(d_model // 2, dtype=torch.float32)
    return 2 * math.pi * base ** (pair / d_model)


# === exercise: wavelengths | function: wavelengths | kind: subtle | what is wrong: an odd d_model is not refused with a ValueError: it returns d_model // 2 numbers; every even width is right
# told: named
# now: named
# says: odd width accepted
def wavelengths(d_model, base=10_000.0):
    values = [2 * math.pi * base ** (2 * i / d_model) for i in range(d_model // 2)]
    return torch.tensor(values, dtype=torch.float32)


# === exercise: wavelengths | function: wavelengths | kind: double | what is wrong: the exponents run from 0 to 1 inclusive (linspace contains its end) instead of ending at (d-2)/d, so all but the first are too long; the argument base is ignored, 10000 is written in
# told: named
# now: named
# says: the last wavelength put at 2π times the base
def wavelengths(d_model: int, base: float = 10_000.0) -> torch.Tensor:
    """From 2 pi to 2 pi times the base, geometrically."""
    if d_model % 2 != 0:
        raise ValueError(f"d_model = {d_model} is odd")
    exponents = torch.linspace(0, 1, d_model // 2)
    return 2 * torch.pi * torch.pow(10_000.0, exponents)


# === exercise: shift-matrix | function: shift_matrix | kind: plain | what is wrong: the angle is multiplied by base^(2i/d) instead of divided by it, so all pairs but the first turn much too fast (at d = 2 nothing shows)
# told: named
# now: named
# says: multiplied in place of divided
def shift_matrix(offset: int, d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2:
        raise ValueError("d_model must be even")
    frequency = base ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    b = offset * frequency
    rows_of_sine = torch.stack((b.cos(), -b.sin()), dim=-1)
    rows_of_cosine = torch.stack((b.sin(), b.cos()), dim=-1)
    blocks = torch.stack((rows_of_sine, rows_of_cosine), dim=-2)
    return torch.block_diag(*blocks).float()


# === exercise: shift-matrix | function: shift_matrix | kind: plain | what is wrong: the matrix is made for pairs of column i with column i + d/2 (four diagonal quarters) instead of 2 x 2 blocks along the diagonal for neighbouring columns; the same at d = 2, wrong for every larger width
# told: named
# now: named
# says: laid out for a sine block and a cosine block
def shift_matrix(offset, d_model, base=10_000.0):
    if d_model % 2 == 1:
        raise ValueError("d_model must be even")
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    b = offset / base ** exponent
    c, s = torch.diag(b.cos()), torch.diag(b.sin())
    top = torch.cat((c, -s), dim=1)
    bottom = torch.cat((s, c), dim=1)
    return torch.cat((top, bottom), dim=0).float()


# === exercise: shift-matrix | function: shift_matrix | kind: subtle | what is wrong: the shift by one is multiplied offset times in range(offset), which is empty for a negative offset, so every negative offset gives the identity
# told: named
# now: named
# says: a negative offset shifts nothing
def shift_matrix(offset: int, d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2 != 0:
        raise ValueError("d_model must be even")
    step = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        w = 1 / base ** (2 * i / d_model)
        c = 2 * i
        step[c, c] = step[c + 1, c + 1] = math.cos(w)
        step[c, c + 1] = -math.sin(w)
        step[c + 1, c] = math.sin(w)
    result = torch.eye(d_model, dtype=torch.float64)
    for _ in range(offset):
        result = result @ step
    return result.float()


# === exercise: shift-matrix | function: shift_matrix | kind: double | what is wrong: the blocks are transposed (minus sign in the lower left, the form for a column on the right), so the matrix shifts by -k; an odd d_model raises an AssertionError instead of a ValueError
# told: named
# now: named
# says: transposed: made for column vectors
def shift_matrix(offset: int, d_model: int, base: float = 10_000.0) -> torch.Tensor:
    assert d_model % 2 == 0, "d_model must be even"
    blocks = []
    for i in range(d_model // 2):
        b = offset / base ** (2 * i / d_model)
        blocks.append(
            torch.tensor([[math.cos(b), math.sin(b)], [-math.sin(b), math.cos(b)]])
        )
    return torch.block_diag(*blocks)


# === exercise: diagnose-encoding | function: diagnose_encoding | kind: plain | what is wrong: rows whose squared norm is not d/2 are taken as the sign of the misplaced exponent, but that table has the right norm and it is "cosine first" that has not; the two answers come out exchanged
# told: named
# now: named
# says: cosine first taken for a misplaced exponent
def diagnose_encoding(encoding: torch.Tensor) -> str:
    length, d = encoding.shape
    norms = encoding.square().sum(dim=1)
    if (norms - d / 2).abs().max() > 1e-3:
        return "exponent outside the base"
    if encoding[0, 0].abs() > 1e-3:
        return "cosine first"
    angle = torch.atan2(encoding[1, -2], encoding[1, -1]).item()
    base = angle ** (-d / (d - 2))
    return "right" if base > 3000 else "base 1000"


# === exercise: diagnose-encoding | function: diagnose_encoding | kind: subtle | what is wrong: the two bases are told apart by a fixed threshold of 0.02 on the last sine at position 1, read off at d = 4 (.0100 and .0316); from d = 6 on both sines are below it, so a table of base 1000 is called right
# told: named
# now: named
# says: base 1000 not noticed
def diagnose_encoding(encoding: torch.Tensor) -> str:
    if encoding[1:, 0].std() < 1e-4:
        return "exponent outside the base"
    if abs(encoding[0, 0].item()) > 1e-3:
        return "cosine first"
    slowest = encoding[1, -2].item()
    if slowest > 0.02:
        return "base 1000"
    return "right"


# === exercise: diagnose-encoding | function: diagnose_encoding | kind: subtle | what is wrong: the base is taken as 1/angle of the last pair, as if its exponent were 1 instead of (d-2)/d, so for d up to 14 the right table gives less than 3000 and is called "base 1000"
# told: named
# now: named
# says: the power d/(d - 2) is missing
def diagnose_encoding(encoding):
    first_column = encoding[:, 0]
    stands_still = torch.allclose(first_column[1:], first_column[1].expand_as(first_column[1:]), atol=1e-5)
    if stands_still:
        return "exponent outside the base"
    if not torch.isclose(first_column[0], torch.zeros(()), atol=1e-5):
        return "cosine first"
    sine, cosine = encoding[1, -2], encoding[1, -1]
    base = 1 / torch.atan2(sine, cosine).item()
    return "base 1000" if base < 3000 else "right"


# === exercise: diagnose-encoding | function: diagnose_encoding | kind: double | what is wrong: a first entry other than 0 is asked for first, and the table with the misplaced exponent has one, too (.8415), so it is always called "cosine first"; the base is told by a threshold on the second pair read off at d = 4, so right tables with d of 6 or more are called "base 1000"
# told: named
# now: named
# says: misplaced exponent taken for cosine first
def diagnose_encoding(encoding: torch.Tensor) -> str:
    zero = encoding[0, 0].item()
    if abs(zero) > 1e-4:
        return "cosine first"
    if (encoding[1:, 0] - encoding[1, 0]).abs().max().item() < 1e-4:
        return "exponent outside the base"
    # .0100 or .0316
    second_pair = encoding[1, 2].item()
    return "base 1000" if second_pair > 0.02 else "right"


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: plain | what is wrong: the table is an nn.Parameter with requires_grad=False instead of a non-persistent buffer, so the module has a parameter and the table is saved
# told: named
# now: named
# says: the encoding is a parameter
class SinusoidalPositionalEncoding(nn.Module):
    """Add the sinusoidal encoding to embeddings; then dropout on the sum."""

    def __init__(self, d_model: int, max_length: int = 5_000, dropout: float = 0.0):
        super().__init__()
        table = sinusoidal_positional_encoding(max_length, d_model)
        # not trained
        self.table = nn.Parameter(table, requires_grad=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[-2]
        if length > self.table.shape[0]:
            raise ValueError(f"{length} tokens, but only {self.table.shape[0]} positions")
        return self.dropout(x + self.table[:length])


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: plain | what is wrong: x is multiplied by sqrt(d_model) before the table is added, as many tutorials do; the statement asks for dropout(x + table[:T])
# told: named
# now: named
# says: scaled by the square root of the width
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_length: int = 5_000, dropout: float = 0.0):
        super().__init__()
        self.d_model = d_model
        self.dropout = nn.Dropout(p=dropout)
        pe = sinusoidal_positional_encoding(max_length, d_model)
        self.register_buffer("pe", pe, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seq_len = x.size(-2)
        if seq_len > self.pe.size(0):
            raise ValueError("sequence too long")
        # make embeddings relatively larger
        x = x * math.sqrt(self.d_model)
        x = x + self.pe[:seq_len]
        return self.dropout(x)


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: subtle | what is wrong: T is read from axis 1 instead of the last but one axis, which is the same for (B, T, d) but wrong for one sequence (T, d), where it is d, and for more than one leading axis
# told: named
# now: named
# says: length read from the wrong axis
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_length: int = 5_000, dropout: float = 0.0):
        super().__init__()
        self.register_buffer(
            "table", sinusoidal_positional_encoding(max_length, d_model), persistent=False
        )
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[1]
        if T > len(self.table):
            raise ValueError(f"at most {len(self.table)} tokens, got {T}")
        return self.drop(x + self.table[:T, :])


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: double | what is wrong: the table is a plain attribute instead of a buffer, so it does not move with the module; a sequence that is too long is not refused with a ValueError (PyTorch's own RuntimeError about sizes comes instead)
# told: named
# now: named
# says: the table is no buffer
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        super().__init__()
        self.table = sinusoidal_positional_encoding(max_length, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        steps = x.shape[-2]
        return self.dropout(x + self.table[:steps])


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: double | what is wrong: the buffer is registered without persistent=False, so the table is saved in the state_dict; F.dropout is called without training=self.training, so entries are dropped in evaluation mode, too
# told: named
# now: named
# says: the buffer is persistent
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_length: int = 5_000, dropout: float = 0.0):
        super().__init__()
        self.max_length = max_length
        self.p = dropout
        self.register_buffer("table", sinusoidal_positional_encoding(max_length, d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[-2]
        if length > self.max_length:
            raise ValueError(f"{length} tokens do not fit into {self.max_length} rows")
        return F.dropout(x + self.table[:length], p=self.p)


# === exercise: learned-module | function: LearnedPositionalEncoding | kind: plain | what is wrong: the table is an nn.Embedding, so the parameter is called table.weight and self.table is a module, instead of one parameter named table
# told: named
# now: named
# says: PyTorch's module in place of your own
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length: int, d_model: int, dropout: float = 0.0):
        super().__init__()
        self.max_length = max_length
        self.table = nn.Embedding(max_length, d_model)
        nn.init.normal_(self.table.weight, mean=0.0, std=0.02)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[-2]
        if length > self.max_length:
            raise ValueError(f"only {self.max_length} positions, got {length} tokens")
        positions = torch.arange(length, device=x.device)
        return self.dropout(x + self.table(positions))


# === exercise: learned-module | function: LearnedPositionalEncoding | kind: plain | what is wrong: the table starts with zeros instead of normal numbers of standard deviation 0.02, so at first all positions are the same
# told: named
# now: named
# says: the weights all start alike
class LearnedPositionalEncoding(nn.Module):
    """Add a trained row to each position's embedding; then dropout on the sum."""

    def __init__(self, max_length: int, d_model: int, dropout: float = 0.0):
        super().__init__()
        # starts as "no position" and learns the rest
        self.table = nn.Parameter(torch.zeros(max_length, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.size(-2)
        if T > self.table.size(0):
            raise ValueError(f"T = {T} is larger than max_length")
        return self.dropout(x + self.table[:T])


# === exercise: learned-module | function: LearnedPositionalEncoding | kind: subtle | what is wrong: a sequence of exactly max_length tokens is refused (>= instead of >), although the table has a row for each of them
# told: named
# now: named
# says: refused, although the table has a row for each token
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length: int, d_model: int, dropout: float = 0.0):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) * 0.02)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[-2]
        max_length = self.table.shape[0]
        # rows are counted from 0, so row max_length does not exist
        if length >= max_length:
            raise ValueError(f"sequence of {length} tokens, table of {max_length} rows")
        return self.dropout(x + self.table[:length])


# === exercise: learned-module | function: LearnedPositionalEncoding | kind: double | what is wrong: the table is drawn uniformly from -0.02 to 0.02 (standard deviation 0.0115) instead of normally with standard deviation 0.02; dropout acts on the rows of the table before the addition instead of on the sum
# told: named
# now: named
# says: dropout on the encoding only
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length: int, d_model: int, dropout: float = 0.0):
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_length, d_model))
        nn.init.uniform_(self.table, -0.02, 0.02)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.shape[-2]
        if tokens > self.table.shape[0]:
            raise ValueError("more tokens than positions")
        rows = self.dropout(self.table[:tokens])
        return x + rows


# === exercise: learned-module | function: LearnedPositionalEncoding | kind: double | what is wrong: the table is drawn with standard deviation 1 (the factor 0.02 is missing); a sequence that is too long is not refused: positions beyond the table silently get its last row
# told: named
# now: named
# says: the weights start too large
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        last = self.table.shape[0] - 1
        index = torch.arange(x.shape[-2], device=x.device).clamp(max=last)
        return self.dropout(x + self.table[index])


# === exercise: rotary-encoding | function: apply_rotary | kind: plain | what is wrong: column i is paired with column i + d_k/2 (rotate_half, as in Llama's code) instead of neighbouring columns 2i and 2i+1; the same only at d_k = 2
# told: named
# now: named
# says: pairs (i, i + d/2) in place of (2i, 2i + 1)
def apply_rotary(x: torch.Tensor, base: float = 10_000.0) -> torch.Tensor:
    length, width = x.shape[-2:]
    if width % 2:
        raise ValueError("d_k must be even")

    def rotate_half(t):
        a, b = t.chunk(2, dim=-1)
        return torch.cat((-b, a), dim=-1)

    inv_freq = 1.0 / base ** (torch.arange(0, width, 2, device=x.device).double() / width)
    t = torch.arange(length, device=x.device).double()
    freqs = torch.outer(t, inv_freq)
    emb = torch.cat((freqs, freqs), dim=-1)
    return (x * emb.cos() + rotate_half(x) * emb.sin()).to(x.dtype)


# === exercise: rotary-encoding | function: apply_rotary | kind: subtle | what is wrong: positions and angles are computed in the type of x, so with bfloat16 (or float16) input they are rounded, positions above 256 coincide and the rotation is wrong; with float32 nothing shows
# told: named
# now: named
# says: angles rounded to the type of x
def apply_rotary(x: torch.Tensor, base: float = 10_000.0) -> torch.Tensor:
    *_, length, d_k = x.shape
    if d_k % 2 != 0:
        raise ValueError(f"d_k must be even, got {d_k}")
    kind = {"dtype": x.dtype, "device": x.device}
    position = torch.arange(length, **kind)[:, None]
    exponent = torch.arange(0, d_k, 2, **kind) / d_k
    theta = position / base ** exponent
    cos, sin = theta.cos(), theta.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    pairs = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
    return pairs.flatten(-2)


# === exercise: rotary-encoding | function: apply_rotary | kind: subtle | what is wrong: the result is not turned back into the type of x: bfloat16 or float16 input comes out as float32, because the float32 angles promote the product; float32 input shows nothing
# told: named
# now: named
# says: bfloat16 expected
def apply_rotary(x, base=10_000.0):
    d_k = x.shape[-1]
    if d_k % 2 == 1:
        raise ValueError("d_k must be even")
    pair = torch.arange(d_k // 2, dtype=torch.float32, device=x.device)
    position = torch.arange(x.shape[-2], dtype=torch.float32, device=x.device)
    angle = position[:, None] / base ** (2 * pair / d_k)
    first, second = x.unflatten(-1, (-1, 2)).unbind(-1)
    turned_first = first * angle.cos() - second * angle.sin()
    turned_second = first * angle.sin() + second * angle.cos()
    return torch.stack((turned_first, turned_second), dim=-1).flatten(-2)


# === exercise: rotary-encoding | function: apply_rotary | kind: double | what is wrong: positions are counted from 1, so row 0 is turned, too; the odd columns are computed from even columns that have been overwritten already (even is a view of the result), not from the old values
# told: named
# now: named
# says: positions from 1, and the second of a pair computed from the new first
def apply_rotary(x: torch.Tensor, base: float = 10_000.0) -> torch.Tensor:
    T, d_k = x.shape[-2], x.shape[-1]
    if d_k % 2:
        raise ValueError("d_k must be even")
    positions = torch.arange(1, T + 1, dtype=torch.float32, device=x.device)
    rates = base ** (-torch.arange(0, d_k, 2, dtype=torch.float32, device=x.device) / d_k)
    angles = torch.outer(positions, rates)
    cos, sin = angles.cos(), angles.sin()
    out = x.clone()
    even, odd = out[..., 0::2], out[..., 1::2]
    out[..., 0::2] = even * cos - odd * sin
    out[..., 1::2] = even * sin + odd * cos
    return out


# === exercise: rotary-encoding | function: apply_rotary | kind: double | what is wrong: the signs of the sines are exchanged, so every pair is turned backwards by -theta; the results are written back in halves with torch.cat instead of interleaved
# told: named
# now: named
# says: right pairs, written back in halves, and rotated backwards
def apply_rotary(x: torch.Tensor, base: float = 10_000.0) -> torch.Tensor:
    length, d_k = x.shape[-2], x.shape[-1]
    if d_k % 2:
        raise ValueError(f"an odd d_k ({d_k}) cannot be split into pairs")
    p = torch.arange(length, dtype=torch.float32, device=x.device).unsqueeze(-1)
    omega = 1 / base ** (torch.arange(0, d_k, 2, dtype=torch.float32, device=x.device) / d_k)
    sin, cos = torch.sin(p * omega), torch.cos(p * omega)
    left, right = x[..., ::2], x[..., 1::2]
    new_left = left * cos + right * sin
    new_right = right * cos - left * sin
    return torch.cat((new_left, new_right), dim=-1).to(x.dtype)
