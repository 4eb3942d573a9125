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


PROBABILITY = "The loss is the negative logarithm of the label's probability."
for name, why, loss in (  # of each scored label its log-probability, all scores, and it
    (
        "the mean over all positions",
        "Divide by the number of scored positions. Otherwise the loss is small only "
        "because few tokens were chosen.",
        lambda own, scores, wanted, labels: -own.sum() / labels.numel(),
    ),
    (
        "the sum in place of the mean",
        "Divide by the number scored.",
        lambda own, scores, wanted, labels: -own.sum(),
    ),
    (
        "divided by the number of sentences",
        "Divide by the number of scored positions.",
        lambda own, scores, wanted, labels: -own.sum() / len(labels),
    ),
    (
        "label 0 is not scored",
        "0 is a label like others, the first word. Only −100 means that nothing is "
        "scored.",
        lambda own, scores, wanted, labels: -own[wanted > 0].mean(),
    ),
    (
        "every position with every label",
        "An index [:, wanted] takes the columns of all labels from every row. Each row "
        "has one label: index rows and columns together, torch.arange(n) and wanted.",
        lambda own, scores, wanted, labels: -scores.log_softmax(-1)[:, wanted].mean(),
    ),
    (
        "the sign is missing",
        "A loss is minus the logarithm.",
        lambda own, *_: own.mean(),
    ),
    (
        "softmax taken twice",
        "cross_entropy takes logits and applies the softmax itself.",
        lambda own, scores, wanted, _: F.cross_entropy(scores.softmax(-1), wanted),
    ),
    ("no logarithm", PROBABILITY, lambda own, *_: -own.exp().mean()),
    ("no logarithm", PROBABILITY, lambda own, *_: 1 - own.exp().mean()),
    (
        "the logarithm of the mean",
        "First the logarithm of each probability, then the mean.",
        lambda own, *_: -own.exp().mean().log(),
    ),
    (
        "no softmax",
        "Logits become log-probabilities by log_softmax first.",
        lambda own, scores, wanted, _: -scores.gather(1, wanted.unsqueeze(1)).mean(),
    ),
    (
        "in bits",
        "The natural logarithm is meant.",
        lambda own, *_: -own.mean() / math.log(2),
    ),
):

    def _of_scored(logits, labels, loss=loss):
        scored = labels != UNSCORED
        wanted, scores = labels[scored], logits[scored]
        own = -F.cross_entropy(scores, wanted, reduction="none")
        return loss(own, scores, wanted, labels)

    losses.mistake(name, why, when=_has_scored)(_of_scored)

ALIKE = "All scored positions of the batch count alike, in whatever sentence{}."


@losses.mistake("the mean of the sentences' means", ALIKE.format(""), when=_has_scored)
def _(logits, labels):
    counts = (labels != UNSCORED).sum(1)
    means = _each(logits, labels).sum(1) / counts
    return means[counts > 0].mean()


@losses.mistake(
    "the mean of the sentences' means",
    ALIKE.format("; one without any has no say"),
    when=_has_scored,
)
def _(logits, labels):
    counts = (labels != UNSCORED).sum(1)
    return (_each(logits, labels).sum(1) / counts.clamp(min=1)).mean()


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
