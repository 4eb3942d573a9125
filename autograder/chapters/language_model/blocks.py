"""The block of a language model, from a configuration."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.encoder.oracles import DEEP, draw_state
from autograder.chapters.language_model.chapter import chapter
from autograder.chapters.language_model.grouped import (
    Map,
    by_torch,
    causal_attention,
    rotated,
    same,
)
from autograder.chapters.language_model.methods import judge_methods
from autograder.chapters.language_model.parts import (
    ACTIVATIONS,
    Parts,
    Three,
    Torchs,
)
from autograder.chapters.multi_head_attention.heads import (
    UNMERGED,
    join,
    unviewed,
)
from autograder.chapters.multi_head_attention.loop import NO_W_O
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.naming import Mistake
from autograder.exercise.parameters import Shapes, State, expect_parameters
from autograder.exercise.spec import Case, Module, expect_gradients
from autograder.expect import describe_error, refuse_if, show
from autograder.interface import StudentError, StudentFunction, StudentModule


@dataclass(frozen=True)
class Choices:
    """A configuration, without the sizes."""

    norm: str
    feed_forward: str
    positions: str
    shared: bool  # whether there are fewer heads of keys and values
    qk_norm: bool


OLD = Choices("layer", "relu", "learned", shared=False, qk_norm=False)
NEW = Choices("rms", "swiglu", "rotary", shared=True, qk_norm=True)
CHOICES = (  # an exception at the second or third tells what is new in it
    OLD,
    replace(OLD, feed_forward="gelu", shared=True),
    replace(NEW, norm="layer", positions="learned", shared=False),
    NEW,
    replace(OLD, norm="rms", positions="rotary"),
    replace(NEW, feed_forward="gelu", shared=False),
)


@dataclass(frozen=True)
class Sizes:
    """How large a block is: d_model, heads, kv_heads if they are shared, and d_ff."""

    d: int
    heads: int
    kv_heads: int
    d_ff: int

    @classmethod
    def draw(cls, seed: int) -> "Sizes":
        """Draw sizes; d_k is none of the other numbers."""
        heads, width = 4, 6 + 4 * (seed % 2)
        return cls(heads * width, heads, 2, heads * width + 7 + seed % 3)

    def build(self, choices: Choices) -> tuple:
        """Return what a block is built with, but for its dropout."""
        kv_heads = self.kv_heads if choices.shared else self.heads
        sizes = self.d, self.heads, kv_heads, self.d_ff
        given = choices.norm, choices.feed_forward, choices.positions
        return *sizes, *given, choices.qk_norm

    def shapes(self, choices: Choices) -> Shapes:
        """Return the shape of each parameter."""
        d, d_ff, d_k = self.d, self.d_ff, self.d // self.heads
        narrow = d_k * self.kv_heads if choices.shared else d
        matrices = {"q": (d, d), "k": (d, narrow), "v": (d, narrow), "o": (d, d)}
        shapes: Shapes = {f"attention.w_{k}": v for k, v in matrices.items()}
        for name in ("norm_1", "norm_2"):
            shapes[f"{name}.gamma"] = (d,)
            if choices.norm == "layer":
                shapes[f"{name}.beta"] = (d,)
        if choices.qk_norm:
            shapes |= {"norm_q.gamma": (d_k,), "norm_k.gamma": (d_k,)}
        wide, narrow = (d, d_ff), (d_ff, d)
        inside: Shapes = {"w_1": wide, "b_1": (d_ff,), "w_2": narrow, "b_2": (d,)}
        if choices.feed_forward == "swiglu":
            inside = {"w_gate": wide, "w_up": wide, "w_down": narrow}
        return shapes | {f"feed_forward.{k}": v for k, v in inside.items()}


def pre(x: torch.Tensor, a: Map, f: Map, n1: Map, n2: Map) -> torch.Tensor:
    """Join two branches, each after its norm."""
    x = x + a(n1(x))
    return x + f(n2(x))


blocks = Module(
    "block-from-configuration",
    "DecoderBlock",
    lambda x, parts: pre(x, *parts.maps()),
    given=lambda block: (Parts.of(block),),
)
PAIR = (
    "the weights are returned, too",
    "Only the tokens go on to the next block: return one tensor.",
)

# --- what goes wrong: the two halves --------------------------------------------------


def in_halves(name: str, why: str, *answers: Callable) -> None:
    """State a mistake by what becomes of both branches and both norms."""
    for answer in answers:
        blocks.mistake(name, why)(
            lambda x, parts, answer=answer: answer(x, *parts.maps())
        )


STREAM = (
    "Each half adds what its branch has computed to what went into the half: first "
    "x + attention, then that + network."
)
ORDER = (
    "Pre-norm: x + branch(norm(x)). The norm is in front of the branch, and "
    "nothing stands in the way of x itself."
)
ADDED_TWICE = (
    "x is added twice",
    f"{STREAM} A branch gives back what it has computed, and nothing else.",
)
OWN = "The first half has norm_1, the second norm_2, each its own parameters."
for name, why, *answers in (
    (
        "post-norm in place of pre-norm",
        ORDER,
        lambda x, a, f, n1, n2: n2((y := n1(x + a(x))) + f(y)),
    ),
    (
        "residual from the normalised x",
        f"{ORDER} What is added to is x, not the normalised x.",
        lambda x, a, f, n1, n2: n2(y := n1(x) + a(n1(x))) + f(n2(y)),
        lambda x, a, f, n1, n2: (y := n1(x) + a(n1(x))) + f(n2(y)),
        lambda x, a, f, n1, n2: n2(y := x + a(n1(x))) + f(n2(y)),
    ),
    (
        "no residual connections",
        STREAM,
        lambda x, a, f, n1, n2: f(n2(a(n1(x)))),
    ),
    (
        "no residual around attention",
        STREAM,
        lambda x, a, f, n1, n2: (y := a(n1(x))) + f(n2(y)),
    ),
    (
        "no residual around feed-forward",
        STREAM,
        lambda x, a, f, n1, n2: f(n2(x + a(n1(x)))),
    ),
    (
        *ADDED_TWICE,
        lambda x, a, f, n1, n2: (y := x + a(n1(x))) + f(n2(y)) + y,
        lambda x, a, f, n1, n2: (y := x + a(n1(x)) + x) + f(n2(y)),
        lambda x, a, f, n1, n2: (y := x + a(n1(x))) + f(n2(y)) + x,
    ),
    (
        "norm on the branch's output only",
        ORDER,
        lambda x, a, f, n1, n2: (y := x + n1(a(x))) + n2(f(y)),
        lambda x, a, f, n1, n2: (y := x + a(n1(x))) + n2(f(y)),
    ),
    (
        "second residual from the layer's input",
        STREAM,
        lambda x, a, f, n1, n2: x + f(n2(x + a(n1(x)))),
    ),
    (
        "feed-forward does not read what attention gave",
        "The second half reads the result of the first.",
        lambda x, a, f, n1, n2: x + a(n1(x)) + f(n2(x)),
    ),
    (
        "one norm for both halves",
        OWN,
        lambda x, a, f, n1, n2: pre(x, a, f, n1, n1),
        lambda x, a, f, n1, n2: pre(x, a, f, n2, n2),
    ),
    (
        "norm_1 and norm_2 exchanged",
        OWN,
        lambda x, a, f, n1, n2: pre(x, a, f, n2, n1),
    ),
    (
        "no norm in the first half",
        ORDER,
        lambda x, a, f, n1, n2: pre(x, a, f, same, n2),
    ),
    (
        "no norm in the second half",
        ORDER,
        lambda x, a, f, n1, n2: pre(x, a, f, n1, same),
    ),
    (
        "no feed-forward half",
        "The block has two halves, each with its own branch.",
        lambda x, a, f, n1, n2: x + a(n1(x)),
    ),
):
    in_halves(name, why, *answers)


@blocks.mistake(*ADDED_TWICE)
def _(x, parts):
    a, _, n1, n2 = parts.maps()
    x = x + a(n1(x))
    return x + parts.drop(x + parts.feed(n2(x)))


BOTH = "Both branches have their dropout: of attention and of the network."


@blocks.mistake("no dropout", f"In training nothing was dropped. {BOTH}")
def _(x, parts):
    return pre(x, *replace(parts, drop=same).maps())


@blocks.mistake("dropout only on attention", BOTH)
def _(x, parts):
    a, _, n1, n2 = parts.maps()
    return pre(x, a, parts.feed, n1, n2)


@blocks.mistake("dropout only on the feed-forward network", BOTH)
def _(x, parts):
    _, f, n1, n2 = parts.maps()
    return pre(x, lambda y: parts.mix(*parts.project(y)), f, n1, n2)


@blocks.mistake(
    "dropout after the addition",
    "Dropout acts on what a branch has computed, before the addition. After it, it "
    "would tear holes into the stream itself.",
)
def _(x, parts):
    a, f, n1, n2 = replace(parts, drop=same).maps()
    x = parts.drop(x + a(n1(x)))
    return parts.drop(x + f(n2(x)))


# --- what goes wrong: queries, keys and values ----------------------------------------


def in_heads(name: str, why: str, change: Callable, when: str = "") -> None:
    """State a mistake by what becomes of normalised tokens in the first branch.

    Args:
        name: what the message calls it.
        why: the reason.
        change: of the normalised tokens and the parts, what the branch gives.
        when: "normalised" or "rotated", if the mistake shows only then.
    """

    def shows(x, parts: Parts) -> bool:
        return parts.rotary if when == "rotated" else "norm_q.gamma" in parts.state

    @blocks.mistake(name, why, when=shows if when else None)
    def _(x, parts):
        return pre(x, *parts.maps(lambda y: change(y, parts)))


def _three(q: str, k: str, v: str = "", rotate: Map = same) -> Callable:
    """Normalise by the norms of these names, then rotate."""

    def change(y: torch.Tensor, parts: Parts) -> torch.Tensor:
        split = zip((q, k, v), parts.split(y), strict=True)
        first, second, third = (parts.norm(name, each) for name, each in split)
        return parts.mix(rotate(first), rotate(second), third)

    return change


QK = (
    "With qk_norm=True queries and keys are normalised after the split, each head by "
    "itself, queries by norm_q and keys by norm_k. Values are not."
)
for name, change in (
    ("queries and keys are not normalised", _three("", "")),
    ("the keys are not normalised", _three("norm_q", "")),
    ("the queries are not normalised", _three("", "norm_k")),
    ("one norm for queries and keys", _three("norm_q", "norm_q")),
    ("one norm for queries and keys", _three("norm_k", "norm_k")),
    ("norm_q and norm_k exchanged", _three("norm_k", "norm_q")),
    ("the values are normalised, too", _three("norm_q", "norm_k", "norm_k")),
):
    in_heads(name, QK, change, "normalised")
in_heads(
    "rotated twice",
    "causal_attention rotates already. What project returns is not rotated.",
    _three("norm_q", "norm_k", rotate=rotated),
    "rotated",
)


def _normalised_late(y: torch.Tensor, parts: Parts) -> torch.Tensor:
    q, k, v = parts.split(y)
    still = replace(parts, rotary=False)
    return still.mix(
        still.norm("norm_q", rotated(q)), still.norm("norm_k", rotated(k)), v
    )


blocks.mistake(
    "normalised after the rotation",
    "gamma scales each feature by its own number. After the rotation the two features "
    "of a pair are mixed, and the score would no longer depend on the distance alone. "
    "Normalise in project; causal_attention rotates.",
    when=lambda x, parts: parts.rotary and "norm_q.gamma" in parts.state,
)(lambda x, parts: pre(x, *parts.maps(lambda y: _normalised_late(y, parts))))
in_heads(*UNMERGED, lambda y, parts: parts.mix(*parts.project(y), unviewed))
in_heads(
    *NO_W_O,
    lambda y, parts: join(parts.attention(*parts.project(y), parts.rotary)),
)
in_heads(
    "keys and values exchanged",
    "project returns queries, keys and values, in this order. Keys come from w_k, "
    "values from w_v.",
    lambda y, parts: parts.mix(*(parts.project(y)[i] for i in (0, 2, 1))),
)
for raw in ("v", "kv", "k", "q"):

    @blocks.mistake(
        "not all three are of the normalised x",
        "Queries, keys and values are all made of norm_1(x).",
    )
    def _(x, parts, raw=raw):
        return pre(x, *parts.maps(lambda y: parts.mix(*_three_of(x, y, parts, raw))))


def _three_of(x: torch.Tensor, y: torch.Tensor, parts: Parts, raw: str) -> Three:
    """Make those named in ``raw`` of x, the others of the normalised y."""
    pairs = zip("qkv", parts.project(x), parts.project(y), strict=True)
    q, k, v = (first if name in raw else second for name, first, second in pairs)
    return q, k, v


blocks.mistake(
    "activation not passed on",
    'FeedForward knows "relu" and "gelu": hand the name on.',
    when=lambda x, parts: parts.activation not in (F.relu, torch.relu, F.silu),
)(lambda x, parts: pre(x, *replace(parts, activation=F.relu).maps()))

# --- the parameters -------------------------------------------------------------------


def _own(
    sizes: Sizes, choices: Choices, state: State, missing: list, extra: list
) -> Iterator[tuple]:
    betas = {"norm_1.beta", "norm_2.beta"}
    why = f"norm={choices.norm!r} asks for the other one, in both halves."
    yield set(extra) == betas and not missing, "layer norm in place of RMS norm", why
    yield set(missing) == betas and not extra, "RMS norm in place of layer norm", why
    gammas = {"norm_q.gamma", "norm_k.gamma"}
    why = "With qk_norm=True queries and keys have a norm each: norm_q and norm_k."
    yield set(missing) == gammas and not extra, "no norms for queries and keys", why
    why = "With qk_norm=False norm_q and norm_k are nn.Identity(), without parameters."
    unasked = set(extra) == gammas and not missing
    yield unasked, "norms for queries and keys in every block", why
    why = "norm_q and norm_k are RMS norms whatever norm says."
    offsets = {"norm_q.beta", "norm_k.beta"}
    only = extra and set(extra) <= offsets and not missing
    yield only, "layer norm for queries and keys", why
    one = set(missing) in ({"norm_k.gamma"}, {"norm_q.gamma"}) and not extra
    yield one, "one norm for queries and keys", QK
    one = missing and set(missing) <= {"norm_2.gamma", "norm_2.beta"} and not extra
    yield one, "one norm for both halves", OWN
    gated = f"feed_forward={choices.feed_forward!r}"
    why = f'{gated}: "swiglu" is a SwiGLU, every other word an activation.'
    lost = all(name.startswith("feed_forward.") for name in missing)
    yield missing and lost and extra, "the other feed-forward network", why
    if not missing and not extra:
        yield from _shapes(sizes, choices, state)


def _shapes(sizes: Sizes, choices: Choices, state: State) -> Iterator[tuple]:
    """Name parameters that have the right names, and the shape of something else."""
    inside = {k: v for k, v in sizes.shapes(choices).items() if len(v) == 2}
    turned = all(
        tuple(state[name].shape) == shape[::-1]
        for name, shape in inside.items()
        if name.startswith("feed_forward.")
    )
    why = "The network is built with the width of the tokens first: (d_model, d_ff)."
    yield turned, "d_model and d_ff exchanged", why
    if choices.qk_norm:
        wide = tuple(state["norm_q.gamma"].shape) == (sizes.d,)
        why = "Each head is normalised by itself: norm_q and norm_k are d_k wide."
        yield wide, "norms of queries and keys as wide as the model", why
    if choices.shared:
        wide = all(
            tuple(state[f"attention.w_{name}"].shape) == (sizes.d, sizes.d)
            for name in "kv"
        )
        why = "There are kv_heads of them, each d_model/heads wide: fewer columns."
        yield wide, "keys and values as wide as the queries", why


@chapter.check(section="language-model-block")
def block_parts(student: StudentModule, seed: int = 0) -> None:
    """Check the parameters of a block for every choice."""
    sizes = Sizes.draw(seed)
    for choices in CHOICES:
        build = sizes.build(choices)
        own = functools.partial(_own, sizes, choices)
        block = student.build(*build)
        expect_parameters(block, sizes.shapes(choices), _said(build), own)


ARGUMENTS = ("d_model", "heads", "kv_heads", "d_ff")
ARGUMENTS += ("norm", "feed_forward", "positions", "qk_norm")


def _said(build: tuple) -> str:
    pairs = zip(ARGUMENTS, build, strict=True)
    return "DecoderBlock(" + ", ".join(f"{k}={v!r}" for k, v in pairs) + ")"


# --- the values -----------------------------------------------------------------------


@chapter.check(section="language-model-block")
def decoder_block(
    student: StudentModule, attention: StudentFunction, seed: int = 0
) -> None:
    """PyTorch's functions with the same weights, for every choice; dropout."""
    with expect.relying_on(causal_attention, attention):
        for choices in CHOICES:
            _check_values(student, choices, seed)


def _check_values(student: StudentModule, choices: Choices, seed: int) -> None:
    generator, sizes = seeded(seed), Sizes.draw(seed)
    build = sizes.build(choices)
    state = draw_state(generator, sizes.shapes(choices))
    block, on = student.build(*build), _said(build)
    block.load_state_dict(state)
    given = (state, *build[1:3], choices.positions == "rotary")
    activation = ACTIVATIONS[choices.feed_forward]
    parts = Parts(*given, activation)
    right = Torchs(*given, activation, attention=by_torch)
    is_right = True
    for shape in ((3, 5, sizes.d), (2, 9, sizes.d), (3, 1, sizes.d)):
        x = normal(generator, *shape) + 0.3
        with _misfits_named(choices):
            got = block(x)
        say = {"on": on, "got": show(got), "expected": "one tensor"}
        refuse_if(isinstance(got, tuple), *PAIR, **say)
        wanted = pre(x, *right.maps())
        where = f"{on}, x {shape}"
        blocks.compare(got, Case(where, (x,), wanted, (parts,), tolerance=DEEP))
        is_right &= expect.close(got, wanted, DEEP)
    if is_right:
        judge_methods(block, seed, parts, right, on)
    found = block.gradients(x, cotangent=x)
    expect_gradients({"x": found.inputs[0], **found.parameters}, on)
    _judge_dropout(student, build, state, parts, x)


MISFIT = (
    "keys and values split into as many heads as the queries",
    "With as many heads of keys as of queries the same call succeeds. Keys and values "
    "are split into kv_heads.",
)
LATE = (
    "normalised before the heads are split",
    "norm_q and norm_k are d_k wide, as one head is: split first, then normalise.",
)


@contextlib.contextmanager
def _misfits_named(choices: Choices) -> Iterator[None]:
    """Name the mistake behind a call that fails as soon as one thing is asked for."""
    try:
        yield
    except StudentError as error:
        sizes = error.kind == "RuntimeError"
        say = {"on": error.call, "got": f"{error.kind}: {describe_error(error)}"}
        refuse_if(sizes and choices.shared and not choices.qk_norm, *MISFIT, **say)
        refuse_if(sizes and choices.qk_norm and not choices.shared, *LATE, **say)
        raise


def _judge_dropout(student: StudentModule, build: tuple, state, parts, x) -> None:
    """With a probability of 1, dropout shows where it stands, without any chance."""
    block = student.build(*build, 1.0)
    block.load_state_dict(state)
    block.train(True)
    on = f"{_said(build)}, dropout=1"
    given = (replace(parts, drop=torch.zeros_like),)
    where = f"{on}, in training: both branches give zeros"
    blocks.judge(block, Case(where, (x,), x, given, DEEP))
    block.train(False)
    why = "After model.eval() nothing may be dropped; nn.Dropout knows."
    still = Mistake("dropout active in evaluation", x, why)
    known = itertools.chain([still], blocks.known(x, parts))
    on, right = f"{on}, in evaluation", pre(x, *parts.maps())
    expect.equal(block(x), right, on=on, mistakes=known, tolerance=DEEP)
