"""What a check says of a changed answer: it passes, or one known mistake is left.

Of two slips a step mends one. What is left may be a mistake that the check knows: then
the line and the name together say what is wrong. A changed answer is followed for as
long as one known mistake may explain all that comes; most are given up at once.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch

from autograder.exercise.comparison import Comparison
from autograder.exercise.naming import Judged, Key, Mistake
from autograder.interface import Data

ENOUGH = 4  # different numbers, or wrong values, that speak for a known mistake


@dataclass(frozen=True)
class Left:
    """The known mistake that is left after a step."""

    name: str
    why: str


@dataclass(frozen=True)
class Outcome:
    """What a check says of a changed answer.

    Args:
        passes: whether it is right.
        left: the known mistake that explains what is still wrong.
        reached: how many values were right before the first that was not.
        right: the places of the values that were right.
        wrong: the places of those that were not.
    """

    passes: bool = False
    left: Left | None = None
    reached: int = 0
    right: frozenset[int] = frozenset()
    wrong: frozenset[int] = frozenset()

    def spoils(self, before: "Outcome") -> bool:
        """Whether a value is wrong now that was right before.

        Where no value is wrong, the check has refused something else; then the value
        that was wrong has to be right, or the refusal only came sooner.
        """
        if before.wrong and not self.wrong:
            return self.reached <= before.reached
        return not self.wrong.isdisjoint(before.right)


class Refuted(Exception):
    """A value came that no known mistake explains together with those before."""


@dataclass
class Known:
    """What is known to go wrong at each value that a check compares.

    The values of known mistakes follow from the check's own inputs: they are computed
    once, for all changed answers.
    """

    noted: dict[int, tuple[Comparison, tuple[Mistake, ...]]] = field(
        default_factory=dict
    )

    def at(
        self, place: int, comparison: Comparison, known: Iterable[Mistake]
    ) -> tuple[Mistake, ...]:
        """Give the mistakes at a comparison, as they were noted or computed now."""
        before = self.noted.get(place)
        if before is None or not _same_question(before[0], comparison):
            self.noted[place] = before = (comparison, tuple(known))
        return before[1]


def _same_question(before: Comparison, now: Comparison) -> bool:
    if (before.what, before.on) != (now.what, now.on):
        return False
    first, second = before.expected, now.expected
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        return first.shape == second.shape and torch.equal(first, second)
    return type(first) is type(second) and repr(first) == repr(second)


class Follower:
    """Takes note of what a changed answer gives, in place of a ``Collector``."""

    def __init__(
        self,
        close: Callable[[Data, Data, float], bool],
        known: Known,
        patient: bool = False,
    ) -> None:
        """Begin; a patient one goes on where no known mistake explains what comes."""
        self._close, self._known, self._patient = close, known, patient
        self._pending: list[tuple[int, Comparison, Iterable[Mistake]]] = []
        self._alive: set[Key] | None = None  # None while nothing is wrong
        self._mistakes: dict[Key, Mistake] = {}
        self._evidence, self._confirmed, self.count, self._first = 0, 0, 0, 0
        self._places: dict[bool, set[int]] = {True: set(), False: set()}

    def note(self, comparison: Comparison, known: Iterable[Mistake]) -> None:
        """Take note of one value.

        Raises:
            Refuted: no known mistake explains all so far.
        """
        place, self.count = self.count, self.count + 1
        got, expected = comparison.got, comparison.expected
        right = self._close(got, expected, comparison.tolerance)
        self._places[right].add(place)
        self._confirmed += _evidence(got) if right else 0
        if self._patient and self._alive == set():
            return
        if right and self._alive is None:
            self._pending.append((place, comparison, known))
            return
        self._first = place if self._alive is None else self._first
        self._judge(place, comparison, known, right)
        for each in self._pending if self._alive else ():
            self._judge(*each, right=True)
        self._pending = []
        if not self._alive and not self._patient:
            raise Refuted

    def _judge(
        self, place: int, comparison: Comparison, known: Iterable[Mistake], right: bool
    ) -> None:
        mistakes = self._known.at(place, comparison, known)
        case = Judged(comparison, right, mistakes, self._close)
        verdicts = case.verdicts()
        explaining = {key for key, explains in verdicts.items() if explains}
        if self._alive is None:
            self._alive = explaining
        elif right or "gradient" in comparison.what:
            self._alive -= verdicts.keys() - explaining
        else:
            self._alive &= explaining
        if not right:
            self._evidence += _evidence(comparison.got) if self._alive else 0
            for key in self._alive - self._mistakes.keys():
                self._mistakes[key] = case.mistake(key[0])

    @property
    def reached(self) -> int:
        """How many values were right before the first that was not."""
        return self.count if self._alive is None else self._first

    @property
    def all_right(self) -> bool:
        """Whether values were compared and none was wrong."""
        return self._alive is None and self.count > 0

    @property
    def is_sure(self) -> bool:
        """Whether that was enough not to be chance."""
        return self.all_right and self._confirmed >= ENOUGH

    def outcome(self, *, passes: bool = False, left: Left | None = None) -> Outcome:
        """Put together what was noted."""
        right, wrong = (frozenset(self._places[each]) for each in (True, False))
        return Outcome(passes, left, self.reached, right, wrong)

    def left(self) -> Left | None:
        """The one mistake that explains all wrong values."""
        names = dict.fromkeys(key[0] for key in self._alive or ())
        if len(names) != 1 or self._evidence < ENOUGH:
            return None
        mistake = next(each for key, each in self._mistakes.items() if key[0] in names)
        return Left(mistake.name, mistake.why)


def _evidence(value: Data) -> int:
    """Count what a value tells: its different numbers, its items."""
    if isinstance(value, torch.Tensor):
        return min(value.unique().numel(), ENOUGH)
    if isinstance(value, (list, tuple, dict, str)):
        return min(len(value), ENOUGH)
    return 1
