"""How long a chapter takes, estimated from what is in it.

Everything is counted in the sources, so the same text always gives the same minutes.
The page that explains the course to readers says these rates, too.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import quizzes

ROOT = Path(__file__).resolve().parents[2]

WORDS_A_MINUTE = 200  # plain text, read with care
SECONDS = {
    "formula": 15,  # set by itself
    "symbol": 1,  # a formula in a line
    "code": 2,  # a line of code that is shown
    "figure": 20,  # looked at
    "moving": 90,  # a figure that moves, tried
    "question": 40,  # of the quiz
}
MINUTES_TO_TEACH = (
    2  # an exercise with its answer and its usual mistakes, looked through
)

CELL = re.compile(r"^(`{3,})\{code-cell\}.*?^\1[ ]*$", re.DOTALL | re.MULTILINE)
MOVING = re.compile(r"^(`{3,})\{moving-figure\}.*?^\1[ ]*$", re.DOTALL | re.MULTILINE)
FENCE = re.compile(r"^(?:`{3,}|:{3,}).*$", re.MULTILINE)
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
CELL_HEAD = re.compile(
    r"\A`{3,}\{code-cell\}[^\n]*\n(---\n.*?\n---\n|(?::[^\n]*\n)*)", re.S
)
UNSHOWN = re.compile(r"remove-input|remove-cell|hide-input|hide-cell")
FORMULA = re.compile(r"\$\$.*?\$\$", re.DOTALL)
SYMBOL = re.compile(r"\$[^$\n]+?\$")
TIME = re.compile(r"about (\d+) minutes?")
EXERCISE = re.compile(r"^## Exercise", re.MULTILINE)
SHORT_WAY = re.compile(r"^\*\d+ points? ·.* on the short way\*$", re.MULTILINE)


@dataclass(frozen=True)
class Times:
    """The minutes of a chapter, and how many exercises it has."""

    read: int
    exercises: int
    count: int
    marked: int  # minutes of the exercises on the short way

    @property
    def short(self) -> int:
        """Read the page and do the exercises on the short way."""
        return self.read + self.marked

    @property
    def student(self) -> int:
        """Read the page and do the exercises."""
        return self.read + self.exercises

    @property
    def instructor(self) -> int:
        """Read the page and look through the exercises."""
        return to_nearest(self.read + MINUTES_TO_TEACH * self.count)


def seconds_to_read(text: str) -> float:
    """Estimate how long a page's source takes to read."""
    seconds = 0.0
    for cell in CELL.finditer(text):
        seconds += seconds_of_cell(cell[0])
    text, moving = MOVING.subn("", CELL.sub("", FRONT_MATTER.sub("", text)))
    text, formulas = FORMULA.subn("", text)
    text, symbols = SYMBOL.subn("", text)
    words = len(re.findall(r"\w[\w'’-]*", FENCE.sub("", text)))
    seconds += moving * SECONDS["moving"]
    seconds += formulas * SECONDS["formula"] + symbols * SECONDS["symbol"]
    return seconds + words * 60 / WORDS_A_MINUTE


def seconds_of_cell(cell: str) -> float:
    """Estimate a code cell: the lines that are shown, and a figure if there is one."""
    head = CELL_HEAD.match(cell)
    body = cell[head.end() :].rstrip("`\n ")
    drawn = "image:" in head[1] or "plt.show()" in body
    seconds = SECONDS["figure"] if drawn and "remove-cell" not in head[1] else 0
    if not UNSHOWN.search(head[1]):
        lines = sum(bool(line.strip()) for line in body.splitlines())
        seconds += lines * SECONDS["code"]
    return seconds


def exercise_minutes(path: Path, wanted: re.Pattern = TIME) -> tuple[int, int]:
    """Add up the minutes that a notebook's exercises name, and count them.

    Args:
        path: of the notebook.
        wanted: what must stand in an exercise that counts.
    """
    cells = json.loads(path.read_text("utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    minutes = [
        int(TIME.search(text)[1])
        for text in texts
        if EXERCISE.search(text) and TIME.search(text) and wanted.search(text)
    ]
    return sum(minutes), len(minutes)


def to_nearest(minutes: float, step: int = 5) -> int:
    """Round; an estimate is not known to the minute."""
    return max(step, step * round(minutes / step))


def chapters() -> list[str]:
    """Name the chapters, in order."""
    return sorted(path.stem for path in (ROOT / "book").glob("[0-9][0-9]_*.md"))


def sources(chapter: str) -> tuple[Path, Path, Path]:
    """Give what is counted: the page, its quiz and its notebook."""
    return (
        ROOT / "book" / f"{chapter}.md",
        quizzes.QUIZZES / f"{chapter}.yml",
        ROOT / "exercises" / chapter / f"{chapter}.ipynb",
    )


def times(chapter: str) -> Times:
    """Estimate a chapter."""
    page, quiz, notebook = sources(chapter)
    seconds = seconds_to_read(page.read_text("utf-8"))
    if quiz.is_file():
        seconds += SECONDS["question"] * len(quizzes.read(quiz))
    minutes, count = exercise_minutes(notebook)
    marked, _ = exercise_minutes(notebook, SHORT_WAY)
    return Times(to_nearest(seconds / 60), to_nearest(minutes), count, marked)


def say(minutes: int) -> str:
    """Write minutes as hours and minutes, which do not break over a line."""
    hours, rest = divmod(minutes, 60)
    parts = [f"{hours} h"] if hours else []
    parts += [f"{rest} min"] if rest or not hours else []
    return "\N{NO-BREAK SPACE}".join(
        part.replace(" ", "\N{NO-BREAK SPACE}") for part in parts
    )
