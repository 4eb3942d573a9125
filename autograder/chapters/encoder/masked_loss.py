"""Masked language modelling: the loss."""

import math

import torch
import torch.nn.functional as F

from autograder.chapters.encoder.chapter import chapter
from autograder.chapters.encoder.masking import UNSCORED
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.losses import judge_nothing_scored
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction


def _each(logits, labels):
    """Return the loss of each position, 0 where nothing is scored."""
    return F.cross_entropy(logits.mT, labels, reduction="none", ignore_index=UNSCORED)


def _right(logits, labels):
    return _each(logits, labels).sum() / (labels != UNSCORED).sum().clamp(min=1)


losses = Function("masked-language-model-loss", "masked_language_model_loss", _right)


# --- what goes wrong ------------------------------------------------------------------


def _has_scored(logits, labels):
    return bool((labels != UNSCORED).any())


def loss_by(
    logits,
    labels,
    *,
    counts=lambda labels: labels != UNSCORED,
    first=lambda logits: logits,
    score=lambda scores: scores.log_softmax(-1),
    cost=lambda own: -own,
    average=lambda costs, labels, counts: costs.mean(),
    unit=lambda loss: loss,
):
    """Compute the loss by rules that can be varied.

    Args:
        logits: (B, T, V).
        labels: (B, T).
        counts: which positions are scored, (B, T), made of the labels.
        first: what is made of all logits before.
        score: makes log-probabilities of the logits of what is scored, (n, V).
        cost: of each of these, made of its label's log-probability, (n,).
        average: of the costs; it is given the labels and what counts as well.
        unit: what is made of the average.
    """
    scored = counts(labels)
    own = score(first(logits)[scored]).gather(1, labels[scored].unsqueeze(1)).squeeze(1)
    return unit(average(cost(own), labels, scored))


def _sentences(costs, labels, scored):
    """Return the sum and the number of what is scored in each sentence."""
    each = torch.zeros(labels.shape).masked_scatter(scored, costs)
    return each.sum(1), scored.sum(1)


def _means(costs, labels, scored):
    """Average over the sentences that have a label."""
    sums, numbers = _sentences(costs, labels, scored)
    return (sums / numbers)[numbers > 0].mean()


def _all_means(costs, labels, scored):
    """Average over all sentences; one without a label has a mean of 0."""
    sums, numbers = _sentences(costs, labels, scored)
    return (sums / numbers.clamp(min=1)).mean()


PROBABILITY = "The loss is the negative logarithm of the label's probability."
ALIKE = "All scored positions of the batch count alike, in whatever sentence{}."
losses.slips(
    loss_by,
    (
        "the mean over all positions",
        "Divide by the number of scored positions. Otherwise the loss is small only "
        "because few tokens were chosen.",
        {"average": lambda costs, labels, _: costs.sum() / labels.numel()},
    ),
    (
        "the sum in place of the mean",
        "Divide by the number scored.",
        {"average": lambda costs, *_: costs.sum()},
    ),
    (
        "divided by the number of sentences",
        "Divide by the number of scored positions.",
        {"average": lambda costs, labels, _: costs.sum() / len(labels)},
    ),
    (
        "the mean of the sentences' means",
        ALIKE.format(""),
        {"average": _means},
    ),
    (
        "the mean of the sentences' means",
        ALIKE.format("; one without any has no say"),
        {"average": _all_means},
    ),
    (
        "label 0 is not scored",
        "0 is a label like others, the first word. Only −100 means that nothing is "
        "scored.",
        {"counts": lambda labels: labels > 0},
    ),
    (
        "the sign is missing",
        "A loss is minus the logarithm.",
        {"unit": torch.neg},
    ),
    (
        "softmax taken twice",
        "cross_entropy takes logits and applies the softmax itself.",
        {"score": lambda scores: scores.softmax(-1).log_softmax(-1)},
    ),
    *(
        (
            "softmax over the wrong axis",
            "Each position has its own probabilities of all words: they sum to 1 along "
            "the vocabulary, the last axis.",
            {
                "first": lambda logits, axis=axis: logits.log_softmax(axis),
                "score": lambda scores: scores,
            },
        )
        for axis in (0, 1)
    ),
    *(
        (
            "a small number added in the logarithm",
            "It keeps the logarithm finite, and wrong: no label can cost more than "
            "−ln of that number. Use log_softmax, which never leaves the logarithms.",
            {"score": lambda scores, tiny=tiny: (scores.softmax(-1) + tiny).log()},
        )
        for tiny in (1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5)
    ),
    ("no logarithm", PROBABILITY, {"cost": lambda own: -own.exp()}),
    ("no logarithm", PROBABILITY, {"cost": lambda own: 1 - own.exp()}),
    (
        "the logarithm of the mean",
        "First the logarithm of each probability, then the mean.",
        {"cost": torch.exp, "unit": lambda loss: -loss.log()},
    ),
    (
        "no softmax",
        "Logits become log-probabilities by log_softmax first.",
        {"score": lambda scores: scores},
    ),
    (
        "in bits",
        "The natural logarithm is meant.",
        {"unit": lambda loss: loss / math.log(2)},
    ),
    when=_has_scored,
)


@losses.mistake(
    "every position with every label",
    "An index [:, wanted] takes the columns of all labels from every row. Each row "
    "has one label: index rows and columns together, torch.arange(n) and wanted.",
    when=_has_scored,
)
def _(logits, labels):
    scored = labels != UNSCORED
    return -logits[scored].log_softmax(-1)[:, labels[scored]].mean()


for word, label in (("word 0", 0), ("the last word", -1)):

    def _unlabelled(logits, labels, label=label):
        label %= logits.shape[-1]
        return _each(logits, labels.masked_fill(labels == UNSCORED, label)).mean()

    losses.mistake(
        "positions without a label are scored",
        f"Positions with the label −100 were scored as if it were {word}. Leave them "
        "out of the sum.",
        when=_has_scored,
    )(_unlabelled)

losses.accident(
    "bound",
    "−100 is used as an index",
    "The label −100 was used as an index. Select the scored positions first: scored = "
    "labels != -100.",
)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="encoder-masked-language")
def masked_language_model_loss(student: StudentFunction, seed: int = 0) -> None:
    """Check the value by hand, PyTorch's, nothing scored, large logits, gradients."""
    generator = seeded(seed)
    hand = torch.tensor([[[0.0, 0.0], [math.log(3), 0.0], [5.0, -5.0]]])
    hand = hand.expand(3, -1, -1)
    labels = torch.tensor([[1, 0, -100], [-100] * 3, [-100] * 3])
    on = "the example by hand, and two sentences without labels"
    losses.judge(student, Case(on, (hand, labels), torch.tensor(0.490415)))
    b, t, v = draw_sizes(generator, 3)
    b, t, v = b + 1, t + 4, v + 5
    for share in (0.2, 0.6, 1.0):
        logits = 2 * normal(generator, b, t, v)
        labels = torch.randint(0, v, (b, t), generator=generator)
        hidden = torch.rand(b, t, generator=generator) > share
        hidden[0, 0], hidden[1, 0] = False, share < 1
        labels[hidden] = UNSCORED
        on = f"logits {(b, t, v)}, {int((labels >= 0).sum())} of {b * t} labels scored"
        losses.judge(student, Case(on, (logits, labels)))
    large = 1000 * torch.sign(normal(generator, b, t, v))
    overflow = (
        "not stable for large logits",
        "exp(1000) is infinite, and the logarithm of a probability that was rounded to "
        "0 is −∞. Use log_softmax, which subtracts the maximum and never leaves the "
        "logarithms.",
    )
    on = "logits of ±1000"
    losses.judge(student, Case(on, (large, labels), unless_finite=overflow))
    nothing = torch.full((b, t), UNSCORED)
    on = f"logits {(b, t, v)}, all labels −100"
    judge_nothing_scored(student, (logits, nothing), on)
    case = Case("logits, all labels scored", (logits, labels))
    losses.judge_gradient(student, case, torch.tensor(1.0))
