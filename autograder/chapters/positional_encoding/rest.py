"""Checks of chapter 3: positional encoding.

Expected values come from complex numbers, matrix exponentials and PyTorch's attention,
in float64. Answers are float32, and sin(p) of a float32 angle is off by about p · 1e-7:
tolerances are set so that any order of the same arithmetic passes.
"""

import contextlib
import itertools
import math
import random
from collections.abc import Iterator

import torch

from autograder import expect
from autograder.chapters.positional_encoding.chapter import chapter
from autograder.chapters.positional_encoding.encoding import (
    sinusoidal_positional_encoding,
)
from autograder.exercise.naming import Mistake
from autograder.expect import CheckFailure, failure_of
from autograder.interface import (
    Data,
    StudentError,
    StudentFunction,
    StudentInstance,
    StudentModule,
)

check = chapter.check

NEAR = 1e-4  # positions below 100
FAR = 2e-3  # positions in the thousands


@contextlib.contextmanager
def _explaining(**causes: str) -> Iterator[None]:
    """Add a likely cause to an exception in the student's code, by the kind of it."""
    try:
        yield
    except StudentError as error:
        failure = failure_of(error)
        failure.why = failure.why or causes.get(error.kind, "")
        raise failure from None


# --- the sinusoidal encoding ----------------------------------------------------------

SLIPS = {
    "exponent outside the base": (
        "sin((p/10000)^(2i/d)) raises the position, too. The exponent belongs to the "
        "base alone: sin(p / 10000^(2i/d)).\nSigns: the first pair never changes after "
        "row 0, and row 1 is right by accident, as 1^x = 1.",
        "position-disagreements",
    ),
    "base 1000": (
        "The base is 10000. With 1000, the longest wavelength shrinks about tenfold.",
        "position-disagreements",
    ),
    "cosine first": (
        "Even columns are sines, odd columns cosines: row 0 reads 0, 1, 0, 1, ...",
        "position-disagreements",
    ),
    "positions from 1": (
        "Row 0 belongs to position 0 and reads 0, 1, 0, 1, ...: positions count from "
        "0 like Python's indices.",
        "position-disagreements",
    ),
    "sine block, then cosine block": (
        "All sines stand left and all cosines right. The formula interleaves them: "
        "column 2i is a sine, column 2i+1 the cosine of the same angle.",
        "position-sinusoidal",
    ),
    "exponent i/d instead of 2i/d": (
        "i counts pairs, 0 ... d/2 - 1, and the exponent is 2i/d: it runs from 0 to "
        "nearly 1, not to nearly 1/2.",
        "position-sinusoidal",
    ),
    "factor 2 counted twice": (
        "torch.arange(0, d, 2) is 2i already; 2 * that / d is 4i/d.",
        "position-sinusoidal",
    ),
    "i counts columns instead of pairs": (
        "Columns 0 and 1 are the sine and the cosine of one angle, with i = 0; columns "
        "2 and 3 have i = 1. With the column's number as i, exponents run to nearly 2.",
        "position-sinusoidal",
    ),
    "an exponent for every column": (
        "Columns 2i and 2i+1 share one frequency: both have the exponent 2i/d. With "
        "an exponent c/d for column c, no rotation shifts the positions.",
        "position-disagreements",
    ),
    "exponents from 1/d": (
        "Columns are counted from 0 and come in pairs of one frequency: exponents "
        "0/d, 0/d, 2/d, 2/d, ..., not 1/d, 2/d, 3/d, ...",
        "position-disagreements",
    ),
    "columns counted from 1": (
        "The first column is column 0, a sine. Counted from 1, the first sine never "
        "appears and the last column gets the exponent d/d.",
        "position-disagreements",
    ),
    "sines only": (
        "Odd columns are cosines. With sines alone, two positions can get the same "
        "pair value, and a shift is no linear map.",
        "position-sinusoidal",
    ),
    "one exponent for all pairs": (
        "Every pair has the exponent 0 and turns like the first one. Was 2i // d meant "
        "to be 2i / d? With // the result is cut down to 0.",
        "position-sinusoidal",
    ),
    "degrees instead of radians": (
        "The angle p / base^(2i/d) is in radians, as torch.sin and torch.cos expect: "
        "convert nothing. Row 1 starts with sin 1 = .8415.",
        "position-by-hand",
    ),
    "multiplied instead of divided": (
        "The angle is p / base^(2i/d): later pairs turn more slowly, not faster.",
        "position-sinusoidal",
    ),
}
SOURCE_4 = ("cosine first", "base 1000", "exponents from 1/d", "positions from 1")


def _encode(
    length: int, d_model: int, base: float = 10_000.0, slips: tuple = ()
) -> torch.Tensor:
    """Return the encoding in float64, or, with slips, a known wrong one."""
    first = 1 if "positions from 1" in slips else 0
    p = torch.arange(first, first + length, dtype=torch.float64)[:, None]
    c = torch.arange(d_model, dtype=torch.float64)
    pair, cosine = c // 2, c % 2 == 1
    if "columns counted from 1" in slips:
        pair, cosine = (c + 1) // 2, (c + 1) % 2 == 1
    if "sine block, then cosine block" in slips:
        pair, cosine = c % (d_model // 2), c >= d_model // 2
    exponent = 2 * pair / d_model
    if "exponent i/d instead of 2i/d" in slips:
        exponent = pair / d_model
    if "factor 2 counted twice" in slips:
        exponent = 4 * pair / d_model
    if "i counts columns instead of pairs" in slips:
        exponent = 2 * c / d_model
    if "an exponent for every column" in slips:
        exponent = c / d_model
    if "exponents from 1/d" in slips:
        exponent = (c + 1) / d_model
    if "one exponent for all pairs" in slips:
        exponent = 0 * pair
    if "base 1000" in slips:
        base = 1_000.0
    angle = p / base**exponent
    if "exponent outside the base" in slips:
        angle = (p / base) ** exponent
    if "multiplied instead of divided" in slips:
        angle = p * base**exponent
    if "degrees instead of radians" in slips:
        angle = torch.deg2rad(angle)
    if "cosine first" in slips:
        cosine = ~cosine
    if "sines only" in slips:
        cosine = torch.zeros_like(cosine)
    return torch.where(cosine, angle.cos(), angle.sin())


def _wrong_encodings(length: int, d_model: int, base: float) -> Iterator[Mistake]:
    """Yield the encodings with one slip, with two, and the matrix of source 4."""
    for slips in itertools.chain(
        itertools.combinations(SLIPS, 1), itertools.combinations(SLIPS, 2), [SOURCE_4]
    ):
        why = "\n".join(SLIPS[slip][0] for slip in slips)
        section = SLIPS[slips[0]][1]
        name = ", and ".join(slips) if slips != SOURCE_4 else "the matrix of source 4"
        yield Mistake(name, _encode(length, d_model, base, slips), why, section)
    p = torch.arange(length, dtype=torch.float64)[:, None]
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angle = p * torch.exp(-exponent * math.log10(base))
    yield Mistake(
        "log10 instead of the natural logarithm",
        torch.stack([angle.sin(), angle.cos()], -1).flatten(-2),
        "base^x is exp(x · ln base), with the natural logarithm: math.log, not "
        "math.log10. Or leave logarithms out and write base**x.",
    )
    power = base ** torch.arange(0, d_model, 2, dtype=torch.float64)
    for angle in (p / power / d_model, p / (power / d_model)):
        yield Mistake(
            "brackets missing around 2i/d",
            torch.stack([angle.sin(), angle.cos()], -1).flatten(-2),
            "Python reads base ** i2 / d as (base ** i2) / d: powers come first. Write "
            "base ** (i2 / d), or compute the exponents in a line of their own.",
        )


def _expect_kind(
    got: Data, shape: tuple[int, ...], *, what: str, on: str, why: str
) -> None:
    """Expect a float32 tensor of a shape, finite; ``why`` explains the shape."""
    if isinstance(got, torch.Tensor) and got.shape != shape:
        if tuple(got.shape) == shape[::-1]:
            why += " Yours is transposed."
        elif got.numel() == math.prod(shape):
            why += " The number of entries is right, their arrangement is not: "
            why += "look at the axis you stacked or flattened along."
    expect.tensor(got, shape=shape, finite=False, what=what, on=on, why=why)
    _expect_float32(got, on)
    why = "NaN and infinity come from dividing by 0, or from a negative base raised to "
    expect.tensor(got, what=what, on=on, why=why + "a fraction.")


def _expect_float32(got: Data, on: str) -> None:
    if isinstance(got, torch.Tensor) and got.dtype != torch.float32:
        raise CheckFailure(
            "float32 expected",
            on=on,
            got=f"{got.dtype}",
            expected="torch.float32",
            why="Embeddings are float32, and adding float64 to them makes the whole "
            "model float64. Finish with .float() if you compute in another type."
            if got.is_floating_point()
            else "The result must hold real numbers: whole ones lose what stands "
            "behind the point. Let it be float32 from the start.",
            mistake="float32 expected",
        )


def _refuses_odd(student: StudentFunction, *args: Data, **kwargs: Data) -> None:
    expect.raises(
        "ValueError",
        lambda: student(*args, *kwargs.values()),
        on=f"{student.name} with d_model = {kwargs['d_model']}",
        why="Sine and cosine come in pairs: an odd width leaves a sine without its "
        "cosine. Say so: raise ValueError(...).",
        mistake="odd width accepted",
    )


def _rates(d_model: int, base: float) -> torch.Tensor:
    """Return the angle per position of each pair, (d/2,)."""
    return torch.logspace(0, -1, d_model // 2 + 1, base=base, dtype=torch.float64)[:-1]


# --- modules --------------------------------------------------------------------------


def _wrong_sums(x: torch.Tensor, table: torch.Tensor) -> Iterator[Mistake]:
    """Yield what is known to go wrong when table (max_length, d) is added to x."""
    batch, length, width = x.shape
    rows = table[:length]
    yield Mistake(
        "added along the batch axis",
        x + table[:batch, None],
        "Every token of sentence b got row b. The batch comes first: row t belongs to "
        "x[:, t], so slice by x.shape[-2]. (With B = T the shapes would not tell.)",
    )
    if length < len(table):
        yield Mistake(
            "positions from 1",
            x + table[1 : length + 1],
            "The first token gets row 0 of the table: slice [:T].",
        )
        yield Mistake(
            "one row for all tokens",
            x + table[length],
            "Every token got row T: an index picks a single row. Slice the first T.",
        )
        yield Mistake(
            "the last rows instead of the first",
            x + table[-length:],
            "A sequence starts at position 0 whatever its length: the first T rows.",
        )
    yield Mistake(
        "one row for all tokens",
        x + table[0],
        "Every token got row 0: slice the first T rows of the table.",
    )
    yield Mistake(
        "scaled by the square root of the width",
        x * width**0.5 + rows,
        "The factor √d_model belongs to the embedding (chapter 1); this module only "
        "adds.",
    )
    yield Mistake(
        "the encoding alone",
        rows.expand_as(x),
        "Return the sum of x and the encoding, not the encoding.",
    )
    yield Mistake("nothing added", x, "The output equals x: add the first T rows.")
    yield Mistake(
        "added twice",
        x + 2 * rows,
        "The encoding is added once: in the sum, nowhere else.",
    )


def _expect_sum(
    module: StudentInstance, table: torch.Tensor, values: torch.Generator, draw
) -> None:
    """Expect x + table[:T] for inputs with one batch axis, with none, and with two."""
    limit, width = table.shape
    short, batch = draw.choice([5, 6]), draw.choice([2, 3])
    tens = 10.0 * torch.arange(1, batch + 1)[:, None, None]
    for x, values_of_x in (
        (tens.repeat(1, short, width), ": all 10 in the first sequence, then 20"),
        (torch.randn(batch + 2, limit, width, generator=values), ""),
        (torch.randn(short, width, generator=values), ""),
        (torch.randn(2, 1, short, width, generator=values), ""),
        (torch.randn(batch, 1, width, generator=values), ""),
    ):
        shape = tuple(x.shape)
        on = f"x of shape {shape}{values_of_x}; evaluation mode, max_length = {limit}"
        try:
            got = module(x)
        except StudentError as error:
            if _wrong_axes_met(error) and len(shape) != 3:
                got = f"{error.kind}: {expect.describe_error(error)}"
                _wrong_axis(got, on, shape)
            if error.kind == "ValueError" and shape[1:] == (limit, width):
                got = f"{error.kind}: {expect.describe_error(error)}"
                _refused_too_early(got, on, shape)
            raise
        expected = x + table[: shape[-2]].float()
        if len(shape) == 3:
            mistakes = _wrong_sums(x, table.float())
        else:
            mistakes = [
                Mistake("length read from the wrong axis", x + rows, _axes(shape))
                for rows in (table[0].float(), *_slices(table, x))
            ]
        expect.equal(
            got,
            expected,
            what="the sum",
            on=on,
            why=f"Expected x + table[:{shape[-2]}], the same for every leading index.",
            mistakes=mistakes,
            tolerance=NEAR,
        )


def _wrong_axes_met(error: StudentError) -> bool:
    """Whether code for another number of axes may have stopped like this."""
    return error.kind in ("RuntimeError", "IndexError") or "unpack" in error.text


def _slices(table: torch.Tensor, x: torch.Tensor) -> list[torch.Tensor]:
    rows = [table[:size].float() for size in x.shape[:-2]]
    return [row for row in rows if len(row) in (1, x.shape[-2])]


def _axes(shape: tuple[int, ...]) -> str:
    return (
        f"x has {len(shape)} axes here; the tokens lie along the last but one. Take T "
        "from x.shape[-2], not from x.shape[0] or x.shape[1]."
    )


def _wrong_axis(got: str, on: str, shape: tuple[int, ...]) -> None:
    raise CheckFailure(
        "length read from the wrong axis",
        on=on,
        got=got,
        expected=f"a tensor of shape {shape}",
        why=_axes(shape),
        mistake="length read from the wrong axis",
    )


def _refused_too_early(got: str, on: str, shape: tuple[int, ...]) -> None:
    name = "refused, although the table has a row for each token"
    raise CheckFailure(
        name,
        on=on,
        got=got,
        expected=f"a tensor of shape {shape}",
        why="As many tokens as rows just fit: refuse T > max_length, not T >= "
        "max_length. The number to compare T with is the table's number of rows.",
        mistake=name,
    )


def _expect_limit(build, width: int, limit: int) -> None:
    """Expect ValueError one token beyond max_length, and where one row broadcasts."""
    for rows, length in ((limit, limit + 1), (1, 3)):
        module = build(rows)
        module.train(False)
        expect.raises(
            "ValueError",
            lambda module=module, length=length: module(torch.ones(2, length, width)),
            on=f"{length} tokens, max_length = {rows}",
            why="Row T of a table with T rows does not exist. Wrapping round, "
            "repeating the last row or adding one row to all tokens gives two tokens "
            "the same position; compare T with the table and raise ValueError.",
            mistake="longer than the table, not refused",
        )


DROPOUT_WHY = (
    "Dropout acts on the sum of embedding and encoding (section 5.4 of the paper): an "
    "entry is either 0 or the sum times 1 / (1 - p)."
)
EVALUATION_WHY = (
    "After module.eval() nothing is dropped. F.dropout drops by default: pass "
    "training=self.training, or use an nn.Dropout made in __init__."
)


def _expect_dropout(
    plain: StudentInstance, dropping: StudentInstance, table: torch.Tensor
) -> None:
    """Expect dropout on the sum: p = 0.5 in training, none with p = 0 or outside it."""
    length, width = table.shape
    x = torch.full((8, length, width), 4.0)
    total = x + table.float()  # at least 3, so that no kept entry is 0
    on = f"x of shape {tuple(x.shape)}, all 4; "
    for module, training, where, mistake, why in (
        (
            dropping,
            False,
            "dropout = 0.5, evaluation mode",
            "dropout in evaluation mode",
            EVALUATION_WHY,
        ),
        (
            plain,
            True,
            "dropout left at 0, training mode",
            "dropout although dropout = 0",
            "Use the constructor's argument as the probability.",
        ),
    ):
        module.train(training)
        got = module(x)
        expect.true(
            expect.close(got, total, NEAR),
            mistake,
            on=on + where,
            got=_first_row(got),
            expected=_first_row(total),
            why=why,
            mistake=mistake,
        )
    dropping.train(True)
    on += "dropout = 0.5, training mode"
    got = dropping(x)
    expect.tensor(got, shape=tuple(x.shape), dtype=x.dtype, on=on)
    zero, rows = torch.zeros_like(x), table.float().expand_as(x)
    known = {
        "no dropout in training": ([total], "Make an nn.Dropout and apply it."),
        "dropout without rescaling": (
            [zero, total],
            "What is kept must grow by 1 / (1 - p), so that the mean stays: nn.Dropout "
            "does it.",
        ),
        "dropout on the encoding only": ([x, x + 2 * rows], DROPOUT_WHY),
        "dropout on the embeddings only": ([rows, 2 * x + rows], DROPOUT_WHY),
        "dropout on embedding and encoding apart": (
            [zero, 2 * x, 2 * rows, 2 * total],
            DROPOUT_WHY,
        ),
    }
    if not _among(got, [zero, 2 * total]):
        unknown = ("the output in training mode is no sum after dropout", DROPOUT_WHY)
        name, why = next(
            ((name, why) for name, (v, why) in known.items() if _among(got, v)), unknown
        )
        raise CheckFailure(
            name,
            on=on,
            got=_first_row(got),
            expected=f"each entry 0 or twice that of the sum: {_first_row(total)}",
            why=why,
            mistake=name if name in known else None,
        )
    share = float((got == 0).double().mean())
    expect.true(
        0.3 < share < 0.7,
        "the share of dropped entries does not fit p",
        on=on,
        got=f"{share:.3f} of the entries are 0",
        expected="about 0.5 of them",
        why="Hand the constructor's dropout on to nn.Dropout.",
        mistake="the share of dropped entries does not fit p",
    )


def _first_row(x: Data) -> str:
    if not isinstance(x, torch.Tensor) or not x.ndim or not x.numel():
        return expect.show(x)
    more = " …" if x.shape[-1] > 6 else ""
    return "first row " + expect.show(x.reshape(-1, x.shape[-1])[0][:6]) + more


def _among(got: torch.Tensor, values: list[torch.Tensor]) -> bool:
    """Say whether every entry equals that of one of the tensors."""
    near = [torch.isclose(got, value, rtol=NEAR, atol=NEAR) for value in values]
    return bool(torch.stack(near).any(0).all())


def _expect_gradient(
    module: StudentInstance, shape: tuple[int, ...], values: torch.Generator
) -> torch.Tensor | None:
    """Expect the gradient to reach x unchanged; return the table's, if any."""
    module.train(False)
    x, cotangent = torch.randn(2, *shape, generator=values)
    found = module.gradients(x, cotangent=cotangent)
    on = f"the backward pass, x of shape {shape}"
    expect.true(
        found.inputs[0] is not None,
        "the gradient does not reach x",
        on=on,
        got="no gradient",
        expected="the gradient of the output, unchanged",
        why="Something cuts the graph: .detach(), .data, torch.tensor(...) or no_grad. "
        "The embeddings below could not be trained.",
        mistake="the gradient does not reach x",
    )
    expect.equal(
        found.inputs[0], cotangent, what="the gradient of x", on=on, tolerance=NEAR
    )
    return found.parameters.get("table")


MODULE_CAUSES = {
    "AttributeError": "If it speaks of Module.__init__: super().__init__() must be the "
    "first line of __init__. Otherwise forward uses a name that __init__ never set.",
    "TypeError": "If it says 'not callable': self.dropout must be the module "
    "nn.Dropout(dropout), not the number.",
    "RuntimeError": "The tokens lie along the last but one axis: T = x.shape[-2]. Add "
    "the first T rows of the table, table[:T].",
}


@check(section="position-adding")
def sinusoidal_module(
    student: StudentModule, encoding: StudentFunction, seed: int = 0
) -> None:
    """Check the table's kind, the sum, the limit, dropout and the gradient.

    The table is the right one, whatever the exercise before returns: what is compared
    with must not be the student's. Who adds the rows of a wrong function is told so.
    """
    with (
        expect.relying_on(sinusoidal_positional_encoding, encoding),
        _explaining(**MODULE_CAUSES),
    ):
        _check_sinusoidal_module(student, seed)


def _check_sinusoidal_module(student: StudentModule, seed: int) -> None:
    draw = random.Random(seed)
    values = torch.Generator().manual_seed(seed)
    limit, width = draw.choice([11, 13]), draw.choice([8, 10])
    module = student.build(width, max_length=limit)
    on = f"d_model = {width}, max_length = {limit}"
    _expect_quiet_buffer(module, on)
    module.train(False)
    table = _encode(limit, width)
    _expect_float32(module(torch.zeros(2, 3, width)), f"{on}, x float32")
    _expect_sum(module, table, values, draw)
    _expect_limit(lambda rows: student.build(width, max_length=rows), width, limit)
    dropping = student.build(width, max_length=limit, dropout=0.5)
    _expect_dropout(module, dropping, table)
    _expect_gradient(module, (2, 4, width), values)


def _expect_quiet_buffer(module: StudentInstance, on: str) -> None:
    trained = module.parameter_names()
    expect.true(
        not trained,
        "the encoding is a parameter",
        on=on,
        got=f"parameters {trained}",
        expected="no parameters",
        why="The sinusoids are fixed; an optimiser must not see them. Use "
        "self.register_buffer(name, table, persistent=False).",
        mistake="the encoding is a parameter",
    )
    saved = list(module.state_dict())
    expect.true(
        not saved,
        "the buffer is persistent",
        on=on,
        got=f"state_dict() has {saved}",
        expected="an empty state_dict()",
        why="A table that can be computed need not be in every checkpoint, where it "
        "also fixes max_length: register it with persistent=False.",
        mistake="the buffer is persistent",
    )
    expect.true(
        bool(module.buffer_names()),
        "the table is no buffer",
        on=on,
        got="no buffers",
        expected="one buffer, not persistent",
        why="A plain attribute stays behind when the module moves: model.to('cuda') "
        "then adds a CPU table to a CUDA tensor. Use self.register_buffer.",
        mistake="the table is no buffer",
    )


@check(section="position-learned")
def learned_module(student: StudentModule, seed: int = 0) -> None:
    """Check the parameter and its start, the sum, the limit, dropout, gradients."""
    with _explaining(**MODULE_CAUSES):
        _check_learned_module(student, seed)


def _check_learned_module(student: StudentModule, seed: int) -> None:
    draw = random.Random(seed)
    values = torch.Generator().manual_seed(seed)
    limit, width = draw.choice([11, 13]), draw.choice([8, 10])
    on = f"max_length = {limit}, d_model = {width}"
    module = student.build(limit, width)
    _expect_one_table(module, limit, width, on)
    _expect_start(student.build(60, 40).state_dict()["table"])
    # row p is p, p + 0.01, ...: a message shows at a glance which row was added
    table = torch.arange(limit)[:, None] + torch.arange(width) / 100
    module.load_state_dict({"table": table})
    module.train(False)
    _expect_sum(module, table, values, draw)
    _expect_limit(lambda rows: student.build(rows, width), width, limit)
    dropping = student.build(limit, width, dropout=0.5)
    table = 0.3 + 0.7 * torch.rand(limit, width, generator=values)
    module.load_state_dict({"table": table})
    dropping.load_state_dict({"table": table})
    _expect_dropout(module, dropping, table)
    untrained = (
        "A parameter is trained unless it is told not to be: leave out "
        "requires_grad=False, and compute nothing under torch.no_grad()."
    )
    with _explaining(RuntimeError=untrained):
        _expect_row_gradients(module, limit, width, values)


def _expect_one_table(module: StudentInstance, limit: int, width: int, on: str) -> None:
    state, names = module.state_dict(), module.parameter_names()
    expect.true(
        names != [] or "table" not in state,
        "the table is not trained",
        on=on,
        got=f"no parameters; state_dict() has {list(state)}",
        expected="one parameter, table",
        why="An optimiser never updates a buffer: wrap the table in nn.Parameter.",
        mistake="the table is not trained",
    )
    expect.true(
        names == ["table"],
        "other parameters than table",
        on=on,
        got=f"parameters {names}, state_dict() has {list(state)}",
        expected="one parameter, table",
        why="Call it self.table and make it an nn.Parameter. (nn.Embedding is a module "
        "of its own: its parameter would be called table.weight. A plain tensor is "
        "no parameter at all.)",
        mistake="other parameters than table",
    )
    if tuple(state["table"].shape) == (width, limit):
        raise CheckFailure(
            "table transposed",
            on=on,
            got=f"{(width, limit)}",
            expected=f"{(limit, width)}",
            why="A row is a position: (max_length, d_model). Note the order of the "
            "constructor's arguments, the same.",
            mistake="table transposed",
        )
    expect.tensor(
        state["table"],
        shape=(limit, width),
        what="table",
        on=on,
        dtype=torch.float32,
        why="A row for each position and no axis more: broadcasting repeats the table "
        "for every sequence by itself.",
    )


def _expect_start(table: torch.Tensor) -> None:
    spread, mean = float(table.std()), float(table.mean())
    on = "the table of a new module, max_length = 60, d_model = 40"
    got = f"standard deviation {spread:.4g}, mean {mean:.4g}"
    wanted = "standard deviation about 0.02, mean about 0"
    expect.true(
        spread > 1e-6,
        "the table starts constant",
        on=on,
        got=got,
        expected=wanted,
        why="Training could still pull the rows apart, as each gets its own gradient, "
        "but until it has, no two positions differ. Draw from a normal distribution.",
        mistake="the table starts constant",
    )
    expect.true(
        spread < 0.5,
        "the table starts at standard deviation 1",
        on=on,
        got=got,
        expected=wanted,
        why="At that size the positions drown small embeddings. Multiply by 0.02, or "
        "use nn.init.normal_(table, std=0.02).",
        mistake="the table starts at standard deviation 1",
    )
    expect.true(
        0.01 < spread < 0.04 and abs(mean) < 0.005,
        "the table starts from another distribution",
        on=on,
        got=got,
        expected=wanted,
        why="Draw from a normal distribution with mean 0 and standard deviation 0.02.",
        mistake="the table starts from another distribution",
    )


def _expect_row_gradients(
    module: StudentInstance, limit: int, width: int, values: torch.Generator
) -> None:
    gradient = _expect_gradient(module, (3, 4, width), values)
    on = "the backward pass, 3 sequences of 4 tokens"
    expect.true(
        gradient is not None,
        "the gradient does not reach the table",
        on=on,
        got="no gradient",
        expected="a gradient for the rows that were used",
        why="Something cuts the graph between table and output: .detach(), .data or "
        "no_grad. The table would keep its random start.",
        mistake="the gradient does not reach the table",
    )
    x = torch.zeros(3, 4, width)
    cotangent = torch.randn(3, 4, width, generator=values)
    found = module.gradients(x, cotangent=cotangent).parameters["table"]
    expected = torch.cat([cotangent.sum(0), torch.zeros(limit - 4, width)])
    expect.equal(
        found,
        expected,
        what="the gradient of table",
        on=on,
        why="Row t collects the gradients of all tokens at position t; rows beyond the "
        "longest sequence get 0.",
        tolerance=NEAR,
    )


# --- rotary ---------------------------------------------------------------------------


def _turn(x: torch.Tensor, base: float, **changes) -> torch.Tensor:
    """Rotate pairs as complex numbers, in float64; ``changes`` make known mistakes."""
    *_, length, width = x.shape
    first, sign = changes.get("first", 0), changes.get("sign", 1)
    position = torch.arange(first, first + length, dtype=torch.float64)
    if "axis" in changes:  # positions along a leading axis
        ahead = x.shape[changes["axis"]]
        position = torch.arange(ahead, dtype=torch.float64)
        position = position.reshape(-1, *[1] * (-changes["axis"] - 2))
    rates = changes.get("rates", _rates(width, base))
    angles = sign * position[..., None] * rates
    x = x.double()
    if changes.get("halves"):
        z = torch.complex(*x.chunk(2, -1))
    else:
        z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    z = z * torch.polar(torch.ones_like(angles), angles)
    if changes.get("halves") or changes.get("written in halves"):
        return torch.cat([z.real, z.imag], -1)
    return torch.view_as_real(z).flatten(-2)


def _wrong_turns(x: torch.Tensor, base: float, usual: bool) -> Iterator[Mistake]:
    *_, length, width = x.shape
    e = torch.arange(0, width, 2, dtype=torch.float64) / width
    p = torch.arange(length, dtype=torch.float64)[:, None]
    angles = p / base**e
    a, b = x.double()[..., 0::2], x.double()[..., 1::2]
    c, s = angles.cos(), angles.sin()

    def interleave(even: torch.Tensor, odd: torch.Tensor) -> torch.Tensor:
        return torch.stack([even, odd], -1).flatten(-2)

    yield Mistake(
        "pairs (i, i + d/2) instead of (2i, 2i + 1)",
        _turn(x, base, halves=True),
        "This is the half-split layout of several published models: a convention, but "
        "not the one of the paper and of this exercise, and weights trained with one "
        "do not work with the other. Take columns 0::2 and 1::2.",
        "position-relative",
    )
    yield Mistake(
        "right pairs, written back in halves",
        _turn(x, base, **{"written in halves": True}),
        "The rotated pairs must go back to columns 2i and 2i+1: stack them on a new "
        "last axis and flatten, instead of torch.cat.",
    )
    yield Mistake(
        "rotated backwards",
        _turn(x, base, sign=-1),
        "(1, 0) at position 1 must become (cos 1, sin 1) = (.5403, .8415). The scores "
        "alone cannot tell: they depend on the offset either way.",
    )
    yield Mistake(
        "positions from 1",
        _turn(x, base, first=1),
        "Row 0 must come back unchanged. The scores cannot tell, as only offsets "
        "matter there; the values can.",
    )
    yield Mistake(
        "both sines with the same sign",
        interleave(a * c + b * s, a * s + b * c),
        "The first of a pair becomes a cos - b sin. With two equal signs the map is no "
        "rotation: lengths change.",
    )
    yield Mistake(
        "the second of a pair computed from the new first",
        interleave(a * c - b * s, (a * c - b * s) * s + b * c),
        "The first entry was overwritten before the second one was computed: both need "
        "the old values.",
    )
    yield Mistake(
        "the encoding added instead of rotated",
        x.double() + _encode(length, width, base),
        "Rotary encoding multiplies: it turns each pair of x by the angle of its "
        "position.",
    )
    yield Mistake(
        "one angle for all pairs",
        _turn(x, base, rates=torch.ones(width // 2, dtype=torch.float64)),
        "Pair i turns by p / base^(2i/d): every pair has its own rate.",
    )
    yield Mistake(
        "exponent i/d instead of 2i/d",
        _turn(x, base, rates=base ** (-e / 2)),
        SLIPS["exponent i/d instead of 2i/d"][0],
    )
    yield Mistake(
        "factor 2 counted twice",
        _turn(x, base, rates=base ** (-2 * e)),
        SLIPS["factor 2 counted twice"][0],
    )
    if not usual:
        yield Mistake(
            "base not used",
            _turn(x, 10_000.0),
            "The result is the one of base 10000: use the argument base.",
        )
    for axis in range(-x.ndim, -2):
        yield Mistake(
            "position read from the wrong axis",
            _turn(x, base, axis=axis),
            f"x has {x.ndim} axes here; the tokens lie along the last but one. Count "
            "positions along x.shape[-2].",
        )
    exchanged = (
        "The first of a pair becomes a cos - b sin, the second a sin + b cos: at "
        "position 0, where the sine is 0, every pair stays as it is."
    )
    for first in (a * c - b * s, a * s - b * c):
        second = interleave(first, a * c + b * s)
        yield Mistake("sine and cosine exchanged", second, exchanged)
    in_halves = torch.cat([angles, angles], -1)
    yield Mistake(
        "angles laid out in halves",
        x.double() * in_halves.cos() + interleave(-b, a) * in_halves.sin(),
        "Columns 2i and 2i+1 turn by one angle, so the angles must stand as 0, 0, 1, "
        "1, ...: repeat_interleave does that. repeat and torch.cat give 0, 1, 0, 1.",
    )
    yield Mistake("nothing rotated", x, "The output equals x.")


@check(section="position-relative")
def apply_rotary(student: StudentFunction, seed: int = 0) -> None:
    """Compare with complex multiplication; then the scores, the type, the gradient."""
    draw = random.Random(seed)
    values = torch.Generator().manual_seed(seed)
    base = draw.choice([40.0, 90.0, 500.0])
    length, heads = draw.choice([6, 7]), draw.choice([2, 3])
    cases = [
        (torch.tensor([[1.0, 0, 1, 0]] * 3), 10_000.0),
        (torch.randn(length, 6, generator=values), base),
        (torch.randn(heads + 2, length, 8, generator=values), 10_000.0),
        (torch.randn(heads + 3, heads, length, 4, generator=values), base),
        (torch.randn(2, 1, 50, 10, generator=values), 10_000.0),
    ]
    for x, base in cases:
        usual = base == 10_000.0
        hand = x.numel() <= 12
        on = f"three rows (1, 0, 1, 0), shape {tuple(x.shape)}" if hand else ""
        on = on or f"x of shape {tuple(x.shape)}" + (
            "" if usual else f", base = {base:g}"
        )
        got = _call_rotary(student, (x,) if usual else (x, base), on)
        expected = _turn(x, base).float()
        if not expect.close(got, expected, NEAR):
            wrong = _wrong_turns(x, base, usual)
            expect.name_mistake(got, wrong, on, expected, NEAR)
        same = "Rotating changes values only: the result has the shape of x."
        _expect_kind(got, tuple(x.shape), what="the rotated x", on=on, why=same)
        expect.equal(
            got,
            expected,
            what="the rotated x",
            on=on,
            why="It is none of the known mistakes. Try one pair: (1, 0) at position 1 "
            "must become (cos 1, sin 1) = (.5403, .8415).",
            tolerance=NEAR,
        )
    _expect_rotary_type(student, values)
    _expect_rotary_gradient(student, values)
    expect.raises(
        "ValueError",
        lambda: student(torch.ones(2, 3, 5)),
        on="x of shape (2, 3, 5)",
        why="Entries are rotated in pairs: an odd width leaves one without a partner. "
        "Say so: raise ValueError(...).",
        mistake="odd width accepted",
    )


def _call_rotary(student: StudentFunction, args: tuple, on: str) -> Data:
    try:
        return student(*args)
    except StudentError as error:
        if _wrong_axes_met(error) and (args[0].ndim != 3 or "unpack" in error.text):
            failure = failure_of(error)
            failure.what = failure.mistake = "position read from the wrong axis"
            failure.on, failure.got = on, f"{error.kind}: {failure.got}"
            failure.expected = f"a tensor of shape {tuple(args[0].shape)}"
            failure.why = (
                f"x has {args[0].ndim} axes here; the tokens lie along the last but "
                "one. Take T from x.shape[-2]; (T, d_k/2) broadcasts over the rest."
            )
            raise failure from None
        with _explaining(
            RuntimeError="Columns are the last axis however many axes x has: "
            "x[..., 0::2], not x[:, 0::2]. Angles (T, d_k/2) fit x[..., 0::2] by "
            "broadcasting."
        ):
            raise


def _expect_rotary_type(student: StudentFunction, values: torch.Generator) -> None:
    x = torch.randn(2, 5, 6, generator=values, dtype=torch.float64)
    got = student(x)
    expect.tensor(
        got,
        shape=(2, 5, 6),
        dtype=torch.float64,
        what="the rotated x",
        on="x of shape (2, 5, 6) in float64",
        why="The result keeps the type of x.",
    )


def _expect_rotary_gradient(student: StudentFunction, values: torch.Generator) -> None:
    x, cotangent = torch.randn(2, 3, 5, 6, generator=values)
    found = student.gradients(x, cotangent=cotangent).inputs[0]
    on = "the backward pass, x of shape (3, 5, 6)"
    expect.true(
        found is not None,
        "the gradient does not reach x",
        on=on,
        got="no gradient",
        expected="the gradient of the output, rotated back",
        why="Something cuts the graph: .detach(), .data, torch.tensor(...) or no_grad. "
        "The projections before it could not be trained.",
        mistake="the gradient does not reach x",
    )
    expect.equal(
        found,
        _turn(cotangent, 10_000.0, sign=-1).float(),
        what="the gradient of x",
        on=on,
        tolerance=NEAR,
    )
