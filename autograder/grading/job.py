"""A submission to grade, and what became of it: data only, for any process or disk."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields

from autograder.grading.limits import Limits
from autograder.grading.paper import Paper
from autograder.grading.seeds import Keys

GRADED, UNGRADED = "graded", "ungraded"
NOT_RUN = "not run"  # a part of a check, like "visible" and "hidden"


@dataclass
class Job:
    """A submission to grade, and all that is needed to do it anywhere.

    Args:
        student: who handed it in.
        chapter: what it answers.
        notebook: the file as it was handed in.
        paper: the chapter's exercises and checks.
        notes: what was unusual when the file was found.
        models: trained models that were handed in, by folder and by file name.
        limits: what it may use.
        unsafe: whether to run it without a sandbox.
        keys: what its hidden tests draw their seeds from.
        carried_forward: the share of its points that an answer gets which is right
            once the wrong ones that it uses are replaced by right ones.
        line_seconds: how long lines to look at are searched for, once all is judged.
    """

    student: str
    chapter: str
    notebook: bytes
    paper: Paper
    notes: list[str] = field(default_factory=list)
    models: dict[str, dict[str, bytes]] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    unsafe: bool = False
    keys: Keys = field(default_factory=Keys)
    carried_forward: float = 1.0
    line_seconds: float = 0.0

    def to_dict(self) -> dict:
        """Return plain values: texts, bytes, numbers, lists and dicts."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict) -> Job:
        """Make a job of what ``to_dict`` returned."""
        given = values | {
            "paper": Paper(**values["paper"]),
            "limits": Limits(**values["limits"]),
            "keys": Keys(**values["keys"]),
        }
        return cls(**given)

    def ungraded(self, reason: str) -> Outcome:
        """Return an outcome without a grade."""
        return Outcome(
            self.student,
            self.chapter,
            reason=reason,
            repairs=list(self.notes),
            unsafe=self.unsafe,
        )


@dataclass
class Verdict:
    """What a check cell says about an answer.

    Args:
        exercise: the exercise's name.
        grade_id: the name of the cell, which nbgrader keeps the score under.
        points: the most it gives.
        score: what it gave.
        part: "" if the check passed, else the part that did not: "visible", "hidden",
            or "not run" for a written answer that is as it was handed out.
        title: what the cell checks, in its author's words.
        failure: what a failed check says: check, what, mistake, on, got, expected, why,
            read, first, and all of it together in text; and whether the student's code
            raised. Of a hidden part a student reads what ``telling.told`` returns.
        given: the names that were wrong and of which right ones were given, if it
            passed with these only.
    """

    exercise: str
    grade_id: str
    points: float
    score: float
    part: str = ""
    title: str = ""
    failure: dict | None = None
    given: list[str] = field(default_factory=list)


@dataclass
class Outcome:
    """What became of a submission.

    Args:
        student: who handed it in.
        chapter: what it answers.
        status: "graded" or "ungraded".
        reason: why it was not graded.
        repairs: what was put right before it ran.
        limited: what was stopped or cut while it ran.
        flags: lines for a person to read, since it cannot be told whether they use
            what an exercise forbids: exercise, cell, line, text and why.
        unseen: the same while hidden tests ran; not for the student to read.
        stopped: which cells stopped with an error, where, and with which.
        packages: that the notebook imports and that are not here.
        verdicts: one for each check cell, in the paper's order.
        by_hand: written answers that wait for a person: exercise, grade_id, points and
            answer.
        notebook: the notebook as it ran, in nbformat's JSON; empty if it did not.
        seconds: how long it took.
        unsafe: whether it ran without a sandbox.
        sha256: of the file that was handed in.
        versions: of what it was graded with.
        again: whether it ended by something from outside, so that another try may end
            otherwise.
        tried: how earlier tries were ended from outside.
        log: where in the grader something went wrong, for its maintainers.
    """

    student: str
    chapter: str
    status: str = UNGRADED
    reason: str = ""
    repairs: list[str] = field(default_factory=list)
    limited: list[str] = field(default_factory=list)
    flags: list[dict] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    by_hand: list[dict] = field(default_factory=list)
    notebook: str = ""
    seconds: float = 0.0
    unsafe: bool = False
    sha256: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    again: bool = False
    tried: list[str] = field(default_factory=list)
    log: str = ""

    @property
    def score(self) -> float:
        """The points that the checks gave; a person may add to them."""
        return sum(verdict.score for verdict in self.verdicts)

    @property
    def points(self) -> float:
        """The most that the checks and a person can give."""
        waiting = sum(answer["points"] for answer in self.by_hand)
        return sum(verdict.points for verdict in self.verdicts) + waiting

    def to_dict(self) -> dict:
        """Return plain values that JSON can hold."""
        return vars(self) | {"verdicts": [dict(vars(each)) for each in self.verdicts]}

    @classmethod
    def from_dict(cls, values: dict) -> Outcome:
        """Make an outcome of what ``to_dict`` returned; ignore what is unknown."""
        known = {each.name for each in fields(cls)}
        given = {key: value for key, value in values.items() if key in known}
        given["verdicts"] = [Verdict(**each) for each in values.get("verdicts", [])]
        return cls(**given)


def flag_text(flag: dict) -> str:
    """Say which line a person should read, and why.

    >>> line = {"exercise": "softmax", "cell": 5, "line": 2, "text": "f()", "why": "…"}
    >>> flag_text(line)
    'softmax: cell 5, line 2: f() (…)'
    """
    where = (
        f"cell {flag['cell']}, line {flag['line']}" if flag["line"] else "the answer"
    )
    text = f": {flag['text']}" if flag["text"] else ""
    return f"{flag['exercise']}: {where}{text} ({flag['why']})"
