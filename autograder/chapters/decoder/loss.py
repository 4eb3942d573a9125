"""The loss of a batch of sentences, with label smoothing."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F

from autograder.chapters.decoder.chapter import chapter
from autograder.chapters.decoder.inputs import draw_ids, draw_sizes
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.losses import judge_nothing_scored
from autograder.exercise.spec import Case, Function
from autograder.expect import refuse_if, show
from autograder.interface import Data, StudentFunction


def _right(logits, labels, pad=0, smoothing=0.0):
    total = F.cross_entropy(
        logits.mT,
        labels,
        ignore_index=pad,
        label_smoothing=smoothing,
        reduction="sum",
    )
    return total / (labels != pad).sum().clamp(min=1)


losses = Function("sequence-loss", "sequence_loss", _right)

# --- what goes wrong ------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """What the loss is asked for, taken apart: (B, T, V), (B, T), and two numbers."""

    logits: torch.Tensor
    labels: torch.Tensor
    pad: int = 0
    share: float = 0.0

    @property
    def real(self) -> torch.Tensor:
        """Whether a position is scored: (B, T)."""
        return self.labels != self.pad

    def of(self, logits: torch.Tensor) -> torch.Tensor:
        """Compute the loss of each position, real or not: (B, T)."""
        return F.cross_entropy(
            logits.mT, self.labels, reduction="none", label_smoothing=self.share
        )

    @property
    def each(self) -> torch.Tensor:
        """The right losses."""
        return self.of(self.logits)

    @property
    def every(self) -> torch.Tensor:
        """−ln p of each class at each real position: (N, V)."""
        return -self.logits[self.real].log_softmax(-1)

    @property
    def own(self) -> torch.Tensor:
        """−ln p of each real label: (N,)."""
        return F.nll_loss(-self.every, self.labels[self.real], reduction="none")

    def mixed(self, even: torch.Tensor) -> torch.Tensor:
        """Mix the labels' share with something else, and average."""
        return ((1 - self.share) * self.own + self.share * even).mean()


def made(
    name: str,
    why: str,
    *answers: Callable[[Batch], torch.Tensor],
    when: Callable[[Batch], bool] = lambda batch: True,
) -> None:
    """State a mistake by what it makes of a batch in which some label is real."""

    def shows(*given: Data) -> bool:
        batch = Batch(*given)
        return bool(batch.real.any()) and when(batch)

    for answer in answers:
        losses.mistake(name, why, when=shows)(
            lambda *given, answer=answer: answer(Batch(*given))
        )


made(
    "the mean over all positions",
    "Divide by the number of real labels. With the padding in the denominator the loss "
    "depends on how wide the batch happens to be.",
    lambda b: (b.each * b.real).mean(),
)
made(
    "padding is scored",
    "Padding is nothing to be predicted: leave its positions out, labels != pad_id.",
    lambda b: b.each.mean(),
    lambda b: b.each.sum() / b.real.sum(),
)
made(
    "logits multiplied by the mask",
    "A logit of 0 does not silence a position: all classes become equally likely, and "
    "the position adds ln V for a class that nobody asked for. Leave it out.",
    lambda b: b.of(b.logits * b.real.unsqueeze(-1)).mean(),
    lambda b: b.of(b.logits * b.real.unsqueeze(-1)).sum() / b.real.sum(),
)
made(
    "the sum in place of the mean",
    "A mean, so that batches of different sizes compare: divide by the number.",
    lambda b: b.each[b.real].sum(),
)
made(
    "divided by the number of sentences",
    "Divide by the number of real labels.",
    lambda b: b.each[b.real].sum() / len(b.real),
)
made(
    "the mean of the sentences' means",
    "All real labels of the batch count alike, in whatever sentence. A sentence "
    "without any has no say.",
    lambda b: ((b.each * b.real).sum(1) / b.real.sum(1)).mean(),
    lambda b: ((b.each * b.real).sum(1) / b.real.sum(1).clamp(1)).mean(),
    lambda b: ((b.each * b.real).sum(1) / b.real.sum(1)).nanmean(),
)
made(
    "pad_id is ignored",
    "Padding is where a label equals pad_id, which need not be 0.",
    lambda b: b.each[b.labels != 0].mean(),
    when=lambda b: b.pad != 0,
)
made(
    "softmax taken twice",
    "Logits go in. The softmax was applied to what had been through one already.",
    lambda b: b.of(b.logits.softmax(-1))[b.real].mean(),
)
made(
    "positions taken for classes",
    "cross_entropy expects the classes in the second axis, (B, V, T). Given (B, T, V) "
    "with one-hot labels it takes the positions for the classes, silently.",
    lambda b: F.cross_entropy(
        b.logits,
        F.one_hot(b.labels, b.logits.shape[-1]).float(),
        label_smoothing=b.share,
    ),
)
made(
    "the sign is missing",
    "A loss is minus the logarithm.",
    lambda b: -b.each[b.real].mean(),
)
made(
    "in bits",
    "The natural logarithm is meant.",
    lambda b: b.each[b.real].mean() / math.log(2),
)
EACH = "a loss for each position", "One number for the whole batch, shape ()."
made(*EACH, lambda b: b.each * b.real, lambda b: b.each[b.real])
made(
    "no logarithm",
    "The loss is the negative logarithm of the label's probability.",
    lambda b: -(-b.own).exp().mean(),
    lambda b: 1 - (-b.own).exp().mean(),
)
made(
    "the logarithm of the mean",
    "First the logarithm of each probability, then the mean.",
    lambda b: -(-b.own).exp().mean().log(),
)
made(
    "no softmax",
    "Logits become logarithms of probabilities by log_softmax first.",
    lambda b: F.nll_loss(b.logits[b.real], b.labels[b.real]),
)


def smoothed(name: str, why: str, *answers: Callable[[Batch], torch.Tensor]) -> None:
    """State a mistake that shows where there is smoothing."""
    made(name, why, *answers, when=lambda b: b.share > 0)


smoothed(
    "smoothing is ignored",
    "smoothing has to act: mix in the mean of −ln p over all V classes.",
    lambda b: b.own.mean(),
)
smoothed(
    "spread over the other classes only",
    "ε is spread over all V classes, the label included: (1 − ε)(−ln p_label) + ε · "
    "mean over the V classes.",
    lambda b: b.mixed((b.every.sum(-1) - b.own) / (b.every.shape[-1] - 1)),
    lambda b: b.mixed((b.every.sum(-1) - b.own) / b.every.shape[-1]),
    lambda b: b.mixed(b.every.sum(-1) / (b.every.shape[-1] - 1)),
)
smoothed(
    "the label keeps its full share",
    "The shares add up to 1: what goes to all classes is taken from the label.",
    lambda b: (b.own + b.share * b.every.mean(-1)).mean(),
)
smoothed(
    "the two shares are exchanged",
    "1 − ε belongs to the label, ε to the even part.",
    lambda b: (b.share * b.own + (1 - b.share) * b.every.mean(-1)).mean(),
)
smoothed(
    "the sum over the classes in place of their mean",
    "The even part is the mean over the V classes: their sum divided by V.",
    lambda b: b.mixed(b.every.sum(-1)),
)
smoothed(
    "the even part is the entropy",
    "The even part is the mean of the logarithms: each class counts 1/V.",
    lambda b: b.mixed(((-b.every).exp() * b.every).sum(-1)),
)
smoothed(
    "padding counted in the even part",
    "Both parts are means over the real positions only.",
    lambda b: b.mixed(-b.logits.log_softmax(-1).mean()),
    lambda b: b.mixed(-b.logits.log_softmax(-1).mean(-1).sum() / b.real.sum()),
)
smoothed(
    "the sum over the classes in place of their mean, and padding counted in it",
    "The even part is the mean over the V classes: their sum divided by V. And both "
    "parts are means over the real positions only.",
    lambda b: b.mixed(-b.logits.log_softmax(-1).sum(-1).mean()),
    lambda b: b.mixed(-b.logits.log_softmax(-1).sum() / b.real.sum()),
)

# --- the check ------------------------------------------------------------------------


@chapter.check(section="decoder-loss")
def sequence_loss(student: StudentFunction, seed: int = 0) -> None:
    """By hand, PyTorch's with padding and smoothing, large logits, gradients."""
    generator = seeded(seed)
    b, t, v, *_ = draw_sizes(generator)
    t, v = t + 4, v + 5
    logits = 2 * normal(generator, b, t, v)
    for pad, smoothing in ((0, 0.0), (0, 0.1), (4, 0.0), (4, 0.3)):
        labels = draw_ids(generator, b, t, v, pad)
        labels[1] = pad  # a sentence without any real label
        on = f"logits {(b, t, v)}, labels {(b, t)}, pad_id {pad}, smoothing {smoothing}"
        _judge(student, logits, labels, pad, smoothing, on)
        padding = labels == pad
        other = logits.masked_fill(padding.unsqueeze(-1), 9.0)
        other[..., 1] = torch.where(padding, -9.0, other[..., 1])
        say = f"{on}, other logits where the labels are padding"
        _judge(student, other, labels, pad, smoothing, say)
    hand = torch.tensor([0, math.log(2), 0]).expand(1, 3, 3).contiguous()
    for smoothing, value in ((0.0, 1.5), (0.1, 1.35 + 0.5 / 3)):
        given = hand, torch.tensor([[1, 2, 0]]), 0, smoothing
        right = torch.tensor(value * math.log(2))
        _judge(student, *given, f"the example by hand, smoothing {smoothing}", right)
    overflow = (
        "not stable for large logits",
        "exp(1000) is infinite, and the logarithm of a probability that was rounded to "
        "0 is −∞. Use log_softmax, which never leaves the logarithms.",
    )
    large = 1000 * torch.sign(logits), labels, 4, 0.3
    case = Case("logits of ±1000", large, unless_finite=overflow, what="the loss")
    losses.judge(student, case)
    nothing = torch.zeros(b, t, dtype=torch.long)
    on = f"logits {(b, t, v)}, all labels padding"
    judge_nothing_scored(student, (logits, nothing), on)
    case = Case(f"logits {(b, t, v)}", (logits, labels, 4, 0.3))
    losses.judge_gradient(student, case, torch.tensor(1.0))


def _judge(student, logits, labels, pad, smoothing, on, right=None) -> None:
    """Call it with no more arguments than differ from the defaults."""
    options = (pad, smoothing) if smoothing else (pad,) if pad else ()
    case = Case(on, (logits, labels, *options), what="the loss")
    got = student(*case.inputs)
    each = isinstance(got, torch.Tensor) and got.dim() > 0
    say = {"on": on, "got": show(got), "expected": "a tensor of shape ()"}
    refuse_if(each, *EACH, **say)
    losses.compare(got, case if right is None else replace(case, expected=right))
