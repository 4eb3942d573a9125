"""What an instructor gets about a class: one page with plots, and the same as CSV.

It says how each check went, which mistakes are the commonest, who is stuck where, what
was repaired, stopped or refused, and which submissions look alike. Outcomes are read
one by one; of each a few numbers are kept, so that a large class takes no more memory
than its report does.
"""

import datetime
import io
import json
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.figure import Figure

from autograder.files import write_beside
from autograder.generator.modules import without_markers
from autograder.grading import likeness
from autograder.grading.clean import csv_file, plain
from autograder.grading.feedback import template
from autograder.grading.job import GRADED, NOT_RUN, flag_text
from autograder.grading.paper import Paper, exercise_of

PASSED, GIVEN, VISIBLE, HIDDEN = "passed", "given", "visible", "hidden"
UNTOUCHED, WAITING = "untouched", "waiting"
STATES = {  # -> symbol, words, colour
    PASSED: ("✓", "passed", "#2f8f57"),
    GIVEN: ("◇", "passes, given right earlier answers", "#8ab94d"),
    HIDDEN: ("◐", "fails hidden inputs only", "#d9a227"),
    VISIBLE: ("✗", "fails", "#c8552b"),
    UNTOUCHED: ("○", "not written", "#9aa5b1"),
    WAITING: ("…", "waits for a person", "#4a90c2"),
}
WORST_FIRST = (VISIBLE, HIDDEN, UNTOUCHED, WAITING, GIVEN, PASSED)
ROWS = {  # on the page
    "mistakes": 15,
    "students": 200,
    "notes": 40,
    "packages": 20,
    "alike": 50,
}
NAMES = 5  # of students beside a note
LONGEST = 200  # characters of a text that is counted
INK = "#010203"  # stands for the colour of the text, which the page decides
STYLE = {  # of the plots
    "svg.fonttype": "none",  # text stays text, in the page's font
    "svg.hashsalt": "class report",  # the same class gives the same file
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
}


@dataclass
class _Check:
    """How a class did in one check."""

    grade_id: str
    title: str
    points: float
    states: Counter[str] = field(default_factory=Counter)

    exercise = property(lambda self: exercise_of(self.grade_id))
    students = property(lambda self: self.states.total())
    share = property(lambda self: self.states[PASSED] / self.students)


@dataclass
class _Student:
    """How a student did in one chapter."""

    name: str
    status: str
    reason: str = ""
    score: float = 0.0
    points: float = 0.0
    states: dict[str, str] = field(default_factory=dict)  # by exercise


@dataclass(frozen=True)
class _Wrong:
    """One way in which answers to an exercise are wrong."""

    exercise: str
    words: str
    named: bool  # a known mistake, or what a check found


@dataclass
class _Chapter:
    """What is kept of a chapter."""

    name: str
    checks: dict[str, _Check] = field(default_factory=dict)
    students: list[_Student] = field(default_factory=list)
    wrong: Counter[_Wrong] = field(default_factory=Counter)
    notes: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    packages: Counter[str] = field(default_factory=Counter)  # wanted, and not here
    answers: likeness.Class | None = None
    pairs: list[likeness.Pair] = field(default_factory=list)
    crowded: list[str] = field(default_factory=list)  # not every pair was compared

    @property
    def graded(self) -> list[_Student]:
        """The students who have a grade."""
        return [each for each in self.students if each.status == GRADED]

    @property
    def exercises(self) -> list[str]:
        """The exercises, in the order of their checks."""
        return list(dict.fromkeys(check.exercise for check in self.checks.values()))


class Report:
    """What is kept of a class while it is read, and the files that are made of it.

    Args:
        papers: of the chapters, by name.
    """

    def __init__(self, papers: Mapping[str, Paper]) -> None:
        self._papers = papers
        self._chapters: dict[str, _Chapter] = {}

    def add(self, outcome: Mapping) -> None:
        """Count what became of a submission: all of it, or nothing if that fails.

        Args:
            outcome: as ``Outcome.to_dict`` gives it. Without a notebook it is not
                compared with others.
        """
        name = outcome["chapter"]
        chapter = self._chapters.get(name) or _empty(name, self._papers.get(name))
        apart = _Chapter(name)
        _enter(apart, outcome)
        if chapter.answers and apart.graded and outcome.get("notebook"):
            student = apart.graded[0].name
            chapter.answers.add(student, _answers(outcome["notebook"]))
        _join(chapter, apart)
        self._chapters[name] = chapter

    def write(self, folder: Path) -> Path:
        """Write report.html and the CSV files into a folder; return the page."""
        found = [self._chapters[name] for name in sorted(self._chapters)]
        for chapter in found:
            chapter.students.sort(key=lambda student: student.name)
            if chapter.answers:
                chapter.pairs = chapter.answers.pairs()
                chapter.crowded = chapter.answers.crowded
                chapter.answers = None
        for name, rows in _tables(found).items():
            write_beside(folder / name, csv_file(rows))
        page = folder / "report.html"
        write_beside(page, _page(found))
        return page


# --- reading --------------------------------------------------------------------------


def _empty(name: str, paper: Paper | None) -> _Chapter:
    chapter = _Chapter(name)
    if paper:
        starters = _answers(paper.released)
        models = {
            exercise: without_markers(text)
            for exercise, text in _answers(paper.source).items()
        }
        chapter.answers = likeness.Class(starters, models)
    return chapter


def _answers(notebook: str) -> dict[str, str]:
    """Return the texts of a notebook's answer cells; none of one that is damaged."""
    found = {}
    try:
        for cell in json.loads(notebook)["cells"]:
            grading = cell["metadata"].get("nbgrader", {})
            is_answer = grading.get("solution") and not grading.get("grade")
            if cell["cell_type"] == "code" and is_answer:
                found[str(grading["grade_id"])] = "".join(cell["source"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return found


def _enter(chapter: _Chapter, outcome: Mapping) -> None:
    """Count an outcome."""
    student = _Student(
        plain(outcome["student"], LONGEST),
        outcome["status"],
        plain(outcome.get("reason", ""), 3_000),
    )
    chapter.students.append(student)
    _note(chapter, student.name, "repaired", outcome.get("repairs", ()))
    _note(chapter, student.name, "limited", outcome.get("limited", ()))
    if outcome.get("flags"):
        _note(chapter, student.name, "to be read", map(flag_text, outcome["flags"]))
    _note(chapter, student.name, "limited, hidden tests", outcome.get("unseen", ()))
    chapter.packages.update(
        plain(each, LONGEST) for each in outcome.get("packages", ())
    )
    if student.status != GRADED:
        _note(chapter, student.name, "not graded", [student.reason])
        return
    for verdict in outcome["verdicts"]:
        _enter_verdict(chapter, student, verdict)
    for answer in outcome.get("by_hand", ()):
        _enter_state(chapter, student, answer, "a written answer", WAITING)


def _join(chapter: _Chapter, apart: _Chapter) -> None:
    """Add to a chapter what was counted apart from it."""
    chapter.students += apart.students
    chapter.wrong.update(apart.wrong)
    chapter.packages.update(apart.packages)
    for key, students in apart.notes.items():
        chapter.notes.setdefault(key, []).extend(students)
    for name, check in apart.checks.items():
        chapter.checks.setdefault(name, replace(check, states=Counter()))
        chapter.checks[name].states.update(check.states)


def _enter_verdict(chapter: _Chapter, student: _Student, verdict: Mapping) -> None:
    failure = verdict["failure"] or {}
    what = plain(failure.get("what", ""), LONGEST)
    state = verdict["part"] or (GIVEN if verdict.get("given") else PASSED)
    if state == NOT_RUN or what.endswith("not written yet"):
        state = UNTOUCHED
    student.score += verdict["score"]
    title = verdict["title"].partition(": ")[2] or verdict["title"]
    _enter_state(chapter, student, verdict, title or "a written answer", state)
    if state in (VISIBLE, HIDDEN):
        mistake = failure.get("mistake")
        words = mistake or re.sub(r"\d+", "…", what)  # 3 of 8 values are wrong
        wrong = _Wrong(verdict["exercise"], plain(words, LONGEST), bool(mistake))
        chapter.wrong[wrong] += 1


def _enter_state(
    chapter: _Chapter, student: _Student, graded: Mapping, title: str, state: str
) -> None:
    grade_id, exercise = graded["grade_id"], graded["exercise"]
    check = chapter.checks.setdefault(
        grade_id, _Check(grade_id, title, graded["points"])
    )
    check.states[state] += 1
    student.points += graded["points"]
    both = state, student.states.get(exercise, PASSED)
    student.states[exercise] = min(both, key=WORST_FIRST.index)


def _note(chapter: _Chapter, student: str, kind: str, texts: Iterable[str]) -> None:
    for text in texts:
        chapter.notes.setdefault((kind, plain(text, LONGEST)), []).append(student)


# --- CSV ------------------------------------------------------------------------------


def _tables(chapters: list[_Chapter]) -> dict[str, list[tuple]]:
    """Return the rows of every CSV file, the header first."""
    return {
        "checks.csv": [
            ("chapter", "exercise", "check", "title", "points", "students", *STATES),
            *(row for chapter in chapters for row in _check_rows(chapter)),
        ],
        "mistakes.csv": [
            ("chapter", "exercise", "mistake", "is_named", "students"),
            *(
                (c.name, w.exercise, w.words, "yes" if w.named else "no", number)
                for c in chapters
                for w, number in _commonest(c)
            ),
        ],
        "students.csv": [
            ("student", "chapter", "status", "exercise", "state"),
            *(
                (s.name, c.name, s.status, exercise, state)
                for c in chapters
                for s in c.students
                for exercise, state in (s.states or {"": ""}).items()
            ),
        ],
        "packages.csv": [
            ("chapter", "package", "students"),
            *((c.name, *wanted) for c in chapters for wanted in _wanted(c)),
        ],
        "notes.csv": [
            ("chapter", "kind", "note", "student"),
            *(
                (c.name, kind, text, student)
                for c in chapters
                for (kind, text), students in c.notes.items()
                for student in students
            ),
        ],
        "alike.csv": [
            ("chapter", "first", "second", "bits", "exercises"),
            *(
                (c.name, p.first, p.second, f"{p.bits:.1f}", " ".join(p.exercises))
                for c in chapters
                for p in c.pairs
            ),
        ],
    }


def _check_rows(chapter: _Chapter) -> Iterator[tuple]:
    for check in chapter.checks.values():
        facts = check.exercise, check.grade_id, check.title, check.points
        counts = [check.states[state] for state in STATES]
        yield chapter.name, *facts, check.students, *counts


def _commonest(chapter: _Chapter) -> list[tuple[_Wrong, int]]:
    return sorted(
        chapter.wrong.items(),
        key=lambda item: (-item[1], item[0].exercise, item[0].words),
    )


def _wanted(chapter: _Chapter) -> list[tuple[str, int]]:
    return sorted(chapter.packages.items(), key=lambda item: (-item[1], item[0]))


# --- the page -------------------------------------------------------------------------


def _page(chapters: list[_Chapter]) -> str:
    with rc_context(STYLE):  # type: ignore[arg-type]  # each key has a type there
        views = [_view(chapter) for chapter in chapters]
    return template("report.html").render(
        chapters=views,
        states=STATES,
        made=datetime.date.today().isoformat(),
    )


def _view(chapter: _Chapter) -> dict:
    """Gather what the page says about a chapter."""
    by_score = sorted(chapter.graded, key=lambda student: (student.score, student.name))
    shown = by_score[: ROWS["students"]]
    scores = [student.score for student in by_score]
    notes = sorted(chapter.notes.items(), key=lambda item: (-len(item[1]), item[0]))
    return {
        "chapter": chapter,
        "mean": statistics.fmean(scores) if scores else 0.0,
        "median": statistics.median(scores) if scores else 0.0,
        "points": max((student.points for student in by_score), default=0.0),
        "scores": _plot_scores(chapter) if scores else None,
        "checks": _plot_checks(chapter) if scores else None,
        "mistakes": _commonest(chapter)[: ROWS["mistakes"]],
        "students": sorted(shown, key=lambda student: student.name),
        "cut": len(by_score) - len(shown),
        "notes": [
            (kind, text, len(students), students[:NAMES])
            for (kind, text), students in notes[: ROWS["notes"]]
        ],
        "more_notes": max(0, len(notes) - ROWS["notes"]),
        "packages": _wanted(chapter)[: ROWS["packages"]],
        "more_packages": max(0, len(chapter.packages) - ROWS["packages"]),
        "pairs": chapter.pairs[: ROWS["alike"]],
        "more_pairs": max(0, len(chapter.pairs) - ROWS["alike"]),
        "crowd": likeness.CROWD,
    }


def _plot_scores(chapter: _Chapter) -> Markup:
    """Draw how many students have how many points."""
    scores = [student.score for student in chapter.graded]
    most = max(1, *(int(student.points) for student in chapter.graded))
    width = max(1, round(most / 15))
    figure = Figure(figsize=(7, 2.4), layout="constrained")
    axes = figure.subplots()
    edges = [edge - 0.5 for edge in range(0, most + 2 * width, width)]
    axes.hist(scores, bins=edges, color="#4a90c2", rwidth=0.9)
    axes.axvline(statistics.median(scores), color=INK, linewidth=1.5, linestyle="--")
    axes.set_xlabel("points (dashed: the median)")
    axes.set_ylabel("students")
    axes.locator_params(axis="y", integer=True)
    return _svg(
        figure,
        f"Histogram of the points of {len(scores)} students: from {min(scores):g} to "
        f"{max(scores):g} of {most}, median {statistics.median(scores):g}.",
    )


def _plot_checks(chapter: _Chapter) -> Markup:
    """Draw for every check how many passed, failed, or wrote nothing."""
    checks = list(chapter.checks.values())
    figure = Figure(figsize=(7, 0.9 + 0.27 * len(checks)), layout="constrained")
    axes = figure.subplots()
    names = [check.grade_id.removeprefix("test-") for check in checks]
    left = [0.0] * len(checks)
    for state, (symbol, words, colour) in STATES.items():
        shares = [100 * check.states[state] / check.students for check in checks]
        if any(shares):
            bars = axes.barh(names, shares, left=left, color=colour, height=0.72)
            labels = [symbol if share >= 6 else "" for share in shares]
            bars.set_label(f"{symbol} {words}")
            axes.bar_label(bars, labels, label_type="center", color="#14181c")
        left = [a + b for a, b in zip(left, shares, strict=True)]
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the students")
    axes.invert_yaxis()
    handles, labels = axes.get_legend_handles_labels()
    order = [place for column in range(3) for place in range(column, len(labels), 3)]
    figure.legend(  # which fills its columns first, and is read by lines
        [handles[place] for place in order],
        [labels[place] for place in order],
        loc="outside upper left",
        ncols=3,
        frameon=False,
    )
    worst = min(checks, key=lambda check: (check.states[WAITING], check.share))
    return _svg(
        figure,
        "Bars: how each check went. Fewest passed "
        f"{worst.grade_id.removeprefix('test-')}: {worst.share:.0%}.",
    )


def _svg(figure: Figure, words: str) -> Markup:
    """Return a figure as SVG that takes the page's colours, with its text in words."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    label = Markup('<svg role="img" aria-label="{}"').format(words)
    return Markup(svg.replace("<svg", str(label), 1))
