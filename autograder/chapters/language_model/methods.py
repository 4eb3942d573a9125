"""``project`` and ``finish`` by themselves: a block with a cache calls them apart."""

import torch

from autograder.chapters.encoder.oracles import DEEP
from autograder.chapters.language_model.grouped import rotated
from autograder.chapters.language_model.parts import Parts, Three, Torchs
from autograder.chapters.multi_head_attention.heads import UNMERGED, join, unviewed
from autograder.chapters.multi_head_attention.loop import NO_W_O
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.methods import Method, methods_of, unwritten_named
from autograder.exercise.spec import Case, expect_several, judge_parts
from autograder.forms import several
from autograder.interface import StudentInstance

NAMES = {"q": "the queries", "k": "the keys", "v": "the values"}


def _project(x: torch.Tensor, parts: Parts) -> Three:
    return parts.project(parts.norm("norm_1", x))


def _finish(x: torch.Tensor, z: torch.Tensor, parts: Parts, merge=join) -> torch.Tensor:
    return _through(x + _mixed(z, parts, merge), parts)


def _mixed(z: torch.Tensor, parts: Parts, merge=join) -> torch.Tensor:
    return parts.drop(merge(z) @ parts.state["attention.w_o"])


def _through(x: torch.Tensor, parts: Parts) -> torch.Tensor:
    return x + parts.drop(parts.feed(parts.norm("norm_2", x)))


ANSWER = "block-from-configuration", "DecoderBlock"
projecting = Method(
    *ANSWER,
    method="project",
    given=lambda block: (Parts.of(block),),
    oracle=_project,
)
finishing = Method(*ANSWER, method="finish", given=projecting.given, oracle=_finish)

# --- what goes wrong, where forward is right ------------------------------------------


@projecting.mistake(
    "no norm in the first half",
    "project is given x as it came in, and makes queries, keys and values of "
    "norm_1(x). Whoever calls it has normalised nothing.",
)
def _(x, parts):
    return parts.project(x)


@projecting.mistake(
    "rotated twice",
    "What project returns is not rotated: causal_attention rotates, and so does "
    "whoever attends with a cache.",
    when=lambda x, parts: parts.rotary,
)
def _(x, parts):
    q, k, v = _project(x, parts)
    return rotated(q), rotated(k), v


@projecting.mistake(
    "queries and keys are not normalised",
    "With qk_norm=True project normalises them, after the split; forward has nothing "
    "of this left to do.",
    when=lambda x, parts: "norm_q.gamma" in parts.state,
)
def _(x, parts):
    return parts.split(parts.norm("norm_1", x))


@projecting.mistake(
    "keys and values exchanged",
    "project returns queries, keys and values, in this order. Keys come from w_k, "
    "values from w_v.",
)
def _(x, parts):
    q, k, v = _project(x, parts)
    return q, v, k


X = "finish is given x as it came in, and z: it adds to this x what is made of z."
finishing.mistake(*UNMERGED)(lambda x, z, parts: _finish(x, z, parts, unviewed))
finishing.mistake(*NO_W_O)(lambda x, z, parts: _through(x + join(z), parts))
finishing.mistake("no residual around attention", X)(
    lambda x, z, parts: _through(_mixed(z, parts), parts)
)
finishing.mistake("residual from the normalised x", X)(
    lambda x, z, parts: _finish(parts.norm("norm_1", x), z, parts)
)
finishing.mistake("no feed-forward half", "finish ends with what the network adds.")(
    lambda x, z, parts: x + _mixed(z, parts)
)


# --- the check ------------------------------------------------------------------------


def judge_methods(
    block: StudentInstance, seed: int, parts: Parts, right: Torchs, on: str
) -> None:
    """Judge both methods of a block whose ``forward`` is right.

    Args:
        block: with its parameters loaded.
        seed: of the tokens, which are not the same for the two.
        parts: the block, taken apart.
        right: the same by PyTorch's own functions.
        on: how it was built.
    """
    project, finish = methods_of(block, "project", "finish")
    generator, d = seeded(seed), len(parts.state["attention.w_q"])
    x = normal(generator, 2, 5, d) + 0.3
    where = f"project of {on}, x {tuple(x.shape)}"
    case = Case(where, (x,), _project(x, right), (parts,), tolerance=DEEP)
    with unwritten_named():
        came = several(project(x))
    got = expect_several(came, NAMES, where)
    judge_parts(projecting, got, case, NAMES.values())
    x = normal(generator, 2, 5, d) - 0.3
    z = normal(generator, 2, parts.heads, 5, d // parts.heads)
    where = f"finish of {on}, x {tuple(x.shape)}, z {tuple(z.shape)}"
    with unwritten_named():
        got = finish(x, z)
    what, expected = "what finish returns", _finish(x, z, right)
    case = Case(where, (x, z), expected, (parts,), tolerance=DEEP, what=what)
    finishing.compare(got, case)
