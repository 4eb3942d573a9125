"""Which chapter a notebook is of, and which of several is the one handed in."""

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from autograder import sheets
from autograder.collecting.sources import File, NotUnderstood, shown
from autograder.exercise.chapters import chapters
from autograder.grading import reading
from autograder.grading.submission import MODEL_FILES

COPY = re.compile(  # what is put behind a name when a file is there a second time
    r"(?:[-_ ]\d{1,3}| ?\(\d{1,3}\)|[-_ ]*copy[-_ ]?\d*)$", re.IGNORECASE
)
COPIES = 3  # times that this is taken off


@dataclass
class Choice:
    """What of somebody's files is an attempt at a chapter.

    Attributes:
        notebooks: the one handed in; several, if it is unclear which.
        models: files of trained models, by folder and name.
        rest: the other files.
        notes: what was unusual.
    """

    notebooks: list[File]
    models: dict[str, dict[str, File]] = field(default_factory=dict)
    rest: list[File] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def used(self) -> list[File]:
        """The files that the grader reads."""
        models = (file for each in self.models.values() for file in each.values())
        return [*self.notebooks, *models]


# --- the chapter ----------------------------------------------------------------------


def is_notebook(file: File) -> bool:
    """Tell by its name whether a file is a notebook."""
    return file.name.lower().endswith(".ipynb")


def chapter_of(file: File, data: bytes) -> str:
    """Return the chapter or sheet of a notebook, by its cells or else its name; or "".

    The exercises of a sheet are those of chapters. It is one if the notebook or its
    name says so, or if it has just the sheet's exercises.
    """
    try:
        notebook, _ = reading.parse(data)
    except reading.Refused:
        return by_name(file.path)
    names = {
        cell.metadata.get("nbgrader", {}).get("grade_id", "") for cell in notebook.cells
    }
    found = [_exercises()[name] for name in names & _exercises().keys()]
    exercises = {exercise for _, exercise in found}
    course = notebook.metadata.get("course")
    course = course if isinstance(course, dict) else {}
    for said in (course.get("chapter", ""), by_name(file.path)):
        if exercises & _asked().get(str(said), set()):
            return said
    alike = [name for name, asked in _asked().items() if exercises == asked]
    if len(alike) == 1:
        return alike[0]
    pages = Counter(page for page, _ in found)
    (first, most), (_, second) = [*pages.most_common(2), ("", 0), ("", 0)][:2]
    return first if most > second else by_name(file.path)


@functools.cache
def assignments() -> list[str]:
    """Return the names of all that can be handed in: chapters, and sheets."""
    return [*chapters(), *sheets.names()]


@functools.cache
def _exercises() -> dict[str, tuple[str, str]]:
    """Return the chapter and the exercise of each cell, by the cell's name."""
    return {
        name: (page, exercise.name)
        for page, chapter in chapters().items()
        for exercise in chapter.exercises
        for name in (exercise.name, f"test-{exercise.name}")
    }


@functools.cache
def _asked() -> dict[str, set[str]]:
    """Return the exercises of each sheet."""
    return {name: set(sheets.read(name).use) for name in sheets.names()}


def by_name(path: str) -> str:
    """Return the chapter that stands in a file's name, or in that of its folder.

    >>> by_name("04_attention-2.ipynb"), by_name("My 04-Attention (1).ipynb")
    ('04_attention', '04_attention')
    """
    for part in reversed(path.split("/")):
        plain = _plain(part)
        found = [name for name in assignments() if _plain(name) in plain]
        longest = max(found, key=len, default="")  # a sheet's may hold a chapter's
        if longest and all(_plain(name) in _plain(longest) for name in found):
            return longest
    return ""


def _plain(name: str) -> str:
    return re.sub(r"[-_ .]+", " ", name.casefold())


# --- the notebook ---------------------------------------------------------------------


def _exactness(file: File, chapter: str) -> int:
    """Tell how well a notebook's name fits: 2 it is the chapter's, 1 as a copy, 0."""
    stem = file.name[: -len(".ipynb")]
    if stem == chapter:
        return 2
    for _ in range(COPIES):
        stem = COPY.sub("", stem)
    return 1 if _plain(stem) == _plain(chapter) else 0


def choose(
    files: list[File], by_chapter: dict[str, list[File]], packed: set[str]
) -> dict[str, Choice]:
    """Choose an attempt at each chapter from what somebody handed in at a time.

    The notebook that bears the chapter's name counts, the uppermost of those, and of
    those the one that was handed in last, if that is known.

    Args:
        files: all of them.
        by_chapter: the notebooks of each chapter.
        packed: paths of files that came in an archive, which is kept itself.
    """
    choices = {}
    for chapter, found in by_chapter.items():
        best = max(_exactness(file, chapter) for file in found)
        named = [file for file in found if _exactness(file, chapter) == best]
        depth = min(file.path.count("/") for file in named)
        named = [file for file in named if file.path.count("/") == depth]
        latest = max(file.order for file in named)
        named = [file for file in named if file.order == latest]
        choice = Choice(named)
        if len(named) == 1:
            choice.models = _models(files, named[0])
        if len(found) > 1:
            choice.notes.append(_told(found, named))
        choices[chapter] = choice
    _share_rest([file for file in files if file.path not in packed], choices)
    return choices


def _told(found: list[File], chosen: list[File]) -> str:
    names = ", ".join(shown(file.path) for file in found[:5])
    if len(chosen) > 1:
        return f"several notebooks, and it is unclear which counts: {names}"
    return f"several notebooks, of which {shown(chosen[0].path)} counts: {names}"


def _models(files: list[File], notebook: File) -> dict[str, dict[str, File]]:
    """Find the folders beside a notebook that hold a trained model."""
    models: dict[str, dict[str, File]] = defaultdict(dict)
    for file in files:
        above, _, folder = file.folder.rpartition("/")
        if file.name in MODEL_FILES and folder and above == notebook.folder:
            models[folder][file.name] = file
    return dict(models)


def _share_rest(files: list[File], choices: dict[str, Choice]) -> None:
    """Give what is in no attempt to the first: nothing handed in is dropped."""
    used = {file.path for choice in choices.values() for file in choice.used}
    first = next(iter(choices.values()))
    first.rest = [file for file in files if file.path not in used]


def told_chapters(names: Iterable[str]) -> str:
    """Return the only chapter of several notebooks, "" if there are more or none."""
    found = {name for name in names if name}
    return found.pop() if len(found) == 1 else ""


def wrong_chapter(chapter: str, asked: list[str]) -> NotUnderstood:
    """Say that a notebook is of a chapter that was not asked for."""
    return NotUnderstood(f"is of {chapter}, and only {', '.join(asked)} is collected")
