"""Grade one submission: repair, nbgrader's autograde and feedback, scores."""

import os
import shutil
import traceback
from pathlib import Path

import nbformat
from nbgrader.api import SubmittedAssignment
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.utils import parse_utc

from autograder.grading import submission
from autograder.grading.course import Course
from autograder.grading.preprocessors import exercise_of
from autograder.grading.repair import repair
from autograder.grading.tasks import GRADED, Result, Task, keep_log, read_word


def grade_one(task: Task, job: Path) -> Result:
    """Grade a submission; ``job`` is a folder for word of where it is."""
    result = task.result()
    try:
        _grade(task, result, job)
    except Exception as error:  # whatever it is, it must cost nobody else anything
        result.reason = f"{type(error).__name__} in the grader: {error}"
        keep_log(task, traceback.format_exc())
    return result


def _grade(task: Task, result: Result, job: Path) -> None:
    course = Course(Path(task.course), task.db, task.cell_timeout)
    try:
        _prepare(task, result, course)
    except submission.Refused as refused:
        result.reason = str(refused)
        return
    config = course.config()
    config.ExecuteSubmission.report_folder = str(job)
    done = course.convert(Autograde, task.chapter, task.student, config)
    if not done["success"]:
        result.reason = _why(done, job)
        keep_log(task, f"{done.get('log', '')}\n{done['error']}")
        return
    _read_scores(task, result, course)
    done = course.convert(GenerateFeedback, task.chapter, task.student, config)
    if done["success"]:
        _publish_feedback(task, course)
    else:  # the grade stands
        result.reason += ". No feedback: nbgrader could not write it"
        keep_log(task, f"{done.get('log', '')}\n{done['error']}")


def _prepare(task: Task, result: Result, course: Course) -> None:
    """Write the repaired notebook into the course's submitted/ folder."""
    notebook, notes = submission.read(Path(task.notebook))
    name = f"{task.chapter}.ipynb"
    release = course.root / "release" / task.chapter / name
    repaired, repairs = repair(notebook, nbformat.read(release, as_version=4))
    result.repairs += [*notes, *repairs]
    folder = course.root / "submitted" / task.student / task.chapter
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    nbformat.write(repaired, folder / name)
    source = Path(task.notebook).parent
    result.repairs += submission.copy_models(source, folder)
    result.repairs += _copy_timestamp(source, folder)


def _copy_timestamp(source: Path, folder: Path) -> list[str]:
    """Take over when a notebook was handed in, if nbgrader can read it."""
    path = source / "timestamp.txt"
    if not path.is_file():
        return []
    try:
        text = path.read_text(encoding="utf-8").strip()
        parse_utc(text)
    except (OSError, ValueError, OverflowError):
        return ["timestamp.txt is no date, not used"]
    (folder / path.name).write_text(text, encoding="utf-8")
    return []


def _why(done: dict, job: Path) -> str:
    stopped = read_word(job, "stopped")
    if stopped:
        return stopped
    lines = [line for line in done.get("log", "").splitlines() if line.strip()]
    errors = [line for line in lines if line[:1].isalpha() and "Error" in line]
    last = (errors or done["error"].strip().splitlines())[-1]
    return f"nbgrader could not grade it ({last[:200]})"


def _read_scores(task: Task, result: Result, course: Course) -> None:
    by_hand: list[str] = []
    again: list[str] = []  # nbgrader keeps the points, and asks for a second look
    with course.gradebook() as gradebook:
        handed_in = gradebook.find_submission(task.chapter, task.student)
        for notebook in handed_in.notebooks:
            for grade in sorted(notebook.grades, key=lambda grade: grade.name):
                exercise = exercise_of(grade.name)
                entry = result.scores.setdefault(
                    exercise, {"score": 0.0, "points": 0.0}
                )
                entry["score"] += grade.score or 0.0
                entry["points"] += grade.max_score
                if grade.needs_manual_grade:
                    points_given = grade.manual_score is not None
                    (again if points_given else by_hand).append(exercise)
        result.row = _row(handed_in)
    result.status = GRADED
    parts = []
    if by_hand:
        parts.append(f"to be graded by hand: {', '.join(by_hand)}")
    if again:
        parts.append(f"graded by hand before, to be confirmed: {', '.join(again)}")
    if result.repairs:
        parts.append(f"repaired: {'; '.join(result.repairs)}")
    result.reason = ". ".join(parts)


def _row(handed_in: SubmittedAssignment) -> dict[str, str]:
    """Return the columns that nbgrader's own CSV export has."""
    penalty = handed_in.late_submission_penalty
    student, assignment = handed_in.student, handed_in.assignment
    row = {
        "assignment": assignment.name,
        "duedate": assignment.duedate,
        "timestamp": handed_in.timestamp,
        "student_id": student.id,
        "last_name": student.last_name,
        "first_name": student.first_name,
        "email": student.email,
        "raw_score": handed_in.score,
        "late_submission_penalty": penalty,
        "score": max(0.0, handed_in.score - penalty),
        "max_score": assignment.max_score,
    }
    return {key: "" if value is None else str(value) for key, value in row.items()}


def _publish_feedback(task: Task, course: Course) -> None:
    name = f"{task.chapter}.html"
    page = course.root / "feedback" / task.student / task.chapter / name
    folder = Path(task.out) / "feedback" / task.student
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f".{name}.new"
    shutil.copyfile(page, beside)
    os.replace(beside, folder / name)
