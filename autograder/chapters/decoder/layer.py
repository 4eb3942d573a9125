"""The decoder layer: what goes wrong, and the check."""

import itertools
from collections.abc import Callable, Iterator

import torch

from autograder import expect, forbidden
from autograder.chapters.decoder import oracles
from autograder.chapters.decoder.calls import (
    Judged,
    call,
    lengths_named,
    masks_named,
    say_masks,
    torch_masks,
)
from autograder.chapters.decoder.chapter import chapter
from autograder.chapters.decoder.inputs import draw_kinds, draw_sizes
from autograder.chapters.decoder.parts import DecoderParts, Pass, run
from autograder.chapters.encoder.layer import expect_no_pair, pair_named
from autograder.chapters.encoder.oracles import (
    DEEP,
    draw_state,
    network_keeps_width,
)
from autograder.chapters.encoder.parts import ACTIVATIONS, State, same
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.naming import Mistake
from autograder.exercise.parameters import Shapes, expect_parameters
from autograder.exercise.spec import Case, Module, expect_gradients
from autograder.interface import StudentModule

# told of the input, the memory, both masks, the parts of the layer, and whether it is
# in pre-norm
layers = Module(
    "decoder-layer",
    "DecoderLayer",
    run,
    given=lambda layer: (DecoderParts.of(layer), layer.norm_first),
)


# --- what goes wrong: the masks -------------------------------------------------------


def passed(
    name: str,
    why: str,
    *answers: Callable[[Pass], torch.Tensor],
    when: Callable[[Pass], bool] | None = None,
) -> None:
    """State a mistake by what it makes of a pass through the layer."""
    for answer in answers:
        layers.mistake(name, why, when=when and (lambda *given: when(Pass(*given))))(
            lambda *given, answer=answer: answer(Pass(*given))
        )


def _masked(p: Pass) -> bool:
    return p.mask is not None


def _memory_masked(p: Pass) -> bool:
    return p.memory_mask is not None


AS_IT_IS = "In this course True means 'may attend'. Pass the mask on as it is."
passed(
    "mask not passed on",
    "Self-attention never saw its mask: self.self_attention(..., mask=mask).",
    lambda p: p.varied(mask=None).join(),
    when=_masked,
)
passed(
    "mask turned round",
    AS_IT_IS,
    lambda p: p.varied(mask=~p.mask).join(),
    when=_masked,
)
passed(
    "memory_mask not passed on",
    "Cross-attention never saw memory_mask, so padding of the source is read as if it "
    "were words.",
    lambda p: p.varied(memory_mask=None).join(),
    when=_memory_masked,
)
passed(
    "memory_mask turned round",
    AS_IT_IS,
    lambda p: p.varied(memory_mask=~p.memory_mask).join(),
    when=_memory_masked,
)
FIT = (
    "mask belongs to self-attention, T_tgt by T_tgt; memory_mask to cross-attention, "
    "one column for each source token. They fit the other attention only when both "
    "sequences happen to have one length."
)
passed(
    "the masks are exchanged",
    FIT,
    lambda p: p.varied(mask=p.memory_mask, memory_mask=p.mask).join(),
)
passed(
    "no masks passed on",
    FIT,
    lambda p: p.varied(mask=None, memory_mask=None).join(),
)
passed(
    "a causal mask in cross-attention",
    "The source is there as a whole before a word is written: cross-attention may see "
    "all of it. Only self-attention has the causal mask.",
    lambda p: p.varied(memory_mask=p.mask).join(),
    lambda p: p.varied(
        memory_mask=p.mask if p.memory_mask is None else p.mask & p.memory_mask
    ).join(),
    when=_masked,
)

# --- what goes wrong: cross-attention -------------------------------------------------


def across(
    name: str, why: str, *answers: Callable[[Pass, torch.Tensor], torch.Tensor]
) -> None:
    """State a mistake by what stands in place of cross-attention."""
    for answer in answers:
        passed(
            name,
            why,
            lambda p, answer=answer: p.join((p.look, lambda u: answer(p, u), p.feed)),
        )


across(
    "queries and keys exchanged in cross-attention",
    "Queries come from the decoder, keys and values from the memory: "
    "self.cross_attention(x, memory, memory_mask). The other way round the result has "
    "a row for each source token, and fits the stream only by chance.",
    lambda p, u: p.attend(p.memory, p.parts.cross, None, u),
    lambda p, u: p.attend(p.memory, p.parts.cross, p.memory_mask, u),
    lambda p, u: p.attend(p.memory, p.parts.cross, p.mask, u),
)
across(
    "cross-attention does not read the memory",
    "The second attention looked at the decoder's own text. Hand it the memory as its "
    "second argument, otherwise the model never hears of the source.",
    lambda p, u: p.attend(u, p.parts.cross, None),
    lambda p, u: p.attend(u, p.parts.cross, p.mask),
    lambda p, u: p.attend(u, p.parts.cross, p.memory_mask),
)
across(
    "the queries come from the memory",
    "Its queries come from the decoder: self.cross_attention(x, ...).",
    lambda p, u: p.attend(p.memory, p.parts.cross, None),
    lambda p, u: p.attend(p.memory, p.parts.cross, p.mask),
    lambda p, u: p.attend(p.memory, p.parts.cross, p.memory_mask),
)
NO_CROSS = (
    "no cross-attention",
    "Between self-attention and the network each decoder layer has a second attention, "
    "to the memory. Without it the output does not depend on the source.",
)
across(*NO_CROSS, lambda p, u: torch.zeros_like(u), lambda p, u: p.look(u))
passed(
    *NO_CROSS,
    lambda p: p.join((p.look, p.feed), p.norms[::2]),
    lambda p: p.join((p.look, p.feed), p.norms[:2]),
)
for i in (1, 0, 2):
    across(
        "the memory is normalised again",
        "The memory is the encoder's finished output: it is read as it is, every layer "
        "the same. Only the decoder's own stream is normalised.",
        lambda p, u, i=i: p.varied(memory=p.norms[i](p.memory)).across(u),
    )
STREAM = (
    "the memory is added to the stream",
    "The residual connection carries the decoder's own stream: a + C(a, memory). The "
    "memory is only read; it does not even have the same length.",
)
across(*STREAM, lambda p, u: p.across(u) + p.memory)
passed(
    *STREAM,
    lambda p: _added(p, ("stream", "memory", "stream")),
    when=lambda p: not p.pre,
)
MODULES = "self_attention and cross_attention are two modules with their own weights."
across(
    "one attention for both",
    MODULES,
    lambda p, u: p.attend(u, p.parts.own, p.memory_mask, p.memory),
)
for exchanged in (False, True):
    names = "one attention for both", "the two attentions are exchanged"
    passed(
        names[exchanged],
        MODULES,
        lambda p, exchanged=exchanged: p.join(
            (
                lambda u: p.attend(u, p.parts.cross, p.mask),
                lambda u: p.attend(
                    u,
                    p.parts.own if exchanged else p.parts.cross,
                    p.memory_mask,
                    p.memory,
                ),
                p.feed,
            )
        ),
    )

# --- what goes wrong: the order and the residual connections --------------------------


def _is_pre(p: Pass) -> bool:
    return p.pre


def _is_post(p: Pass) -> bool:
    return not p.pre


ORDER = (
    "Post-norm: norm(x + branch(x)). Pre-norm: x + branch(norm(x)). The argument "
    "norm_first says which of the two."
)
for name, when in (
    ("post-norm in place of pre-norm", _is_pre),
    ("pre-norm in place of post-norm", _is_post),
):
    passed(name, ORDER, lambda p: p.varied(pre=not p.pre).join(), when=when)
passed(
    "both orders, one after the other",
    "Post-norm was computed after pre-norm, on its result. One of the two is to be "
    "done: write else, or return.",
    lambda p: p.varied(x=p.join(), pre=False).join(),
    when=_is_pre,
)
passed(
    "keys and values are not normalised",
    "In pre-norm the whole branch reads norm_1(x): its queries, its keys and its "
    "values. Here keys and values came from x itself.",
    lambda p: p.join(
        (lambda u: p.attend(u, p.parts.own, p.mask, p.x), p.across, p.feed)
    ),
    when=_is_pre,
)
LACKS = "The layer looks back, then across, and then thinks; each has its branch."
passed(
    "no self-attention",
    LACKS,
    lambda p: p.join((torch.zeros_like, p.across, p.feed)),
    lambda p: p.join((p.across, p.feed), p.norms[1:]),
)
passed(
    "no feed-forward network",
    LACKS,
    lambda p: p.join((p.look, p.across, torch.zeros_like)),
    lambda p: p.join((p.look, p.across), p.norms[:2]),
)
for order in ((1, 0, 2), (0, 2, 1), (2, 0, 1)):
    for follow in (False, True):

        def _reordered(p: Pass, order=order, follow=follow) -> torch.Tensor:
            norms = [p.norms[i] for i in order] if follow else p.norms
            return p.join([p.branches[i] for i in order], norms)

        passed(
            "the branches in another order",
            "First the layer gathers what is written, then it asks the memory about "
            "it, then the network works on both.",
            _reordered,
        )


def _added(p: Pass, to: tuple, read: tuple = (False, False, False)) -> torch.Tensor:
    """Add each branch to something else, or let it read the layer's input.

    Args:
        p: the pass.
        to: for each branch "stream", "input", "nothing", "norm" or "memory".
        read: for each branch whether it reads the layer's input.
    """
    stream = p.x
    for branch, norm, kind, first in zip(p.branches, p.norms, to, read, strict=True):
        before = p.x if first else stream
        start = {"stream": stream, "input": p.x, "nothing": 0, "memory": p.memory}
        start = norm(stream) if kind == "norm" else start[kind]
        new = branch(norm(before) if p.pre else before)
        stream = start + new if p.pre else norm(start + new)
    return stream


def residual(name: str, why: str, *kinds: str, when=None, read=(0, 0, 0)) -> None:
    """State a mistake by what the three branches are added to and what they read."""
    passed(name, why, lambda p: _added(p, kinds, read), when=when)


S, IN, NO, N = "stream", "input", "nothing", "norm"
EACH = "Each branch adds what it computed to what went into it: x + branch(...)."
residual("no residual around self-attention", EACH, NO, S, S)
residual("no residual around cross-attention", EACH, S, NO, S)
residual("no residual around the feed-forward network", EACH, S, S, NO)
residual("no residual connections", EACH, NO, NO, NO)
for kinds in ((IN, IN, IN), (S, S, IN), (S, IN, S)):
    residual(
        "residual from the layer's input",
        "Each branch adds to what the branch before it gave; otherwise what that one "
        "found is lost. Overwrite x after every addition.",
        *kinds,
    )
for read in ((0, 1, 1), (0, 1, 0), (0, 0, 1)):
    residual(
        "a branch reads the layer's input",
        "Each branch reads what the branch before it gave, not the layer's input.",
        *(S, S, S),
        read=read,
    )
for kinds in ((N, N, N), (N, S, S), (S, N, S), (S, S, N)):
    residual(
        "residual from the normalised x",
        "In pre-norm the branch reads norm(x), but its result is added to x itself. "
        "Keep x under its own name: x + branch(norm(x)).",
        *kinds,
        when=_is_pre,
    )

# --- what goes wrong: norms, sizes and dropout ----------------------------------------

OWN = "Each branch has its own norm, with its own parameters: norm_1, norm_2, norm_3."
for name, orders in (
    ("one norm for all branches", ("000", "111", "222")),
    ("one norm for two branches", ("002", "011", "010", "001", "112")),
    ("the norms are exchanged", ("102", "021", "210", "120", "201")),
):
    for order in orders:
        passed(
            name,
            OWN,
            lambda p, order=order: p.join(norms=[p.norms[int(i)] for i in order]),
        )
passed("no norms", ORDER, lambda p: p.join(norms=[same] * 3))
for i, place in enumerate(("first", "second", "third")):
    passed(
        f"no norm at the {place} branch",
        ORDER,
        lambda p, i=i: p.join(norms=[*p.norms[:i], same, *p.norms[i + 1 :]]),
    )


@layers.mistake("norm on the branch's output only", ORDER)
def _(*given):
    x, p = given[0], Pass(*given)
    for branch, norm in zip(p.branches, p.norms, strict=True):
        x = x + norm(branch(x))
    return x


passed(
    "activation not passed on",
    "Give the activation to FeedForward(d_model, d_ff, activation).",
    lambda p: p.varied(parts=p.parts.varied(activation=torch.relu)).join(),
    when=lambda p: p.parts.activation is not torch.relu,
)


def _single(p: Pass) -> Pass:
    return p.varied(parts=p.parts.varied(heads=1))


passed(
    "heads not passed on",
    "Give the number of heads to both MultiHeadAttention(d_model, heads).",
    lambda p: _single(p).join(),
    lambda p: p.join((p.look, _single(p).across, p.feed)),
    lambda p: p.join((_single(p).look, p.across, p.feed)),
)


def _undropped(p: Pass) -> Pass:
    return p.varied(parts=p.parts.varied(drop=same))


AFTER = (
    "dropout after the addition",
    "Dropout acts on what a branch has computed, before the addition. After it, it "
    "would tear holes into the stream itself, three in every layer.",
)
for last in (False, True):  # after the norm of post-norm, too

    @layers.mistake(*AFTER)
    def _(*given, last=last):
        p, x, drop = _undropped(Pass(*given)), given[0], given[4].drop
        for branch, norm in zip(p.branches, p.norms, strict=True):
            if p.pre:
                x = drop(x + branch(norm(x)))
            else:
                x = x + branch(x)
                x = drop(norm(x)) if last else norm(drop(x))
        return x


passed(
    "no dropout",
    "In training nothing was dropped. Use dropout on the output of all branches.",
    lambda p: _undropped(p).join(),
)
for chosen in range(1, 7):

    def _partly(p: Pass, chosen=chosen) -> torch.Tensor:
        pairs = zip(p.branches, _undropped(p).branches, strict=True)
        return p.join([pair[chosen >> i & 1] for i, pair in enumerate(pairs)])

    passed(
        "dropout not on all branches",
        "All three branches have their dropout: both attentions and the network.",
        _partly,
    )


# --- the check ------------------------------------------------------------------------


@chapter.check(section="decoder-layer", forbidden=(forbidden.DECODER_LAYER,))
def decoder_layer(student: StudentModule, seed: int = 0) -> None:
    """PyTorch's values with the same weights, both orders, masks, dropout."""
    generator = seeded(seed)
    b, t, s, heads, d, d_ff, _ = draw_sizes(generator)
    shapes = oracles.decoder_layer_shapes(d, d_ff)
    on = f"DecoderLayer(d_model={d}, heads={heads}, d_ff={d_ff})"
    expect_parameters(student.build(d, heads, d_ff), shapes, on, _own(shapes))
    x = normal(generator, b, t, d) + 0.3
    memory = 2 * normal(generator, b, s, d) - 0.2
    for pre, activation in ((False, "relu"), (True, "relu"), (True, "gelu")):
        where = f"{on}, norm_first={pre}, activation={activation!r}"
        layer = student.build(d, heads, d_ff, 0.0, pre, activation)
        state = draw_state(generator, shapes)
        layer.load_state_dict(state)
        right = oracles.torch_layer(d, heads, d_ff, pre, activation)
        right.load_state_dict(oracles.layer_to_torch(state))
        parts = DecoderParts(state, heads, ACTIVATIONS[activation])
        judged = Judged(layers, (parts, pre), where, DEEP)
        for masks in draw_kinds(generator, b, t, s):
            _judge_masked(layer, right, x, memory, masks, judged)
        one = right(x[0], memory[0]).detach()
        say = f"{where}, x {(t, d)}, memory {(s, d)}"
        given = None, None, parts, pre
        layers.judge(layer, Case(say, (x[0], memory[0]), one, given, DEEP))
        dropping = student.build(d, heads, d_ff, 1.0, pre, activation)
        dropping.load_state_dict(state)
        undropped = right(x, memory).detach()
        _judge_dropout(dropping, parts, x, memory, pre, undropped, where)
        _expect_blind_to_the_future(layer, x, memory, where)
    _judge_gradient(layer, right, x, memory, where)


def _judge_masked(layer, right, x, memory, masks, judged: Judged) -> None:
    on = say_masks(judged.on, x, memory, *masks)
    with (
        pair_named(),
        masks_named(*masks),
        lengths_named(layer, x, memory, masks, judged, on),
    ):
        got = call(layer, x, memory, *masks)
    expect_no_pair(got, on)
    heads = judged.given[0].heads
    with torch.no_grad():
        expected = right(x, memory, **torch_masks(*masks, x, heads))
    known = layers.known(x, memory, *masks, *judged.given)
    expect.equal(got, expected, on=on, mistakes=known, tolerance=DEEP)


def _expect_blind_to_the_future(layer, x, memory, on: str) -> None:
    """Expect derivatives by later inputs that are exactly 0, not only small."""
    t = x.shape[1]
    causal = torch.ones(t, t).tril().bool()
    cotangent = torch.zeros_like(x)
    cotangent[:, t // 2] = x[:, 0]
    found = layer.gradients(x, memory, causal, cotangent=cotangent).inputs[0]
    expect_gradients({"x": found}, on)
    later = found[:, t // 2 + 1 :].abs().max().item()
    expect.true(
        later == 0,
        "an output depends on a later token",
        on=f"{on}, causal mask {(t, t)}; the derivative of output {t // 2} by inputs "
        "after it",
        got=f"up to {later:.3g}",
        expected="exactly 0",
        why="Only self-attention mixes rows, and its mask is triangular. Does another "
        "step mix them, such as a mean over the sentence?",
        mistake="an output depends on a later token",
        section="decoder-causality",
    )


def _judge_gradient(layer, right, x, memory, on: str) -> None:
    cotangent = x.flip(0).contiguous()
    found = layer.gradients(x, memory, wrt=(0, 1), cotangent=cotangent)
    inputs = {"x": found.inputs[0], "the memory": found.inputs[1]}
    expect_gradients({**inputs, **found.parameters}, on)
    sources = [value.clone().requires_grad_() for value in (x, memory)]
    value = (right(*sources) * cotangent).sum()
    for name, wanted in zip(inputs, torch.autograd.grad(value, sources), strict=True):
        what = f"the gradient with respect to {name}"
        expect.equal(inputs[name], wanted, on=on, what=what, tolerance=1e-4)


def _judge_dropout(layer, parts, x, memory, pre, undropped, on: str) -> None:
    """With a probability of 1, dropout shows where it stands, without any chance."""
    layer.train(True)
    where = f"{on}, dropout=1 in training: all branches give zeros"
    dropping = parts.varied(drop=torch.zeros_like)
    given = None, None, dropping, pre
    case = Case(where, (x, memory), given=given, tolerance=DEEP)
    layers.judge(layer, case)
    layer.train(False)
    where = f"{on}, dropout=1 in evaluation: nothing is dropped"
    why = (
        "After model.eval() nothing may be dropped. nn.Dropout knows; F.dropout has to "
        "be told: training=self.training."
    )
    still = Mistake("dropout active in evaluation", layers.right(case), why)
    known = itertools.chain([still], layers.known(x, memory, None, None, parts, pre))
    got = layer(x, memory)
    expect.equal(got, undropped, on=where, mistakes=known, tolerance=DEEP)


def _own(shapes: Shapes) -> Callable[..., Iterator[tuple]]:
    """Make what ``expect_parameters`` is told of this exercise's own mistakes."""

    def own(state: State, missing: list, extra: list) -> Iterator[tuple]:
        parts = {name.partition(".")[0] for name in missing}
        alone = bool(missing) and not extra
        why = (
            "A decoder layer has two attentions, self_attention and cross_attention, "
            "each with its own parameters."
        )
        one = alone and parts in ({"cross_attention"}, {"self_attention"})
        yield one, "one attention for both", why
        norms = alone and all(part.startswith("norm_") for part in parts)
        yield norms, "fewer than three norms", OWN
        name = "PyTorch's module in place of your own"
        why = "Build the norms from your own LayerNorm."
        yield "norm_1.weight" in extra, name, why
        why = "Build both attentions from your own MultiHeadAttention."
        yield any(each.endswith("in_proj_weight") for each in extra), name, why
        yield from network_keeps_width(shapes)(state, missing, extra)

    return own
