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


def _every(hit: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    return (hit | ~real).all(dim=-1)


def _parts(hit: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    return (hit & real).sum(dim=-1) / real.sum(dim=-1)


Count = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def counted_by(
    logits: torch.Tensor,
    labels: torch.Tensor,
    pad: int = 0,
    *,
    meets: Callable = lambda logits, labels: (logits, labels),
    says: Callable = lambda logits, pad: logits.argmax(dim=-1),
    real: Callable = lambda labels, said, pad: labels != pad,
    tokens: Count = lambda hit, real: hit[real],
    sentences: Count = _every,
    form: Callable = lambda tokens, sentences: (tokens, sentences),
) -> tuple[float, float]:
    """Compute both shares by rules that can be varied.

    Args:
        logits: (B, T, V).
        labels: (B, T).
        pad: the id of padding.
        meets: which logits are compared with which labels.
        says: the ids that are said, of the logits and pad.
        real: which places count, (B, T), made of labels, what is said, and pad.
        tokens: makes of what is right and what is real that of which the first share
            is the mean.
        sentences: likewise, of the second.
        form: what is made of the two.
    """
    logits, labels = meets(logits, labels)
    said = says(logits, pad)
    both = said == labels, real(labels, said, pad)
    return form(*(rule(*both).float().mean().item() for rule in (tokens, sentences)))


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
ESTIMATED = (
    "the share of sentences estimated, not counted",
    "Mistakes are not spread evenly: some sentences have several, others none. Ask of "
    "each sentence whether all of its real labels are said.",
)
ONE_TOKEN = (
    "one token decides about the sentence",
    "A sentence is right if all of its real tokens are.",
)
WRONG_ONES = (
    "the wrong ones counted in place of the right ones",
    "Both are shares of what is right.",
)
TWICE = "the same share twice", "A sentence is right only if all of its tokens are."
SAID = (
    "padding is read from what the model says",
    "Which places are real is a matter of the labels: labels != pad_id. A model that "
    "says padding where a token belongs has made a mistake.",
)
MOVED = (
    "shifted once more",
    "logits[:, t] already scores labels[:, t]: shift_right has moved them.",
)
for words in ("division by zero", "requires at least one data point"):
    accuracies.accident(words, *EMPTY)
Slip = tuple[str, str, str, Callable]
SLIPS: tuple[Slip, ...] = (
    (*SPOILT, "sentences", lambda hit, real: hit.all(-1)),
    (*SPOILT, "sentences", lambda hit, real: (hit & real).all(-1)),
    (*COUNTED, "tokens", lambda hit, real: hit),
    (*COUNTED, "tokens", lambda hit, real: hit.sum() / real.sum()),
    (*COUNTED, "sentences", lambda hit, real: hit.sum(-1) == real.sum(-1)),
    (*COUNTED, "sentences", lambda hit, real: hit.sum(-1) >= real.sum(-1)),
    (
        "padding counted as right",
        "Padding says nothing about the model: divide by the number of real labels.",
        "tokens",
        lambda hit, real: hit | ~real,
    ),
    (
        "padding counted as wrong",
        "Divide by the number of real labels, not by all places.",
        "tokens",
        lambda hit, real: hit & real,
    ),
    (
        "the mean of the sentences' shares",
        "Then a word of a short sentence counts more than one of a long one. Count all "
        "tokens that are right, and divide by all that are real.",
        "tokens",
        _parts,
    ),
    (
        "the mean of the positions' shares",
        "Then a word at a late position, of which there are few, counts more. Count "
        "all tokens that are right, and divide by all that are real.",
        "tokens",
        lambda hit, real: _parts(hit.T, real.T),
    ),
    (
        "a sentence with one right token counted",
        "All of its tokens have to be right: .all, not .any.",
        "sentences",
        lambda hit, real: (hit & real).any(-1),
    ),
    (
        "the positions in place of the sentences",
        "A row is a sentence: .all(dim=-1) looks along it. .all(dim=0) asks whether "
        "all sentences are right at a position.",
        "sentences",
        lambda hit, real: (hit | ~real).all(0),
    ),
    (
        "one verdict for all sentences",
        "Each row has a verdict of its own: name the axis, .all(dim=-1).",
        "sentences",
        lambda hit, real: (hit | ~real).all(),
    ),
    (
        "sentences divided by the number of tokens",
        "The second share is one of sentences: divide by their number.",
        "sentences",
        lambda hit, real: _every(hit, real).sum() / real.sum(),
    ),
    *(
        (
            "a sentence that is partly right counts in part",
            "A sentence is right or it is not: all of its real tokens have to be.",
            "sentences",
            lambda hit, real, least=least: (
                (hit & real).sum(-1) / real.sum(-1).clamp(min=least)
            ),
        )
        for least in (0, 1)
    ),
    (*EMPTY, "sentences", lambda hit, real: _parts(hit, real) == 1),
    (
        "a row of nothing but padding left out",
        "Such a row has no real label, so none of them is missed: it counts as right. "
        "Divide by the number of all rows.",
        "sentences",
        lambda hit, real: _every(hit, real)[real.any(-1)],
    ),
    (*MOSTLY, "sentences", lambda hit, real: _parts(hit, real) >= 0.5),
    (*MOSTLY, "sentences", lambda hit, real: _parts(hit, real) > 0.5),
    *(
        (
            *ESTIMATED,
            "sentences",
            lambda hit, real, power=power: hit[real].float().mean() ** power(real),
        )
        for power in (
            lambda real: real.sum(-1).float().mean(),
            lambda real: real.sum(-1).amax(),
            lambda real: real.shape[-1],
            lambda real: real.sum(-1),
        )
    ),
    (*ONE_TOKEN, "sentences", lambda hit, real: (hit | ~real)[:, 0]),
    (
        *ONE_TOKEN,
        "sentences",
        lambda hit, real: hit.gather(1, real.sum(-1, keepdim=True) - 1),
    ),
    (*COUNTS, "sentences", lambda hit, real: _every(hit, real).sum()),
    (*COUNTS, "tokens", lambda hit, real: hit[real].sum()),
    (*WRONG_ONES, "sentences", lambda hit, real: ~_every(hit, real)),
    (*WRONG_ONES, "tokens", lambda hit, real: ~hit[real]),
    (
        "percent in place of shares",
        "The result is from 0 to 1.",
        "form",
        lambda tokens, sentences: (100 * tokens, 100 * sentences),
    ),
    (
        "the two shares are exchanged",
        "First that of the tokens, then that of the sentences.",
        "form",
        lambda tokens, sentences: (sentences, tokens),
    ),
    (*TWICE, "form", lambda tokens, sentences: (tokens, tokens)),
    (*TWICE, "form", lambda tokens, sentences: (sentences, sentences)),
    (*SAID, "real", lambda labels, said, pad: said != pad),
    (*SAID, "real", lambda labels, said, pad: (labels != pad) & (said != pad)),
    (*SAID, "real", lambda labels, said, pad: (labels != pad) | (said != pad)),
    (
        "the least likely token is taken",
        "The model says the token with the largest logit: argmax, not argmin.",
        "says",
        lambda logits, pad: logits.argmin(dim=-1),
    ),
    (
        "the model may not say padding",
        "The logit of padding was taken away, and the second best token judged. A "
        "model that says padding where a token belongs has made a mistake: it counts.",
        "says",
        lambda logits, pad: logits.index_fill(
            -1, torch.tensor([pad]), -torch.inf
        ).argmax(dim=-1),
    ),
    (*MOVED, "meets", lambda logits, labels: (logits[:, :-1], labels[:, 1:])),
    (*MOVED, "meets", lambda logits, labels: (logits[:, 1:], labels[:, :-1])),
)
for name, why, key, rule in SLIPS:
    accuracies.mistake(name, why)(partial(counted_by, **{key: rule}))

for name, why, tokens, sentences in (
    (*COUNTED, lambda hit, real: hit, lambda hit, real: hit.all(-1)),
    (
        *COUNTS,
        lambda hit, real: hit[real].sum(),
        lambda hit, real: _every(hit, real).sum(),
    ),
    (
        *WRONG_ONES,
        lambda hit, real: ~hit[real],
        lambda hit, real: ~_every(hit, real),
    ),
):
    accuracies.mistake(name, why)(
        partial(counted_by, tokens=tokens, sentences=sentences)
    )

OTHER_ID: tuple[Slip, ...] = (
    (
        "pad_id is ignored",
        "Another tokenizer may pad with another id, and then 0 is the id of a token: "
        "labels != pad_id.",
        "real",
        lambda labels, said, pad: labels != 0,
    ),
    (
        "ids below pad_id taken for padding",
        "pad_id is one id among the others: labels != pad_id.",
        "real",
        lambda labels, said, pad: labels > pad,
    ),
    (
        "what is hidden is compared as 0",
        "said * real is 0 at the padding, and labels are pad_id there: the two agree "
        "only if padding is 0. A place counts as right if it is, or if it is padding: "
        "(said == labels) | ~real.",
        "sentences",
        lambda hit, real: (hit & real).all(-1),
    ),
)
for name, why, key, rule in OTHER_ID:
    accuracies.mistake(name, why, when=lambda logits, labels, pad=0: pad != 0)(
        partial(counted_by, **{key: rule})
    )


# --- the check ------------------------------------------------------------------------


def _scored(generator: torch.Generator, pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw labels of several lengths, and logits that are right three times in four."""
    b, t, v = 10, 7, 11
    lengths = [t, 2, 3, t - 1, 1, 4, t, 5, 2, 3]
    labels = torch.full((b, t), pad)
    for row, length in enumerate(lengths):
        ids = torch.randint(v - 1, (length,), generator=generator)
        labels[row, :length] = ids + (ids >= pad)  # any id but that of padding
    hit = torch.rand(b, t, generator=generator) < 0.75
    hit[[1, 2, 4, 5, 6]], hit[[2, 5], 0] = True, False
    hit[0, 0], hit[0, -1] = True, False
    hit[3] = torch.arange(t) == 2  # one of six
    hit[8] = torch.arange(t) == 0  # one of two
    hit[9] = torch.arange(t) != 1  # two of three
    # where it is wrong, and nearly always where nothing is to be said, the model says
    # something else
    others = labels + torch.randint(1, v, (b, t), generator=generator)
    others[3, 0] = pad
    said = torch.where(hit & (labels != pad), labels, others % v)
    said[[1, 2, 4], -1] = pad  # in row 2, as many hits as labels, one at the padding
    said[1, -2] = pad
    return normal(generator, b, t, v) + 12.0 * F.one_hot(said, v), labels


@chapter.check(section="translator-accuracy")
def forced_accuracy(student: StudentFunction, seed: int = 0) -> None:
    """By hand, nothing but padding in a row, counted one by one, another pad_id."""
    generator = seeded(seed)
    labels = torch.tensor([[5, 3, 0, 0], [4, 1, 2, 3]])
    said = torch.tensor([[5, 3, 1, 1], [4, 1, 1, 3]])
    cases = [Case("the example by hand", (4.0 * F.one_hot(said, 6).float(), labels))]
    for pad in (0, 4):
        logits, labels = _scored(generator, pad)
        on = f"logits {tuple(logits.shape)}, pad_id {pad}"
        cases.append(Case(on, (logits, labels, pad)))
    for case in cases:
        judge_parts(accuracies, _asked(student, case), case, NAMES)
    labels = torch.tensor([[3, 3, 5, 0], [4, 1, 2, 3], [5, 4, 0, 0], [0, 0, 0, 0]])
    said = torch.tensor([[3, 3, 5, 1], [4, 1, 1, 3], [5, 4, 1, 1], [2, 2, 2, 2]])
    on = "four rows, the last of nothing but padding"
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
