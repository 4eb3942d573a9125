"""What a model would say if it ended after each layer, and a control beside it."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F

from autograder.chapters.language_model.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function, expect_several, judge_parts
from autograder.forms import several
from autograder.interface import StudentFunction

EPSILON = 1e-5


def read(
    stream: torch.Tensor, gamma: torch.Tensor, table: torch.Tensor
) -> torch.Tensor:
    """Return the logits of every layer (layers + 1, T, V), by PyTorch's functions."""
    x, scale = stream.double(), gamma.double()
    return F.linear(F.rms_norm(x, scale.shape, scale, EPSILON), table.double())


def seen(stream, gamma, table, targets) -> tuple[torch.Tensor, torch.Tensor]:
    """Return probability and rank of each target, one position after the other."""
    logits = read(stream, gamma, table)
    chances = torch.empty(logits.shape[:2], dtype=torch.float64)
    ranks = torch.empty(logits.shape[:2], dtype=torch.int64)
    for place, token in enumerate(targets.tolist()):
        row = logits[:, place]  # (layers + 1, V)
        chances[:, place] = torch.exp(
            -F.cross_entropy(row, torch.full((len(row),), token), reduction="none")
        )
        ranks[:, place] = 1 + (row > row[:, token : token + 1]).sum(dim=-1)
    return chances.float(), ranks


lens = Function("logit-lens", "logit_lens", seen)

# --- what goes wrong in the lens ------------------------------------------------------


def _look(
    stream,
    gamma,
    table,
    targets,
    *,
    normed: Callable = lambda x, gamma: F.rms_norm(x, gamma.shape, gamma, EPSILON),
    chances: Callable = lambda logits: logits.softmax(dim=-1),
    rank: Callable = lambda logits, own: 1 + (logits > own).sum(dim=-1),
):
    """Look in a way that can be varied."""
    logits = normed(stream, gamma) @ table.T
    index = targets.expand(len(stream), -1).unsqueeze(-1)  # (layers + 1, T, 1)
    own = logits.gather(-1, index)
    return chances(logits).gather(-1, index).squeeze(-1), rank(logits, own)


for name, why, normed in (
    (
        "no final norm",
        "The output matrix has only ever read the stream after the final norm. Without "
        "it the logits are too small or too large by a factor that grows with depth.",
        lambda x, gamma: x,
    ),
    (
        "gamma left out",
        "The final norm ends with its gain: multiply by gamma.",
        lambda x, gamma: F.rms_norm(x, gamma.shape, None, EPSILON),
    ),
    (
        "layer norm in place of RMS norm",
        "RMS norm takes no mean away: it divides by the root of the mean square.",
        lambda x, gamma: F.layer_norm(x, gamma.shape, gamma, None, EPSILON),
    ),
    (
        "normed over the positions",
        "Every position is normed by its own features: dim=-1.",
        lambda x, gamma: (
            gamma * x / (x.square().mean(-2, keepdim=True) + EPSILON).sqrt()
        ),
    ),
    (
        "the sum in place of the mean square",
        "The root of the mean square, not of the sum: otherwise the stream comes out "
        "too small by the root of d_model.",
        lambda x, gamma: (
            gamma * x / (x.square().sum(-1, keepdim=True) + EPSILON).sqrt()
        ),
    ),
    (
        "the norm before the last layer only",
        "Every layer's stream is normed, as the last one's is: the lens asks what "
        "would come out if the model ended here.",
        lambda x, gamma: torch.cat(
            (x[:-1], F.rms_norm(x[-1:], gamma.shape, gamma, EPSILON))
        ),
    ),
):
    lens.mistake(name, why)(partial(_look, normed=normed))


for name, why, chances in (
    (
        "logits in place of probabilities",
        "A logit says little by itself: softmax over the vocabulary.",
        lambda logits: logits,
    ),
    (
        "log-probabilities",
        "Return probabilities, from 0 to 1: softmax without the logarithm.",
        lambda logits: logits.log_softmax(dim=-1),
    ),
    (
        "softmax over the wrong axis",
        "The tokens of the vocabulary share a probability of 1: dim=-1.",
        lambda logits: logits.softmax(dim=1),
    ),
    (
        "softmax over the wrong axis",
        "The tokens of the vocabulary share a probability of 1: dim=-1.",
        lambda logits: logits.softmax(dim=0),
    ),
    (
        "the most probable token in place of the right one",
        "Return the probability of targets[t], be it large or small.",
        lambda logits: logits.softmax(-1).amax(-1, keepdim=True).expand_as(logits),
    ),
):
    lens.mistake(name, why)(partial(_look, chances=chances))


def _has_ties(stream, gamma, table, targets):
    return len(table.unique(dim=0)) < len(table)


lens.mistake(
    "equal logits counted as larger",
    "The rank is 1 plus the number of tokens with a larger logit: > and not >=. Tokens "
    "with equal logits share a rank.",
    when=_has_ties,
)(partial(_look, rank=lambda logits, own: (logits >= own).sum(-1)))


for first in (0, 1):

    @lens.mistake(
        "the token of a rank in place of the rank of a token",
        "argsort says which token has a rank. Which rank has a token? Count the larger "
        "logits, or take the argsort of the argsort.",
    )
    def _(stream, gamma, table, targets, first=first):
        ranked = read(stream, gamma, table).argsort(dim=-1, descending=True)
        index = targets.expand(len(stream), -1).unsqueeze(-1)
        tokens = ranked.gather(-1, index).squeeze(-1) + first
        return seen(stream, gamma, table, targets)[0], tokens


for name, why, rank in (
    (
        "the token itself is counted, too",
        "One more than the tokens that are ahead: with >= the token counts itself, and "
        "1 more is then one too many.",
        lambda logits, own: 1 + (logits >= own).sum(dim=-1),
    ),
    (
        "ranks counted from 0",
        "The most probable token has rank 1: one more than the tokens that are ahead.",
        lambda logits, own: (logits > own).sum(dim=-1),
    ),
    (
        "ranks counted from the end",
        "Rank 1 is the most probable token: count the logits that are larger.",
        lambda logits, own: 1 + (logits < own).sum(dim=-1),
    ),
    (
        "logits compared with a probability",
        "Compare like with like: how many logits are larger than the right token's "
        "logit, or how many probabilities than its probability?",
        lambda logits, own: (
            1 + (logits > (own - logits.logsumexp(-1, keepdim=True)).exp()).sum(dim=-1)
        ),
    ),
    (
        "the most probable token in place of the rank",
        "The rank says at which place targets[t] comes, not which token comes first.",
        lambda logits, own: logits.argmax(dim=-1),
    ),
):
    lens.mistake(name, why)(partial(_look, rank=rank))


@lens.mistake(
    "probabilities and ranks exchanged",
    "Return the probabilities first, then the ranks.",
)
def _(stream, gamma, table, targets):
    return seen(stream, gamma, table, targets)[::-1]


@lens.mistake(
    "the targets are shifted once more",
    "targets[t] is already the token that follows position t.",
)
def _(stream, gamma, table, targets):
    return seen(stream, gamma, table, targets.roll(-1))


# --- the control ----------------------------------------------------------------------


def gained(stream, gamma, table, targets, order) -> torch.Tensor:
    """Compare the losses of the right tokens with those of the others."""
    logits = read(stream, gamma, table).transpose(1, 2)  # (layers + 1, V, T)
    right, other = (
        F.cross_entropy(logits, ids.expand(len(stream), -1), reduction="none").mean(-1)
        for ids in (targets, targets[order])
    )
    return (other - right).float()


gain = Function("logit-lens", "lens_gain", gained)

# --- what goes wrong in the control ---------------------------------------------------


def _compared(
    stream,
    gamma,
    table,
    targets,
    order,
    *,
    values: Callable = lambda logits: logits.log_softmax(dim=-1),
    join: Callable = lambda gaps: gaps.mean(dim=-1),
    control: float = 1.0,
):
    """Compare in a way that can be varied."""
    found = values(read(stream, gamma, table))
    right, other = (
        found.gather(-1, ids.expand(len(stream), -1).unsqueeze(-1)).squeeze(-1)
        for ids in (targets, targets[order])
    )
    return join(right - control * other).float()


for name, why, change in (
    (
        "no control",
        "Without it, a rise may only mean that the layer likes frequent tokens. "
        "Subtract the same for targets[order].",
        {"control": 0.0},
    ),
    (
        "probabilities in place of their logarithms",
        "Take the logarithm first, then the difference: a gain in nats.",
        {"values": lambda logits: logits.softmax(dim=-1)},
    ),
    (
        "the sign is turned",
        "A gain is positive where the right token is more probable: right - control.",
        {"join": lambda gaps: -gaps.mean(dim=-1)},
    ),
    (
        "the sum in place of the mean",
        "The mean over the positions: the gain of one token.",
        {"join": lambda gaps: gaps.sum(dim=-1)},
    ),
    (
        "averaged over the layers",
        "Each layer gets a gain of its own: the mean is over the positions, dim=-1.",
        {"join": lambda gaps: gaps.mean(dim=0)},
    ),
    (
        "added in place of subtracted",
        "The control is subtracted: what it reaches, the layer did not learn here.",
        {"control": -1.0},
    ),
):

    @gain.mistake(name, why)
    def _(stream, gamma, table, targets, order, change=change):
        return _compared(stream, gamma, table, targets, order, **change)


for name, why, join in (
    (
        "the logarithm of the mean",
        "Each position has its own logarithm: first the logarithms, then the mean.",
        lambda right, other: right.mean(dim=-1).log() - other.mean(dim=-1).log(),
    ),
    (
        "a quotient without its logarithm",
        "Return a gain in nats: the difference of the logarithms.",
        lambda right, other: (right / other).mean(dim=-1),
    ),
):

    @gain.mistake(name, why)
    def _(stream, gamma, table, targets, order, join=join):
        both = (seen(stream, gamma, table, ids)[0] for ids in (targets, targets[order]))
        return join(*both)


@gain.mistake(
    "the positions are shuffled in place of the tokens",
    "The control asks the same position for another token: targets[order], the stream "
    "as it is. control[order] = targets comes to the same slip: it turns the order "
    "round.",
)
def _(stream, gamma, table, targets, order):
    found = read(stream, gamma, table).log_softmax(dim=-1)
    index = targets.expand(len(stream), -1).unsqueeze(-1)
    moved = found[:, order].gather(-1, index)
    return (found.gather(-1, index) - moved).mean(dim=(1, 2)).float()


@gain.mistake(
    "the right tokens once more",
    "If the stream and the tokens are taken in the same new order, every position is "
    "asked for its own token again. Only the tokens come from elsewhere.",
)
def _(stream, gamma, table, targets, order):
    return torch.zeros(len(stream))


@gain.mistake(
    "the number of a position taken for a token",
    "order holds positions. The token that comes from there is targets[order].",
)
def _(stream, gamma, table, targets, order):
    found = read(stream, gamma, table).log_softmax(dim=-1)
    right, other = (
        found.gather(-1, ids.expand(len(stream), -1).unsqueeze(-1))
        for ids in (targets, order)
    )
    return (right - other).mean(dim=(1, 2)).float()


@gain.mistake(
    "no final norm",
    "The lens is the same as above: the final norm, then the output matrix.",
)
def _(stream, gamma, table, targets, order):
    logits = stream.double() @ table.double().T
    right, other = (
        logits.gather(-1, ids.expand(len(stream), -1).unsqueeze(-1))
        for ids in (targets, targets[order])
    )
    return (right - other).mean(dim=(1, 2)).float()


# --- the checks -----------------------------------------------------------------------


def _by_hand() -> tuple[torch.Tensor, ...]:
    stream = torch.tensor([[[7.0, 1.0], [1.0, 7.0]], [[1.0, 7.0], [7.0, 1.0]]])
    table = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    return stream, torch.ones(2), table, torch.tensor([1, 0])


def _tied() -> tuple[torch.Tensor, ...]:
    """Ask one position twice, for each of two tokens whose rows are zeros."""
    stream, gamma, table, _ = _by_hand()
    table = torch.cat((table, torch.zeros(1, 2)))
    return stream[:, [0, 0]], gamma, table, torch.tensor([2, 3])


def _drawn(seed: int) -> Iterator[tuple[str, tuple]]:
    """Draw streams that grow with depth and are not centred, as those of models."""
    generator = seeded(seed)
    for _ in range(2):
        layers, length, width = draw_sizes(generator, 3)
        size = 8 + layers + length
        stream = (0.4 + normal(generator, layers + 1, length, width)).cumsum(dim=0)
        gamma = 0.5 + torch.rand(width, generator=generator)
        table = normal(generator, size, width)
        targets = torch.randperm(size, generator=generator)[:length]
        on = f"stream {tuple(stream.shape)}, table {tuple(table.shape)}"
        yield on, (stream, gamma, table, targets)


@chapter.check(section="language-model-lens")
def logit_lens(student: StudentFunction, seed: int = 0) -> None:
    """By hand, streams of several depths."""
    names = ("the probabilities", "the ranks")
    hand = ("the example by hand", _by_hand())
    for on, inputs in (hand, *_drawn(seed)):
        got = expect_several(student(*inputs), names, on)
        judge_parts(lens, got, Case(on, inputs), names, several)
    on, inputs = "two tokens with equal logits, rank 3 for both", _tied()
    chances, ranks = expect_several(student(*inputs), names, on)
    in_turn = torch.tensor([3, 4]).expand(2, 2)  # sorted, one comes behind the other
    if torch.is_tensor(ranks) and torch.equal(ranks.sort(dim=-1).values, in_turn):
        ranks = torch.full_like(in_turn, 3)
    judge_parts(lens, (chances, ranks), Case(on, inputs), names, several)


@chapter.check(section="language-model-lens")
def lens_gain(student: StudentFunction, seed: int = 0) -> None:
    """By hand, streams of several depths and other orders."""
    on, order = "the example by hand, order [1, 0]", torch.tensor([1, 0])
    right = torch.tensor([-1.2, 1.2])
    case = Case(on, (*_by_hand(), order), right, what="the gain")
    gain.judge(student, case)
    generator = seeded(seed + 1)
    for on, inputs in _drawn(seed):
        length = len(inputs[-1])
        steps = 1 + torch.randint(length - 1, (), generator=generator)
        order = (torch.arange(length) + steps) % length
        gain.judge(student, Case(on, (*inputs, order), what="the gain"))
