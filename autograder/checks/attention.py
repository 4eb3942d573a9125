"""Checks of chapter 4, attention.

The oracles are PyTorch's own functions, values worked out by hand, and properties. A
known mistake is found by computing what it would give on the same input.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
import torch.nn.functional as F

from autograder import expect, forbidden
from autograder.checks.attention_mistakes import (
    ANGLES,
    Candidate,
    additive_candidates,
    attention_candidates,
    causal_candidates,
    context_candidates,
    cost,
    cost_candidates,
    geometric_candidates,
    jacobian_candidates,
    layer_candidates,
    masked_candidates,
    padding_candidates,
    project_candidates,
    rotation,
    softmax_candidates,
    torch_attention,
    weights_of,
)
from autograder.checks.shared import (
    draw_mask,
    draw_sizes,
    known_mistakes,
    normal,
    refuse,
    seeded,
)
from autograder.expect import Chapter, CheckFailure, Mistake, describe_error, show
from autograder.forms import several
from autograder.interface import (
    Data,
    StudentError,
    StudentFunction,
    StudentInstance,
    StudentModule,
)

PYTORCHS_OWN = (forbidden.SCALED_DOT_PRODUCT, forbidden.MULTI_HEAD)

chapter = Chapter(4, "04_attention")
progress = chapter.progress


# --- shared ---------------------------------------------------------------------------


@contextlib.contextmanager
def _shapes_explained(
    call: Callable, square: Sequence, candidates: Callable[..., Iterable[Candidate]]
) -> Iterator[None]:
    """Name the mistake behind an error of shapes.

    A product in the wrong order fails when all sizes differ; on inputs whose sizes are
    all equal it has a value, and the value tells which mistake it is.
    """
    try:
        yield
    except StudentError as error:
        if error.kind in ("RuntimeError", "IndexError", "ValueError"):
            with contextlib.suppress(StudentError):
                got = call(*square)
                for mistake in known_mistakes(candidates(*square)):
                    if expect.close(got, mistake.value):
                        said = f"{error.kind}: {describe_error(error)}"
                        refuse(mistake.name, mistake.why, on=error.call, got=said)
        raise


def _expect_finite(got: Data, *, on: str, mistake: str, why: str) -> None:
    """Name the mistake that NaN or infinity in a result gives away."""
    if not isinstance(got, torch.Tensor) or not got.is_floating_point():
        return
    if not got.isfinite().all():
        refuse(mistake, why, on=on, got=show(got), expected="finite numbers")


def _expect_dict(got: Data, keys: Iterable[str]) -> None:
    what, wanted = "the result is not a dict", f"{list(keys)}"
    why = "The function ends without `return`." if got is None else ""
    expect.true(isinstance(got, dict), what, got=show(got), expected=wanted, why=why)
    if any(key not in got for key in keys):
        why = "The dict needs every key below 'expected', spelt exactly so."
        on = "the keys of the result"
        refuse("an entry is missing", why, on=on, got=f"{list(got)}", expected=wanted)


def _expect_numbers(
    got: Data, shape: tuple[int, ...], what: str, on: str = ""
) -> torch.Tensor:
    """Expect a tensor of numbers, of whatever dtype, and return it as float32."""
    expect.tensor(got, shape=shape, finite=False, what=what, on=on)
    return got.to(torch.float32)


# --- softmax --------------------------------------------------------------------------


def _expect_softmax(
    student: StudentFunction,
    scores: torch.Tensor,
    on: str,
    tolerance: float = expect.TOLERANCE,
) -> None:
    got = student(scores)
    expect.form(got, scores, on=on)
    if isinstance(got, torch.Tensor) and got.dtype != scores.dtype:
        why = (
            "The weights keep the dtype of the scores: no .float() or dtype=... on the "
            "way. (In float64, scores are tested for small differences.)"
        )
        say = {"on": on, "got": f"{got.dtype}", "expected": f"{scores.dtype}"}
        refuse("computed in another precision", why, **say)
    mistakes = known_mistakes(softmax_candidates(scores))
    expect.equal(got, weights_of(scores), on=on, mistakes=mistakes, tolerance=tolerance)


@chapter.check(section="attention-softmax", forbidden=(forbidden.SOFTMAX,))
def softmax(student: StudentFunction, seed: int = 0) -> None:
    """Values by hand and PyTorch's, large scores, rows of -inf, the gradient."""
    generator = seeded(seed)
    a, b, c, n = draw_sizes(generator, 4)
    hand = torch.tensor([[0.0, math.log(2), math.log(5)], [0.0, 0.0, 0.0]])
    _expect_softmax(student, hand, "softmax([[0, ln 2, ln 5], [0, 0, 0]])")
    for shape in ((b, n), (a, b, n), (a, b, c, n), (n,)):
        scores = 2 * normal(generator, *shape)
        _expect_softmax(student, scores, f"random scores of shape {shape}")
    double = normal(generator, b, n).double()
    _expect_softmax(student, double, f"float64 scores of shape {(b, n)}")
    _expect_stable_softmax(student)
    _expect_softmax_of_infinity(student)
    _expect_softmax_gradient(student, normal(generator, b, n), generator)


def _expect_stable_softmax(student: StudentFunction) -> None:
    large = torch.tensor([[10_000.0, 9_999.0, -10_000.0]])
    small = torch.tensor([[-10_000.0, -10_001.0, -9_999.0]])
    for scores, accident in (
        (large, "exp(10000) is infinite in floating point, and ∞/∞ is NaN."),
        (small, "exp(-10000) is 0 in floating point, and 0/0 is NaN."),
    ):
        on = f"softmax({show(scores)})"
        got = student(scores)
        why = accident + (
            " Subtract the row's largest score from the whole row before exp: the "
            "weights stay the same and the largest exponent is 0."
        )
        _expect_finite(got, on=on, mistake="not stable for large scores", why=why)
        cut = isinstance(got, torch.Tensor) and got.shape == (1, 3)
        if cut and (got[0, 0] - got[0, 1]).abs() < 1e-6:
            why = (
                "Scores that differ by 1 got the same weight. Cutting scores off at "
                "some limit loses their differences; subtracting the row's largest "
                "score keeps them."
            )
            expected = show(weights_of(scores))
            say = {"on": on, "got": show(got), "expected": expected}
            refuse("large scores are cut off", why, **say)
        _expect_softmax(student, scores, on, tolerance=1e-3)  # the logarithm rounds
    both = torch.cat([large, small])
    on = f"softmax({show(both)})"
    why = (
        "The maximum of the whole tensor was subtracted, so every exponential of a "
        "row far below it is 0. Take the maximum of each row (dim=-1, keepdim=True)."
    )
    _expect_finite(student(both), on=on, mistake="one maximum for all rows", why=why)
    _expect_softmax(student, both, on, tolerance=1e-3)


def _expect_softmax_of_infinity(student: StudentFunction) -> None:
    partly = torch.tensor([[0.0, -math.inf, math.log(3)]])
    _expect_softmax(student, partly, "softmax([[0, -inf, ln 3]])")
    rows = torch.tensor([[-math.inf] * 3, [0.0, 0.0, 0.0]])
    on = f"softmax({show(rows)})"
    got = student(rows)
    expect.tensor(got, shape=(2, 3), finite=False, on=on)
    why = (
        "A row of only -inf has nothing to attend to, and its weights must be 0. Its "
        "maximum is -inf, and -inf - (-inf) is NaN; its sum is 0, and 0/0 is NaN: "
        "replace both before they are used."
    )
    _expect_finite(got, on=on, mistake="NaN for a row of only −∞", why=why)
    if (got[0] > 0).any():
        why = (
            "-inf means 'never attend here', so a row of only -inf gets weights of 0, "
            "not 1/3 each. Do not replace -inf by an ordinary number before the "
            "exponential."
        )
        name, zero = "equal weights for a row of only −∞", "[0.0, 0.0, 0.0] in row 0"
        refuse(name, why, on=on, got=show(got), expected=zero)
    _expect_softmax(student, rows, on)


def _expect_softmax_gradient(
    student: StudentFunction, scores: torch.Tensor, generator: torch.Generator
) -> None:
    cotangent = normal(generator, *scores.shape)
    found = student.gradients(scores, cotangent=cotangent).inputs[0]
    on = f"the gradient at random scores of shape {tuple(scores.shape)}"
    _expect_some_gradient(found, on)
    (wanted,) = torch.autograd.grad(
        (torch.softmax(scores.requires_grad_(), -1) * cotangent).sum(), scores
    )
    expect.equal(found, wanted, on=on, what="the gradient")


def _expect_some_gradient(found: torch.Tensor | None, on: str) -> None:
    if found is not None:
        return
    why = (
        "A step cut the result off from its input, so nothing before it could learn. "
        "Stay in PyTorch: no .detach(), .item(), .numpy(), torch.no_grad() and no "
        "torch.tensor(...) of a tensor."
    )
    refuse("no gradient comes back", why, on=on, got="None", expected="a tensor")


# --- the worked example ---------------------------------------------------------------

EXAMPLE_WEIGHTS = torch.tensor([[1.0, 0.0, 0.0], [0.3, 0.7, 0.0], [0.1, 0.8, 0.1]])
EXAMPLE_VALUES = torch.tensor(
    [[0.5, 0.2, 1.0, 0.4], [0.1, 0.2, 0.6, 0.8], [0.3, 0.2, 0.2, 1.0]]
)
BY_HAND = 1e-3  # tolerance of numbers that a student may have rounded to 3 decimals


@chapter.check(section="attention-worked-example")
def worked_context(student: StudentFunction, seed: int = 0) -> None:
    """Check the context vectors, and three questions about them."""
    keys = ("context", "unchanged_row", "constant_column", "strongest")
    got = student()
    _expect_dict(got, keys)
    context = _expect_numbers(got["context"], (3, 4), "the entry 'context'")
    weights, values = EXAMPLE_WEIGHTS, EXAMPLE_VALUES
    expected = torch.tensor(  # by hand
        [[0.5, 0.2, 1.0, 0.4], [0.22, 0.2, 0.72, 0.68], [0.16, 0.2, 0.6, 0.78]]
    )
    _expect_by_hand(
        context,
        expected,
        what="'context'",
        on="weights (3, 3) and values (3, 4) of 'berries ripen slowly'",
        why="Row i is the sum over j of weights[i, j] times row j of the values.",
        mistakes=known_mistakes(context_candidates(weights, values)),
    )
    from_one = "Positions are counted from 0 in this course, as in Python."
    known = {1: ("counted from 1", from_one)}
    why = "A position, one number: which row of the context is a row of V as it stands?"
    _expect_answer(got, "unchanged_row", 0, known, why)
    columns = {
        2: ("counted from 1", from_one),
        0: ("a row instead of a column", "Columns run downwards: which one repeats?"),
    }
    why = "A position, one number. Look down the columns of your context."
    _expect_answer(got, "constant_column", 1, columns, why)
    own = "Look for the largest number of each row: not all are on the diagonal."
    column = (
        "You took the largest number of each column. A row is a query: row i says "
        "how token i shares out its attention."
    )
    wrong = {
        (0, 1, 2): ("every token attends to itself", own),
        (0, 2, 2): ("rows and columns exchanged", column),
        (1, 2, 2): ("counted from 1", from_one),
    }
    why = (
        "A list of three positions, counted from 0, not of words or weights: for each "
        "row of the weights, the column in which its largest number stands."
    )
    _expect_answer(got, "strongest", (0, 1, 1), wrong, why)


def _expect_answer(
    got: dict,
    key: str,
    expected: Data,
    mistakes: dict[Data, tuple[str, str]],
    why: str,
) -> None:
    """Expect one entry of a dict of answers, without giving it away."""
    value = got[key]
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    value = tuple(value) if isinstance(value, list) else value
    on = f"the entry {key!r}"
    with contextlib.suppress(TypeError):  # what cannot be a key is no known mistake
        if value in mistakes:
            name, why = mistakes[value]
            refuse(name, why, on=on, got=show(value))
    if not expect.close(value, expected, BY_HAND):
        expect.true(False, f"{key!r} is wrong", on=on, got=show(value), why=why)


def _expect_by_hand(
    got: torch.Tensor,
    expected: torch.Tensor,
    *,
    what: str,
    on: str,
    why: str = "",
    mistakes: Iterable[Mistake] = (),
) -> None:
    """Expect a matrix that a student works out, without giving its numbers away."""
    if expect.close(got, expected, BY_HAND):
        return
    for mistake in mistakes:
        if expect.close(got, mistake.value, BY_HAND):
            refuse(mistake.name, mistake.why, on=on, got=show(got))
    wrong = ~torch.isclose(got, expected, rtol=BY_HAND, atol=BY_HAND)
    place = wrong.nonzero()[0].tolist()
    count = f"{what}: {int(wrong.sum())} of {wrong.numel()} numbers are wrong"
    expect.true(
        False, f"{count}, first at index {place}", on=on, got=show(got), why=why
    )


# --- projections ----------------------------------------------------------------------


@chapter.check(section="attention-projections")
def project_qkv(student: StudentFunction, seed: int = 0) -> None:
    """Self- and cross-attention inputs, by hand and at random, any leading axes."""
    generator = seeded(seed)
    _expect_projections(
        student,
        torch.tensor([[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]]),
        torch.tensor([[1.0, 1.0], [2.0, 0.0]]),
        torch.tensor([[1.0], [-1.0]]),
        torch.tensor([[0.0], [2.0]]),
        torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]),
        on="the example by hand, with x_kv = [[1, 1], [2, 0]]",
    )
    for leading in ((), (2,), (3, 2)):
        t_q, t_kv, d_model, d_k, d_v = draw_sizes(generator, 5)
        _expect_projections(
            student,
            normal(generator, *leading, t_q, d_model),
            normal(generator, *leading, t_kv, d_model),
            normal(generator, d_model, d_k),
            normal(generator, d_model, d_k),
            normal(generator, d_model, d_v),
        )


def _expect_projections(student: StudentFunction, *inputs, on: str = "") -> None:
    x_q, x_kv, w_q, w_k, w_v = inputs
    on = on or (
        f"x_q {tuple(x_q.shape)}, x_kv {tuple(x_kv.shape)}, "
        f"w_q and w_k {tuple(w_q.shape)}, w_v {tuple(w_v.shape)}"
    )
    generator = seeded(1)
    square = tuple(normal(generator, 4, 4) for _ in inputs)
    expected = tuple(
        F.linear(x, w.mT) for x, w in ((x_q, w_q), (x_kv, w_k), (x_kv, w_v))
    )
    with _shapes_explained(student, square, project_candidates):
        got = student(*inputs)
    mistakes = known_mistakes(project_candidates(*inputs))
    expect.equal(got, expected, on=on, what="(q, k, v)", mistakes=mistakes)


# --- masks ----------------------------------------------------------------------------


def _expect_boolean(got: Data, on: str) -> None:
    """Name the two other kinds of mask: numbers 0 and 1, and 0 and -inf to add."""
    if not isinstance(got, torch.Tensor) or got.dtype == torch.bool:
        return
    name = "numbers instead of True and False"
    why = (
        "The course's masks are boolean. A mask of numbers invites arithmetic with the "
        "scores (0 times a score is an ordinary score, not 'never'), and ~mask fails."
    )
    if got.isneginf().any():
        name = "an additive mask of 0 and −∞"
        why = (
            "The formula adds such a mask to the scores. In this course a mask is "
            "boolean, True where a query may attend; the next functions turn it into "
            "−∞ themselves."
        )
    refuse(name, why, on=on, got=f"{got.dtype}", expected="torch.bool")


@chapter.check(section="attention-masks")
def causal_mask(student: StudentFunction, seed: int = 0) -> None:
    """Lower triangular, boolean, for several lengths."""
    lengths = draw_sizes(seeded(seed), 2)
    for length in (4, *lengths, 1):
        on = f"causal_mask({length})"
        got = student(length)
        expect.tensor(got, shape=(length, length), finite=False, what="mask", on=on)
        _expect_boolean(got, on)
        position = torch.arange(length)
        expect.equal(
            got,
            position[:, None] >= position[None, :],
            on=on,
            what="mask",
            mistakes=known_mistakes(causal_candidates(length)),
        )


@chapter.check(section="attention-padding")
def padding_mask(student: StudentFunction, seed: int = 0) -> None:
    """Shape (B, 1, T), boolean, True for real tokens, whatever the lengths."""
    generator = seeded(seed)
    hand = torch.tensor([2, 4, 1]), 5
    batch, width = draw_sizes(generator, 2)
    drawn = torch.randint(0, width, (batch,), generator=generator)
    drawn[0] = width  # one sequence fills its row
    for lengths, max_length in (hand, (drawn, width)):
        on = f"padding_mask(lengths={lengths.tolist()}, max_length={max_length})"
        shape = (len(lengths), 1, max_length)
        got = student(lengths, max_length)
        rows = [[[j < n for j in range(max_length)]] for n in lengths.tolist()]
        wanted = torch.tensor(rows)
        is_mask = isinstance(got, torch.Tensor) and got.dtype == torch.bool
        if is_mask and not expect.close(got, wanted):  # which may have symmetries
            for mistake in known_mistakes(padding_candidates(lengths, max_length)):
                if expect.close(got, mistake.value):
                    say = {"got": _show_mask(got), "expected": _show_mask(wanted)}
                    refuse(mistake.name, mistake.why, on=on, **say)
        expect.tensor(got, shape=shape, finite=False, what="the mask", on=on)
        _expect_boolean(got, on)
        expect.equal(got, wanted, on=on, what="the mask")


def _show_mask(mask: torch.Tensor) -> str:
    """Write a mask as rows of 1 and 0; of a large one, the first sequence only."""
    first = mask[0] if mask.numel() > 40 else mask
    rows = first.reshape(-1, mask.shape[-1]).int().tolist()
    of_first = ", of the first sequence:" if mask.numel() > 40 else ""
    lines = [" ".join(map(str, row)) for row in rows]
    return "\n".join([f"shape {tuple(mask.shape)}{of_first}", *lines])


# --- masked softmax -------------------------------------------------------------------


@chapter.check(section="attention-masks")
def masked_softmax(
    student: StudentFunction, softmax_student: StudentFunction, seed: int = 0
) -> None:
    """Scores of both signs and zero, masks that broadcast, rows without any key."""
    with expect.relying_on(softmax, softmax_student):
        _expect_masked_softmax(student, seed)


def _expect_masked_softmax(student: StudentFunction, seed: int) -> None:
    generator = seeded(seed)
    hand = torch.tensor([[1.0, -2.0, 0.0], [0.0, 3.0, -1.0]])
    mask = torch.tensor([[True, True, False], [True, False, True]])
    _expect_masked(student, hand, mask, _show_masked(hand, mask))
    batch, heads, t_q, t_k = draw_sizes(generator, 4)
    for shape, mask_shape in (
        ((batch, t_q, t_k), (t_q, t_k)),
        ((batch, t_q, t_k), (batch, 1, t_k)),
        ((batch, heads, t_q, t_k), (batch, 1, t_q, t_k)),
    ):
        scores = 2 * normal(generator, *shape)
        scores[..., 0, :] = 0.0  # a query to which all keys are alike
        mask = torch.rand(mask_shape, generator=generator) < 0.6
        mask[..., 1], mask[..., 0] = True, False  # every row keeps and hides something
        _expect_masked(student, scores, mask, f"scores {shape}, mask {mask_shape}")
    scores = torch.tensor([[10_000.0, -10_000.0, 9_999.0], [0.0, -10_000.0, 2.0]])
    mask = torch.tensor([[True, True, True], [False, True, False]])
    on = _show_masked(scores, mask)
    got = student(scores, mask)
    if isinstance(got, torch.Tensor) and got.shape == (2, 3) and not got[1, 1] > 0.5:
        why = (
            "Hiding keys after the softmax and dividing by the new sum is right on "
            "paper. But the softmax over all keys had given the only allowed one "
            "exp(-10002), which is 0 in floating point, and no division brings it "
            "back. Hide the scores before the softmax."
        )
        say = {"got": show(got), "expected": show(weights_of(scores, mask))}
        refuse("renormalised after the softmax", why, on=on, **say)
    _expect_masked(student, scores, mask, on, tolerance=1e-3)  # as in softmax
    plain = normal(generator, batch, t_q, t_k)
    on = "mask=None"
    with _no_mask_handled():
        got = student(plain)
    expect.equal(got, weights_of(plain), on=on)
    _expect_empty_rows(student, generator)


@contextlib.contextmanager
def _none_handled(name: str, why: str) -> Iterator[None]:
    """Name the mistake of using an argument that was left out."""
    try:
        yield
    except StudentError as error:
        if "None" not in error.text:
            raise
        got = f"{error.kind}: {describe_error(error)}"
        refuse(name, why, on=error.call, got=got)


def _no_mask_handled() -> contextlib.AbstractContextManager[None]:
    why = "The mask is optional. Without one, every key may be attended to."
    return _none_handled("mask=None is not handled", why)


def _show_masked(scores: torch.Tensor, mask: torch.Tensor) -> str:
    return f"scores {scores.tolist()}\nmask   {mask.tolist()}"


def _expect_masked(
    student: StudentFunction,
    scores: torch.Tensor,
    mask: torch.Tensor,
    on: str,
    tolerance: float = expect.TOLERANCE,
) -> None:
    expected = weights_of(scores, mask)
    mistakes = known_mistakes(masked_candidates(scores, mask))
    got = student(scores, mask)
    expect.equal(got, expected, on=on, mistakes=mistakes, tolerance=tolerance)


NOTHING = (
    "This query may attend to nothing (padding, for example). 'Nothing' means weights "
    "of 0, so that nothing is mixed in."
)


def _expect_empty_rows(student: StudentFunction, generator: torch.Generator) -> None:
    scores = (4 * normal(generator, 2, 3)).round() / 4
    mask = torch.tensor([[False, False, False], [True, False, True]])
    on = _show_masked(scores, mask) + ": the first row has no key"
    got = student(scores, mask)
    expect.tensor(got, shape=(2, 3), finite=False, on=on)
    _expect_rows_without_keys_zero(got[0], on)
    expect.equal(got, weights_of(scores, mask), on=on)
    cotangent = normal(generator, 2, 3)
    found = student.gradients(scores, mask, cotangent=cotangent).inputs[0]
    on = f"the gradient with respect to the scores, mask {show(mask)}"
    _expect_some_gradient(found, on)
    name = "NaN gradient on fully masked rows"
    why = (
        "The weights are right, the backward pass is not: it runs through a 0/0 or "
        "∞-∞ that was only replaced afterwards, and NaN times 0 stays NaN. One such "
        "row would spoil all parameters in one step. Replace the scores before the "
        "softmax (masked_fill or torch.where) and keep the division from being 0/0.\n"
        "If your softmax of exercise 4.1 makes a NaN and replaces it in the end, with "
        "nan_to_num for example, that is the place to mend."
    )
    _expect_finite(found, on=on, mistake=name, why=why)
    (wanted,) = torch.autograd.grad(
        (weights_of(scores.requires_grad_(), mask)[1] * cotangent[1]).sum(), scores
    )
    expect.equal(found, wanted, on=on, what="the gradient")


def _expect_rows_without_keys_zero(row: torch.Tensor, on: str) -> None:
    why = NOTHING + " A softmax over only −∞ computes 0/0."
    _expect_finite(row, on=on, mistake="NaN on fully masked rows", why=why)
    if (row.abs() > 1e-6).any():
        why = NOTHING + (
            " With −1e9 or the like in every place, the row is a row of equal scores, "
            "and the softmax shares the weight out among keys that are all forbidden."
        )
        zero = show(torch.zeros_like(row))
        name = "a large negative number instead of −∞"
        refuse(name, why, on=on, got=show(row), expected=zero)


# --- scaled dot-product attention -----------------------------------------------------


@chapter.check(
    section="attention-weighted-average",
    forbidden=(forbidden.SCALED_DOT_PRODUCT, forbidden.MULTI_HEAD),
)
def scaled_dot_product_attention(
    student: StudentFunction, masked_softmax_student: StudentFunction, seed: int = 0
) -> None:
    """By hand, and against PyTorch's own, with masks, any leading axes, gradients."""
    with expect.relying_on(_masked_softmax_alone, masked_softmax_student):
        _expect_attention_function(student, seed)


@chapter.check(section="attention-masks")
def _masked_softmax_alone(student: StudentFunction, seed: int = 0) -> None:
    _expect_masked_softmax(student, seed)


def _expect_attention_function(student: StudentFunction, seed: int) -> None:
    generator = seeded(seed)
    t_q, t_k, d_k, d_v, batch, heads = draw_sizes(generator, 6)
    plain = (
        normal(generator, t_q, d_k),
        normal(generator, t_k, d_k),
        normal(generator, t_k, d_v),
    )
    _expect_attention(student, *plain)
    _expect_attention(student, *plain, draw_mask(generator, t_q, t_k))
    q = torch.tensor([[2.0, 0.0, 0.0, 0.0]])
    k = torch.tensor([[math.log(3), 0.0, 0.0, 0.0], [0.0, 5.0, 0.0, 0.0]])
    v = torch.tensor([[4.0, 0.0, 8.0], [0.0, 4.0, 0.0]])
    hand = torch.tensor([[3.0, 1.0, 6.0]]), torch.tensor([[0.75, 0.25]])
    _expect_attention(student, q, k, v, on="the example by hand", expected=hand)
    for leading, mask_shape in (
        ((batch,), (t_q, t_k)),
        ((batch,), (batch, 1, t_k)),
        ((batch, heads), (batch, 1, t_q, t_k)),
        ((batch, heads), None),
    ):
        q = normal(generator, *leading, t_q, d_k)
        k = normal(generator, *leading, t_k, d_k)
        v = normal(generator, *leading, t_k, d_v)
        mask = mask_shape and draw_mask(generator, *mask_shape)
        with _two_dimensional_named(len(leading) + 2):
            _expect_attention(student, q, k, v, mask)
    _expect_attention_large(student, generator)
    _expect_attention_empty(student, generator)


@contextlib.contextmanager
def _more_axes_named(name: str, why: str) -> Iterator[None]:
    """Name what fails with leading axes although it was right without them."""
    try:
        yield
    except StudentError as error:
        if error.kind in ("NotImplementedError", "signature"):
            raise
        got = f"{error.kind}: {describe_error(error)}"
        refuse(name, why, on=error.call, got=got)
    except CheckFailure as failure:
        seen = f"\nWhat came out looks like: {failure.what}." if failure.mistake else ""
        failure.what, failure.mistake, failure.why = name, name, why + seen
        raise


def _two_dimensional_named(axes: int) -> contextlib.AbstractContextManager[None]:
    if axes == 2:
        return contextlib.nullcontext()
    why = (
        f"One sequence works, {axes} axes do not. Count from the end: exchange the "
        "last two with .mT or .transpose(-2, -1) (.T turns all of them round), take "
        "sizes as shape[-1] and shape[-2], sum over dim=-1."
    )
    return _more_axes_named("only works for 2-D inputs", why)


def _expect_attention(
    student: StudentFunction, q, k, v, mask=None, on: str = "", expected=None
) -> None:
    shapes = [f"{n} {tuple(x.shape)}" for n, x in (("q", q), ("k", k), ("v", v))]
    shapes += [] if mask is None else [f"mask {tuple(mask.shape)}"]
    generator = seeded(2)
    square = tuple(normal(generator, 4, 4) for _ in range(3))
    square += () if mask is None else (torch.ones(4, 4, dtype=torch.bool).tril(),)
    inputs = (q, k, v) if mask is None else (q, k, v, mask)
    plain = q.dim() == 2
    with (
        _shapes_explained(student, square, attention_candidates)
        if plain
        else contextlib.nullcontext(),
        _no_mask_handled() if mask is None else contextlib.nullcontext(),
    ):
        got = student(*inputs)
    mistakes = known_mistakes(attention_candidates(*inputs))
    wanted = expected or torch_attention(q, k, v, mask)
    _expect_pair(got, wanted, on or ", ".join(shapes), mistakes)


def _expect_pair(
    got: Data, expected: tuple, on: str, mistakes: Iterable[Mistake]
) -> None:
    """Expect (output, weights); name known mistakes, then look at one after another."""
    if not expect.close(got, expected):
        for mistake in mistakes:
            if expect.close(got, mistake.value):
                say = {"got": _show_pair(got), "expected": _show_pair(expected)}
                refuse(mistake.name, mistake.why, on=on, **say)
    got = several(got)
    if not (isinstance(got, tuple) and len(got) == 2):
        why = "The function ends without `return`." if got is None else ""
        what = "the result is not a pair (output, weights)"
        wanted = _show_pair(expected)
        expect.true(False, what, on=on, got=show(got), expected=wanted, why=why)
    expect.equal(got[1], expected[1], on=on, what="weights")
    expect.equal(got[0], expected[0], on=on, what="output")


def _show_pair(pair: Data) -> str:
    """Write output and weights by their shapes and first rows."""
    if isinstance(pair, torch.Tensor):
        return f"one tensor {_first_row(pair)}"
    if not isinstance(pair, tuple) or len(pair) != 2:
        return show(pair)
    return "\n".join(
        f"{name:<7} {_first_row(part)}"
        for name, part in zip(("output", "weights"), pair, strict=True)
    )


def _first_row(part: Data) -> str:
    if not isinstance(part, torch.Tensor) or part.dim() < 2:
        return show(part)
    row = part.reshape(-1, part.shape[-1])[0]
    return f"{tuple(part.shape)}, first row {show(row)}"


def _expect_attention_large(
    student: StudentFunction, generator: torch.Generator
) -> None:
    q, k = 100 * normal(generator, 3, 4), 100 * normal(generator, 5, 4)
    v = normal(generator, 5, 2)
    on = "queries and keys a hundred times as large"
    got = several(student(q, k, v))
    if isinstance(got, tuple) and got:
        why = "Scores of some ten thousand overflow in exp. Is it your own softmax?"
        name = "not stable for large scores"
        _expect_finite(got[-1], on=on, mistake=name, why=why)
    _expect_pair(got, torch_attention(q, k, v), on, ())


def _expect_attention_empty(
    student: StudentFunction, generator: torch.Generator
) -> None:
    q, k = normal(generator, 3, 4), normal(generator, 5, 4)
    v = normal(generator, 5, 2)
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[1], mask[2, :2] = False, False
    on = "q (3, 4), k (5, 4), v (5, 2), a mask whose row 1 is all False"
    got = several(student(q, k, v, mask))
    if isinstance(got, tuple) and len(got) == 2 and isinstance(got[1], torch.Tensor):
        _expect_rows_without_keys_zero(got[1][1], on)
    _expect_pair(got, torch_attention(q, k, v, mask), on, ())
    cotangent = normal(generator, 3, 2)
    found = student.gradients(
        q, k, v, mask, wrt=(0, 1, 2), cotangent=cotangent, output=0
    ).inputs
    inputs = [x.clone().requires_grad_() for x in (q, k, v)]
    kept = torch.tensor([0, 2])  # PyTorch's own gradient of the row without keys aside
    output = torch_attention(inputs[0][kept], *inputs[1:], mask[kept])[0]
    wanted = torch.autograd.grad((output * cotangent[kept]).sum(), inputs)
    for name, got_one, wanted_one in zip("qkv", found, wanted, strict=True):
        where = f"the gradient with respect to {name}; {on}"
        _expect_some_gradient(got_one, where)
        mistake = "NaN gradient on fully masked rows"
        why = "A row without keys spoils the backward pass: see masked_softmax."
        _expect_finite(got_one, on=where, mistake=mistake, why=why)
        expect.equal(got_one, wanted_one, on=where, what=f"the gradient of {name}")


# --- the attention layer --------------------------------------------------------------


@chapter.check(
    section="attention-cross",
    forbidden=(forbidden.SCALED_DOT_PRODUCT, forbidden.MULTI_HEAD),
)
def attention_module(
    student: StudentModule,
    attention_student: StudentFunction,
    project_student: StudentFunction,
    seed: int = 0,
) -> None:
    """Parameters, self- and cross-attention with given weights, masks, gradients."""
    with (
        expect.relying_on(_attention_alone, attention_student),
        expect.relying_on(project_qkv, project_student),
    ):
        _expect_layer(student, seed)


@chapter.check(section="attention-weighted-average")
def _attention_alone(student: StudentFunction, seed: int = 0) -> None:
    _expect_attention_function(student, seed)


def _expect_layer(student: StudentModule, seed: int) -> None:
    generator = seeded(seed)
    t_q, t_kv, d_model, d_k, d_v, batch = draw_sizes(generator, 6)
    build = f"Attention(d_model={d_model}, d_k={d_k}, d_v={d_v})"
    layer = student.build(d_model, d_k, d_v)
    shapes = {"w_q": (d_model, d_k), "w_k": (d_model, d_k), "w_v": (d_model, d_v)}
    _expect_parameters(layer, shapes, build)
    state = {name: normal(generator, *shape) for name, shape in shapes.items()}
    layer.load_state_dict(state)
    x_q = normal(generator, batch, t_q, d_model)
    x_kv = normal(generator, batch, t_kv, d_model)
    weights = tuple(state.values())
    for x, on in ((x_q[0], "one sequence"), (x_q, "a batch"), (x_kv, "a batch")):
        on = f"{build}, self-attention over {on} {tuple(x.shape)}"
        why = (
            "Called with x_q alone, the layer is self-attention: keys and values come "
            "from x_q as well."
        )
        with _none_handled("x_kv=None is not handled", why):
            got = layer(x)
        _expect_layer_pair(got, x, x, weights, None, on)
    square = tuple(normal(generator, 4, 4) for _ in range(5))
    trial = student.build(4, 4, 4)

    def on_square(*inputs: torch.Tensor) -> Data:
        trial.load_state_dict(dict(zip(shapes, inputs[2:], strict=True)))
        return trial(*inputs[:2])

    on = f"{build}, x_q {tuple(x_q.shape)}, x_kv {tuple(x_kv.shape)}"
    with _shapes_explained(on_square, square, layer_candidates):
        got = layer(x_q, x_kv)
        _expect_layer_pair(got, x_q, x_kv, weights, None, on)
        mask = draw_mask(generator, batch, 1, t_kv)
        got = layer(x_q, x_kv, mask)
    on += f", mask {tuple(mask.shape)}"
    _expect_layer_pair(got, x_q, x_kv, weights, mask, on)
    _expect_layer_gradients(layer, x_q, x_kv, on)
    _expect_layer_start(student)


def _expect_layer_pair(got, x_q, x_kv, weights, mask, on: str) -> None:
    w_q, w_k, w_v = weights
    expected = torch_attention(x_q @ w_q, x_kv @ w_k, x_kv @ w_v, mask)
    candidates = layer_candidates(x_q, x_kv, *weights, mask)
    _expect_pair(got, expected, on, known_mistakes(candidates))


def _expect_parameters(
    layer: StudentInstance, shapes: dict[str, tuple[int, ...]], on: str
) -> None:
    """Expect parameters of these names and shapes, and no others."""
    state, names = layer.state_dict(), layer.parameter_names()
    expected = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    got = ", ".join(
        f"{name} {tuple(x.shape)}" + ("" if name in names else ", not one of its own")
        for name, x in state.items()
    )
    say = {"on": on, "got": got or "no parameters", "expected": expected}

    missing = [name for name in shapes if name not in names]
    extra = [name for name in names if name not in shapes]
    wrong = [
        name for name in shapes if name in state and state[name].shape != shapes[name]
    ]
    for condition, name, why in (
        (
            any("bias" in name for name in names),
            "the projections have a bias",
            "Here y = x W, without a bias.",
        ),
        (
            any(name.endswith(".weight") for name in names),
            "nn.Linear instead of nn.Parameter",
            "nn.Linear would do the same work, but it hides the matrix and stores its "
            "transpose. Here the matrices themselves are the parameters: "
            "self.w_q = nn.Parameter(...).",
        ),
        (
            missing == ["w_k"]
            and not extra
            and "w_k" in state
            and not wrong
            and torch.equal(state["w_k"], state["w_q"]),
            "one matrix for queries and keys",
            "w_k is the same parameter as w_q. Then every score of self-attention is "
            "symmetric, S = Sᵀ: 'car' would find 'blue' as much as 'blue' finds 'car'.",
        ),
        (
            bool(missing) and not extra,
            "the weights are not nn.Parameters",
            f"Not among the parameters: {', '.join(missing)}. Only an nn.Parameter "
            "that is an attribute of the module is found by an optimiser: an ordinary "
            "tensor or a buffer stays as it is.",
        ),
        (
            bool(missing),
            "the parameters have other names",
            "The check loads its own numbers by name: keep the names of the docstring.",
        ),
        (
            bool(extra),
            "one parameter too many",
            f"{', '.join(extra)} is not asked for.",
        ),
        (
            bool(wrong)
            and all(state[n].shape == shapes[n][::-1] for n in wrong)
            and wrong != ["v"],
            "weights stored transposed",
            "Vectors are rows, y = x W, so a matrix is (width in, width out). Only "
            "torch.nn.Linear stores the transpose.",
        ),
        (
            wrong == ["v"] and state["v"].dim() == 2,
            "v is a matrix with one column",
            "v is a vector, (d_hidden,). The product of (..., d_hidden) with it leaves "
            "no axis behind, so there is nothing to squeeze away.",
        ),
        (
            bool(wrong),
            "parameters of other shapes",
            f"Look at {', '.join(wrong)}.",
        ),
    ):
        if condition:
            refuse(name, why, **say)


def _expect_layer_gradients(layer: StudentInstance, x_q, x_kv, on: str) -> None:
    found = layer.gradients(x_q, x_kv, wrt=(0, 1), output=0)
    everything = dict(zip(("x_q", "x_kv"), found.inputs, strict=True))
    for name, gradient in (everything | found.parameters).items():
        where = f"the gradient with respect to {name}; {on}"
        _expect_some_gradient(gradient, where)
        what = "the gradient is zero"
        expect.true(bool(gradient.abs().sum() > 0), what, on=where)


def _expect_layer_start(student: StudentModule) -> None:
    d_model = 64
    state = student.build(d_model, 48, 32).parameters()
    for name, matrix in state.items():
        spread = matrix.std().item()
        say = {
            "on": f"Attention(d_model={d_model}, d_k=48, d_v=32), freshly built",
            "got": f"{name} with a standard deviation of {spread:.3f}",
            "expected": f"about 1/√d_model = {d_model**-0.5:.3f}",
        }
        if spread > 3 * d_model**-0.5:
            why = (
                "With entries of standard deviation 1, queries and keys grow with "
                "√d_model, and the softmax is saturated before the first step. Divide "
                "by √d_model."
            )
            refuse("the weights start too large", why, **say)
        if not spread > 0.1 * d_model**-0.5:
            why = (
                "With equal entries, all features get the same gradient; with zeros in "
                "w_q and w_k, these two get none at all. Start from random numbers."
            )
            refuse("the weights all start alike", why, **say)
        mean = matrix.mean().item()
        if abs(mean) > 0.5 * spread:
            say["got"] = f"{name} with a mean of {mean:.3f}"
            say["expected"] = "a mean of about 0"
            why = (
                "The entries are drawn around 0: torch.randn. torch.rand gives numbers "
                "between 0 and 1, and with positive entries only all features of a "
                "token rise and fall together."
            )
            refuse("the weights do not start around 0", why, **say)


# --- the geometric example ------------------------------------------------------------


@chapter.check(section="attention-geometry")
def geometric_example(
    student: StudentFunction, attention_student: StudentFunction, seed: int = 0
) -> None:
    """Source 0's angles, to 1e-3 of the values known, then others; who attends."""
    with expect.relying_on(_attention_alone, attention_student):
        known = {  # to four decimals, worked out with a calculator
            "scores": torch.tensor([[0.3827, 0.9239], [-0.9239, 0.3827]]),
            "scaled": torch.tensor([[0.2706, 0.6533], [-0.6533, 0.2706]]),
            "weights": torch.tensor([[0.4055, 0.5945], [0.2842, 0.7158]]),
            "output": torch.tensor([[0.7196, -0.0068], [0.7531, 0.1614]]),
        }
        on = "geometric_example(-π/4, π/8, 5π/16), the angles of source 0"
        _expect_geometry(student, ANGLES, known, on)
        drawn = math.pi * (2 * torch.rand(3, 3, generator=seeded(seed)) - 1)
        for angles in drawn.tolist():
            angles = [round(angle, 2) for angle in angles]
            on = f"geometric_example({', '.join(map(str, angles))})"
            _expect_geometry(student, angles, _from_differences(*angles), on)


def _from_differences(theta_q: float, theta_k: float, theta_v: float) -> dict:
    """Work the example out by formulas: a score depends on the angle between two."""
    delta = theta_q - theta_k
    cosine, sine, root = math.cos(delta), math.sin(delta), math.sqrt(2)
    blue = 1 / (1 + math.exp((-sine - cosine) / root))  # of blue on itself
    car = 1 / (1 + math.exp((cosine - sine) / root))  # of car on blue
    mixed = [
        [
            w * math.cos(theta_v) + (1 - w) * math.sin(theta_v),
            (1 - w) * math.cos(theta_v) - w * math.sin(theta_v),
        ]
        for w in (blue, car)
    ]
    scores = torch.tensor([[cosine, -sine], [sine, cosine]])
    return {
        "scores": scores,
        "scaled": scores / root,
        "weights": torch.tensor([[blue, 1 - blue], [car, 1 - car]]),
        "output": torch.tensor(mixed),
    }


def _expect_geometry(
    student: StudentFunction, angles: Sequence[float], right: dict, on: str
) -> None:
    got = student(*angles)
    _expect_dict(got, (*right, "car_to_blue"))
    matrices = {
        key: _expect_numbers(got[key], (2, 2), f"the entry {key!r}", on)
        for key in right
    }
    if not expect.close(matrices, right, BY_HAND):
        for mistake in known_mistakes(geometric_candidates(angles)):
            if expect.close(matrices, mistake.value, BY_HAND):
                say = {"got": _show_all(matrices), "expected": _show_all(right)}
                refuse(mistake.name, mistake.why, on=on, **say)
    for key, why in (
        ("scores", "Q Kᵀ as it is: it is divided in the next entry only."),
        ("scaled", "The scores divided by √d_k, and d_k is 2 here."),
        ("weights", "The softmax of each row of the scaled scores."),
    ):
        expect.equal(
            matrices[key], right[key], what=repr(key), on=on, why=why, tolerance=BY_HAND
        )
    if angles == ANGLES:
        _expect_no_misreading(matrices["output"], right["output"], on)
    expect.equal(
        matrices["output"],
        right["output"],
        what="'output'",
        on=on,
        why="A row of the output is a row of the weights times V.",
        tolerance=BY_HAND,
    )
    _expect_car_to_blue(got["car_to_blue"], right, on)


def _show_all(matrices: dict) -> str:
    return "\n".join(f"{key:<8}{show(value)}" for key, value in matrices.items())


def _expect_no_misreading(got: torch.Tensor, right: torch.Tensor, on: str) -> None:
    """Name the two remarks of source 0 on its output that are wrong."""
    say = {"on": f"output, for {on}", "got": show(got), "expected": show(right)}
    if (got[1, 1] - right[0, 1]).abs() < 2 * BY_HAND:
        why = (
            "Source 0 calls -0.007 the product of the second row of the weights with "
            "the second column of V. It is that of the first row, output[0, 1]."
        )
        refuse("−0.007 written for A₂ · V⁽²⁾", why, **say)
    if expect.close(got[:, 0], right[:, 0].flip(0), BY_HAND):
        why = (
            "Source 0 reads a 'slightly smaller contribution' off the angle. But an "
            "entry is a product, not an angle: the second row of the weights is "
            "longer, and output[1, 0] is larger than output[0, 0]."
        )
        refuse("the second row's first entry is smaller", why, **say)


def _expect_car_to_blue(value: Data, right: dict, on: str) -> None:
    value = value.tolist() if isinstance(value, torch.Tensor) else value
    say = {"on": f"'car_to_blue', for {on}", "got": show(value)}
    weights, wanted = right["weights"], right["weights"][1, 0].item()
    why = "One number is wanted: row of the one who asks, column of the one asked."
    number = type(value) in (int, float)
    what = "'car_to_blue' is not a number"
    expect.true(number, what, expected="a number", why=why, **say)
    if expect.close(value, wanted, BY_HAND):
        return
    say["expected"] = show(wanted)
    names = (
        (
            weights[0, 1],
            "rows and columns exchanged",
            "With this weight 'blue' (row 0, the query) attends to 'car'. The token "
            "that is being enriched is the row: 'car' is row 1.",
        ),
        (
            weights[1, 1],
            "the weight of 'car' on itself",
            "Row 1 is right. 'blue' is the column 0.",
        ),
        *(
            (
                right[key][1, 0],
                "a score instead of a weight",
                "This is a score. The weight is what the softmax makes of its row.",
            )
            for key in ("scores", "scaled")
        ),
    )
    for known, name, cause in names:
        if expect.close(value, known.item(), BY_HAND):
            refuse(name, cause, **say)
    expect.true(False, "'car_to_blue' is wrong", why=why, **say)


@chapter.check(section="attention-geometry")
def redirecting_angles(student: StudentFunction, seed: int = 0) -> None:
    """Row 1 attends to column 0 with a weight above .6, however the pair is turned."""
    got = student()
    on = "(theta_q, theta_k) in radians"
    pair = isinstance(got, (tuple, list)) and len(got) == 2
    what = "the result is not a pair of angles"
    expect.true(pair, what, on=on, got=show(got), expected="(theta_q, theta_k)")
    angles = [x.tolist() if isinstance(x, torch.Tensor) else x for x in got]
    numbers = all(type(x) in (int, float) and math.isfinite(x) for x in angles)
    expect.true(numbers, "the angles are not numbers", on=on, got=show(got))
    turned = rotation(0.7 * seed)  # turning both words changes nothing: try another
    weights = _redirected(turned, *angles)
    found = f"weights {show(weights)} for {tuple(round(x, 4) for x in angles)}"
    say = {"on": on, "got": found, "expected": "weights[1, 0] > 0.6"}
    if weights[1, 0] > 0.6:
        return
    if expect.close(angles, list(ANGLES[:2]), BY_HAND):
        why = (
            "With -π/4 and π/8 the key of 'blue' points away from the query of 'car': "
            "their score is -0.924, the smallest of the four."
        )
        refuse("the angles of source 0", why, **say)
    if _redirected(turned, *map(math.radians, angles))[1, 0] > 0.6:
        why = "In degrees these angles would do. Give them in radians: 180° is π."
        refuse("angles in degrees", why, **say)
    if weights[0, 1] > 0.6:
        why = (
            "weights[0, 1] is large: there 'blue' is the query. Row 1, 'car', is the "
            "one to be enriched, so it is weights[1, 0] that must grow."
        )
        refuse("'blue' attends to 'car' instead", why, **say)
    if weights[1, 0] > 0.5:
        why = (
            "The direction is right: 'car' prefers 'blue' by a little. Turn the query "
            "of 'car' further away from its own key; a negative score there helps."
        )
        refuse("the weight is not yet above 0.6", why, **say)
    why = (
        "A score of two unit vectors is the cosine of the angle between them. The "
        "query of 'car' must point towards the key of 'blue'; draw both."
    )
    refuse("'car' still attends to itself more than to 'blue'", why, **say)


def _redirected(x: torch.Tensor, theta_q: float, theta_k: float) -> torch.Tensor:
    q, k = x @ rotation(theta_q), x @ rotation(theta_k)
    return torch_attention(q, k, x)[1]


# --- the Jacobian of softmax ----------------------------------------------------------


@chapter.check(section="attention-jacobian")
def softmax_jacobian(student: StudentFunction, seed: int = 0) -> None:
    """Check by hand, against autograd's Jacobian, for any leading axes, saturated."""
    generator = seeded(seed)
    hand = torch.tensor([0.5, 0.3, 0.2])
    expected = torch.tensor(
        [[0.25, -0.15, -0.10], [-0.15, 0.21, -0.06], [-0.10, -0.06, 0.16]]
    )
    _expect_jacobian(student, hand, expected, "p = [0.5, 0.3, 0.2]")
    a, b, n = draw_sizes(generator, 3)
    for shape in ((n,), (b, n), (a, b, n)):
        scores = 2 * normal(generator, *shape)
        wanted = _autograd_jacobians(scores.reshape(-1, n)).reshape(*shape, n)
        p = torch.softmax(scores, -1)
        if len(shape) == 1:
            _expect_jacobian(student, p, wanted, f"p of shape {shape}")
            continue
        with _one_row_named():
            _expect_jacobian(student, p, wanted, f"p of shape {shape}")
    certain = torch.tensor([1.0, 0.0, 0.0, 0.0])
    _expect_jacobian(student, certain, torch.zeros(4, 4), "p = [1, 0, 0, 0]")


def _autograd_jacobians(rows: torch.Tensor) -> torch.Tensor:
    """Differentiate softmax of each row; a row's sum depends on no other row."""

    def summed(scores: torch.Tensor) -> torch.Tensor:
        return torch.softmax(scores, -1).sum(0)

    return torch.autograd.functional.jacobian(summed, rows).transpose(0, 1)


def _expect_jacobian(student: StudentFunction, p, expected, on: str) -> None:
    mistakes = known_mistakes(jacobian_candidates(p))
    got = student(p)
    why = (
        "On the diagonal p_i − p_i p_i, elsewhere −p_i p_j: p = (0.5, 0.3, 0.2) gives "
        "the first row 0.25, −0.15, −0.1. Every row sums to 0."
    )
    expect.equal(got, expected, on=on, what="the Jacobian", why=why, mistakes=mistakes)


def _one_row_named() -> contextlib.AbstractContextManager[None]:
    why = (
        "One vector of probabilities works, several at once do not. Every row has its "
        "own matrix: (…, n) becomes (…, n, n). Multiply p as a column, (…, n, 1), with "
        "p as a row, (…, 1, n), and look for the batched form of torch.diag."
    )
    return _more_axes_named("only works for one row", why)


# --- additive attention ---------------------------------------------------------------


@chapter.check(section="attention-additive")
def additive_attention(
    student: StudentModule, masked_softmax_student: StudentFunction, seed: int = 0
) -> None:
    """Parameters, scores one pair at a time as in the formula, masks, gradients."""
    with expect.relying_on(_masked_softmax_alone, masked_softmax_student):
        _expect_additive_layer(student, seed)


def _expect_additive_layer(student: StudentModule, seed: int) -> None:
    generator = seeded(seed)
    t_q, t_kv, d_q, d_k, d_hidden, batch = draw_sizes(generator, 6)
    build = f"AdditiveAttention(d_q={d_q}, d_k={d_k}, d_hidden={d_hidden})"
    layer = student.build(d_q, d_k, d_hidden)
    shapes = {"w_q": (d_q, d_hidden), "w_k": (d_k, d_hidden), "v": (d_hidden,)}
    _expect_parameters(layer, shapes, build)
    state = {name: normal(generator, *shape) for name, shape in shapes.items()}
    layer.load_state_dict(state)
    x_q = normal(generator, batch, t_q, d_q)
    x_kv = normal(generator, batch, t_kv, d_k)
    mask = draw_mask(generator, batch, 1, t_kv)
    first = x_q[0], x_kv[0]
    cases = [(*first, None), (*first, mask[0]), (x_q, x_kv, None), (x_q, x_kv, mask)]
    square = [normal(generator, *shape) for shape in [(4, 4)] * 4 + [(4,)]]
    trial = student.build(4, 4, 4)

    def on_square(*inputs: torch.Tensor) -> Data:
        trial.load_state_dict(dict(zip(shapes, inputs[2:], strict=True)))
        return trial(*inputs[:2])

    for q, kv, allowed in cases:
        inputs = (q, kv) if allowed is None else (q, kv, allowed)
        on = f"{build}, x_q {tuple(q.shape)}, x_kv {tuple(kv.shape)}"
        on += "" if allowed is None else f", mask {tuple(allowed.shape)}"
        candidates = additive_candidates(q, kv, *state.values(), allowed)
        expected = _pair_by_pair(q, kv, *state.values(), allowed)
        with (
            _shapes_explained(on_square, square, additive_candidates),
            _two_dimensional_named(q.dim()),
        ):
            _expect_pair(layer(*inputs), expected, on, known_mistakes(candidates))
    _expect_layer_gradients(layer, x_q, x_kv, build)


def _pair_by_pair(x_q, x_kv, w_q, w_k, v, mask=None) -> tuple:
    """Compute Bahdanau's score for one query and one key at a time."""
    scores = torch.empty(*x_q.shape[:-1], x_kv.shape[-2])
    for i in range(x_q.shape[-2]):
        for j in range(x_kv.shape[-2]):
            hidden = torch.tanh(x_q[..., i, :] @ w_q + x_kv[..., j, :] @ w_k)
            scores[..., i, j] = (hidden * v).sum(-1)
    weights = weights_of(scores, mask)
    return weights @ x_kv, weights


# --- cost -----------------------------------------------------------------------------


@chapter.check(section="attention-cost")
def attention_cost(student: StudentFunction, seed: int = 0) -> None:
    """Multiply-adds of the three parts, counted from the shapes, and the share."""
    generator = seeded(seed)
    cases = [(4, 8, cost(1024, 128, 128, 0.2))]
    for _ in range(2):
        t, d = (8 * x for x in draw_sizes(generator, 2))
        cases.append((t, d, _counted(t, d)))
    cases.append((512, 256, _counted(512, 256)))
    for t, d, expected in cases:
        on = f"attention_cost(length={t}, d_model={d})"
        got = student(t, d)
        _expect_dict(got, expected)
        if not expect.close(got, expected):
            for mistake in known_mistakes(cost_candidates(t, d)):
                if expect.close(got, mistake.value):
                    say = {"on": on, "got": f"{got}", "expected": f"{expected}"}
                    refuse(mistake.name, mistake.why, **say)
        for key, value in expected.items():
            why = (
                "Scores and mixing as a part of the whole, from 0 to 1."
                if key == "quadratic_share"
                else "Multiply the three sizes of each product; nothing else counts."
            )
            expect.equal(got[key], value, on=on, what=repr(key), why=why)


def _counted(t: int, d: int) -> dict:
    """Count the multiply-adds of each product (n, m) times (m, l) as n · m · l."""
    products = {
        "projections": [(t, d, d)] * 4,
        "scores": [(t, d, t)],
        "mixing": [(t, t, d)],
    }
    count = {key: sum(map(math.prod, shapes)) for key, shapes in products.items()}
    share = (count["scores"] + count["mixing"]) / sum(count.values())
    return {**count, "quadratic_share": share}


@chapter.check(section="attention-cost")
def path_length(student: StudentFunction, seed: int = 0) -> None:
    """Check steps until one output depends on all tokens, against a simulation."""
    generator = seeded(seed)
    lengths = [
        12,
        9,
        10,
        2,
        *(torch.randint(3, 40, (4,), generator=generator).tolist()),
    ]
    for n in lengths:
        _expect_steps(student, "attention", n, 3, 1)
        _expect_steps(student, "recurrent", n, 3, n)
        for kernel in (3, 2, 5):
            steps = next(s for s in range(n) if s * (kernel - 1) + 1 >= n)
            _expect_steps(student, "convolution", n, kernel, steps)
    name = "an unknown kind is accepted"
    on = "path_length('attentoin', 10)"
    expect.raises(
        "ValueError",
        lambda: student("attentoin", 10),
        on=on,
        why="A misspelt kind should not get a number: raise ValueError.",
        mistake=name,
    )


def _expect_steps(
    student: StudentFunction, kind: str, n: int, kernel: int, expected: int
) -> None:
    on = f"path_length({kind!r}, length={n}, kernel={kernel})"
    wrong: dict[str, list[tuple[int | float, str, str]]] = {
        "attention": [
            (n, "attention takes a step for each token", "Every token sees all others"
             " in one layer, however far away: 1."),
        ],
        "recurrent": [
            (1, "a recurrent network in one step", "The state passes the tokens one"
             " after another: as many steps as tokens."),
            (n - 1, "the first token's own step is not counted", "Reading the first"
             " token is a step, too: n steps for n tokens."),
        ],
        "convolution": [
            ((n - 1) // (kernel - 1), "rounded down", "A layer that is needed only in"
             " part is still a layer: round up."),
            (math.ceil(n / kernel), "each layer is taken to add a whole kernel", "The"
             " windows overlap: a layer widens the view by kernel − 1 tokens, from 1"
             " at the start."),
            (math.ceil(n / (kernel - 1)), "the view starts from nothing", "Before the"
             " first layer an output sees 1 token, itself: n − 1 are missing."),
            ((n - 1) / (kernel - 1), "not a whole number", "Layers are counted in whole"
             " numbers: round up."),
            (math.ceil(math.log(n, kernel)), "the view is taken to be multiplied",
             "A layer adds kernel − 1 tokens to the view: 3, 5, 7, …, not 3, 9, 27."),
        ],
    }  # fmt: skip
    got = student(kind, n, kernel)
    for value, name, why in wrong[kind]:
        if value != expected and type(got) in (int, float) and got == value:
            refuse(name, why, on=on, got=f"{got}", expected=f"{expected}")
    why = "How many tokens can one output know of after one step, after two, …?"
    expect.equal(got, expected, on=on, what="the number of steps", why=why, tolerance=0)
