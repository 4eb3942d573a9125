"""The encoder layer: two branches, two residual connections, two norms, two orders."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

from autograder import expect, forbidden
from autograder.chapters.encoder import oracles
from autograder.chapters.encoder.chapter import chapter
from autograder.chapters.encoder.networks import network_alone
from autograder.chapters.encoder.norms import layer_norm
from autograder.chapters.encoder.oracles import DEEP
from autograder.chapters.encoder.parts import (
    ACTIVATIONS,
    Parts,
    State,
    attend,
    join,
    same,
)
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.naming import Mistake
from autograder.exercise.parameters import Shapes, expect_parameters
from autograder.exercise.spec import Case, Module, expect_gradients
from autograder.expect import describe_error, refuse, refuse_if, show
from autograder.interface import Data, StudentError, StudentInstance, StudentModule

# told of the input, the mask, the parts of the layer, and whether it is in pre-norm
layers = Module(
    "encoder-layer",
    "EncoderLayer",
    lambda x, mask, parts, pre: join(x, *parts.maps(mask), pre),
    given=lambda layer: (Parts.of(layer), layer.norm_first),
)
layers.accident(
    "tuple",
    "the pair of attention is used whole",
    "MultiHeadAttention returns two things, the output and the weights. Go on with the "
    "first: attended, _ = self.attention(...).",
)
pair_named = layers.accidents_named  # the decoder layer attends, too


# --- what goes wrong ------------------------------------------------------------------


def in_order(
    name: str, why: str, *, pre: Callable | None = None, post: Callable | None = None
) -> None:
    """State a mistake for the two orders, or for one of them.

    Args:
        name: what the message calls it.
        why: the reason.
        pre: what comes out in pre-norm, made of the input, attention, feed-forward
            network, and both norms.
        post: the same in post-norm.
    """

    def written(norm_first: bool) -> Callable | None:
        return pre if norm_first else post

    def shows(x, mask, parts: Parts, norm_first: bool) -> bool:
        return written(norm_first) is not None

    def answer(x, mask, parts: Parts, norm_first: bool):
        return written(norm_first)(x, *parts.maps(mask))

    layers.mistake(name, why, when=shows)(answer)


def in_both(name: str, why: str, change: Callable) -> None:
    """State a mistake that is made in the branches or norms, whatever the order."""

    def answer(x, mask, parts: Parts, pre: bool):
        return join(x, *change(*parts.maps(mask)), pre)

    layers.mistake(name, why)(answer)


ORDER = (
    "Post-norm: norm(x + branch(x)). Pre-norm: x + branch(norm(x)). The argument "
    "norm_first says which of the two."
)
POST, PRE = functools.partial(join, pre=False), functools.partial(join, pre=True)
in_order("post-norm in place of pre-norm", ORDER, pre=POST)
in_order("pre-norm in place of post-norm", ORDER, post=PRE)


def _masked(x, mask, *_):
    return mask is not None


@layers.mistake(
    "mask not passed on",
    "Attention never saw the mask: self.attention(..., mask=mask).",
    when=_masked,
)
def _(x, mask, parts, pre):
    return join(x, *parts.maps(), pre)


@layers.mistake(
    "mask inverted",
    "In this course True means 'may attend'. Pass the mask on as it is.",
    when=_masked,
)
def _(x, mask, parts, pre):
    return join(x, *parts.maps(~mask), pre)


BRANCH = (
    "In pre-norm the branch reads norm(x), but its result is added to x itself. Keep x "
    "under its own name: x + branch(norm(x))."
)


in_order(
    "residual from the normalised x",
    BRANCH,
    pre=lambda x, a, f, n1, n2: n2(y := n1(x) + a(n1(x))) + f(n2(y)),
)
in_order(
    "residual from the normalised x",
    BRANCH,
    pre=lambda x, a, f, n1, n2: (y := n1(x) + a(n1(x))) + f(n2(y)),
)
in_order(
    "residual from the normalised x",
    BRANCH,
    pre=lambda x, a, f, n1, n2: n2(y := x + a(n1(x))) + f(n2(y)),
)
in_order(
    "norm in both places",
    "The norm is at the start of the branch or after the addition, not both.",
    pre=lambda x, a, f, n1, n2: n2((y := n1(x + a(n1(x)))) + f(n2(y))),
)

ADDED = "Each half adds what its branch computed to what went into the half."
in_order(
    "no residual connections",
    ADDED,
    pre=lambda x, a, f, n1, n2: f(n2(a(n1(x)))),
    post=lambda x, a, f, n1, n2: n2(f(n1(a(x)))),
)
in_order(
    "no residual around attention",
    ADDED,
    pre=lambda x, a, f, n1, n2: (y := a(n1(x))) + f(n2(y)),
    post=lambda x, a, f, n1, n2: n2((y := n1(a(x))) + f(y)),
)
in_order(
    "no residual around feed-forward",
    ADDED,
    pre=lambda x, a, f, n1, n2: f(n2(x + a(n1(x)))),
    post=lambda x, a, f, n1, n2: n2(f(n1(x + a(x)))),
)


@layers.mistake(
    "only the queries are normalised",
    "Attention got norm_1(x) for its queries and x for keys and values. All three come "
    "from norm_1(x): keep it under a name of its own.",
    when=lambda x, mask, parts, pre: pre,
)
def _(x, mask, parts, pre):
    y = attend(parts.norm(1, x), parts.attention, parts.heads, mask, x)
    x = x + parts.drop(y)
    return x + parts.drop(parts.feed(parts.norm(2, x)))


in_order(
    "feed-forward reads the sum before its norm",
    "In post-norm the second half starts from norm_1(x + attention): both its branch "
    "and its residual.",
    post=lambda x, a, f, n1, n2: n2(n1(y := x + a(x)) + f(y)),
)
in_order(
    "second residual from the layer's input",
    "The second half adds to what the first half gave, so attention is not lost.",
    pre=lambda x, a, f, n1, n2: x + f(n2(x + a(n1(x)))),
    post=lambda x, a, f, n1, n2: n2(x + f(n1(x + a(x)))),
)
in_order(
    "feed-forward does not read what attention gave",
    "The second half reads the result of the first.",
    pre=lambda x, a, f, n1, n2: x + a(n1(x)) + f(n2(x)),
    post=lambda x, a, f, n1, n2: n2(n1(x + a(x)) + f(x)),
)
in_both(
    "norm on the branch's output only",
    ORDER,
    lambda a, f, n1, n2: (lambda x: n1(a(x)), lambda x: n2(f(x)), same, same),
)
OWN = "The first half has norm_1, the second norm_2, each its own parameters."
in_both("one norm for both halves", OWN, lambda a, f, n1, n2: (a, f, n1, n1))
in_both("one norm for both halves", OWN, lambda a, f, n1, n2: (a, f, n2, n2))
in_both("norm_1 and norm_2 exchanged", OWN, lambda a, f, n1, n2: (a, f, n2, n1))
in_both("no norms", ORDER, lambda a, f, n1, n2: (a, f, same, same))
in_both("no norm in the first half", ORDER, lambda a, f, n1, n2: (a, f, same, n2))
in_both("no norm in the second half", ORDER, lambda a, f, n1, n2: (a, f, n1, same))
in_both(
    "attention and feed-forward exchanged",
    "Attention comes first: it gathers, then the feed-forward network works on what "
    "was gathered.",
    lambda a, f, n1, n2: (f, a, n1, n2),
)
HALVES = "The layer has two halves, each with its own branch."
in_both(
    "no feed-forward half", HALVES, lambda a, f, n1, n2: (a, torch.zeros_like, n1, n2)
)
in_order(
    "no feed-forward half",
    HALVES,
    pre=lambda x, a, f, n1, n2: x + a(n1(x)),
    post=lambda x, a, f, n1, n2: n1(x + a(x)),
)
in_both("no attention half", HALVES, lambda a, f, n1, n2: (torch.zeros_like, f, n1, n2))


@layers.mistake(
    "activation not passed on",
    "Give the activation to FeedForward(d_model, d_ff, activation).",
    when=lambda x, mask, parts, pre: parts.activation is not torch.relu,
)
def _(x, mask, parts, pre):
    return join(x, *parts.varied(activation=torch.relu).maps(mask), pre)


@layers.mistake(
    "heads not passed on",
    "Give the number of heads to MultiHeadAttention(d_model, heads).",
)
def _(x, mask, parts, pre):
    return join(x, *parts.varied(heads=1).maps(mask), pre)


AFTER = (
    "Dropout acts on what a branch has computed, before the addition. After it, it "
    "would tear holes into the stream itself, two in every layer."
)


@layers.mistake("dropout after the addition", AFTER)
def _(x, mask, parts, pre):
    a, f, n1, n2 = parts.varied(drop=same).maps(mask)
    if pre:
        x = parts.drop(x + a(n1(x)))
        return parts.drop(x + f(n2(x)))
    x = n1(parts.drop(x + a(x)))
    return n2(parts.drop(x + f(x)))


@layers.mistake("dropout after the addition", AFTER)
def _(x, mask, parts, pre):
    a, f, n1, n2 = parts.maps(mask)
    if pre:
        x = parts.drop(x + a(n1(x)))
        return x + f(n2(x))
    x = n1(parts.drop(x + a(x)))
    return n2(x + f(x))


BOTH = "Both branches have their dropout: of attention and of the network."


@layers.mistake("dropout only on attention", BOTH)
def _(x, mask, parts, pre):
    a, _, n1, n2 = parts.maps(mask)
    return join(x, a, parts.feed, n1, n2, pre)


@layers.mistake("dropout only on the feed-forward network", BOTH)
def _(x, mask, parts, pre):
    _, f, n1, n2 = parts.maps(mask)
    return join(x, lambda u: parts.attend(u, mask), f, n1, n2, pre)


@layers.mistake(
    "no dropout",
    "In training nothing was dropped. Build nn.Dropout(dropout) and use it on the "
    "output of both branches.",
)
def _(x, mask, parts, pre):
    return join(x, *parts.varied(drop=same).maps(mask), pre)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="encoder-layer", forbidden=(forbidden.ENCODER_LAYER,))
def encoder_layer(
    student: StudentModule,
    norm_student: StudentModule,
    network_student: StudentModule,
    seed: int = 0,
) -> None:
    """PyTorch's values with the same weights, both orders, masks, dropout."""
    with (
        expect.relying_on(layer_norm, norm_student),
        expect.relying_on(network_alone, network_student),
    ):
        check_layer(student, seed)


@chapter.check(section="encoder-layer")
def layer_alone(student: StudentModule, seed: int = 0) -> None:
    """Check the layer for what is built on it."""
    check_layer(student, seed)


def check_layer(student: StudentModule, seed: int) -> None:
    """Judge parameters, values in both orders with every mask, dropout, gradients."""
    generator = seeded(seed)
    b, t, heads, d, d_ff = oracles.layer_sizes(generator)
    shapes = oracles.layer_shapes(d, d_ff)
    on = f"EncoderLayer(d_model={d}, heads={heads}, d_ff={d_ff})"
    expect_parameters(student.build(d, heads, d_ff), shapes, on, _own(shapes))
    x = normal(generator, b, t, d) + 0.3
    for pre, activation in ((False, "relu"), (True, "relu"), (True, "gelu")):
        where = f"{on}, norm_first={pre}, activation={activation!r}"
        layer = student.build(d, heads, d_ff, 0.0, pre, activation)
        state = oracles.draw_state(generator, shapes)
        layer.load_state_dict(state)
        right = oracles.torch_layer(d, heads, d_ff, pre, activation)
        right.load_state_dict(oracles.to_torch(state))
        parts = Parts(state, heads, ACTIVATIONS[activation])
        for mask in (None, *oracles.draw_masks(generator, b, t)):
            _judge_masked(layer, right, x, mask, (parts, pre), where)
        for fewer in (x[0], x[:, :1]):  # one sentence; sentences of one token
            _judge_masked(layer, right, fewer, None, (parts, pre), where)
        _judge_dropout(student, state, parts, x, pre, where)
    _judge_gradient(layer, right, x, where)


def _judge_masked(layer, right, x, mask, given, on: str) -> None:
    on = say_mask(f"{on}, x {tuple(x.shape)}", mask)
    inputs = (x,) if mask is None else (x, mask)
    with pair_named(), _misplaced_mask_named(mask):
        got = layer(*inputs)
    expect_no_pair(got, on)
    with torch.no_grad():
        expected = right(x, src_mask=oracles.torch_mask(mask, x, given[0].heads))
    known = layers.known(x, mask, *given)
    expect.equal(got, expected, on=on, mistakes=known, tolerance=DEEP)


def say_mask(on: str, mask: torch.Tensor | None) -> str:
    """Add the mask's shape to what a message says of an input."""
    return on if mask is None else f"{on}, mask {tuple(mask.shape)}"


@contextlib.contextmanager
def _misplaced_mask_named(mask: torch.Tensor | None) -> Iterator[None]:
    """Name the mistake behind a call that fails only when there is a mask."""
    try:
        yield
    except StudentError as error:
        if mask is not None and error.kind in ("RuntimeError", "TypeError"):
            why = (
                "Without a mask the same call succeeds. Probably the mask was given in "
                "the second place of attention, which belongs to x_kv: write "
                "mask=mask."
            )
            said = f"{error.kind}: {describe_error(error)}"
            refuse("fails as soon as there is a mask", why, on=error.call, got=said)
        raise


def expect_no_pair(got: Data, on: str) -> None:
    """Expect the tokens alone, without the weights of attention."""
    why = "Only the tokens go on to the next layer: return one tensor."
    say = {"on": on, "got": show(got), "expected": "one tensor"}
    refuse_if(isinstance(got, tuple), "the weights are returned, too", why, **say)


def _own(shapes: Shapes) -> Callable[..., Iterator[tuple]]:
    """Make what ``expect_parameters`` is told of this exercise's own mistakes."""

    def own(state: State, missing: list, extra: list) -> Iterator[tuple]:
        one = {"norm_2.gamma", "norm_2.beta"}, {"norm_1.gamma", "norm_1.beta"}
        yield set(missing) in one and not extra, "one norm for both halves", OWN
        torchs = {"norm_1.weight", "norm_1.bias", "norm_2.weight", "norm_2.bias"}
        why = "Build the norms from your own LayerNorm."
        yield torchs <= set(extra), "PyTorch's module in place of your own", why
        yield from oracles.network_keeps_width(shapes)(state, missing, extra)

    return own


def _judge_gradient(layer: StudentInstance, right, x: torch.Tensor, on: str) -> None:
    cotangent = x.flip(0).contiguous()
    found = layer.gradients(x, cotangent=cotangent)
    expect_gradients({"x": found.inputs[0], **found.parameters}, on)
    x = x.clone().requires_grad_()
    (wanted,) = torch.autograd.grad((right(x) * cotangent).sum(), x)
    on, what = f"the gradient; {on}", "the gradient of x"
    expect.equal(found.inputs[0], wanted, on=on, what=what, tolerance=1e-4)


def _judge_dropout(student, state, parts: Parts, x, pre: bool, on: str) -> None:
    """With a probability of 1, dropout shows where it stands, without any chance."""
    (d, d_ff), heads = state["feed_forward.w_1"].shape, parts.heads
    name = "gelu" if parts.activation is F.gelu else "relu"
    layer = student.build(d, heads, d_ff, 1.0, pre, name)
    layer.load_state_dict(state)
    layer.train(True)
    where = f"{on}, dropout=1 in training: both branches give zeros"
    dropped = x if pre else parts.norm(2, parts.norm(1, x))
    given = None, parts.varied(drop=torch.zeros_like), pre
    layers.judge(layer, Case(where, (x,), dropped, given, DEEP))
    layer.train(False)
    why = (
        "After model.eval() nothing may be dropped. nn.Dropout knows; F.dropout has to "
        "be told: training=self.training."
    )
    still = Mistake("dropout active in evaluation", dropped, why)
    where = f"{on}, dropout=1 in evaluation: nothing is dropped"
    known = itertools.chain([still], layers.known(x, None, parts, pre))
    right = join(x, *parts.maps(), pre)
    expect.equal(layer(x), right, on=where, mistakes=known, tolerance=DEEP)
