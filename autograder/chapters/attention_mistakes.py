"""The known mistakes of chapter 4: what each gives on an input, and why it is wrong.

Each function whose name ends in ``_candidates`` yields (name, what it gives, why) for
the inputs of one exercise. The checks compare a wrong answer with them, in this order.
"""

import math
from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F

from autograder.exercise.naming import Candidate


def weights_of(scores: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    """Compute the right weights by PyTorch; rows with nothing to attend to are zero."""
    if mask is not None:
        scores = torch.where(mask, scores, -math.inf)
    empty = scores.isneginf().all(dim=-1, keepdim=True)
    return torch.where(empty, 0.0, F.softmax(scores, dim=-1))


def torch_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute output and weights by PyTorch; values of one-hot rows give the weights.

    PyTorch gives zeros for a row with nothing to attend to, as the course does.
    """
    one_hot = torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-1], k.shape[-2])
    attend = F.scaled_dot_product_attention
    return attend(q, k, v, attn_mask=mask), attend(q, k, one_hot, attn_mask=mask)


def softmax_candidates(scores: torch.Tensor) -> Iterator[Candidate]:
    """Misread softmax."""
    for axis in range(scores.dim() - 1):
        yield (
            "softmax over the wrong axis",
            lambda axis=axis: torch.softmax(scores, axis),
            f"The weights sum to 1 along axis {axis}. Each row, along the last axis, "
            "belongs to one query and shares out that query's attention: pass dim=-1 "
            "wherever you take a sum or a maximum.",
        )
    yield (
        "one softmax over the whole tensor",
        lambda: torch.softmax(scores.flatten(), 0).reshape(scores.shape),
        "All weights together sum to 1, so the rows take from each other. Give the "
        "sum dim=-1 and keepdim=True: every row sums to 1 by itself.",
    )
    yield (
        "no exponential",
        lambda: scores / scores.sum(-1, keepdim=True),
        "The scores themselves are divided by their sum. A negative score would get a "
        "negative weight; exp makes every entry positive first.",
    )
    unnormalised = "the exponentials are not divided by their sum"
    why = "The rows do not sum to 1. Divide each exponential by the sum of its row."
    shifted = scores - scores.amax(-1, keepdim=True)
    yield unnormalised, lambda: shifted.exp(), why
    yield unnormalised, lambda: scores.exp(), why
    yield (
        "the logarithm of the weights",
        lambda: F.log_softmax(scores, -1),
        "These are log-probabilities, useful in a loss; here the weights are wanted.",
    )
    yield (
        "sigmoid instead of softmax",
        lambda: torch.sigmoid(scores),
        "Each score is squashed on its own, so the weights of a row do not compete "
        "and do not sum to 1.",
    )
    yield (
        "minus sign in the exponent",
        lambda: torch.softmax(-scores, -1),
        "The smallest score got the largest weight. Subtract the maximum from the "
        "scores, not the scores from the maximum.",
    )


def context_candidates(
    weights: torch.Tensor, values: torch.Tensor
) -> Iterator[Candidate]:
    """Misread the worked example."""
    yield (
        "rows and columns exchanged",
        lambda: weights.T @ values,
        "The weights were read by columns. Row i of the weights belongs to query i "
        "and sums to 1; the columns do not.",
    )
    yield (
        "equal weights",
        lambda: values.mean(0).expand(3, 4),
        "This is the plain mean of the values, the same in every row. Each row has "
        "weights of its own.",
    )
    yield (
        "weights in reverse order",
        lambda: weights.flip(-1) @ values,
        "Weight j goes with value j: the first number of a row of the weights belongs "
        "to the first row of the values.",
    )
    yield (
        "the values themselves",
        lambda: values,
        "These are the rows before mixing; only the first token, which sees nothing "
        "but itself, keeps its value.",
    )
    yield (
        "the rows are not mixed by weights but added",
        lambda: (weights > 0).to(values.dtype) @ values,
        "Each row of the values counts by its weight: multiply it first, then add.",
    )
    chapters_weights = torch.tensor([[1, 0, 0], [0.6, 0.4, 0], [0.2, 0.5, 0.3]])
    chapters_values = torch.tensor(
        [[0.1, 0.2, 0.3, 0.3], [0.4, 0.24, 0.9, 0.3], [0.1, 0.8, 0.3, 0.3]]
    )
    yield (
        "the numbers of the chapter's example",
        lambda: chapters_weights @ chapters_values,
        "This is the context of 'attention is cool'. The exercise has weights and "
        "values of its own.",
    )


def project_candidates(x_q, x_kv, w_q, w_k, w_v) -> Iterator[Candidate]:
    """Take queries, keys or values from the wrong place."""
    both = (
        "In cross-attention the queries come from the sequence that is being enriched "
        "(the decoder's), keys and values from the one that is looked up (the "
        "encoder's): Q from x_q, K and V from x_kv."
    )
    q, k, v = x_q @ w_q, x_kv @ w_k, x_kv @ w_v
    yield "queries and keys both from x_kv", lambda: (x_kv @ w_q, k, x_q @ w_v), both
    yield "queries from x_kv, too", lambda: (x_kv @ w_q, k, v), both
    yield "x_kv is ignored", lambda: (q, x_q @ w_k, x_q @ w_v), both
    yield "keys from x_q", lambda: (q, x_q @ w_k, v), both
    yield "values from x_q", lambda: (q, k, x_q @ w_v), both
    own = "Each of the three has a matrix of its own: w_q, w_k and w_v, in this order."
    yield "w_k used for the values, too", lambda: (q, k, x_kv @ w_k), own
    yield "w_q used for the keys, too", lambda: (q, x_kv @ w_q, v), own
    exchanged = (x_kv @ w_q, x_q @ w_k, x_q @ w_v)
    yield "x_q and x_kv exchanged", lambda: exchanged, both
    yield (
        "w_q and w_k exchanged",
        lambda: (x_q @ w_k, x_kv @ w_q, v),
        "w_q makes queries and w_k makes keys. They have the same shape, so nothing "
        "fails, but the scores change.",
    )
    yield (
        "returned in another order",
        lambda: (k, q, v),
        "The order is query, key, value.",
    )
    yield (
        "weights transposed",
        lambda: (x_q @ w_q.mT, x_kv @ w_k.mT, x_kv @ w_v.mT),
        "Vectors are rows here and w_q has shape (d_model, d_k), so the product is x "
        "times w. Only torch.nn.Linear stores its weight the other way round.",
    )
    yield (
        "projects along the sequence",
        lambda: (x_q.mT @ w_q, x_kv.mT @ w_k, x_kv.mT @ w_v),
        "The weights act on the d_model features of each token, not on the T tokens: "
        "w_q is (d_model, d_k), and one layer serves sequences of any length.",
    )
    yield (
        "queries scaled already",
        lambda: (q / math.sqrt(w_q.shape[-1]), k, v),
        "The division by √d_k belongs to the scores, in a later exercise; done here as "
        "well it would be done twice.",
    )


def causal_candidates(length: int) -> Iterator[Candidate]:
    """Draw the causal mask wrongly."""
    ones = torch.ones(length, length, dtype=torch.bool)
    yield (
        "upper triangle",
        lambda: ones.triu(),
        "Here every token attends to itself and to the future. Row i is the query at "
        "position i; it may attend to the columns j <= i.",
    )
    yield (
        "mask inverted",
        lambda: ~ones.tril(),
        "True marks what is forbidden. In this course, as in PyTorch's "
        "scaled_dot_product_attention, True means 'may attend'.",
    )
    yield (
        "off by one: the diagonal is blocked",
        lambda: ones.tril(-1),
        "A token may attend to itself. Without the diagonal the first token would have "
        "nothing to attend to at all.",
    )
    yield (
        "off by one: one future token is visible",
        lambda: ones.tril(1),
        "Position i sees position i + 1, the very token a decoder is to predict: such "
        "a model looks brilliant in training and fails at generation.",
    )
    yield (
        "nothing is masked",
        lambda: ones,
        "Every token may attend to every other; the future must be hidden.",
    )


def padding_candidates(lengths: torch.Tensor, width: int) -> Iterator[Candidate]:
    """Draw the padding mask wrongly."""
    keep = torch.zeros(len(lengths), width, dtype=torch.bool)
    for row, length in enumerate(lengths.tolist()):
        keep[row, :length] = True
    yield (
        "mask inverted",
        lambda: ~keep[:, None, :],
        "True marks the padding. In this course True means 'may attend', so it marks "
        "the real tokens (torch.nn.MultiheadAttention has it the other way round).",
    )
    yield (
        "off by one",
        lambda: (torch.arange(width) <= lengths[:, None])[:, None, :],
        "A sequence of length n has its tokens at the positions 0 … n-1, so position n "
        "is padding already.",
    )
    yield (
        "off by one",
        lambda: (torch.arange(1, width + 1) < lengths[:, None])[:, None, :],
        "A sequence of length n has its tokens at the positions 0 … n-1; position n-1 "
        "is the last real one, and it was lost.",
    )
    yield (
        "padding on the left",
        lambda: keep.flip(-1)[:, None, :],
        "The real tokens come first and the padding fills up the end.",
    )
    yield (
        "masks queries instead of keys",
        lambda: keep[:, :, None],
        "The last axis of the scores is the keys', and padding must not be attended "
        "to as a key: shape (B, 1, T). With (B, T, 1) all keys stay visible, and the "
        "rows of padding have nothing to attend to.",
    )
    yield (
        "masks queries, too",
        lambda: keep[:, :, None] & keep[:, None, :],
        "Only keys need hiding. Rows of padding that may attend to nothing are rows "
        "of only −∞; leave them be and ignore their output.",
    )
    if len(lengths) > 1:
        yield (
            "the new axis stands first",
            lambda: keep[None],
            "The batch stays in front: (B, 1, T). The axis of size 1 comes after it, "
            "where the scores (B, T_q, T_k) have their queries.",
        )
    longest = int(lengths.max())
    if longest < width:
        yield (
            "the longest length instead of max_length",
            lambda: keep[:, None, :longest],
            "The batch is max_length wide, also where no sequence is as long as that.",
        )
    yield (
        "the axis of the queries is missing",
        lambda: keep,
        "(B, T) does not line up with scores (B, T_q, T_k): broadcasting would take "
        "the batch for the queries. An axis of size 1 in the middle, (B, 1, T), serves "
        "all queries.",
    )


NEVER_MULTIPLY = (
    "A product with the mask cannot hide a score: 0 is an ordinary score, exp(0) = 1, "
    "so the hidden key keeps some weight; and with a mask of 0 and −∞, 0 times an "
    "allowed score is 0, and −∞ times a negative score is +∞, times zero NaN. Where "
    "the mask is False, put −∞ in place of the score."
)


def masked_candidates(scores: torch.Tensor, mask: torch.Tensor) -> Iterator[Candidate]:
    """Use a mask wrongly."""

    def soft(changed: torch.Tensor) -> torch.Tensor:
        return torch.softmax(changed, -1)

    yield (
        "mask inverted",
        lambda: weights_of(scores, ~mask),
        "The allowed keys got no weight, the forbidden ones got it all. True means "
        "'may attend': −∞ goes where the mask is False.",
    )
    yield (
        "mask ignored",
        lambda: soft(scores),
        "These are the weights without any mask. Is `mask` used on the way?",
    )
    yield "mask multiplied into the scores", lambda: soft(scores * mask), NEVER_MULTIPLY
    either = torch.where(mask, 0.0, -math.inf)
    yield (
        "mask multiplied into the scores",
        lambda: soft(scores * either),
        NEVER_MULTIPLY,
    )
    yield (
        "mask added as 0 and 1",
        lambda: soft(scores + mask.to(scores.dtype)),
        "Adding True adds 1 to an allowed score: a nudge, not a prohibition. What is "
        "forbidden has to become −∞.",
    )
    yield (
        "0 times −∞",
        lambda: soft(scores + (~mask).to(scores.dtype) * -math.inf),
        "Every row is NaN. A mask times −∞ is −∞ where it is 1, but NaN where it is 0, "
        "and one NaN spoils its row. Choose in place of multiplying: masked_fill or "
        "torch.where puts −∞ where the mask is False.",
    )
    sums = (soft(scores) * mask).sum(-1)
    yield (
        "weights zeroed after the softmax without renormalising",
        lambda: soft(scores) * mask,
        f"The rows no longer sum to 1 (one sums to {sums.min():.3f}). Hide the scores "
        "before the softmax: then the allowed keys share the whole weight.",
    )
    yield (
        "−∞ put in after the softmax",
        lambda: soft(scores).masked_fill(~mask, -math.inf),
        "−∞ is a score, not a weight. Put it in before the softmax, which turns it "
        "into a weight of exactly 0.",
    )
    for axis in range(scores.dim() - 1):
        yield (
            "softmax over the wrong axis",
            lambda axis=axis: weights_of(
                scores.masked_fill(~mask, -math.inf).transpose(axis, -1)
            ).transpose(axis, -1),
            f"The weights sum to 1 along axis {axis} instead of the last: each row "
            "belongs to one query and must sum to 1.",
        )


def attention_candidates(q, k, v, mask=None) -> Iterator[Candidate]:
    """Take a wrong turn on the way from q, k, v to output and weights."""
    d_k, d_v = q.shape[-1], v.shape[-1]
    raw = q @ k.mT
    allowed = torch.ones(raw.shape, dtype=torch.bool) if mask is None else mask
    right = weights_of(raw / math.sqrt(d_k), mask)

    def attend(weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return weights @ v, weights

    yield (
        "missing the scaling by 1/√d_k",
        lambda: attend(weights_of(raw, mask)),
        f"A score is a sum of d_k = {d_k} products, so it grows with √d_k. Divide the "
        "scores by √d_k before the softmax.",
    )
    yield (
        "scaled by √d_v instead of √d_k",
        lambda: attend(weights_of(raw / math.sqrt(d_v), mask)),
        f"A score is a sum over the d_k = {d_k} features of query and key; the width "
        f"d_v = {d_v} of the values plays no part in it. Take the width from q or k.",
    )
    yield (
        "scaled by d_k instead of √d_k",
        lambda: attend(weights_of(raw / d_k, mask)),
        "The root is missing, or 1/√d_k was applied twice. The variance of a score is "
        "d_k, so its spread is √d_k; dividing by d_k makes all weights nearly equal.",
    )
    yield (
        "multiplied by √d_k instead of divided",
        lambda: attend(weights_of(raw * math.sqrt(d_k), mask)),
        "The scores got larger still. Divide them by √d_k.",
    )
    yield (
        "scaled by the number of keys",
        lambda: attend(weights_of(raw / math.sqrt(k.shape[-2]), mask)),
        "The root was taken of T_k, the second last axis. The width d_k is the last.",
    )
    yield (
        "scaled by the number of queries",
        lambda: attend(weights_of(raw / math.sqrt(q.shape[-2]), mask)),
        "The root was taken of T_q, the second last axis. The width d_k is the last.",
    )
    yield (
        "scaled after the softmax",
        lambda: attend(weights_of(raw, mask) / math.sqrt(d_k)),
        "The rows no longer sum to 1. The division tames the scores, so it comes "
        "before the softmax.",
    )
    for name, answer, why in masked_candidates(raw / math.sqrt(d_k), allowed):
        if mask is not None or "axis" in name:
            yield name, lambda answer=answer: attend(answer()), why
    yield (
        "queries and keys exchanged",
        lambda: attend(weights_of(raw.mT / math.sqrt(d_k), mask)),
        "Row i of the scores belongs to query i, column j to key j: shape "
        "(…, T_q, T_k). K Qᵀ is its transpose, and its softmax sums over the queries.",
    )
    yield (
        "output from the keys instead of the values",
        lambda: (right @ k, right),
        f"The output has d_k = {d_k} features instead of d_v = {d_v}. Keys only decide "
        "the weights; what is averaged is the values.",
    )
    yield (
        "values mixed by columns",
        lambda: (right @ v.mT, right),
        "The output is a mix of the rows of V, one row a token: weights times V, "
        "without a transpose.",
    )
    yield (
        "weights transposed before mixing",
        lambda: (right.mT @ v, right),
        "Row i of the weights mixes the values for query i; the transpose would mix "
        "with numbers that do not sum to 1.",
    )
    yield (
        "weights returned first",
        lambda: (right, right @ v),
        "The order is (output, weights).",
    )
    yield (
        "scores returned instead of weights",
        lambda: (right @ v, raw / math.sqrt(d_k)),
        "The second result is what the softmax gives: rows that sum to 1.",
    )
    yield (
        "only the output is returned",
        lambda: right @ v,
        "The function returns a pair: the output and the weights it was mixed with.",
    )


def layer_candidates(x_q, x_kv, w_q, w_k, w_v, mask=None) -> Iterator[Candidate]:
    """Feed the layer wrongly, or its attention."""

    def attend(a, b, c, allowed=mask, scale=None):
        return torch_attention(a if scale is None else a * scale, b, c, allowed)

    d_model, d_k = w_q.shape
    q, k, v = x_q @ w_q, x_kv @ w_k, x_kv @ w_v
    roles = (
        "The queries come from x_q, the sequence that is being enriched; keys and "
        "values both come from x_kv, the one that is looked up."
    )
    yield (
        "queries and keys both from x_kv",
        lambda: attend(x_kv @ w_q, k, x_q @ w_v),
        roles + " Otherwise the weights do not connect the two sequences at all.",
    )
    yield (
        "queries from x_kv, too",
        lambda: attend(x_kv @ w_q, k, v),
        roles + " Here x_q does not enter the result.",
    )
    yield (
        "x_kv is ignored",
        lambda: attend(q, x_q @ w_k, x_q @ w_v),
        roles + " Here x_q attends to itself only.",
    )
    yield "keys from x_q", lambda: attend(q, x_q @ w_k, v), roles
    yield "values from x_q", lambda: attend(q, k, x_q @ w_v), roles
    yield (
        "x_q and x_kv exchanged",
        lambda: attend(x_kv @ w_q, x_q @ w_k, x_q @ w_v),
        roles,
    )
    yield (
        "w_q and w_k exchanged",
        lambda: attend(x_q @ w_k, x_kv @ w_q, v),
        "Queries are made with w_q and keys with w_k. The shapes fit either way; the "
        "scores of self-attention come out transposed.",
    )
    root = math.sqrt(d_k)
    yield (
        "missing the scaling by 1/√d_k",
        lambda: attend(q, k, v, scale=root),
        "The scores are not divided by √d_k. If the module calls your own "
        "scaled_dot_product_attention, look there.",
    )
    yield (
        "scaled by √d_model instead of √d_k",
        lambda: attend(q, k, v, scale=root / math.sqrt(d_model)),
        f"A score is a sum over the d_k = {d_k} features of a projected query, not "
        f"over the d_model = {d_model} of the input.",
    )
    yield (
        "scaled twice",
        lambda: attend(q, k, v, scale=1 / root),
        "scaled_dot_product_attention divides by √d_k already.",
    )
    if mask is not None:
        yield (
            "mask ignored",
            lambda: attend(q, k, v, allowed=None),
            "The layer takes a mask but does not hand it on.",
        )
        yield (
            "mask inverted",
            lambda: attend(q, k, v, allowed=~mask),
            "True means 'may attend'; hand the mask on as it is.",
        )
    yield (
        "weights returned first",
        lambda: attend(q, k, v)[::-1],
        "The order is (output, weights).",
    )
    yield (
        "only the output is returned",
        lambda: attend(q, k, v)[0],
        "forward returns a pair: the output and the weights it was mixed with.",
    )


ANGLES = (-math.pi / 4, math.pi / 8, 5 * math.pi / 16)


def rotation(angle: float) -> torch.Tensor:
    """Write the rotation matrix R(angle) of source 0."""
    c, s = math.cos(angle), math.sin(angle)
    return torch.tensor([[c, -s], [s, c]])


def _without_sign(angle: float) -> torch.Tensor:
    c, s = math.cos(angle), math.sin(angle)
    return torch.tensor([[c, s], [s, c]])


def geometry(q, k, v, scale: float = math.sqrt(2), axis: int = -1) -> dict:
    """Compute the four matrices of the example in the plane."""
    scores = q @ k.T
    weights = torch.softmax(scores / scale, axis)
    return {
        "scores": scores,
        "scaled": scores / scale,
        "weights": weights,
        "output": weights @ v,
    }


def geometric_candidates(angles: Sequence[float]) -> Iterator[Candidate]:
    """Misread the example in the plane."""
    q, k, v = map(rotation, angles)
    yield (
        "the angles are ignored",
        lambda: geometry(*map(rotation, ANGLES)),
        "The matrices are those of source 0's angles, but the angles were others. Use "
        "the arguments theta_q, theta_k and theta_v.",
    )
    yield (
        "rotations applied to column vectors",
        lambda: geometry(q.T, k.T, v.T),
        "Vectors are rows here and stand on the left: Q = X W_Q. W x (or X times the "
        "transpose) turns the other way, and the scores come out transposed.",
    )
    yield (
        "keys not transposed",
        lambda: geometry(q, k.T, v),
        "This is Q K, the columns of K in place of its rows. With (2, 2) matrices "
        "nothing fails; the scores are Q Kᵀ.",
    )
    yield (
        "queries and keys exchanged",
        lambda: geometry(k, q, v),
        "The scores are transposed. Row i belongs to query i: the entry [1, 0] is the "
        "score of the query 'car' with the key 'blue', Q Kᵀ and not K Qᵀ.",
    )
    yield (
        "missing the scaling by 1/√d_k",
        lambda: geometry(q, k, v, scale=1.0),
        "d_k is 2 here: divide the scores by √2.",
    )
    yield (
        "scaled by d_k instead of √d_k",
        lambda: geometry(q, k, v, scale=2.0),
        "d_k is 2 here: divide the scores by √2.",
    )
    yield (
        "softmax over the wrong axis",
        lambda: geometry(q, k, v, axis=0),
        "The columns sum to 1. Each row belongs to one query and must sum to 1.",
    )
    yield (
        "values mixed by columns",
        lambda: geometry(q, k, v) | {"output": geometry(q, k, v)["weights"] @ v.T},
        "The output is weights times V, a mix of the rows of V, without a transpose.",
    )
    yield (
        "output from the tokens instead of the values",
        lambda: geometry(q, k, v) | {"output": geometry(q, k, v)["weights"]},
        "X is the unit matrix, so P X is P again. What is mixed are the values, X W_V.",
    )
    yield (
        "the minus sign in R(θ) is missing",
        lambda: geometry(*map(_without_sign, angles)),
        "The entry in row 0, column 1 of R(θ) is −sin θ. Without the sign it is no "
        "rotation.",
    )
    yield (
        "weights and values exchanged",
        lambda: geometry(q, k, v) | {"output": v @ geometry(q, k, v)["weights"]},
        "The weights stand on the left, P V: row i of the output is a mix of the rows "
        "of V. V P mixes columns; the shapes fit here only because all are (2, 2).",
    )
    for convert in (math.degrees, math.radians):
        yield (
            "degrees instead of radians",
            lambda convert=convert: geometry(*(rotation(convert(a)) for a in angles)),
            "The angles are radians, and math.cos and torch.cos take radians: use the "
            "angles as they stand.",
        )


def jacobian_candidates(p: torch.Tensor) -> Iterator[Candidate]:
    """Differentiate softmax wrongly."""
    outer = p[..., :, None] * p[..., None, :]
    diagonal = torch.diag_embed(p)
    yield (
        "only the diagonal",
        lambda: torch.diag_embed(p * (1 - p)),
        "Every probability depends on every score: raising one score lowers the "
        "others, so off the diagonal stands −p_i p_j.",
    )
    yield (
        "plus instead of minus",
        lambda: diagonal + outer,
        "Raising one score takes weight from the others: the entries off the diagonal "
        "are negative, and every row sums to 0.",
    )
    yield (
        "the sign is reversed",
        lambda: outer - diagonal,
        "Raising a score raises its own probability: the diagonal is positive.",
    )
    yield (
        "the diagonal lacks its own term",
        lambda: -outer,
        "−p_i p_j holds off the diagonal. On the diagonal it is p_i − p_i p_i.",
    )
    yield (
        "the diagonal subtracted twice",
        lambda: torch.diag_embed(p * (1 - p)) - outer,
        "p_i (1 − p_i) holds the term −p_i p_i already, and the product of column and "
        "row takes it away again. Put p alone on the diagonal.",
    )
    yield (
        "ones on the diagonal",
        lambda: torch.eye(p.shape[-1]) - outer,
        "diag(p) has p on its diagonal, not ones: p_i − p_i p_i is p_i (1 − p_i).",
    )
    yield (
        "the outer product is missing",
        lambda: diagonal,
        "diag(p) is what would come out if the denominator did not change. It does: "
        "subtract p_i p_j everywhere.",
    )
    yield (
        "p_i (1 − p_j) everywhere",
        lambda: p[..., :, None] * (1 - p[..., None, :]),
        "That is the case i = j only. For i ≠ j the 1 is a 0: −p_i p_j.",
    )
    again = torch.softmax(p, -1)
    yield (
        "softmax applied again",
        lambda: torch.diag_embed(again) - again[..., :, None] * again[..., None, :],
        "The argument is the probabilities already, not the scores.",
    )


def additive_candidates(x_q, x_kv, w_q, w_k, v, mask=None) -> Iterator[Candidate]:
    """Score or mix wrongly in additive attention."""
    keys = x_kv @ w_k
    inside = (x_q @ w_q)[..., :, None, :] + keys[..., None, :, :]
    scores = torch.tanh(inside) @ v

    def attend(changed: torch.Tensor) -> tuple:
        weights = weights_of(changed, mask)
        return weights @ x_kv, weights

    yield (
        "no tanh",
        lambda: attend(inside @ v),
        "Without tanh the query's part of the score is the same for every key and "
        "cancels in the softmax: every query gets the same weights.",
    )
    for name, other in (("ReLU", torch.relu), ("the sigmoid", torch.sigmoid)):
        yield (
            f"{name} instead of tanh",
            lambda other=other: attend(other(inside) @ v),
            "Bahdanau's score uses the hyperbolic tangent, torch.tanh.",
        )
    queries = (x_q @ w_q)[..., :, None, :]
    yield (
        "query times key instead of their sum",
        lambda: attend(torch.tanh(queries * keys[..., None, :, :]) @ v),
        "Additive: the projected query and the projected key are added, before tanh.",
    )
    yield (
        "tanh of each part instead of their sum",
        lambda: attend((queries.tanh() + keys.tanh()[..., None, :, :]) @ v),
        "tanh acts on the sum. Taken of each part, it leaves the query's part the same "
        "for every key, and the softmax cancels it: every query gets the same weights.",
    )
    yield (
        "a sum instead of the product with v",
        lambda: attend(torch.tanh(inside).sum(-1)),
        "The hidden features are weighted by the parameter v before they are summed; "
        "without it v never learns.",
    )
    yield (
        "tanh after the product with v",
        lambda: attend(torch.tanh(inside @ v)),
        "tanh comes before v: tanh(…) v. Outside, it would squeeze every score "
        "between −1 and 1.",
    )
    yield (
        "scaled as a dot product",
        lambda: attend(scores / math.sqrt(v.shape[0])),
        "Additive scores are not divided by a root: tanh keeps the hidden features "
        "between −1 and 1.",
    )
    yield (
        "keys added to queries of the same position",
        lambda: attend(torch.tanh(x_q @ w_q + keys) @ v),
        "x_q has T_q rows and x_kv has T_k. Every query meets every key: give the "
        "queries a new axis before the last, (…, T_q, 1, d_hidden), and the keys one "
        "before their tokens, (…, 1, T_k, d_hidden).",
    )
    yield (
        "softmax over the wrong axis",
        lambda: (lambda w: (w @ x_kv, w))(torch.softmax(scores, -2)),
        "The weights sum to 1 over the queries. The keys are the last axis of the "
        "scores, and the weights of each query sum to 1 over them.",
    )
    weights = weights_of(scores, mask)
    yield (
        "output from the projected keys",
        lambda: (weights @ keys, weights),
        "What is averaged are the rows of x_kv themselves; their projection serves the "
        "scores only.",
    )
    if mask is not None:
        yield (
            "mask ignored",
            lambda: (weights_of(scores) @ x_kv, weights_of(scores)),
            "The layer takes a mask but does not use it: masked_softmax does.",
        )
        yield (
            "mask inverted",
            lambda: (weights_of(scores, ~mask) @ x_kv, weights_of(scores, ~mask)),
            "True means 'may attend'; hand the mask on as it is.",
        )
    yield (
        "weights returned first",
        lambda: (weights, weights @ x_kv),
        "The order is (output, weights).",
    )
    yield (
        "only the output is returned",
        lambda: weights @ x_kv,
        "forward returns a pair: the output and the weights it was mixed with.",
    )


def cost(projections: float, scores: float, mixing: float, share: float) -> dict:
    """Write the answer of the exercise on cost."""
    return {
        "projections": projections,
        "scores": scores,
        "mixing": mixing,
        "quadratic_share": share,
    }


def cost_candidates(t: int, d: int) -> Iterator[Candidate]:
    """Count wrongly."""
    p, s = 4 * t * d * d, t * t * d
    yield (
        "the mixing is forgotten",
        lambda: cost(p, s, 0, s / (p + s)),
        "P V multiplies as often as Q Kᵀ does: T² rows of weights times d features.",
    )
    yield (
        "the mixing is left out of the share",
        lambda: cost(p, s, s, s / (p + s)),
        "Both products of size T² count: scores and mixing.",
    )
    yield (
        "the mixing is left out of the share",
        lambda: cost(p, s, s, s / (p + 2 * s)),
        "Both products of size T² count: scores and mixing.",
    )
    cube = (
        "Each of the T² scores is a sum over d features: T² · d. T³ would be the "
        "product of two T × T matrices, which attention never forms."
    )
    share = 2 * t**3 / (p + 2 * t**3)
    yield "T³ instead of T²d", lambda: cost(p, t**3, t**3, share), cube
    share = (s + t**3) / (p + s + t**3)
    yield "T³ instead of T²d", lambda: cost(p, s, t**3, share), cube
    yield (
        "the width is forgotten",
        lambda: cost(p, t * t, t * t, 2 * t * t / (p + 2 * t * t)),
        "T² is the number of scores; each of them costs d multiplications.",
    )
    yield (
        "three projections instead of four",
        lambda: cost(3 * t * d * d, s, s, 2 * s / (3 * t * d * d + 2 * s)),
        "W_Q, W_K, W_V and, at the end, the output projection W_O: four.",
    )
    yield (
        "the tokens of the projections are forgotten",
        lambda: cost(4 * d * d, s, s, 2 * s / (4 * d * d + 2 * s)),
        "4d² is the number of parameters. Every one of the T tokens is multiplied "
        "with them.",
    )
    yield (
        "operations instead of multiply-adds",
        lambda: cost(2 * p, 2 * s, 2 * s, 2 * s / (p + 2 * s)),
        "A multiplication and the addition after it count as one here.",
    )
    yield (
        "the share is turned round",
        lambda: cost(p, s, s, p / (p + 2 * s)),
        "This is the share of the projections; that of scores and mixing is wanted.",
    )
    yield (
        "the share cut down to a whole number",
        lambda: cost(p, s, s, 2 * s // (p + 2 * s)),
        "// and int(...) drop what stands after the point. A share needs /.",
    )
    yield (
        "a percentage instead of a share",
        lambda: cost(p, s, s, 200 * s / (p + 2 * s)),
        "A share of the whole lies between 0 and 1: do not multiply by 100.",
    )
    yield (
        "a ratio instead of a share",
        lambda: cost(p, s, s, 2 * s / p),
        "A share is a part of the whole: divide by the sum of all three.",
    )
