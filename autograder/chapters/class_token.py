"""Checks of chapter 2, the class token and other ways to read a sequence.

The oracles are plain loops over sequences, PyTorch's own functions, values worked out
by hand, and properties. A known mistake is found by computing what it would give on the
same input.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.naming import Candidate, known_mistakes
from autograder.expect import Chapter, describe_error, refuse, show
from autograder.forms import several
from autograder.interface import (
    Data,
    StudentError,
    StudentFunction,
    StudentInstance,
    StudentModule,
)

chapter = Chapter(2, "02_class_token")
progress = chapter.progress

GARBAGE = 1e6  # what stands in the padding, to see whether anybody reads it


# --- shared ---------------------------------------------------------------------------


@contextlib.contextmanager
def _error_named(words: Iterable[str], name: str, why: str) -> Iterator[None]:
    """Name the mistake behind an exception whose text holds one of the words."""
    try:
        yield
    except StudentError as error:
        if not any(word in error.text for word in words):
            raise
        got = f"{error.kind}: {describe_error(error)}"
        refuse(name, why, on=error.call, got=got)


def _no_mask_handled() -> contextlib.AbstractContextManager[None]:
    why = "The mask is optional. Without one, every position counts as real."
    return _error_named(["None"], "mask=None is not handled", why)


@contextlib.contextmanager
def _shapes_explained(
    call: Callable[[], Data], candidates: Iterable[Candidate]
) -> Iterator[None]:
    """Name the mistake behind an error of shapes.

    ``call`` and ``candidates`` work on inputs whose sizes are all equal: there, what
    failed with an exception has a value, and the value tells which mistake it is.
    """
    try:
        yield
    except StudentError as error:
        if error.kind in ("RuntimeError", "IndexError", "ValueError"):
            with contextlib.suppress(StudentError):
                got = call()
                for mistake in known_mistakes(candidates):
                    if expect.close(got, mistake.value):
                        said = f"{error.kind}: {describe_error(error)}"
                        refuse(mistake.name, mistake.why, on=error.call, got=said)
        raise


def _expect_some_gradient(found: torch.Tensor | None, on: str) -> None:
    if found is not None:
        return
    why = (
        "A step cut the result off from what it was made of, so nothing before it "
        "could learn. Stay in PyTorch: no .detach(), .data, .item(), torch.no_grad() "
        "and no torch.tensor(...) of a tensor."
    )
    refuse("no gradient comes back", why, on=on, got="None", expected="a tensor")


def _expect_gradient(
    found: torch.Tensor | None, wanted: torch.Tensor, on: str, why: str = ""
) -> None:
    _expect_some_gradient(found, on)
    expect.equal(found, wanted, on=on, what="the gradient", why=why, tolerance=1e-4)


ONLY_PARAMETERS = (
    "Only an nn.Parameter that is an attribute of the module is found by an optimiser: "
    "an ordinary tensor or a buffer keeps the numbers it started from."
)


def _expect_parameters(
    layer: StudentInstance,
    shapes: dict[str, tuple[int, ...]],
    on: str,
    own: Callable[[dict, dict], Iterable[tuple[bool, str, str]]] = lambda *_: (),
) -> None:
    """Expect parameters of these names and shapes, and no others.

    ``own`` adds an exercise's own mistakes from the state and the wanted shapes.
    """
    state, names = layer.state_dict(), layer.parameter_names()
    expected = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    described = [
        f"{name} {tuple(x.shape)}" + ("" if name in names else " (not a parameter)")
        for name, x in state.items()
    ]
    say = {"on": on, "got": ", ".join(described) or "no parameters"}
    missing = [name for name in shapes if name not in names]
    extra = [name for name in names if name not in shapes]
    wrong = [n for n in shapes if n in state and state[n].shape != shapes[n]]
    for condition, name, why in (
        *own(state, shapes),
        (
            bool(missing) and any(n in state for n in missing),
            "a buffer instead of a parameter",
            f"{', '.join(missing)} moves with the module but is never trained: it "
            "stays frozen. " + ONLY_PARAMETERS,
        ),
        (
            bool(missing)
            and any(n.endswith(".weight") for n in extra)
            and not any("." in n for n in shapes),
            "nn.Linear instead of nn.Parameter",
            "nn.Linear would do the same work, but it hides the matrix and stores its "
            "transpose. Here the parameters themselves have the names of the "
            "docstring: self.weight = nn.Parameter(...).",
        ),
        (
            missing == ["bias"] and not extra,
            "the bias is missing",
            "y = x W + b: the bias is an nn.Parameter (classes,), zeros at the start.",
        ),
        (
            bool(missing) and not extra,
            "an ordinary tensor instead of a parameter",
            f"Not among the parameters: {', '.join(missing)}. " + ONLY_PARAMETERS,
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
            bool(wrong) and all(state[n].shape == shapes[n][::-1] for n in wrong),
            "weights stored transposed",
            "Vectors are rows, y = x W + b, so a weight is (width in, width out). Only "
            "torch.nn.Linear stores the transpose.",
        ),
        (bool(wrong), "parameters of other shapes", f"Look at {', '.join(wrong)}."),
    ):
        if condition:
            refuse(name, why, expected=expected, **say)


def _draw_real(generator: torch.Generator, batch: int, length: int) -> torch.Tensor:
    """Draw a padding mask (B, 1, T): the last sequence full, the others not."""
    lengths = torch.randint(1, length, (batch,), generator=generator)
    lengths[-1] = length  # the first is short: of large tensors, its row is shown
    return (torch.arange(length) < lengths[:, None])[:, None]


def _mean_of_real(hidden: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Average the rows that are real, one sequence after another."""
    if mask is None:
        return torch.stack([each.mean(0) for each in hidden])
    picked = [h[real[0]] for h, real in zip(hidden, mask, strict=True)]
    zero = torch.zeros_like(hidden[0, 0])
    return torch.stack([rows.mean(0) if len(rows) else zero for rows in picked])


# --- the class token ------------------------------------------------------------------


@chapter.check(section="class-token-prepend")
def class_token(student: StudentModule, seed: int = 0) -> None:
    """One shared parameter, first in every sequence, trained by every sequence."""
    generator = seeded(seed)
    batch, length, d_model = draw_sizes(generator, 3, largest=8)
    hand = torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    _expect_prepended(student, hand, torch.tensor([[0.5, -0.5]]), default=True)
    for count, shape in ((1, (batch, length, d_model)), (3, (length, 5, 4))):
        token = normal(generator, count, shape[-1])
        x = normal(generator, *shape)
        _expect_prepended(student, x, token, default=count == 1)
    _expect_prepended(student, x[:1], normal(generator, 2, 4))
    _expect_token_gradients(student, generator)
    _expect_token_start(student)


def _show_build(name: str, *args: Data, **kwargs: Data) -> str:
    parts = [*map(str, args), *(f"{key}={value}" for key, value in kwargs.items())]
    return f"{name}({', '.join(parts)})"


def _build_token(
    student: StudentModule, count: int, d_model: int, *, default: bool = False
) -> tuple[StudentInstance, str]:
    options = {} if default else {"count": count}
    on = _show_build("ClassToken", d_model, **options)
    layer = student.build(d_model, **options)
    _expect_parameters(layer, {"token": (count, d_model)}, on, _token_shapes)
    return layer, on


def _token_shapes(state: dict, shapes: dict) -> Iterator[tuple[bool, str, str]]:
    wanted = shapes["token"]
    found = tuple(state["token"].shape) if "token" in state else wanted
    yield (
        len(found) == 3 and found[-2:] == wanted,
        "an axis too many in the parameter",
        "The batch is no business of a parameter: store (count, d_model) and let "
        "expand add the axis of the batch in forward, for batches of any size.",
    )
    yield (
        found == wanted[1:],
        "an axis missing in the parameter",
        "Store (count, d_model), also when count is 1: several class tokens then need "
        "no other code.",
    )
    yield (
        found != wanted and found == (1, wanted[1]),
        "one vector for all class tokens",
        "count class tokens are count vectors of their own. If they were one vector, "
        "the encoder could not tell them apart, and their outputs would be equal.",
    )


def _expect_prepended(
    student: StudentModule,
    x: torch.Tensor,
    token: torch.Tensor,
    *,
    default: bool = False,
) -> None:
    layer, on = _build_token(student, *token.shape, default=default)
    layer.load_state_dict({"token": token})
    on += f", x {tuple(x.shape)}"
    if x.numel() <= 8:
        on = f"token {show(token)}, x {x.tolist()}"
    why = (
        "torch.cat joins tensors that agree on every axis but one, and it does not "
        "broadcast. Give the token the axis of the batch first: "
        "self.token.expand(number of sequences, -1, -1) is (B, count, d_model)."
    )
    words = ["Tensors must have same number of dimensions", "Sizes of tensors must"]
    other = [f"must match except in dimension {axis}" for axis in (0, 2)]
    advice = (
        "Axis 0 is the batch, axis 2 the features. The class token is one more "
        "position, axis 1: torch.cat(..., dim=1)."
    )
    with (
        _error_named(words, "the class token is not expanded over the batch", why),
        _error_named(other, "joined along another axis than the positions", advice),
    ):
        got = layer(x)
    expected = torch.stack([torch.cat((token, sequence)) for sequence in x])
    mistakes = known_mistakes(_token_candidates(x, token))
    why = "Every sequence begins with the parameter as it is, and x follows unchanged."
    expect.equal(got, expected, on=on, why=why, mistakes=mistakes)


def _token_candidates(x: torch.Tensor, token: torch.Tensor) -> Iterator[Candidate]:
    count = len(token)
    tokens = token.expand(len(x), *token.shape)
    yield (
        "the class token is appended at the end",
        lambda: torch.cat((x, tokens), 1),
        "The order in torch.cat is the order of the positions. At the front the token "
        "is at position 0 whatever the length; at the end, padding would come before "
        "it.",
    )
    yield (
        "the class token replaces the first token",
        lambda: torch.cat((tokens, x[:, count:]), 1),
        "The sequence is still T long, and its beginning is gone. The class token is "
        "one position more: the result is count + T long.",
    )
    yield (
        "the class token is added to every token",
        lambda: x + token[:1],
        "A sum shifts all tokens by the same vector and adds no position. The class "
        "token stands beside the others: torch.cat along the axis of the positions.",
    )
    yield (
        "a class token before every token",
        lambda: torch.stack((tokens[:, :1].expand_as(x), x), 2).flatten(1, 2),
        "One class token serves the whole sequence; it collects from all tokens.",
    )
    yield (
        "one token per sequence position",
        lambda: torch.cat((tokens[:, :1].expand_as(x), x), 1),
        "T copies of the class token were prepended. expand the axis of the batch, "
        "and leave that of the positions at count.",
    )
    yield (
        "the class token is a sequence of its own",
        lambda: torch.cat((token[:1].expand(1, *x.shape[1:]), x), 0),
        "Joined along axis 0, it is another sequence in the batch, and no attention "
        "ever connects sequences. Positions are axis 1: dim=1.",
    )
    yield (
        "the factor 0.02 is applied at every call",
        lambda: torch.cat((0.02 * tokens, x), 1),
        "Multiply the random numbers once, before they become the parameter. What "
        "stands in front is then the parameter itself.",
    )
    yield (
        "several class tokens in reverse order",
        lambda: torch.cat((tokens.flip(1), x), 1),
        "Row i of the parameter belongs at position i, where the head of task i reads.",
    )
    yield (
        "only one of several class tokens is prepended",
        lambda: torch.cat((tokens[:, :1], x), 1),
        "With count class tokens the result is count + T long.",
    )


def _expect_token_gradients(student: StudentModule, generator: torch.Generator) -> None:
    batch, length, d_model, count = draw_sizes(generator, 4, largest=8)
    layer, on = _build_token(student, count, d_model)
    x = normal(generator, batch, length, d_model)
    cotangent = normal(generator, batch, count + length, d_model)
    found = layer.gradients(x, cotangent=cotangent)
    where = f"the gradient with respect to token; {on}, x {tuple(x.shape)}"
    why = "One token serves all sequences, so their gradients add up."
    _expect_gradient(found.parameters["token"], cotangent[:, :count].sum(0), where, why)
    where = f"the gradient with respect to x; {on}"
    _expect_gradient(found.inputs[0], cotangent[:, count:], where)


def _expect_token_start(student: StudentModule) -> None:
    layer, on = _build_token(student, 40, 64)
    token = layer.state_dict()["token"]
    say = {
        "on": f"{on}, freshly built",
        "got": f"token with a standard deviation of {token.std().item():.3f}",
        "expected": "about 0.02",
    }
    if token.std() > 0.1:
        why = (
            "A vector of norm √d_model that means nothing yet would drown what the "
            "tokens say. Start small: 0.02 times random numbers."
        )
        refuse("the class token starts too large", why, **say)
    if token.std(0).max() < 1e-6:
        why = (
            "Equal class tokens attend alike, give equal outputs and get equal "
            "gradients from what they share. Random numbers make them different. (A "
            "single class token may start at 0; ViT's does.)"
        )
        refuse("the class tokens all start alike", why, **say)
    if abs(token.mean()) > 0.3 * token.std():
        why = (
            "torch.rand draws from 0 to 1; torch.randn draws from a normal "
            "distribution with mean 0."
        )
        say["got"] = f"token with a mean of {token.mean().item():.3f}"
        say["expected"] = "about 0"
        refuse("the mean of the start is not 0", why, **say)
    small = bool(token.std() > 0.002)
    what = "the class token starts too small"
    expect.true(small, what, why="Draw it with 0.02 * torch.randn(...).", **say)


# --- the mask -------------------------------------------------------------------------


@chapter.check(section="class-token-mask")
def mask_with_class_token(student: StudentFunction, seed: int = 0) -> None:
    """(B, 1, T) becomes (B, 1, count + T), the new places True, the old unchanged."""
    generator = seeded(seed)
    hand = torch.tensor([[[True, True, True]], [[True, False, False]]])
    _expect_longer_mask(student, hand, 1, default=True)
    for count in (1, 2, 3):
        batch, length = draw_sizes(generator, 2, largest=8)
        mask = _draw_real(generator, batch, length)
        mask[-1] = False  # a sequence without any real token
        _expect_longer_mask(student, mask, count)


def _rows(mask: torch.Tensor) -> str:
    """Write a mask as rows of 1 and 0."""
    rows = mask.reshape(-1, mask.shape[-1]).int().tolist() if mask.dim() else [[]]
    lines = [" ".join(map(str, row)) for row in rows[:8]]
    lines += ["…"] if len(rows) > 8 else []
    return "\n".join([f"shape {tuple(mask.shape)}", *lines])


def _expect_longer_mask(
    student: StudentFunction, mask: torch.Tensor, count: int, *, default: bool = False
) -> None:
    options = {} if default else {"count": count}
    got = student(mask, **options)
    on = f"count={count}, mask of {_rows(mask)}"
    wanted = torch.tensor([[[True] * count + row[0]] for row in mask.tolist()])
    if isinstance(got, torch.Tensor) and got.dtype != torch.bool:
        why = (
            "torch.ones(...) gives numbers unless it is told dtype=torch.bool, and "
            "torch.cat of numbers and booleans gives numbers. Masks of the course are "
            "boolean: ~mask and masked_fill need that."
        )
        say = {"got": f"{got.dtype}", "expected": "torch.bool"}
        refuse("numbers instead of True and False", why, on=on, **say)
    if isinstance(got, torch.Tensor) and not expect.close(got, wanted):
        for mistake in known_mistakes(_longer_mask_candidates(mask, count)):
            if expect.close(got, mistake.value):
                say = {"got": _rows(got), "expected": _rows(wanted)}
                refuse(mistake.name, mistake.why, on=on, **say)
    shape = tuple(wanted.shape)
    expect.tensor(got, shape=shape, dtype=torch.bool, what="the mask", on=on)
    expect.equal(got, wanted, on=on, what="the mask")


def _longer_mask_candidates(mask: torch.Tensor, count: int) -> Iterator[Candidate]:
    batch, _, length = mask.shape
    real = torch.ones(batch, 1, count, dtype=torch.bool)
    yield (
        "the mask is not extended",
        lambda: mask,
        "The sequence has grown by count positions, the mask has not. The two shapes "
        "no longer fit; or, worse, they fit and every entry is one place off.",
    )
    yield (
        "the mask is extended with False",
        lambda: torch.cat((~real, mask), -1),
        "False means padding: nobody could attend to the class token, not even itself. "
        "It is always real, so it gets True.",
    )
    yield (
        "the mask is extended at the end",
        lambda: torch.cat((mask, real), -1),
        "The class tokens stand at the front, so their entries do, too. At the end, "
        "every token gets the entry of its neighbour, and the last padding is real.",
    )
    yield (
        "the mask is inverted",
        lambda: torch.cat((real, ~mask), -1),
        "True means a real token, before and after. (PyTorch's "
        "src_key_padding_mask is the other way round; invert only there.)",
    )
    yield (
        "the mask is inverted",
        lambda: ~torch.cat((real, mask), -1),
        "True means a real token, before and after. (PyTorch's "
        "src_key_padding_mask is the other way round; invert only there.)",
    )
    yield (
        "the first entry is copied",
        lambda: torch.cat((mask[..., :1].expand(-1, -1, count), mask), -1),
        "That is True only where the first token is real. In an empty sequence it is "
        "not, and then nothing at all may be attended to. Class tokens are always "
        "real: True.",
    )
    yield (
        "one entry whatever count is",
        lambda: torch.cat((real[..., :1], mask), -1),
        "Each of the count class tokens needs an entry of its own.",
    )
    yield (
        "the mask loses its middle axis",
        lambda: torch.cat((real, mask), -1)[:, 0],
        "Keep (B, 1, count + T): the axis in the middle is there to broadcast over the "
        "queries.",
    )
    yield (
        "the mask grows along the wrong axis",
        lambda: torch.cat(
            (torch.ones(batch, count, length, dtype=torch.bool), mask), 1
        ),
        "Keys are the last axis, dim=-1. The axis in the middle stays at 1.",
    )
    yield (
        "everything is real",
        lambda: torch.ones(batch, 1, count + length, dtype=torch.bool),
        "The padding must stay hidden: keep the entries of the old mask.",
    )


# --- heads ----------------------------------------------------------------------------

HeadCandidates = Callable[..., Iterator[Candidate]]


@chapter.check(section="class-token-head")
def class_head(student: StudentModule, seed: int = 0) -> None:
    """Logits from position 0, from nothing else; parameters; gradients."""
    _expect_head(student, "ClassHead", seed, _at_0, _class_head_candidates)


@chapter.check(section="class-token-per-token")
def token_head(student: StudentModule, seed: int = 0) -> None:
    """Logits for every position, with the same parameters."""
    _expect_head(student, "TokenHead", seed, _everywhere, _token_head_candidates)
    generator = seeded(seed + 1)
    length, d_model, classes = draw_sizes(generator, 3, largest=8)
    layer = student.build(d_model, classes)
    state = {
        "weight": normal(generator, d_model, classes),
        "bias": torch.zeros(classes),
    }
    layer.load_state_dict(state)
    order = torch.randperm(length, generator=generator)
    x = normal(generator, 2, length, d_model)
    on = f"hidden {tuple(x.shape)}, and the same rows in the order {order.tolist()}"
    what = "the logits of the reordered rows"
    why = "Each position is read for itself, so reordered rows give reordered logits."
    expect.equal(layer(x[:, order]), layer(x)[:, order], on=on, what=what, why=why)


def _at_0(hidden: torch.Tensor) -> torch.Tensor:
    return torch.stack([sequence[0] for sequence in hidden])


def _everywhere(hidden: torch.Tensor) -> torch.Tensor:
    return hidden


def _expect_head(
    student: StudentModule,
    name: str,
    seed: int,
    read: Callable[[torch.Tensor], torch.Tensor],
    candidates: HeadCandidates,
) -> None:
    generator = seeded(seed)
    hand = torch.tensor([[[1.0, 2.0], [3.0, 0.0], [2.0, 4.0]]])
    weight = torch.tensor([[1.0, 0.0, -1.0], [0.0, 1.0, 1.0]])
    on = "the example by hand, hidden [[[1, 2], [3, 0], [2, 4]]]"
    numbers = (hand, weight, torch.tensor([0.5, 0.0, 0.0]))
    _expect_logits(student, name, read, candidates, *numbers, on=on)
    for _ in range(2):
        batch, length, d_model, classes = draw_sizes(generator, 4, largest=8)
        _expect_logits(
            student,
            name,
            read,
            candidates,
            normal(generator, batch, length, d_model),
            normal(generator, d_model, classes),
            normal(generator, classes),
        )
    _expect_head_start(student, name)


def _loaded_head(
    student: StudentModule, name: str, weight: torch.Tensor, bias: torch.Tensor
) -> tuple[StudentInstance, str]:
    d_model, classes = weight.shape
    on = _show_build(name, d_model=d_model, classes=classes)
    layer = student.build(d_model, classes)
    shapes = {"weight": (d_model, classes), "bias": (classes,)}
    _expect_parameters(layer, shapes, on)
    layer.load_state_dict({"weight": weight, "bias": bias})
    return layer, on


def _expect_logits(
    student: StudentModule,
    name: str,
    read: Callable[[torch.Tensor], torch.Tensor],
    candidates: HeadCandidates,
    hidden: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    on: str = "",
) -> None:
    layer, built = _loaded_head(student, name, weight, bias)
    on = on or f"{built}, hidden {tuple(hidden.shape)}"
    generator = seeded(1)
    square = normal(generator, 4, 4, 4), normal(generator, 4, 4), torch.zeros(4)
    trial, _ = _loaded_head(student, name, *square[1:])
    with _shapes_explained(lambda: trial(square[0]), candidates(*square)):
        got = layer(hidden)
    expected = F.linear(read(hidden), weight.mT, bias)
    mistakes = known_mistakes(candidates(hidden, weight, bias))
    why = "x W + b and nothing more, for each row x that this head reads."
    what = "the logits"
    expect.equal(got, expected, on=on, what=what, why=why, mistakes=mistakes)
    _expect_head_gradients(layer, read, hidden, weight, bias, on)


def _expect_head_gradients(layer, read, hidden, weight, bias, on: str, *more) -> None:
    inputs = [each.clone().requires_grad_() for each in (hidden, weight, bias)]
    value = F.linear(read(inputs[0]), inputs[1].mT, inputs[2])
    cotangent = normal(seeded(3), *value.shape)
    wanted = torch.autograd.grad((value * cotangent).sum(), inputs)
    found = layer.gradients(hidden, *more, cotangent=cotangent)
    both = {"hidden": found.inputs[0], **found.parameters}
    for name, right in zip(("hidden", "weight", "bias"), wanted, strict=True):
        where = f"the gradient with respect to {name}; {on}"
        _expect_gradient(both[name], right, where)


def _expect_head_start(student: StudentModule, name: str) -> None:
    d_model = 64
    state = student.build(d_model, 48).state_dict()
    spread = state["weight"].std().item()
    if spread > 3 * d_model**-0.5:
        why = (
            "With entries of standard deviation 1 the logits have one of √d_model: the "
            "untrained head is certain of its guesses, and mostly wrong. Divide by "
            "√d_model."
        )
        refuse(
            "the weights start too large",
            why,
            on=f"{name}(d_model={d_model}, classes=48), freshly built",
            got=f"weight with a standard deviation of {spread:.3f}",
            expected=f"about 1/√d_model = {d_model**-0.5:.3f}, or less",
        )
    if state["bias"].abs().max() > 0.5:
        refuse(
            "the bias does not start at 0",
            "Large random numbers prefer some classes before anything is learned.",
            on=f"{name}(d_model={d_model}, classes=48), freshly built",
            got=f"bias with entries up to {state['bias'].abs().max().item():.3f}",
            expected="zeros",
        )


PROBABILITIES = (
    "probabilities instead of logits",
    "A softmax was applied. F.cross_entropy wants logits and applies its own softmax; "
    "twice is too often: the gradient becomes small and the loss never gets near 0.",
)
NO_BIAS = "the bias is not added", "y = x W + b: the bias is there but never used."


def _class_head_candidates(hidden, weight, bias) -> Iterator[Candidate]:
    yield (
        "the head reads the last position",
        lambda: hidden[:, -1] @ weight + bias,
        "The class token was put in front: its output is at position 0. The last "
        "position is a word, or padding.",
    )
    yield (
        "the head reads the mean",
        lambda: hidden.mean(1) @ weight + bias,
        "That is the other readout, MeanHead. This one takes the class token's output "
        "only: collecting from the others was the encoder's work.",
    )
    yield (
        "the head reads the maximum",
        lambda: hidden.amax(1) @ weight + bias,
        "Of each feature the largest entry of all positions was taken. This head takes "
        "position 0 as it is, hidden[:, 0].",
    )
    yield (
        "the head reads the sum",
        lambda: hidden.sum(1) @ weight + bias,
        "All positions were added up. This head takes position 0 only, hidden[:, 0].",
    )
    yield (
        "the head reads the first word",
        lambda: hidden[:, 1] @ weight + bias,
        "Positions are counted from 0, and the class token is at position 0.",
    )
    yield (
        "the head reads every position",
        lambda: hidden @ weight + bias,
        "There is one answer for each sequence, (B, classes). Pick position 0 first.",
    )
    yield (
        "the axis of the positions is kept",
        lambda: hidden[:, :1] @ weight + bias,
        "hidden[:, :1] is a piece of length 1, (B, 1, d_model); hidden[:, 0] is one "
        "position, (B, d_model).",
    )
    yield (
        "the head reads the first sequence",
        lambda: hidden[0] @ weight + bias,
        "Axis 0 is the batch: hidden[0] is a whole sequence. Positions are axis 1, "
        "hidden[:, 0].",
    )
    yield (
        "the head reads the first feature",
        lambda: hidden[..., 0] @ weight + bias,
        "The last axis has the features. Positions are axis 1, hidden[:, 0].",
    )
    yield NO_BIAS[0], lambda: hidden[:, 0] @ weight, NO_BIAS[1]
    logits = F.linear(hidden[:, 0], weight.mT, bias)
    yield PROBABILITIES[0], lambda: logits.softmax(-1), PROBABILITIES[1]
    yield (
        "logarithms of probabilities instead of logits",
        lambda: logits.log_softmax(-1),
        "F.cross_entropy takes the log_softmax itself. Return the logits as they are.",
    )
    yield (
        "a class instead of logits",
        lambda: logits.argmax(-1),
        "argmax has no gradient, so nothing could be learned. Return the logits; who "
        "wants a decision takes their argmax.",
    )


def _token_head_candidates(hidden, weight, bias) -> Iterator[Candidate]:
    logits = F.linear(hidden, weight.mT, bias)
    yield (
        "the head reads position 0 only",
        lambda: logits[:, 0],
        "That is one answer for the sequence. A label for each token keeps the axis "
        "of the positions, (B, T, classes).",
    )
    yield (
        "the head reads the mean",
        lambda: logits.mean(1),
        "That is one answer for the sequence. A label for each token keeps the axis "
        "of the positions, (B, T, classes).",
    )
    yield (
        "every position gets the same logits",
        lambda: logits[:, :1].expand_as(logits),
        "The answer of position 0 was copied. Each position is read for itself.",
    )
    yield (
        "every position gets the same logits",
        lambda: logits.mean(1, keepdim=True).expand_as(logits),
        "The mean of all was copied. Each position is read for itself.",
    )
    yield (
        "classes before positions",
        lambda: logits.mT,
        "(B, classes, T) is what F.cross_entropy wants; transpose there. The head "
        "returns (B, T, classes): a row for each token.",
    )
    yield (
        "sequences and positions are joined",
        lambda: logits.flatten(0, 1),
        "(B·T, classes) is useful for a loss, but it forgets which sequence a row "
        "belongs to. `@` works on (B, T, d_model) as it is.",
    )
    yield (
        "position 0 is left out",
        lambda: logits[:, 1:],
        "Whether there is a class token to be left out, the caller knows. The head "
        "answers for every position that it is given.",
    )
    yield NO_BIAS[0], lambda: hidden @ weight, NO_BIAS[1]
    yield PROBABILITIES[0], lambda: logits.softmax(-1), PROBABILITIES[1]


# --- the mean -------------------------------------------------------------------------


@chapter.check(section="class-token-padding")
def masked_mean(student: StudentFunction, seed: int = 0) -> None:
    """The mean of the real tokens, whatever stands in the padding."""
    generator = seeded(seed)
    hand = torch.tensor([[[2.0, 4.0], [6.0, 0.0], [10.0, 8.0], [10.0, 8.0]]])
    mask = torch.tensor([[[True, True, False, False]]])
    on = f"hidden {hand.tolist()}, mask {mask.tolist()}"
    _expect_mean(student, hand, mask, on)
    for _ in range(2):
        batch, length, d_model = (
            size + 1 for size in draw_sizes(generator, 3, largest=8)
        )
        hidden = normal(generator, batch, length, d_model)
        mask = _draw_real(generator, batch, length)
        shapes = f"hidden {tuple(hidden.shape)}, mask {tuple(mask.shape)}"
        everything = torch.ones_like(mask)
        _expect_mean(student, hidden, everything, f"{shapes}, all real")
        _expect_mean(student, hidden, mask, f"{shapes}, some padding")
    scattered = torch.rand(mask.shape, generator=generator) < 0.5
    scattered[..., 0], scattered[..., -1] = False, True
    _expect_mean(student, hidden, scattered, f"{shapes}, real tokens scattered")
    _expect_garbage_ignored(student, hidden, mask)
    _expect_zeros_of_nothing(student, hidden, mask)
    _expect_mean_gradient(student, hidden, mask, generator)


def _expect_mean(student: StudentFunction, hidden, mask, on: str) -> None:
    got = student(hidden, mask)
    mistakes = known_mistakes(_mean_candidates(hidden, mask))
    expected = _mean_of_real(hidden, mask)
    why = "Add the rows whose mask is True, and divide by how many they are."
    expect.equal(got, expected, on=on, what="the mean", why=why, mistakes=mistakes)


def _mean_candidates(hidden, mask) -> Iterator[Candidate]:
    real = mask.mT.to(hidden.dtype)
    total, count = (hidden * real).sum(1), real.sum(1)
    length = hidden.shape[1]
    yield (
        "the mean runs over the padding, too",
        lambda: hidden.mean(1),
        "All T positions were averaged, so the answer depends on how much padding "
        "happens to be in the batch. Only positions with True count.",
    )
    yield (
        "the mask is inverted",
        lambda: (hidden * (1 - real)).sum(1) / (length - count).clamp_min(1),
        "The padding was averaged. True means a real token.",
    )
    yield (
        "divided by T instead of the number of real tokens",
        lambda: total / length,
        "The sum leaves the padding out, the number does not: short sentences get "
        "short vectors. Divide by how many entries of the mask are True, sequence "
        "by sequence.",
    )
    yield (
        "one number of tokens for the whole batch",
        lambda: total / count.mean(),
        "Each sequence has a number of real tokens of its own: sum the mask along "
        "the positions only.",
    )
    yield (
        "one number of tokens for the whole batch",
        lambda: total / count.sum(),
        "Each sequence has a number of real tokens of its own: sum the mask along "
        "the positions only.",
    )
    yield (
        "the sum instead of the mean",
        lambda: total,
        "A sum grows with the length of the sentence. Divide by the number of real "
        "tokens.",
    )
    yield (
        "one token too many in the divisor",
        lambda: total / (count + 1),
        "n tokens are divided by n. Against 0/0 use clamp(min=1): it changes 0 and "
        "nothing else.",
    )
    yield (
        "the maximum instead of the mean",
        lambda: hidden.masked_fill(real == 0, -torch.inf).amax(1),
        "That is max pooling. Add the rows up and divide.",
    )
    yield (
        "the mean over the batch",
        lambda: (hidden * real).mean(0),
        "Axis 0 is the batch: different sentences were mixed. Positions are axis 1.",
    )
    yield (
        "the mean over the batch",
        lambda: hidden.mean(0),
        "Axis 0 is the batch: different sentences were mixed. Positions are axis 1.",
    )
    yield (
        "the mean over the features",
        lambda: (hidden * real).mean(-1),
        "The last axis has the features of one token. Positions are axis 1.",
    )
    yield (
        "the axis of the positions is kept",
        lambda: _mean_of_real(hidden, mask)[:, None],
        "One vector for each sequence, (B, d_model): sum without keepdim=True, or take "
        "the axis away at the end.",
    )
    yield (
        "the rows are not averaged",
        lambda: hidden * real,
        "The padding is 0 now, but there are still T rows. Add them up and divide.",
    )
    yield (
        "position 0 instead of the mean",
        lambda: hidden[:, 0],
        "That is the readout of a class token.",
    )


def _expect_garbage_ignored(student: StudentFunction, hidden, mask) -> None:
    padding = ~mask.mT
    garbage = hidden.masked_fill(padding, GARBAGE)
    on = f"hidden {tuple(hidden.shape)} with {GARBAGE:g} in the padding"
    got = student(garbage, mask)
    mistakes = known_mistakes(_mean_candidates(garbage, mask))
    expected = _mean_of_real(hidden, mask)
    why = "Whatever stands in the padding, it must not change the answer."
    expect.equal(got, expected, on=on, what="the mean", mistakes=mistakes, why=why)


def _expect_zeros_of_nothing(student: StudentFunction, hidden, mask) -> None:
    mask = mask.clone()
    mask[1] = False
    on = "a batch in which sequence 1 has no real token"
    got = student(hidden, mask)
    expect.tensor(got, shape=_mean_of_real(hidden, mask).shape, finite=False, on=on)
    if not got[1].isfinite().all():
        why = (
            "0 tokens were divided by their number: 0/0 is NaN. Give the divisor a "
            "smallest value of 1, clamp(min=1); the sum is 0 and stays 0."
        )
        name = "NaN for a sequence without real tokens"
        refuse(name, why, on=on, got=show(got[1]), expected="zeros")
    mistakes = known_mistakes(_mean_candidates(hidden, mask))
    expect.equal(got, _mean_of_real(hidden, mask), on=on, mistakes=mistakes)
    found = student.gradients(hidden, mask).inputs[0]
    on = f"the gradient, for {on}"
    _expect_some_gradient(found, on)
    if not found.isfinite().all():
        why = (
            "The values are right, the backward pass is not: it runs through a 0/0 "
            "that was only replaced afterwards, and NaN times 0 stays NaN. Keep the "
            "division from being 0/0."
        )
        name = "NaN gradient for a sequence without real tokens"
        refuse(name, why, on=on, got=show(found[1]), expected="finite numbers")


def _expect_mean_gradient(student, hidden, mask, generator) -> None:
    cotangent = normal(generator, hidden.shape[0], hidden.shape[2])
    found = student.gradients(hidden, mask, cotangent=cotangent).inputs[0]
    real = mask.mT.float()
    wanted = cotangent[:, None] * real / real.sum(1, keepdim=True)
    why = "Each of n real tokens gets 1/n of the gradient, the padding nothing."
    _expect_gradient(found, wanted, f"the gradient, hidden {tuple(hidden.shape)}", why)


@chapter.check(section="class-token-mean")
def mean_head(
    student: StudentModule, masked_mean_student: StudentFunction, seed: int = 0
) -> None:
    """Logits of the masked mean; without a mask, of the mean of all."""
    with expect.relying_on(masked_mean, masked_mean_student):
        _expect_mean_head(student, seed)


def _expect_mean_head(student: StudentModule, seed: int) -> None:
    generator = seeded(seed)
    hand = torch.tensor([[[1.0, 2.0], [3.0, 0.0], [9.0, 9.0]]])
    weight = torch.tensor([[1.0, 0.0, -1.0], [0.0, 1.0, 1.0]])
    bias = torch.tensor([0.5, 0.0, 0.0])
    mask = torch.tensor([[[True, True, False]]])
    on = f"the example by hand, hidden {hand.tolist()}, mask {mask.tolist()}"
    _expect_mean_logits(student, hand, mask, weight, bias, on)
    for _ in range(2):
        batch, length, d_model, classes = draw_sizes(generator, 4, largest=8)
        hidden = normal(generator, batch, length, d_model)
        mask = _draw_real(generator, batch, length)
        numbers = normal(generator, d_model, classes), normal(generator, classes)
        on = f"hidden {tuple(hidden.shape)}"
        _expect_mean_logits(student, hidden, None, *numbers, f"{on}, mask=None")
        _expect_mean_logits(student, hidden, mask, *numbers, f"{on}, some padding")
        garbage = hidden.masked_fill(~mask.mT, GARBAGE)
        on += f" with {GARBAGE:g} in the padding"
        _expect_mean_logits(student, garbage, mask, *numbers, on)
    mask[1] = False
    on = "a batch in which sequence 1 has no real token: the bias is left"
    _expect_mean_logits(student, hidden, mask, *numbers, on)
    _expect_head_start(student, "MeanHead")


def _expect_mean_logits(student, hidden, mask, weight, bias, on: str) -> None:
    layer, _ = _loaded_head(student, "MeanHead", weight, bias)
    more = () if mask is None else (mask,)
    with _no_mask_handled() if mask is None else contextlib.nullcontext():
        got = layer(hidden, *more)
    expected = F.linear(_mean_of_real(hidden, mask), weight.mT, bias)
    mistakes = known_mistakes(_mean_head_candidates(hidden, mask, weight, bias))
    expect.equal(got, expected, on=on, what="the logits", mistakes=mistakes)
    _expect_head_gradients(
        layer, lambda h: _mean_of_real(h, mask), hidden, weight, bias, on, *more
    )


def _mean_head_candidates(hidden, mask, weight, bias) -> Iterator[Candidate]:
    mean = _mean_of_real(hidden, mask)
    logits = F.linear(mean, weight.mT, bias)
    yield (
        "the head reads position 0",
        lambda: hidden[:, 0] @ weight + bias,
        "That is ClassHead. Without a class token, position 0 is only the first word; "
        "this head averages all real tokens.",
    )
    if mask is not None:
        yield (
            "the mask is not used",
            lambda: hidden.mean(1) @ weight + bias,
            "The padding was averaged, too. Hand the mask on to masked_mean.",
        )
        real = mask.mT.float()
        yield (
            "the bias is masked, too",
            lambda: (
                (F.linear(hidden, weight.mT, bias) * real).sum(1)
                / real.sum(1).clamp_min(1)
            ),
            "The logits of the tokens were averaged. That is the same as long as there "
            "is a real token; without any, the bias is lost. First the mean, then the "
            "linear map: it is also B products instead of B·T.",
        )
        yield (
            "the padding is set to 0 and averaged",
            lambda: (hidden * real).mean(1) @ weight + bias,
            "The divisor must be the number of real tokens, not T: use masked_mean.",
        )
    yield (
        "the head reads every position",
        lambda: hidden @ weight + bias,
        "There is one answer for each sequence, (B, classes): average first.",
    )
    yield (
        "the sum instead of the mean",
        lambda: (hidden if mask is None else hidden * mask.mT).sum(1) @ weight + bias,
        "A sum grows with the length of the sentence: use masked_mean.",
    )
    yield (
        "the maximum instead of the mean",
        lambda: hidden.amax(1) @ weight + bias,
        "That is max pooling. This head averages.",
    )
    yield NO_BIAS[0], lambda: mean @ weight, NO_BIAS[1]
    yield PROBABILITIES[0], lambda: logits.softmax(-1), PROBABILITIES[1]


# --- counting -------------------------------------------------------------------------


@chapter.check(section="class-token-parameters")
def head_parameters(student: StudentFunction, seed: int = 0) -> None:
    """ViT's numbers, by hand and at random; other kinds are refused."""
    generator = seeded(seed)
    sizes = [(197, 768, 1000), (4, 3, 2)]
    sizes += [
        tuple(7 * size for size in draw_sizes(generator, 3, largest=8))
        for _ in range(3)
    ]
    for length, d_model, classes in sizes:
        weights = torch.empty(d_model, classes, device="meta")
        flat = torch.empty(length * d_model, classes, device="meta")  # no memory
        for kind, matrix in (("class", weights), ("mean", weights), ("flatten", flat)):
            got = student(kind, length, d_model, classes)
            on = f"head_parameters({kind!r}, {length}, {d_model}, {classes})"
            _expect_count(got, matrix.numel(), kind, length, d_model, classes, on)
    on = "head_parameters('flaten', 197, 768, 1000)"
    try:
        student("flaten", 197, 768, 1000)
    except StudentError as error:
        if error.kind not in ("ValueError", "NotImplementedError"):
            why = "Say yourself what is wrong: raise ValueError for any other kind."
            got = f"{error.kind}: {describe_error(error)}"
            say = {"got": got, "expected": "ValueError"}
            refuse("another exception than ValueError", why, on=on, **say)
    expect.raises(
        "ValueError",
        lambda: student("flaten", 197, 768, 1000),
        on=on,
        why="A misspelt kind should not get a number: raise ValueError.",
        mistake="an unknown kind is accepted",
    )


def _expect_count(
    got: Data,
    expected: int,
    kind: str,
    length: int,
    d_model: int,
    classes: int,
    on: str,
) -> None:
    small = d_model * classes
    all_positions = (
        "The mean is one vector of width d_model, just as the class token's output is: "
        "the head has the same size. What saves parameters is not the class token, but "
        "to read one vector instead of T."
    )
    one_position = (
        "A flattened sequence is one long vector with T · d_model entries, and each of "
        "them has a weight for every class."
    )
    known = [
        (
            expected + classes,
            "the bias is counted, too",
            "Weights only: the entries of the matrix, without the bias.",
        ),
        (
            small + d_model,
            "the class token is counted, too",
            "The class token's d_model numbers belong to the input of the encoder. "
            "Count the weights of the head.",
        ),
        (
            expected / 1e6,
            "counted in millions",
            "Return the number itself, 768000 and not 0.768.",
        ),
        (
            d_model + classes,
            "added instead of multiplied",
            "A matrix (n, m) has n · m entries.",
        ),
    ]
    if kind == "class":
        name = "the class token's head counted like flatten"
        known.append((length * small, name, "The head reads position 0 only."))
        name = "the head reads one position more"
        known.append((2 * small, name, "The head reads position 0 only."))
    if kind == "mean":
        name = "the mean counted like flatten"
        known.append((length * small, name, all_positions))
    if kind == "flatten":
        name = "flatten counted like one position"
        known.append((small, name, one_position))
        extra = "T is the length that the head sees: here it is the argument as it is."
        known.append(((length + 1) * small, "one position too many", extra))
        known.append(((length - 1) * small, "one position too few", extra))
        name = "one weight for a position and a class"
        known.append((length * classes, name, one_position))
    for value, name, why in known:
        number = type(got) in (int, float)
        if number and value != expected and expect.close(got, value, 1e-9):
            refuse(name, why, on=on, got=f"{got}", expected=f"{expected}")
    why = "The head is a matrix from what it reads to the classes."
    what = "the number of weights"
    expect.equal(got, expected, on=on, what=what, why=why, tolerance=1e-9)


# --- the order of the tokens ----------------------------------------------------------


@chapter.check(section="class-token-order")
def readout_behaviour(student: StudentFunction, seed: int = 0) -> None:
    """Eight words, against what an encoder does when tokens change places."""
    got = student()
    answers = ("equivariant", "invariant", "neither")
    keys = list(READOUTS)
    why = "The function ends without `return`." if got is None else ""
    what = "the result is not a dict"
    say = {"got": show(got), "expected": f"{keys}", "why": why}
    expect.true(isinstance(got, dict), what, **say)
    if any(key not in got for key in keys):
        why = "The dict needs every key below 'expected', spelt exactly so."
        on = "the keys of the result"
        refuse(
            "an entry is missing", why, on=on, got=f"{list(got)}", expected=f"{keys}"
        )
    for key, (read, positions, why) in READOUTS.items():
        value, on = got[key], f"the entry {key!r}"
        if value not in answers:
            why = "One of three words, as a string: " + ", ".join(answers) + "."
            refuse("another word", why, on=on, got=show(value))
        right = _measured(read, positions, seed)
        if value == right:
            continue
        name = {
            "equivariant": "a single answer is called equivariant",
            "invariant": "invariant although the order matters",
            "neither": "neither although the tokens only changed places",
        }[value]
        if key == "token_head" and value == "invariant":
            name = "equivariant and invariant exchanged"
        if positions:
            name = "positions are forgotten"
        refuse(name, why, on=on, got=show(value))


def _measured(read: Callable, positions: bool, seed: int) -> str:
    """Say what happens to a readout when the tokens of the sequence change places.

    One encoder may happen not to care: what attends to a single token, say.
    """
    found = {_measured_once(read, positions, seed + more) for more in range(5)}
    return found.pop() if len(found) == 1 else "neither"


def _measured_once(read: Callable, positions: bool, seed: int) -> str:
    generator = seeded(seed)
    length, d_model = 5, 4
    table = 2 * normal(generator, length + 1, d_model) * positions
    matrices = [normal(generator, d_model, d_model) / 2 for _ in range(3)]
    token = normal(generator, 1, d_model)
    head = normal(generator, (length + 1) * d_model, 3)

    def answer(x: torch.Tensor) -> torch.Tensor:
        x = torch.cat((token, x)) + table
        mixed = F.scaled_dot_product_attention(*(x @ matrix for matrix in matrices))
        return read(torch.tanh(x + mixed), head)

    x, order = normal(generator, length, d_model), torch.tensor([3, 0, 4, 1, 2])
    before, after = answer(x), answer(x[order])
    if torch.allclose(before, after, atol=1e-5):
        return "invariant"
    rows = before.dim() == 2 and torch.allclose(before[order], after, atol=1e-5)
    return "equivariant" if rows else "neither"


_SUMS = (
    "Attention without positions gives every token an output that depends on which "
    "tokens there are, not on where they stand. "
)
_POSITIONS = (
    "With positions added, another order is another input: the same word at another "
    "place is another vector. That is what positions are for."
)
READOUTS: dict[str, tuple[Callable, bool, str]] = {
    "class_token": (
        lambda z, head: z[0] @ head[:4],
        False,
        _SUMS + "The class token itself stays in front, and what it collects is a "
        "weighted sum over all tokens; a sum does not know an order.",
    ),
    "mean": (
        lambda z, head: z[1:].mean(0) @ head[:4],
        False,
        _SUMS + "The same outputs in another order have the same mean.",
    ),
    "maximum": (
        lambda z, head: z[1:].amax(0) @ head[:4],
        False,
        _SUMS + "The largest of a set of numbers is the same in any order.",
    ),
    "last_token": (
        lambda z, head: z[-1] @ head[:4],
        False,
        _SUMS + "But after the exchange another token is the last one.",
    ),
    "flattened": (
        lambda z, head: z.flatten() @ head,
        False,
        _SUMS + "But each place of the flattened vector has weights of its own, and "
        "now other tokens meet them.",
    ),
    "token_head": (
        lambda z, head: z[1:] @ head[:4],
        False,
        _SUMS + "There is one answer a token, and it moves with its token: f(RX) = "
        "R f(X). Invariant would mean that the rows stay where they were.",
    ),
    "class_token_with_positions": (lambda z, head: z[0] @ head[:4], True, _POSITIONS),
    "token_head_with_positions": (lambda z, head: z[1:] @ head[:4], True, _POSITIONS),
}


# --- several class tokens -------------------------------------------------------------


@chapter.check(section="class-token-several")
def task_heads(
    student: StudentModule, class_head_student: StudentModule, seed: int = 0
) -> None:
    """Task i is answered from position i, by a head of its own."""
    with expect.relying_on(class_head, class_head_student):
        _expect_task_heads(student, seed)


def _expect_task_heads(student: StudentModule, seed: int) -> None:
    generator = seeded(seed)
    hand = torch.tensor([[[1.0, 2.0], [3.0, 0.0], [5.0, 5.0], [6.0, 1.0]]])
    pairs = [
        (
            torch.tensor([[1.0, 0.0, -1.0], [0.0, 1.0, 1.0]]),
            torch.tensor([0.5, 0.0, 0.0]),
        ),
        (torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([0.0, 0.0])),
    ]
    _expect_tasks(student, hand, pairs, f"hidden {hand.tolist()}, classes [3, 2]")
    for tasks in (2, 3, 1):
        batch, d_model, *classes = draw_sizes(generator, 2 + tasks, largest=8)
        if tasks == 3:
            classes[2] = classes[0]  # two tasks with as many classes
        hidden = normal(generator, batch, tasks + 4, d_model)
        pairs = [(normal(generator, d_model, n), normal(generator, n)) for n in classes]
        on = f"TaskHeads({d_model}, {classes}), hidden {tuple(hidden.shape)}"
        _expect_tasks(student, hidden, pairs, on)


def _expect_tasks(student: StudentModule, hidden, pairs, on: str) -> None:
    d_model, classes = hidden.shape[-1], [len(bias) for _, bias in pairs]
    layer = student.build(d_model, classes)
    state = {
        f"heads.{task}.{name}": value
        for task, pair in enumerate(pairs)
        for name, value in zip(("weight", "bias"), pair, strict=True)
    }
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    _expect_parameters(layer, shapes, on, _task_shapes(layer))
    layer.load_state_dict(state)
    got = layer(hidden)
    if isinstance(got, torch.Tensor):
        why = "Tasks may differ in their classes: return a list, one entry a task."
        say = {"got": show(got), "expected": f"a list of {len(pairs)} tensors"}
        refuse("one tensor for all tasks", why, on=on, **say)
    expected = [
        F.linear(hidden[:, task], weight.mT, bias)
        for task, (weight, bias) in enumerate(pairs)
    ]
    for mistake in known_mistakes(_task_candidates(hidden, pairs)):
        same = expect.close(got, mistake.value) and not expect.close(got, expected)
        if same:
            say = {"got": show_list(got), "expected": show_list(expected)}
            refuse(mistake.name, mistake.why, on=on, **say)
    expect.equal(got, expected, on=on, what="the list of logits")
    _expect_task_gradients(layer, hidden, pairs, on)


def show_list(values: list) -> str:
    """Write a list of tensors, one a line."""
    return "\n".join(show(value) for value in values)


def _task_shapes(layer: StudentInstance) -> Callable:
    """Make the exercise's own mistakes in what is stored."""
    names = layer.parameter_names()

    def own(state: dict, shapes: dict) -> Iterator[tuple[bool, str, str]]:
        yield (
            not names and not state,
            "an ordinary list instead of nn.ModuleList",
            "A Python list hides its modules: no optimiser finds their parameters, and "
            "they are missing from what is saved. nn.ModuleList([...]) is a list that "
            "shows them.",
        )
        yield (
            any(n in state and n not in names for n in shapes)
            and any(n in names for n in shapes),
            "one head shared by all tasks",
            "[head] * n is n times the same head, so all tasks would pull at the same "
            "weights. Build one head for each task.",
        )
        yield (
            len(shapes) > 2 and set(names) == {"heads.0.weight", "heads.0.bias"},
            "only one head",
            "classes is a list: build one head for each of its entries.",
        )

    return own


def _task_candidates(hidden, pairs) -> Iterator[Candidate]:
    def logits(places: Iterable[int]) -> list[torch.Tensor]:
        return [
            F.linear(hidden[:, place], weight.mT, bias)
            for place, (weight, bias) in zip(places, pairs, strict=True)
        ]

    tasks = len(pairs)
    yield (
        "all heads read position 0",
        lambda: logits([0] * tasks),
        "Position 0 belongs to task 0. Each task has a class token of its own, which "
        "can attend to what this task needs: the head of task i reads position i.",
    )
    yield (
        "class tokens counted from 1",
        lambda: logits(range(1, tasks + 1)),
        "Positions and tasks are both counted from 0: task i reads position i.",
    )
    yield (
        "the class tokens are read backwards",
        lambda: logits(range(tasks - 1, -1, -1)),
        "The head of task i reads position i.",
    )
    yield (
        "the heads read the last positions",
        lambda: logits(range(-tasks, 0)),
        "The class tokens stand in front: positions 0 to the number of tasks − 1.",
    )
    yield (
        "the heads read the last positions",
        lambda: logits(range(-1, -tasks - 1, -1)),
        "The class tokens stand in front: positions 0 to the number of tasks − 1.",
    )
    yield (
        "the heads read the mean",
        lambda: [F.linear(hidden.mean(1), w.mT, b) for w, b in pairs],
        "Then all tasks get the same vector. The head of task i reads position i.",
    )
    yield (
        "the heads read every position",
        lambda: [F.linear(hidden, w.mT, b) for w, b in pairs],
        "There is one answer for each sequence and task: pick position i first.",
    )
    yield (
        "the axis of the positions is kept",
        lambda: [each[:, None] for each in logits(range(tasks))],
        "hidden[:, i : i + 1] is a piece of length 1; hidden[:, i] is one position.",
    )
    yield (
        "the heads read sequence i",
        lambda: [F.linear(hidden[i], w.mT, b) for i, (w, b) in enumerate(pairs)],
        "Axis 0 is the batch. Positions are axis 1: hidden[:, i].",
    )
    yield (
        PROBABILITIES[0],
        lambda: [each.softmax(-1) for each in logits(range(tasks))],
        PROBABILITIES[1],
    )


def _expect_task_gradients(layer: StudentInstance, hidden, pairs, on: str) -> None:
    for task, (weight, _) in enumerate(pairs):
        cotangent = normal(seeded(task), len(hidden), weight.shape[1])
        found = layer.gradients(hidden, cotangent=cotangent, output=task)
        wanted = torch.zeros_like(hidden)
        wanted[:, task] = cotangent @ weight.mT
        where = f"the gradient of task {task} with respect to hidden; {on}"
        _expect_gradient(found.inputs[0], wanted, where)
        where = f"the gradient of task {task} with respect to its weight; {on}"
        weights = found.parameters[f"heads.{task}.weight"]
        _expect_gradient(weights, hidden[:, task].mT @ cotangent, where)


# --- attention pooling ----------------------------------------------------------------


@chapter.check(section="class-token-attention-pooling")
def attention_pooling(student: StudentModule, seed: int = 0) -> None:
    """One query over all real tokens, against PyTorch's attention; empty sequences."""
    generator = seeded(seed)
    hand = torch.tensor([[[1.0986123, 0.0, 0.0, 0.0], [0.0, 4.0, 0.0, 0.0]]])
    query = torch.tensor([2.0, 0.0, 0.0, 0.0])
    wanted = torch.tensor([[0.8239592, 1.0, 0.0, 0.0]]), torch.tensor([[0.75, 0.25]])
    # the example with twice its query: there, another length of the query shows
    on = "tokens (ln 3, 0, 0, 0) and (0, 4, 0, 0), query (4, 0, 0, 0)"
    _expect_pooled(student, hand, None, 2 * query, on)
    _expect_pooled(student, hand, None, query, "the example by hand", wanted)
    for _ in range(2):
        batch, length, d_model = (
            size + 1 for size in draw_sizes(generator, 3, largest=8)
        )
        hidden = normal(generator, batch, length, d_model)
        mask = _draw_real(generator, batch, length)
        query = 2 * normal(generator, d_model)
        on = f"AttentionPooling({d_model}), hidden {tuple(hidden.shape)}"
        _expect_pooled(student, hidden, None, query, f"{on}, mask=None")
        _expect_pooled(student, hidden, mask, query, f"{on}, some padding")
        garbage = hidden.masked_fill(~mask.mT, GARBAGE)
        say = f"{on} with {GARBAGE:g} in the padding"
        _expect_pooled(student, garbage, mask, query, say)
    large = hidden * 1000
    _expect_pooled(
        student, large, mask, query, f"{on}, 1000 times as large", large=True
    )
    _expect_pooled_nothing(student, hidden, mask, query)
    _expect_pooling_gradients(student, hidden, mask, query, on)
    _expect_query_start(student)


def _loaded_pooling(student: StudentModule, query: torch.Tensor) -> StudentInstance:
    d_model = len(query)
    layer = student.build(d_model)
    on = f"AttentionPooling({d_model})"
    _expect_parameters(layer, {"query": (d_model,)}, on, _query_shapes)
    layer.load_state_dict({"query": query})
    return layer


def _query_shapes(state: dict, shapes: dict) -> Iterator[tuple[bool, str, str]]:
    (d_model,) = shapes["query"]
    found = tuple(state["query"].shape) if "query" in state else (d_model,)
    yield (
        len(found) > 1 and d_model in found and set(found) <= {1, d_model},
        "an axis too many in the parameter",
        "The query is one vector, (d_model,). hidden @ query multiplies each token "
        "with it and leaves (B, T), with nothing to squeeze away.",
    )


def _torch_pooling(hidden, mask, query) -> tuple[torch.Tensor, torch.Tensor]:
    """Pool by PyTorch's attention; values of one-hot rows give the weights."""
    batch, length, _ = hidden.shape
    asked = query.expand(batch, 1, -1)
    one_hot = torch.eye(length).expand(batch, length, length)
    attend = F.scaled_dot_product_attention
    pooled, weights = (
        attend(asked, hidden, v, attn_mask=mask)[:, 0] for v in (hidden, one_hot)
    )
    if mask is not None:  # zeros, whatever this version of PyTorch does
        some = mask[:, 0].any(-1, keepdim=True)
        pooled, weights = torch.where(some, pooled, 0), torch.where(some, weights, 0)
    return pooled, weights


def _expect_pooled(
    student: StudentModule,
    hidden,
    mask,
    query,
    on: str,
    expected=None,
    *,
    large: bool = False,
) -> None:
    layer = _loaded_pooling(student, query)
    with _no_mask_handled() if mask is None else contextlib.nullcontext():
        got = several(layer(hidden) if mask is None else layer(hidden, mask))
    mistakes = known_mistakes(_pooling_candidates(hidden, mask, query))
    wanted = expected or _torch_pooling(hidden, mask, query)
    tolerance = 1e-4
    if isinstance(got, torch.Tensor) and expect.close(got, wanted[0], tolerance):
        why = "The weights are wanted, too, to be looked at: return pooled, weights."
        say = {"got": "one tensor", "expected": "(pooled, weights)"}
        refuse("the weights are not returned", why, on=on, **say)
    tensors = isinstance(got, tuple) and all(map(torch.is_tensor, got))
    if large and tensors and any(each.isnan().any() for each in got):
        why = (
            "exp of a large score is infinite, and ∞/∞ is NaN. torch.softmax takes "
            "the largest score off first."
        )
        refuse("not stable for large scores", why, on=on, got=show(got))
    what = "(pooled, weights)"
    why = (
        "The weights are the softmax of hidden · query / √d_model over the real "
        "tokens; pooled is the sum of weights times hidden."
    )
    expect.equal(
        got,
        wanted,
        on=on,
        what=what,
        why=why,
        mistakes=mistakes,
        tolerance=tolerance,
    )


def _pooling_candidates(hidden, mask, query) -> Iterator[Candidate]:
    batch, length, d_model = hidden.shape
    scores = (hidden * query).sum(-1)
    scaled = scores / d_model**0.5
    real = torch.ones(batch, length, dtype=torch.bool)
    real = real if mask is None else mask[:, 0]

    def mix(weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (weights[..., None] * hidden).sum(1), weights

    def attend(s: torch.Tensor, allowed: torch.Tensor = real):
        return mix(torch.softmax(s.masked_fill(~allowed, -torch.inf), -1))

    pooled, weights = _torch_pooling(hidden, mask, query)
    if mask is not None:
        padding = (
            "the padding takes part",
            "Weights of the padding must be 0, and the others sum to 1: set the scores "
            "to −∞ where the mask is False, before the softmax.",
        )
        yield padding[0], lambda: mix(torch.softmax(scaled, -1)), padding[1]
        inverted = (
            "The padding was kept and the words were hidden. masked_fill fills where "
            "its mask is True; real tokens have True here, so it takes ~real."
        )
        yield (
            "padded scores set to 0",
            lambda: mix(torch.softmax(scaled * real, -1)),
            "A score of 0 is an ordinary score, e⁰ = 1. 'Never' is −∞.",
        )
        yield (
            "the mask is inverted",
            lambda: attend(scaled, ~real),
            inverted,
        )
        yield (
            "the mask is inverted",
            lambda: mix(torch.nan_to_num(attend(scaled, ~real)[1], 0.0)),
            inverted,
        )
        yield (
            "masked after the softmax",
            lambda: mix(torch.softmax(scaled, -1) * real),
            "The weights of the real tokens no longer sum to 1: the padding had taken "
            "its share before it was removed. Mask the scores, not the weights.",
        )
    yield (
        "the scores are not scaled",
        lambda: attend(scores),
        "Divide by √d_model: a sum of d_model products grows with the width, and a "
        "softmax of large scores takes one token only.",
    )
    yield (
        "divided by d_model instead of its root",
        lambda: attend(scores / d_model),
        "The spread of a sum of d_model products is √d_model; divide by the root.",
    )
    yield (
        "multiplied by √d_model",
        lambda: attend(scores * d_model**0.5),
        "The root of d_model makes large scores smaller: divide by it.",
    )
    yield (
        "divided by the root of the number of tokens",
        lambda: attend(scores / length**0.5),
        "A score is a sum of d_model products; how many tokens there are does not "
        "matter to it. hidden.shape[-1] is d_model.",
    )
    yield (
        "the query is scaled to length 1",
        lambda: attend(scaled / query.norm()),
        "Take the query as it is: by its length, training decides how sharp the "
        "weights are.",
    )
    yield (
        "sigmoid instead of softmax",
        lambda: mix(scaled.sigmoid() * real),
        "The weights of one sequence share out 1 among its tokens; sigmoids do not "
        "sum to 1.",
    )
    yield (
        "the scores are used as weights",
        lambda: ((scaled * real)[..., None].mul(hidden).sum(1), weights),
        "The weights come out right and are not used: multiply hidden by them.",
    )
    yield (
        "divided by T after the weights",
        lambda: (pooled / length, weights),
        "The weights sum to 1 already: take the sum over the positions, not the mean.",
    )
    yield (
        "softmax over the batch",
        lambda: mix(torch.softmax(scaled.masked_fill(~real, -torch.inf), 0)),
        "The weights of one sequence sum to 1: softmax along the positions, dim=-1.",
    )
    yield (
        "no softmax",
        lambda: mix(scaled * real),
        "Scores are no weights: they may be negative and do not sum to 1.",
    )
    yield (
        "the mean instead of a weighted mean",
        lambda: mix(real / real.sum(-1, keepdim=True)),
        "The weights are all equal, so the query has no say.",
    )
    yield (
        "the values are multiplied by the query, too",
        lambda: ((weights[..., None] * hidden).sum(1) * query, weights),
        "The query decides on the weights only; what is averaged is hidden itself.",
    )
    yield (
        "the order of the pair",
        lambda: (weights, pooled),
        "First the pooled vectors, then the weights.",
    )
    yield (
        "an axis of size 1 is left over",
        lambda: (pooled, weights[:, None]),
        "One query for each sequence, so the weights are (B, T): take the axis away.",
    )
    yield (
        "an axis of size 1 is left over",
        lambda: (pooled[:, None], weights[:, None]),
        "One query for each sequence: pooled is (B, d_model) and the weights (B, T).",
    )
    yield (
        "an axis of size 1 is left over",
        lambda: (pooled[:, None], weights),
        "One query for each sequence: pooled is (B, d_model) and the weights (B, T).",
    )


def _expect_pooled_nothing(student: StudentModule, hidden, mask, query) -> None:
    layer = _loaded_pooling(student, query)
    mask = mask.clone()
    mask[1] = False
    on = "a batch in which sequence 1 has no real token"
    got = several(layer(hidden, mask))
    wanted = _torch_pooling(hidden, mask, query)
    pair = isinstance(got, tuple) and len(got) == 2
    if pair and all(isinstance(each, torch.Tensor) for each in got):
        say = {"on": on, "got": f"weights {show(got[1][1])}", "expected": "zeros"}
        if not all(each.isfinite().all() for each in got):
            why = (
                "A softmax over only −∞ computes 0/0. Nothing may be attended to, so "
                "the weights are 0: put 0 where the mask is False after the softmax, "
                "as well as −∞ before it."
            )
            refuse("NaN for a sequence without real tokens", why, **say)
        if (got[1][1] > 0).any():
            why = (
                "With −1e9 or the like in every place all scores are equal, and the "
                "softmax shares the weight out among tokens that are all padding."
            )
            refuse("a large negative number instead of −∞", why, **say)
    expect.equal(got, wanted, on=on, what="(pooled, weights)", tolerance=1e-4)
    found = layer.gradients(hidden, mask, output=0)
    for name, gradient in {"hidden": found.inputs[0], **found.parameters}.items():
        where = f"the gradient with respect to {name}; {on}"
        _expect_some_gradient(gradient, where)
        if not gradient.isfinite().all():
            why = (
                "The values are right, the backward pass is not: it runs through a 0/0 "
                "that was only replaced afterwards. One empty sequence would spoil all "
                "parameters in one step. masked_fill(~real, 0.0) of the weights stops "
                "it, and so does a divisor that is never 0."
            )
            name = "NaN gradient for a sequence without real tokens"
            shown = gradient[1] if gradient.dim() == 3 else gradient
            refuse(name, why, on=where, got=show(shown), expected="finite numbers")


def _expect_pooling_gradients(student, hidden, mask, query, on: str) -> None:
    layer = _loaded_pooling(student, query)
    inputs = hidden.clone().requires_grad_(), query.clone().requires_grad_()
    scores = torch.stack([h @ inputs[1] for h in inputs[0]]) / len(query) ** 0.5
    value = torch.stack(
        [
            torch.softmax(s[real[0]], 0) @ h[real[0]]
            for s, h, real in zip(scores, inputs[0], mask, strict=True)
        ]
    )
    cotangent = normal(seeded(4), *value.shape)
    wanted = torch.autograd.grad((value * cotangent).sum(), inputs)
    found = layer.gradients(hidden, mask, cotangent=cotangent, output=0)
    got = found.inputs[0], found.parameters["query"]
    for name, gradient, right in zip(("hidden", "query"), got, wanted, strict=True):
        where = f"the gradient with respect to {name}; {on}"
        _expect_gradient(gradient, right, where)


def _expect_query_start(student: StudentModule) -> None:
    query = student.build(400).state_dict()["query"]
    spread = query.std().item()
    if spread > 0.2:
        why = (
            "Start small, with 0.02 times random numbers: all scores are then near 0 "
            "and the weights nearly equal, so training starts from the mean."
        )
        refuse(
            "the query starts too large",
            why,
            on="AttentionPooling(400), freshly built",
            got=f"query with a standard deviation of {spread:.3f}",
            expected="about 0.02",
        )
