"""BLEU: how many runs of tokens a translation shares with another."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from autograder import expect
from autograder.chapters.decoder.writing.chapter import chapter
from autograder.exercise.inputs import Source, WholeNumbers, draw_several, draw_whole
from autograder.exercise.spec import Case, Function
from autograder.expect import show
from autograder.interface import Data, StudentFunction

Corpus = list[list[str]]
Lengths = list[int]
Grams = list[Counter]  # of each text
Counts = list[tuple[int, int]]  # of each text: n-grams that match, and all


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


def _clipped(mine: Counter, other: Counter) -> int:
    return (mine & other).total()


def _distinct(mine: Counter, other: Counter) -> int:
    return len(mine.keys() & other.keys())


def _added(counts: Counts) -> tuple[float, float]:
    return sum(found for found, _ in counts), sum(there for _, there in counts)


def _brevity(c: int, r: int) -> float:
    return 1.0 if c > r else math.exp(1 - r / c)


def _average(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def _together(penalty: Callable[[int, int], float]) -> Callable:
    """Take one penalty for the corpus."""
    return lambda ours, theirs: penalty(sum(ours), sum(theirs))


def _each(combined: Callable) -> Callable:
    """Combine the penalties of the sentences."""

    def penalty(ours: Lengths, theirs: Lengths) -> float:
        lengths = zip(ours, theirs, strict=True)
        return combined([_brevity(max(c, 1), r) for c, r in lengths])

    return penalty


def _root(shares: list[float], count: int) -> float:
    return math.prod(shares) ** (1 / count) if count else 0.0


ONE_PENALTY = _together(_brevity)


def _score(
    hypotheses: Corpus,
    references: Corpus,
    maximum: int = 4,
    *,
    lengths: Callable = lambda maximum: range(1, maximum + 1),
    grams: Callable[[list[str], int], Counter] = _grams,
    pairs: Callable[[Grams, Grams], Iterable] = zip,
    match: Callable[[Counter, Counter], int] = _clipped,
    number: Callable = lambda mine, other, text, n: mine.total(),
    add_up: Callable[[Counts], tuple[float, float]] = _added,
    more: Callable[[int], int] = lambda n: 0,
    skip: Callable[[float, float], bool] = lambda found, there: False,
    absent: Callable[[], float] | None = None,
    least: Callable[[float], float] = lambda share: share,
    mean: Callable = lambda shares, maximum: _root(shares, len(shares)),
    penalty: Callable[[Lengths, Lengths], float] = ONE_PENALTY,
    whole: Callable = lambda penalty, mean, maximum: penalty * mean,
    full: Callable[[float], float] = lambda score: 100 * score,
) -> float:
    """BLEU by rules that can be varied.

    Args:
        hypotheses: texts.
        references: a text for each.
        maximum: the longest n-grams.
        lengths: of the n-grams, from ``maximum``.
        grams: of a text, counted.
        pairs: which n-grams of hypotheses are looked for in which of references.
        match: how many of some are among others.
        number: how many there are, of both, the text, and n.
        add_up: all matches and n-grams from those of the sentences.
        more: is added to both, for each n.
        skip: whether a length is left out, from both.
        absent: the precision where no n-gram is that long; None: the score is 0.
        least: a precision, from one that may be 0.
        mean: of the precisions; it is told ``maximum`` as well.
        penalty: of the lengths of hypotheses and references.
        whole: penalty and mean together.
        full: what is made of the score.
    """
    shares = []
    for n in lengths(maximum):
        sides = ([grams(x, n) for x in side] for side in (hypotheses, references))
        counts = [
            (match(mine, other), number(mine, other, text, n))
            for (mine, other), text in zip(pairs(*sides), hypotheses, strict=False)
        ]
        found, there = (each + more(n) for each in add_up(counts))
        if not skip(found, there):
            if not there and absent is None:
                return 0.0
            shares.append(absent() if absent and not there else least(found / there))
    sizes = [[len(text) for text in side] for side in (hypotheses, references)]
    if not any(sizes[0]):
        return 0.0
    return full(whole(penalty(*sizes), mean(shares, maximum), maximum))


def _bleu(
    hypotheses: Corpus,
    references: Corpus,
    maximum: int = 4,
    *,
    apart: bool = False,
    joined: bool = False,
    **rules: Any,
) -> float:
    """BLEU by rules of ``_score``, and two for the sentences.

    ``apart``: each for itself, and then the mean; ``joined``: all as one.
    """
    if joined:
        hypotheses, references = ([[*chain(*s)]] for s in (hypotheses, references))
    if not apart:
        return _score(hypotheses, references, maximum, **rules)
    alone = zip(hypotheses, references, strict=True)
    return _average([_score([a], [b], maximum, **rules) for a, b in alone])


def _shares(counts: Counts) -> list[float]:
    return [found / there for found, there in counts if there]


ONCE = (
    "each n-gram counts once",
    "Sets forget how often an n-gram occurs. Count with a Counter.",
)
ELSEWHERE = (
    "matched in another sentence",
    "The n-grams of all sentences were put into one pot, and some are in another "
    "sentence's reference. Clip each sentence by its own reference, then add up.",
)
SENTENCES = (
    "the mean of sentence precisions",
    "The precision of each sentence was computed, and then the mean. Add matches "
    "and n-grams up over the corpus, and divide once.",
)
PENALTIES = (
    "a brevity penalty for each sentence",
    "c and r are the tokens of all hypotheses and of all references: add up first, "
    "then take one penalty for the corpus.",
)
ARITHMETIC = (
    "the arithmetic mean of the precisions",
    "The mean of BLEU is the geometric one, the exponential of the mean logarithm: it "
    "is 0 as soon as one precision is.",
)
FEW = "one length too few", "range(1, maximum) ends before maximum."
SMOOTHED = (
    "smoothed",
    "1 was added to matches and n-grams. That is another score; here a precision "
    "of 0 makes BLEU 0.",
)
SKIPPED = (
    "lengths without a match are skipped",
    "A precision of 0 makes the geometric mean 0. Leaving it out rewards a text "
    "without a single longer match.",
)
NO_RUNS = (
    "lengths without n-grams are skipped",
    "If no hypothesis has n tokens, there are no n-grams of this length, and the "
    "result is 0. Leaving the length out rewards texts that are too short for it.",
)
TINY = (
    "a small number in place of 0",
    "A precision of 0 makes BLEU 0, and not a small number: return 0 before the "
    "logarithm is taken.",
)
LOGARITHM = (
    "the logarithm of 0",
    "One precision is 0. The result is 0 then: return before the logarithm.",
)
DIVIDED = (
    "no n-grams of this length",
    "Hypotheses shorter than n have no n-grams, and nothing is divided by 0. The "
    "result is 0 if there are none in the whole corpus.",
)
OVER: tuple[dict, ...] = {}, {"mean": _root}  # the lengths that are left, or all
overlap.slips(
    _bleu,
    (
        "counts are not clipped",
        "An n-gram counts at most as often as its reference has it; otherwise 'Bobby "
        "Bobby Bobby' is perfect. Take the smaller of the two counts.",
        {"match": lambda mine, other: sum(mine[gram] for gram in mine.keys() & other)},
    ),
    (*ONCE, {"match": _distinct, "number": lambda mine, *_: len(mine)}),
    (*ONCE, {"match": _distinct}),
    (
        "counted as often as the reference has it",
        "An n-gram matches at most as often as the hypothesis has it, too. Take the "
        "smaller of the two counts.",
        {"match": lambda mine, other: sum(other[gram] for gram in mine)},
    ),
    (
        "the larger of the two counts",
        "Clipping takes the smaller count of each n-gram: a & b, not a | b.",
        {"match": lambda mine, other: (mine | other).total()},
    ),
    (
        "fewer than no n-grams",
        "A text of fewer than n tokens has 0 n-grams, and len(text) − n + 1 is below "
        "0: it takes away from those of the other sentences. Count the n-grams, or "
        "take max(0, len(text) − n + 1).",
        {"number": lambda mine, other, text, n: len(text) - n + 1},
    ),
    (
        "divided by the number of tokens",
        "A text of m tokens has m − n + 1 n-grams: divide by their number.",
        {"number": lambda mine, other, text, n: len(text)},
    ),
    (
        "recall in place of precision",
        "The matches were divided by the n-grams of the references. p_n is a share of "
        "the hypotheses' n-grams.",
        {"number": lambda mine, other, *_: other.total()},
    ),
    (
        "the last n-gram is missing",
        "A text of m tokens has m − n + 1 n-grams: range(len(tokens) − n + 1).",
        {"grams": lambda text, n: _grams(text[:-1], n)},
    ),
    (
        "the n-grams do not overlap",
        "An n-gram begins at every token: the next one is one token further on, not n.",
        {
            "grams": lambda text, n: Counter(
                tuple(text[i : i + n]) for i in range(0, len(text) - n + 1, n)
            )
        },
    ),
    (
        "shorter runs at the end",
        "The slices at the end of a text are shorter than n, and no n-grams: "
        "range(len(tokens) − n + 1).",
        {
            "grams": lambda text, n: Counter(
                tuple(text[i : i + n]) for i in range(len(text))
            )
        },
    ),
    (
        "the mean of sentence scores",
        "Each sentence got its own score. Matches and n-grams are added up over the "
        "whole corpus first, and divided once.",
        {"apart": True},
    ),
    (
        *ELSEWHERE,
        {
            "pairs": lambda ours, theirs: [
                (sum(ours, Counter()), sum(theirs, Counter()))
            ]
        },
    ),
    (
        *ELSEWHERE,
        {"pairs": lambda ours, theirs: [(x, sum(theirs, Counter())) for x in ours]},
    ),
    (
        "n-grams reach from sentence to sentence",
        "The sentences were put together to one text, so some n-grams begin in one and "
        "end in the next. Count those of each sentence, then add up.",
        {"joined": True},
    ),
    (
        *SENTENCES,
        {"add_up": lambda counts: (sum(_shares(counts)), len(_shares(counts)))},
    ),
    (*SENTENCES, {"add_up": lambda counts: (sum(_shares(counts)), len(counts))}),
    (
        "no brevity penalty",
        "Precision alone rewards a text of one sure word. If the hypotheses have no "
        "more tokens than the references, multiply by exp(1 − r/c).",
        {"penalty": lambda ours, theirs: 1.0},
    ),
    (
        "the brevity penalty is turned round",
        "Long texts paid and short ones did not. c are the tokens of the hypotheses, r "
        "those of the references: exp(1 − r/c) if c is not larger than r.",
        {"penalty": _together(lambda c, r: _brevity(r, c))},
    ),
    (
        "the penalty grows with short texts",
        "1 − c/r is positive when the text is too short. The penalty is exp(1 − r/c), "
        "at most 1.",
        {"penalty": _together(lambda c, r: math.exp(max(0, 1 - c / r)))},
    ),
    (
        "a reward for long texts",
        "exp(1 − r/c) is above 1 when c is larger than r. There the penalty is 1.",
        {"penalty": _together(lambda c, r: math.exp(1 - r / c))},
    ),
    (
        "a ratio in place of the exponential",
        "The penalty is exp(1 − r/c), not c/r.",
        {"penalty": _together(lambda c, r: min(1.0, c / r))},
    ),
    (*PENALTIES, {"penalty": _each(_average)}),
    (*PENALTIES, {"penalty": _each(math.prod)}),
    (
        "the penalty is under the root",
        "The root is that of the precisions alone; the penalty multiplies their mean.",
        {"whole": lambda penalty, mean, maximum: penalty ** (1 / maximum) * mean},
    ),
    (*ARITHMETIC, {"mean": lambda shares, _: _average(shares)}),
    (*ARITHMETIC, {"mean": lambda shares, _: _average(shares), "absent": lambda: 0.0}),
    (*ARITHMETIC, {"mean": lambda shares, _: _average(shares) * all(shares)}),
    (
        "the product without the root",
        "The logarithms are averaged: divide their sum by N before the exponential.",
        {"mean": lambda shares, _: math.prod(shares)},
    ),
    (
        "the root is always the fourth",
        "The sum of the logarithms is divided by N, which is the argument maximum.",
        {"mean": lambda shares, _: _root(shares, 4)},
    ),
    (
        "the exponential is missing",
        "The mean of the logarithms is a logarithm, and below 0: take its exponential.",
        {"mean": lambda shares, _: math.log(_root(shares, len(shares)))},
    ),
    (
        "only the longest n-grams",
        "All lengths from 1 to N count: the geometric mean of p_1 to p_N.",
        {"mean": lambda shares, _: shares[-1]},
    ),
    (
        "always up to four",
        "The argument maximum says how long the n-grams become, and by what the sum of "
        "logarithms is divided.",
        {"lengths": lambda maximum: range(1, 5)},
    ),
    *((*FEW, {"lengths": lambda maximum: range(1, maximum), **mean}) for mean in OVER),
    (
        "lengths from 0",
        "range(maximum) begins at 0 and ends at maximum − 1. Here n goes from 1 to N.",
        {"lengths": range},
    ),
    (
        "single tokens are left out",
        "n goes from 1 to N: p_1 is the share of single tokens.",
        {"lengths": lambda maximum: range(2, maximum + 1)},
    ),
    (*SMOOTHED, {"more": lambda n: n > 1}),
    (*SMOOTHED, {"more": lambda n: 1}),
    *(
        (*TINY, {"least": partial(max, tiny), "absent": lambda tiny=tiny: tiny})
        for tiny in (1e-12, 1e-10, 1e-9, 1e-8, 1e-6)
    ),
    *((*SKIPPED, {"skip": lambda found, _: not found, **mean}) for mean in OVER),
    *((*NO_RUNS, {"skip": lambda _, there: not there, **mean}) for mean in OVER),
    (
        "from 0 to 1",
        "By custom BLEU runs from 0 to 100: multiply by 100.",
        {"full": lambda score: score},
    ),
    (
        "rounded",
        "Return the number as it is; how it is printed is another matter.",
        {"full": lambda score: round(100 * score, 2)},
    ),
    (
        *LOGARITHM,
        {"mean": lambda ps, _: math.exp(sum(math.log(p) for p in ps) / len(ps))},
    ),
    (*DIVIDED, {"absent": lambda: 0 / 0}),
)
for words in ("math domain", "positive input"):
    overlap.accident(words, *LOGARITHM)
overlap.accident("division by zero", *DIVIDED)

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
