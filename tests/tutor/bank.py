"""The strangers' answers, and what each of them is told.

Whoever wrote them had the notebook and nothing else. ``python -m tests.tutor.bank
attention`` prints what each answer of a chapter is told.
"""

import contextlib
import importlib
import io
import itertools
import linecache
import os
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from autograder.exercise import locate
from autograder.expect import CheckFailure
from tests import chapters
from tests.tutor import strangers, written

KINDS = ("plain", "subtle", "double")
# named: the name is the cause; told: a sentence or the line is, beside no name or one
# that is only general; shown: it can be seen in what is shown; useless; wrong: another
# cause is named; passed: nothing is said
VERDICTS = ("named", "told", "shown", "useless", "wrong", "passed")
READINGS = 3000  # of the clock that stands for what a student waits
PATIENCE = 2.0  # seconds for a try: what has an end needs far less
_numbers = itertools.count()


@dataclass(frozen=True)
class Stranger:
    """One wrong answer.

    Args:
        exercise: its id.
        truth: what is wrong with it, in its author's words.
        answer: the function or class; None if there is its text.
        kind: "plain"; "subtle", wrong on some inputs only; "double", two slips.
        first: the verdict when it was first handed in.
        verdict: the verdict now.
        says: the name that the check gives, "" if none.
        round: 1, from which the checks were mended; 2, written after that; 3, to
            chapter 11 and to exercises that came later; 4 and 5, to all chapters.
        text: what its author wrote.
        line: that the search for a line finds, 0 if none.
    """

    exercise: str
    truth: str
    answer: Any
    kind: str
    first: str
    verdict: str
    says: str
    round: int = 1
    text: str = ""
    line: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS or {self.first, self.verdict} - {"", *VERDICTS}:
            said = f"{self.kind}, {self.first}, {self.verdict}"
            raise ValueError(f"{self.exercise}: {said}")

    def message(
        self, chapter: str, *, looking: bool = False, took: list[float] | None = None
    ) -> CheckFailure | None:
        """Hand it in where all else is solved; None if nothing is said.

        Args:
            chapter: whose notebook it is an answer to.
            looking: whether a line is looked for, as in a notebook.
            took: is given the seconds of processor time that the check took.
        """
        names = chapters.solved(chapter)
        self._write_into(names)
        silent = contextlib.redirect_stdout(io.StringIO())
        with _looking(looking), silent, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            begun = time.process_time()
            failure = self._checked(chapter, names)
            if took is not None:
                took.append(time.process_time() - begun)
            return failure

    def _checked(self, chapter: str, names: dict) -> CheckFailure | None:
        for hidden in (False, True):
            for text in chapters.check_cells(chapter, self.exercise, hidden=hidden):
                try:
                    exec(compile(text, f"check of {self.exercise}", "exec"), names)
                except CheckFailure as failure:
                    return failure
        return None

    def _write_into(self, names: dict) -> None:
        """Run the answer as a cell of the notebook."""
        if self.text:
            file = f"<cell {next(_numbers)}>"
            lines = self.text.splitlines(keepends=True)
            linecache.cache[file] = (len(self.text), None, lines, file)
            exec(compile(self.text, file, "exec"), names)
            return
        name = self.answer.__name__
        if name not in names:
            raise KeyError(f"{self.exercise}: the notebook has no {name}")
        names[name] = self.answer
        _show(names, self.answer)


@contextlib.contextmanager
def _looking(wanted: bool) -> Iterator[None]:
    """Let the search for a line run for so many tries: what is found needs no clock."""
    switch, per_try = os.environ.get(locate.SWITCH), locate.SECONDS_PER_TRY
    clock = itertools.count()
    os.environ[locate.SWITCH] = "1" if wanted else "0"
    locate.now = lambda: next(clock) * locate.SECONDS / READINGS
    locate.SECONDS_PER_TRY = PATIENCE
    try:
        yield
    finally:
        locate.now, locate.SECONDS_PER_TRY = time.monotonic, per_try
        os.environ.pop(locate.SWITCH)
        if switch is not None:
            os.environ[locate.SWITCH] = switch


def _show(names: dict, answer: Any) -> None:
    """Let an answer use what the notebook defines beside it, not other answers."""
    own = sys.modules[answer.__module__].__dict__
    own.update({name: each for name, each in names.items() if name[:2] != "__"})


def name_of(failure: CheckFailure | None) -> str:
    """The name that a message gives, "" if it gives none."""
    if failure is None:
        return ""
    left = failure.place.left if failure.place else None
    return failure.mistake or (left.name if left else "")


_found: dict[str, list[Stranger]] = {}


def stranger(
    exercise: str,
    truth: str,
    *,
    kind: str = "plain",
    first: str = "",
    verdict: str = "",
    says: str = "",
    round: int = 1,
) -> Callable:
    """Take up the decorated answer."""

    def add(answer: Any) -> Any:
        entry = Stranger(exercise, truth, answer, kind, first, verdict, says, round)
        _found.setdefault(answer.__module__, []).append(entry)
        return answer

    return add


def all_strangers() -> Iterator[tuple[str, Stranger]]:
    """Give each answer with its chapter."""
    by_module = {chapters.source(each).module: each for each in chapters.CHAPTERS}
    for module in iter_modules(strangers.__path__):
        if module.name in by_module:
            for entry in answers(module.name):
                yield by_module[module.name], entry
    for number, path in written.rounds():
        for each in written.read(path):
            if "dropped" not in each.notes:
                yield each.chapter, of_text(each, number)


def of_text(answer: written.Written, number: int) -> Stranger:
    """Make an entry of an answer that is kept as its author wrote it."""
    notes = answer.notes
    return Stranger(
        answer.exercise,
        answer.truth,
        None,
        answer.kind,
        notes.get("told", ""),
        notes.get("now", ""),
        notes.get("says", ""),
        number,
        answer.code,
        int(notes.get("line", "0")),
    )


def read_new(path: Path) -> list[written.Written]:
    """Read answers that are to be kept; their exercises are named by id from here on.

    Raises:
        ValueError: a header is bad, or names no exercise of the chapter.
    """
    exercises = chapters.source(path.stem).exercises
    names = {exercise.number: exercise.name for exercise in exercises}
    answers = written.read(path)
    for answer in answers:
        answer.name_exercise(names)
    return answers


def answers(module: str) -> list[Stranger]:
    """The answers to the exercises of a chapter."""
    name = f"{strangers.__name__}.{module}"
    importlib.import_module(name)
    return _found.get(name, [])


def main(module: str, only: str = "") -> None:
    """Print what every answer of a chapter is told."""
    chapter = next(c for c in chapters.CHAPTERS if chapters.source(c).module == module)
    for number, entry in enumerate(answers(module), start=1):
        if only in entry.exercise:
            head = f"{number} {entry.exercise} [{entry.kind}] {entry.truth}"
            print(f"\n=== {head}\n    {entry.first} → {entry.verdict} {entry.says!r}")
            print(entry.message(chapter) or "PASSED", flush=True)


if __name__ == "__main__":
    # by its own name, so that the answers find the same list
    module: types.ModuleType = importlib.import_module("tests.tutor.bank")
    module.main(*sys.argv[1:])
