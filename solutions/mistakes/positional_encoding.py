"""Wrong answers to chapter 3's exercises, and right ones in other styles."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from autograder.exercise.parameters import structural
from mistakes import right, wrong

# --- order-behaviour ------------------------------------------------------------------


@wrong("order-behaviour", "the answers must have names")
def order_behaviour(outputs, outputs_of_permuted, permutation):
    same = torch.allclose(outputs_of_permuted, outputs, atol=1e-5)
    follows = outputs.ndim == 2 and torch.allclose(
        outputs_of_permuted, outputs[permutation], atol=1e-5
    )
    return follows, same


@wrong("order-behaviour", "None is no verdict")
def order_behaviour(outputs, outputs_of_permuted, permutation):
    def same(rows):
        return torch.allclose(outputs_of_permuted, rows, atol=1e-5)

    equivariant = same(outputs[permutation]) if outputs.ndim == 2 else None
    return {"equivariant": equivariant, "invariant": same(outputs)}


@wrong("order-behaviour", "tensors in place of Python bools")
def order_behaviour(outputs, outputs_of_permuted, permutation):
    same = ((outputs_of_permuted - outputs).abs() < 1e-5).all()
    if outputs.ndim == 1:
        return {"equivariant": False, "invariant": same}
    follows = ((outputs_of_permuted - outputs[permutation]).abs() < 1e-5).all()
    return {"equivariant": follows, "invariant": same}


@right("order-behaviour")
def order_behaviour(outputs, outputs_of_permuted, permutation):
    """the largest difference, with the permutation undone"""
    same = bool((outputs_of_permuted - outputs).abs().max() < 1e-4)
    follows = False
    if outputs.dim() > 1:
        undone = outputs_of_permuted[torch.argsort(permutation)]
        follows = (undone - outputs).abs().max().item() < 1e-4
    return {"invariant": same, "equivariant": follows}


@right("order-behaviour")
def order_behaviour(outputs, outputs_of_permuted, permutation):
    """with a permutation matrix"""
    matrix = F.one_hot(permutation).to(outputs.dtype)
    answer = {"equivariant": False}
    if outputs.ndim == 2:
        answer["equivariant"] = torch.isclose(
            outputs_of_permuted, matrix @ outputs, atol=1e-5
        ).all().item()  # fmt: skip
    answer["invariant"] = torch.allclose(outputs, outputs_of_permuted, atol=1e-5)
    return answer


# --- sinusoidal-positional-encoding ---------------------------------------------------


def _interleave(sine, cosine):
    return torch.stack((sine, cosine), -1).flatten(-2)


def _pairs(length, d_model, base, first=0):
    if d_model % 2:
        raise ValueError("odd")
    positions = torch.arange(first, first + length).float()[:, None]
    return positions, torch.arange(0, d_model, 2) / d_model


@wrong("sinusoidal-positional-encoding", "i counts columns in place of pairs")
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    table = torch.zeros(length, d_model)
    for p in range(length):
        for i in range(d_model):
            angle = p / base ** (2 * i / d_model)
            table[p, i] = math.cos(angle) if i % 2 else math.sin(angle)
    return table


@wrong("sinusoidal-positional-encoding", "log10 in place of the natural logarithm")
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log10(base) / d_model))
    angle = torch.arange(length)[:, None] * rate
    return _interleave(angle.sin(), angle.cos())


@wrong("sinusoidal-positional-encoding", "an exponent for every column")
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    positions, _ = _pairs(length, d_model, base)
    angle = positions / base ** (torch.arange(d_model) / d_model)
    result = angle.sin()
    result[:, 1::2] = angle[:, 1::2].cos()
    return result


@wrong(
    "sinusoidal-positional-encoding", "cosine first, and a new frequency in each column"
)
def sinusoidal_positional_encoding(length, d_model, base=1_000.0):
    positions, _ = _pairs(length, d_model, base, first=1)
    angle = positions / base ** (torch.arange(1, d_model + 1) / d_model)
    result = angle.cos()
    result[:, 1::2] = angle[:, 1::2].sin()
    return result


@wrong("sinusoidal-positional-encoding", "positions from 1, and columns counted from 1")
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    # reads a matrix PE(1, 1) ... PE(n, d) with the formula's own indices
    table = torch.empty(length, d_model)
    for p in range(1, length + 1):
        for c in range(1, d_model + 1):
            angle = p / base ** ((c - c % 2) / d_model)
            table[p - 1, c - 1] = math.cos(angle) if c % 2 else math.sin(angle)
    return table


@wrong("sinusoidal-positional-encoding", "base 1000, and cosine first")
def sinusoidal_positional_encoding(length, d_model, base=1_000.0):
    positions, exponent = _pairs(length, d_model, base)
    angle = positions / base**exponent
    return _interleave(angle.cos(), angle.sin())


@wrong("sinusoidal-positional-encoding", "float32 expected")
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    positions, exponent = _pairs(length, d_model, base)
    angle = positions.double() / base ** exponent.double()
    return _interleave(angle.sin(), angle.cos())


@wrong("sinusoidal-positional-encoding", "odd width accepted")
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    positions = torch.arange(length)[:, None]
    angle = positions / base ** (torch.arange(0, d_model, 2) / d_model)
    return _interleave(angle.sin(), angle.cos())[:, :d_model]


@right("sinusoidal-positional-encoding")
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    """an entry at a time"""
    if d_model % 2 == 1:
        raise ValueError(f"odd width {d_model}")
    table = torch.zeros(length, d_model)
    for p in range(length):
        for i in range(d_model // 2):
            angle = p / base ** (2 * i / d_model)
            table[p, 2 * i] = math.sin(angle)
            table[p, 2 * i + 1] = math.cos(angle)
    return table


@right("sinusoidal-positional-encoding")
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    """exp of a logarithm, in float32, into slices"""
    if d_model % 2 != 0:
        raise ValueError(f"Cannot use an odd width, got {d_model}")
    table = torch.zeros(length, d_model)
    position = torch.arange(0, length, dtype=torch.float).unsqueeze(1)
    rate = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(base) / d_model))
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)
    return table


@right("sinusoidal-positional-encoding")
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    """complex numbers"""
    if d_model % 2:
        raise ValueError(d_model)
    rate = 1 / base ** torch.linspace(0, 1, d_model // 2 + 1)[:-1]
    angle = torch.outer(torch.arange(length).float(), rate)
    turned = torch.view_as_real(torch.polar(torch.ones_like(angle), angle))
    return turned.flip(-1).reshape(length, d_model)


@right("sinusoidal-positional-encoding")
def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    """every column with a phase: a cosine is a sine a quarter turn ahead"""
    if d_model % 2:
        raise ValueError(d_model)
    column = torch.arange(d_model)
    rate = torch.pow(torch.tensor(base), -(column - column % 2) / d_model)
    phase = (column % 2) * math.pi / 2
    return torch.sin(torch.arange(length).unsqueeze(-1) * rate + phase)


# --- wavelengths ----------------------------------------------------------------------


def _exponents(d_model):
    if d_model % 2:
        raise ValueError("odd")
    return torch.arange(0, d_model, 2) / d_model


@wrong("wavelengths", "2π forgotten")
def wavelengths(d_model, base=10_000.0):
    return base ** _exponents(d_model)


@wrong("wavelengths", "odd width accepted")
def wavelengths(d_model, base=10_000.0):
    return 2 * math.pi * base ** (torch.arange(0, d_model, 2) / d_model)


@right("wavelengths")
def wavelengths(d_model, base=10_000.0):
    """a pair at a time"""
    if d_model % 2:
        raise ValueError("odd")
    found = [2 * math.pi * base ** (2 * i / d_model) for i in range(d_model // 2)]
    return torch.tensor(found)


@right("wavelengths")
def wavelengths(d_model, base=10_000.0):
    """a geometric sequence without its end"""
    if d_model % 2:
        raise ValueError("odd")
    return 2 * torch.pi * torch.logspace(0, 1, d_model // 2 + 1, base=base)[:-1]


@right("wavelengths")
def wavelengths(d_model, base=10_000.0):
    """a full turn by the rate, in float32"""
    if d_model % 2:
        raise ValueError("odd")
    rate = torch.exp(-math.log(base) * torch.arange(0, d_model, 2) / d_model)
    return math.tau / rate


# --- shift-matrix ---------------------------------------------------------------------


def _block_matrix(upper_left, upper_right, lower_left, lower_right):
    rows = torch.stack((upper_left, upper_right, lower_left, lower_right), -1)
    return torch.block_diag(*rows.view(-1, 2, 2))


@wrong("shift-matrix", "transposed: made for column vectors")
def shift_matrix(offset, d_model, base=10_000.0):
    angle = offset / base ** _exponents(d_model)
    return _block_matrix(angle.cos(), angle.sin(), -angle.sin(), angle.cos())


@wrong("shift-matrix", "exponent outside the base")
def shift_matrix(offset, d_model, base=10_000.0):
    angle = (offset / base) ** _exponents(d_model)
    return _block_matrix(angle.cos(), -angle.sin(), angle.sin(), angle.cos())


@wrong("shift-matrix", "entries outside the 2 × 2 blocks")
def shift_matrix(offset, d_model, base=10_000.0):
    # fits all rows it is given, and would fit those of a wrong encoding as well
    angle = torch.arange(-99, 200).double()[:, None] / base ** _exponents(d_model)
    table = _interleave(angle.sin(), angle.cos())
    before, after = table[100:200], table[100 + offset : 200 + offset]
    return torch.linalg.lstsq(before, after, driver="gelsd").solution.float()


@wrong("shift-matrix", "odd width accepted")
def shift_matrix(offset, d_model, base=10_000.0):
    angle = offset / base ** (torch.arange(0, d_model, 2) / d_model)
    return _block_matrix(angle.cos(), -angle.sin(), angle.sin(), angle.cos())


@wrong("shift-matrix", "float32 expected")
def shift_matrix(offset, d_model, base=10_000.0):
    angle = offset / base ** _exponents(d_model).double()
    return _block_matrix(angle.cos(), -angle.sin(), angle.sin(), angle.cos())


@right("shift-matrix")
def shift_matrix(offset, d_model, base=10_000.0):
    """an entry at a time"""
    if d_model % 2:
        raise ValueError("odd")
    result = torch.zeros(d_model, d_model)
    for c in range(0, d_model, 2):
        angle = offset / base ** (c / d_model)
        result[c, c] = result[c + 1, c + 1] = math.cos(angle)
        result[c, c + 1] = -math.sin(angle)
        result[c + 1, c] = math.sin(angle)
    return result


@right("shift-matrix")
def shift_matrix(offset, d_model, base=10_000.0):
    """fitted for each pair by itself, from positions 0 and 1"""
    if d_model % 2:
        raise ValueError("odd")
    blocks = []
    for c in range(0, d_model, 2):
        rate = 1 / base ** (c / d_model)
        angle = rate * torch.tensor([0.0, math.pi / 2 / rate]).double()
        before = torch.stack((angle.sin(), angle.cos()), -1)
        ahead = angle + offset * rate
        after = torch.stack((ahead.sin(), ahead.cos()), -1)
        blocks.append(torch.linalg.solve(before, after))
    return torch.block_diag(*blocks).float()


@right("shift-matrix")
def shift_matrix(offset, d_model, base=10_000.0):
    """diagonals, in float32"""
    if d_model % 2:
        raise ValueError("odd")
    column = torch.arange(d_model)
    angle = offset / base ** ((column - column % 2) / d_model)
    sine = angle.sin()[:-1] * (column[:-1] % 2 == 0)
    return angle.cos().diag() - sine.diag(1) + sine.diag(-1)


# --- diagnose-encoding ----------------------------------------------------------------


def _base(encoding):
    width = encoding.shape[1]
    angle = math.atan2(encoding[1, -2], encoding[1, -1])
    return angle ** (-width / (width - 2))


@wrong("diagnose-encoding", "base 1000 not noticed")
def diagnose_encoding(encoding):
    # judges by row 0
    if encoding[0, 0] == 0:
        return "right"
    still = encoding[1:, 0].std() < 0.01
    return "exponent outside the base" if still else "cosine first"


@wrong("diagnose-encoding", "misplaced exponent not noticed")
def diagnose_encoding(encoding):
    # judges by the norms of the rows, then by the base
    norms = encoding.square().sum(1)
    if norms.std() > 1e-3:
        return "cosine first"
    return "base 1000" if _base(encoding) < 3000 else "right"


@wrong("diagnose-encoding", "misplaced exponent not noticed")
def diagnose_encoding(encoding):
    # judges by a shift matrix fitted freely to the rows
    before, after = encoding[1:-1].double(), encoding[2:].double()
    fit = torch.linalg.lstsq(before, after, driver="gelsd").solution
    if (before @ fit - after).abs().max() > 1e-1:
        return "exponent outside the base"
    if encoding.square().sum(1).std() > 1e-3:
        return "cosine first"
    return "base 1000" if _base(encoding) < 3000 else "right"


@wrong("diagnose-encoding", "misplaced exponent not noticed")
def diagnose_encoding(encoding):
    # judges by row 1, where the exponent's place makes no difference
    if encoding[1, 0] < 0.8 or encoding[1, 0] > 0.85:
        return "cosine first"
    return "base 1000" if _base(encoding) < 3000 else "right"


@wrong("diagnose-encoding", "the right base taken for 1000")
def diagnose_encoding(encoding):
    # a threshold for d_model = 4, used at every width
    if encoding[1:, 0].std() < 0.01:
        return "exponent outside the base"
    if encoding[0, 0] > 0.1:
        return "cosine first"
    return "right" if encoding[1, 2] < 0.02 else "base 1000"


@wrong("diagnose-encoding", "right at one size only")
def diagnose_encoding(encoding):
    # a threshold for d_model = 16, used at every width
    if encoding[1:, 0].std() < 0.01:
        return "exponent outside the base"
    if encoding[0, 0] > 0.1:
        return "cosine first"
    return "right" if encoding[1, -2] < 0.001 else "base 1000"


@wrong("diagnose-encoding", "cosine first suspected")
def diagnose_encoding(encoding):
    # looks for the cosine in the wrong column
    if encoding[1:, 0].std() < 0.01:
        return "exponent outside the base"
    if encoding[0, 1] > 0.1:
        return "cosine first"
    return "base 1000" if _base(encoding) < 3000 else "right"


@wrong("diagnose-encoding", "the right base taken for 1000")
def diagnose_encoding(encoding):
    # asks for equality with values computed in another type
    if encoding[1:, 0].std() < 0.01:
        return "exponent outside the base"
    if encoding[0, 0] > 0.1:
        return "cosine first"
    wanted = math.sin(1 / 10_000 ** (2 / encoding.shape[1]))
    return "right" if encoding[1, 2].item() == wanted else "base 1000"


@right("diagnose-encoding")
def diagnose_encoding(encoding):
    """rebuilds the four tables and takes the nearest"""
    length, width = encoding.shape
    p, c = torch.arange(length).double()[:, None], torch.arange(width)
    even = 2 * (c // 2) / width
    angles = {
        "right": p / 10_000**even,
        "exponent outside the base": (p / 10_000) ** even,
        "base 1000": p / 1_000**even,
        "cosine first": (p + 1) / 1_000 ** ((c + 1) / width),
    }
    sine_at = {name: c % 2 == (name == "cosine first") for name in angles}
    tables = {
        name: torch.where(sine_at[name], angle.sin(), angle.cos())
        for name, angle in angles.items()
    }
    return min(tables, key=lambda name: (tables[name] - encoding).abs().max().item())


@right("diagnose-encoding")
def diagnose_encoding(encoding):
    """the range of column 0, the norms, and the slowest pair's distance from 1/9999"""
    if encoding[1:, 0].max() - encoding[1:, 0].min() < 0.01:
        return "exponent outside the base"
    if abs(encoding[0, 0] ** 2 + encoding[0, 1] ** 2 - 1) > 1e-4:
        return "cosine first"
    size = encoding.shape[1]
    guesses = {name: math.sin(base ** (2 / size - 1)) for name, base in (
        ("right", 10_000), ("base 1000", 1_000))}  # fmt: skip
    return min(guesses, key=lambda name: abs(guesses[name] - encoding[1, -2].item()))


# --- sinusoidal-module ----------------------------------------------------------------


def _table(length, d_model):
    positions, exponent = _pairs(length, d_model, 10_000.0)
    angle = positions / 10_000**exponent
    return _interleave(angle.sin(), angle.cos())


class _Sinusoidal(nn.Module):
    """The right module; the entries below change a part of it."""

    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        super().__init__()
        self.register_buffer("table", _table(max_length, d_model), persistent=False)
        self.dropout = nn.Dropout(dropout)

    def rows(self, x):
        if x.shape[-2] > len(self.table):
            raise ValueError("too long")
        return self.table[: x.shape[-2]]

    def forward(self, x):
        return self.dropout(x + self.rows(x))


def _as_answer(name):
    """Give a class the name that the check cell uses."""

    def rename(answer):
        answer.__name__, answer.__module__ = name, __name__
        return answer

    return rename


sinusoidal = _as_answer("SinusoidalPositionalEncoding")
learned = _as_answer("LearnedPositionalEncoding")


@wrong("sinusoidal-module", "the encoding is a parameter")
@sinusoidal
class TrainedSinusoids(_Sinusoidal):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        nn.Module.__init__(self)
        self.table = nn.Parameter(_table(max_length, d_model))
        self.dropout = nn.Dropout(dropout)


@wrong("sinusoidal-module", "the buffer is persistent")
@sinusoidal
class SavedSinusoids(_Sinusoidal):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        nn.Module.__init__(self)
        self.register_buffer("table", _table(max_length, d_model))
        self.dropout = nn.Dropout(dropout)


@wrong("sinusoidal-module", "the table is no buffer")
@sinusoidal
class SinusoidsLeftBehind(_Sinusoidal):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        nn.Module.__init__(self)
        self.table = _table(max_length, d_model)
        self.dropout = nn.Dropout(dropout)


@wrong("sinusoidal-module", "float32 expected")
@sinusoidal
class DoubleSinusoids(_Sinusoidal):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        super().__init__(d_model, max_length, dropout)
        self.table = self.table.double()


@wrong("sinusoidal-module", "positions from 1")
@sinusoidal
class PositionsFromOne(_Sinusoidal):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        super().__init__(d_model, max_length, dropout)
        self.register_buffer(
            "table", _table(max_length + 1, d_model)[1:], persistent=False
        )


@wrong("sinusoidal-module", "refused, although the table has a row for each token")
@sinusoidal
class RefusesAFullTable(_Sinusoidal):
    def rows(self, x):
        if x.shape[-2] >= len(self.table):
            raise ValueError("too long")
        return self.table[: x.shape[-2]]


@wrong("sinusoidal-module", "longer than the table, not refused")
@sinusoidal
class SliceOnly(_Sinusoidal):
    def forward(self, x):
        return self.dropout(x + self.table[: x.shape[-2]])


@wrong("sinusoidal-module", "longer than the table, not refused")
@sinusoidal
class GrowsInSilence(_Sinusoidal):
    def rows(self, x):
        return _table(x.shape[-2], x.shape[-1])


@wrong("sinusoidal-module", "dropout in evaluation mode")
@sinusoidal
class DropoutAlways(_Sinusoidal):
    def forward(self, x):
        return F.dropout(x + self.rows(x), self.dropout.p)


@wrong("sinusoidal-module", "dropout without rescaling")
@sinusoidal
class DropoutWithoutRescaling(_Sinusoidal):
    def forward(self, x):
        total = x + self.rows(x)
        if self.training:
            total = total * (torch.rand(total.shape) >= self.dropout.p)
        return total


@wrong("sinusoidal-module", "dropout although dropout = 0")
@sinusoidal
class DropoutFixed(_Sinusoidal):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        super().__init__(d_model, max_length, 0.5)


@wrong("sinusoidal-module", "no gradient comes back")
@sinusoidal
class GraphCut(_Sinusoidal):
    def forward(self, x):
        return self.dropout(x.detach() + self.rows(x))


@wrong("sinusoidal-module", "changes its argument in place")
@sinusoidal
class InPlace(_Sinusoidal):
    def forward(self, x):
        x += self.rows(x)
        return self.dropout(x)


@wrong("sinusoidal-module", "length read from the wrong axis")
@sinusoidal
class ThreeAxesUnpacked(_Sinusoidal):
    def forward(self, x):
        _, length, _ = x.shape
        if length > len(self.table):
            raise ValueError("the sequence is too long")
        return self.dropout(x + self.table[:length])


@right("sinusoidal-module")
@sinusoidal
class WithLeadingAxis(nn.Module):
    """a buffer (1, max_length, d) and F.dropout"""

    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        super().__init__()
        self.p, self.max_length = dropout, max_length
        pe = _table(max_length, d_model)[None]
        self.register_buffer("pe", pe, persistent=False)

    def forward(self, x):
        if x.size(-2) > self.max_length:
            raise ValueError("the sequence is too long")
        x = x + self.pe[0, : x.size(-2)]
        return F.dropout(x, self.p, self.training)


@right("sinusoidal-module")
@sinusoidal
class LookedUp(_Sinusoidal):
    """rows looked up by index, dropout written out"""

    def forward(self, x):
        length = x.shape[-2]
        if length > len(self.table):
            raise ValueError(f"at most {len(self.table)} tokens, got {length}")
        total = x + F.embedding(torch.arange(length), self.table)
        if not self.training or self.dropout.p == 0:
            return total
        kept = torch.rand_like(total) >= self.dropout.p
        return total * kept / (1 - self.dropout.p)


# --- learned-module -------------------------------------------------------------------


class _Learned(nn.Module):
    """The right module; the entries below change a part of it."""

    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) * 0.02)
        self.dropout = nn.Dropout(dropout)

    def rows(self, x):
        if x.shape[-2] > len(self.table):
            raise ValueError("too long")
        return self.table[: x.shape[-2]]

    def forward(self, x):
        return self.dropout(x + self.rows(x))


for mistake, answer in structural(_Learned, "table"):
    wrong("learned-module", mistake)(learned(answer))


@wrong("learned-module", "PyTorch's module in place of your own")
@learned
class EmbeddingInside(_Learned):
    def __init__(self, max_length, d_model, dropout=0.0):
        nn.Module.__init__(self)
        self.table = nn.Embedding(max_length, d_model)
        self.dropout = nn.Dropout(dropout)

    def rows(self, x):
        return self.table(torch.arange(x.shape[-2]))


@wrong("learned-module", "table transposed")
@learned
class TableTransposed(_Learned):
    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__(d_model, max_length, dropout)


@wrong("learned-module", "the weights all start alike")
@learned
class StartsAtZero(_Learned):
    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__(max_length, d_model, dropout)
        nn.init.zeros_(self.table)


@wrong("learned-module", "the weights start too large")
@learned
class StartsLarge(_Learned):
    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__(max_length, d_model, dropout)
        nn.init.normal_(self.table)


@wrong("learned-module", "the weights do not start around 0")
@learned
class StartsUniform(_Learned):
    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__(max_length, d_model, dropout)
        nn.init.uniform_(self.table, 0, 0.1)


@wrong("learned-module", "the weights start too small")
@learned
class StartsSmall(_Learned):
    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__(max_length, d_model, dropout)
        nn.init.trunc_normal_(self.table, std=0.02**2)


@wrong("learned-module", "one axis too many")
@learned
class ATableForTheBatch(_Learned):
    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__(max_length, d_model, dropout)
        self.table = nn.Parameter(0.02 * torch.randn(1, max_length, d_model))

    def forward(self, x):
        return self.dropout(x + self.table[:, : x.shape[-2]])


@wrong("learned-module", "the share of dropped entries does not fit p")
@learned
class DropsAllButP(_Learned):
    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__(max_length, d_model, 1 - dropout if dropout else 0.0)


@wrong("learned-module", "the share of dropped entries does not fit p")
@learned
class KeepsWithP(_Learned):
    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__(max_length, d_model, dropout)
        self.p = dropout

    def forward(self, x):
        total = x + self.rows(x)
        if not self.training or self.p == 0:
            return total
        return total * (torch.rand_like(total) < self.p) / (1 - self.p)


@wrong("learned-module", "refused, although the table has a row for each token")
@learned
class RefusesTheLastRow(_Learned):
    def rows(self, x):
        if x.shape[-2] >= len(self.table):
            raise ValueError("too long")
        return self.table[: x.shape[-2]]


@wrong("learned-module", "refused, although the table has a row for each token")
@learned
class ComparesWithTheWidth(_Learned):
    def rows(self, x):
        if x.shape[-2] > x.shape[-1]:
            raise ValueError("too long")
        return self.table[: x.shape[-2]]


@wrong("learned-module", "longer than the table, not refused")
@learned
class WrapsRound(_Learned):
    def rows(self, x):
        return self.table[torch.arange(x.shape[-2]) % len(self.table)]


@wrong("learned-module", "longer than the table, not refused")
@learned
class RepeatsTheLastRow(_Learned):
    def rows(self, x):
        return self.table[torch.arange(x.shape[-2]).clamp(max=len(self.table) - 1)]


@wrong("learned-module", "longer than the table, not refused")
@learned
class IndexErrorBeyond(_Learned):
    def rows(self, x):
        return self.table[torch.arange(x.shape[-2])]


@wrong("learned-module", "no gradient comes back")
@learned
class TableDetached(_Learned):
    def rows(self, x):
        return super().rows(x).detach()


@right("learned-module")
@learned
class FromEmpty(_Learned):
    """initialised after it is made"""

    def __init__(self, max_length, d_model, dropout=0.0):
        nn.Module.__init__(self)
        self.table = nn.Parameter(torch.empty(max_length, d_model))
        nn.init.trunc_normal_(self.table, std=0.02)
        self.drop = nn.Dropout(p=dropout)

    def forward(self, x):
        return self.drop(self.rows(x) + x)


@right("learned-module")
@learned
class OneHotRows(_Learned):
    """one-hot positions times the table, as in the formula"""

    def rows(self, x):
        length, most = x.shape[-2], self.table.shape[0]
        if length > most:
            raise ValueError(f"{length} > {most}")
        return torch.eye(length, most, dtype=x.dtype) @ self.table


@right("learned-module")
@learned
class EmbeddingLookup(_Learned):
    """F.embedding on the positions"""

    def rows(self, x):
        if x.shape[-2] > len(self.table):
            raise ValueError("too long")
        return F.embedding(torch.arange(x.shape[-2]), self.table)


# --- rotary-encoding ------------------------------------------------------------------


def _angles(x, base):
    return torch.arange(x.shape[-2])[:, None] / base ** _exponents(x.shape[-1])


def _rotate(x, angle):
    even, odd, c, s = x[..., 0::2], x[..., 1::2], angle.cos(), angle.sin()
    return _interleave(even * c - odd * s, even * s + odd * c).to(x.dtype)


@wrong("rotary-encoding", "angles laid out in halves")
def apply_rotary(x, base=10_000.0):
    angle = _angles(x, base).repeat(1, 2)
    turned = _interleave(-x[..., 1::2], x[..., 0::2])
    return (x * angle.cos() + turned * angle.sin()).to(x.dtype)


@wrong("rotary-encoding", "the second of a pair computed from the new first")
def apply_rotary(x, base=10_000.0):
    angle = _angles(x, base)
    result = x.clone()
    c, s = angle.cos(), angle.sin()
    result[..., 0::2] = result[..., 0::2] * c - result[..., 1::2] * s
    result[..., 1::2] = result[..., 0::2] * s + result[..., 1::2] * c
    return result


@wrong("rotary-encoding", "position read from the wrong axis")
def apply_rotary(x, base=10_000.0):
    # written for three axes
    _, length, width = x.shape
    angle = torch.arange(length)[:, None] / base ** _exponents(width)
    return _rotate(x, angle)


@wrong("rotary-encoding", "float32 expected")
def apply_rotary(x, base=10_000.0):
    angle = _angles(x, base).double()
    a, b, c, s = x[..., 0::2], x[..., 1::2], angle.cos(), angle.sin()
    return _interleave(a * c - b * s, a * s + b * c)


@wrong("rotary-encoding", "float64 expected")
def apply_rotary(x, base=10_000.0):
    return _rotate(x.float(), _angles(x, base))


@wrong("rotary-encoding", "bfloat16 expected")
def apply_rotary(x, base=10_000.0):
    # what float32 meets becomes float32, and float64 stays what it is
    angle = _angles(x, base)
    a, b, c, s = x[..., 0::2], x[..., 1::2], angle.cos(), angle.sin()
    return _interleave(a * c - b * s, a * s + b * c)


@wrong("rotary-encoding", "angles rounded to the type of x")
def apply_rotary(x, base=10_000.0):
    return _rotate(x, _angles(x, base).to(x.dtype))


@wrong("rotary-encoding", "angles rounded to the type of x")
def apply_rotary(x, base=10_000.0):
    position = torch.arange(x.shape[-2], dtype=x.dtype)
    return _rotate(x, torch.outer(position.float(), base ** -_exponents(x.shape[-1])))


@wrong("rotary-encoding", "odd width accepted")
def apply_rotary(x, base=10_000.0):
    # rotates the pairs it finds and leaves a last, single entry as it is
    pairs = x.shape[-1] // 2 * 2
    exponent = torch.arange(0, pairs, 2) / pairs
    angle = torch.arange(x.shape[-2])[:, None] / base**exponent
    return torch.cat((_rotate(x[..., :pairs], angle), x[..., pairs:]), dim=-1)


@wrong("rotary-encoding", "changes its argument in place")
def apply_rotary(x, base=10_000.0):
    x[...] = _rotate(x, _angles(x, base))
    return x


@wrong("rotary-encoding", "no gradient comes back")
def apply_rotary(x, base=10_000.0):
    return _rotate(x.detach(), _angles(x, base))


@right("rotary-encoding")
def apply_rotary(x, base=10_000.0):
    """complex numbers"""
    if x.shape[-1] % 2:
        raise ValueError("odd")
    angle = torch.outer(torch.arange(x.shape[-2]), 1 / base ** _exponents(x.shape[-1]))
    turn = torch.polar(torch.ones_like(angle), angle)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    z = torch.view_as_complex(wide.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(z * turn).flatten(-2).to(x.dtype)


@right("rotary-encoding")
def apply_rotary(x, base=10_000.0):
    """x cos + (x turned by a quarter) sin, as in the paper's section 3.4.2"""
    angle = _angles(x, base).repeat_interleave(2, dim=-1)
    quarter = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).reshape(x.shape)
    return (x * angle.cos() + quarter * angle.sin()).to(x.dtype)


@right("rotary-encoding")
def apply_rotary(x, base=10_000.0):
    """a rotation matrix for every position and pair"""
    angle = _angles(x, base)
    c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    matrix = torch.stack((torch.stack((c, s), -1), torch.stack((-s, c), -1)), -2)
    pairs = x.unflatten(-1, (-1, 1, 2))  # (..., T, d/2, 1, 2)
    return (pairs @ matrix).flatten(-3)


@right("rotary-encoding")
def apply_rotary(x, base=10_000.0):
    """a position and a pair at a time, into a new tensor"""
    *_, length, width = x.shape
    if width % 2:
        raise ValueError("odd")
    result = torch.empty_like(x)
    for p in range(length):
        for c in range(0, width, 2):
            t = p / base ** (c / width)
            a, b = x[..., p, c], x[..., p, c + 1]
            result[..., p, c] = a * math.cos(t) - b * math.sin(t)
            result[..., p, c + 1] = a * math.sin(t) + b * math.cos(t)
    return result
