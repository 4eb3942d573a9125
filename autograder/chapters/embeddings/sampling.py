"""The loss of skip-gram with negative sampling."""

import itertools
import math
from collections.abc import Callable

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


# --- what goes wrong: with the scores that are right ----------------------------------


def with_scores(name: str, why: str) -> Callable:
    """Add a mistake in what is made of the scores, true (B,) and false (B, K)."""

    def add(loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        losses.mistake(name, why)(
            lambda centers, contexts, negatives: loss(
                torch.einsum("bd,bd->b", centers, contexts),
                torch.einsum("bd,bkd->bk", centers, negatives),
            )
        )

    return add


MEAN = "mean over the negatives"
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
log = F.logsigmoid
for name, why, loss in (
    (
        "no negatives",
        "Without false neighbours, longer and longer equal vectors are best.",
        lambda t, f: -log(t).mean(),
    ),
    (
        "only negatives",
        "The term of the true neighbour is missing.",
        lambda t, f: -log(-f).sum(-1).mean(),
    ),
    (
        "only one of the negatives",
        "All K negatives count: sum over their axis.",
        lambda t, f: (-log(t) - log(-f[:, 0])).mean(),
    ),
    (
        "softmax in place of sigmoids",
        "That asks which of K + 1 is the neighbour. The formula asks K + 1 separate "
        "yes-or-no questions.",
        lambda t, f: -torch.cat([t[:, None], f], -1).log_softmax(-1)[:, 0].mean(),
    ),
    (
        "mean over the K + 1 terms",
        "The terms of one pair, a true one and K false ones, are added; the mean is "
        "taken over the batch only.",
        lambda t, f: -log(torch.cat([t[:, None], -f], dim=-1)).mean(),
    ),
    (
        "the scores are added before the sigmoid",
        "Each negative is a question of its own: first ln σ of each score, then the "
        "sum over K.",
        lambda t, f: (-log(t) - log(-f.sum(-1))).mean(),
    ),
    (
        *UNSTABLE,
        lambda t, f: (-t.sigmoid().log() - (-f).sigmoid().log().sum(-1)).mean(),
    ),
    (
        *CUT_OFF,
        lambda t, f: (
            -(t.sigmoid() + 1e-9).log() - ((-f).sigmoid() + 1e-9).log().sum(-1)
        ).mean(),
    ),
    (
        *CUT_OFF,
        lambda t, f: (
            -t.sigmoid().clamp(min=1e-7).log()
            - (-f).sigmoid().clamp(min=1e-7).log().sum(-1)
        ).mean(),
    ),
):
    with_scores(name, why)(loss)

# --- what goes wrong: in the terms, in their sum, or in both -------------------------

IN_TERMS = (  # the two terms, (B,) and (B, K)
    (
        "the sign of the negatives is not turned",
        "A false neighbour should NOT fit: ln σ(-c·n). With +c·n the negatives are "
        "treated as true neighbours.",
        lambda t, f: (-log(t), -log(f)),
    ),
    (
        "one minus the score in place of minus the score",
        "The probability that it is no neighbour is 1 - σ(x), and that is σ(-x), not "
        "σ(1 - x): only the sign of the score is turned.",
        lambda t, f: (-log(t), -log(1 - f)),
    ),
    (
        "the minus sign is missing",
        "A loss is to be made small. Logarithms of probabilities are negative, so "
        "there is a minus before both terms.",
        lambda t, f: (log(t), log(-f)),
    ),
    (
        "a minus too few before the negatives",
        "Both terms are logarithms of probabilities and get a minus.",
        lambda t, f: (-log(t), log(-f)),
    ),
    (
        "no logarithm",
        "These are probabilities; the formula takes their logarithm.",
        lambda t, f: (-t.sigmoid(), -(-f).sigmoid()),
    ),
    (
        "no sigmoid",
        "Without ln σ the loss has no lower end, and the vectors grow for ever.",
        lambda t, f: (-t, f),
    ),
)
IN_SUMS = (
    (
        MEAN,
        "The formula sums over the K negatives; the mean is taken over the batch only. "
        ".mean() of a (B, K) tensor divides by K as well.",
        lambda true, false: true.mean() + false.mean(),
    ),
    (
        "sum over the batch",
        "Divide by the size of the batch: the loss should not grow with it.",
        lambda true, false: true.sum() + false.sum(),
    ),
    (
        "one loss for each pair",
        "One number is wanted, the mean over the batch: a tensor of shape ().",
        lambda true, false: true + false.sum(-1),
    ),
)
for name, why, terms in IN_TERMS:
    with_scores(name, why)(
        lambda t, f, terms=terms: sum(each.sum() for each in terms(t, f)) / len(t)
    )
for name, why, added in IN_SUMS:
    with_scores(name, why)(lambda t, f, added=added: added(-log(t), -log(-f)))
for (first, reason, terms), (second, other, added) in itertools.product(
    IN_TERMS, IN_SUMS
):
    with_scores(f"{first}, and {second}", f"{reason}\n{other}")(
        lambda t, f, terms=terms, added=added: added(*terms(t, f))
    )


# --- what goes wrong: in the scores ---------------------------------------------------


def with_questions(name: str, why: str) -> Callable:
    """Add a mistake in the scores; all that belong to a pair are summed.

    The function gives those of the true pairs (B, ...) and of the false ones.
    """

    def add(score: Callable[..., tuple[torch.Tensor, torch.Tensor]]) -> None:
        def answer(centers, contexts, negatives) -> torch.Tensor:
            true, false = score(centers, contexts, negatives)
            return -(log(true).sum() + log(-false).sum()) / len(centers)

        losses.mistake(name, why)(answer)

    return add


def scores(centers, contexts, negatives) -> tuple[torch.Tensor, torch.Tensor]:
    """Score the true pairs (B,) and the false ones (B, K)."""
    return (centers * contexts).sum(-1), (centers[:, None] * negatives).sum(-1)


EVERY = (
    "every center with every context",
    "centers @ contexts.T has the shape (B, B): it also scores the contexts of other "
    "pairs. Pair b has one score: (centers * contexts).sum(-1).",
)
for name, why, score in (
    (
        "the products are not added up to a score",
        "A score is one number for a pair: add the d products, then take the sigmoid.",
        lambda c, x, n: (c * x, c[:, None] * n),
    ),
    (*EVERY, lambda c, x, n: (c @ x.T, scores(c, x, n)[1])),
    (
        "negatives compared with the contexts",
        "The negatives are false neighbours of the center: c·n.",
        lambda c, x, n: (scores(c, x, n)[0], scores(x, x, n)[1]),
    ),
    (
        "the negatives of other pairs, too",
        "Each center has K negatives of its own: keep the axes of the batch together.",
        lambda c, x, n: (scores(c, x, n)[0], c @ n.flatten(0, 1).T),
    ),
    (
        "divided by √d",
        "The scores are plain dot products here.",
        lambda c, x, n: scores(c / math.sqrt(c.shape[-1]), x, n),
    ),
    (
        "cosines in place of dot products",
        "A cosine is at most 1, so ln σ never comes near 0. The lengths count, too.",
        lambda c, x, n: scores(*(F.normalize(each, dim=-1) for each in (c, x, n))),
    ),
):
    with_questions(name, why)(score)


def _single(centers, contexts, negatives) -> bool:
    return negatives.shape[1] == 1 < len(centers)


for false in (
    lambda c, n: (c[:, None] * n).sum(-1).squeeze(),
    lambda c, n: c @ n.squeeze().T,
):

    @losses.mistake(
        *squeezed("negatives", "with a single negative for each pair"), when=_single
    )
    def _(centers, contexts, negatives, false=false):
        true = (centers * contexts).sum(-1)
        return (-log(true) - log(-false(centers, negatives)).sum(-1)).mean()


@losses.mistake(*EVERY)
def _(centers, contexts, negatives):
    _, false = scores(centers, contexts, negatives)
    return -log(centers @ contexts.T).mean() - log(-false).sum(-1).mean()


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
