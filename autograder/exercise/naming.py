"""The one place in which a wrong answer gets its name.

A check stops at the first wrong value, and on one small input two mistakes may agree:
three samples, a batch of one, a single maximum. So a check that has failed is run once
more to its end, without stopping. What is named must explain all that came back: no
value is given that the mistake would not give, and none is right that it would spoil.

Values of several parts, heads and boxes, keys and values, are judged part by part: two
slips get two names. Where two mistakes explain the same, both are said.
"""

import contextlib
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field

import torch

from autograder.exercise.comparison import Comparison
from autograder.exercise.pairs import one_and_more, two_at_once
from autograder.interface import Data, StudentError

# the name of a mistake, and which way of making it; of two, both ways
Key = tuple[str, int | tuple[int, int] | None]

MOST = 400  # comparisons that are looked at
NAMELESS = ""  # a second slip that its reason alone tells
pairs_wanted: ContextVar["Pairs | None"] = ContextVar("pairs_wanted", default=None)


@dataclass(frozen=True)
class Mistake:
    """A known wrong answer: its name, the value it leads to, and why it is wrong.

    ``variant`` tells apart the ways of making it, which may show on other inputs.
    """

    name: str
    value: Data
    why: str
    section: str | None = None
    variant: int | tuple[int, int] | None = None


@dataclass(frozen=True)
class Judged:
    """A comparison, whether it came out right, and what is known to go wrong there."""

    comparison: Comparison
    right: bool
    known: tuple[Mistake, ...]
    close: Callable[[Data, Data, float], bool]

    def gives(self, value: Data) -> bool:
        """Whether the answer is this value."""
        return self.close(self.comparison.got, value, self.comparison.tolerance)

    def verdicts(self) -> dict[Key, bool]:
        """For each mistake that has a value here: whether it explains the answer.

        A mistake as such does if one of its variants does.
        """
        found: dict[Key, bool] = {}
        for each in self.known:
            explains = self.gives(each.value)
            for key in ((each.name, None), (each.name, each.variant)):
                found[key] = found.get(key, False) or explains
        return found

    def mistake(self, name: str) -> Mistake:
        """The variant of this name that gives the answer."""
        return next(m for m in self.known if m.name == name and self.gives(m.value))

    def values(self) -> dict[Key, Data]:
        """What each way of making a mistake gives here."""
        return {(each.name, each.variant): each.value for each in self.known}

    def known_as(self, key: Key) -> Mistake:
        """The mistake of this name, made in this way."""
        return next(m for m in self.known if (m.name, m.variant) == key)


@dataclass
class Named:
    """What explains an answer.

    Args:
        mistake: the first name, with its reason and section.
        where: the first comparison that it explains.
        alternatives: other names that explain the same.
        besides: the second slip, if one explains what is left.
    """

    mistake: Mistake
    where: Comparison
    alternatives: list[str] = field(default_factory=list)
    besides: Mistake | None = None


@dataclass
class Pairs:
    """Which pairs of mistakes a specification computes, in place of single ones.

    Pairs are many. They are computed for the first wrong answer; afterwards only those
    that explain it.

    Args:
        ways: of those that explain; None before there is a wrong answer.
    """

    ways: set[tuple[int, int]] | None = None


class _First(Exception):
    """The first wrong answer has been compared with all pairs."""


class PairFinder:
    """Compares the first wrong answer with all pairs of known mistakes."""

    def __init__(self, close: Callable[[Data, Data, float], bool]) -> None:
        self._close = close
        self.ways: set[tuple[int, int]] = set()

    def note(self, comparison: Comparison, known: Iterable[Mistake]) -> None:
        """Take note of one value.

        Raises:
            _First: it was the one that is wanted.
        """
        got, tolerance = comparison.got, comparison.tolerance
        if self._close(got, comparison.expected, tolerance):
            return
        for each in known:
            way = each.variant
            if isinstance(way, tuple) and self._close(got, each.value, tolerance):
                self.ways.add(way)
        raise _First


def pair_that_explains(
    run: Callable[["Collector | PairFinder"], None],
    close: Callable[[Data, Data, float], bool],
) -> Named | None:
    """Find two known mistakes that, made together in one piece of code, explain all.

    Args:
        run: the check to its end, with what takes note of its values.
        close: compares values.
    """
    token = pairs_wanted.set(Pairs())
    try:
        finder = PairFinder(close)
        run(finder)
        if not finder.ways:
            return None
        pairs_wanted.set(Pairs(finder.ways))
        collector = Collector(close)
        run(collector)
        named = collector.name()
        return named if collector.explains_all else None
    finally:
        pairs_wanted.reset(token)


class Collector:
    """Takes note of every value that a check compares, in place of stopping at one."""

    def __init__(self, close: Callable[[Data, Data, float], bool]) -> None:
        self._close = close
        self.judged: list[Judged] = []
        self.explains_all = False  # whether the name does

    def note(self, comparison: Comparison, known: Iterable[Mistake]) -> None:
        """Take note of one value; work out the known mistakes at once.

        What they are computed from may have changed by the time the check has ended.
        """
        if len(self.judged) < MOST:
            got, expected = comparison.got, comparison.expected
            right = self._close(got, expected, comparison.tolerance)
            judged = Judged(comparison, right, tuple(known), self._close)
            self.judged.append(judged)

    @property
    def comparisons(self) -> list[Comparison]:
        """All that was compared, in order."""
        return [each.comparison for each in self.judged]

    def name(self) -> Named | None:
        """Find the mistake that explains the answers; None if none does.

        A part is judged whole first; then, since a slip may sit in one branch only,
        for each setting of its options; then for the calls with and without a mask or
        the like. ``explains_all`` says whether no wrong answer is left then.
        """
        found = self._explanations()
        covered = {place for each in found for place in each.at}
        self.explains_all = bool(found) and all(
            id(each) in covered
            for each in self.judged
            if each.known and not each.right
            if "gradient" not in each.comparison.what
        )
        if not found:
            return None
        first = found[0]
        others = [each for each in found if first.name not in each.names]
        besides = next((each for each in others if each.beside(first)), None)
        return Named(
            first.mistake,
            first.place,
            list(first.names[1:]),
            besides.mistake if besides else None,
        )

    def _explanations(self) -> list["_Explanation"]:
        found: list[_Explanation] = []
        for part in _grouped(self.judged, lambda each: each.comparison.what):
            explanations = _explain(part)
            if not explanations:
                branches = _grouped(part, lambda each: each.comparison.options)
                explanations = [
                    each for branch in branches for each in _explain(branch)
                ]
            if not explanations:
                branches = _grouped(part, _arguments_given)
                explanations = [
                    each for branch in branches for each in _explain(branch, least=2)
                ]
            found += explanations
        return found

    def two_at_once(self) -> Named | None:
        """Find two mistakes whose effects add up or multiply; None if no two do."""
        for part in _grouped(self.judged, lambda each: each.comparison.what):
            asked = [(each.comparison, each.values()) for each in part]
            cases = [(c.got, c.expected, values, c.tolerance) for c, values in asked]
            both = two_at_once(cases)
            if both:
                where = _where(part, both)
                known = [where.known_as(key) for key in both]
                alike = len({(each.name, each.why) for each in known}) == 1
                second = None if alike else known[1]  # alike: variants of one
                return Named(known[0], where.comparison, besides=second)
            one = one_and_more(cases)
            if one:
                where = _where(part, one[:1])
                besides = Mistake(NAMELESS, None, one[1])
                return Named(where.known_as(one[0]), where.comparison, besides=besides)
        return None


def _where(judged: Iterable[Judged], keys: Iterable[Key]) -> Judged:
    """Pick the smallest wrong answer at which these mistakes have a value."""
    wanted = set(keys)
    wrong = [each for each in judged if not each.right]
    return smallest(each for each in wrong if each.values().keys() >= wanted)


def smallest(wrong: Iterable[Judged]) -> Judged:
    """Pick what is read most easily: the smallest input, the first among equals.

    A gradient is picked only where no value is wrong.
    """
    return min(wrong, key=lambda each: _ease(each.comparison))


def _ease(comparison: Comparison) -> tuple[bool, int]:
    return "gradient" in comparison.what, _size(comparison)


def _size(value: Data) -> int:
    if isinstance(value, Comparison):
        return _size(value.expected) + _size(list((value.arguments or {}).values()))
    if isinstance(value, torch.Tensor):
        return value.numel()
    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, (list, tuple)) else 1


@dataclass(frozen=True)
class _Explanation:
    """Names that explain the same answers, and the first of these answers."""

    names: tuple[str, ...]
    mistake: Mistake
    place: Comparison
    at: frozenset[int]  # the ids of what is explained

    @property
    def name(self) -> str:
        return self.names[0]

    def beside(self, other: "_Explanation") -> bool:
        """Whether this is a slip of its own: in another part, or another branch."""
        mine, others = self.place, other.place
        branch = mine.what == others.what and mine.options != others.options
        return branch or (mine.asked is others.asked is not None)


def _grouped(judged: Iterable[Judged], key: Callable) -> list[list[Judged]]:
    groups: dict = {}
    for each in judged:
        groups.setdefault(key(each), []).append(each)
    return list(groups.values())


def _arguments_given(judged: Judged) -> tuple:
    """Return the options of a call, and which arguments it had."""
    arguments = (judged.comparison.arguments or {}).items()
    names = frozenset(name for name, value in arguments if value is not None)
    return judged.comparison.options, names


def _explain(judged: list[Judged], least: int = 1) -> list[_Explanation]:
    """Find the names that explain every answer that they say anything about.

    Of these answers at least ``least`` have to be wrong.
    """
    refuted: set[Key] = set()
    explained: dict[Key, list[int]] = {}
    for place, each in enumerate(judged):
        for key, explains in each.verdicts().items():
            if not explains:
                refuted.add(key)
            elif not each.right:
                explained.setdefault(key, []).append(place)
    left = {
        key: at
        for key, at in explained.items()
        if key not in refuted and len(at) >= least
    }
    found = []
    while left:
        earliest = min(min(at) for at in left.values())
        first = max(
            (key for key, at in left.items() if earliest in at),
            key=lambda key: len(left[key]),
        )
        names = [first[0], *(key[0] for key, at in left.items() if at == left[first])]
        where = smallest(judged[place] for place in left[first])
        found.append(
            _Explanation(
                tuple(dict.fromkeys(names)),
                where.mistake(first[0]),
                where.comparison,
                frozenset(id(judged[place]) for place in left[first]),
            )
        )
        covered = set(left[first])
        left = {key: at for key, at in left.items() if covered.isdisjoint(at)}
    return found


def collect(run: Callable[[], object]) -> None:
    """Run a check to its end, or to what it cannot go on after.

    What follows a wrong value may fail in any way, since a check does not expect to be
    there: it reads an entry of what is no list, say.
    """
    with contextlib.suppress(StudentError, AssertionError, Exception):
        run()
