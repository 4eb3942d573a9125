"""Who handed in what, and which of it is graded already."""

import functools
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from autograder.grading import deadlines, submission
from autograder.grading.classfile import Class
from autograder.grading.deadlines import Attempt
from autograder.grading.dry_run import GRADE, KEEP, PASS_OVER, REFUSE, Planned
from autograder.grading.job import Job, Outcome
from autograder.grading.limits import Limits
from autograder.grading.paper import Paper
from autograder.grading.reading import Refused
from autograder.grading.submission import Content
from autograder.grading.version import code_version


@dataclass(frozen=True)
class Terms:
    """By which terms a class is graded.

    Args:
        papers: by chapter.
        of_class: due dates, late rules, attempts, students.
        limits: what a submission may use.
        unsafe: whether to run submissions without a sandbox.
        regrade: whether to grade again what is graded already.
    """

    papers: dict[str, Paper]
    of_class: Class
    limits: Limits
    unsafe: bool = False
    regrade: bool = False

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
        carried = self.of_class.carried_forward
        return [self.digests[chapter], code_version(), limits, self.unsafe, carried]


@dataclass
class Work:
    """What a student handed in for a chapter: one attempt, or several.

    ``contents`` and ``outcomes`` have a place for each attempt that is graded.
    """

    student: Path
    chapter: str
    attempts: list[Attempt]
    passed_over: list[Attempt] = field(default_factory=list)
    contents: list[Content | Refused] = field(default_factory=list)
    outcomes: list[Outcome | None] = field(default_factory=list)
    fingerprint: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The student's name and the chapter."""
        return self.student.name, self.chapter

    def read(self, terms: Terms) -> None:
        """Read what was handed in, and take its fingerprint."""
        names = [each.name for each in (*self.attempts, *self.passed_over)]
        self.contents = [self._read(attempt, names) for attempt in self.attempts]
        self.outcomes = [None] * len(self.contents)
        prints = [
            str(each) if isinstance(each, Refused) else each.fingerprint()
            for each in self.contents
        ]
        facts = [prints, names, *terms.fingerprint(self.chapter)]
        text = json.dumps(facts, sort_keys=True).encode("utf-8", "backslashreplace")
        self.fingerprint = hashlib.sha256(text).hexdigest()

    def _read(self, attempt: Attempt, names: list[str]) -> Content | Refused:
        try:
            _refuse_odd_name(self.student.name)
            found = submission.find(
                self.student, self.chapter, attempt.folder, filter(None, names)
            )
            return submission.read(found)
        except Refused as refused:
            return refused

    def jobs(self, terms: Terms) -> Iterator[tuple["tuple[Work, int]", Job]]:
        """Give a job for each attempt; note the outcome of what cannot be graded."""
        for number, content in enumerate(self.contents):
            notes = list(self.attempts[number].notes)
            refused = isinstance(content, Refused)
            job = Job(
                student=self.student.name,
                chapter=self.chapter,
                notebook=b"" if refused else content.notebook,
                paper=terms.papers[self.chapter],
                notes=notes if refused else [*notes, *content.notes],
                models={} if refused else content.models,
                limits=terms.limits,
                unsafe=terms.unsafe,
                carried_forward=terms.of_class.carried_forward,
            )
            if refused:
                self.outcomes[number] = job.ungraded(str(content))
            else:
                yield (self, number), job

    def forget(self) -> None:
        """Let go of what was read."""
        self.contents, self.outcomes = [], []

    @property
    def is_done(self) -> bool:
        """Whether every attempt has an outcome."""
        return None not in self.outcomes


def find_work(
    students: list[Path], chapters: list[str], of_class: Class
) -> Iterator[Work]:
    """Give what each student handed in for each chapter, unread."""
    for chapter in chapters:
        for student in students:
            attempts = deadlines.find_attempts(student, chapter)
            chosen = deadlines.to_grade(attempts, of_class.attempts)
            others = [each for each in attempts if each not in chosen]
            yield Work(student, chapter, chosen, others)


def is_kept(entry: dict | None, work: Work, terms: Terms) -> bool:
    """Tell whether a journal's entry is of the same files, graded by the same terms."""
    if entry is None or terms.regrade or entry.get("again"):
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
    return is_plain and name.isprintable() and len(name) <= 128


def _refuse_odd_name(name: str) -> None:
    if not is_id(name):
        raise Refused(
            "the folder's name cannot be a student's id: at most 128 letters of UTF-8, "
            "none of * ? [ ] { }, no space at either end"
        )
