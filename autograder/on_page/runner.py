"""Runs what a reader has written on a page, and the check of its exercise.

It is imported after `absent.stand_in`. What it gives back is data, for a page's script.
"""

import contextlib
import importlib
import io
import linecache
import sys
import types
from pathlib import Path
from typing import Any, TypedDict

from autograder import chapters
from autograder.exercise.card import card
from autograder.exercise.length import keep_short
from autograder.exercise.showing import shortened
from autograder.expect import (
    LONGEST_LINE,
    CheckFailure,
    advice_on,
    describe_error,
    failure_of,
)
from autograder.interface import StudentError, _place

MOST_PRINTED = 4000  # characters of what the reader's code prints
ENDLESS = "…\n(more was printed, which is left out)"


class Exercise(TypedDict):
    """What tools/site/on_page.py says of an exercise.

    `given` are cells of the notebook before it, `earlier` the exercises before it, with
    their stubs; `modules` says where the checks are that the check cell names, `torch`
    whether they need PyTorch.
    """

    name: str
    number: str
    given: list[str]
    earlier: list[tuple[str, str]]
    stub: str
    check: str
    modules: dict[str, str]
    torch: bool


class Verdict(TypedDict):
    """What came out: the words of the check, as text and as a card."""

    passed: bool
    words: str
    card: str
    printed: str


def judge(exercise: Exercise, written: dict[str, str], site: str = "") -> Verdict:
    """Check what was written for an exercise.

    Args:
        exercise: which one.
        written: the texts of the reader, by the names of the exercises.
        site: the address of the book, for the link of the card.
    """
    printed = _Beginning()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        try:
            names = _names_before(exercise, written)
            _run(written[exercise["name"]], exercise["name"], names)
            names["check"] = _checks(exercise["modules"])
            _run_check(exercise["check"], names)
        except CheckFailure as failure:
            failure.number = failure.number or exercise["number"]
            keep_short(failure)
            told = str(failure), card(failure, site)
            return Verdict(
                passed=False, words=told[0], card=told[1], printed=printed.text
            )
    said = [f"{exercise['number']} {name}: passed\n" for name in exercise["modules"]]
    for each in said:
        printed.text = printed.text.replace(each, "", 1)
    return Verdict(
        passed=True, words="".join(said).strip(), card="", printed=printed.text
    )


def _names_before(exercise: Exercise, written: dict[str, str]) -> dict[str, Any]:
    """Run what stands before an exercise; an earlier answer that fails stays a stub."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for text in exercise["given"]:
        exec(compile(text, "<given>", "exec"), names)
    for name, stub in exercise["earlier"]:
        exec(compile(stub, f"<{name}>", "exec"), names)
        with contextlib.suppress(CheckFailure):
            _run(written.get(name, stub), name, names)
    return names


def _run(text: str, name: str, names: dict[str, Any]) -> None:
    """Run a cell; what stops it is said as a check says it."""
    file = f"<{name}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    try:
        exec(compile(text, file, "exec"), names)
    except SyntaxError as error:
        line = shortened((error.text or "").strip(), LONGEST_LINE)
        got = f"{error.msg}\nin line {error.lineno}: {line}"
        why = "Look at this line, and at the one before it: brackets, quotes, colons, "
        failure = CheckFailure(
            "cannot be read as Python", got=got, why=f"{why}indentation."
        )
    except (Exception, SystemExit) as error:
        stopped = StudentError(type(error).__name__, str(error), "", *_place(error))
        failure = failure_of(stopped)
        failure.got = describe_error(stopped)
        failure.why = failure.why or advice_on(failure.got)
    else:
        return
    failure.check = name
    raise failure from None


def _checks(modules: dict[str, str]) -> types.SimpleNamespace:
    """Give the checks by their names, as the package of a chapter does."""
    return types.SimpleNamespace(
        **{name: getattr(_module(place), name) for name, place in modules.items()}
    )


def _module(place: str) -> types.ModuleType:
    """Import a module without its packages' own files: they import all checks."""
    folder, package = Path(chapters.__file__).parent, chapters.__name__
    for part in place.removeprefix(f"{package}.").split(".")[:-1]:
        folder, package = folder / part, f"{package}.{part}"
        if package not in sys.modules:
            sys.modules[package] = types.ModuleType(package)
            sys.modules[package].__path__ = [str(folder)]
    return importlib.import_module(place)


def _run_check(text: str, names: dict[str, Any]) -> None:
    """Run a check cell; a name that it lacks is one that the reader took away."""
    try:
        exec(compile(text, "<check>", "exec"), names)
    except NameError as error:
        missing = StudentError("missing", str(error), error.name or "")
        failure = failure_of(missing)
        failure.check = error.name or ""
        raise failure from None


class _Beginning(io.TextIOBase):
    """Keeps the beginning of what is printed: a loop may print without end."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        """Keep it while there is room."""
        if not self.text.endswith(ENDLESS):
            self.text += text
            if len(self.text) > MOST_PRINTED:
                self.text = self.text[:MOST_PRINTED] + ENDLESS
        return len(text)
