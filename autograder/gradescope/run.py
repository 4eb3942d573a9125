"""Grade what a student has handed in to Gradescope, in its container.

    python -m autograder.gradescope.run [/autograder]

Reads submission/ and writes results/results.json, which students see. What is printed
is for instructors. If the grader itself fails, nothing is written: Gradescope then says
that the run has failed, in place of a score.

A submission runs in bubblewrap. Where a container does not allow that, it runs as
another user, with a filter of system calls: it then has no network and starts no
programs, and cannot read the answers and hidden tests or write results, which are
root's. It may read what everybody in the container may.
"""

import json
import os
import sys
from pathlib import Path

from autograder.exercise.chapters import Exercise, exercises
from autograder.files import write_beside
from autograder.gradescope import PAPER, RESULTS, ROOT, SETTINGS, SOURCE, SUBMISSION
from autograder.grading import sandbox, seeds, submission
from autograder.grading.clean import plain
from autograder.grading.grader import Grader
from autograder.grading.job import GRADED, Job, Outcome, Verdict
from autograder.grading.limits import Limits
from autograder.grading.paper import Paper, exercise_of
from autograder.grading.reading import Refused
from autograder.grading.telling import told

TRIES = 3  # of what was ended from outside
WALL_SECONDS = 240  # twice that, and the start, are within Gradescope's ten minutes
NOBODY = 65534  # the user who owns nothing
LONGEST = 10_000  # characters of a message
FAILED = 1  # the exit code if there is no result
REFUSED = """\
Nothing was graded: bubblewrap does not work here, and only root can run a submission
as another user."""


def main(root: Path) -> int:
    """Grade, write the results, and tell instructors the rest."""
    source = root / SOURCE
    paper = Paper(**json.loads((source / PAPER).read_text(encoding="utf-8")))
    settings = json.loads((source / SETTINGS).read_text(encoding="utf-8"))
    problem = sandbox.problem()
    if problem and os.geteuid() != 0:
        print(f"{problem}\n{REFUSED}", file=sys.stderr)
        return FAILED
    try:
        job = _job(root, paper, settings["carried_forward"], bool(problem))
    except Refused as refused:
        _write(root, _nothing(paper, str(refused)))
        return 0
    outcome = _graded(job)
    print(json.dumps(_for_instructors(outcome, problem), indent=1))
    if outcome.log or outcome.again:
        print(outcome.reason, outcome.log, sep="\n", file=sys.stderr)
        return FAILED
    is_graded = outcome.status == GRADED
    _write(root, results(outcome) if is_graded else _nothing(paper, outcome.reason))
    return 0


def _job(root: Path, paper: Paper, carried_forward: float, unsafe: bool) -> Job:
    folder = root / SUBMISSION
    content = submission.read(submission.find(folder, paper.chapter, folder))
    return Job(
        "student",
        paper.chapter,
        content.notebook,
        paper,
        list(content.notes),
        content.models,
        Limits(wall_seconds=WALL_SECONDS, user=NOBODY if unsafe else 0),
        unsafe,
        seeds.Keys.of(
            seeds.secret_of(root / SOURCE, make=False), paper.chapter, content.notebook
        ),
        carried_forward,
    )


def _graded(job: Job) -> Outcome:
    with Grader(imports=tuple(sorted(job.paper.imports()))) as grader:
        for _ in range(TRIES):
            outcome = grader.grade(job)
            if not outcome.again:
                break
    return outcome


# --- what Gradescope is told ----------------------------------------------------------


def results(outcome: Outcome) -> dict:
    """Return what Gradescope shows of a submission that was graded.

    Of a hidden test it says no more than the course's own feedback: the name of a known
    mistake, and what to try.
    """
    known = exercises()
    tests = [
        _test(verdict, known.get(verdict.exercise)) for verdict in outcome.verdicts
    ]
    waiting = [
        f"{_title(answer['exercise'], known)}: up to {answer['points']:g} points"
        for answer in outcome.by_hand
    ]
    lines = ["To be graded by a person:", *waiting] if waiting else []
    lines += [plain(each, LONGEST) for each in outcome.repairs]
    return _with_output(lines) | {"tests": tests}


def _test(verdict: Verdict, exercise: Exercise | None) -> dict:
    about = verdict.title.partition(": ")[2] or verdict.title
    name = f"{exercise.title}: {about}" if exercise else about
    test = _entry(
        plain(name, 200), verdict.score, verdict.points, plain(_said(verdict), LONGEST)
    )
    return test | ({"number": exercise.number} if exercise else {})


def _entry(name: str, score: float, points: float, output: str) -> dict:
    return {
        "name": name,
        "score": score,
        "max_score": points,
        "status": "passed" if score >= points else "failed",
        "output": output,
        "output_format": "text",
        "visibility": "visible",
    }


def _said(verdict: Verdict) -> str:
    if verdict.given:
        return f"Solved, given a right {' and '.join(verdict.given)}."
    if not verdict.failure:
        return ""
    if verdict.part == "hidden":
        return told(verdict.failure)["text"]
    return verdict.failure["text"]


def _nothing(paper: Paper, reason: str) -> dict:
    """Return what Gradescope shows where the file that came cannot be graded.

    Its format has no sign for that: all tests have 0, and each says why.
    """
    known = exercises()
    said = f"Not graded: {plain(reason, LONGEST)}. Hand in another file."
    tests = [
        _entry(_title(exercise_of(grade_id), known), 0.0, points, said)
        for grade_id, points in paper.points.items()
        if grade_id.startswith("test-")
    ]
    return _with_output([said]) | {"tests": tests}


def _with_output(lines: list[str]) -> dict:
    said = {"output": "\n".join(lines), "output_format": "text"}
    return (said if lines else {}) | {"stdout_visibility": "hidden"}


def _title(name: str, known: dict[str, Exercise]) -> str:
    return f"{known[name].number} {known[name].title}" if name in known else name


def _for_instructors(outcome: Outcome, problem: str) -> dict:
    """Return what is printed: Gradescope shows it to nobody else."""
    names = ("status", "reason", "repairs", "limited", "unseen", "flags", "tried")
    said = {name: getattr(outcome, name) for name in (*names, "sha256", "versions")}
    return said | {"without_sandbox": problem if outcome.unsafe else ""}


def _write(root: Path, content: dict) -> None:
    write_beside(root / RESULTS, json.dumps(content, indent=1) + "\n", mode=0o644)


if __name__ == "__main__":
    sys.exit(main(Path(*sys.argv[1:2] or [ROOT])))
