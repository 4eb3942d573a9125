"""The known mistakes of chapter 7: what each gives on an input, and why it is wrong.

Each function whose name ends in ``_candidates`` yields (name, what it gives, why) for
the inputs of one exercise. The checks compare a wrong answer with them, in this order.
The arithmetic of a decoder layer is written here once more, from its formulas, so that
it can be varied; what is right comes from PyTorch's own layers, in the checks.
"""

import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

from autograder.chapters.encoder.parts import Parts, State, network, stack, under
from autograder.exercise.naming import Candidate

# --- the layer and the stack ----------------------------------------------------------


def _attend(x, other, p: State, heads: int, mask=None) -> torch.Tensor:
    """Attend from x to another sequence, with the parameters of chapter 5."""
    mask = None if mask is None else mask.unsqueeze(-3)
    q, k, v = (
        F.linear(source, p[f"w_{each}"].T, p[f"b_{each}"])
        .unflatten(-1, (heads, -1))
        .transpose(-3, -2)
        for each, source in (("q", x), ("k", other), ("v", other))
    )
    z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return F.linear(z.transpose(-3, -2).flatten(-2), p["w_o"].T, p["b_o"])


class DecoderParts:
    """The functions that a decoder layer is made of, with given parameters."""

    def __init__(self, state: State, heads: int, activation: Callable) -> None:
        self.heads, self.activation = heads, activation
        self.self_attention = under("self_attention.", state)
        self.cross_attention = under("cross_attention.", state)
        self.feed_forward = under("feed_forward.", state)
        self.norms = [under(f"norm_{i}.", state) for i in (1, 2, 3)]

    def look(self, x, mask=None, heads: int | None = None) -> torch.Tensor:
        """Look back at what is written."""
        return _attend(x, x, self.self_attention, heads or self.heads, mask)

    def across(self, x, memory, mask=None, heads: int | None = None) -> torch.Tensor:
        """Look across at the memory."""
        return _attend(x, memory, self.cross_attention, heads or self.heads, mask)

    def feed(self, x: torch.Tensor, activation: Callable | None = None) -> torch.Tensor:
        """Feed forward."""
        return network(x, self.feed_forward, activation or self.activation)

    def norm(self, i: int, x: torch.Tensor) -> torch.Tensor:
        """Normalise by the norm 1, 2 or 3."""
        p = self.norms[i - 1]
        return F.layer_norm(x, x.shape[-1:], p["gamma"], p["beta"])

    def all_norms(self) -> list[Callable]:
        """Return the three norms as functions."""
        return [lambda x, i=i: self.norm(i, x) for i in (1, 2, 3)]


def _same(x: torch.Tensor) -> torch.Tensor:
    return x


def _zero(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(x)


def join(x: torch.Tensor, branches, norms, pre: bool) -> torch.Tensor:
    """Join branches in pre-norm or post-norm."""
    for branch, norm in zip(branches, norms, strict=True):
        x = x + branch(norm(x)) if pre else norm(x + branch(x))
    return x


def run_layer(x, memory, parts: DecoderParts, mask, memory_mask, pre) -> torch.Tensor:
    """Run one layer."""
    branches = (
        lambda u: parts.look(u, mask),
        lambda u: parts.across(u, memory, memory_mask),
        parts.feed,
    )
    return join(x, branches, parts.all_norms(), pre)


def decoder_layer_candidates(
    x, memory, parts: DecoderParts, mask, memory_mask, pre: bool
) -> Iterator[Candidate]:
    """Put together the parts of a decoder layer in a wrong way."""

    def S(u, mask=mask):  # noqa: N802
        return parts.look(u, mask)

    def C(u, memory=memory, mask=memory_mask):  # noqa: N802
        return parts.across(u, memory, mask)

    f, n = parts.feed, parts.all_norms()

    def made(*branches, norms=n, pre=pre):
        return lambda: join(x, branches, norms, pre)

    yield from _mask_candidates_of_layer(made, parts, memory, mask, memory_mask)
    yield from _cross_candidates(made, x, parts, memory, mask, memory_mask, pre)
    order = (
        "Post-norm: norm(x + branch(x)). Pre-norm: x + branch(norm(x)). The argument "
        "norm_first says which of the two."
    )
    orders = "pre-norm", "post-norm"
    name = f"{orders[pre]} in place of {orders[not pre]}"
    yield name, made(S, C, f, pre=not pre), order
    why = (
        "Post-norm was computed after pre-norm, on its result. One of the two is to "
        "be done: write else, or return."
    )
    twice = lambda: join(join(x, (S, C, f), n, True), (S, C, f), n, False)  # noqa: E731
    yield "both orders, one after the other", twice, why
    if pre:
        why = (
            "In pre-norm the whole branch reads norm_1(x): its queries, its keys and "
            "its values. Here keys and values came from x itself."
        )
        own = parts.self_attention

        def half(u):
            return _attend(u, x, own, parts.heads, mask)

        yield "keys and values are not normalised", made(half, C, f), why
    why = "The layer looks back, then across, and then thinks; each has its branch."
    yield "no self-attention", made(_zero, C, f), why
    yield "no self-attention", lambda: join(x, (C, f), n[1:], pre), why
    yield "no feed-forward network", made(S, C, _zero), why
    yield "no feed-forward network", lambda: join(x, (S, C), n[:2], pre), why
    why = (
        "First what is written is gathered, then the memory is asked about it, then "
        "the network works on both."
    )
    name = "the branches in another order"
    for branches, norms in (
        ((C, S, f), (n, [n[1], n[0], n[2]])),
        ((S, f, C), (n, [n[0], n[2], n[1]])),
        ((f, S, C), (n, [n[2], n[0], n[1]])),
    ):
        for each in norms:
            yield name, made(*branches, norms=each), why
    yield from _residual_candidates(x, (S, C, f), n, pre)
    yield from _norm_candidates(made, (S, C, f), n, order)
    other = F.gelu if parts.activation is torch.relu else torch.relu
    yield (
        "activation not passed on",
        made(S, C, lambda u: f(u, other)),
        "Give the activation to FeedForward(d_model, d_ff, activation).",
    )
    one_s, one_c = (
        lambda u: parts.look(u, mask, 1),
        lambda u: parts.across(u, memory, memory_mask, 1),
    )
    why = "Give the number of heads to both MultiHeadAttention(d_model, heads)."
    for branches in ((one_s, one_c), (S, one_c), (one_s, C)):
        yield "heads not passed on", made(*branches, f), why


def _mask_candidates_of_layer(made, parts, memory, mask, memory_mask):
    look, across = parts.look, parts.across

    def with_masks(own, cross):
        return made(
            lambda u: look(u, own), lambda u: across(u, memory, cross), parts.feed
        )

    if mask is not None:
        why = "Self-attention never saw its mask: self.self_attention(..., mask=mask)."
        yield "mask not passed on", with_masks(None, memory_mask), why
        why = "In this course True means 'may attend'. Pass the mask on as it is."
        yield "mask turned round", with_masks(~mask, memory_mask), why
    if memory_mask is not None:
        why = (
            "Cross-attention never saw memory_mask, so padding of the source is read "
            "as if it were words."
        )
        yield "memory_mask not passed on", with_masks(mask, None), why
        why = "In this course True means 'may attend'. Pass the mask on as it is."
        yield "memory_mask turned round", with_masks(mask, ~memory_mask), why
    if mask is not None or memory_mask is not None:
        why = (
            "mask belongs to self-attention, T_tgt by T_tgt; memory_mask to "
            "cross-attention, one column for each source token. They fit the other "
            "attention only when both sequences happen to have one length."
        )
        yield "the masks are exchanged", with_masks(memory_mask, mask), why
        yield "no masks passed on", with_masks(None, None), why
    if mask is not None:
        why = (
            "The source is there as a whole before a word is written: cross-attention "
            "may see all of it. Only self-attention has the causal mask."
        )
        both = mask if memory_mask is None else mask & memory_mask
        yield "a causal mask in cross-attention", with_masks(mask, both), why
        yield "a causal mask in cross-attention", with_masks(mask, mask), why


def _cross_candidates(made, x, parts, memory, mask, memory_mask, pre):
    heads, own, p = parts.heads, parts.self_attention, parts.cross_attention
    n = parts.all_norms()

    def S(u):  # noqa: N802
        return parts.look(u, mask)

    def C(u):  # noqa: N802
        return parts.across(u, memory, memory_mask)

    f = parts.feed
    name = "queries and keys exchanged in cross-attention"
    why = (
        "Queries come from the decoder, keys and values from the memory: "
        "self.cross_attention(x, memory, memory_mask). The other way round the result "
        "has a row for each source token, and fits the stream only by chance."
    )
    for each in (None, memory_mask, mask):
        turned = made(S, lambda u, m=each: _attend(memory, u, p, heads, m), f)
        yield name, turned, why
    why = (
        "The second attention looked at the decoder's own text. Hand it the memory as "
        "its second argument, otherwise the model never hears of the source."
    )
    name = "cross-attention does not read the memory"
    for each in (None, mask, memory_mask):
        alone = made(S, lambda u, m=each: _attend(u, u, p, heads, m), f)
        yield name, alone, why
        inside = made(S, lambda u, m=each: _attend(memory, memory, p, heads, m), f)
        why_inside = "Its queries come from the decoder: self.cross_attention(x, ...)."
        yield "the queries come from the memory", inside, why_inside
    why = (
        "Between self-attention and the network each decoder layer has a second "
        "attention, to the memory. Without it the output does not depend on the source."
    )
    name = "no cross-attention"
    yield name, made(S, _zero, f), why
    yield name, lambda: join(x, (S, f), (n[0], n[2]), pre), why
    yield name, lambda: join(x, (S, f), (n[0], n[1]), pre), why
    yield name, made(S, S, f), why
    why = (
        "The memory is the encoder's finished output: it is read as it is, every layer "
        "the same. Only the decoder's own stream is normalised."
    )
    for i in (1, 0, 2):
        again = n[i](memory)
        normed = made(S, lambda u, m=again: parts.across(u, m, memory_mask), f)
        yield "the memory is normalised again", normed, why
    why = (
        "The residual connection carries the decoder's own stream: a + C(a, memory). "
        "The memory is only read; it does not even have the same length."
    )
    yield (
        "the memory is added to the stream",
        made(S, lambda u: C(u) + memory, f),
        why,
    )
    if not pre:
        a = n[0](x + S(x))
        late = n[1](memory + C(a)) if memory.shape == x.shape else None
        if late is not None:
            name = "the memory is added to the stream"
            yield name, lambda: n[2](late + f(late)), why
    why = "self_attention and cross_attention are two modules with their own weights."
    name = "one attention for both"
    twice = made(S, lambda u: _attend(u, memory, own, heads, memory_mask), f)
    yield name, twice, why
    twice = made(lambda u: _attend(u, u, p, heads, mask), C, f)
    yield name, twice, why
    yield (
        "the two attentions are exchanged",
        made(
            lambda u: _attend(u, u, p, heads, mask),
            lambda u: _attend(u, memory, own, heads, memory_mask),
            f,
        ),
        why,
    )


def _residual_candidates(x, branches, n, pre: bool) -> Iterator[Candidate]:
    def joined(added, read=(False,) * 3):
        """Add the branch to the stream, to the layer's input, or to nothing."""
        stream = x
        for branch, norm, to, first in zip(branches, n, added, read, strict=True):
            before = x if first else stream
            start = {"stream": stream, "input": x, "nothing": 0, "norm": norm(stream)}
            if pre:
                stream = start[to] + branch(norm(before))
            else:
                stream = norm(start[to] + branch(before))
        return stream

    names = "self-attention", "cross-attention", "the feed-forward network"
    why = "Each branch adds what it computed to what went into it: x + branch(...)."
    for i, name in enumerate(names):
        added = ["nothing" if j == i else "stream" for j in range(3)]
        yield f"no residual around {name}", lambda a=tuple(added): joined(a), why
    yield "no residual connections", lambda: joined(("nothing",) * 3), why
    name = "residual from the layer's input"
    why = (
        "Each branch adds to what the branch before it gave; otherwise what that one "
        "found is lost. Overwrite x after every addition."
    )
    for kinds in (("input",) * 3, ("stream", "stream", "input"), (0, "input", 0)):
        added = tuple(each or "stream" for each in kinds)
        yield name, lambda a=added: joined(a), why
    name = "a branch reads the layer's input"
    why = "Each branch reads what the branch before it gave, not the layer's input."
    for read in ((0, 1, 1), (0, 1, 0), (0, 0, 1)):
        yield name, lambda r=read: joined(("stream",) * 3, r), why
    if pre:
        name = "residual from the normalised x"
        why = (
            "In pre-norm the branch reads norm(x), but its result is added to x "
            "itself. Keep x under its own name: x + branch(norm(x))."
        )
        for i in (7, 1, 2, 4):
            added = ["norm" if i >> j & 1 else "stream" for j in range(3)]
            yield name, lambda a=tuple(added): joined(a), why


def _norm_candidates(made, branches, n, order: str) -> Iterator[Candidate]:
    why = (
        "Each branch has its own norm, with its own parameters: norm_1, norm_2, norm_3."
    )
    for i in (0, 1, 2):
        yield "one norm for all branches", made(*branches, norms=[n[i]] * 3), why
    for i, j, k in ((0, 0, 2), (0, 1, 1), (0, 1, 0), (0, 0, 1), (1, 1, 2)):
        name = "one norm for two branches"
        yield name, made(*branches, norms=[n[i], n[j], n[k]]), why
    for i, j, k in ((1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1)):
        name = "the norms are exchanged"
        yield name, made(*branches, norms=[n[i], n[j], n[k]]), why
    yield "no norms", made(*branches, norms=[_same] * 3), order
    for i, name in enumerate(("first", "second", "third")):
        norms = [_same if j == i else n[j] for j in range(3)]
        yield f"no norm at the {name} branch", made(*branches, norms=norms), order
    only = [
        lambda u, b=branch, norm=norm: norm(b(u))
        for branch, norm in zip(branches, n, strict=True)
    ]
    name = "norm on the branch's output only"
    yield name, made(*only, norms=[_same] * 3), order


def dropped_layer_candidates(
    x, memory, parts: DecoderParts, pre: bool
) -> Iterator[Candidate]:
    """Put dropout, with a probability of 1, in other places of a layer."""
    n = parts.all_norms()
    branches = parts.look, lambda u: parts.across(u, memory), parts.feed
    why = (
        "Dropout acts on what a branch has computed, before the addition. After it, "
        "it would tear holes into the stream itself, three in every layer."
    )
    name = "dropout after the addition"
    yield name, lambda: _zero(x) if pre else n[2](_zero(x)), why
    yield name, lambda: _zero(x), why
    why = "In training nothing was dropped. Use dropout on the output of all branches."
    yield "no dropout", lambda: join(x, branches, n, pre), why
    why = "All three branches have their dropout: both attentions and the network."
    for i in range(1, 7):
        some = [branches[j] if i >> j & 1 else _zero for j in range(3)]
        name = "dropout not on all branches"
        yield name, lambda some=some: join(x, some, n, pre), why


def run_stack(x, memory, layers, norm, mask, memory_mask, pre) -> torch.Tensor:
    """Run layers one after the other, then a norm."""
    for parts in layers:
        x = run_layer(x, memory, parts, mask, memory_mask, pre)
    return norm(x)


def decoder_candidates(
    x, memory, layers, norm: Callable, mask, memory_mask, pre: bool
) -> Iterator[Candidate]:
    """Stack the layers in a wrong way; ``norm`` is the norm at the end."""

    def run(layers=layers, norm=norm, mask=mask, memory_mask=memory_mask, pre=pre):
        return run_stack(x, memory, layers, norm, mask, memory_mask, pre)

    why = (
        "The output of a layer became the memory of the next, so the decoder's own "
        "text passes for the source. The loop overwrites x, and only x."
    )

    def overwritten(both: bool):
        stream, read = x, memory
        for parts in layers:
            read = run_layer(stream, read, parts, mask, memory_mask, pre)
            stream = read if both else stream
        return norm(read)

    name = "the memory is overwritten"
    yield name, lambda: overwritten(True), why
    yield name, lambda: overwritten(False), why

    def passed(first, later):
        value = run_stack(x, memory, layers[:1], _same, *first, pre)
        return run_stack(value, memory, layers[1:], norm, *later, pre)

    both = mask, memory_mask
    if mask is not None:
        why = "Every layer gets both masks: layer(x, memory, mask, memory_mask)."
        yield "mask not passed on", lambda: run(mask=None), why
        partly = "mask only for the first layer"
        yield partly, lambda: passed(both, (None, memory_mask)), why
        yield partly, lambda: passed(both, (None, None)), why
    if memory_mask is not None:
        why = "Every layer gets both masks: layer(x, memory, mask, memory_mask)."
        yield "memory_mask not passed on", lambda: run(memory_mask=None), why
        partly = "memory_mask only for the first layer"
        yield partly, lambda: passed(both, (mask, None)), why
        yield "no masks passed on", lambda: run(mask=None, memory_mask=None), why
    if mask is not None or memory_mask is not None:
        why = "layer(x, memory, mask, memory_mask): mask first, memory_mask second."
        turned = {"mask": memory_mask, "memory_mask": mask}
        yield "the masks are exchanged", lambda: run(**turned), why
    if pre:
        why = (
            "In pre-norm nothing normalises the stream itself, so the stack ends with "
            "a norm: return self.norm(x)."
        )
        yield "no final norm in pre-norm", lambda: run(norm=_same), why

        def normed():
            value = x
            for parts in layers:
                value = norm(run_layer(value, memory, parts, *both, pre))
            return value

        why = "The norm stands at the end of the stack, after the last layer only."
        yield "the final norm after every layer", normed, why
    else:
        why = "In post-norm each layer ends with a norm: nn.Identity() at the end."
        name = "final norm in post-norm"
        yield name, lambda: F.layer_norm(run(), x.shape[-1:]), why
    why = "The output of a layer is the input of the next: x = layer(x, ...)."
    yield "every layer reads the first input", lambda: run(layers[-1:]), why
    yield (
        "the outputs of the layers are added",
        lambda: norm(sum(run_layer(x, memory, p, *both, pre) for p in layers)),
        why,
    )
    why = "Every layer of self.layers has its turn, from the first to the last."
    again = [layers[0]] * len(layers)
    yield "the first layer again and again", lambda: run(again), why
    yield "a layer is left out", lambda: run(layers[:-1]), why
    yield "a layer is left out", lambda: run(layers[1:]), why
    yield "the layers in reverse", lambda: run(layers[::-1]), why
    why = "Hand norm_first on to DecoderLayer."
    yield "norm_first not passed on", lambda: run(pre=not pre), why
    other = F.gelu if layers[0].activation is torch.relu else torch.relu
    why = "Hand the activation on to DecoderLayer."
    changed = [_with(parts, activation=other) for parts in layers]
    yield "activation not passed on", lambda: run(changed), why
    why = "Hand the number of heads on to DecoderLayer."
    changed_heads = [_with(parts, heads=1) for parts in layers]
    yield "heads not passed on", lambda: run(changed_heads), why


def _with(parts: DecoderParts, **changes) -> DecoderParts:
    copy = object.__new__(DecoderParts)
    copy.__dict__.update(parts.__dict__ | changes)
    return copy


# --- whole models ---------------------------------------------------------------------


def positions(length: int, d: int) -> torch.Tensor:
    """The sinusoidal encoding, from complex numbers."""
    position = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    turns = torch.exp(-math.log(1e4) * torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = torch.polar(torch.ones(length, d // 2).double(), position * turns)
    return torch.stack((angle.imag, angle.real), -1).flatten(-2).float()


def final_norm(state: State, pre: bool) -> Callable:
    """The norm at the end of a stack."""
    if not pre:
        return _same
    gamma, beta = state["norm.gamma"], state["norm.beta"]
    return lambda x: F.layer_norm(x, x.shape[-1:], gamma, beta)


class Model:
    """A Transformer that can be put together in wrong ways."""

    def __init__(self, state: State, n: int, heads: int, activation, pre, pad: int):
        self.pad, self.pre, self.table = pad, pre, state["embedding.weight"]
        self.d = self.table.shape[1]
        inner, outer = under("encoder.", state), under("decoder.", state)
        self.encoder = [
            Parts(under(f"layers.{i}.", inner), heads, activation) for i in range(n)
        ]
        self.decoder = [
            DecoderParts(under(f"layers.{i}.", outer), heads, activation)
            for i in range(n)
        ]
        self.norms = final_norm(inner, pre), final_norm(outer, pre)

    def embed(self, ids: torch.Tensor, scale: float = 1.0, at: bool = True):
        """Look up and add positions."""
        x = F.embedding(ids, self.table) * self.d**0.5 * scale
        return x + positions(ids.shape[1], self.d) if at else x

    def logits(
        self,
        source,
        target,
        *,
        scale=1.0,
        at=(True, True),
        hide=(True, True, True),
        causal=True,
        pad=None,
        memory=None,
        table=None,
        turned=False,
    ) -> torch.Tensor:
        """Run the model; ``hide`` says where padding is hidden: S, T, memory."""
        pad = self.pad if pad is None else pad
        length = target.shape[1]
        real, written = (source != pad).unsqueeze(1), (target != pad).unsqueeze(1)
        if turned:
            real, written = ~real, ~written
        mask = torch.ones(length, length).tril().bool() if causal else None
        if hide[1]:
            mask = written if mask is None else mask & written
        if memory is None:
            x = self.embed(source, scale, at[0])
            own = real if hide[0] else None
            memory = stack(x, self.encoder, self.norms[0], own, self.pre)
        x = self.embed(target, scale, at[1])
        read = real if hide[2] else None
        args = self.decoder, self.norms[1], mask, read, self.pre
        hidden = run_stack(x, memory, *args)
        return hidden if table is False else F.linear(hidden, self.table)


def transformer_candidates(model: Model, source, target) -> Iterator[Candidate]:
    """Put a Transformer together in a wrong way."""

    def made(**changes):
        return lambda: model.logits(source, target, **changes)

    why = (
        "A position may see itself and what is before it. The mask of the decoder's "
        "self-attention is the causal mask *and* the padding of the target."
    )
    yield "the decoder sees the future", made(causal=False), why
    both = made(causal=False, hide=(True, False, True))
    yield "the decoder sees the future", both, why
    why = "Where the target is padding, no query may attend: join both masks by &."
    name = "padding of the target is not hidden"
    yield name, made(hide=(True, False, True)), why
    why = "Hand the padding mask of the source to the encoder, as its second argument."
    name = "the encoder sees padding"
    yield name, made(hide=(False, True, True)), why
    why = (
        "The memory has rows for padding, too. decode gets the source for this: its "
        "padding mask is the decoder's memory_mask."
    )
    name = "cross-attention sees padding"
    yield name, made(hide=(True, True, False)), why
    why = "Padding of source and target has to be hidden in all three attentions."
    name = "padding is not hidden"
    yield name, made(hide=(False, True, False)), why
    yield name, made(hide=(False, False, False)), why
    yield name, made(hide=(False, False, False), causal=False), why
    why = "A mask is True for real tokens: ids != self.pad_id."
    yield "the padding masks are turned round", made(turned=True), why
    if model.pad != 0:
        why = "Padding is where an id equals self.pad_id, which need not be 0."
        yield "pad_id is ignored", made(pad=0), why
    else:
        why = "Padding is where an id equals self.pad_id, 0 unless another is given."
        yield "pad_id is ignored", made(pad=-1), why
    d = model.d
    why = "Embedding multiplies by √d_model itself."
    yield "embeddings scaled twice", made(scale=d**0.5), why
    why = (
        "Between table and positions stands the factor √d_model; Embedding has it. A "
        "row of the table has the length 1, one of the positions √(d/2)."
    )
    yield "embeddings not scaled", made(scale=d**-0.5), why
    why = "Both embedded sentences go through self.position."
    yield "no positions", made(at=(False, False)), why
    yield "no positions in the decoder", made(at=(True, False)), why
    yield "no positions in the encoder", made(at=(False, True)), why
    why = "The decoder reads what the encoder made of the source, not its embeddings."
    embedded = model.embed(source)
    yield "the encoder is left out", made(memory=embedded), why
    why = "The source goes into the encoder, the target into the decoder."
    name = "source and target exchanged"
    yield name, lambda: model.logits(target, source), why
    right = made()
    why = (
        "The model gives logits; cross_entropy and the sampling take the softmax "
        "themselves. Taken twice it keeps the loss from ever coming near 0."
    )
    yield "a softmax in the model", lambda: right().softmax(-1), why
    yield "a softmax in the model", lambda: right().log_softmax(-1), why
    why = "tied_logits uses the table as it is; √d belongs to the input side only."
    yield "the logits are scaled by √d", lambda: right() * d**0.5, why
    yield "the logits are scaled by √d", lambda: right() / d**0.5, why
    why = "forward ends with tied_logits(hidden, self.embedding.weight)."
    yield "hidden states in place of logits", made(table=False), why
    why = "Training needs the logits of all positions, (B, T_tgt, V)."
    yield "logits of the last position only", lambda: right()[:, -1], why
    yield "logits of the last position only", lambda: right()[:, -1:], why
    why = "Hand the activation on to Encoder and Decoder."
    yield "activation not passed on", lambda: _other_activation(model, made()), why


def _other_activation(model: Model, run: Callable) -> torch.Tensor:
    every = [*model.encoder, *model.decoder]
    before = every[0].activation
    for parts in every:
        parts.activation = F.gelu if before is torch.relu else torch.relu
    value = run()
    for parts in every:
        parts.activation = before
    return value


class LanguageModel:
    """A decoder-only model that can be put together in wrong ways."""

    def __init__(self, state: State, n: int, heads: int) -> None:
        self.table, self.rows = state["embedding.weight"], state["position.table"]
        inner = under("blocks.", state)
        self.layers = [
            Parts(under(f"layers.{i}.", inner), heads, F.gelu) for i in range(n)
        ]
        self.norm = final_norm(inner, True)

    def embed(self, ids, scale=1.0, at=True) -> torch.Tensor:
        """Look up and add positions."""
        x = F.embedding(ids, self.table) * self.table.shape[1] ** 0.5 * scale
        return x + self.rows[: ids.shape[1]] if at else x

    def run(self, x, mask, norm=None) -> torch.Tensor:
        """Run the blocks and compute the logits."""
        hidden = stack(x, self.layers, norm or self.norm, mask, True)
        return F.linear(hidden, self.table)


def decoder_only_candidates(model: LanguageModel, ids) -> Iterator[Candidate]:
    """Put a language model together in a wrong way."""
    causal = torch.ones(ids.shape[1], ids.shape[1]).tril().bool()
    x, d = model.embed(ids), model.table.shape[1]
    why = (
        "The mask did not reach the blocks: self.blocks(x, mask). A model that sees "
        "the next token has nothing left to learn."
    )
    yield "sees the future", lambda: model.run(x, None), why
    why = "Row i sees the columns up to i: causal_mask(T) as it is, True = may attend."
    yield "the mask is turned", lambda: model.run(x, causal.T), why
    yield "the mask is turned", lambda: model.run(x, ~causal), why
    real = (ids != 0).unsqueeze(1)
    why = "Nothing is padding here: an id 0 is a token like any other."
    yield "id 0 is hidden", lambda: model.run(x, causal & real), why
    why = "Embedding multiplies by √d_model itself."
    twice = model.embed(ids, d**0.5)
    yield "embeddings scaled twice", lambda: model.run(twice, causal), why
    why = "Look the ids up with self.embedding(ids), which multiplies by √d_model."
    plain = model.embed(ids, d**-0.5)
    yield "embeddings not scaled", lambda: model.run(plain, causal), why
    why = "After the embedding comes self.position."
    bare = model.embed(ids, at=False)
    yield "no positions", lambda: model.run(bare, causal), why

    def relu():
        for parts in model.layers:
            parts.activation = torch.relu
        value = model.run(x, causal)
        for parts in model.layers:
            parts.activation = F.gelu
        return value

    why = 'The blocks use GELU: Encoder(..., activation="gelu").'
    yield "ReLU in place of GELU", relu, why
    why = "The model gives logits; cross_entropy takes the softmax itself."
    yield "a softmax in the model", lambda: model.run(x, causal).softmax(-1), why
    yield "a softmax in the model", lambda: model.run(x, causal).log_softmax(-1), why
    why = "Training needs the logits of all positions, (B, T, V)."
    name = "logits of the last position only"
    yield name, lambda: model.run(x, causal)[:, -1], why
    yield name, lambda: model.run(x, causal)[:, -1:], why
    hidden = stack(x, model.layers, model.norm, causal, True)
    why = "forward ends with tied_logits(hidden, self.embedding.weight)."
    yield "hidden states in place of logits", lambda: hidden, why
