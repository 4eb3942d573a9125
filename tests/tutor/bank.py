"""The strangers' answers, and what each of them is told.

Whoever wrote them had the notebook and nothing else. ``python -m tests.tutor.bank
attention`` prints what each answer of a chapter is told.
"""

import contextlib
import importlib
import io
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pkgutil import iter_modules
from typing import Any

from autograder.expect import CheckFailure
from tests import chapters
from tests.tutor import strangers

KINDS = ("plain", "subtle", "double")
# named: the name is the cause; told: a sentence or the line is, beside no name or one
# that is only general; shown: it can be seen in what is shown; useless; wrong: another
# cause is named; passed: nothing is said
VERDICTS = ("named", "told", "shown", "useless", "wrong", "passed")


@dataclass(frozen=True)
class Stranger:
    """One wrong answer.

    Args:
        exercise: its name in the notebook.
        truth: what is wrong with it, in its author's words.
        answer: the function or class.
        kind: "plain"; "subtle", wrong on some inputs only; "double", two slips.
        first: the verdict when it was first handed in.
        verdict: the verdict now.
        says: the name that the check gives, "" if none.
        round: 1, from which the checks were mended; 2, written after that; 3, to
            chapter 11 and to exercises that came later.
    """

    exercise: str
    truth: str
    answer: Any
    kind: str
    first: str
    verdict: str
    says: str
    round: int = 1

    def message(self, chapter: str) -> CheckFailure | None:
        """Hand it in where all else is solved; None if nothing is said."""
        names = chapters.solved(chapter)
        name = self.answer.__name__
        if name not in names:
            raise KeyError(f"{self.exercise}: the notebook has no {name}")
        names[name] = self.answer
        _show(names, self.answer)
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for hidden in (False, True):
                for text in chapters.check_cells(chapter, self.exercise, hidden=hidden):
                    try:
                        exec(compile(text, f"check of {self.exercise}", "exec"), names)
                    except CheckFailure as failure:
                        return failure
        return None


def _show(names: dict, answer: Any) -> None:
    """Let an answer use what the notebook defines beside it, not other answers."""
    own = sys.modules[answer.__module__].__dict__
    own.update({name: each for name, each in names.items() if name[:2] != "__"})


def name_of(failure: CheckFailure | None) -> str:
    """The name that a message gives, "" if it gives none."""
    return failure.mistake or "" if failure else ""


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
    if kind not in KINDS or {first, verdict} - {"", *VERDICTS}:
        raise ValueError(f"{exercise}: {kind}, {first}, {verdict}")

    def add(answer: Any) -> Any:
        entry = Stranger(exercise, truth, answer, kind, first, verdict, says, round)
        _found.setdefault(answer.__module__, []).append(entry)
        return answer

    return add


def all_strangers() -> Iterator[tuple[str, Stranger]]:
    """Give each answer with its chapter."""
    by_module = {chapters.source(each).module: each for each in chapters.CHAPTERS}
    for module in iter_modules(strangers.__path__):
        for entry in answers(module.name):
            yield by_module[module.name], entry


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
