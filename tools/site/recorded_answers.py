"""Recorded answers: what a check says of wrong and right ones, to read in a page.

    python -m tools.site.recorded_answers [--record [CHAPTER ...]]

Exercises that a browser cannot check, since they need PyTorch, offer some answers of
the bank and of strangers in its place: choose one, see its code, what the check says,
and which line is to be repaired. `--record` runs the checks and writes
solutions/recorded/CHAPTER.json, for the exercises whose record is older than they are;
with `--all` for every exercise.
Without it, what is recorded is counted.

A message is written down as its facts, and becomes a card when the site is built, so
that a record is as small as it can be.
"""

import argparse
import contextlib
import difflib
import hashlib
import importlib
import io
import itertools
import json
import linecache
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import torch

from tools.steps import ROOT

os.environ["COURSE_LOOK"] = "0"  # a line is named by the record itself

from autograder.exercise.chapters import chapters as table
from autograder.expect import CheckFailure
from autograder.generator.source import Exercise
from autograder.grading.imports import files_behind
from autograder.time_limit import TookTooLong, limited_time
from tests import chapters
from tests.tutor import bank
from tools.site import answer_texts, on_page
from tools.site.answer_texts import Text
from tools.site.recorded_pages import FOLDER, Answer, Recorded, place, recorded

FACTS = (  # of a failure, which its message is made of
    *("check", "number", "what", "mistake", "first", "on", "call", "got", "expected"),
    *("alternatives", "hint", "why", "besides", "read"),
)
FEWEST, MOST_WRONG, MOST_RIGHT = 6, 7, 2
MOST_ANEW = 2  # wrong answers that no change of a line mends
MOST_BASES = 3  # right answers of the bank of which one step is changed
MOST_REPAIRED = 2  # lines of a repair
ALIKE = 0.6  # a line and its repair, at least; 1 would be the same
TRIED = 200  # right answers with one step that are tried for an exercise
LOOKED = 30.0  # seconds of the processor for more than the fewest
SECONDS = 20.0  # for one run of a check
OWN_MODEL = "my_model"  # answers that are folders, and no code


# --- which exercises, and which state of them -----------------------------------------


def exercises(chapter: str) -> list[Exercise]:
    """List the exercises whose answers are code and need PyTorch."""
    return [
        each
        for each in chapters.source(chapter).exercises
        if not each.by_hand
        and each.name not in on_page.WITHOUT_TORCH
        and OWN_MODEL not in each.defines
        and each.defines
    ]


def fingerprint(chapter: str, exercise: Exercise) -> str:
    """Give a digest of what a record was made of: check, right answer, wrong ones.

    Of the checks it takes the modules of the chapter alone. What all chapters share is
    tried by a sample of the records, in tests/site/test_recorded_answers.py.
    """
    texts = [cell.text for cell in (*exercise.answers, *exercise.graded)]
    for entry in chapters.by_hand(chapter):
        if entry.exercise == exercise.name and not entry.replaces:
            module = sys.modules[entry.answer.__module__]
            texts.append(f"{entry.mistake} {answer_texts.source(entry.answer, module)}")
    for entry in strangers(chapter, exercise):
        module = sys.modules[entry.answer.__module__]
        texts.append(f"{entry.says} {answer_texts.source(entry.answer, module)}")
    texts += [path.read_text("utf-8") for path in _check_files(chapter, exercise)]
    texts += shown(exercise.name)
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def shown(exercise: str) -> list[str]:
    """List the mistakes by which a page of the book names answers of an exercise."""
    block = re.compile(
        rf"^```\{{recorded-answers\}} \S+ {re.escape(exercise)}\n(.*?)^```",
        re.MULTILINE | re.DOTALL,
    )
    pages = sorted((ROOT / "book").glob("*.md"))
    found = [each for page in pages for each in block.findall(page.read_text("utf-8"))]
    return [line for each in found for line in each.splitlines() if line]


def _check_files(chapter: str, exercise: Exercise) -> list[Path]:
    package = f"autograder.chapters.{on_page.package_of(chapter)}"
    checks = importlib.import_module(package)
    text = "\n".join(chapters.check_cells(chapter, exercise.name, hidden=False))
    asked = {
        getattr(checks, name).__module__
        for name in re.findall(r"\bcheck\.(\w+)\(", text)
    }
    folder = ROOT / package.replace(".", "/")
    found = files_behind(asked) - {folder / "__init__.py"}
    return sorted(path for path in found if path.is_relative_to(folder))


# --- one run of a check ---------------------------------------------------------------


def run(chapter: str, exercise: str, text: Text) -> CheckFailure | None:
    """Check an answer as a notebook does; give what the check says against it.

    Raises:
        ValueError: it cannot be run, or its check does not end.
    """
    names = dict(chapters.written(chapter))
    torch.manual_seed(0)  # parameters start alike in each run
    file = f"<{exercise}>"
    lines = text.code.splitlines(keepends=True)
    linecache.cache[file] = len(text.code), None, lines, file
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            limited_time(SECONDS),
        ):
            exec(compile(text.code, file, "exec"), names)
            for cell in chapters.check_cells(chapter, exercise, hidden=False):
                exec(compile(cell, "<check>", "exec"), names)
    except CheckFailure as failure:
        return failure
    except (Exception, TookTooLong) as error:
        raise ValueError(f"{exercise}: {type(error).__name__}: {error}") from None
    return None


def facts(failure: CheckFailure) -> dict[str, str]:
    """Take from a failure what its message is made of."""
    found = {name: getattr(failure, name) for name in FACTS}
    return {name: text for name, text in found.items() if text}


# --- the choice -----------------------------------------------------------------------


def record(chapter: str, exercise: Exercise) -> list[Answer]:
    """Choose answers of an exercise, the bank's and strangers', and run its check.

    A wrong one is few steps from a right one, so that its repair can be shown. Two may
    be others, which have to be written anew, if their mistakes are among no other's.
    What is right comes from the bank, and from the course's own answer only where the
    bank has no other.
    """
    entries = [e for e in chapters.bank(chapter) if e.exercise == exercise.name]
    known = {entry.mistake for entry in entries if entry.mistake}
    names = chapters.written(chapter)
    texts = [answer_texts.of_bank(entry, names) for entry in entries]
    texts += [
        answer_texts.of_stranger(each, names) for each in strangers(chapter, exercise)
    ]
    texts = [each for each in texts if each]
    others = [each for each in texts if each.mistake is None]
    others.sort(key=lambda each: len(each.code))  # the plain ones first
    passing = (each for each in others if passes(chapter, exercise, each))
    rights = [*itertools.islice(passing, MOST_BASES)]
    rights = rights or answer_texts.references(exercise)
    told = list(by_hand(chapter, exercise, texts))
    wrong = [with_repair(text, rights) for text in told]
    wrong = [each for each in wrong if each.repaired]
    wanted, had = shown(exercise.name), {each.mistake for each in wrong}
    wrong += changed(chapter, exercise, rights, known, had, wanted)
    texts = chosen(wrong, told, wanted)
    texts += [each for each in rights if exercise.defines == [each.name]][:MOST_RIGHT]
    answers = [answer(chapter, exercise, text) for text in texts]
    answers = list({each["code"]: each for each in answers}.values())  # as laid out
    return sorted(answers, key=lambda each: hashlib.md5(each["code"].encode()).digest())


def strangers(chapter: str, exercise: Exercise) -> list[bank.Stranger]:
    """List the wrong answers that strangers gave to an exercise."""
    entries = bank.answers(chapters.source(chapter).module)
    return [each for each in entries if each.exercise == exercise.name]


def passes(chapter: str, exercise: Exercise, text: Text) -> bool:
    """Whether a text is right as it stands here."""
    with contextlib.suppress(ValueError):
        return run(chapter, exercise.name, text) is None
    return False


def by_hand(chapter: str, exercise: Exercise, texts: list[Text]) -> Iterator[Text]:
    """Give the wrong answers that are told their mistake as they stand here."""
    for text in texts:
        if text.mistake is not None:
            with contextlib.suppress(ValueError):
                failure = run(chapter, exercise.name, text)
                if failure and failure.mistake == text.mistake:
                    yield text


def with_repair(text: Text, rights: Iterable[Text]) -> Text:
    """Add to a wrong answer the right one that is few steps away, if there is one."""
    for right in rights:
        if right.name == text.name and is_near(text.code, right.code):
            return replace(text, repaired=right.code)
    return text


def is_near(wrong: str, right: str) -> bool:
    """Whether a line or two tell two texts apart, and these have much in common.

    >>> is_near("a = b.sum(0)", "a = b.sum(1)"), is_near("a = b.sum(0)", "return 1")
    (True, False)
    """
    before = wrong.splitlines()
    parts = repair(wrong, right)
    if sum(max(many, len(new)) for _, many, new in parts) > MOST_REPAIRED:
        return False
    return all(
        difflib.SequenceMatcher(
            None, "".join(before[first : first + many]), "".join(new)
        ).ratio()
        > ALIKE
        for first, many, new in parts
        if many and new
    )


def changed(
    chapter: str,
    exercise: Exercise,
    rights: list[Text],
    known: set[str],
    had: set[str | None],
    wanted: list[str],
) -> Iterator[Text]:
    """Give right answers with one step that makes a mistake of the bank.

    Each mistake comes once; a few come again, or have no name, for where there are few.
    Those that are wanted are looked for until they are had.
    """
    had, again = set(had), 0
    end = time.process_time() + LOOKED
    steps = (text for right in rights for text in answer_texts.one_step_off(right))
    for text in itertools.islice(steps, TRIED):
        varied = len(had) >= min(len(known), MOST_WRONG) and had >= {*wanted}
        enough = len(had) + again >= FEWEST
        if enough and (varied or time.process_time() > end):
            return
        with contextlib.suppress(ValueError):
            failure = run(chapter, exercise.name, text)
            if failure is None:
                continue
            name = failure.mistake
            if name in known and name not in had:
                had.add(name)
                yield replace(text, mistake=name)
            elif again < FEWEST and (name in known or (not name and failure.compared)):
                again += 1
                yield replace(text, mistake=name)


def chosen(wrong: list[Text], told: list[Text], wanted: list[str]) -> list[Text]:
    """Take one answer for each mistake, then others.

    Args:
        wrong: with their repair.
        told: those of the bank, most of which have to be written anew.
        wanted: mistakes that come before all others.
    """
    first: dict[str, Text] = {}
    for text in wrong:
        if text.mistake:
            first.setdefault(text.mistake, text)
    anew: dict[str, Text] = {}
    for text in sorted(told, key=lambda text: len(text.code)):
        if text.mistake and text.mistake not in first:
            anew.setdefault(text.mistake, text)
    again = [each for each in wrong if each not in first.values()]
    ordered = sorted(first.values(), key=lambda text: text.mistake not in wanted)
    repaired = ordered[: MOST_WRONG - min(len(anew), MOST_ANEW)]
    found = [*repaired, *list(anew.values())[:MOST_ANEW]]
    spare = [*list(anew.values())[MOST_ANEW:], *again]
    return found + spare[: max(0, FEWEST - len(found))]


def repair(wrong: str, right: str) -> list[tuple[int, int, list[str]]]:
    r"""Say which lines of a wrong answer are replaced by which.

    >>> repair("a\nb\nc", "a\nB\nc")
    [(1, 1, ['B'])]
    """
    before, after = wrong.splitlines(), right.splitlines()
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return [
        (first, end - first, after[start:stop])
        for kind, first, end, start, stop in matcher.get_opcodes()
        if kind != "equal"
    ]


def answer(chapter: str, exercise: Exercise, text: Text) -> Answer:
    """Write an answer down, in the layout in which it is shown and counts its lines."""
    code = answer_texts.laid_out(text.code)
    right = answer_texts.laid_out(text.repaired) if text.repaired else code
    failure = run(chapter, exercise.name, replace(text, code=code))
    return Answer(
        code=code,
        failure=facts(failure) if failure else {},
        repair=repair(code, right),
    )


# --- files ----------------------------------------------------------------------------


def stale(chapter: str) -> list[str]:
    """Name the exercises whose record is missing or older than its check."""
    found = recorded(chapter)
    return [
        each.name
        for each in exercises(chapter)
        if found.get(each.name, {}).get("fingerprint") != fingerprint(chapter, each)
    ]


def record_chapter(chapter: str, *, anew: bool) -> None:
    """Bring the record of a chapter up to date."""
    asked = exercises(chapter)
    wanted = [each.name for each in asked] if anew else stale(chapter)
    before, after = recorded(chapter), {}
    numbers = {each.name: each.number for each in table()[chapter].exercises}
    for each in asked:
        if each.name not in wanted:
            after[each.name] = before[each.name] | {"number": numbers[each.name]}
            continue
        begin = time.process_time()
        answers = record(chapter, each)
        seconds = time.process_time() - begin
        wrong = sum(bool(one["failure"]) for one in answers)
        right = len(answers) - wrong
        print(f"{chapter} {each.name}: {wrong} wrong, {right} right, {seconds:.1f} s")
        after[each.name] = Recorded(
            number=numbers[each.name],
            fingerprint=fingerprint(chapter, each),
            answers=answers,
        )
    if after:
        FOLDER.mkdir(exist_ok=True)
        text = json.dumps(after, ensure_ascii=False, indent=1)
        place(chapter).write_text(text + "\n", "utf-8")


def main() -> None:
    """Record, or count what is recorded."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", nargs="*", metavar="CHAPTER")
    parser.add_argument("--all", action="store_true", help="record every exercise anew")
    options = parser.parse_args()
    if options.record is None:
        for chapter in chapters.CHAPTERS:
            counts = [len(each["answers"]) for each in recorded(chapter).values()]
            print(f"{chapter}: {len(counts)} exercises, {sum(counts)} answers")
        return
    wanted = options.record or chapters.CHAPTERS
    if len(wanted) == 1:
        record_chapter(wanted[0], anew=options.all)
        return
    for chapter in wanted:  # each in a process of its own, which keeps no other's names
        command = [sys.executable, "-m", "tools.site.recorded_answers"]
        command += ["--record", chapter]
        subprocess.run(command + ["--all"] * options.all, check=True)


if __name__ == "__main__":
    main()
