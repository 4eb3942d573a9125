# ruff: noqa
# fmt: off

# === exercise: order-behaviour | function: order_behaviour | kind: subtle | what is wrong: treats the two properties as exclusive, so a model that gives every token the same vector is called invariant but not equivariant
# told: named
# now: named
# says: the two treated as opposites
def order_behaviour(
    outputs: torch.Tensor, outputs_of_permuted: torch.Tensor, permutation: torch.Tensor
) -> dict[str, bool]:
    result = {"equivariant": False, "invariant": False}
    if torch.allclose(outputs, outputs_of_permuted, atol=1e-5):
        # nothing moved
        result["invariant"] = True
    elif outputs.ndim == 2:
        # something moved: did the rows move in the right way?
        reordered = outputs[permutation]
        result["equivariant"] = torch.allclose(reordered, outputs_of_permuted, atol=1e-5)
    return result


# === exercise: order-behaviour | function: order_behaviour | kind: double | what is wrong: reorders the rows with the inverse permutation AND calls a pooled output equivariant when it is unchanged
# told: shown
# now: named
# says: permuted by the inverse, and pooled output called equivariant
def order_behaviour(
    outputs: torch.Tensor, outputs_of_permuted: torch.Tensor, permutation: torch.Tensor
) -> dict[str, bool]:
    def same(a, b):
        return torch.allclose(a, b, atol=1e-5)

    invariant = same(outputs, outputs_of_permuted)
    if outputs.ndim == 1:
        # one vector: reordering its single row changes nothing
        return {"equivariant": invariant, "invariant": invariant}

    # put row t of the old outputs where the permutation sends it
    moved = torch.empty_like(outputs)
    moved[permutation] = outputs
    return {"equivariant": same(moved, outputs_of_permuted), "invariant": invariant}


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: subtle | what is wrong: keeps tables in a cache that does not know the base, so a second call of the same size with another base gets the old table
# told: passed
# now: told
# line: 10
_tables = {}


def sinusoidal_positional_encoding(
    length: int, d_model: int, base: float = 10_000.0
) -> torch.Tensor:
    if d_model % 2 == 1:
        raise ValueError(f"d_model must be even, got {d_model}")
    key = (length, d_model)
    if key not in _tables:
        # compute each table only once
        position = torch.arange(length, dtype=torch.float32)[:, None]
        exponent = torch.arange(0, d_model, 2, dtype=torch.float32) / d_model
        angle = position / base**exponent
        table = torch.empty(length, d_model)
        table[:, 0::2] = torch.sin(angle)
        table[:, 1::2] = torch.cos(angle)
        _tables[key] = table
    return _tables[key].clone()


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: double | what is wrong: counts positions from 1 AND puts all sines in the left half and all cosines in the right half
# told: named
# now: named
# says: positions from 1, and sine block, then cosine block
def sinusoidal_positional_encoding(
    length: int, d_model: int, base: float = 10_000.0
) -> torch.Tensor:
    if d_model % 2:
        raise ValueError("an odd d_model leaves one sine without its cosine")
    positions = torch.arange(1, length + 1).float()
    rates = torch.exp(-math.log(base) * torch.arange(0, d_model, 2).float() / d_model)
    angles = torch.outer(positions, rates)  # (T, d/2)
    return torch.cat((angles.sin(), angles.cos()), dim=1)


# === exercise: wavelengths | function: wavelengths | kind: plain | what is wrong: the exponent of pair i is i/d in place of 2i/d
# told: named
# now: named
# says: exponent i/d in place of 2i/d
def wavelengths(d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2 != 0:
        raise ValueError("d_model must be even")
    result = []
    for i in range(d_model // 2):
        radians_per_position = 1 / base ** (i / d_model)
        result.append(2 * math.pi / radians_per_position)
    return torch.tensor(result)


# === exercise: wavelengths | function: wavelengths | kind: subtle | what is wrong: returns float64 in place of float32
# told: named
# now: named
# says: float32 expected
import numpy as np


def wavelengths(d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2:
        raise ValueError(f"d_model = {d_model} is odd")
    exponents = np.arange(0, d_model, 2) / d_model
    full_turn = 2 * np.pi * np.power(base, exponents)
    return torch.from_numpy(full_turn)


# === exercise: shift-matrix | function: shift_matrix | kind: subtle | what is wrong: multiplies one-step matrices in a loop that never runs for a negative offset, so every shift back is the identity
# told: named
# now: named
# says: a negative offset shifts nothing
def shift_matrix(offset: int, d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2:
        raise ValueError("d_model has to be even")

    # the matrix of a single step
    step = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        b = 1 / base ** (2 * i / d_model)
        c, s = math.cos(b), math.sin(b)
        step[2 * i, 2 * i] = c
        step[2 * i, 2 * i + 1] = -s
        step[2 * i + 1, 2 * i] = s
        step[2 * i + 1, 2 * i + 1] = c

    # k steps, one after the other (0 steps: the identity)
    total = torch.eye(d_model, dtype=torch.float64)
    for _ in range(offset):
        total = total @ step
    return total.float()


# === exercise: shift-matrix | function: shift_matrix | kind: double | what is wrong: the blocks are transposed (right only for a column on the right) AND the base is always 10000
# told: named
# now: named
# says: transposed: made for column vectors, and base not used
def shift_matrix(offset: int, d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2 == 1:
        raise ValueError("odd d_model")
    b = offset / torch.pow(10_000.0, torch.arange(0, d_model, 2) / d_model)
    cos, sin = torch.cos(b), torch.sin(b)
    # new sine   =  cos b * sine + sin b * cosine
    # new cosine = -sin b * sine + cos b * cosine
    new_sine = torch.stack((cos, sin), dim=-1)
    new_cosine = torch.stack((-sin, cos), dim=-1)
    blocks = torch.stack((new_sine, new_cosine), dim=-2)  # (d/2, 2, 2)
    return torch.block_diag(*blocks)


# === exercise: diagnose-encoding | function: diagnose_encoding | kind: plain | what is wrong: reads the angle of the second pair (columns 2 and 3) in place of the last one, but solves for the base with the exponent of the last, so from d = 6 on a right table is called base 1000
# told: named
# now: named
# says: the right base taken for 1000
def diagnose_encoding(encoding: torch.Tensor) -> str:
    T, d = encoding.shape
    # 1. a column that stands still
    if encoding[1:, 0].std() < 1e-3:
        return "exponent outside the base"
    # 2. a first entry that is no sin(0)
    if abs(encoding[0, 0].item()) > 1e-3:
        return "cosine first"
    # 3. the base: angle = 1 / base^((d-2)/d)
    angle = torch.atan2(encoding[1, 2], encoding[1, 3]).item()
    base = angle ** (-d / (d - 2))
    # 4. the name
    return "right" if base > 3_000 else "base 1000"


# === exercise: diagnose-encoding | function: diagnose_encoding | kind: subtle | what is wrong: takes the angle of the last pair at the last row and divides by T-1, which is wrong for long tables, where that angle has passed half a turn
# told: named
# now: named
# says: right at one size only
def diagnose_encoding(encoding: torch.Tensor) -> str:
    length, width = encoding.shape
    first_column = encoding[:, 0]

    still = torch.allclose(first_column[1:], first_column[1].expand(length - 1), atol=1e-4)
    if still:
        return "exponent outside the base"
    if first_column[0].abs() > 1e-4:
        return "cosine first"

    # The slowest pair. Its angle at position 1 is tiny, so measure it at the last
    # position, where it is largest, and divide by the number of steps.
    sine, cosine = encoding[-1, -2:].double()
    per_position = torch.atan2(sine, cosine) / (length - 1)
    base = per_position ** (-width / (width - 2))
    if base > 10_000 ** 0.5 * 1_000 ** 0.5:
        return "right"
    return "base 1000"


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: plain | what is wrong: multiplies the embeddings by the square root of d_model before adding the table
# told: named
# now: named
# says: scaled by the square root of the width
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_length: int = 5_000, dropout: float = 0.0):
        super().__init__()
        self.d_model = d_model
        self.max_length = max_length
        self.register_buffer(
            "table", sinusoidal_positional_encoding(max_length, d_model), persistent=False
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.size(-2)
        if T > self.max_length:
            raise ValueError(f"{T} tokens, but the table has {self.max_length} rows")
        # section 3.4 of the paper: scale the embeddings first
        x = x * math.sqrt(self.d_model)
        return self.dropout(x + self.table[:T])


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: double | what is wrong: dropout acts on the rows of the table only, not on the sum AND the buffer is persistent, so it is saved
# told: named
# now: named
# says: the buffer is persistent
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_length: int = 5_000, dropout: float = 0.0):
        super().__init__()
        table = sinusoidal_positional_encoding(max_length, d_model)
        self.register_buffer("pe", table)  # a buffer: moves with .to(device)
        self.drop = nn.Dropout(p=dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n_tokens = x.shape[-2]
        if n_tokens > len(self.pe):
            raise ValueError(f"at most {len(self.pe)} tokens, got {n_tokens}")
        return x + self.drop(self.pe[:n_tokens])


# === exercise: learned-module | function: LearnedPositionalEncoding | kind: plain | what is wrong: 0.02 is given to normal_ as the mean, so the standard deviation is 1
# told: named
# now: named
# says: the weights start too large
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length: int, d_model: int, dropout: float = 0.0):
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_length, d_model))
        nn.init.normal_(self.table, 0.02)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[-2]
        if T > self.table.shape[0]:
            raise ValueError(f"{T} tokens are more than {self.table.shape[0]} positions")
        return self.dropout(x + self.table[:T])


# === exercise: learned-module | function: LearnedPositionalEncoding | kind: subtle | what is wrong: F.dropout without training=self.training drops entries in evaluation mode, too
# told: named
# now: named
# says: dropout in evaluation mode
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length: int, d_model: int, dropout: float = 0.0):
        super().__init__()
        numbers = torch.normal(0.0, 0.02, size=(max_length, d_model))
        self.table = nn.Parameter(numbers)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        *_, T, d = x.shape
        rows, _ = self.table.shape
        if T > rows:
            raise ValueError(f"sequence of {T}, table of {rows}")
        positions = torch.arange(T, device=x.device)
        summed = x + F.embedding(positions, self.table)
        return F.dropout(summed, self.dropout.p)


# === exercise: rotary-encoding | function: apply_rotary | kind: plain | what is wrong: multiplies the position by base^(2i/d_k) in place of dividing (right for pair 0 only)
# told: shown
# now: named
# says: multiplied in place of divided
def apply_rotary(x: torch.Tensor, base: float = 10_000.0) -> torch.Tensor:
    T, d_k = x.shape[-2:]
    if d_k % 2:
        raise ValueError(f"d_k must be even, not {d_k}")
    # angles in double precision
    position = torch.arange(T, dtype=torch.float64, device=x.device)
    i = torch.arange(d_k // 2, dtype=torch.float64, device=x.device)
    theta = torch.einsum("t,i->ti", position, base ** (2 * i / d_k))
    # a pair is a complex number; to turn it is to multiply by e^(i theta)
    pairs = torch.view_as_complex(x.double().unflatten(-1, (d_k // 2, 2)).contiguous())
    turned = pairs * torch.polar(torch.ones_like(theta), theta)
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


# === exercise: rotary-encoding | function: apply_rotary | kind: double | what is wrong: the odd entries are computed from the even entries that are already rotated AND the result is float32 whatever the type of x
# told: named
# now: named
# says: the second of a pair computed from the new first
def apply_rotary(x: torch.Tensor, base: float = 10_000.0) -> torch.Tensor:
    d_k = x.shape[-1]
    if d_k % 2 == 1:
        raise ValueError("d_k is odd")
    y = x.float().clone()  # float32, as bfloat16 is too coarse for the angles
    p = torch.arange(x.shape[-2], device=x.device, dtype=torch.float32)
    for i in range(d_k // 2):
        theta = p / base ** (2 * i / d_k)  # (T,)
        even, odd = 2 * i, 2 * i + 1
        y[..., even] = y[..., even] * theta.cos() - y[..., odd] * theta.sin()
        y[..., odd] = y[..., even] * theta.sin() + y[..., odd] * theta.cos()
    return y
