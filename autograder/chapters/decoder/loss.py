"""The loss of a batch of sentences, with label smoothing."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F

from autograder.chapters.decoder.chapter import chapter
from autograder.chapters.decoder.inputs import draw_ids, draw_sizes
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.losses import judge_nothing_scored
from autograder.exercise.spec import Case, Function
from autograder.expect import refuse_if, show
from autograder.interface import StudentFunction


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


def _mean(each: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    return (each * real).sum() / real.sum()


def _all(each: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    return each.mean()


def _all_by_real(each: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    return each.sum() / real.sum()


def _sentences(each: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    return (each * real).sum(1) / real.sum(1)


def _logarithms(logits: torch.Tensor) -> torch.Tensor:
    return logits.log_softmax(-1)


def mixed(
    logits: torch.Tensor,
    labels: torch.Tensor,
    pad: int = 0,
    share: float = 0.0,
    *,
    hides: Callable = lambda labels, pad: labels != pad,
    shifted: bool = False,
    before: Callable = lambda logits, real: logits,
    logs: Callable = _logarithms,
    even: Callable = lambda minus, own, pad: minus.mean(-1),
    mix: Callable = lambda own, even, e, v: (1 - e) * own + e * even,
    mean: Callable = _mean,
    apart: Callable | None = None,
    after: Callable = lambda loss: loss,
) -> torch.Tensor:
    """Compute the loss with slips, which may be several.

    Args:
        logits: (B, T, V).
        labels: (B, T).
        pad: the id of padding.
        share: of the even part.
        hides: which positions are real, of labels and ``pad``.
        shifted: whether the labels are moved once more.
        before: what is done to the logits first, of them and what is real.
        logs: makes ln p of logits.
        even: the even part of each position, of all −ln p, that of the label, ``pad``.
        mix: joins both parts, with the share and the number of classes.
        mean: of the positions, of losses and what is real.
        apart: the same of the even part, if it is another.
        after: what is done to the loss in the end.
    """
    if shifted:
        logits, labels = logits[:, :-1], labels[:, 1:]
    real = hides(labels, pad)
    minus = -logs(before(logits, real))
    own = minus.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    spread, classes = even(minus, own, pad), minus.shape[-1]
    if apart:
        return after(mix(mean(own, real), apart(spread, real), share, classes))
    return after(mean(mix(own, spread, share, classes), real))


def _shows(logits, labels, pad=0, share=0.0) -> bool:
    return bool((labels != pad).any())


SCORED = (
    "padding is scored",
    "Padding is nothing to be predicted: leave its positions out, labels != pad_id.",
)
SILENT = (
    "logits multiplied by the mask",
    "A logit of 0 does not silence a position: all classes become equally likely, and "
    "the position adds ln V for a class that nobody asked for. Leave it out.",
)
SENTENCES = (
    "the mean of the sentences' means",
    "All real labels of the batch count alike, in whatever sentence. A sentence "
    "without any has no say.",
)
NUMBER = "Divide by the number of real labels."
EACH = "a loss for each position", "One number for the whole batch, shape ()."
NO_LOGARITHM = (
    "no logarithm",
    "The loss is the negative logarithm of the label's probability.",
)
NO_SOFTMAX = (
    "no softmax",
    "Logits become logarithms of probabilities by log_softmax first.",
)
AXIS = (
    "softmax over the wrong axis",
    "The probabilities of one position add up to 1 over the classes, the last axis: "
    "log_softmax(dim=-1).",
)
CUT_OFF = (
    "the logarithm is cut off",
    "With a small number added to it, a probability of 0 has a logarithm of −20 or so. "
    "A very wrong answer then costs no more than that, and teaches nothing. "
    "log_softmax never leaves the logarithms, and needs no such number.",
)
SMALL = (1e-12, 1e-10, 1e-9, 1e-8, 1e-7)
OTHERS = (
    "spread over the other classes only",
    "ε is spread over all V classes, the label included: (1 − ε)(−ln p_label) + ε · "
    "mean over the V classes.",
)
SUM = (
    "the sum over the classes in place of their mean",
    "The even part is the mean over the V classes: their sum divided by V.",
)
EVEN_PADDING = (
    "padding counted in the even part",
    "Both parts are means over the real positions only.",
)
PAD_CLASS = (
    "the class of padding is left out",
    "ε is spread over all V classes, that of padding included. Only positions are left "
    "out, not classes.",
)


def _without_pad(minus: torch.Tensor, pad: int) -> torch.Tensor:
    return minus.sum(-1) - minus[..., pad]


losses.slips(
    mixed,
    (
        "the mean over all positions",
        "Divide by the number of real labels. With the padding in the denominator the "
        "loss depends on how wide the batch happens to be.",
        {"mean": lambda each, real: (each * real).mean()},
    ),
    (*SCORED, {"mean": _all}),
    (*SCORED, {"mean": _all_by_real}),
    *(
        (*SILENT, {"before": lambda x, real: x * real.unsqueeze(-1), "mean": mean})
        for mean in (_all, _all_by_real)
    ),
    (
        "the sum in place of the mean",
        "A mean, so that batches of different sizes compare: divide by the number.",
        {"mean": lambda each, real: (each * real).sum()},
    ),
    (
        "divided by the number of sentences",
        NUMBER,
        {"mean": lambda each, real: (each * real).sum() / len(real)},
    ),
    (
        "one too many in the divisor",
        "Adding 1 keeps from dividing by 0, but makes every loss too small. Divide by "
        "the number of real labels, and by 1 only if there is none: clamp(min=1).",
        {"mean": lambda each, real: (each * real).sum() / (real.sum() + 1)},
    ),
    (*SENTENCES, {"mean": lambda *each: _sentences(*each).mean()}),
    (
        *SENTENCES,
        {
            "mean": lambda each, real: (
                (each * real).sum(1) / real.sum(1).clamp(1)
            ).mean()
        },
    ),
    (*SENTENCES, {"mean": lambda *each: _sentences(*each).nanmean()}),
    (
        "the mean of the positions' means",
        "All real labels of the batch count alike, at whatever position.",
        {
            "mean": lambda each, real: (
                (each * real).sum(0) / real.sum(0).clamp(1)
            ).mean()
        },
    ),
    (
        "softmax taken twice",
        "Logits go in. The softmax was applied to what had been through one already.",
        {"before": lambda logits, real: logits.softmax(-1)},
    ),
    (
        "shifted once more",
        "logits[:, t] already scores labels[:, t]: shift_right has moved them.",
        {"shifted": True},
    ),
    (
        "the sign is missing",
        "A loss is minus the logarithm.",
        {"after": lambda loss: -loss},
    ),
    (
        "in bits",
        "The natural logarithm is meant.",
        {"after": lambda loss: loss / math.log(2)},
    ),
    (
        "the exponential of the loss",
        "That is the perplexity. The loss is the mean logarithm itself.",
        {"after": torch.exp},
    ),
    (*EACH, {"mean": lambda each, real: each * real}),
    (*EACH, {"mean": lambda each, real: each[real]}),
    (*NO_LOGARITHM, {"logs": lambda logits: logits.softmax(-1)}),
    *(
        (
            *NO_LOGARITHM,
            {"mix": lambda own, *_, sign=sign: sign - (-own).exp()},
        )
        for sign in (0, 1)
    ),
    (
        "the logarithm of the mean",
        "First the logarithm of each probability, then the mean.",
        {
            "mix": lambda own, *_: (-own).exp(),
            "after": lambda mean: -mean.log(),
        },
    ),
    (*NO_SOFTMAX, {"logs": lambda logits: logits}),
    (*NO_SOFTMAX, {"logs": lambda logits: logits, "mix": lambda own, *_: own}),
    (*AXIS, {"logs": lambda logits: logits.log_softmax(1)}),
    (*AXIS, {"logs": lambda logits: logits.log_softmax(0)}),
    (
        "the two shares are exchanged",
        "1 − ε belongs to the label, ε to the even part.",
        {"mix": lambda own, even, e, v: e * own + (1 - e) * even},
    ),
    (
        "the even part is not weighed",
        "The even part has the share ε, and the label 1 − ε.",
        {"mix": lambda own, even, e, v: (1 - e) * own + even},
    ),
    *(
        (*CUT_OFF, {"logs": logs})
        for least in SMALL
        for logs in (
            lambda logits, least=least: (logits.softmax(-1) + least).log(),
            lambda logits, least=least: logits.softmax(-1).clamp(min=least).log(),
        )
    ),
    (
        "smoothing is ignored",
        "smoothing has to act: mix in the mean of −ln p over all V classes.",
        {"mix": lambda own, *_: own},
    ),
    *(
        (*OTHERS, {"even": even})
        for even in (
            lambda minus, own, pad: (minus.sum(-1) - own) / (minus.shape[-1] - 1),
            lambda minus, own, pad: (minus.sum(-1) - own) / minus.shape[-1],
            lambda minus, own, pad: minus.sum(-1) / (minus.shape[-1] - 1),
        )
    ),
    *(
        (*PAD_CLASS, {"even": even})
        for even in (
            lambda minus, own, pad: _without_pad(minus, pad) / (minus.shape[-1] - 1),
            lambda minus, own, pad: _without_pad(minus, pad) / minus.shape[-1],
            lambda minus, own, pad: (
                (_without_pad(minus, pad) - own) / (minus.shape[-1] - 2)
            ),
        )
    ),
    (
        "the label keeps its full share",
        "The shares add up to 1: what goes to all classes is taken from the label.",
        {"mix": lambda own, even, e, v: own + e * even},
    ),
    (
        "the label's even share counts twice",
        "The mean over the V classes includes the label. Its own part is 1 − ε, and no "
        "more.",
        {"mix": lambda own, even, e, v: (1 - e + e / v) * own + e * even},
    ),
    (
        "the even part has the wrong sign",
        "Both parts are minus the logarithm of a probability, and above 0.",
        {"mix": lambda own, even, e, v: (1 - e) * own - e * even},
    ),
    (*SUM, {"even": lambda minus, own, pad: minus.sum(-1)}),
    (
        "the even part is the entropy",
        "The even part is the mean of the logarithms: each class counts 1/V.",
        {"even": lambda minus, own, pad: ((-minus).exp() * minus).sum(-1)},
    ),
    (*EVEN_PADDING, {"apart": _all}),
    (*EVEN_PADDING, {"apart": _all_by_real}),
    when=_shows,
)
losses.mistake(
    "pad_id is ignored",
    "Padding is where a label equals pad_id, which need not be 0.",
    when=lambda logits, labels, pad=0, share=0.0: (
        pad != 0 and _shows(logits, labels, pad)
    ),
)(partial(mixed, hides=lambda labels, pad: labels != 0))
losses.mistake(
    "positions taken for classes",
    "cross_entropy expects the classes in the second axis, (B, V, T). Given (B, T, V) "
    "with one-hot labels it takes the positions for the classes, silently.",
    when=_shows,
)(
    lambda logits, labels, pad=0, share=0.0: F.cross_entropy(
        logits, F.one_hot(labels, logits.shape[-1]).float(), label_smoothing=share
    )
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
