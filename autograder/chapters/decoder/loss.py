"""The loss of a batch of sentences, with label smoothing."""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F

from autograder.chapters.decoder.chapter import chapter
from autograder.chapters.decoder.inputs import draw_ids, draw_sizes
from autograder.chapters.encoder.masked_loss import judge_nothing_scored
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.expect import refuse_if, show
from autograder.interface import StudentFunction


def _each(logits, labels, smoothing):
    """Return the loss of each position, real or not."""
    return F.cross_entropy(
        logits.mT, labels, reduction="none", label_smoothing=smoothing
    )


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


def _some(logits, labels, pad=0, smoothing=0.0):
    return bool((labels != pad).any())


def averaged(
    name: str, why: str, *answers: Callable, when: Callable = lambda *_: True
) -> None:
    """State a mistake by the loss of each position, and what is real."""

    def shows(logits, labels, pad=0, smoothing=0.0):
        return _some(logits, labels, pad) and when(pad, smoothing)

    def of(answer: Callable) -> Callable:
        return lambda logits, labels, pad=0, smoothing=0.0: answer(
            _each(logits, labels, smoothing), labels != pad, labels
        )

    for answer in answers:
        losses.mistake(name, why, when=shows)(of(answer))


averaged(
    "the mean over all positions",
    "Divide by the number of real labels. With the padding in the denominator the loss "
    "depends on how wide the batch happens to be.",
    lambda each, real, labels: (each * real).mean(),
)
averaged(
    "padding is scored",
    "Padding is nothing to be predicted: leave its positions out, labels != pad_id.",
    lambda each, real, labels: each.mean(),
    lambda each, real, labels: each.sum() / real.sum(),
)
averaged(
    "the sum in place of the mean",
    "A mean, so that batches of different sizes compare: divide by the number.",
    lambda each, real, labels: each[real].sum(),
)
averaged(
    "divided by the number of sentences",
    "Divide by the number of real labels.",
    lambda each, real, labels: each[real].sum() / len(real),
)
averaged(
    "the mean of the sentences' means",
    "All real labels of the batch count alike, in whatever sentence. A sentence "
    "without any has no say.",
    lambda each, real, labels: ((each * real).sum(1) / real.sum(1)).mean(),
    lambda each, real, labels: ((each * real).sum(1) / real.sum(1).clamp(1)).mean(),
    lambda each, real, labels: ((each * real).sum(1) / real.sum(1)).nanmean(),
)
averaged(
    "pad_id is ignored",
    "Padding is where a label equals pad_id, which need not be 0.",
    lambda each, real, labels: each[labels != 0].mean(),
    when=lambda pad, smoothing: pad != 0,
)
averaged(
    "the sign is missing",
    "A loss is minus the logarithm.",
    lambda each, real, labels: -each[real].mean(),
)
averaged(
    "in bits",
    "The natural logarithm is meant.",
    lambda each, real, labels: each[real].mean() / math.log(2),
)
EACH = "a loss for each position", "One number for the whole batch, shape ()."
averaged(
    *EACH,
    lambda each, real, labels: each * real,
    lambda each, real, labels: each[real],
)


def scored(name: str, why: str, *answers: Callable) -> None:
    """State a mistake by a mean over what is real of another number for each."""

    def of(answer: Callable) -> Callable:
        def loss(logits, labels, pad=0, smoothing=0.0):
            return answer(logits, labels, smoothing)[labels != pad].mean()

        return loss

    for answer in answers:
        losses.mistake(name, why, when=_some)(of(answer))


ZEROED = (
    "logits multiplied by the mask",
    "A logit of 0 does not silence a position: all classes become equally likely, and "
    "the position adds ln V for a class that nobody asked for. Leave it out.",
)


def _zeroed(logits, labels, pad, smoothing):
    return _each(logits * (labels != pad).unsqueeze(-1), labels, smoothing)


@losses.mistake(*ZEROED, when=_some)
def _(logits, labels, pad=0, smoothing=0.0):
    return _zeroed(logits, labels, pad, smoothing).mean()


@losses.mistake(*ZEROED, when=_some)
def _(logits, labels, pad=0, smoothing=0.0):
    return _zeroed(logits, labels, pad, smoothing).sum() / (labels != pad).sum()


scored(
    "softmax taken twice",
    "Logits go in. The softmax was applied to what had been through one already.",
    lambda logits, labels, smoothing: _each(logits.softmax(-1), labels, smoothing),
)


def _across(logits, labels, smoothing):
    """Take the softmax over the positions."""
    logarithms = logits.log_softmax(1)
    own = logarithms.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return (smoothing - 1) * own - smoothing * logarithms.mean(-1)


POSITIONS = (
    "positions taken for classes",
    "cross_entropy expects the classes in the second axis, (B, V, T). Given (B, T, V) "
    "with one-hot labels it takes the positions for the classes, silently.",
)


@losses.mistake(*POSITIONS, when=_some)
def _(logits, labels, pad=0, smoothing=0.0):
    one_hot = F.one_hot(labels, logits.shape[-1]).float()
    return F.cross_entropy(logits, one_hot, label_smoothing=smoothing)


scored(*POSITIONS, _across)


# --- smoothing: what goes wrong -------------------------------------------------------


def mixed(name: str, why: str, *answers: Callable, always: bool = False) -> None:
    """State a mistake by what it makes of the labels' losses and all classes'.

    Args:
        name: what the message calls it.
        why: the reason.
        answers: functions of −ln p of each real label (N,), of −ln p of all classes
            (N, V), and of the smoothing.
        always: whether it shows without smoothing, too.
    """

    def shows(logits, labels, pad=0, smoothing=0.0):
        return _some(logits, labels, pad) and (always or smoothing > 0)

    def of(answer: Callable) -> Callable:
        def loss(logits, labels, pad=0, smoothing=0.0):
            real = labels != pad
            logarithms = -logits[real].log_softmax(-1)
            own = logarithms.gather(-1, labels[real].unsqueeze(-1)).squeeze(-1)
            return answer(own, logarithms, smoothing)

        return loss

    for answer in answers:
        losses.mistake(name, why, when=shows)(of(answer))


mixed(
    "smoothing is ignored",
    "smoothing has to act: mix in the mean of −ln p over all V classes.",
    lambda own, every, share: own.mean(),
)


def _others(own, every):
    """Return the sum over the classes besides the label's, and how many there are."""
    return every.sum(-1) - own, every.shape[-1] - 1


mixed(
    "spread over the other classes only",
    "ε is spread over all V classes, the label included: (1 − ε)(−ln p_label) + ε · "
    "mean over the V classes.",
    lambda own, every, share: (
        (1 - share) * own + share * _others(own, every)[0] / _others(own, every)[1]
    ).mean(),
    lambda own, every, share: (
        (1 - share) * own + share * _others(own, every)[0] / every.shape[-1]
    ).mean(),
    lambda own, every, share: (
        (1 - share) * own + share * every.sum(-1) / _others(own, every)[1]
    ).mean(),
)
mixed(
    "the label keeps its full share",
    "The shares add up to 1: what goes to all classes is taken from the label.",
    lambda own, every, share: (own + share * every.mean(-1)).mean(),
)
mixed(
    "the two shares are exchanged",
    "1 − ε belongs to the label, ε to the even part.",
    lambda own, every, share: (share * own + (1 - share) * every.mean(-1)).mean(),
)
mixed(
    "the sum over the classes in place of their mean",
    "The even part is the mean over the V classes: their sum divided by V.",
    lambda own, every, share: ((1 - share) * own + share * every.sum(-1)).mean(),
)
mixed(
    "the even part is the entropy",
    "The even part is the mean of the logarithms: each class counts 1/V.",
    lambda own, every, share: (
        (1 - share) * own + share * ((-every).exp() * every).sum(-1)
    ).mean(),
)
UNREAL = (
    "padding counted in the even part",
    "Both parts are means over the real positions only.",
)
for counted in (False, True):

    def _uneven(logits, labels, pad=0, smoothing=0.0, counted=counted):
        real = labels != pad
        own = _each(logits, labels, 0.0)[real].mean()
        even = -logits.log_softmax(-1).mean(-1)
        even = even.sum() / real.sum() if counted else even.mean()
        return (1 - smoothing) * own + smoothing * even

    losses.mistake(
        *UNREAL, when=lambda x, y, pad=0, share=0.0: _some(x, y, pad) and share > 0
    )(_uneven)

NEGATIVE = "The loss is the negative logarithm of the label's probability."
mixed(
    "no logarithm",
    NEGATIVE,
    lambda own, every, share: -(-own).exp().mean(),
    lambda own, every, share: 1 - (-own).exp().mean(),
    always=True,
)
mixed(
    "the logarithm of the mean",
    "First the logarithm of each probability, then the mean.",
    lambda own, every, share: -(-own).exp().mean().log(),
    always=True,
)
scored(
    "no softmax",
    "Logits become logarithms of probabilities by log_softmax first.",
    lambda logits, labels, share: -logits.gather(-1, labels.unsqueeze(-1)).squeeze(-1),
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
    judge_nothing_scored(student, logits, nothing, on)
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
