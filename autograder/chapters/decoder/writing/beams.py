"""Beam search: several texts at once, and the best of them."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch

from autograder import expect
from autograder.chapters.decoder.writing.chapter import DEEP, chapter
from autograder.chapters.decoder.writing.greedy import ONLY_LAST
from autograder.chapters.decoder.writing.language import (
    Language,
    by_hand,
    draw_language,
    expect_ids,
    load_model,
    most_probable,
    name_several,
)
from autograder.exercise.inputs import draw_whole, seeded
from autograder.exercise.spec import UNASKED, Case, Function
from autograder.expect import refuse_if, show
from autograder.forms import several
from autograder.interface import Data, StudentFunction, StudentModule

Draft = tuple[float, list[int]]  # the sum of a hypothesis, its ids


def beam(
    model: Callable[[torch.Tensor], torch.Tensor],
    prefix: list[int],
    eos_id: int,
    width: int,
    limit: int,
    alpha: float = 0.0,
    *,
    see: Callable = lambda ids: ids,
    gains: Callable = lambda logits: logits.log_softmax(-1),
    each: bool = False,
    free: str = "",
    shrink: bool = False,
    go_on: bool = False,
    cut: bool = False,
    first: int = 0,
    uncounted: bool = False,
    pool: str = "both",
    score: Callable = lambda total, new, whole, alpha: total / new**alpha,
    gaps: list[float] | None = None,
) -> tuple[list[int], float]:
    """Search with a beam, by rules that can be varied.

    ``each`` keeps the best of each hypothesis, ``free`` gives finished ones no place
    ("beam": those among the best, "all": whatever their rank), ``shrink`` takes their
    places away for good, ``go_on`` extends what has ended, ``cut`` drops what ranks
    below one that ends, ``first`` stops when so many have ended, ``uncounted`` leaves
    <eos> out of the length. ``pool`` is what is chosen from. ``gaps`` is filled with
    how clear each choice was.
    """

    def row(ids: list[int]) -> list[float]:
        return gains(model(torch.tensor([ids]))[0, -1]).tolist()

    alive: list[Draft] = [(0.0, list(prefix))]
    finished: list[Draft] = []
    while alive and len(alive[0][1]) < limit and not 0 < first <= len(finished):
        places = width - len(finished) if shrink else width
        families = [
            sorted(
                (
                    (total + gain, [*ids, token])
                    for token, gain in enumerate(row(see(ids)))
                ),
                reverse=True,
            )
            for total, ids in alive
        ]
        if each:
            kept = [draft for family in families for draft in family[:places]]
        else:
            grown = sorted(itertools.chain(*families), reverse=True)
            kept = _kept(grown, places, eos_id, free)
            if gaps is not None and len(grown) > places:
                gaps.append(grown[places - 1][0] - grown[places][0])
        if cut:
            kept = _up_to_the_end(kept, eos_id)
        finished += [draft for draft in kept if draft[1][-1] == eos_id and not go_on]
        alive = [draft for draft in kept if draft[1][-1] != eos_id or go_on]
    pools = {"both": finished + alive, "finished": finished or alive}
    pools["alive"] = alive or finished
    rated = []
    for total, ids in pools[pool]:
        new = len(ids) - len(prefix)
        if uncounted and ids[-1] == eos_id:
            new = max(1, new - 1)
        rated.append((score(total, new, len(ids), alpha), ids))
    rated.sort(reverse=True)
    if gaps is not None:
        for some in (finished, alive):
            sums = sorted((total for total, _ in some), reverse=True)
            gaps += [sums[0] - sums[1]] if len(sums) > 1 else []
        gaps += [rated[0][0] - rated[1][0]] if len(rated) > 1 else []
    best, ids = rated[0]
    return ids, best


def _kept(drafts: list[Draft], places: int, end: int, free: str) -> list[Draft]:
    """Keep the best; where they are ``free``, drafts that end take no place."""
    if free == "all":
        return [draft for draft in drafts if draft[1][-1] == end] + [
            draft for draft in drafts if draft[1][-1] != end
        ][:places]
    kept, taken = [], 0
    for draft in drafts:
        if taken == places:
            break
        kept.append(draft)
        taken += not (free and draft[1][-1] == end)
    return kept


def _up_to_the_end(kept: list[Draft], end: int) -> list[Draft]:
    """Drop what ranks below the first that ends."""
    ends = [number for number, draft in enumerate(kept, 1) if draft[1][-1] == end]
    return kept[: min(ends, default=len(kept))]


def _last_gain(model: Callable, *given) -> tuple:
    ids, _ = beam(model, *given)
    row = model(torch.tensor([ids[:-1]]))[0, -1].log_softmax(-1)
    return ids, float(row[ids[-1]])


def _divided_late(model: Callable, prefix: list[int], *given) -> tuple:
    ids, total = beam(model, prefix, *given, score=lambda total, *_: total)
    return ids, total / (len(ids) - len(prefix)) ** given[-1]


def _exponential(ids: list[int], score: float) -> tuple:
    return ids, math.exp(score)


def _without_prefix(model: Callable, prefix: list[int], *given) -> tuple:
    ids, score = beam(model, prefix, *given)
    return ids[len(prefix) :], score


search = Function("beam-search", "beam_search", beam)
name_several(search)

# --- what goes wrong ------------------------------------------------------------------

search.mistake(
    "the width is not used",
    "Only one hypothesis was kept in each round: that is greedy decoding. Keep "
    "the beam_width best.",
)(lambda model, ids, end, width, n, alpha: beam(model, ids, end, 1, n, alpha))
search.mistake("only the last token is read", ONLY_LAST)(
    partial(beam, see=lambda ids: ids[-1:])
)
search.mistake(
    "the beam is taken for each hypothesis",
    "Each hypothesis kept its own beam_width extensions, so their number grows "
    "from round to round. Choose among the extensions of all together.",
)(partial(beam, each=True))
search.mistake(
    "finished ones take no place in the beam",
    "More than beam_width extensions were kept in a round, because those that end "
    "were not counted. Keep the beam_width best first, then divide them into "
    "finished and alive.",
)(partial(beam, free="beam"))
search.mistake(
    "finished ones take no place in the beam",
    "Extensions that end were set aside before the beam_width best were chosen, even "
    "improbable ones. Keep the beam_width best of all first, then divide them into "
    "finished and alive.",
)(partial(beam, free="all"))
search.mistake(
    "what ranks below a finished one is dropped",
    "At the first extension that ends the rest of the beam was lost: break leaves the "
    "whole loop. Divide all that were kept: those that end are finished, the others "
    "alive.",
)(partial(beam, cut=True))
search.mistake(
    "the beam shrinks",
    "Finished hypotheses took places in later rounds. Each round keeps the "
    "beam_width best extensions of those alive.",
)(partial(beam, shrink=True))
search.mistake(
    "goes on after the end",
    "A hypothesis that ends with eos_id was extended further. Set it aside.",
)(partial(beam, go_on=True))
search.mistake(
    "stops at the first that ends",
    "Another hypothesis that is still alive may end with a better score. Go on "
    "until none lives or they have max_length ids.",
)(partial(beam, first=1))
search.mistake(
    "stops when beam_width have ended",
    "One that is still alive may end with a better score than those that have "
    "ended. Go on until none lives or they have max_length ids.",
)(
    lambda model, ids, end, width, n, alpha: beam(
        model, ids, end, width, n, alpha, first=width
    )
)
search.mistake(
    "max_length counts the new tokens alone",
    "max_length is the largest number of all ids, the prefix included.",
)(
    lambda model, ids, end, width, n, alpha: beam(
        model, ids, end, width, n + len(ids), alpha
    )
)
search.mistake(
    "finished ones are forgotten",
    "The best was chosen among those alive at the end. Compare the finished ones "
    "as well.",
)(partial(beam, pool="alive"))
search.mistake(
    "those alive are forgotten",
    "The best was chosen among the finished ones. What reached max_length without "
    "an end is compared as well.",
)(partial(beam, pool="finished"))
search.mistake(
    "alpha is not used",
    "The sum is divided by the number of new tokens to the power alpha.",
)(partial(beam, score=lambda total, *_: total))
search.mistake(
    "chosen by the sum, divided too late",
    "The hypothesis with the best sum was chosen, and only its own score was "
    "divided. Divide the sum of each one first, then compare the scores.",
)(_divided_late)
search.mistake(
    "the length leaves out <eos>",
    "<eos> is a new token like the others: its log-probability is in the sum, so "
    "it counts in the length.",
)(partial(beam, uncounted=True))
search.mistake(
    "the mean at every alpha",
    "The sum is divided by the number of new tokens *to the power alpha*; at alpha "
    "= 0 it stays what it is.",
)(partial(beam, score=lambda total, new, whole, alpha: total / new))
search.mistake(
    "alpha as a factor", "alpha is an exponent: new ** alpha, which is 1 at alpha = 0."
)(partial(beam, score=lambda total, new, whole, a: total / (new * a if a else 1)))
search.mistake(
    "the length counts the prefix",
    "The prefix was given, and none of its tokens has a log-probability in the "
    "sum. Divide by the number of new tokens alone.",
)(partial(beam, score=lambda total, new, whole, alpha: total / whole**alpha))
search.mistake(
    "multiplied by the length",
    "The length divides. Log-probabilities are negative: multiplied, a long "
    "sentence is punished twice.",
)(partial(beam, score=lambda total, new, whole, alpha: total * new**alpha))
search.mistake(
    "another length penalty",
    "That is the penalty of Wu et al. (2016), ((5 + n)/6)^alpha. Here the sum is "
    "divided by n^alpha.",
)(partial(beam, score=lambda total, new, whole, a: total / ((5 + new) / 6) ** a))
search.mistake(
    "logits in place of log-probabilities",
    "Logits of different rows are no common measure: each row has its own "
    "normaliser. Take log_softmax of the row first.",
)(partial(beam, gains=lambda logits: logits))
search.mistake(
    "probabilities are added",
    "Probabilities of tokens are multiplied, so their logarithms are added. Take "
    "log_softmax in place of softmax.",
)(partial(beam, gains=lambda logits: logits.softmax(-1)))
search.mistake(
    "a probability in place of its logarithm",
    "The score is the sum of log-probabilities, divided by a power of the length. "
    "Do not take the exponential.",
)(lambda *given: _exponential(*beam(*given)))
search.mistake(
    "the score of the last token alone",
    "The gain of the last token was returned. The sum over all new tokens is "
    "asked for: add to what the hypothesis had.",
)(_last_gain)
search.mistake(
    "only the new tokens are returned", "The result begins with the prefix."
)(_without_prefix)

# --- the check ------------------------------------------------------------------------


def _texts(size: int, prefix: list[int], eos_id: int, limit: int) -> list[list[int]]:
    """List every text that begins with the prefix and ends as a hypothesis may."""
    if len(prefix) == limit or prefix[-1] == eos_id:
        return [prefix]
    return [
        text
        for token in range(size)
        for text in _texts(size, [*prefix, token], eos_id, limit)
    ]


def _of_all(
    language: Language, prefix: list[int], eos_id: int, limit: int, alpha: float
) -> tuple[list[int], float]:
    """Rate every text, by brute force."""
    size, begin = len(language.table), len(prefix)

    def score(text: list[int]) -> float:
        rows = language.logits(text[:-1]).log_softmax(-1)
        gains = [float(rows[t - 1, text[t]]) for t in range(begin, len(text))]
        return math.fsum(gains) / len(gains) ** alpha

    best = max(_texts(size, prefix, eos_id, limit), key=score)
    return best, score(best)


def _expect_hypothesis(got: Data, case: Case) -> None:
    """Expect a pair of ids and a float."""
    expected = "(ids, score)"
    got = several(got)
    pair = isinstance(got, tuple) and len(got) == 2
    why = "The function ends without `return`." if got is None else "Return both."
    say = {"on": case.on, "got": show(got), "expected": expected}
    expect.true(pair, "the result is not a pair", why=why, **say)
    ids, score = got
    turned = isinstance(ids, (float, torch.Tensor)) and isinstance(score, list)
    why = "First the ids, then the score."
    refuse_if(turned, "ids and score exchanged", why, **say)
    what = "the first of the pair"
    expect_ids(ids, search.right(case)[0], on=case.on, what=what)
    expect.form(score, 0.0, what="the score", on=case.on)
    if type(score) is int:
        why = "The score is a float, also when it is 0."
        expect.true(False, "the score is not a float", why=why, **say)
    expect.true(type(score) is float, "the score is not a float", **say)
    finite = math.isfinite(score)
    expect.true(finite, "the score is nan or infinite", **say)


def _clear_search(
    generator: torch.Generator, size: int, end: float, spread: float, given: Callable
) -> tuple[Language, tuple]:
    """Draw tables and arguments without ties: two ways round a circle are as long."""
    while True:
        language = draw_language(generator, size, end, spread)
        arguments, gaps = given(), [1.0]
        beam(language, *arguments, gaps=gaps)  # the search itself says how clear it is
        if min(gaps) > 1e-3:
            return language, arguments


def _case(kind: str, given: tuple, expected: Data = UNASKED) -> Case:
    """What is asked, without the model."""
    names = "prefix", "eos_id", "beam_width", "max_length", "alpha"
    said = [f"{name} {each}" for name, each in zip(names, given, strict=True)]
    what = "the best hypothesis"
    on = ", ".join([kind, *said])
    return Case(on, given, expected, tolerance=DEEP, what=what)


def _cases(generator: torch.Generator) -> Iterator[tuple[Case, Language]]:
    """By hand, against all texts by brute force, against greedy, and between."""
    expected = [0, 2, 3], math.log(0.36)
    yield _case("the table by hand", ([0], 3, 2, 10, 0.0), expected), by_hand()
    for limit, begin, alpha in ((5, 2, 0.0), (4, 1, 1.0), (5, 2, 0.6)):

        def given(limit=limit, begin=begin, alpha=alpha):
            prefix = [draw_whole(generator, 3) for _ in range(begin)]
            return prefix, 3, 4 ** (limit - begin), limit, alpha

        language, drawn = _clear_search(generator, 4, 0.3, 1.0, given)
        expected = _of_all(language, drawn[0], 3, limit, alpha)
        kind = "as wide as there are texts: the best of all"
        yield _case(kind, drawn, expected), language
    for begin in (1, 3):
        language = draw_language(generator, 6, 0.3)
        prefix = [draw_whole(generator, 5) for _ in range(begin)]
        ids = most_probable(language, prefix, 5, 9)
        rows = language.logits(ids[:-1]).log_softmax(-1)
        score = sum(float(rows[t - 1, ids[t]]) for t in range(begin, len(ids)))
        kind = "a beam of one: greedy"
        yield _case(kind, (prefix, 5, 1, 9, 0.0), (ids, score)), language
    yield from _telling_cases(generator)


def _telling_cases(generator: torch.Generator) -> Iterator[tuple[Case, Language]]:
    """Draw searches until each known mistake gives another result on one of them."""
    untold = [each.answer for each in search.mistakes]
    for number in range(300):
        size, begin = 4 + number % 3, 1 + number % 4
        alpha = (0.0, 1.0, 0.7)[(number + number // 3) % 3]
        end = (0.5, -0.5, 1.0)[(number + number // 9) % 3]

        def given(number=number, size=size, begin=begin, alpha=alpha):
            prefix = [draw_whole(generator, size - 1) for _ in range(begin)]
            limit = begin + 3 + number % 2
            return prefix, size - 1, 2 + number % 2, limit, alpha

        language, drawn = _clear_search(generator, size, end, 1.5, given)
        right = beam(language, *drawn)
        left = [x for x in untold if expect.close(x(language, *drawn), right, 1e-3)]
        if len(left) < len(untold) or number < 9:
            yield _case(f"a table for {size} tokens", drawn), language
            untold = left
        if not untold and number >= 9:
            return


@chapter.check(section="decoder-beam")
def beam_search(student: StudentFunction, table: StudentModule, seed: int = 0) -> None:
    """Check by hand, against all texts by brute force, against greedy, and between."""
    cases = list(_cases(seeded(seed)))
    for case, language in cases:
        with search.accidents_named():
            got = student(load_model(table, language), *case.inputs)
        case = replace(case, inputs=(language, *case.inputs))
        _expect_hypothesis(got, case)
        search.compare(several(got), case)
    hand, language = cases[0]
    no_alpha = student(load_model(table, language), *hand.inputs[:-1])
    on = f"{hand.on}, not given: its default"
    expect.equal(no_alpha, hand.expected, on=on, what=hand.what, tolerance=DEEP)
