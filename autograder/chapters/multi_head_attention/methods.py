"""``project`` and ``attend`` by themselves: a decoder that writes calls them apart."""

from collections.abc import Callable

import torch
import torch.nn.functional as F

from autograder.chapters.attention.oracles import Pair, torch_attention
from autograder.chapters.multi_head_attention.heads import cut, join
from autograder.chapters.multi_head_attention.steps import new_axis
from autograder.exercise.inputs import draw_mask, normal, seeded
from autograder.exercise.methods import Method, methods_of, unwritten_named
from autograder.exercise.parameters import State
from autograder.exercise.spec import Case, expect_several, judge_parts
from autograder.forms import several
from autograder.interface import StudentInstance

Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
NAMES = {"q": "the queries", "k": "the keys", "v": "the values"}


def _projected(x_q, x_kv, state: State, heads: int, split: Callable = cut) -> Three:
    q, k, v = (
        split(F.linear(x, state[f"w_{name}"].mT, state[f"b_{name}"]), heads)
        for name, x in zip("qkv", (x_q, x_kv, x_kv), strict=True)
    )
    return q, k, v


def _attended(q, k, v, mask, state: State, heads: int, lay=new_axis) -> Pair:
    z, weights = torch_attention(q, k, v, None if mask is None else lay(mask))
    return join(z) @ state["w_o"] + state["b_o"], weights


def _scaled(q, k, v) -> Three:
    return q / q.shape[-1] ** 0.5, k, v


ANSWER = "multi-head-attention", "MultiHeadAttention"
projections = Method(
    *ANSWER,
    _projected,
    method="project",
    given=lambda layer: (dict(layer.named_parameters()), layer.heads),
)
attentions = Method(
    *ANSWER,
    _attended,
    method="attend",
    given=projections.given,
)

# --- what goes wrong, where forward is right ------------------------------------------

CUT = "What project returns is split into heads: it is kept, and attended to, later."
for name, why, answer in (
    (
        "project does not split into heads",
        f"forward or attend does it later. {CUT}",
        lambda x_q, x_kv, state, heads: _projected(
            x_q, x_kv, state, heads, lambda x, heads: x
        ),
    ),
    (
        "keys and values from x_q",
        "project takes keys and values from its second argument.",
        lambda x_q, x_kv, *rest: _projected(x_q, x_q, *rest),
    ),
    (
        "keys and values exchanged",
        "project returns queries, keys and values, in this order. Keys come from w_k, "
        "values from w_v.",
        lambda *given: tuple(_projected(*given)[place] for place in (0, 2, 1)),
    ),
    (
        "the queries are scaled in project",
        "Attention divides by √d_k. If project does so, too, whoever calls the two "
        "methods with an attention of their own divides twice.",
        lambda *given: _scaled(*_projected(*given)),
    ),
    (
        "the biases are missing",
        "Each projection of project is x W + b.",
        lambda x_q, x_kv, state, heads: _projected(
            x_q, x_kv, state | {f"b_{each}": torch.zeros(1) for each in "qkv"}, heads
        ),
    ),
):
    projections.mistake(name, why)(answer)

for name, why, answer in (
    (
        "mask ignored",
        "The result is the one without a mask. Does attend use the mask that it is "
        "given, or one that forward has left behind?",
        lambda q, k, v, mask, *rest: _attended(q, k, v, None, *rest),
    ),
    (
        "mask laid over the heads",
        "attend is given a mask without an axis for the heads. It adds the axis "
        "itself: mask.unsqueeze(-3).",
        lambda *given: _attended(*given, lay=lambda mask: mask),
    ),
    (
        "no output projection",
        "attend merges the heads, and multiplies by w_o and adds b_o. forward has "
        "nothing left to do.",
        lambda q, k, v, mask, state, heads: _attended(
            q, k, v, mask, {"w_o": torch.eye(len(state["w_o"])), "b_o": 0}, heads
        ),
    ),
    (
        "the scores are not scaled",
        "attend divides the scores by √d_k; project leaves the queries as they are.",
        lambda q, *rest: _attended(q * q.shape[-1] ** 0.5, *rest),
    ),
):
    attentions.mistake(name, why)(answer)


# --- the check ------------------------------------------------------------------------


def judge_methods(
    layer: StudentInstance, seed: int, state: State, heads: int, build: str
) -> None:
    """Judge both methods of a layer whose ``forward`` is right."""
    generator = seeded(seed)
    project, attend = methods_of(layer, "project", "attend")
    d, d_k = len(state["w_q"]), len(state["w_q"]) // heads
    x_q, x_kv = normal(generator, 2, 4, d), normal(generator, 2, 7, d)
    on = f"project of {build}, x_q {tuple(x_q.shape)}, x_kv {tuple(x_kv.shape)}"
    case = Case(on, (x_q, x_kv), given=(state, heads))
    with unwritten_named():
        got = expect_several(several(project(x_q, x_kv)), NAMES, on)
    judge_parts(projections, got, case, NAMES.values())
    for mask in (None, draw_mask(generator, heads, 4, 7)):  # B = h
        q, k, v = (normal(generator, heads, heads, t, d_k) for t in (4, 7, 7))
        said = "no mask" if mask is None else f"mask {tuple(mask.shape)}"
        on = f"attend of {build}, q {tuple(q.shape)}, k and v {tuple(k.shape)}, {said}"
        case = Case(on, (q, k, v, mask), given=(state, heads))
        with unwritten_named():
            came = several(attend(*case.passed))
        got = expect_several(came, ("output", "weights"), on)
        judge_parts(attentions, got, case, ("what attend returns", "its weights"))
