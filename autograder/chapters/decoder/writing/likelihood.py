"""Perplexity: how well a model predicts what is there."""

from collections.abc import Iterator
from dataclasses import replace

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.decoder.loss import sequence_loss
from autograder.chapters.decoder.writing.chapter import DEEP, chapter
from autograder.exercise.inputs import draw_sizes, draw_whole, normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.expect import show
from autograder.interface import Data, StudentFunction


def _right(logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0) -> torch.Tensor:
    """Take the exponential of PyTorch's loss."""
    return F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=pad_id).exp()


surprise = Function("perplexity", "perplexity", _right)

# --- what goes wrong ------------------------------------------------------------------


def _losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")


def _real(logits, labels, pad_id=0) -> torch.Tensor:
    return _losses(logits, labels)[labels != pad_id]


def _of_sentences(logits, labels, pad_id=0) -> torch.Tensor:
    real = labels != pad_id
    return (_losses(logits, labels) * real).sum(1) / real.sum(1)


def _smoothed(logits, labels, pad_id=0, smoothing=0.1) -> torch.Tensor:
    options = {"ignore_index": pad_id, "label_smoothing": smoothing}
    return F.cross_entropy(logits.transpose(1, 2), labels, **options).exp()


surprise.mistake(
    "no exponential", "This is the mean loss in nats. Perplexity is e to it."
)(lambda *given: _real(*given).mean())
surprise.mistake(
    "the mean of the exponentials",
    "The exponential was taken of each loss, and then the mean, which a single bad "
    "token dominates. The mean belongs inside.",
)(lambda *given: _real(*given).exp().mean())
surprise.mistake(
    "the mean of sentence means",
    "A word of a short sentence counted for more than one of a long sentence. "
    "Average once, over all real labels of the batch.",
)(lambda *given: _of_sentences(*given).mean().exp())
surprise.mistake(
    "the mean of sentence perplexities",
    "Each sentence got its own perplexity. Average the losses of all real labels "
    "of the batch, then take the exponential once.",
)(lambda *given: _of_sentences(*given).exp().mean())
surprise.mistake(
    "a perplexity for each sentence",
    "One number is asked for, over all real labels of the batch.",
)(lambda *given: _of_sentences(*given).exp())
surprise.mistake(
    "pad_id is not used",
    "Padding was looked for under the id 0. It is where the labels equal the "
    "argument pad_id: pass it on.",
)(lambda logits, labels, pad_id=0: _real(logits, labels).mean().exp())
surprise.mistake(
    "padding is counted",
    "Labels that are padding are no text. Leave them out of the mean.",
)(lambda logits, labels, pad_id=0: _losses(logits, labels).mean().exp())
surprise.mistake(
    "divided by all positions",
    "The losses of padding were set to 0 but still counted. Divide by the number "
    "of real labels.",
)(
    lambda logits, labels, pad_id=0: (
        _real(logits, labels, pad_id).sum() / labels.numel()
    ).exp()
)
surprise.mistake(
    "base 2 in place of e",
    "The losses are in nats, from the natural logarithm; 2 belongs to bits.",
)(lambda *given: 2 ** _real(*given).mean())
surprise.mistake(
    "the sum in place of the mean",
    "e to the sum is one over the probability of the whole batch, and grows with "
    "every word. Take the mean.",
)(lambda *given: _real(*given).sum().exp())
surprise.mistake(
    "smoothing belongs to training",
    "Perplexity measures the probability of the labels themselves, so smoothing "
    "is 0 here.",
)(_smoothed)
surprise.mistake(
    "the sign is missing",
    "Perplexity is at least 1: it is e to the mean *negative* log-likelihood.",
)(lambda *given: (-_real(*given).mean()).exp())
surprise.mistake(
    "one over the mean probability",
    "The probabilities were averaged. Average their logarithms.",
)(lambda *given: 1 / (-_real(*given)).exp().mean())

# --- the check ------------------------------------------------------------------------


def _cases(seed: int) -> Iterator[Case]:
    """By hand, V of a model that knows nothing, padding of several ids, certainty."""
    generator = seeded(seed)
    b, t, v = draw_sizes(generator, 3)
    b, t, v = b + 1, t + 3, v + 4
    hand = torch.tensor([[[0.25, 0.5, 0.25], [0.5, 0.25, 0.25], [0.9, 0.05, 0.05]]])
    labels = torch.tensor([[1, 2, 0]])
    on = "the example by hand, probabilities ½ and ¼, and one label of padding"
    yield Case(on, (hand.log(), labels), torch.tensor(8.0).sqrt())
    labels = torch.randint(1, v, (b, t), generator=generator)
    on = f"a model that knows nothing, V = {v}"
    yield Case(on, (torch.zeros(b, t, v), labels), torch.tensor(float(v)))
    for pad in ((), (0,), (v - 2,)):
        labels = torch.randint(0, v, (b, t), generator=generator)
        pad_id = pad[0] if pad else 0
        labels[labels == pad_id] = 1
        for row in range(b - 1):
            labels[row, 1 + draw_whole(generator, t - 1) :] = pad_id
        if pad_id:
            labels[-1, 0] = 0  # an id like others
        logits = 1.5 * normal(generator, b, t, v)
        on = f"logits {(b, t, v)}, {int((labels != pad_id).sum())} real labels"
        yield Case(f"{on}, pad_id {pad_id}", (logits, labels, *pad))
    sure = 40.0 * F.one_hot(labels, v).float()
    on = "a model that is sure and right"
    yield Case(on, (sure, labels, v - 2), torch.tensor(1.0))


@chapter.check(section="decoder-perplexity")
def perplexity(student: StudentFunction, loss: StudentFunction, seed: int = 0) -> None:
    """Check by hand, V of a model that knows nothing, padding, PyTorch's loss."""
    with expect.relying_on(sequence_loss, loss):
        for case in _cases(seed):
            case = replace(case, what="the perplexity", tolerance=DEEP)
            surprise.compare(_number(student(*case.inputs), case.on), case)


def _number(got: Data, on: str) -> Data:
    """Expect a tensor that is a number."""
    expect.tensor(got, on=on, finite=False)
    say = {"on": on, "got": show(got), "expected": "a tensor of shape ()"}
    expect.true(not bool(got.isnan().any()), "the result is nan", **say)
    return got
