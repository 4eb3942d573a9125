"""The loss of skip-gram with negative sampling."""

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F

from autograder.chapters.embeddings.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function, squeezed
from autograder.expect import refuse_if, show
from autograder.interface import StudentFunction


def by_cross_entropy(centers, contexts, negatives) -> torch.Tensor:
    """Ask a yes-or-no question of each pair: a true neighbour?"""
    true = torch.einsum("bd,bd->b", centers, contexts)
    false = torch.einsum("bd,bkd->bk", centers, negatives)
    ask = F.binary_cross_entropy_with_logits
    total = ask(true, torch.ones_like(true), reduction="sum")
    total = total + ask(false, torch.zeros_like(false), reduction="sum")
    return total / len(centers)


losses = Function("skip-gram-loss", "skip_gram_loss", by_cross_entropy)


# --- what goes wrong ------------------------------------------------------------------


def _scores(centers: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Score each center with what is its own, (B, d) or (B, K, d)."""
    own = centers if others.dim() == 2 else centers[:, None]
    return (own * others).sum(-1)


def _added(terms: torch.Tensor) -> torch.Tensor:
    """Add up what belongs to a pair."""
    return terms.reshape(len(terms), -1).sum(1)


def _mean(terms: torch.Tensor, draws: int) -> torch.Tensor:
    return terms.mean()


def loss_by(
    centers: torch.Tensor,
    contexts: torch.Tensor,
    negatives: torch.Tensor,
    *,
    made: Callable = lambda vectors: vectors,
    true: Callable = _scores,
    false: Callable = lambda centers, contexts, negatives: _scores(centers, negatives),
    turned: tuple[Callable, Callable] = (torch.clone, torch.neg),
    log: Callable = F.logsigmoid,
    signs: tuple[float, float] = (-1, -1),
    over_true: Callable = _added,
    over_draws: Callable = _added,
    batch: tuple[Callable, Callable] = (_mean, _mean),
) -> torch.Tensor:
    """Compute the loss by rules that can be varied.

    Args:
        centers: (B, d).
        contexts: (B, d).
        negatives: (B, K, d).
        made: of each kind of vectors.
        true: the scores of the true pairs, (B, ...), of centers and contexts.
        false: those of the false ones, (B, ...), of all three.
        turned: the two kinds of scores.
        log: of both, the logarithms of the sigmoids.
        signs: before the two terms.
        over_true: one number for each pair, of the first terms.
        over_draws: the same, of the second ones.
        batch: what is made of each over the batch, with K.
    """
    draws = negatives.shape[1]
    c, x, n = made(centers), made(contexts), made(negatives)
    kinds = (true(c, x), over_true), (false(c, x, n), over_draws)
    terms = [
        sign * total(over(log(turn(scores))), draws)
        for (scores, over), turn, sign, total in zip(
            kinds, turned, signs, batch, strict=True
        )
        if sign
    ]
    return sum(terms[1:], terms[0])


UNSTABLE = (
    "not stable for large scores",
    "The sigmoid of -200 is 0 in floating point, and the logarithm of 0 is -∞. "
    "F.logsigmoid takes both steps at once and stays finite.",
)
CUT_OFF = (
    "the loss is cut off",
    "A small number added before the logarithm, or a limit, keeps it finite, but the "
    "worst mistakes then cost, and teach, too little. F.logsigmoid needs neither.",
)
EVERY = (
    "every center with every context",
    "centers @ contexts.T has the shape (B, B): it also scores the contexts of other "
    "pairs. Pair b has one score: (centers * contexts).sum(-1).",
)
OTHERS = (
    "the negatives of other pairs, too",
    "Each center has K negatives of its own: keep the axes of the batch together.",
)
TERMS = (
    "mean over the K + 1 terms",
    "The terms of one pair, a true one and K false ones, are added; the mean is "
    "taken over the batch only.",
)
SUM = (
    "sum over the batch",
    "Divide by the size of the batch: the loss should not grow with it.",
)
ONE = (
    "one loss for each pair",
    "One number is wanted, the mean over the batch: a tensor of shape ().",
)
ONLY_ONE = (
    "only one of the negatives",
    "All K negatives count: sum over their axis.",
)
NATURAL = "The formula has the natural logarithm, which F.logsigmoid takes."
PLAIN = "The scores are plain dot products here."


def _every_negative(centers, contexts, negatives) -> torch.Tensor:
    return centers @ negatives.flatten(0, 1).T


def _total(terms: torch.Tensor, draws: int) -> torch.Tensor:
    return terms.sum()


def _over_all(terms: torch.Tensor, draws: int) -> torch.Tensor:
    return terms.mean() / (1 + draws)


def _as_it_is(terms: torch.Tensor, draws: int) -> torch.Tensor:
    return terms


losses.slips(
    loss_by,
    (
        "cosines in place of dot products",
        "A cosine is at most 1, so ln σ never comes near 0. The lengths count, too.",
        {"made": lambda vectors: F.normalize(vectors, dim=-1)},
    ),
    ("divided by √d", PLAIN, {"made": lambda x: x / x.shape[-1] ** 0.25}),
    (
        "divided by d",
        f"{PLAIN} A mean of the products is d times too small: add them up.",
        {"made": lambda x: x / x.shape[-1] ** 0.5},
    ),
    (
        "the products are not added up to a score",
        "A score is one number for a pair: add the d products, then take the sigmoid.",
        {"true": torch.mul, "false": lambda c, x, n: c[:, None] * n},
    ),
    (*EVERY, {"true": lambda c, x: c @ x.T}),
    (*EVERY, {"true": lambda c, x: c @ x.T, "over_true": lambda terms: terms.mean(1)}),
    (
        "negatives compared with the contexts",
        "The negatives are false neighbours of the center: c·n.",
        {"false": lambda c, x, n: _scores(x, n)},
    ),
    (*OTHERS, {"false": _every_negative}),
    (*OTHERS, {"false": lambda c, x, n: _every_negative(c, x, n) / len(c)}),
    (
        "the scores are added before the sigmoid",
        "Each negative is a question of its own: first ln σ of each score, then the "
        "sum over K.",
        {"false": lambda c, x, n: _scores(c, n).sum(-1)},
    ),
    (
        "the mean of the negatives is scored",
        "Each negative is a question of its own: first ln σ of each score, then the "
        "sum over K.",
        {"false": lambda c, x, n: _scores(c, n).mean(-1)},
    ),
    (
        "the sign of the negatives is not turned",
        "A false neighbour should NOT fit: ln σ(-c·n). With +c·n the negatives are "
        "treated as true neighbours.",
        {"turned": (torch.clone, torch.clone)},
    ),
    (
        "one minus the score in place of minus the score",
        "The probability that it is no neighbour is 1 - σ(x), and that is σ(-x), not "
        "σ(1 - x): only the sign of the score is turned.",
        {"turned": (torch.clone, lambda scores: 1 - scores)},
    ),
    (
        "the wrong sign is turned",
        "The true neighbour should fit, ln σ(c·o), and the false ones should not, "
        "ln σ(-c·n): the minus belongs to the false ones.",
        {"turned": (torch.neg, torch.clone)},
    ),
    (
        "the sign of the true neighbour is turned",
        "The true neighbour should fit, ln σ(c·o): only the false ones get a minus.",
        {"turned": (torch.neg, torch.neg)},
    ),
    (
        "the minus sign is missing",
        "A loss is to be made small. Logarithms of probabilities are negative, so "
        "there is a minus before both terms.",
        {"signs": (1, 1)},
    ),
    (
        "a minus too few before the negatives",
        "Both terms are logarithms of probabilities and get a minus.",
        {"signs": (-1, 1)},
    ),
    (
        "a minus too few before the true neighbour",
        "Both terms are logarithms of probabilities and get a minus.",
        {"signs": (1, -1)},
    ),
    (
        "no negatives",
        "Without false neighbours, longer and longer equal vectors are best.",
        {"signs": (-1, 0)},
    ),
    (
        "only negatives",
        "The term of the true neighbour is missing.",
        {"signs": (0, -1)},
    ),
    (
        "no logarithm",
        "These are probabilities; the formula takes their logarithm.",
        {"log": torch.sigmoid},
    ),
    (
        "no sigmoid",
        "Without ln σ the loss has no lower end, and the vectors grow for ever.",
        {"log": torch.clone},
    ),
    ("logarithm to base 2", NATURAL, {"log": lambda x: F.logsigmoid(x) / math.log(2)}),
    (
        "logarithm to base 10",
        NATURAL,
        {"log": lambda x: F.logsigmoid(x) / math.log(10)},
    ),
    (*UNSTABLE, {"log": lambda x: x.sigmoid().log()}),
    (*CUT_OFF, {"log": lambda x: (x.sigmoid() + 1e-9).log()}),
    (*CUT_OFF, {"log": lambda x: x.sigmoid().clamp(min=1e-7).log()}),
    (
        "mean over the negatives",
        "The formula sums over the K negatives; the mean is taken over the batch only. "
        ".mean() of a (B, K) tensor divides by K as well.",
        {"over_draws": lambda terms: terms.mean(-1)},
    ),
    (*ONLY_ONE, {"over_draws": lambda terms: terms[:, 0]}),
    (*ONLY_ONE, {"over_draws": lambda terms: terms[:, -1]}),
    (*ONLY_ONE, {"over_draws": lambda terms: terms.amin(-1)}),
    (
        "the sum is taken before the logarithm",
        "The logarithm of a sum is not the sum of logarithms: first ln σ of each "
        "score, then the sum over K.",
        {"over_draws": lambda terms: terms.logsumexp(-1)},
    ),
    (*TERMS, {"batch": (_over_all, _over_all)}),
    (
        "the true neighbour counts once for each negative",
        "(B, 1) and (B, K) were added before the sum over K, so the first term is "
        "there K times. Sum over the negatives first, then add the two terms.",
        {"batch": (lambda terms, draws: terms.mean() * draws, _mean)},
    ),
    (*SUM, {"batch": (_total, _total)}),
    (*SUM, {"batch": (_mean, _total)}),
    (*SUM, {"batch": (_total, _mean)}),
    (*ONE, {"batch": (_as_it_is, _as_it_is)}),
    (*ONE, {"batch": (_mean, _as_it_is)}),
)


@losses.mistake(
    "softmax in place of sigmoids",
    "That asks which of K + 1 is the neighbour. The formula asks K + 1 separate "
    "yes-or-no questions.",
)
def _(centers, contexts, negatives):
    scored = _scores(centers, contexts)[:, None], _scores(centers, negatives)
    return -torch.cat(scored, -1).log_softmax(-1)[:, 0].mean()


for false in (
    lambda c, x, n: _scores(c, n).squeeze(),
    lambda c, x, n: c @ n.squeeze().T,
):
    losses.mistake(
        *squeezed("negatives", "with a single negative for each pair"),
        when=lambda centers, contexts, negatives: (
            negatives.shape[1] == 1 < len(centers)
        ),
    )(partial(loss_by, false=false, over_draws=lambda terms: terms.sum(-1)))


# --- the check ------------------------------------------------------------------------


@chapter.check(section="embeddings-skip-gram")
def skip_gram_loss(student: StudentFunction, seed: int = 0) -> None:
    """PyTorch's binary cross-entropy, by hand, large scores, the gradients."""
    generator = seeded(seed)
    batch, draws, width = draw_sizes(generator, 3)
    three = torch.tensor(3.0).log()
    hand = (
        torch.tensor([[1.0, 0.0]]),
        torch.tensor([[three, 2.0]]),
        torch.tensor([[[three, -1.0], [0.0, 5.0]]]),
    )
    drawn = [
        (
            normal(generator, batch, width),
            normal(generator, batch, width),
            normal(generator, batch, count, width),
        )
        for count in (1, draws)
    ]
    for inputs in (hand, *drawn):
        centers, contexts, negatives = (tuple(x.shape) for x in inputs)
        on = f"centers {centers}, contexts {contexts}, negatives {negatives}"
        why = (
            "Each score goes through ln σ with its sign; then the sum over the K "
            "negatives, and the mean over the batch."
        )
        case = Case(on, inputs, what="the loss", why=why)
        losses.judge(student, case)
    _expect_stable(student)
    losses.judge_gradient(student, case, torch.ones(()), wrt=(0, 1, 2))


def _expect_stable(student: StudentFunction) -> None:
    one = torch.ones(1, 1)
    for true, false in ((-200.0, 0.0), (0.0, 200.0)):
        case = Case(
            f"centers [[1]], contexts [[{true:g}]], negatives [[[{false:g}]]]",
            (one, true * one, false * one[None]),
            tolerance=1e-4,
            unless_finite=UNSTABLE,
            what="the loss",
        )
        got, right = student(*case.inputs), losses.right(case)
        if isinstance(got, torch.Tensor) and bool(got.isfinite().all()):
            less = bool((got < 0.9 * right).all())
            say = {"got": show(got), "expected": show(right)}
            refuse_if(less, *CUT_OFF, on=case.on, **say)
        losses.compare(got, case)
