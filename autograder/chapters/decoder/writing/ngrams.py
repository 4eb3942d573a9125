"""BLEU: how many runs of tokens a translation shares with another."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from autograder import expect
from autograder.chapters.decoder.writing.chapter import chapter
from autograder.exercise.inputs import Source, WholeNumbers, draw_several, draw_whole
from autograder.exercise.spec import Case, Function
from autograder.expect import show
from autograder.interface import Data, StudentFunction

Corpus = list[list[str]]
Lengths = list[int]


def _sacrebleu(hypotheses: list, references: list, maximum: int = 4) -> float:
    """Compute the score with sacrebleu; on a page, which has none, by the rules below.

    A test compares the two.
    """
    try:
        metric = _metric(maximum)
    except ModuleNotFoundError:
        return _bleu(hypotheses, references, maximum)
    texts = [[" ".join(text) for text in side] for side in (hypotheses, references)]
    return float(metric.corpus_score(texts[0], [texts[1]]).score)


def _metric(maximum: int):
    from sacrebleu.metrics import BLEU  # slow to import, and needed here alone

    return BLEU(
        tokenize="none", smooth_method="none", force=True, max_ngram_order=maximum
    )


overlap = Function("bleu", "bleu", _sacrebleu)

# --- what goes wrong ------------------------------------------------------------------


def _grams(text: list[str], n: int) -> Counter:
    return Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))


def _matches(
    ours: list[str], theirs: list[str], n: int, mode: str = "clip"
) -> tuple[int, int]:
    """Return how many n-grams match, and how many there are."""
    mine, other = _grams(ours, n), _grams(theirs, n)
    if mode in ("once", "matched once"):
        there = len(mine) if mode == "once" else mine.total()
        return len(mine.keys() & other.keys()), there
    if mode == "all":
        return sum(c for gram, c in mine.items() if gram in other), mine.total()
    both = sum(min(count, other[gram]) for gram, count in mine.items())
    if mode == "below":
        return both, len(ours) - n + 1
    return both, (other if mode == "recall" else mine).total()


def _brevity(c: int, r: int) -> float:
    return 1.0 if c > r else math.exp(1 - r / c)


def _average(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def _together(penalty: Callable[[int, int], float]) -> Callable:
    """Take one penalty for the corpus."""
    return lambda ours, theirs: penalty(sum(ours), sum(theirs))


ONE_PENALTY = _together(_brevity)


def _each(combined: Callable) -> Callable:
    """Combine the penalties of the sentences."""

    def penalty(ours: Lengths, theirs: Lengths) -> float:
        lengths = zip(ours, theirs, strict=True)
        return combined([_brevity(max(c, 1), r) for c, r in lengths])

    return penalty


def _score(
    hypotheses: Corpus,
    references: Corpus,
    maximum: int = 4,
    *,
    mode: str = "clip",
    penalty: Callable[[Lengths, Lengths], float] = ONE_PENALTY,
    add: int = 0,
    skip: bool = False,
    absent: str = "stop",
    mean: Callable = lambda ps: math.prod(ps) ** (1 / len(ps)),
    full: float = 100,
) -> float:
    """BLEU by rules that can be varied.

    Args:
        hypotheses: texts.
        references: a text for each.
        maximum: the longest n-grams.
        mode: how they are counted.
        penalty: of the lengths of hypotheses and references.
        add: to both counts of n-grams of more than one token.
        skip: whether lengths without a match are left out.
        absent: what to do where no n-gram is that long.
        mean: of the precisions.
        full: the score of a perfect text.
    """
    shares = []
    for n in range(1, maximum + 1):
        pairs = zip(hypotheses, references, strict=True)
        counts = [_matches(*pair, n, mode) for pair in pairs]
        found, there = (sum(column) for column in zip(*counts, strict=True))
        plus = add if n > 1 else 0
        if skip and not found:
            continue
        if not there + plus and absent == "stop":
            return 0.0
        none = not there + plus and absent == "zero"
        shares.append(0.0 if none else (found + plus) / (there + plus))
    if not shares:
        return 0.0
    lengths = [[len(text) for text in side] for side in (hypotheses, references)]
    return full * penalty(*lengths) * mean(shares) if any(lengths[0]) else 0.0


def _bleu(
    hypotheses: Corpus,
    references: Corpus,
    maximum: int = 4,
    *,
    apart: bool = False,
    **rules: Any,
) -> float:
    """BLEU by rules of ``_score``; ``apart``: each sentence for itself, averaged."""
    if not apart:
        return _score(hypotheses, references, maximum, **rules)
    pairs = zip(hypotheses, references, strict=True)
    return _average([_score([a], [b], maximum, **rules) for a, b in pairs])


def _with_shares(share: Callable[[Corpus, Corpus, int], float]) -> Callable:
    """Make a mistake of what is taken for the share of n-grams that match."""

    def answer(hypotheses: Corpus, references: Corpus, maximum: int = 4) -> float:
        shares = [share(hypotheses, references, n) for n in range(1, maximum + 1)]
        if not all(shares):
            return 0.0
        lengths = [[len(text) for text in side] for side in (hypotheses, references)]
        mean = math.exp(sum(map(math.log, shares)) / maximum)
        return 100 * ONE_PENALTY(*lengths) * mean

    return answer


def _mean_of_sentences(hypotheses: Corpus, references: Corpus, n: int) -> float:
    pairs = zip(hypotheses, references, strict=True)
    counts = [_matches(*pair, n) for pair in pairs]
    shares = [found / there for found, there in counts if there]
    return _average(shares) if shares else 0.0


def _in_one_pot(hypotheses: Corpus, references: Corpus, n: int) -> float:
    ours, theirs = (
        sum((_grams(text, n) for text in side), Counter())
        for side in (hypotheses, references)
    )
    return (ours & theirs).total() / max(1, ours.total())


def _without_longest(
    hypotheses: Corpus, references: Corpus, maximum: int = 4, *, divisor: int = 0
) -> float:
    """Leave out the longest n-grams; divide by maximum − 1 and ``divisor``."""
    if maximum == 1:
        c, r = sum(map(len, hypotheses)), sum(map(len, references))
        return 100 * _brevity(c, r) * divisor
    root = 1 / (maximum - 1 + divisor)
    return _bleu(
        hypotheses, references, maximum - 1, mean=lambda ps: math.prod(ps) ** root
    )


overlap.mistake(
    "counts are not clipped",
    "An n-gram counts at most as often as its reference has it; otherwise 'Bobby "
    "Bobby Bobby' is perfect. Take the smaller of the two counts.",
)(partial(_bleu, mode="all"))
for mode in ("once", "matched once"):
    overlap.mistake(
        "each n-gram counts once",
        "Sets forget how often an n-gram occurs. Count with a Counter.",
    )(partial(_bleu, mode=mode))
overlap.mistake(
    "fewer than no n-grams",
    "A text of fewer than n tokens has 0 n-grams, and len(text) − n + 1 is below 0: it "
    "takes away from those of the other sentences. Count the n-grams, or take "
    "max(0, len(text) − n + 1).",
)(partial(_bleu, mode="below"))
overlap.mistake(
    "recall in place of precision",
    "The matches were divided by the n-grams of the references. p_n is a share of "
    "the hypotheses' n-grams.",
)(partial(_bleu, mode="recall"))
overlap.mistake(
    "the mean of sentence scores",
    "Each sentence got its own score. Matches and n-grams are added up over the "
    "whole corpus first, and divided once.",
)(partial(_bleu, apart=True))
overlap.mistake(
    "matched in another sentence",
    "The n-grams of all sentences were put into one pot, and some are in another "
    "sentence's reference. Clip each sentence by its own reference, then add up.",
)(_with_shares(_in_one_pot))
overlap.mistake(
    "the mean of sentence precisions",
    "The precision of each sentence was computed, and then the mean. Add matches "
    "and n-grams up over the corpus, and divide once.",
)(_with_shares(_mean_of_sentences))
overlap.mistake(
    "no brevity penalty",
    "Precision alone rewards a text of one sure word. If the hypotheses have no "
    "more tokens than the references, multiply by exp(1 − r/c).",
)(partial(_bleu, penalty=_together(lambda c, r: 1.0)))
overlap.mistake(
    "the brevity penalty is turned round",
    "Long texts paid and short ones did not. c are the tokens of the hypotheses, r "
    "those of the references: exp(1 − r/c) if c is not larger than r.",
)(partial(_bleu, penalty=_together(lambda c, r: _brevity(r, c))))
overlap.mistake(
    "the penalty grows with short texts",
    "1 − c/r is positive when the text is too short. The penalty is exp(1 − r/c), "
    "at most 1.",
)(partial(_bleu, penalty=_together(lambda c, r: math.exp(max(0, 1 - c / r)))))
overlap.mistake(
    "a reward for long texts",
    "exp(1 − r/c) is above 1 when c is larger than r. There the penalty is 1.",
)(partial(_bleu, penalty=_together(lambda c, r: math.exp(1 - r / c))))
overlap.mistake(
    "a ratio in place of the exponential", "The penalty is exp(1 − r/c), not c/r."
)(partial(_bleu, penalty=_together(lambda c, r: min(1.0, c / r))))
for combined in (_average, math.prod):
    overlap.mistake(
        "a brevity penalty for each sentence",
        "c and r are the tokens of all hypotheses and of all references: add up first, "
        "then take one penalty for the corpus.",
    )(partial(_bleu, penalty=_each(combined)))
ARITHMETIC = (
    "the arithmetic mean of the precisions",
    "The mean of BLEU is the geometric one, the exponential of the mean logarithm: it "
    "is 0 as soon as one precision is.",
)
for rules in (
    {"mean": _average},
    {"mean": _average, "absent": "zero"},
    {"mean": lambda ps: _average(ps) if all(ps) else 0.0},
):
    overlap.mistake(*ARITHMETIC)(partial(_bleu, **rules))
overlap.mistake(
    "the product without the root",
    "The logarithms are averaged: divide their sum by N before the exponential.",
)(partial(_bleu, mean=math.prod))
overlap.mistake(
    "only the longest n-grams",
    "All lengths from 1 to N count: the geometric mean of p_1 to p_N.",
)(partial(_bleu, mean=lambda ps: ps[-1]))
overlap.mistake(
    "always up to four",
    "The argument maximum says how long the n-grams become, and by what the sum of "
    "logarithms is divided.",
)(lambda hypotheses, references, maximum=4: _bleu(hypotheses, references, 4))
for divisor in (0, 1):
    overlap.mistake("one length too few", "range(1, maximum) ends before maximum.")(
        partial(_without_longest, divisor=divisor)
    )
overlap.mistake(
    "smoothed",
    "1 was added to matches and n-grams. That is another score; here a precision "
    "of 0 makes BLEU 0.",
)(partial(_bleu, add=1))
overlap.mistake(
    "lengths without a match are skipped",
    "A precision of 0 makes the geometric mean 0. Leaving it out rewards a text "
    "without a single longer match.",
)(partial(_bleu, skip=True))
overlap.mistake("from 0 to 1", "By custom BLEU runs from 0 to 100: multiply by 100.")(
    partial(_bleu, full=1)
)


LOGARITHM = "One precision is 0. The result is 0 then: return before the logarithm."
DIVIDED = (
    "Hypotheses shorter than n have no n-grams, and nothing is divided by 0. The "
    "result is 0 if there are none in the whole corpus."
)
overlap.mistake("the logarithm of 0", LOGARITHM)(
    partial(_bleu, mean=lambda ps: math.exp(sum(map(math.log, ps)) / len(ps)))
)
overlap.mistake("no n-grams of this length", DIVIDED)(partial(_bleu, absent="divide"))
for words in ("math domain", "positive input"):
    overlap.accident(words, "the logarithm of 0", LOGARITHM)
overlap.accident("division by zero", "no n-grams of this length", DIVIDED)

# --- the check ------------------------------------------------------------------------


def _corpus(source: Source, sentences: int, words: int, shorter: int) -> tuple:
    """Draw references, and hypotheses that copy them with errors."""
    vocabulary = ["Bobby", "mag", "süße", "Beeren", ".", "Anna", "und", "rote", "isst"]
    references, hypotheses = [], []
    for number in range(sentences):
        length = 5 + draw_whole(source, 8) + 3 * (number % 2)
        picks = draw_several(source, 0, words, length)
        reference = [vocabulary[pick] for pick in picks]
        ours = [
            word if draw_whole(source, 5) else vocabulary[draw_whole(source, words)]
            for word in reference
        ]
        change = shorter + draw_whole(source, 3) - 1
        ours = ours[: length - change] if change > 0 else ours + ours[:-change]
        references.append(reference)
        hypotheses.append(ours)
    return hypotheses, references


def _cases(seed: int) -> Iterator[Case]:
    """By hand, random corpora of both lengths, short sentences, and zeros."""
    source = WholeNumbers(seed)
    reference = [["Bobby", "mag", "süße", "Beeren", "."]]
    for text, right in (
        ("Bobby mag Bobby mag Beeren .", 100 * math.sqrt(4 / 6 * 2 / 5)),
        ("Bobby mag Beeren .", 100 * math.exp(1 - 5 / 4) * math.sqrt(2 / 3)),
    ):
        on = f"{text!r}, maximum 2, by hand"
        yield Case(on, ([text.split()], reference, 2), right)
    for sentences, words, shorter, maximum in (
        (6, 5, 2, 4),
        (5, 4, -2, 4),
        (7, 9, 1, 3),
        (4, 5, 0, 2),
        (8, 6, 2, 1),
        (5, 3, -1, 5),
    ):
        hypotheses, references = _corpus(source, sentences, words, shorter)
        on = (
            f"{sentences} sentences, {sum(map(len, hypotheses))} tokens for "
            f"{sum(map(len, references))}, maximum {maximum}"
        )
        yield Case(on, (hypotheses, references, maximum))
    short = [["Bobby"], ["mag", "Beeren"], *hypotheses]
    whole = [["Bobby", "mag"], ["mag", "süße", "Beeren"], *references]
    yield Case("two of the sentences are shorter than four tokens", (short, whole, 4))
    for on, text in (
        ("no run of four tokens is right", "Bobby mag rote Beeren ."),
        ("no token is right", "Anna isst"),
        ("no run of four tokens is there", "Bobby mag süße"),
    ):
        yield Case(f"{on}: {text!r}", ([text.split()], reference), 0.0)


@chapter.check(section="decoder-bleu")
def bleu(student: StudentFunction, seed: int = 0) -> None:
    """Check by hand, sacrebleu's score of random corpora, both lengths, and zeros."""
    for case in _cases(seed):
        with overlap.accidents_named():
            got = student(*case.inputs)
        _expect_score(got, case)
        overlap.compare(got, replace(case, what="BLEU"))


def _expect_score(got: Data, case: Case) -> None:
    say = {"on": case.on, "got": show(got), "expected": "a float from 0 to 100"}
    expect.form(got, 0.0, on=case.on)
    why = "The function ends without `return`." if got is None else ""
    number = type(got) in (int, float)
    expect.true(number, "the result is not a number", why=why, **say)
    expect.true(not math.isnan(got), "the result is nan", **say)
