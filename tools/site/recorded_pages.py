"""Recorded answers as pages show them: a script for each chapter, loaded on request.

    RECORDED=all|messages|none

says how much of solutions/recorded/ goes on the site: all of it; wrong answers and what
is said of them, but no right answer and no repair; or nothing.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import TypedDict

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from autograder.exercise.card import card
from autograder.expect import CheckFailure
from tools.site.lighten import PLAIN_SPAN
from tools.steps import ROOT

FOLDER = ROOT / "solutions" / "recorded"
VARIABLE = "RECORDED"
CHOICES = ("all", "messages", "none")
BOOK = "../../book"  # as seen from a page of exercises


class Answer(TypedDict):
    """One recorded answer.

    `failure` has the facts of the message, and is empty if the check passes; `repair`
    has parts of the code that are replaced: first line from 0, how many, the new lines.
    """

    code: str
    failure: dict[str, str]
    repair: list[tuple[int, int, list[str]]]


class Recorded(TypedDict):
    """The answers to an exercise, and the state of its check when it was recorded."""

    number: str
    fingerprint: str
    answers: list[Answer]


# --- what is recorded -----------------------------------------------------------------


def place(chapter: str) -> Path:
    """Say where the record of a chapter lies."""
    return FOLDER / f"{chapter}.json"


def recorded(chapter: str) -> dict[str, Recorded]:
    """Read a chapter's record; exercise -> answers."""
    path = place(chapter)
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def failure_of(found: dict[str, str]) -> CheckFailure:
    """Make the failure of its facts again."""
    made = CheckFailure(found["what"])
    for name, text in found.items():
        setattr(made, name, text)
    return made


# --- what is shown --------------------------------------------------------------------


def choice() -> str:
    """Read how much is shown.

    Raises:
        ValueError: there is no such choice.
    """
    chosen = os.environ.get(VARIABLE) or CHOICES[0]
    if chosen not in CHOICES:
        raise ValueError(f"{VARIABLE} is one of {', '.join(CHOICES)}, not {chosen!r}")
    return chosen


def lines(code: str) -> list[str]:
    """Colour code as the blocks of a page are; a line of HTML each.

    >>> lines("x = 1")[0][:28]
    'x <span class="o">=</span> '
    """
    made = highlight(code, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
    return PLAIN_SPAN.sub(r"\1", made).splitlines()


def shown(answer: Answer) -> dict:
    """Give what a page shows of an answer."""
    made = {"code": lines(answer["code"])}
    if not answer["failure"]:
        return made
    failure = failure_of(answer["failure"])
    told = card(failure, BOOK).replace("<h4 ", "<p ").replace("</h4>", "</p>")
    made |= {"title": failure.mistake or failure.what, "card": told}
    repair = [
        (first, many, lines("\n".join(new)) if new else [])
        for first, many, new in answer["repair"]
    ]
    return made | ({"repair": repair} if repair else {})


def chosen_of(answers: list[Answer], how: str) -> list[Answer]:
    """Leave out what a publisher does not show."""
    if how == "all":
        return answers
    wrong = [each for each in answers if each["failure"]]
    return [Answer(**(each | {"repair": []})) for each in wrong]


def of_chapter(answers: dict[str, Recorded], how: str) -> dict[str, list[dict]]:
    """Give what a chapter's script holds: exercise -> answers."""
    return {
        name: [shown(each) for each in chosen_of(found["answers"], how)]
        for name, found in answers.items()
    }


def script(chapter: str, answers: dict[str, list[dict]]) -> bytes:
    """Write the script of a chapter: a page from a disk may load nothing else."""
    given = json.dumps(answers, ensure_ascii=False, separators=(",", ":"))
    return f"Recorded.receive({json.dumps(chapter)}, {given});\n".encode()


def write(folder: Path, about: Path, how: str) -> None:
    """Write all scripts anew, and what the pages are told of them.

    Args:
        folder: of the site's static files; the scripts go to recorded/ in it.
        about: the file for book/_extensions/recorded.py, which is not published. It
            has all answers: those of the home page are taken from it.
        how: one of CHOICES.
    """
    shutil.rmtree(folder / "recorded", ignore_errors=True)
    (folder / "recorded").mkdir(parents=True)
    told = {}
    for path in sorted(FOLDER.glob("*.json")) * (how != "none"):
        chapter = path.stem
        found = recorded(chapter)
        content = script(chapter, of_chapter(found, how))
        (folder / "recorded" / f"{chapter}.js").write_bytes(content)
        told[chapter] = {
            "version": hashlib.sha256(content).hexdigest()[:8],
            "exercises": {
                name: {
                    "number": each["number"],
                    "count": len(chosen_of(each["answers"], how)),
                    "answers": [shown(one) for one in each["answers"]],
                }
                for name, each in found.items()
            },
        }
    about.parent.mkdir(parents=True, exist_ok=True)
    about.write_text(json.dumps(told), "utf-8")
