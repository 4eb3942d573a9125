# ruff: noqa
# fmt: off

# === exercise: order-behaviour | function: order_behaviour | kind: plain | what is wrong: equivariant is taken to mean that the same values are still there: both outputs are sorted down each column and compared, so rows in the order of the inverse permutation (20, 30, 10), or not moved at all (10, 20, 30), are called equivariant
# told: named
# now: named
# says: order of the rows ignored
def order_behaviour(
    outputs: torch.Tensor, outputs_of_permuted: torch.Tensor, permutation: torch.Tensor
) -> dict[str, bool]:
    invariant = torch.allclose(outputs_of_permuted, outputs, atol=1e-5)
    equivariant = False
    if outputs.ndim == 2:
        before = outputs.sort(dim=0).values
        after = outputs_of_permuted.sort(dim=0).values
        equivariant = torch.allclose(before, after, atol=1e-5)
    return {"equivariant": equivariant, "invariant": invariant}


# === exercise: order-behaviour | function: order_behaviour | kind: double | what is wrong: whether there are rows is judged by len(outputs) == len(permutation), so a pooled output with d = T is reordered and can be called equivariant (all features equal, or moved by the permutation) AND the two answers exclude each other: when equivariant holds, invariant is False, wrong for a model that gives every token the same vector
# told: shown
# now: named
# says: the two treated as opposites, and pooled output called equivariant
def order_behaviour(
    outputs: torch.Tensor, outputs_of_permuted: torch.Tensor, permutation: torch.Tensor
) -> dict[str, bool]:
    def close(a, b):
        return torch.allclose(a, b, atol=1e-5)

    verdict = {"equivariant": False, "invariant": False}
    has_rows = len(outputs) == len(permutation)
    if has_rows and close(outputs_of_permuted, outputs[permutation]):
        verdict["equivariant"] = True
    elif close(outputs_of_permuted, outputs):
        verdict["invariant"] = True
    return verdict


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: plain | what is wrong: arange(0, d, 2) is already 2i and is doubled once more, so the exponent is 4i/d: at d = 4 the divisors are 1 and 10000 in place of 1 and 100 (right only for d = 2)
# told: named
# now: named
# says: factor 2 counted twice
def sinusoidal_positional_encoding(
    length: int, d_model: int, base: float = 10_000.0
) -> torch.Tensor:
    if d_model % 2:
        raise ValueError("d_model must be even")
    p = torch.arange(length, dtype=torch.float32).unsqueeze(1)
    i = torch.arange(0, d_model, 2, dtype=torch.float32)
    angle = p / torch.pow(base, 2 * i / d_model)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).reshape(length, d_model)


# === exercise: sinusoidal-positional-encoding | function: sinusoidal_positional_encoding | kind: double | what is wrong: the base is written into the formula as 10000, so the argument base has no effect, wrong with any other base AND an odd width raises AssertionError in place of ValueError
# told: named
# now: named
# says: base not used
def sinusoidal_positional_encoding(
    length: int, d_model: int, base: float = 10_000.0
) -> torch.Tensor:
    assert d_model % 2 == 0, "d_model must be even"
    pe = torch.zeros(length, d_model)
    position = torch.arange(0, length).unsqueeze(1).float()
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


# === exercise: wavelengths | function: wavelengths | kind: plain | what is wrong: the wavelengths are rounded up to whole positions: the first is 7 in place of 2π = 6.283, the others of d = 6 are 136 and 2917 in place of 135.4 and 2916.3
# told: named
# now: named
# says: rounded to whole positions
def wavelengths(d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2 != 0:
        raise ValueError(f"d_model = {d_model} is odd")
    turn_per_position = base ** (-torch.arange(0, d_model, 2) / d_model)
    return torch.ceil(2 * math.pi / turn_per_position)


# === exercise: shift-matrix | function: shift_matrix | kind: subtle | what is wrong: the shift by one position is multiplied offset times in a loop over range(offset), which is empty for a negative offset: the result is then the identity (right for 0 and positive offsets)
# told: wrong
# now: named
# says: a negative offset shifts nothing
def shift_matrix(offset: int, d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2:
        raise ValueError("the width must be even")
    one_step = torch.zeros(d_model, d_model, dtype=torch.float64)
    for c in range(0, d_model, 2):
        b = base ** (-c / d_model)
        one_step[c, c] = one_step[c + 1, c + 1] = math.cos(b)
        one_step[c, c + 1] = -math.sin(b)
        one_step[c + 1, c] = math.sin(b)
    result = torch.eye(d_model, dtype=torch.float64)
    for _ in range(offset):
        result = result @ one_step
    return result.float()


# === exercise: shift-matrix | function: shift_matrix | kind: double | what is wrong: the matrix is laid out in halves, column i paired with column i + d/2, in place of 2 × 2 blocks along the diagonal, which shows for d >= 4 AND it is transposed, the minus sign at the lower left, as for column vectors, which shows already at d = 2
# told: named
# now: named
# says: transposed: made for column vectors, and laid out for a sine block and a cosine block
def shift_matrix(offset: int, d_model: int, base: float = 10_000.0) -> torch.Tensor:
    if d_model % 2 == 1:
        raise ValueError("d_model has to be even")
    exponents = torch.arange(0, d_model, 2, dtype=torch.float32) / d_model
    b = offset / base**exponents
    cosines, sines = torch.diag(b.cos()), torch.diag(b.sin())
    top = torch.cat((cosines, sines), dim=1)
    bottom = torch.cat((-sines, cosines), dim=1)
    return torch.cat((top, bottom), dim=0)


# === exercise: diagnose-encoding | function: diagnose_encoding | kind: subtle | what is wrong: looks for any column that stands still up to isclose's 1e-5, not for column 0: in a short and wide right table the last cosine column hardly moves (T = 8 from d = 10 on, d = 512 up to about T = 44), so "right" is called "exponent outside the base"
# told: named
# now: named
# says: right at one size only
def diagnose_encoding(encoding: torch.Tensor) -> str:
    stands_still = torch.isclose(encoding[1:], encoding[1]).all(dim=0)
    if stands_still.any():
        return "exponent outside the base"
    if encoding[0, 0].abs() > 0.1:
        return "cosine first"
    width = encoding.shape[1]
    angle = torch.atan2(encoding[1, -2], encoding[1, -1]).item()
    base = angle ** (-width / (width - 2))
    return "right" if base > 3_000 else "base 1000"


# === exercise: sinusoidal-module | function: SinusoidalPositionalEncoding | kind: double | what is wrong: F.dropout without training=self.training drops in evaluation mode as well (shows with dropout > 0 after eval()) AND a sequence of exactly max_length tokens is refused, >= in place of >
# told: named
# now: named
# says: refused, although the table has a row for each token
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_length: int = 5_000, dropout: float = 0.0):
        super().__init__()
        table = sinusoidal_positional_encoding(max_length, d_model)
        self.register_buffer("table", table, persistent=False)
        self.rate = dropout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = x.size(-2)
        if steps >= self.table.size(0):
            raise ValueError(f"{steps} tokens are too many for the table")
        return F.dropout(x + self.table[:steps], p=self.rate)


# === exercise: learned-module | function: LearnedPositionalEncoding | kind: plain | what is wrong: table is an nn.Embedding and no nn.Parameter: the parameter's name is table.weight and not table, and module.table has no shape (max_length, d_model); the sums are right
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
        T = x.shape[-2]
        if T > self.max_length:
            raise ValueError("sequence longer than the table")
        positions = torch.arange(T, device=x.device)
        return self.dropout(x + self.table(positions))


# === exercise: learned-module | function: LearnedPositionalEncoding | kind: subtle | what is wrong: too many tokens are refused only where the addition itself fails: with max_length = 1 the one row broadcasts to all T tokens, and no ValueError comes (right for max_length >= 2)
# told: named
# now: named
# says: longer than the table, not refused
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length: int, d_model: int, dropout: float = 0.0):
        super().__init__()
        self.table = nn.Parameter(torch.normal(0.0, 0.02, size=(max_length, d_model)))
        self.drop = nn.Dropout(p=dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.table[: x.size(-2)]
        try:
            total = x + rows
        except RuntimeError as error:
            raise ValueError("more tokens than rows in the table") from error
        return self.drop(total)


# === exercise: rotary-encoding | function: apply_rotary | kind: subtle | what is wrong: positions and angles are computed in the type of x: in bfloat16 (float16) whole numbers above 256 (2048) and the angles long before that are rounded, so far positions are turned by wrong angles, by whole tenths of a radian and more; right in float32 and float64
# told: passed
# now: named
# says: angles rounded to the type of x
def apply_rotary(x: torch.Tensor, base: float = 10_000.0) -> torch.Tensor:
    *_, length, width = x.shape
    if width % 2:
        raise ValueError("d_k must be even")
    position = torch.arange(length, dtype=x.dtype, device=x.device)
    speed = base ** (-torch.arange(0, width, 2, dtype=x.dtype, device=x.device) / width)
    theta = position[:, None] * speed
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    turned = (a * theta.cos() - b * theta.sin(), a * theta.sin() + b * theta.cos())
    return torch.stack(turned, dim=-1).flatten(-2)


# === exercise: rotary-encoding | function: apply_rotary | kind: double | what is wrong: positions are counted from 1, so row 0 is turned, too, and every row by one step too many AND the result stays float32 whatever the type of x (float64, bfloat16)
# told: named
# now: named
# says: positions from 1
def apply_rotary(x: torch.Tensor, base: float = 10_000.0) -> torch.Tensor:
    T, d_k = x.shape[-2:]
    if d_k % 2 != 0:
        raise ValueError("rotary encoding needs an even width")
    pairs = x.float().reshape(*x.shape[:-1], d_k // 2, 2).contiguous()
    z = torch.view_as_complex(pairs)
    frequencies = 1.0 / base ** (torch.arange(0, d_k, 2, device=x.device).float() / d_k)
    angles = torch.outer(torch.arange(1, T + 1, device=x.device).float(), frequencies)
    turned = z * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(turned).flatten(-2)
