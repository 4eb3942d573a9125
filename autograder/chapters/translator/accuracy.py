"""How often the next token, and how often all of a sentence, is said rightly."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.translator.chapter import chapter
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.spec import Case, Function, expect_several, judge_parts
from autograder.interface import StudentFunction

NAMES = ("the share of tokens", "the share of sentences")


def one_by_one(logits: torch.Tensor, labels: torch.Tensor, pad: int = 0) -> tuple:
    """Count tokens and sentences, one by one."""
    verdicts = []
    for scores, sentence in zip(logits.tolist(), labels.tolist(), strict=True):
        verdicts.append(
            [
                row.index(max(row)) == label
                for row, label in zip(scores, sentence, strict=True)
                if label != pad
            ]
        )
    tokens = [verdict for sentence in verdicts for verdict in sentence]
    return sum(tokens) / len(tokens), sum(map(all, verdicts)) / len(verdicts)


accuracies = Function("forced-accuracy", "forced_accuracy", one_by_one)


# --- what goes wrong ------------------------------------------------------------------


def _share(x: torch.Tensor) -> float:
    return x.float().mean().item()


def _by_sentence(hit: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    return (hit & real).sum(dim=-1) / real.sum(dim=-1)


def _tokens(hit: torch.Tensor, real: torch.Tensor) -> float:
    return _share(hit[real])


def _sentences(hit: torch.Tensor, real: torch.Tensor) -> float:
    return _share((hit | ~real).all(dim=-1))


COUNTED = (
    "padding is counted",
    "Padding has no right answer: leave it out of both counts, of the right ones and "
    "of all.",
)
SPOILT = (
    "padding makes a sentence wrong",
    "A sentence is right if the model says each of its real labels. What it says after "
    "the end does not matter.",
)
EMPTY = (
    "a row of nothing but padding counted as wrong",
    "Such a row has no real label, so none of them is missed: it counts as right. "
    "Dividing by its number of labels is dividing by 0; ask of every place whether it "
    "is right or padding.",
)
MOSTLY = (
    "a sentence that is mostly right counted",
    "All of its real tokens have to be right, not half of them.",
)
COUNTS = "counts in place of shares", "Divide the two counts: a share is from 0 to 1."
for words in ("division by zero", "requires at least one data point"):
    accuracies.accident(words, *EMPTY)
Count = Callable[[torch.Tensor, torch.Tensor], float]  # of hits and real places (B, T)
COUNTING: tuple[tuple[str, str, Count, Count], ...] = (
    (*SPOILT, _tokens, lambda hit, real: _share(hit.all(-1))),
    (*SPOILT, _tokens, lambda hit, real: _share((hit & real).all(-1))),
    (*COUNTED, lambda hit, real: _share(hit), _sentences),
    (*COUNTED, lambda hit, real: _share(hit), lambda hit, real: _share(hit.all(-1))),
    (
        "padding counted as right",
        "Padding says nothing about the model: divide by the number of real labels.",
        lambda hit, real: _share(hit | ~real),
        _sentences,
    ),
    (
        "padding counted as wrong",
        "Divide by the number of real labels, not by all places.",
        lambda hit, real: _share(hit & real),
        _sentences,
    ),
    (
        "the mean of the sentences' shares",
        "Then a word of a short sentence counts more than one of a long one. Count all "
        "tokens that are right, and divide by all that are real.",
        lambda hit, real: _share(_by_sentence(hit, real)),
        _sentences,
    ),
    (
        "a sentence with one right token counted",
        "All of its tokens have to be right: .all, not .any.",
        _tokens,
        lambda hit, real: _share((hit & real).any(-1)),
    ),
    (*EMPTY, _tokens, lambda hit, real: _share(_by_sentence(hit, real) == 1)),
    (*MOSTLY, _tokens, lambda hit, real: _share(_by_sentence(hit, real) >= 0.5)),
    (*MOSTLY, _tokens, lambda hit, real: _share(_by_sentence(hit, real) > 0.5)),
    (
        *COUNTS,
        lambda hit, real: (hit & real).sum().item(),
        lambda hit, real: len(hit) * _sentences(hit, real),
    ),
    (*COUNTS, _tokens, lambda hit, real: len(hit) * _sentences(hit, real)),
    (
        "percent in place of shares",
        "The result is from 0 to 1.",
        lambda hit, real: 100 * _tokens(hit, real),
        lambda hit, real: 100 * _sentences(hit, real),
    ),
    (
        "the two shares are exchanged",
        "First that of the tokens, then that of the sentences.",
        _sentences,
        _tokens,
    ),
    (
        "the same share twice",
        "A sentence is right only if all of its tokens are.",
        _tokens,
        _tokens,
    ),
)


def counted_by(
    logits: torch.Tensor,
    labels: torch.Tensor,
    pad: int = 0,
    *,
    real: Callable = lambda labels, said, pad: labels != pad,
    tokens: Count = _tokens,
    sentences: Count = _sentences,
) -> tuple[float, float]:
    """Compute both shares by rules that can be varied.

    Args:
        logits: (B, T, V).
        labels: (B, T).
        pad: the id of padding.
        real: which places count, (B, T), made of labels, what is said, and pad.
        tokens: makes the first share of what is right and what is real.
        sentences: makes the second.
    """
    said = logits.argmax(dim=-1)
    hit, counts = said == labels, real(labels, said, pad)
    return tokens(hit, counts), sentences(hit, counts)


for name, why, tokens, sentences in COUNTING:
    rules: dict[str, Callable] = {} if tokens is _tokens else {"tokens": tokens}
    rules |= {} if sentences is _sentences else {"sentences": sentences}
    accuracies.mistake(name, why)(partial(counted_by, **rules))

for real in (
    lambda labels, said, pad: said != pad,
    lambda labels, said, pad: (labels != pad) & (said != pad),
):
    accuracies.mistake(
        "padding is read from what the model says",
        "Which places are real is a matter of the labels: labels != pad_id. A model "
        "that says padding where a token belongs has made a mistake.",
    )(partial(counted_by, real=real))
accuracies.mistake(
    "pad_id is ignored",
    "Another tokenizer may pad with another id, and then 0 is the id of a token: "
    "labels != pad_id.",
    when=lambda logits, labels, pad=0: pad != 0,
)(partial(counted_by, real=lambda labels, said, pad: labels != 0))


@accuracies.mistake(
    "what is hidden is compared as 0",
    "said * real is 0 at the padding, and labels are pad_id there: the two agree only "
    "if padding is 0. A place counts as right if it is, or if it is padding: "
    "(said == labels) | ~real.",
    when=lambda logits, labels, pad=0: pad != 0,
)
def _(logits, labels, pad=0):
    said, real = logits.argmax(dim=-1), labels != pad
    return _tokens(said == labels, real), _share((said * real == labels).all(dim=-1))


@accuracies.mistake(
    "shifted once more",
    "logits[:, t] already scores labels[:, t]: shift_right has moved them.",
)
def _(logits, labels, pad=0):
    hit = logits.argmax(dim=-1)[:, :-1] == labels[:, 1:]
    real = labels[:, 1:] != pad
    return _tokens(hit, real), _sentences(hit, real)


# --- the check ------------------------------------------------------------------------


def _scored(generator: torch.Generator, pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw labels of several lengths, and logits that are right three times in four."""
    b, t, v = 9, 7, 11
    lengths = [t, 2, 3, t - 1, 1, 4, 2, 5, 2]
    labels = torch.full((b, t), pad)
    for row, length in enumerate(lengths):
        ids = torch.randint(2, v, (length,), generator=generator)
        labels[row, :length] = ids.masked_fill(ids == pad, 2 + (pad == 2))
    hit = torch.rand(b, t, generator=generator) < 0.75
    hit[1], hit[2, 0], hit[6] = True, False, True
    hit[3] = torch.arange(t) == 2  # one of six
    hit[8] = torch.arange(t) == 0  # one of two
    # where it is wrong, and nearly always where nothing is to be said, the model says
    # something else
    others = labels + torch.randint(1, v, (b, t), generator=generator)
    others[3, 0] = pad
    said = torch.where(hit & (labels != pad), labels, others % v)
    said[1, -1] = pad
    return normal(generator, b, t, v) + 12.0 * F.one_hot(said, v), labels


@chapter.check(section="translator-accuracy")
def forced_accuracy(student: StudentFunction, seed: int = 0) -> None:
    """By hand, nothing but padding in a row, counted one by one, another pad_id."""
    generator = seeded(seed)
    labels = torch.tensor([[5, 3, 0, 0], [4, 1, 2, 3]])
    said = torch.tensor([[5, 3, 1, 1], [4, 1, 1, 3]])
    cases = [Case("the example by hand", (4.0 * F.one_hot(said, 6).float(), labels))]
    for pad in (0, 1):
        logits, labels = _scored(generator, pad)
        on = f"logits {tuple(logits.shape)}, pad_id {pad}"
        cases.append(Case(on, (logits, labels, pad)))
    for case in cases:
        judge_parts(accuracies, _asked(student, case), case, NAMES)
    labels = torch.tensor([[3, 3, 0, 0], [4, 1, 2, 3], [0, 0, 0, 0]])
    said = torch.tensor([[3, 3, 1, 1], [4, 1, 1, 3], [2, 2, 2, 2]])
    on = "three rows, the last of nothing but padding"
    _judge_sentences(student, Case(on, (4.0 * F.one_hot(said, 6).float(), labels)))


def _asked(student: StudentFunction, case: Case) -> tuple:
    with accuracies.accidents_named():
        return expect_several(student(*case.inputs), NAMES, case.on)


def _judge_sentences(student: StudentFunction, case: Case) -> None:
    """Judge the second share alone: in the first one, an empty row may make a NaN."""
    mistakes = (
        replace(each, value=each.value[1]) for each in accuracies.known(*case.inputs)
    )
    expect.equal(
        _asked(student, case)[1],
        accuracies.right(case)[1],
        on=case.on,
        what=NAMES[1],
        mistakes=mistakes,
    )
