"""Who handed in what, and which of it is graded already."""

import functools
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from autograder.grading import deadlines, seeds, submission
from autograder.grading.classfile import Class
from autograder.grading.deadlines import Attempt
from autograder.grading.dry_run import GRADE, KEEP, PASS_OVER, REFUSE, Planned
from autograder.grading.job import Job, Outcome
from autograder.grading.limits import Limits
from autograder.grading.paper import Paper
from autograder.grading.reading import Refused
from autograder.grading.submission import Content
from autograder.grading.version import code_version

LARGEST_WORK = 60_000_000  # bytes of all attempts at a chapter that are graded


@dataclass(frozen=True)
class Terms:
    """By which terms a class is graded.

    Args:
        papers: by chapter.
        of_class: due dates, late rules, attempts, students.
        limits: what a submission may use.
        unsafe: whether to run submissions without a sandbox.
        regrade: whether to grade again what is graded already.
        secret: what the seeds of hidden tests are drawn from.
        line_seconds: for the search for lines to look at, of one submission.
    """

    papers: dict[str, Paper]
    of_class: Class
    limits: Limits
    unsafe: bool = False
    regrade: bool = False
    secret: bytes = field(default=b"", repr=False)
    line_seconds: float = 0.0

    @functools.cached_property
    def digests(self) -> dict[str, str]:
        """Checksums of the papers, by chapter."""
        return {chapter: paper.digest() for chapter, paper in self.papers.items()}

    @property
    def imports(self) -> tuple[str, ...]:
        """The modules that this class's notebooks are going to import."""
        return tuple(sorted(set().union(*(p.imports() for p in self.papers.values()))))

    def fingerprint(self, chapter: str) -> list:
        """Return what a grade depends on, besides the submission."""
        limits = asdict(self.limits)
        by = [seeds.digest(self.secret), self.of_class.carried_forward]
        code = code_version(self.papers[chapter].released)
        return [self.digests[chapter], code, limits, self.unsafe, *by]


@dataclass
class Work:
    """What a student handed in for a chapter: one attempt, or several.

    It is empty until it is read. Then ``contents`` and ``outcomes`` have a place for
    each attempt that is graded.
    """

    student: Path
    chapter: str
    attempts: list[Attempt] = field(default_factory=list)
    passed_over: list[Attempt] = field(default_factory=list)
    contents: list[Content | Refused] = field(default_factory=list)
    outcomes: list[Outcome | None] = field(default_factory=list)
    fingerprint: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The student's name and the chapter."""
        return self.student.name, self.chapter

    def read(self, terms: Terms) -> None:
        """Find the attempts, read those that are graded, and take the fingerprint."""
        try:
            _refuse_odd_folder(self.student)
            found = deadlines.find_attempts(self.student, self.chapter)
            self._choose(found, terms.of_class.attempts)
            self.contents = self._read_all()
        except Refused as refused:
            self.refuse(refused)
        except OSError as error:
            self.refuse(Refused(f"the folder cannot be read ({error.strerror})"))
        self.outcomes = [None] * len(self.contents)
        prints = [
            str(each) if isinstance(each, Refused) else each.fingerprint()
            for each in self.contents
        ]
        facts = [prints, self._names, *terms.fingerprint(self.chapter)]
        text = json.dumps(facts, sort_keys=True).encode("utf-8", "backslashreplace")
        self.fingerprint = hashlib.sha256(text).hexdigest()

    def refuse(self, why: Refused) -> None:
        """Let all of it be one attempt that cannot be graded."""
        self.attempts = [Attempt(self.student / self.chapter)]
        self.passed_over, self.contents = [], [why]

    def _choose(self, found: list[Attempt], how: str) -> None:
        """Keep the attempts by what is done with them."""
        self.attempts = deadlines.to_grade(found, how)
        self.passed_over = [each for each in found if each not in self.attempts]

    @property
    def _names(self) -> list[str]:
        return [each.name for each in (*self.attempts, *self.passed_over)]

    def _read_all(self) -> list[Content | Refused]:
        """Read the attempts, the latest first, as far as there is room for all."""
        contents, room = [], LARGEST_WORK
        for attempt in reversed(self.attempts):
            content = self._read(attempt, room)
            room -= 0 if isinstance(content, Refused) else content.size
            contents.append(content)
        return contents[::-1]

    def _read(self, attempt: Attempt, room: int) -> Content | Refused:
        names = filter(None, self._names)
        try:
            found = submission.find(self.student, self.chapter, attempt.folder, names)
            content = submission.read(found)
        except Refused as refused:
            return refused
        if content.size > room:
            return Refused(
                f"this attempt and those after it hold more than "
                f"{LARGEST_WORK // 10**6} MB: clear the outputs of the notebooks"
            )
        return content

    def jobs(self, terms: Terms) -> Iterator[tuple["tuple[Work, int]", Job]]:
        """Give a job for each attempt; note the outcome of what cannot be graded."""
        for number, content in enumerate(self.contents):
            notes = list(self.attempts[number].notes)
            given = Content(b"") if isinstance(content, Refused) else content
            notebook = given.notebook
            job = Job(
                student=self.student.name,
                chapter=self.chapter,
                notebook=notebook,
                paper=terms.papers[self.chapter],
                notes=[*notes, *given.notes],
                models=given.models,
                limits=terms.limits,
                unsafe=terms.unsafe,
                keys=seeds.Keys.of(terms.secret, self.chapter, notebook),
                carried_forward=terms.of_class.carried_forward,
                line_seconds=terms.line_seconds,
            )
            if isinstance(content, Refused):
                self.outcomes[number] = job.ungraded(str(content))
            else:
                yield (self, number), job

    def forget(self) -> None:
        """Let go of what was read."""
        self.contents, self.outcomes = [], []

    @property
    def done(self) -> list[Outcome]:
        """The outcomes there are: once it is done, one of every attempt, in order."""
        return [each for each in self.outcomes if each is not None]

    @property
    def is_done(self) -> bool:
        """Whether every attempt has an outcome."""
        return None not in self.outcomes


def is_kept(entry: dict | None, work: Work, terms: Terms) -> bool:
    """Tell whether a journal's entry is of the same files, graded by the same terms."""
    if entry is None or terms.regrade or entry.get("again") or entry.get("log"):
        return False
    return entry.get("fingerprint") == work.fingerprint


def plan(work: Work, is_graded: bool) -> Iterator[Planned]:
    """Say what would be done with a student's attempts (for a dry run)."""
    for attempt, content in zip(work.attempts, work.contents, strict=True):
        if isinstance(content, Refused):
            yield Planned(*work.key, REFUSE, attempt, str(content))
        else:
            yield Planned(*work.key, KEEP if is_graded else GRADE, attempt)
    for attempt in work.passed_over:
        yield Planned(*work.key, PASS_OVER, attempt)


def is_id(name: str) -> bool:
    """Tell whether nbgrader's patterns and gradebook can hold a student's name."""
    is_plain = not set(name) & set("*?[]{}") and name == name.strip()
    return is_plain and name.isprintable() and len(name) <= 128 and name[:1] != "."


def _refuse_odd_folder(student: Path) -> None:
    if student.name.startswith("."):
        raise Refused(
            "the folder's name begins with a dot, so that programs pass over it: give "
            "it the student's id"
        )
    if not is_id(student.name):
        raise Refused(
            "the folder's name cannot be a student's id: at most 128 letters of UTF-8, "
            "none of * ? [ ] { }, no space at either end"
        )
    if student.is_symlink():
        raise Refused(
            "the student's folder is a link: put the folder itself in its place"
        )
