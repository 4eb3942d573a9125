"""What a student gets back: one page a chapter that says what to look at, and why.

The page is complete in itself: no scripts, no requests, readable on a phone and on
paper. Whatever comes from the student, or from code of the student's, is shown as text.
Of a hidden test the page says what it checks, never on what.
"""

import functools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import jinja2
from markupsafe import Markup

from autograder.exercise.reasons import reasons
from autograder.exercise.section import section
from autograder.generator.source import BEGIN_SOLUTION, END_SOLUTION
from autograder.grading import markdown
from autograder.grading.clean import plain
from autograder.grading.job import GRADED, NOT_RUN, Outcome, Verdict
from autograder.grading.paper import Paper, exercise_of
from autograder.grading.telling import told

LONGEST = 3000  # characters of anything that a student's code wrote
CODE = 20_000  # characters of an answer
FOLDED = 24  # lines of an answer; a longer one is opened when it is wanted
HINT = re.compile(
    r"<details>\s*<summary>(Hint \d+[^<]*)</summary>(.*?)</details>", re.DOTALL
)
FACTS = {"on": "input", "call": "call", "got": "got", "expected": "expected"}
SAID = ("alternatives", "hint", "why", "besides", "look")
TITLE = re.compile(r"^## Exercise (.+)$", re.MULTILINE)
STUB = re.compile(r"^\s*\*\*Your [^*\n]{1,40}\*\*")  # the first line of the cell

NOTHING = Markup("")
PASSED, FAILED, UNTOUCHED = "passed", "failed", "untouched"
WAITING, PARTLY = "waiting", "partly"
SYMBOLS = {PASSED: "✓", FAILED: "✗", UNTOUCHED: "○", WAITING: "…", PARTLY: "◐"}
WORDS = {
    PASSED: "solved",
    FAILED: "not solved yet",
    UNTOUCHED: "not written yet",
    WAITING: "waits for a person",
    PARTLY: "partly solved",
}
ADVICE = (  # words of a reason -> what a student can do about it
    (
        "no notebook",
        "Hand the notebook in under the name it was handed out with.",
    ),
    (
        "memory",
        "Something made far more numbers than the exercise needs. Look for tensors "
        "that grow in a loop, and for shapes that broadcast to a huge one.",
    ),
    (
        "interrupt",
        "A cell does not end, and does not let itself be stopped. Look at its loops, "
        "and at what catches every exception.",
    ),
    (
        "time",
        "Something runs far longer than the exercise needs. Look for a loop that does "
        "not end, and for a training that belongs in a terminal.",
    ),
    (
        "kernel died",
        "Something there ended Python itself: a call of `exit`, or a crash in a "
        "library. The rest could not be run.",
    ),
    (
        "JSON",
        "The file is damaged, so nothing in it could be read. Open your own copy in "
        "Jupyter and save it again.",
    ),
)
GENERAL_ADVICE = (
    "Open your notebook, restart the kernel, run all cells, save it, and hand it in "
    "again if you still can. If all of that works for you, show this page to your "
    "instructor: it may not be your fault."
)


@dataclass(frozen=True)
class HandGrade:
    """What a person gave for a cell: a written answer, or a check that they overrule.

    Args:
        grade_id: the cell's name.
        score: the points, or None where the person has only written a comment.
        comment: what the person wrote, in Markdown.
    """

    grade_id: str
    score: float | None = None
    comment: str = ""


@dataclass
class _Part:
    """What the page says about one graded cell."""

    title: str
    points: float
    score: float
    state: str
    headline: str = ""  # the named mistake, or what is wrong
    facts: list[tuple[str, str]] = field(default_factory=list)
    first: str = ""  # what to mend before this
    why: list[str] = field(default_factory=list)
    given: str = ""  # the right answers that it was given
    hidden: bool = False
    where: str = ""
    link: str = ""
    answer: str | None = None
    rubric: Markup = NOTHING
    comment: Markup = NOTHING

    symbol = property(lambda self: SYMBOLS[self.state])


@dataclass
class _Exercise:
    """What the page says about one exercise."""

    name: str
    title: str
    hints: list[tuple[str, Markup]]
    parts: list[_Part]
    code: str = ""  # the answer, as it was handed in

    points = property(lambda self: sum(part.points for part in self.parts))
    score = property(lambda self: sum(part.score for part in self.parts))
    symbol = property(lambda self: SYMBOLS[self.state])
    words = property(lambda self: WORDS[self.state])

    @property
    def state(self) -> str:
        """The state of its parts together."""
        states = {part.state for part in self.parts}
        if len(states) == 1:
            return states.pop()
        return next(s for s in (WAITING, PARTLY, FAILED) if s in states | {PARTLY})

    @property
    def is_open(self) -> bool:
        """Whether there is something to do."""
        return self.state not in (PASSED, WAITING)

    @property
    def lines(self) -> int:
        """How long the answer is."""
        return self.code.count("\n") + 1

    @property
    def shows_code(self) -> bool:
        """Whether what is wrong is said beside the answer."""
        return bool(self.code) and self.state in (FAILED, PARTLY)

    @property
    def in_full(self) -> bool:
        """Whether there is more to say than that it is solved."""
        said = any(
            part.comment or part.given or part.answer is not None for part in self.parts
        )
        return self.state != PASSED or said

    @property
    def headline(self) -> str:
        """The first thing that is wrong."""
        return next((part.headline for part in self.parts if part.headline), "")


def page(
    outcome: Outcome,
    paper: Paper,
    *,
    hand: Iterable[HandGrade] = (),
    site: str = "",
    penalty: float = 0.0,
    notes: Sequence[str] = (),
) -> str:
    """Return the page of a student and a chapter.

    Args:
        outcome: what became of the submission.
        paper: the chapter's exercises.
        hand: what people gave for its cells.
        site: the address of the book, for links to its sections; without one they are
            named in words.
        penalty: points taken off because it was late.
        notes: what else to say about the score, such as which attempt counts.
    """
    exercises = []
    if outcome.status == GRADED:
        exercises = _exercises(
            outcome, paper, {each.grade_id: each for each in hand}, site
        )
    return template("feedback.html").render(
        outcome=outcome,
        title=_title(paper.released) or outcome.chapter,
        number=_number(paper.chapter),
        exercises=exercises,
        to_do=[each for each in exercises if each.is_open],
        advice=[] if exercises else _advice(outcome.reason),
        notes=notes,
        penalty=penalty,
        **_sums(exercises),
    )


def _sums(exercises: Sequence[_Exercise]) -> dict:
    states = [exercise.state for exercise in exercises]
    parts = [part for exercise in exercises for part in exercise.parts]
    return {
        "score": sum(exercise.score for exercise in exercises),
        "points": sum(exercise.points for exercise in exercises),
        "solved": states.count(PASSED),
        "waiting": sum(part.points for part in parts if part.state == WAITING),
    }


def _advice(reason: str) -> list[str]:
    found = [advice for words, advice in ADVICE if words in reason][:1]
    return [*found, GENERAL_ADVICE]


# --- the paper ------------------------------------------------------------------------


@functools.lru_cache(maxsize=16)
def _title(released: str) -> str:
    """Return the chapter's title, from the first heading of its notebook."""
    heading = re.search(r"^# (.+)$", _cells(released)[0]["source"], re.MULTILINE)
    return heading.group(1).removesuffix(": exercises") if heading else ""


def _number(chapter: str) -> str:
    first = chapter.partition("_")[0].lstrip("0")
    return first if first.isdigit() else ""  # a sheet has none


def _cells(notebook: str) -> list[dict]:
    cells = json.loads(notebook)["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in cells]


@functools.lru_cache(maxsize=16)
def _headings(released: str) -> dict[str, tuple[str, list[tuple[str, Markup]]]]:
    """Return the title and the hints of every exercise, by its name."""
    found: dict[str, tuple[str, list[tuple[str, Markup]]]] = {}
    title = ""
    hints: list[tuple[str, Markup]] = []
    for cell in _cells(released):
        if cell["cell_type"] == "markdown":
            if heading := TITLE.search(cell["source"]):
                title, hints = heading.group(1), []
            hints += [
                (summary.strip(), markdown.render(text))
                for summary, text in HINT.findall(cell["source"])
            ]
        if grading := cell["metadata"].get("nbgrader"):
            found.setdefault(exercise_of(grading["grade_id"]), (title, hints))
    return found


@functools.lru_cache(maxsize=16)
def _rubrics(source: str) -> dict[str, Markup]:
    """Return the rubric of every written answer, by its grade_id."""
    found = {}
    for cell in _cells(source):
        grading = cell["metadata"].get("nbgrader", {})
        if grading.get("grade") and grading.get("solution"):
            text = cell["source"].replace(BEGIN_SOLUTION, "").replace(END_SOLUTION, "")
            _, heading, rubric = text.partition("**Rubric")
            found[grading["grade_id"]] = markdown.render(heading + rubric)
    return found


# --- exercises ------------------------------------------------------------------------


def _exercises(
    outcome: Outcome, paper: Paper, hand: dict[str, HandGrade], site: str
) -> list[_Exercise]:
    verdicts = {verdict.grade_id: verdict for verdict in outcome.verdicts}
    written = {answer["grade_id"]: answer for answer in outcome.by_hand}
    codes = _codes(outcome.notebook)
    found: dict[str, _Exercise] = {}
    for grade_id in paper.points:
        if grade_id in verdicts:
            part = _checked(verdicts[grade_id], site)
        elif grade_id in written:
            part = _written(written[grade_id], paper, hand.get(grade_id))
        else:
            continue
        _overrule(part, hand.get(grade_id))
        name = exercise_of(grade_id)
        if name not in found:
            title, hints = _headings(paper.released).get(name, (name, []))
            code = plain(codes.get(name, ""), most=CODE)
            found[name] = _Exercise(name, title, hints, [], code)
        found[name].parts.append(part)
    return list(found.values())


def _codes(notebook: str) -> dict[str, str]:
    """Return the answers of a notebook that are code, by their exercises' names."""
    found = {}
    for cell in _cells(notebook) if notebook else []:
        grading = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "code" and grading.get("solution"):
            found[grading["grade_id"]] = cell["source"].strip("\n")
    return found


def _overrule(part: _Part, given: HandGrade | None) -> None:
    """Enter what a person gave, whatever a check said."""
    if given is None:
        return
    part.comment = markdown.render(_plain(given.comment))
    if given.score is not None:
        part.score = given.score
        part.state = PASSED if given.score >= part.points else PARTLY
        if given.score <= 0:
            part.state = FAILED


def _written(answer: dict, paper: Paper, given: HandGrade | None) -> _Part:
    """Describe a written answer; the rubric is shown once there are points."""
    part = _Part("Your answer", float(answer["points"]), 0.0, WAITING)
    text = STUB.sub("", str(answer["answer"])).strip()
    part.answer = plain(text, 20_000)
    if given is not None and given.score is not None:
        part.rubric = _rubrics(paper.source).get(answer["grade_id"], Markup(""))
    return part


def _checked(verdict: Verdict, site: str) -> _Part:
    """Describe a check."""
    state = PASSED if not verdict.part else FAILED
    title = verdict.title.partition(": ")[2] or verdict.title
    part = _Part(title, verdict.points, verdict.score, state)
    if verdict.given:
        part.given = " and ".join(f"`{_plain(name)}`" for name in verdict.given)
    if state == PASSED or verdict.failure is None:
        return part
    part.hidden = verdict.part == "hidden"
    facts = told(verdict.failure) if part.hidden else verdict.failure
    failure = {key: _plain(value or "") for key, value in facts.items()}
    if verdict.part == NOT_RUN or failure["what"].endswith("not written yet"):
        part.state = UNTOUCHED
    part.where, part.link = section(failure.get("read", ""), site)
    part.headline = failure.get("mistake", "") or failure["what"]
    if failure["what"] != part.headline:
        part.facts.append(("what", failure["what"]))
    part.facts += [
        (label, failure[key]) for key, label in FACTS.items() if failure.get(key)
    ]
    part.first = failure.get("first", "")
    said = {key: failure[key] for key in SAID if key in failure}
    part.why = reasons(**said)
    return part


# --- text -----------------------------------------------------------------------------


def _plain(text: object) -> str:
    """Return a text without what a browser should not meet, and not endlessly long."""
    text = str(text)
    size = f" ({len(text)} characters)" if len(text) > LONGEST else ""
    return plain(text, LONGEST) + size


def number(value: float) -> str:
    """Write points without a needless fraction.

    >>> number(2.0), number(1.5)
    ('2', '1.5')
    """
    return f"{round(value, 2):g}"


def count(value: float, word: str) -> str:
    """Write a number of things.

    >>> count(1, "point"), count(0.5, "point")
    ('1 point', '0.5 points')
    """
    return f"{number(value)} {word}" + ("" if value == 1 else "s")


@functools.cache
def template(name: str) -> jinja2.Template:
    """Return a template of this package."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("autograder.grading"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "inline": lambda text: markdown.inline(_plain(text)),
        "number": number,
        "plain": _plain,
    }
    environment.globals |= {"count": count, "FOLDED": FOLDED}
    return environment.get_template(name)
