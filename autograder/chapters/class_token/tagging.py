"""The loss of a tagger: a label for each word, none for class tokens and padding."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from autograder.chapters.class_token.chapter import chapter
from autograder.chapters.class_token.mask import SQUEEZED
from autograder.chapters.padding import draw_real
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.losses import judge_nothing_scored
from autograder.exercise.spec import CUT_OFF, Case, Function
from autograder.expect import refuse_if, show
from autograder.interface import Data, StudentFunction


def _word_by_word(logits, tags, mask, count=1) -> torch.Tensor:
    """Go through the sentences, and average what each real word costs."""
    costs = [
        F.cross_entropy(scores[count:][real], own[real], reduction="none")
        for scores, own, real in zip(logits, tags, mask[:, 0], strict=True)
    ]
    every = torch.cat(costs)
    return every.sum() / max(len(every), 1)


losses = Function("tagging-loss", "tagging_loss", _word_by_word)
losses.accident(
    "to match target batch_size",
    "the class tokens are not left out",
    "There are more rows of logits than tags: the first `count` rows are the class "
    "tokens', which have no tag. Leave them out first, logits[:, count:].",
)
losses.accident(
    "Expected target size",
    "logits and tags do not fit",
    "For tags (B, T) cross_entropy wants logits (B, classes, T): leave out the class "
    "tokens, logits[:, count:], and then exchange the last two axes.",
)

# --- what goes wrong ------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """What the loss is asked for, taken apart."""

    logits: torch.Tensor
    tags: torch.Tensor
    mask: torch.Tensor
    count: int = 1

    @property
    def real(self) -> torch.Tensor:
        """Whether a position holds a word: (B, T)."""
        return self.mask[:, 0]

    @property
    def own(self) -> torch.Tensor:
        """The logits of the words and of the padding: (B, T, classes)."""
        return self.logits[:, self.count :]


def _cross_entropy(logits: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
    """Compute what each position costs, (B, T)."""
    return F.cross_entropy(logits.mT, tags, reduction="none")


def _picked(scores: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
    """Take the scores of the tags."""
    return scores.gather(-1, tags[..., None])[..., 0]


def _total(costs: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    return costs[kept].sum()


def loss_by(
    *given: Data,
    own: Callable[[Batch], torch.Tensor] = lambda batch: batch.own,
    each: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = _cross_entropy,
    kept: Callable[[Batch], torch.Tensor] = lambda batch: batch.real,
    number: Callable[[Batch, torch.Tensor], Any] = lambda batch, kept: kept.sum(),
    total: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = _total,
    unit: Callable[[torch.Tensor], torch.Tensor] = lambda loss: loss,
) -> torch.Tensor:
    """Compute the loss by rules that can be varied.

    Args:
        given: logits, tags, mask and perhaps the number of class tokens.
        own: the logits of the words and of the padding, (B, T, classes).
        each: the cost of each position, (B, T), of these logits and the tags.
        kept: which positions are added up, (B, T).
        number: what the total is divided by, of the batch and what is kept.
        total: of the costs (B, T) and what is kept.
        unit: what is made of the average.
    """
    batch = Batch(*given)
    costs, positions = each(own(batch), batch.tags), kept(batch)
    return unit(total(costs, positions) / number(batch, positions))


def made(
    name: str,
    why: str,
    *rules: dict[str, Callable],
    when: Callable[[Batch], bool] = lambda batch: True,
) -> None:
    """State a mistake by the rules that it sets on a batch with a word."""

    def shows(*given: Data) -> bool:
        batch = Batch(*given)
        return bool(batch.real.any()) and when(batch)

    for each in rules:
        losses.mistake(name, why, when=shows)(partial(loss_by, **each))


def _undivided(batch: Batch, kept: torch.Tensor) -> int:
    return 1


def _words(batch: Batch, kept: torch.Tensor) -> torch.Tensor:
    return batch.real.sum()


def _everything(batch: Batch) -> torch.Tensor:
    return torch.ones_like(batch.real)


def _padding(batch: Batch) -> torch.Tensor:
    return ~batch.real


def _means(costs: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    return ((costs * kept).sum(1) / kept.sum(1)).mean()


def _means_of_all(costs: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    return ((costs * kept).sum(1) / kept.sum(1).clamp(1)).mean()


def _probability(logits: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
    return (-_cross_entropy(logits, tags)).exp()


@losses.mistake(
    "the class tokens are scored, too",
    "A class token has no part of speech. Leave its row out, and use the mask of the "
    "words, without an entry for it.",
    when=lambda *given: bool(Batch(*given).real.any()),
)
def _(*given):
    """As if the tag of each were 0."""
    batch = Batch(*given)
    front = batch.logits[:, : batch.count]
    tags = torch.zeros(front.shape[:2], dtype=torch.long)
    words = _cross_entropy(batch.own, batch.tags)[batch.real]
    return torch.cat([_cross_entropy(front, tags).flatten(), words]).mean()


made(
    "the end is left out in place of the class tokens",
    "Class tokens come first, so every word was compared with the tag of a word "
    "after it. Leave out the first rows, logits[:, count:].",
    {"own": lambda b: b.logits[:, : -b.count]},
)
made(
    "one class token is left out, whatever count says",
    "There may be several class tokens: leave out the first `count` rows.",
    {"own": lambda b: b.logits[:, 1 : b.tags.shape[1] + 1]},
    when=lambda b: b.count > 1,
)
made(
    "padding is scored",
    "Padding is no word: leave its positions out, in the sum and in the number.",
    {"kept": _everything},
    {"kept": _everything, "number": _words},
)
made(
    *SQUEEZED,
    {"total": lambda costs, kept: (costs * kept.squeeze()).sum()},
    when=lambda b: b.real.shape[1] == 1 < len(b.real),
)
made(
    "the mean over all positions",
    "Divide by the number of words. With the padding in the divisor the loss depends "
    "on how wide the batch happens to be.",
    {"number": lambda b, kept: kept.numel()},
)
made(
    "the class tokens are in the divisor",
    "Divide by the number of words. A class token is none, and its row is left out.",
    {"number": lambda b, kept: kept.sum() + b.count * len(kept)},
)
made(
    "mask inverted",
    "The padding was scored and the words were left out. True means a word.",
    {"kept": _padding},
    {"kept": _padding, "number": lambda b, kept: kept.sum().clamp(min=1)},
    {"kept": _padding, "number": _words},
)
made(
    "the mask is shifted by the class tokens",
    "The mask has no entry for the class tokens: its entry t belongs to word t, whose "
    "row is the first one after theirs.",
    {"kept": lambda b: F.pad(b.real, (b.count, 0), value=True)[:, : -b.count]},
)
made(
    "logits multiplied by the mask",
    "A logit of 0 does not silence a position: all tags become equally likely, and it "
    "adds the logarithm of their number. Leave it out.",
    {"own": lambda b: b.own * b.mask.mT, "kept": _everything},
    {"own": lambda b: b.own * b.mask.mT, "kept": _everything, "number": _words},
)
made(
    "tag 0 is taken for padding",
    "0 is a tag like the others. What is padding, the mask says.",
    {"kept": lambda b: b.tags != 0},
    {"kept": lambda b: b.real & (b.tags != 0)},
    {"kept": lambda b: b.real & (b.tags != 0), "number": _words},
)
made(
    "the sum in place of the mean",
    "A mean, so that batches of different sizes compare: divide by the number of "
    "words.",
    {"number": _undivided},
)
made(
    "divided by the number of sentences",
    "Divide by the number of words.",
    {"number": lambda b, kept: len(kept)},
)
made(
    "divided by the number of classes, too",
    "The loss of a position is one number: divide by the number of words only.",
    {"number": lambda b, kept: kept.sum() * b.own.shape[2]},
)
made(
    "one word too many in the divisor",
    "n words are divided by n. Against 0/0 use clamp(min=1): it changes 0 and nothing "
    "else.",
    {"number": lambda b, kept: kept.sum() + 1},
)
made(
    "the mean of the sentences' means",
    "All words of the batch count alike, in whatever sentence they stand.",
    {"total": _means, "number": _undivided},
    {"total": _means_of_all, "number": _undivided},
)
EACH = "a loss for each position", "One number for the whole batch, shape ()."
AXIS = (
    "a list of one number",
    "The loss has the shape (), not (1,). torch.zeros(1) is a list of one number; "
    "torch.zeros(()), or a sum over all axes, is a number.",
)
made(*AXIS, {"unit": lambda loss: loss[None]})
made(
    *EACH,
    {"total": lambda costs, kept: costs * kept, "number": _undivided},
    {"total": lambda costs, kept: costs[kept], "number": _undivided},
)
made(
    "reshaped in place of transposed",
    "reshape and view keep the order of the numbers, so logits of different words are "
    "mixed. Exchange the axes, .mT or transpose(1, 2).",
    {"own": lambda b: b.own.reshape(b.own.mT.shape).mT},
)
made(
    "softmax taken twice",
    "Logits go in: cross_entropy applies a softmax of its own.",
    {"each": lambda logits, tags: _cross_entropy(logits.softmax(-1), tags)},
)
made(
    "no softmax",
    "A logit is no logarithm of a probability: take the log_softmax of each position, "
    "over its classes.",
    {"each": lambda logits, tags: -_picked(logits, tags)},
)
made(
    "softmax over the wrong axis",
    "A softmax runs over the classes of one position, the last axis of the logits.",
    {"each": lambda logits, tags: -_picked(logits.log_softmax(1), tags)},
    {"each": lambda logits, tags: -_picked(logits.log_softmax(0), tags)},
)
made(
    "no logarithm",
    "The loss is the negative logarithm of the tag's probability.",
    {"each": _probability},
    {"each": lambda logits, tags: 1 - _probability(logits, tags)},
    {"each": lambda logits, tags: -_probability(logits, tags)},
)
made(
    "the logarithm of the mean",
    "First the logarithm for each word, then the mean: the two do not change places.",
    {"each": _probability, "unit": lambda chance: -chance.log()},
)
made(
    "the sign is missing",
    "A loss is minus the logarithm of the tag's probability.",
    {"unit": torch.neg},
)
made(
    "in bits",
    "The natural logarithm is meant.",
    {"unit": lambda loss: loss / math.log(2)},
)
made(
    "logarithm to base 10",
    "The natural logarithm is meant.",
    {"unit": lambda loss: loss / math.log(10)},
)
made("no gradient comes back", CUT_OFF, {"unit": lambda loss: loss.detach()})

# --- the check ------------------------------------------------------------------------


def _cases(seed: int) -> Iterator[Case]:
    """By hand, without padding and with some, one class token and several."""
    generator = seeded(seed)
    chances = torch.tensor([[[0.5, 0.5], [0.5, 0.5], [0.75, 0.25], [0.1, 0.9]]])
    tags, mask = torch.tensor([[0, 1, 0]]), torch.tensor([[[True, True, False]]])
    right = torch.tensor(8.0).log() / 2  # (ln 2 + ln 4) / 2
    yield Case("the example by hand", (chances.log(), tags, mask), right)
    for count in (1, 3, 2):
        batch, length, classes = (n + 2 for n in draw_sizes(generator, 3))
        logits = 2 * normal(generator, batch, count + length, classes)
        tags = torch.randint(classes, (batch, length), generator=generator)
        tags[-1, :2] = torch.tensor([0, 1])  # tag 0 is there, and not alone
        mask = draw_real(generator, batch, length)
        options = () if count == 1 else (count,)
        on = f"logits {tuple(logits.shape)}, tags {(batch, length)}, count {count}"
        yield Case(f"{on}, some padding", (logits, tags, mask, *options))
        everything = torch.ones_like(mask)
        yield Case(f"{on}, no padding", (logits, tags, everything, *options))
    single = torch.tensor([[[True]], [[False]], [[True]]])
    short = normal(generator, 3, 2, 4), torch.tensor([[1], [2], [3]]), single
    yield Case("logits (3, 2, 4), tags (3, 1), sentence 1 is padding", short)
    large = 1000 * logits.sign()
    yield Case(f"{on}, logits of ±1000", (large, tags, mask, count))


@chapter.check(section="class-token-per-token")
def tagging_loss(student: StudentFunction, seed: int = 0) -> None:
    """By hand, and word by word; padding, several class tokens, no word, gradients."""
    for case in _cases(seed):
        with losses.accidents_named():
            got = student(*case.inputs)
        _expect_one_number(got, case.on)
        losses.compare(got, case)
    generator = seeded(seed + 1)
    logits = normal(generator, 3, 6, 4)
    tags = torch.randint(4, (3, 5), generator=generator)
    mask = draw_real(generator, 3, 5)
    case = Case("logits (3, 6, 4), tags (3, 5)", (logits, tags, mask))
    losses.judge_gradient(student, case, torch.tensor(1.0))
    nothing = torch.zeros_like(mask)
    on = "logits (3, 6, 4), a batch without any word"
    _expect_one_number(student(logits, tags, nothing), on)
    judge_nothing_scored(student, (logits, tags, nothing), on)


def _expect_one_number(got: Data, on: str) -> None:
    if not isinstance(got, torch.Tensor):
        return
    say = {"on": on, "got": show(got), "expected": "a tensor of shape ()"}
    refuse_if(got.numel() == 1 and got.dim() > 0, *AXIS, **say)
    refuse_if(got.dim() > 0, *EACH, **say)
