"""The known mistakes of chapter 6: what each gives on an input, and why it is wrong.

Each function whose name ends in ``_candidates`` yields (name, what it gives, why) for
the inputs of one exercise. The checks compare a wrong answer with them, in this order.
The arithmetic of an encoder layer is written here once more, from its formulas, so
that it can be varied; what is right comes from PyTorch's own layers, in the checks.
"""

import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

from autograder.exercise.naming import Candidate

State = dict[str, torch.Tensor]


# --- norms ----------------------------------------------------------------------------


def _rescaled(
    x: torch.Tensor,
    axes: int | tuple[int, ...] = -1,
    *,
    correction: int = 0,
    inside: float = 0.0,
    outside: float = 0.0,
) -> torch.Tensor:
    variance = x.var(axes, correction=correction, keepdim=True)
    centred = x - x.mean(axes, keepdim=True)
    return centred / (torch.sqrt(variance + inside) + outside)


def norms_by_name(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Compute the five normalisations that diagnose_norm tells apart, by PyTorch."""
    d, n = x.shape[-1], x.numel()
    layer = F.layer_norm(x, (d,))
    spread = x.std(-1, correction=0, keepdim=True)
    centred = x - x.mean(-1, keepdim=True)
    return {
        "layer norm": layer,
        "batch norm": F.batch_norm(x.flatten(0, 1), None, None, training=True).view(
            x.shape
        ),
        "whole tensor": F.layer_norm(x.flatten(), (n,)).view(x.shape),
        "unbiased variance": centred / (x.var(-1, keepdim=True) + 1e-5).sqrt(),
        "epsilon outside the root": centred / (spread + 1e-5),
    }


# --- activations and feed-forward networks --------------------------------------------


def gelu_candidates(x: torch.Tensor) -> Iterator[Candidate]:
    """Take a relative of GELU."""
    yield (
        "the tanh approximation",
        lambda: F.gelu(x, approximate="tanh"),
        "This is the approximation with tanh, off by up to 0.0005. Here the exact "
        "function is wanted, with torch.erf.",
    )
    yield (
        "the sigmoid approximation",
        lambda: x * torch.sigmoid(1.702 * x),
        "x·σ(1.702 x) is an approximation, off by up to 0.02. Use torch.erf.",
    )
    why = "Each gate is another function of x; GELU's is Φ(x), through torch.erf."
    yield "SiLU in place of GELU", lambda: F.silu(x), why
    yield "ReLU in place of GELU", lambda: torch.relu(x), why
    yield (
        "the factor x is missing",
        lambda: torch.special.ndtr(x),
        "This is the gate Φ(x) itself. It still has to multiply x.",
    )
    yield (
        "the density in place of the distribution",
        lambda: x * torch.exp(-x.square() / 2) / math.sqrt(2 * math.pi),
        "The bell curve φ(x) is the derivative of Φ(x). The gate is Φ(x), which grows "
        "from 0 to 1.",
    )
    yield (
        "erf of x instead of x/√2",
        lambda: x * 0.5 * (1 + torch.erf(x)),
        "Φ(x) = (1 + erf(x/√2))/2: divide x by the root of 2 inside erf.",
    )
    yield (
        "divided by √2 after erf",
        lambda: x * 0.5 * (1 + torch.erf(x) / math.sqrt(2)),
        "Φ(x) = (1 + erf(x/√2))/2: the root of 2 stands inside erf, under x.",
    )
    yield (
        "brackets are missing around the gate",
        lambda: x * 0.5 + torch.erf(x / math.sqrt(2)),
        "x · 0.5 · 1 + erf(…) multiplies first and adds then. Put 1 + erf(…) in "
        "brackets.",
    )
    yield (
        "the factor one half is missing",
        lambda: x * (1 + torch.erf(x / math.sqrt(2))),
        "1 + erf runs from 0 to 2. Half of it is the probability Φ(x).",
    )
    yield (
        "the 1 is missing",
        lambda: x * 0.5 * torch.erf(x / math.sqrt(2)),
        "erf runs from −1 to 1. Add 1 and take the half: a gate from 0 to 1.",
    )


def network(x: torch.Tensor, p: State, activation: Callable) -> torch.Tensor:
    """Run a feed-forward network with the parameters w_1, b_1, w_2, b_2."""
    hidden = activation(F.linear(x, p["w_1"].T, p["b_1"]))
    return F.linear(hidden, p["w_2"].T, p["b_2"])


def _same(x: torch.Tensor) -> torch.Tensor:
    return x


def feed_forward_candidates(
    x: torch.Tensor, p: State, activation: Callable
) -> Iterator[Candidate]:
    """Misplace what belongs into a feed-forward network."""
    without = {name: p[name] * (name[0] == "w") for name in p}
    linear = network(x, p, _same)
    yield (
        "activation after the second matrix",
        lambda: activation(linear),
        "The non-linearity stands between the two matrices. After the second one it "
        "would let nothing negative into the residual stream, and the two matrices "
        "would be one.",
    )
    yield (
        "activation after both matrices",
        lambda: activation(network(x, p, activation)),
        "Nothing comes after the second matrix: an activation there would let nothing "
        "negative into the residual stream.",
    )
    yield (
        "no activation",
        lambda: linear,
        "Without a non-linearity between them, two matrices are only one matrix.",
    )
    yield (
        "activation before the first matrix",
        lambda: network(activation(x), p, _same),
        "The non-linearity acts on the hidden layer, after the first matrix.",
    )
    why = "Both matrices are followed by their bias: x W₁ + b₁, and … W₂ + b₂."
    yield "both biases left out", lambda: network(x, without, activation), why
    for name in ("b_1", "b_2"):
        part = {**p, name: without[name]}
        yield f"{name} left out", lambda part=part: network(x, part, activation), why
    hidden = x @ p["w_1"]
    yield (
        "b_1 added after the activation",
        lambda: (activation(hidden) + p["b_1"]) @ p["w_2"] + p["b_2"],
        "The bias moves the point at which a neuron starts to answer, so it is added "
        "before the activation.",
    )
    yield (
        "residual inside the feed-forward network",
        lambda: x + network(x, p, activation),
        "The layer adds the residual, and should not do so twice.",
    )
    why = "Use the activation that the module was built with."
    if activation is not torch.relu:
        yield "the activation is always ReLU", lambda: network(x, p, torch.relu), why
        yield (
            "the tanh approximation of GELU",
            lambda: network(x, p, lambda u: F.gelu(u, approximate="tanh")),
            "Use your gelu of exercise 6.4, the exact one.",
        )
    else:
        yield "the activation is always GELU", lambda: network(x, p, F.gelu), why


def swiglu_candidates(
    x: torch.Tensor, w_gate: torch.Tensor, w_up: torch.Tensor, w_down: torch.Tensor
) -> Iterator[Candidate]:
    """Misread the gate."""
    gate, up = x @ w_gate, x @ w_up
    yield (
        "gate and up exchanged",
        lambda: (gate * F.silu(up)) @ w_down,
        "SiLU acts on x·w_gate. The two have the same shape, so nothing fails.",
    )
    yield (
        "sigmoid in place of SiLU",
        lambda: (torch.sigmoid(gate) * up) @ w_down,
        "SiLU(u) = u·σ(u): the sigmoid still has to be multiplied by u. (With the "
        "sigmoid alone this is the older GLU.)",
    )
    yield (
        "the sign in the exponent",
        lambda: (gate * torch.sigmoid(-gate) * up) @ w_down,
        "σ(u) = 1/(1 + e⁻ᵘ): the exponent has a minus. Large u pass, small do not.",
    )
    why = "The gate of SwiGLU is SiLU, u·σ(u)."
    yield "GELU in place of SiLU", lambda: (F.gelu(gate) * up) @ w_down, why
    yield "ReLU in place of SiLU", lambda: (torch.relu(gate) * up) @ w_down, why
    yield "no activation", lambda: (gate * up) @ w_down, why
    yield (
        "added in place of multiplied",
        lambda: (F.silu(gate) + up) @ w_down,
        "The gate says how much of each feature passes: multiply entry by entry.",
    )
    yield (
        "activation on the product",
        lambda: F.silu(gate * up) @ w_down,
        "Only the gate is activated; then it multiplies the other projection.",
    )
    yield (
        "activation on both projections",
        lambda: (F.silu(gate) * F.silu(up)) @ w_down,
        "Only the gate is activated; x·w_up passes as it is.",
    )
    yield (
        "w_up is not used",
        lambda: F.silu(gate) @ w_down,
        "The activated gate multiplies a second projection, x·w_up.",
    )


# --- the layer and the stack ----------------------------------------------------------


def attend(
    x: torch.Tensor, p: State, heads: int, mask=None, source: torch.Tensor | None = None
) -> torch.Tensor:
    """Run multi-head attention with the parameters of chapter 5, to x or a source."""
    if mask is not None:
        mask = mask.unsqueeze(-3)
    source = x if source is None else source
    q, k, v = (
        F.linear(x if each == "q" else source, p[f"w_{each}"].T, p[f"b_{each}"])
        .unflatten(-1, (heads, -1))
        .transpose(-3, -2)
        for each in "qkv"
    )
    z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return F.linear(z.transpose(-3, -2).flatten(-2), p["w_o"].T, p["b_o"])


def under(prefix: str, state: State) -> State:
    """Take the part of a state dict below a prefix, without the prefix."""
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


class Parts:
    """The functions that an encoder layer is made of, with given parameters."""

    def __init__(self, state: State, heads: int, activation: Callable) -> None:
        self.heads, self.activation = heads, activation
        self.attention = under("attention.", state)
        self.feed_forward = under("feed_forward.", state)
        self.norms = [under(f"norm_{i}.", state) for i in (1, 2)]

    def attend(
        self, x: torch.Tensor, mask=None, heads: int | None = None
    ) -> torch.Tensor:
        """Attend."""
        return attend(x, self.attention, heads or self.heads, mask)

    def feed(self, x: torch.Tensor, activation: Callable | None = None) -> torch.Tensor:
        """Feed forward."""
        return network(x, self.feed_forward, activation or self.activation)

    def norm(self, i: int, x: torch.Tensor) -> torch.Tensor:
        """Normalise by the norm 1 or 2."""
        p = self.norms[i - 1]
        return F.layer_norm(x, x.shape[-1:], p["gamma"], p["beta"])


def layer(
    x: torch.Tensor, A: Callable, network: Callable, n1: Callable, n2: Callable, pre
) -> torch.Tensor:
    """Join two branches in pre-norm or post-norm."""
    if pre:
        x = x + A(n1(x))
        return x + network(n2(x))
    x = n1(x + A(x))
    return n2(x + network(x))


def encoder_layer_candidates(
    x: torch.Tensor, parts: Parts, mask, pre: bool
) -> Iterator[Candidate]:
    """Put together the parts of a layer in a wrong way."""

    def A(x, mask=mask):  # noqa: N802
        return parts.attend(x, mask)

    f = parts.feed

    def n1(x):
        return parts.norm(1, x)

    def n2(x):
        return parts.norm(2, x)

    def zero(x):
        return torch.zeros_like(x)

    order = (
        "Post-norm: norm(x + branch(x)). Pre-norm: x + branch(norm(x)). The argument "
        "norm_first says which of the two."
    )
    orders = "pre-norm", "post-norm"
    name = f"{orders[pre]} in place of {orders[not pre]}"
    yield name, lambda: layer(x, A, f, n1, n2, not pre), order
    if mask is not None:
        name = "mask not passed on"
        why = "Attention never saw the mask: self.attention(..., mask=mask)."
        yield name, lambda: layer(x, parts.attend, f, n1, n2, pre), why
        name = "mask turned round"
        why = "In this course True means 'may attend'. Pass the mask on as it is."
        yield name, lambda: layer(x, lambda u: A(u, ~mask), f, n1, n2, pre), why
    if pre:
        yield from _residual_candidates(x, A, f, n1, n2)
    why = "Each half adds what its branch computed to what went into the half."
    both = "no residual connections"
    first, second = "no residual around attention", "no residual around feed-forward"
    if pre:
        a = x + A(n1(x))
        yield both, lambda: f(n2(A(n1(x)))), why
        yield first, lambda: A(n1(x)) + f(n2(A(n1(x)))), why
        yield second, lambda: f(n2(a)), why
        skips = x + f(n2(a))
        parallel = a + f(n2(x))
        b = x + attend(n1(x), parts.attention, parts.heads, mask, x)
        yield (
            "only the queries are normalised",
            lambda: b + f(n2(b)),
            "Attention got norm_1(x) for its queries and x for keys and values. All "
            "three come from norm_1(x): keep it under a name of its own.",
        )
    else:
        a = n1(x + A(x))
        yield both, lambda: n2(f(n1(A(x)))), why
        yield first, lambda: n2(n1(A(x)) + f(n1(A(x)))), why
        yield second, lambda: n2(f(a)), why
        skips = n2(x + f(a))
        parallel = n2(a + f(x))
        yield (
            "feed-forward reads the sum before its norm",
            lambda: n2(a + f(x + A(x))),
            "In post-norm the second half starts from norm_1(x + attention): both its "
            "branch and its residual.",
        )
    yield (
        "second residual from the layer's input",
        lambda: skips,
        "The second half adds to what the first half gave, so attention is not lost.",
    )
    yield (
        "feed-forward does not read what attention gave",
        lambda: parallel,
        "The second half reads the result of the first.",
    )
    yield (
        "norm on the branch's output only",
        lambda: layer(x, lambda u: n1(A(u)), lambda u: n2(f(u)), _same, _same, pre),
        order,
    )
    why = "The first half has norm_1, the second norm_2, each its own parameters."
    name = "one norm for both halves"
    yield name, lambda: layer(x, A, f, n1, n1, pre), why
    yield name, lambda: layer(x, A, f, n2, n2, pre), why
    yield "norm_1 and norm_2 exchanged", lambda: layer(x, A, f, n2, n1, pre), why
    yield "no norms", lambda: layer(x, A, f, _same, _same, pre), order
    yield "no norm in the first half", lambda: layer(x, A, f, _same, n2, pre), order
    yield "no norm in the second half", lambda: layer(x, A, f, n1, _same, pre), order
    yield (
        "attention and feed-forward exchanged",
        lambda: layer(x, f, A, n1, n2, pre),
        "Attention comes first: it gathers, then the feed-forward network works on "
        "what was gathered.",
    )
    why = "The layer has two halves, each with its own branch."
    yield "no feed-forward half", lambda: layer(x, A, zero, n1, n2, pre), why
    yield "no feed-forward half", lambda: a, why
    yield "no attention half", lambda: layer(x, zero, f, n1, n2, pre), why
    other = F.gelu if parts.activation is torch.relu else torch.relu
    yield (
        "activation not passed on",
        lambda: layer(x, A, lambda u: f(u, other), n1, n2, pre),
        "Give the activation to FeedForward(d_model, d_ff, activation).",
    )
    yield (
        "heads not passed on",
        lambda: layer(x, lambda u: parts.attend(u, mask, 1), f, n1, n2, pre),
        "Give the number of heads to MultiHeadAttention(d_model, heads).",
    )


def _residual_candidates(x, A, f, n1, n2) -> Iterator[Candidate]:
    """Take the residual of pre-norm from the normalised stream."""
    name = "residual from the normalised x"
    why = (
        "In pre-norm the branch reads norm(x), but its result is added to x itself. "
        "Keep x under its own name: x + branch(norm(x))."
    )
    h = n1(x)
    both = h + A(h)
    yield name, lambda: n2(both) + f(n2(both)), why
    yield name, lambda: both + f(n2(both)), why
    a = x + A(n1(x))
    yield name, lambda: n2(a) + f(n2(a)), why
    yield (
        "norm in both places",
        lambda: n2((c := n1(x + A(n1(x)))) + f(n2(c))),
        "The norm stands at the start of the branch or after the addition, not both.",
    )


def dropped_candidates(x: torch.Tensor, parts: Parts, pre: bool) -> Iterator[Candidate]:
    """Put dropout, with a probability of 1, in other places of a layer."""

    def n1(x):
        return parts.norm(1, x)

    def n2(x):
        return parts.norm(2, x)

    def zero(x):
        return torch.zeros_like(x)

    why = (
        "Dropout acts on what a branch has computed, before the addition. After it, "
        "it would tear holes into the stream itself, two in every layer."
    )
    name = "dropout after the addition"
    yield name, lambda: zero(x) if pre else n2(n1(zero(x))), why
    yield name, lambda: n2(zero(x)), why
    why = "Both branches have their dropout: of attention and of the network."
    A, f = parts.attend, parts.feed
    yield (
        "dropout only on attention",
        lambda: layer(x, zero, f, n1, n2, pre),
        why,
    )
    yield (
        "dropout only on the feed-forward network",
        lambda: layer(x, A, zero, n1, n2, pre),
        why,
    )
    yield (
        "no dropout",
        lambda: layer(x, A, f, n1, n2, pre),
        "In training nothing was dropped. Build nn.Dropout(dropout) and use it on the "
        "output of both branches.",
    )


def stack(
    x: torch.Tensor, layers: list[Parts], norm: Callable, mask, pre: bool
) -> torch.Tensor:
    """Run layers one after the other, then a norm."""
    for parts in layers:
        x = run(x, parts, mask, pre)
    return norm(x)


def run(x: torch.Tensor, parts: Parts, mask, pre: bool) -> torch.Tensor:
    """Run one layer."""
    return layer(
        x,
        lambda u: parts.attend(u, mask),
        parts.feed,
        lambda u: parts.norm(1, u),
        lambda u: parts.norm(2, u),
        pre,
    )


def encoder_candidates(
    x: torch.Tensor, layers: list[Parts], norm: Callable, mask, pre: bool
) -> Iterator[Candidate]:
    """Stack the layers in a wrong way; ``norm`` is the norm at the end."""
    if pre:
        why = (
            "In pre-norm nothing normalises the stream itself, so the stack ends with "
            "a norm: return self.norm(x)."
        )
        name = "no final norm in pre-norm"
        yield name, lambda: stack(x, layers, _same, mask, pre), why
        why = "The norm stands at the end of the stack, after the last layer only."

        def normed():
            value = x
            for parts in layers:
                value = norm(run(value, parts, mask, pre))
            return value

        yield "the final norm after every layer", normed, why
        yield (
            "the final norm before the first layer",
            lambda: stack(norm(x), layers, _same, mask, pre),
            why,
        )
    else:
        plain = stack(x, layers, _same, mask, pre)
        why = "In post-norm each layer ends with a norm: nn.Identity() at the end."
        name = "final norm in post-norm"
        yield name, lambda: F.layer_norm(plain, x.shape[-1:]), why
    if mask is not None:
        why = "Every layer gets the mask: layer(x, mask). Padding stays padding."
        name = "mask not passed on"
        yield name, lambda: stack(x, layers, norm, None, pre), why

        def first_only():
            value = run(x, layers[0], mask, pre)
            return stack(value, layers[1:], norm, None, pre)

        yield "mask only for the first layer", first_only, why
    why = "The output of a layer is the input of the next: x = layer(x, mask)."
    name = "every layer reads the first input"
    yield name, lambda: norm(run(x, layers[-1], mask, pre)), why
    yield (
        "the outputs of the layers are added",
        lambda: norm(sum(run(x, parts, mask, pre) for parts in layers)),
        why,
    )
    why = "Every layer of self.layers has its turn, from the first to the last."
    yield (
        "the first layer again and again",
        lambda: stack(x, [layers[0]] * len(layers), norm, mask, pre),
        why,
    )
    yield (
        "only the first layer runs",
        lambda: norm(run(x, layers[0], mask, pre)),
        "The result is that of one layer. Is `return` inside the loop?",
    )
    yield "a layer is left out", lambda: stack(x, layers[:-1], norm, mask, pre), why
    yield "a layer is left out", lambda: stack(x, layers[1:], norm, mask, pre), why
    backwards = layers[::-1]
    yield "the layers in reverse", lambda: stack(x, backwards, norm, mask, pre), why
    why = "Hand norm_first on to EncoderLayer."
    name = "norm_first not passed on"
    yield name, lambda: stack(x, layers, norm, mask, not pre), why
    name = "activation not passed on"
    why = "Hand the activation on to EncoderLayer."

    def other_activation():
        other = F.gelu if layers[0].activation is torch.relu else torch.relu
        for parts in layers:
            parts.activation, before = other, parts.activation
        value = stack(x, layers, norm, mask, pre)
        for parts in layers:
            parts.activation = before
        return value

    yield name, other_activation, why


# --- counting -------------------------------------------------------------------------


def parameters_candidates(d: int, d_ff: int) -> Iterator[Candidate]:
    """Count something else than all parameters of a layer."""
    attention, ff, norms = 4 * (d * d + d), 2 * d * d_ff + d_ff + d, 4 * d
    right = attention + ff + norms
    biases = 4 * d + d_ff + d
    yield (
        "biases and norms left out",
        lambda: right - biases - norms,
        "These are the matrices alone, the rule of thumb 12 d². Here all counts.",
    )
    yield (
        "the rule of thumb 12 d²",
        lambda: 12 * d * d,
        "The rule of thumb assumes d_ff = 4 d and leaves out biases and norms.",
    )
    yield "biases left out", lambda: right - biases, "All six matrices have a bias."
    yield (
        "norms or biases of attention left out",
        lambda: right - norms,
        "4 d are missing. Two groups have this size: gamma and beta of both norms, and "
        "the four biases of attention, b_q, b_k, b_v and b_o.",
    )
    yield (
        "biases of the network left out",
        lambda: right - d_ff - d,
        "The network has b_1 (d_ff,) and b_2 (d,).",
    )
    why = "Two norms, each with gamma (d,) and beta (d,): together 4 d."
    yield "half of the norms left out", lambda: right - 2 * d, why
    yield (
        "d_ff = d_model",
        lambda: attention + 2 * (d * d + d) + norms,
        "This takes both matrices of the network as d × d. They are d × d_ff and "
        "d_ff × d.",
    )
    yield (
        "w_o left out",
        lambda: right - d * d - d,
        "Attention has four projections: for queries, keys, values, and w_o.",
    )
    yield (
        "only one matrix in the network",
        lambda: right - d * d_ff,
        "The network has two matrices: it expands and contracts.",
    )
    yield (
        "b_2 counted with d_ff",
        lambda: right + d_ff - d,
        "b_2 is added to the network's result: (d,).",
    )
    yield (
        "b_1 counted with d_model",
        lambda: right - d_ff + d,
        "b_1 is as wide as the hidden layer: (d_ff,).",
    )


# --- masked language modelling --------------------------------------------------------


def masking_candidates(
    ids, uniform, kind, random_ids, mask_id, special_ids, probability
) -> Iterator[Candidate]:
    """Misread the rules of masking."""
    special = torch.isin(ids, torch.tensor(special_ids))
    never = torch.zeros_like(special)

    def made(chosen, low=0.8, high=0.9, kind=kind, swap=False, labels=None, fill=-100):
        hidden = chosen & (kind < low)
        replaced = chosen & (kind >= low) & (kind < high)
        if swap:
            replaced = chosen & (kind >= high)
        inputs = torch.where(hidden, mask_id, torch.where(replaced, random_ids, ids))
        wanted = torch.where(chosen, ids, fill)
        return inputs, wanted if labels is None else labels(inputs, chosen, hidden)

    chosen = (uniform < probability) & ~special
    yield (
        "special tokens masked",
        lambda: made(uniform < probability),
        "Padding, class token and the like are never chosen: uniform < probability "
        "and not one of special_ids.",
    )
    shares = (
        "Of the chosen, 80 percent become the mask (kind below 0.8), 10 percent a "
        "random token (below 0.9), 10 percent stay."
    )
    yield "all chosen tokens become the mask", lambda: made(chosen, low=1.0), shares
    name = "the shares 80/10/10 turned round"
    yield name, lambda: made(chosen, low=0.1, high=0.9), shares
    yield name, lambda: made(chosen, low=0.1, high=0.2), shares

    def turned():
        inputs = torch.where(chosen & (kind >= 0.9), random_ids, ids)
        hidden = chosen & (kind >= 0.8) & (kind < 0.9)
        return torch.where(hidden, mask_id, inputs), torch.where(chosen, ids, -100)

    yield name, turned, shares
    yield name, lambda: made(chosen, kind=1 - kind), shares
    yield "random and unchanged exchanged", lambda: made(chosen, swap=True), shares
    yield "nothing stays unchanged", lambda: made(chosen, high=2.0), shares
    yield "no random tokens", lambda: made(chosen, high=0.0), shares
    name = "one draw for both decisions"
    why = (
        "uniform decides what is chosen, kind what becomes of it. The chosen all have "
        "a small uniform, so by uniform all of them would be masked."
    )
    yield name, lambda: made(chosen, kind=uniform), why
    name = "the wrong side of probability is chosen"
    why = "Chosen is where uniform is smaller than probability: 15 percent, not 85."
    yield name, lambda: made(~(uniform < probability) & ~special), why
    yield name, lambda: made((uniform > probability) & ~special), why
    name = "probability is always 0.15"
    why = "The share is an argument: compare uniform with probability."
    yield name, lambda: made((uniform < 0.15) & ~special), why
    yield (
        "uniform equal to probability is chosen",
        lambda: made((uniform <= probability) & ~special),
        "Chosen is where uniform is smaller than probability, not equal: for a "
        "probability of 0 nothing may be chosen.",
    )
    name = "labels scored everywhere"
    why = "Only chosen positions are scored; all other labels are −100."
    yield name, lambda: made(chosen, labels=lambda *_: ids), why
    yield (
        "the labels are what the model sees",
        lambda: made(chosen, labels=lambda inputs, c, h: torch.where(c, inputs, -100)),
        "A label is the original token. Write the labels from ids, before or without "
        "changing ids.",
    )
    name = "only masked tokens are scored"
    why = "All chosen positions are scored, also the replaced and the unchanged ones."
    yield (
        name,
        lambda: made(chosen, labels=lambda i, c, h: torch.where(h, ids, -100)),
        why,
    )
    yield (
        "only changed tokens are scored",
        lambda: made(chosen, labels=lambda i, c, h: torch.where(i != ids, ids, -100)),
        why,
    )
    yield (
        "chosen and not chosen exchanged in the labels",
        lambda: made(chosen, labels=lambda i, c, h: torch.where(c, -100, ids)),
        "−100 means 'do not score': it stands where a token was not chosen.",
    )
    name = "another number than −100"
    why = "What is not scored gets −100, the number that PyTorch's loss ignores."
    for fill in (-1, 0, mask_id, 100):
        yield name, lambda fill=fill: made(chosen, fill=fill), why
    yield "nothing is hidden", lambda: (ids, made(chosen)[1]), shares
    yield "nothing is chosen", lambda: made(never), shares


def loss_candidates(logits: torch.Tensor, labels: torch.Tensor) -> Iterator[Candidate]:
    """Average something else."""
    scored = labels != -100
    each = F.cross_entropy(logits[scored], labels[scored], reduction="none")
    count = max(1, int(scored.sum()))
    yield (
        "mean over all positions",
        lambda: each.sum() / labels.numel(),
        "Divide by the number of scored positions. Otherwise the loss is small only "
        "because few tokens were chosen.",
    )
    yield "sum in place of mean", lambda: each.sum(), "Divide by the number scored."

    def by_sentence():
        return torch.stack(
            [
                F.cross_entropy(row[keep], wanted[keep])
                for row, wanted, keep in zip(logits, labels, scored, strict=True)
                if keep.any()
            ]
        ).mean()

    yield (
        "mean of the sentences' means",
        by_sentence,
        "All scored positions of the batch count alike, in whatever sentence.",
    )
    yield (
        "mean of the sentences' means",
        lambda: torch.stack(
            [
                F.cross_entropy(row, wanted, reduction="sum")
                / max(1, int((wanted != -100).sum()))
                for row, wanted in zip(logits, labels, strict=True)
            ]
        ).mean(),
        "All scored positions of the batch count alike, in whatever sentence; one "
        "without any has no say.",
    )
    positive = labels > 0
    yield (
        "label 0 is not scored",
        lambda: F.cross_entropy(logits[positive], labels[positive]),
        "0 is a label like others, the first word. Only −100 means that nothing is "
        "scored.",
    )
    yield (
        "every position with every label",
        lambda: -logits[scored].log_softmax(-1)[:, labels[scored]].mean(),
        "An index [:, wanted] takes the columns of all labels from every row. Each row "
        "has one label: index rows and columns together, torch.arange(n) and wanted.",
    )
    yield (
        "divided by the number of sentences",
        lambda: each.sum() / len(labels),
        "Divide by the number of scored positions.",
    )
    every = labels.masked_fill(~scored, 0)
    yield (
        "positions without a label are scored",
        lambda: F.cross_entropy(logits.flatten(0, 1), every.flatten()),
        "Positions with the label −100 were scored as if it were word 0. Leave them "
        "out of the sum.",
    )
    last = labels.masked_fill(~scored, logits.shape[-1] - 1)
    yield (
        "positions without a label are scored",
        lambda: F.cross_entropy(logits.flatten(0, 1), last.flatten()),
        "Positions with the label −100 were scored as if it were the last word.",
    )
    mean = each.mean() if each.numel() else logits.sum() * 0
    yield "the sign is missing", lambda: -mean, "A loss is minus the logarithm."
    yield (
        "softmax taken twice",
        lambda: F.cross_entropy(logits[scored].softmax(-1), labels[scored]),
        "cross_entropy takes logits and applies the softmax itself.",
    )
    own = logits[scored].softmax(-1)[torch.arange(count), labels[scored]]
    why = "The loss is the negative logarithm of the label's probability."
    yield "no logarithm", lambda: -own.mean(), why
    yield "no logarithm", lambda: 1 - own.mean(), why
    yield (
        "the logarithm of the mean",
        lambda: -own.mean().log(),
        "First the logarithm of each probability, then the mean.",
    )
    yield (
        "no softmax",
        lambda: -logits[scored][torch.arange(count), labels[scored]].mean(),
        "Logits become log-probabilities by log_softmax first.",
    )
    yield "in bits", lambda: mean / math.log(2), "The natural logarithm is meant."
