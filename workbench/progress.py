"""How far somebody has come in all chapters: ``python -m workbench progress``."""

from pathlib import Path

from autograder.exercise import chapters, progress
from autograder.exercise.progress import FILE, Results, Standing
from autograder.files import entries
from workbench.errors import WorkbenchError


def summary(folder: Path) -> str:
    """Write a line for each chapter: what has passed, and what is open next.

    Args:
        folder: the notebooks' own, or one that holds the chapters' folders.

    Raises:
        WorkbenchError: the folder cannot be read.
    """
    results = _results(folder)
    found = [Standing(each, results) for each in chapters.chapters().values()]
    wide = max(len(each.chapter.title) for each in found)
    return "\n".join(_line(each, wide) for each in found)


def _results(folder: Path) -> Results:
    """Put the folder's own results and those of the folders in it together."""
    if not folder.is_dir():
        raise WorkbenchError(f"{folder}: there is no such folder")
    try:
        inside = entries(folder)
    except OSError as error:
        raise WorkbenchError(f"{folder}: cannot be read: {error.strerror}") from None
    results: Results = {}
    for place in (folder, *inside):
        for page, calls in progress.read(place / FILE).items():
            known = results.setdefault(page, {})
            for call, passed in calls.items():
                known[call] = known.get(call, False) or passed
    return results


def _line(standing: Standing, wide: int) -> str:
    done, exercises, points, all_points = standing.counts()
    chapter = standing.chapter
    still = standing.open()
    then = f"next: {still[0].number} {still[0].title}" if still else "all passed"
    return (
        f"{chapter.number:>2}  {chapter.title:<{wide}}  {done:>2} of {exercises:>2} "
        f"exercises  {points:>2} of {all_points:>2} points  {then}"
    )
