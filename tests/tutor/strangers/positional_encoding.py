"""Wrong answers to chapter 3, written from its notebook alone."""

# ruff: noqa: E501, F811

import math

import torch
from torch import nn

from tests.tutor.bank import stranger


@stranger(
    "order-behaviour",
    "the inverse permutation",
    kind="subtle",
    first="named",
    verdict="named",
    says="permuted by the inverse",
)
def order_behaviour(outputs, outputs_of_permuted, permutation):
    invariant = torch.allclose(outputs, outputs_of_permuted, atol=1e-5)
    equivariant = outputs.ndim == 2 and torch.allclose(
        outputs_of_permuted[permutation], outputs, atol=1e-5
    )
    return {"equivariant": equivariant, "invariant": invariant}


@stranger(
    "order-behaviour",
    "compared with ==, without tolerance",
    kind="subtle",
    first="named",
    verdict="named",
    says="no tolerance for rounding",
)
def order_behaviour(outputs, outputs_of_permuted, permutation):
    invariant = bool((outputs == outputs_of_permuted).all())
    equivariant = outputs.ndim == 2 and bool(
        (outputs[permutation] == outputs_of_permuted).all()
    )
    return {"equivariant": equivariant, "invariant": invariant}


@stranger(
    "order-behaviour",
    "invariance excludes equivariance: only one of the two can hold",
    kind="subtle",
    first="named",
    verdict="named",
    says="the two treated as opposites",
)
def order_behaviour(outputs, outputs_of_permuted, permutation):
    if torch.allclose(outputs, outputs_of_permuted, atol=1e-5):
        return {"equivariant": False, "invariant": True}
    if outputs.ndim == 1:
        return {"equivariant": False, "invariant": False}
    same = torch.allclose(outputs[permutation], outputs_of_permuted, atol=1e-5)
    return {"equivariant": same, "invariant": False}


@stranger(
    "order-behaviour",
    "equivariant when the rows are the same set: both sorted",
    kind="subtle",
    first="shown",
    verdict="named",
    says="order of the rows ignored",
)
def order_behaviour(outputs, outputs_of_permuted, permutation):
    invariant = torch.allclose(outputs, outputs_of_permuted, atol=1e-5)
    if outputs.ndim < 2:
        return {"equivariant": False, "invariant": invariant}
    old = outputs.sort(dim=0).values
    new = outputs_of_permuted.sort(dim=0).values
    return {
        "equivariant": torch.allclose(old, new, atol=1e-5),
        "invariant": invariant,
    }


@stranger(
    "order-behaviour",
    "the two names are exchanged AND a pooled output is equivariant",
    kind="double",
    first="named",
    verdict="named",
    says="invariance and equivariance exchanged, and pooled output called equivariant",
)
def order_behaviour(outputs, outputs_of_permuted, permutation):
    same = torch.allclose(outputs, outputs_of_permuted, atol=1e-5)
    if outputs.ndim == 1:
        return {"equivariant": same, "invariant": True}
    moved = torch.allclose(outputs[permutation], outputs_of_permuted, atol=1e-5)
    return {"equivariant": same, "invariant": moved}


@stranger(
    "sinusoidal-positional-encoding",
    "the exponent is i/d, not 2i/d",
    first="named",
    verdict="named",
    says="exponent i/d in place of 2i/d",
)
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("d_model must be even")
    position = torch.arange(length, dtype=torch.float32)[:, None]
    exponent = torch.arange(d_model // 2) / d_model
    angle = position / base**exponent
    table = torch.zeros(length, d_model)
    table[:, 0::2] = torch.sin(angle)
    table[:, 1::2] = torch.cos(angle)
    return table


@stranger(
    "sinusoidal-positional-encoding",
    "sines in the first half, cosines in the second",
    first="named",
    verdict="named",
    says="sine block, then cosine block",
)
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    if d_model % 2 != 0:
        raise ValueError("d_model must be even")
    position = torch.arange(length).float().unsqueeze(1)
    divisor = base ** (torch.arange(0, d_model, 2) / d_model)
    angle = position / divisor
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


@stranger(
    "sinusoidal-positional-encoding",
    "the base is fixed at 10000",
    kind="subtle",
    first="named",
    verdict="named",
    says="base not used",
)
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("d_model must be even")
    position = torch.arange(length).float()[:, None]
    rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    angle = position * rate
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)


@stranger(
    "sinusoidal-positional-encoding",
    "an odd width is rounded down, not refused",
    kind="subtle",
    first="named",
    verdict="named",
    says="odd width accepted",
)
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    pairs = d_model // 2
    position = torch.arange(length).float()[:, None]
    angle = position / base ** (2 * torch.arange(pairs) / d_model)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)


@stranger(
    "sinusoidal-positional-encoding",
    "each column has an exponent of its own: cosine of pair i uses (2i+1)/d",
    kind="subtle",
    first="named",
    verdict="named",
    says="an exponent for every column",
)
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("d_model must be even")
    position = torch.arange(length).float()[:, None]
    column = torch.arange(d_model).float()
    angle = position / base ** (column / d_model)
    table = torch.empty(length, d_model)
    table[:, 0::2] = torch.sin(angle[:, 0::2])
    table[:, 1::2] = torch.cos(angle[:, 1::2])
    return table


@stranger(
    "sinusoidal-positional-encoding",
    "positions from 1 AND the exponents end at 1 by linspace",
    kind="double",
    first="wrong",
    verdict="named",
    says="positions from 1, and exponents up to 1",
)
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("d_model must be even")
    position = torch.arange(1, length + 1).float()[:, None]
    angle = position / base ** torch.linspace(0, 1, d_model // 2)
    table = torch.zeros(length, d_model)
    table[:, 0::2] = torch.sin(angle)
    table[:, 1::2] = torch.cos(angle)
    return table


@stranger(
    "wavelengths",
    "no 2π: only the divisors",
    first="named",
    verdict="named",
    says="2π forgotten",
)
def wavelengths(d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("d_model must be even")
    return base ** (torch.arange(0, d_model, 2) / d_model)


@stranger(
    "wavelengths",
    "2π times the rate, not over it",
    first="named",
    verdict="named",
    says="divided by the power of the base",
)
def wavelengths(d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("d_model must be even")
    rate = base ** (-torch.arange(0, d_model, 2) / d_model)
    return 2 * math.pi * rate


@stranger(
    "wavelengths",
    "double precision is returned",
    kind="subtle",
    first="named",
    verdict="named",
    says="float32 expected",
)
def wavelengths(d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("d_model must be even")
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    return 2 * math.pi * base**exponent


@stranger(
    "wavelengths",
    "the longest first AND odd widths are not refused",
    kind="double",
    first="named",
    verdict="named",
    says="longest first",
)
def wavelengths(d_model, base=10_000.0):
    exponent = torch.arange(0, d_model, 2) / d_model
    return (2 * math.pi * base**exponent).flip(0)


@stranger(
    "shift-matrix",
    "transposed: for column vectors",
    first="named",
    verdict="named",
    says="transposed: made for column vectors",
)
def shift_matrix(offset, d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("d_model must be even")
    angle = offset / base ** (torch.arange(0, d_model, 2) / d_model)
    result = torch.zeros(d_model, d_model)
    for i, b in enumerate(angle.tolist()):
        c, s = math.cos(b), math.sin(b)
        result[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor([[c, s], [-s, c]])
    return result


@stranger(
    "shift-matrix",
    "the offset's absolute value: negative ones shift ahead",
    kind="subtle",
    first="named",
    verdict="named",
    says="sign of the offset lost",
)
def shift_matrix(offset, d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("d_model must be even")
    b = abs(offset) / base ** (torch.arange(0, d_model, 2) / d_model)
    rows = torch.stack([b.cos(), -b.sin(), b.sin(), b.cos()], dim=-1)
    return torch.block_diag(*rows.reshape(-1, 2, 2))


@stranger(
    "shift-matrix",
    "the angle of the first pair in all blocks",
    kind="subtle",
    first="named",
    verdict="named",
    says="one angle for all pairs",
)
def shift_matrix(offset, d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("d_model must be even")
    block = torch.tensor(
        [
            [math.cos(offset), -math.sin(offset)],
            [math.sin(offset), math.cos(offset)],
        ]
    )
    return torch.block_diag(*[block for _ in range(d_model // 2)])


@stranger(
    "shift-matrix",
    "cosines at the places of the sines AND the exponents i/d",
    kind="double",
    first="shown",
    verdict="named",
    says="sine and cosine on each other's places, and exponent i/d in place of 2i/d",
)
def shift_matrix(offset, d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("d_model must be even")
    b = offset / base ** (torch.arange(d_model // 2) / d_model)
    first = torch.stack([b.sin(), b.cos()], dim=-1)
    second = torch.stack([b.cos(), -b.sin()], dim=-1)
    return torch.block_diag(*torch.stack([first, second], dim=-2))


@stranger(
    "diagnose-encoding",
    "the base is read from pair 1 with a fixed threshold",
    kind="subtle",
    first="named",
    verdict="named",
    says="the right base taken for 1000",
)
def diagnose_encoding(encoding):
    if encoding[1:, 0].std() < 1e-4:
        return "exponent outside the base"
    if abs(encoding[0, 0].item()) > 0.1:
        return "cosine first"
    if encoding[1, 2] > 0.02:
        return "base 1000"
    return "right"


@stranger(
    "diagnose-encoding",
    "the misplaced exponent is looked for in the first row, which small widths "
    "have in cosine first, too: asked in the wrong order",
    kind="subtle",
    first="named",
    verdict="named",
    says="cosine first taken for a misplaced exponent",
)
def diagnose_encoding(encoding):
    if encoding[0, 0].abs() > 1e-3:
        return "exponent outside the base"
    if encoding[0, 1].abs() < 0.5:
        return "cosine first"
    d = encoding.shape[1]
    angle = torch.atan2(encoding[1, d - 2], encoding[1, d - 1]).item()
    base = angle ** (-d / (d - 2))
    return "base 1000" if abs(base - 1000) < abs(base - 10000) else "right"


@stranger(
    "diagnose-encoding",
    "the angle's sine and cosine are exchanged in atan2",
    kind="subtle",
    first="useless",
    verdict="named",
    says="sine and cosine of the angle exchanged",
)
def diagnose_encoding(encoding):
    d = encoding.shape[1]
    if encoding[1:, 0].std() < 1e-4:
        return "exponent outside the base"
    if encoding[0, 0] > 0.5:
        return "cosine first"
    angle = torch.atan2(encoding[1, d - 1], encoding[1, d - 2]).item()
    base = angle ** (-d / (d - 2))
    return "base 1000" if abs(base - 1000) < abs(base - 10000) else "right"


@stranger(
    "diagnose-encoding",
    "the exponent is -1 and not -d/(d - 2): near 1000 for both bases at small widths",
    kind="subtle",
    first="told",
    verdict="named",
    says="the power d/(d - 2) is missing",
)
def diagnose_encoding(encoding):
    d = encoding.shape[1]
    if (encoding[1:, 0] - encoding[1, 0]).abs().max() < 1e-5:
        return "exponent outside the base"
    if encoding[0, 0].abs() > 1e-4:
        return "cosine first"
    angle = torch.atan2(encoding[1, d - 2], encoding[1, d - 1])
    base = 1 / angle
    return "right" if abs(base - 10000) < abs(base - 1000) else "base 1000"


@stranger(
    "sinusoidal-module",
    "the table is saved: a persistent buffer",
    kind="subtle",
    first="named",
    verdict="named",
    says="the buffer is persistent",
)
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        super().__init__()
        table = sinusoidal_positional_encoding(max_length, d_model)
        self.register_buffer("table", table)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        length = x.shape[-2]
        if length > self.table.shape[0]:
            raise ValueError("too many tokens")
        return self.dropout(x + self.table[:length])


@stranger(
    "sinusoidal-module",
    "T is taken from axis 1",
    kind="subtle",
    first="named",
    verdict="named",
    says="length read from the wrong axis",
)
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        super().__init__()
        table = sinusoidal_positional_encoding(max_length, d_model)
        self.register_buffer("table", table, persistent=False)
        self.dropout = nn.Dropout(dropout)
        self.max_length = max_length

    def forward(self, x):
        length = x.size(1)
        if length > self.max_length:
            raise ValueError("too many tokens")
        return self.dropout(x + self.table[:length])


@stranger(
    "sinusoidal-module",
    "exactly max_length tokens are refused, >= in place of >",
    kind="subtle",
    first="named",
    verdict="named",
    says="refused, although the table has a row for each token",
)
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        super().__init__()
        self.max_length = max_length
        table = sinusoidal_positional_encoding(max_length, d_model)
        self.register_buffer("table", table, persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        if x.shape[-2] >= self.max_length:
            raise ValueError("too many tokens")
        return self.dropout(x + self.table[: x.shape[-2]])


@stranger(
    "sinusoidal-module",
    "dropout acts on x before the addition AND the embeddings are multiplied by √d",
    kind="double",
    first="named",
    verdict="named",
    says="scaled by the square root of the width",
)
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        super().__init__()
        self.scale = math.sqrt(d_model)
        table = sinusoidal_positional_encoding(max_length, d_model)
        self.register_buffer("table", table, persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        length = x.shape[-2]
        if length > len(self.table):
            raise ValueError("too many tokens")
        return self.dropout(x * self.scale) + self.table[:length]


@stranger(
    "sinusoidal-module",
    "x is changed in place by +=",
    kind="subtle",
    first="named",
    verdict="named",
    says="changes its argument in place",
)
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        super().__init__()
        table = sinusoidal_positional_encoding(max_length, d_model)
        self.register_buffer("table", table, persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        length = x.shape[-2]
        if length > self.table.shape[0]:
            raise ValueError(f"{length} tokens are too many")
        x += self.table[:length]
        return self.dropout(x)


@stranger(
    "sinusoidal-module",
    "the table is a plain attribute",
    kind="subtle",
    first="named",
    verdict="named",
    says="the table is no buffer",
)
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        super().__init__()
        self.table = sinusoidal_positional_encoding(max_length, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        length = x.shape[-2]
        if length > self.table.shape[0]:
            raise ValueError(f"{length} tokens are too many")
        return self.dropout(x + self.table[:length])


@stranger(
    "learned-module",
    "the table starts at standard deviation 1",
    first="named",
    verdict="named",
    says="the weights start too large",
)
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        length = x.shape[-2]
        if length > len(self.table):
            raise ValueError("too many tokens")
        return self.dropout(x + self.table[:length])


@stranger(
    "learned-module",
    "the last rows of the table, not the first",
    kind="subtle",
    first="named",
    verdict="named",
    says="the last rows in place of the first",
)
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(max_length, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        length = x.shape[-2]
        if length > len(self.table):
            raise ValueError("too many tokens")
        return self.dropout(x + self.table[-length:])


@stranger(
    "learned-module",
    "sequences that are too long get the last row again, they are not refused AND "
    "dropout with a fixed 0.1",
    kind="double",
    first="named",
    verdict="named",
    says="longer than the table, not refused",
)
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(max_length, d_model))
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        positions = torch.arange(x.shape[-2]).clamp(max=len(self.table) - 1)
        return self.dropout(x + self.table[positions])


@stranger(
    "learned-module",
    "the table starts at 0",
    kind="plain",
    first="named",
    verdict="named",
    says="the weights all start alike",
)
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(max_length, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        if x.shape[-2] > self.table.shape[0]:
            raise ValueError("too many tokens")
        return self.dropout(x + self.table[: x.shape[-2]])


@stranger(
    "rotary-encoding",
    "pairs of i and i + d/2",
    first="named",
    verdict="named",
    says="pairs (i, i + d/2) in place of (2i, 2i + 1)",
)
def apply_rotary(x, base=10_000.0):
    length, d = x.shape[-2:]
    if d % 2:
        raise ValueError("d_k must be even")
    position = torch.arange(length, dtype=x.dtype)[:, None]
    angle = position / base ** (torch.arange(0, d, 2, dtype=x.dtype) / d)
    first, second = x[..., : d // 2], x[..., d // 2 :]
    cos, sin = angle.cos(), angle.sin()
    return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)


@stranger(
    "rotary-encoding",
    "the second result uses the new first value",
    kind="subtle",
    first="named",
    verdict="named",
    says="the second of a pair computed from the new first",
)
def apply_rotary(x, base=10_000.0):
    length, d = x.shape[-2:]
    if d % 2:
        raise ValueError("d_k must be even")
    position = torch.arange(length).float()[:, None]
    angle = position / base ** (torch.arange(0, d, 2) / d)
    result = x.clone()
    result[..., 0::2] = (
        result[..., 0::2] * angle.cos() - result[..., 1::2] * angle.sin()
    )
    result[..., 1::2] = (
        result[..., 0::2] * angle.sin() + result[..., 1::2] * angle.cos()
    )
    return result


@stranger(
    "rotary-encoding",
    "the result is always float32",
    kind="subtle",
    first="told",
    verdict="named",
    says="float64 expected",
)
def apply_rotary(x, base=10_000.0):
    length, d = x.shape[-2:]
    if d % 2:
        raise ValueError("d_k must be even")
    x = x.float()
    angle = torch.arange(length).float()[:, None] / base ** (torch.arange(0, d, 2) / d)
    even, odd = x[..., 0::2], x[..., 1::2]
    first = even * angle.cos() - odd * angle.sin()
    second = even * angle.sin() + odd * angle.cos()
    return torch.stack((first, second), dim=-1).flatten(-2)


@stranger(
    "rotary-encoding",
    "positions along the first axis, so of the batch",
    kind="subtle",
    first="named",
    verdict="named",
    says="position read from the wrong axis",
)
def apply_rotary(x, base=10_000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("d_k must be even")
    length = x.shape[0]
    angle = torch.arange(length).to(x.dtype)[:, None] / base ** (
        torch.arange(0, d, 2).to(x.dtype) / d
    )
    angle = angle.reshape(length, *[1] * (x.ndim - 2), d // 2)
    even, odd = x[..., 0::2], x[..., 1::2]
    first = even * angle.cos() - odd * angle.sin()
    second = even * angle.sin() + odd * angle.cos()
    return torch.stack((first, second), dim=-1).flatten(-2)


@stranger(
    "rotary-encoding",
    "turned backwards AND positions from 1",
    kind="double",
    first="shown",
    verdict="named",
    says="rotated backwards, and positions from 1",
)
def apply_rotary(x, base=10_000.0):
    length, d = x.shape[-2:]
    if d % 2:
        raise ValueError("d_k must be even")
    position = torch.arange(1, length + 1, dtype=x.dtype)[:, None]
    angle = position / base ** (torch.arange(0, d, 2, dtype=x.dtype) / d)
    even, odd = x[..., 0::2], x[..., 1::2]
    first = even * angle.cos() + odd * angle.sin()
    second = odd * angle.cos() - even * angle.sin()
    return torch.stack((first, second), dim=-1).flatten(-2)


# --- a second round, after the checks were mended from the first ---


@stranger(
    "order-behaviour",
    "equivariant compares the sorted rows: any order of the rows will do",
    kind="subtle",
    first="named",
    verdict="named",
    says="order of the rows ignored",
    round=2,
)
def order_behaviour(outputs, outputs_of_permuted, permutation):
    invariant = torch.allclose(outputs, outputs_of_permuted, atol=1e-5)
    if outputs.ndim == 1:
        return {"equivariant": False, "invariant": invariant}
    before = outputs.sort(dim=0).values
    after = outputs_of_permuted.sort(dim=0).values
    equivariant = torch.allclose(before, after, atol=1e-5)
    return {"equivariant": equivariant, "invariant": invariant}


@stranger(
    "order-behaviour",
    "the answers exclude each other: what is invariant is never equivariant",
    kind="subtle",
    first="named",
    verdict="named",
    says="the two treated as opposites",
    round=2,
)
def order_behaviour(outputs, outputs_of_permuted, permutation):
    result = {"equivariant": False, "invariant": False}
    if torch.allclose(outputs, outputs_of_permuted, atol=1e-5):
        result["invariant"] = True
    elif outputs.ndim == 2:
        reordered = outputs[permutation]
        result["equivariant"] = torch.allclose(
            reordered, outputs_of_permuted, atol=1e-5
        )
    return result


@stranger(
    "sinusoidal-positional-encoding",
    "the exponent is i/d, without the 2, AND all sines stand before all cosines",
    kind="double",
    first="named",
    verdict="named",
    says="sine block, then cosine block, and exponent i/d in place of 2i/d",
    round=2,
)
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("d_model must be even")
    position = torch.arange(length, dtype=torch.float32)[:, None]
    exponent = torch.arange(d_model // 2, dtype=torch.float32) / d_model
    angle = position / base**exponent
    return torch.cat((torch.sin(angle), torch.cos(angle)), dim=-1)


@stranger(
    "sinusoidal-positional-encoding",
    "the base is always 10000",
    kind="subtle",
    first="named",
    verdict="named",
    says="base not used",
    round=2,
)
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    if d_model % 2 == 1:
        raise ValueError("odd d_model")
    position = torch.arange(length).float().unsqueeze(1)
    rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    table = torch.zeros(length, d_model)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)
    return table


@stranger(
    "wavelengths",
    "rounded up to whole positions",
    first="shown",
    verdict="named",
    says="rounded to whole positions",
    round=2,
)
def wavelengths(d_model, base=10_000.0):
    if d_model % 2 != 0:
        raise ValueError("d_model must be even")
    exponent = torch.arange(0, d_model, 2) / d_model
    return torch.ceil(2 * math.pi * base**exponent)


@stranger(
    "shift-matrix",
    "a negative offset is taken as a positive one",
    kind="subtle",
    first="named",
    verdict="named",
    says="sign of the offset lost",
    round=2,
)
def shift_matrix(offset, d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("d_model must be even")
    b = abs(offset) / base ** (torch.arange(0, d_model, 2) / d_model)
    blocks = [
        torch.tensor([[math.cos(x), -math.sin(x)], [math.sin(x), math.cos(x)]])
        for x in b.tolist()
    ]
    return torch.block_diag(*blocks)


@stranger(
    "shift-matrix",
    "the blocks are transposed AND the base is always 10000",
    kind="double",
    first="named",
    verdict="named",
    round=2,
    says="transposed: made for column vectors, and base not used",
)
def shift_matrix(offset, d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("d_model must be even")
    result = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        angle = offset / 10_000 ** (2 * i / d_model)
        result[2 * i, 2 * i] = math.cos(angle)
        result[2 * i, 2 * i + 1] = math.sin(angle)
        result[2 * i + 1, 2 * i] = -math.sin(angle)
        result[2 * i + 1, 2 * i + 1] = math.cos(angle)
    return result


@stranger(
    "diagnose-encoding",
    "the last angle is taken for 1/base: wrong for narrow tables",
    kind="subtle",
    first="named",
    verdict="named",
    says="the power d/(d - 2) is missing",
    round=2,
)
def diagnose_encoding(encoding):
    if encoding[1:, 0].std() < 1e-4:
        return "exponent outside the base"
    if encoding[0, 0].abs() > 0.1:
        return "cosine first"
    angle = torch.atan2(encoding[1, -2], encoding[1, -1])
    base = 1 / angle
    return "base 1000" if abs(base - 1000) < abs(base - 10000) else "right"


@stranger(
    "sinusoidal-module",
    "a sequence of exactly max_length is refused AND dropout acts on the table only",
    kind="double",
    first="named",
    verdict="named",
    says="refused, although the table has a row for each token",
    round=2,
)
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        super().__init__()
        table = sinusoidal_positional_encoding(max_length, d_model)
        self.register_buffer("table", table, persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        length = x.shape[-2]
        if length >= len(self.table):
            raise ValueError("too long")
        return x + self.dropout(self.table[:length])


@stranger(
    "learned-module",
    "the table is drawn evenly from 0 to 0.02",
    first="named",
    verdict="named",
    says="the weights do not start around 0",
    round=2,
)
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.rand(max_length, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        length = x.shape[-2]
        if length > self.table.shape[0]:
            raise ValueError(f"{length} tokens, {self.table.shape[0]} rows")
        return self.dropout(x + self.table[:length])


@stranger(
    "rotary-encoding",
    "the second entry is made of the new first one",
    first="named",
    verdict="named",
    says="the second of a pair computed from the new first",
    round=2,
)
def apply_rotary(x, base=10_000.0):
    length, width = x.shape[-2:]
    if width % 2:
        raise ValueError("d_k must be even")
    position = torch.arange(length, dtype=torch.float32)[:, None]
    angle = position / base ** (torch.arange(0, width, 2) / width)
    cos, sin = torch.cos(angle).to(x.dtype), torch.sin(angle).to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    even = even * cos - odd * sin
    odd = even * sin + odd * cos
    return torch.stack((even, odd), dim=-1).flatten(-2)


@stranger(
    "rotary-encoding",
    "turned backwards AND positions counted from 1",
    kind="double",
    first="named",
    verdict="named",
    says="rotated backwards, and positions from 1",
    round=2,
)
def apply_rotary(x, base=10_000.0):
    length, width = x.shape[-2:]
    if width % 2:
        raise ValueError("d_k must be even")
    position = torch.arange(1, length + 1, dtype=torch.float32)[:, None]
    angle = position / base ** (torch.arange(0, width, 2) / width)
    cos, sin = torch.cos(angle).to(x.dtype), torch.sin(angle).to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    first = even * cos + odd * sin
    second = odd * cos - even * sin
    return torch.stack((first, second), dim=-1).flatten(-2)


# --- a third round, of what came later ---


@stranger(
    "rotary-encoding",
    "the even columns are overwritten before the odd ones are computed: the new value is "
    "used in place of the old",
    kind="plain",
    first="named",
    verdict="named",
    says="the second of a pair computed from the new first",
    round=3,
)
def apply_rotary(x, base=10_000.0):
    d_k = x.shape[-1]
    if d_k % 2 == 1:
        raise ValueError("d_k must be even")
    positions = torch.arange(x.shape[-2]).unsqueeze(-1)
    theta = positions / base ** (torch.arange(0, d_k, 2) / d_k)
    cos, sin = theta.cos().to(x.dtype), theta.sin().to(x.dtype)
    result = x.clone()
    result[..., 0::2] = result[..., 0::2] * cos - result[..., 1::2] * sin
    result[..., 1::2] = result[..., 0::2] * sin + result[..., 1::2] * cos
    return result


@stranger(
    "rotary-encoding",
    "T is read from axis 1 and laid along axis 1, so inputs with other leading axes (heads) "
    "turn by the head in place of the position",
    kind="subtle",
    first="named",
    verdict="named",
    says="position read from the wrong axis",
    round=3,
)
def apply_rotary(x, base=10_000.0):
    if x.shape[-1] % 2:
        raise ValueError("odd width")
    half = x.shape[-1] // 2
    axis = 1 if x.ndim > 2 else 0
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    p = torch.arange(x.shape[axis], dtype=torch.float32).reshape(shape)
    angle = p / base ** (2 * torch.arange(half) / x.shape[-1])
    cos, sin = torch.cos(angle), torch.sin(angle)
    even, odd = x[..., ::2], x[..., 1::2]
    pairs = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
    return pairs.flatten(-2).type_as(x)


@stranger(
    "rotary-encoding",
    "the exponent is 2i / (d_k / 2), twice as large as it should be (right with d_k = 2) "
    "AND the type of x is not kept (half precision becomes float32)",
    kind="double",
    first="named",
    verdict="named",
    says="factor 2 counted twice",
    round=3,
)
def apply_rotary(x, base=10_000.0):
    *_, T, d_k = x.shape
    if d_k % 2 != 0:
        raise ValueError(f"d_k = {d_k} is odd")
    i = torch.arange(d_k // 2)
    frequencies = base ** (-2 * i / (d_k // 2))
    angles = torch.outer(torch.arange(T).float(), frequencies)
    a, b = x[..., 0::2], x[..., 1::2]
    new_a = a * torch.cos(angles) - b * torch.sin(angles)
    new_b = a * torch.sin(angles) + b * torch.cos(angles)
    return torch.stack([new_a, new_b], dim=-1).reshape(x.shape)
