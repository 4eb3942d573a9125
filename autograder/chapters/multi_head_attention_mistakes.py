"""The known mistakes of chapter 5: what each gives on an input, and why it is wrong.

Each function whose name ends in ``_candidates`` yields (name, what it gives, why) for
the inputs of one exercise. The checks compare a wrong answer with them, in this order.
"""

import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import nn

from autograder.chapters.attention.oracles import torch_attention, weights_of
from autograder.exercise.naming import Candidate

State = dict[str, torch.Tensor]

# --- shared ---------------------------------------------------------------------------


def cut(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Split by taking the columns of each head: (..., T, d) -> (..., h, T, d/h)."""
    width = x.shape[-1] // heads
    pieces = [x[..., i * width : (i + 1) * width] for i in range(heads)]
    return torch.stack(pieces, dim=-3)


def join(x: torch.Tensor) -> torch.Tensor:
    """Merge by concatenation: (..., h, T, d_v) -> (..., T, h·d_v)."""
    return torch.cat(x.unbind(-3), dim=-1)


def _view(x: torch.Tensor, heads: int) -> torch.Tensor:
    length, d = x.shape[-2:]
    return x.reshape(*x.shape[:-2], heads, length, d // heads)


def _dealt(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Give feature c to head c mod h."""
    return torch.stack([x[..., i::heads] for i in range(heads)], dim=-3)


def _unview(x: torch.Tensor) -> torch.Tensor:
    heads, length, width = x.shape[-3:]
    return x.reshape(*x.shape[:-3], length, heads * width)


def _interleaved(x: torch.Tensor) -> torch.Tensor:
    return torch.stack(x.unbind(-3), dim=-1).flatten(-2)


VIEW = (
    "view without transpose",
    "One view or reshape goes straight to the shape (…, h, T, d/h). It reads the "
    "numbers in the order of memory, so a head gets pieces of its first tokens that "
    "pose as tokens. Cut the last axis first, (…, T, h, d/h), then exchange T and h.",
)
DEALT = (
    "features dealt out in turn",
    "Head i got the features i, i + h, i + 2h, … Head 0 has the first d/h features, "
    "side by side: cut the last axis into (h, d/h), in this order.",
)
UNMERGED = (
    "merged without transpose",
    "One view or reshape joins what lies side by side in memory: tokens of the same "
    "head. Exchange heads and tokens first, (…, T, h, d_v), then join the last two.",
)
INTERLEAVED = (
    "heads interleaved",
    "First come the first features of all heads, then the second. A head's features "
    "stay together: join the axes in the order (h, d_v).",
)


# --- split and merge ------------------------------------------------------------------


def split_candidates(x: torch.Tensor, heads: int) -> Iterator[Candidate]:
    """Cut in other ways."""
    right = cut(x, heads)
    yield VIEW[0], lambda: _view(x, heads), VIEW[1]
    yield DEALT[0], lambda: _dealt(x, heads), DEALT[1]
    yield (
        "heads and tokens not exchanged",
        lambda: right.transpose(-3, -2),
        "The shape is (…, T, h, d/h): the cut is right, the exchange is missing. As "
        "the product @ works on the last two axes, the tokens must be one of them.",
    )
    yield (
        "the heads stand before the batch",
        lambda: right.movedim(-3, 0),
        "The pieces are right, but the heads' axis came first of all; torch.stack puts "
        "its new axis there unless you say where. It is the third from the end.",
    )
    yield (
        "features before tokens",
        lambda: right.transpose(-2, -1),
        "The last two axes of each head are exchanged: wanted is (…, h, T, d/h).",
    )
    yield (
        "the tokens are split instead of the features",
        lambda: x.unflatten(-2, (heads, -1)),
        "Each head got some tokens with all features. It needs all tokens with some of "
        "the features: cut the last axis.",
    )
    yield (
        "head width and number of heads exchanged",
        lambda: cut(x, x.shape[-1] // heads),
        f"The features were cut into pieces of {heads}. They are to be cut into "
        f"{heads} pieces of {x.shape[-1] // heads}.",
    )
    yield (
        "the last head comes first",
        lambda: right.flip(-3),
        "Head 0 has the first features.",
    )


def merge_candidates(x: torch.Tensor) -> Iterator[Candidate]:
    """Join in other ways."""
    yield UNMERGED[0], lambda: _unview(x), UNMERGED[1]
    yield INTERLEAVED[0], lambda: _interleaved(x), INTERLEAVED[1]
    yield (
        "the heads are added up",
        lambda: x.sum(-3),
        "Outputs of different heads stand side by side; their features mean different "
        "things, so they are not added.",
    )
    yield (
        "the heads are averaged",
        lambda: x.mean(-3),
        "Outputs of different heads stand side by side; an average would throw away "
        "which head found what.",
    )
    yield (
        "the heads are put below each other",
        lambda: torch.cat(x.unbind(-3), dim=-2),
        "The result has h·T rows. There is one row for each token: join along the "
        "features, not along the tokens.",
    )
    yield (
        "tokens joined with heads",
        lambda: x.transpose(-3, -2).flatten(-3, -2),
        "After the exchange the axes are (…, T, h, d_v). The last two are to be "
        "joined, heads and features; here tokens and heads were.",
    )
    yield (
        "tokens and features exchanged",
        lambda: x.mT.flatten(-2),
        "The axes to exchange are those of heads and tokens, −3 and −2; the features "
        "stay where they are.",
    )
    yield (
        "the last head comes first",
        lambda: join(x.flip(-3)),
        "Head 0 comes first, then head 1, and so on.",
    )
    yield (
        "heads exchanged but not joined",
        lambda: x.transpose(-3, -2),
        "The shape is (…, T, h, d_v). Join the last two axes, for example with "
        "flatten(-2).",
    )


# --- the loop -------------------------------------------------------------------------


def per_head(x_q, x_kv, w_q, w_k, w_v, mask=None) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute outputs and weights of all heads, (..., h, T, d_v) and (..., h, T, T)."""
    mask = None if mask is None else mask.unsqueeze(-3)
    x_q, x_kv = x_q.unsqueeze(-3), x_kv.unsqueeze(-3)
    return torch_attention(x_q @ w_q, x_kv @ w_k, x_kv @ w_v, mask)


NO_W_O = (
    "no output projection",
    "The result is as wide as all heads side by side, and nothing mixes them: each "
    "feature still belongs to one head. Multiply by w_o, which also gives the output "
    "the width d_model again. (Sources 0 and 1 stop here, too.)",
)


def loop_candidates(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None) -> Iterator[Candidate]:
    """Take a wrong turn in the loop over the heads."""
    heads, d_v = w_v.shape[0], w_v.shape[-1]
    z, weights = per_head(x_q, x_kv, w_q, w_k, w_v, mask)
    values = (x_kv.unsqueeze(-3) @ w_v).expand(*weights.shape[:-2], -1, -1)
    scores = (x_q.unsqueeze(-3) @ w_q) @ (x_kv.unsqueeze(-3) @ w_k).mT

    def again(scale: float) -> torch.Tensor:
        allowed = None if mask is None else mask.unsqueeze(-3)
        return join(weights_of(scores * scale, allowed) @ values) @ w_o

    yield NO_W_O[0], lambda: join(z), NO_W_O[1]
    yield (
        "concatenation of the scores",
        lambda: join(weights),
        "The heads' weights stand side by side. What is joined are their outputs, the "
        'mixed values. (Source 0\'s text says "the score from each head".)',
    )
    yield (
        "concatenation of the scores",
        lambda: join(scores / math.sqrt(w_q.shape[-1])),
        "The heads' scores stand side by side. What is joined are their outputs, the "
        'mixed values. (Source 0\'s text says "the score from each head".)',
    )
    yield (
        "only one head is used",
        lambda: z[..., 0, :, :] @ w_o[:d_v],
        "Only head 0 reaches the output. Is `return` inside the loop, or does the loop "
        "run over one head?",
    )
    yield (
        "all heads with the matrices of head 0",
        lambda: join(z[..., :1, :, :].expand(z.shape)) @ w_o,
        "All heads give the same. Take w_q[head], w_k[head] and w_v[head] in the loop.",
    )
    yield UNMERGED[0], lambda: _unview(z) @ w_o, UNMERGED[1]
    yield INTERLEAVED[0], lambda: _interleaved(z) @ w_o, INTERLEAVED[1]
    yield (
        "the last head comes first",
        lambda: join(z.flip(-3)) @ w_o,
        "Rows 0 to d_v − 1 of w_o belong to head 0, so head 0 comes first.",
    )
    yield (
        "the heads are averaged",
        lambda: join(z) @ w_o / heads,
        "The outputs are divided by the number of heads. They stand side by side and "
        "keep their size.",
    )
    yield (
        "mask ignored",
        lambda: join(per_head(x_q, x_kv, w_q, w_k, w_v)[0]) @ w_o,
        "The result is the one without a mask. Hand the mask on to every head.",
    )
    if mask is not None:
        yield (
            "mask for the first head only",
            lambda: (
                join(
                    torch.cat(
                        [
                            z[..., :1, :, :],
                            per_head(x_q, x_kv, w_q, w_k, w_v)[0][..., 1:, :, :],
                        ],
                        dim=-3,
                    )
                )
                @ w_o
            ),
            "Head 0 obeys the mask, the others do not. It is the same for all heads.",
        )
        yield (
            "mask inverted",
            lambda: join(per_head(x_q, x_kv, w_q, w_k, w_v, ~mask)[0]) @ w_o,
            'True means "may attend", here and in scaled_dot_product_attention.',
        )
    yield (
        "keys and values from x_q",
        lambda: join(per_head(x_q, x_q, w_q, w_k, w_v)[0]) @ w_o,
        "Queries come from x_q; keys and values come from x_kv.",
    )
    yield (
        "queries from x_kv",
        lambda: join(per_head(x_kv, x_kv, w_q, w_k, w_v)[0]) @ w_o,
        "Queries come from x_q; keys and values come from x_kv.",
    )
    yield (
        "w_q and w_k exchanged",
        lambda: join(per_head(x_q, x_kv, w_k, w_q, w_v, mask)[0]) @ w_o,
        "Queries are x_q times w_q, keys are x_kv times w_k.",
    )
    yield (
        "heads stacked instead of parallel",
        lambda: _stacked(x_q, x_kv, w_q, w_k, w_v, w_o, mask),
        "Each head reads what the heads before it have written. Heads are parallel: "
        "all read the same x_q and x_kv.",
    )
    yield (
        "scaled by √d_model instead of √d_k",
        lambda: again(w_q.shape[1] ** -0.5),
        "A score is a sum over the d_k features of a head: divide by √d_k. Your "
        "attention function does that by itself.",
    )
    yield (
        "missing the scaling by 1/√d_k",
        lambda: again(1.0),
        "The scores are not divided by √d_k. Your attention function does that.",
    )


def _stacked(x_q, x_kv, w_q, w_k, w_v, w_o, mask) -> torch.Tensor:
    d_v = w_v.shape[-1]
    x, total = x_q, 0
    for i in range(len(w_q)):
        z = torch_attention(x @ w_q[i], x_kv @ w_k[i], x_kv @ w_v[i], mask)[0]
        x = z @ w_o[i * d_v : (i + 1) * d_v]
        total = total + x
    return total


# --- the sum over heads ---------------------------------------------------------------


def sum_candidates(z: torch.Tensor, w_o: torch.Tensor) -> Iterator[Candidate]:
    """Give the heads other parts of w_o, or add up something else."""
    heads, _, d_v = z.shape[-3:]
    parts = z @ w_o.unflatten(0, (heads, d_v))
    columns = "w_o cut by columns"
    why_columns = (
        "Head i owns the rows i·d_v to (i + 1)·d_v − 1 of w_o, with all their columns. "
        "A block of columns makes some features of the output, out of all heads."
    )
    yield from (
        ("the sum is missing", lambda: parts, "The result still has an axis for the "
         "heads. Add up over it: dim=-3."),
        ("the sum is missing", lambda: parts.movedim(-3, 0), "The contributions are "
         "stacked on a new axis. Add them up."),
        ("the rows of the heads overlap",
         lambda: sum(z[..., i, :, :] @ w_o[i : i + d_v] for i in range(heads)),
         "Head i got the rows from i on. Each head owns d_v rows, so those of head i "
         "begin at i·d_v."),
        ("summed over the tokens", lambda: parts.sum(-2), "The tokens were added up. "
         "The heads' axis is the third from the end: dim=-3."),
        ("the mean over the heads", lambda: parts.mean(-3), "The contributions are "
         "added, not averaged: side by side, then times w_o is a sum."),
        ("every head with the rows of head 0", lambda: (z @ w_o[:d_v]).sum(-3),
         "All heads use the first d_v rows of w_o. Head i has its own: i·d_v onwards."),
        ("rows dealt out in turn",
         lambda: (z @ torch.stack([w_o[i::heads] for i in range(heads)])).sum(-3),
         "Head i got the rows i, i + h, … of w_o. Its rows stand together: cut w_o "
         "into (h, d_v, d_model), in this order."),
        ("the last head's rows come first",
         lambda: (z.flip(-3) @ w_o.unflatten(0, (heads, d_v))).sum(-3),
         "Head 0 owns the first d_v rows of w_o."),
        (columns, lambda: (z @ w_o.mT.unflatten(0, (heads, d_v))).sum(-3), why_columns),
        (columns, lambda: (z @ w_o.unflatten(1, (heads, -1)).movedim(1, 0)).sum(-3),
         why_columns),
        (columns, lambda: (z @ torch.stack(w_o.chunk(heads, 1))).sum(-3), why_columns),
        (UNMERGED[0], lambda: _unview(z) @ w_o, UNMERGED[1]),
        ("only one head is used", lambda: parts[..., 0, :, :], "Only head 0 reaches "
         "the output. Is `return` inside the loop?"),
        ("only one head is used", lambda: parts[..., -1, :, :], "Only the last head "
         "reaches the output: add each contribution to the sum of those before it."),
    )  # fmt: skip


# --- the layer ------------------------------------------------------------------------


def torch_layer(
    x_q: torch.Tensor, x_kv: torch.Tensor, state: State, heads: int, mask=None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute what nn.MultiheadAttention gives with these parameters.

    Its matrices are transposed, and in its mask True means blocked.
    """
    leading, (t_q, d_model), t_k = x_q.shape[:-2], x_q.shape[-2:], x_kv.shape[-2]
    layer = nn.MultiheadAttention(d_model, heads, batch_first=True)
    zero = torch.zeros(d_model)
    layer.load_state_dict(
        {
            "in_proj_weight": torch.cat([state[f"w_{n}"].T for n in "qkv"]),
            "in_proj_bias": torch.cat([state.get(f"b_{n}", zero) for n in "qkv"]),
            "out_proj.weight": state["w_o"].T,
            "out_proj.bias": state.get("b_o", zero),
        }
    )
    if mask is not None:
        mask = mask.expand(*leading, t_q, t_k).reshape(-1, t_q, t_k)
        mask = ~mask.repeat_interleave(heads, dim=0)
    q, kv = (x.reshape(-1, *x.shape[-2:]) for x in (x_q, x_kv))
    with torch.no_grad():
        output, weights = layer(q, kv, kv, attn_mask=mask, average_attn_weights=False)
    return output.reshape(x_q.shape), weights.reshape(*leading, heads, t_q, t_k)


def run_layer(
    x_q,
    x_kv,
    state: State,
    heads: int,
    mask=None,
    *,
    split: Callable = cut,
    merge: Callable = join,
    attention: Callable = torch_attention,
    lay: Callable = lambda mask: mask.unsqueeze(-3),
    without: str = "",
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute a layer of heads, with one step done in another way.

    ``without`` lists the biases that are left out.
    """
    zero = torch.zeros(1)

    def bias(name: str) -> torch.Tensor:
        return zero if name in without else state.get(f"b_{name}", zero)

    x = {"q": x_q, "k": x_kv, "v": x_kv}
    q, k, v = (split(x[n] @ state[f"w_{n}"] + bias(n), heads) for n in "qkv")
    z, weights = attention(q, k, v, None if mask is None else lay(mask))
    return merge(z) @ state["w_o"] + bias("o"), weights


def _with_scale(scale: float) -> Callable:
    def attention(q, k, v, mask=None):
        weights = weights_of(q @ k.mT * scale, mask)
        return weights @ v, weights

    return attention


SCALED = (
    "scaled by √d_model instead of √d_k",
    "The scores of a head are sums over its d_k = d_model/heads features, so they are "
    "divided by √d_k. Split first, then attend.",
)
LAID = (
    "mask laid over the heads",
    "The mask (B, T_q, T_k) meets scores (B, h, T_q, T_k), and its batch lines up with "
    "the heads: an error where B is not h, and silently wrong where it is. Give it an "
    "axis of size 1 for the heads: mask.unsqueeze(-3).",
)
FROM_FRONT = (
    "the axis for the heads is counted from the front",
    "unsqueeze(1) suits a mask (B, T_q, T_k) only; a mask (T_q, T_k) becomes "
    "(T_q, 1, T_k), and its queries line up with the heads. Count from the end: "
    "mask.unsqueeze(-3).",
)


def layer_candidates(x_q, x_kv, state: State, heads: int, mask=None):
    """Take a wrong turn in a layer with heads."""

    def other(inputs=None, changed: State | None = None, **steps):
        q, kv = (x_q, x_kv) if inputs is None else inputs
        allowed = steps.pop("mask", mask)
        return run_layer(q, kv, state | (changed or {}), heads, allowed, **steps)

    def right() -> tuple[torch.Tensor, torch.Tensor]:
        return other()

    d_model = x_q.shape[-1]
    if mask is not None:
        yield LAID[0], lambda: other(lay=lambda mask: mask), LAID[1]
        yield FROM_FRONT[0], lambda: other(lay=lambda m: m.unsqueeze(1)), FROM_FRONT[1]
        ignored = "The result is the one without a mask. "
        if not torch.equal(x_q, x_kv) if x_q.shape == x_kv.shape else True:
            yield (
                "mask dropped for cross-attention",
                lambda: other(mask=None),
                ignored + "In self-attention yours obeys the mask; hand it on when "
                "x_kv is given as well: the source has padding, too.",
            )
        else:
            why = ignored + "Does forward hand the mask on to attend?"
            yield "mask ignored", lambda: other(mask=None), why
        yield (
            "mask inverted",
            lambda: other(mask=~mask),
            'True means "may attend" in this course; only nn.MultiheadAttention and '
            'its relatives mean "blocked" by it.',
        )
    yield VIEW[0], lambda: other(split=_view), VIEW[1]
    yield VIEW[0], lambda: other(split=_view, merge=_unview), VIEW[1]
    yield UNMERGED[0], lambda: other(merge=_unview), UNMERGED[1]
    yield DEALT[0], lambda: other(split=_dealt), DEALT[1]
    yield DEALT[0], lambda: other(split=_dealt, merge=_interleaved), DEALT[1]
    yield INTERLEAVED[0], lambda: other(merge=_interleaved), INTERLEAVED[1]

    def unprojected() -> tuple[torch.Tensor, torch.Tensor]:
        eye, zero = torch.eye(d_model), torch.zeros(d_model)
        return other(changed={"w_o": eye, "b_o": zero})

    yield NO_W_O[0], unprojected, NO_W_O[1]
    scale = d_model**-0.5
    yield SCALED[0], lambda: other(attention=_with_scale(scale)), SCALED[1]
    yield (
        "missing the scaling by 1/√d_k",
        lambda: other(attention=_with_scale(1.0)),
        "The scores are not divided by √d_k. Your scaled_dot_product_attention does "
        "that.",
    )
    yield (
        "weights averaged over the heads",
        lambda: (right()[0], right()[1].mean(-3)),
        "Return the weights of every head, (…, h, T_q, T_k). Averaged, they hide that "
        "heads differ. (nn.MultiheadAttention averages them unless told not to.)",
    )
    yield (
        "weights averaged over the heads",
        lambda: (right()[0], right()[1].mean(-3, keepdim=True)),
        "Return the weights of every head, (…, h, T_q, T_k).",
    )
    yield (
        "keys and values from x_q",
        lambda: other((x_q, x_q)),
        "Called with x_kv, the layer takes keys and values from it.",
    )
    yield (
        "queries from x_kv",
        lambda: other((x_kv, x_kv)),
        "Queries come from x_q; keys and values come from x_kv.",
    )
    yield (
        "queries and keys exchanged",
        lambda: other((x_kv, x_q)),
        "Queries come from x_q; keys and values come from x_kv.",
    )
    for names, value in (("qkvo", "all"), ("o", "the output"), ("qkv", "queries, keys "
                          "and values")):  # fmt: skip
        if f"b_{names[0]}" in state:
            yield (
                "the biases are missing",
                lambda names=names: other(without=names),
                f"The bias of {value} is not added: each projection is x W + b.",
            )
    of_keys = {"w_v": state["w_k"]}
    for changed in (of_keys, of_keys | {"b_v": state.get("b_k", torch.zeros(1))}):
        yield (
            "values made by the keys' matrix",
            lambda changed=changed: other(changed=changed),
            "Values have a matrix of their own, w_v; keys are made by w_k.",
        )
    for names in ("qkvo", "qkv", "o"):
        yield (
            "weights transposed",
            lambda names=names: other(
                changed={f"w_{n}": state[f"w_{n}"].mT for n in names}
            ),
            "Vectors are rows: y = x W + b, without a transpose. Only nn.Linear "
            "multiplies by the transpose.",
        )
    yield (
        "only the output is returned",
        lambda: right()[0],
        "Return output and weights, in this order.",
    )
    yield (
        "weights returned first",
        lambda: right()[::-1],
        "Return output and weights, in this order.",
    )
    yield (
        "one head of full width",
        lambda: _one_head(x_q, x_kv, state, mask),
        "Attention ran over all features at once: there is one set of weights. Split "
        "queries, keys and values into heads before you attend.",
    )


def _one_head(x_q, x_kv, state, mask) -> tuple[torch.Tensor, torch.Tensor]:
    output, weights = run_layer(x_q, x_kv, state, 1, mask)
    return output, weights.squeeze(-3)


# --- weights from PyTorch -------------------------------------------------------------


def torch_state_candidates(state: State, right: State) -> Iterator[Candidate]:
    """Translate PyTorch's state in other ways."""
    matrices = [f"w_{n}" for n in "qkvo"]

    def turned(*names: str) -> State:
        return right | {name: right[name].T for name in names}

    yield (
        "weights not transposed",
        lambda: turned(*matrices),
        "PyTorch stores (width out, width in) and multiplies by the transpose. As all "
        "four are square, no shape complains: transpose each.",
    )
    yield (
        "in_proj_weight not transposed",
        lambda: turned("w_q", "w_k", "w_v"),
        "w_o is turned, the other three are not: in_proj_weight needs it, too.",
    )
    yield (
        "out_proj.weight not transposed",
        lambda: turned("w_o"),
        "out_proj is an nn.Linear: its weight is (width out, width in), too.",
    )
    packed, biases = state["in_proj_weight"], state["in_proj_bias"]
    for order in ("qvk", "kqv", "kvq", "vqk", "vkq"):
        weights = dict(zip((f"w_{n}" for n in order), packed.chunk(3), strict=True))
        offsets = dict(zip((f"b_{n}" for n in order), biases.chunk(3), strict=True))
        weights = {name: matrix.T for name, matrix in weights.items()}
        why = "PyTorch stacks them in the order query, key, value."
        yield (
            "the three parts in another order",
            lambda weights=weights, offsets=offsets: right | weights | offsets,
            why,
        )
        yield (
            "the three parts in another order",
            lambda weights=weights: right | weights,
            why,
        )
    d = packed.shape[1]
    yield (
        "rows dealt out in turn",
        lambda: (
            right
            | {f"w_{n}": packed[i::3].T for i, n in enumerate("qkv")}
            | {f"b_{n}": biases[i::3] for i, n in enumerate("qkv")}
        ),
        "The first d rows belong to the queries, the next d to the keys, the last d to "
        "the values: blocks, not every third row.",
    )
    yield (
        "transposed, then cut by the wrong axis",
        lambda: (
            right
            | {f"w_{n}": packed.T.reshape(3, d, d)[i] for i, n in enumerate("qkv")}
        ),
        "in_proj_weight is (3d, d). Cut its rows into three, then transpose each.",
    )
    for turn in (True, False):
        parts = packed.chunk(3, dim=1)
        yield (
            "cut into columns",
            lambda parts=parts, turn=turn: (
                right
                | {
                    f"w_{n}": part.T if turn else part
                    for n, part in zip("qkv", parts, strict=True)
                }
            ),
            "in_proj_weight is (3d, d): queries, keys and values stand below each "
            "other. Cut its rows into three, then transpose each.",
        )
    yield (
        "the biases are missing",
        lambda: {name: right[name] for name in matrices},
        "The result needs b_q, b_k, b_v and b_o as well.",
    )
    yield (
        "the biases are missing",
        lambda: right | {f"b_{n}": torch.zeros(d) for n in "qkv"},
        "in_proj_bias holds the biases of queries, keys and values.",
    )


# --- counts ---------------------------------------------------------------------------


def parameter_candidates(d: int, heads: int, kv_heads: int | None):
    """Count something else."""
    kv = heads if kv_heads is None else kv_heads
    width = d // heads
    d_kv = kv * width
    right = 2 * (d * d + d) + 2 * (d * d_kv + d_kv)
    for name, value, why in (
        ("the biases are missing", 2 * d * d + 2 * d * d_kv,
         "Each projection has a bias, one number for each feature of its output."),
        ("each head as wide as the model", 4 * heads * (d * d + d),
         "Heads are d/h wide, so all of them together are d wide."),
        ("each head as wide as the model", 3 * heads * (d * d + d) + heads * d * d + d,
         "Heads are d/h wide, so all of them together are d wide."),
        ("counted for one head only",
         2 * (d * width + width) + d * width + width + d * width + d,
         "This counts one head; all heads together are d wide."),
        ("no output projection", d * d + d + 2 * (d * d_kv + d_kv),
         "Three projections are counted; the fourth, w_o, mixes the heads."),
        ("kv_heads is ignored", 4 * (d * d + d),
         "Keys and values have kv_heads heads of the width d/h, fewer than queries."),
        ("all four projections are shared", 4 * (d * d_kv + d_kv),
         "Only keys and values have fewer heads. Queries and output keep d features."),
        ("kv heads of another width", 2 * (d * d + d) + 2 * (d * (d // kv) + d // kv),
         "A head of keys is as wide as a head of queries, d/h, or their product does "
         "not exist. Fewer heads make d_kv smaller, not the heads wider or narrower."),
        ("one width of keys and values for all",
         2 * (d * d + d) + 2 * (d * width + width),
         "This is right for one kv head only; there are kv_heads of them."),
        ("keys or values are not counted", right - (d * d_kv + d_kv),
         "Keys and values have a projection each."),
        ("the biases of keys and values have the wrong width",
         2 * (d * d + d) + 2 * (d * d_kv + d),
         "A bias is as wide as the output of its projection: kv_heads · d_k."),
    ):  # fmt: skip
        if value != right:
            yield name, lambda value=value: value, why


def removal_candidates(w_o, heads: int, removed: list[int]) -> Iterator[Candidate]:
    """Remove something else."""
    d_v = w_o.shape[0] // heads

    def keep(rows: torch.Tensor) -> torch.Tensor:
        return torch.where(rows[:, None], w_o, 0.0)

    owner = torch.arange(heads * d_v) // d_v
    gone = torch.isin(owner, torch.tensor(removed, dtype=torch.long))
    columns = torch.arange(w_o.shape[1])
    per = -(-w_o.shape[1] // heads)
    by_columns = "removed in the columns"
    why = (
        "Columns of w_o are features of the output, made by all heads together. Head i "
        "owns the rows i·d_v to (i + 1)·d_v − 1: what it found is multiplied by them."
    )
    for width in (d_v, per, w_o.shape[1] // heads):
        hit = torch.isin(columns // max(width, 1), torch.tensor(removed).long())
        yield by_columns, lambda hit=hit: w_o.masked_fill(hit, 0.0), why
    yield (
        "the removed heads are kept, the others removed",
        lambda: keep(gone),
        "It is the other way round: `removed` lists the heads that go.",
    )
    yield (
        "one row for each head",
        lambda: keep(~torch.isin(torch.arange(len(w_o)), torch.tensor(removed).long())),
        f"A head has d_v = {d_v} rows; only one was set to zero.",
    )
    yield (
        "rows dealt out in turn",
        lambda: keep(
            ~torch.isin(torch.arange(len(w_o)) % heads, torch.tensor(removed).long())
        ),
        "A head's rows stand together: head i owns i·d_v to (i + 1)·d_v − 1.",
    )
    yield (
        "blocks of `heads` rows",
        lambda: keep(
            ~torch.isin(torch.arange(len(w_o)) // heads, torch.tensor(removed).long())
        ),
        f"A head owns d_v = {d_v} rows, the number of rows divided by the number of "
        "heads.",
    )
    yield (
        "heads counted from 1",
        lambda: keep(~torch.isin(owner + 1, torch.tensor(removed).long())),
        "Heads count from 0.",
    )
    yield (
        "heads counted from the end",
        lambda: keep(~torch.isin(heads - 1 - owner, torch.tensor(removed).long())),
        "Head 0 owns the first rows.",
    )
    if len(removed) > 1:
        for which in (removed[0], removed[-1]):
            yield (
                "only one of the heads is removed",
                lambda which=which: keep(owner != which),
                "Several heads are to go. Is `return` inside the loop, or does each "
                "round begin with a fresh copy?",
            )
    yield (
        "the rows are cut out",
        lambda: w_o[~gone],
        "The shape changes, so the layer cannot use it. Put zeros into the rows.",
    )
    yield (
        "nothing is removed",
        lambda: w_o,
        "The matrix is as it was. Was a copy of some rows changed, or is the slice "
        "empty, as w_o[4:4] is?",
    )


def repeat_candidates(x: torch.Tensor, times: int) -> Iterator[Candidate]:
    """Repeat in other ways."""
    dealt = "heads dealt out in turn"
    why = (
        "The copies come in the order 0, 1, 0, 1, …: repeat and cat lay the whole row "
        "of heads again and again. Neighbours share a head, 0, 0, …, 1, 1, …: "
        "repeat_interleave."
    )
    heads = x.shape[-3]
    yield dealt, lambda: torch.cat([x] * times, dim=-3), why
    yield (
        "the tokens are repeated",
        lambda: x.repeat_interleave(times, dim=-2),
        "Axis −2 is the axis of the tokens. The heads' axis is the third from the end.",
    )
    yield (
        "the tokens are repeated",
        lambda: torch.cat([x] * times, dim=-2),
        "Axis −2 is the axis of the tokens. The heads' axis is the third from the end.",
    )
    yield (
        "the features are repeated",
        lambda: x.repeat_interleave(times, dim=-1),
        "Axis −1 is that of the features. The heads' axis is the third from the end.",
    )
    yield (
        "the copies are not joined",
        lambda: x.unsqueeze(-3).expand(*x.shape[:-2], times, *x.shape[-2:]),
        "The copies have an axis of their own. Join it with the axis of the heads.",
    )
    yield (
        "the copies are not joined",
        lambda: torch.stack([x] * times, dim=-3),
        "The copies have an axis of their own. Join it with the axis of the heads.",
    )
    yield (
        "repeated up to `times` heads",
        lambda: x.repeat_interleave(max(1, times // heads), dim=-3),
        "`times` says how many copies of each head, not how many heads in the end.",
    )


def run_grouped(
    x_q,
    x_kv,
    state: State,
    heads: int,
    kv_heads: int,
    mask=None,
    *,
    times: Callable = lambda x, times: x.repeat_interleave(times, dim=-3),
    values: Callable | None = None,
    attention: Callable = torch_attention,
    lay: Callable = lambda mask: mask.unsqueeze(-3),
    split: Callable = cut,
    merge: Callable = join,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute grouped-query attention, with one step done in another way."""
    ratio = heads // kv_heads
    q = split(x_q @ state["w_q"], heads)
    k = times(split(x_kv @ state["w_k"], kv_heads), ratio)
    v = (values or times)(split(x_kv @ state["w_v"], kv_heads), ratio)
    z, weights = attention(q, k, v, None if mask is None else lay(mask))
    return merge(z) @ state["w_o"], weights


def grouped_candidates(
    x_q, x_kv, state: State, heads: int, kv_heads: int, mask=None
) -> Iterator[Candidate]:
    """Take a wrong turn in grouped-query attention."""

    def other(inputs=None, changed: State | None = None, **steps):
        q, kv = (x_q, x_kv) if inputs is None else inputs
        allowed = steps.pop("mask", mask)
        parameters = state | (changed or {})
        return run_grouped(q, kv, parameters, heads, kv_heads, allowed, **steps)

    def right() -> tuple[torch.Tensor, torch.Tensor]:
        return other()

    def in_turn(x, times):
        return torch.cat([x] * times, dim=-3)

    def first_head(x, times):
        return x[..., :1, :, :].expand(*x.shape[:-3], heads, *x.shape[-2:])

    def average(x, times):
        return x.mean(-3, keepdim=True).expand(*x.shape[:-3], heads, *x.shape[-2:])

    d_model = x_q.shape[-1]
    if mask is not None:
        yield LAID[0], lambda: other(lay=lambda mask: mask), LAID[1]
        yield FROM_FRONT[0], lambda: other(lay=lambda m: m.unsqueeze(1)), FROM_FRONT[1]
        yield (
            "mask ignored",
            lambda: other(mask=None),
            "The result is the one without a mask. Hand it on to attention.",
        )
        yield (
            "mask inverted",
            lambda: other(mask=~mask),
            'True means "may attend".',
        )
    dealt = "kv heads dealt out in turn"
    why = (
        "Query head i got the keys of head i mod kv_heads. Neighbours form a group: "
        "query head i belongs to kv head i // (heads // kv_heads), as in repeat_heads."
    )
    yield dealt, lambda: other(times=in_turn), why
    yield (
        "keys and values repeated in different ways",
        lambda: other(values=in_turn),
        "The keys' groups are right, the values' are not: query head i needs keys and "
        "values of the same head.",
    )
    yield (
        "all query heads with the first kv head",
        lambda: other(times=first_head),
        "Only kv head 0 is used: right for kv_heads = 1 only.",
    )
    yield (
        "kv heads averaged",
        lambda: other(times=average),
        "The heads of keys and values are averaged. Each serves its own group.",
    )
    yield VIEW[0], lambda: other(split=_view), VIEW[1]
    yield VIEW[0], lambda: other(split=_view, merge=_unview), VIEW[1]
    yield UNMERGED[0], lambda: other(merge=_unview), UNMERGED[1]
    yield DEALT[0], lambda: other(split=_dealt), DEALT[1]
    eye = torch.eye(d_model)
    yield NO_W_O[0], lambda: other(changed={"w_o": eye}), NO_W_O[1]
    scale = d_model**-0.5
    yield SCALED[0], lambda: other(attention=_with_scale(scale)), SCALED[1]
    yield (
        "weights averaged over the heads",
        lambda: (right()[0], right()[1].mean(-3)),
        "Return the weights of every query head, (…, h, T_q, T_k).",
    )
    yield (
        "keys and values from x_q",
        lambda: other((x_q, x_q)),
        "Called with x_kv, the layer takes keys and values from it.",
    )
    yield (
        "only the output is returned",
        lambda: right()[0],
        "Return output and weights, in this order.",
    )


def torch_grouped(
    x_q, x_kv, state: State, heads: int, kv_heads: int, mask=None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute by PyTorch's own grouped attention; one-hot values give the weights."""
    q = cut(x_q @ state["w_q"], heads)
    k, v = (cut(x_kv @ state[name], kv_heads) for name in ("w_k", "w_v"))
    mask = None if mask is None else mask.unsqueeze(-3)
    one_hot = torch.eye(k.shape[-2]).expand(*k.shape[:-1], k.shape[-2])
    z, weights = (
        F.scaled_dot_product_attention(q, k, each, attn_mask=mask, enable_gqa=True)
        for each in (v, one_hot)
    )
    return join(z) @ state["w_o"], weights
