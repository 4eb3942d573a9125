"""Sheets: assignments of one's own, chosen from the exercises of all chapters.

A sheet is a file in the folder sheets/. Its name is the assignment's name, in every
command that takes a chapter's name::

    # sheets/attention_week.yml
    title: A week of attention
    use:
      - softmax
      - causal-mask
      - masked-softmax: 4     # points, in place of the chapter's
      - transformer: [2, 3]   # an exercise with two checks

Exercises are named by id and come in the order of the list. What they need is decided
where a notebook is made of them, in ``autograder.generator.composing``.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

FOLDER = "sheets"
SHORT = "short_"  # what the names of the sheets of the short way begin with
NAME = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")  # nbgrader and file systems take it
KEYS = {"title", "text", "use"}
REQUIRED = {"title", "use"}
_ROOT = Path(__file__).resolve().parents[1]


class SheetError(Exception):
    """A sheet cannot be used; says which file, where in it, and what to do."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}")


@dataclass(frozen=True)
class Sheet:
    """What the file says.

    Args:
        path: of the file.
        title: of the notebook.
        text: what students read below the title.
        use: the exercises' ids, in order, each with its points by check cell; without
            points, those of the chapter count.
    """

    path: Path
    title: str
    text: str
    use: dict[str, tuple[int, ...]]

    @property
    def name(self) -> str:
        """The assignment's name."""
        return self.path.stem

    def error(self, reason: str, word: str = "use") -> SheetError:
        """Return an error about the line on which a word stands."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        alone = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
        found = (number for number, line in enumerate(lines, 1) if alone.search(line))
        return SheetError(self.path, next(found, 1), reason)


def names(root: Path = _ROOT) -> list[str]:
    """Return the names of the sheets, in order; none if there is no such folder."""
    return sorted(path.stem for path in (root / FOLDER).glob("*.yml"))


def read(name: str, root: Path = _ROOT) -> Sheet:
    """Read a sheet.

    Raises:
        SheetError: it is not there, or says something that a sheet cannot say.
    """
    path = root / FOLDER / f"{name}.yml"
    if not NAME.fullmatch(name):
        raise SheetError(path, 1, "its name must be a-z and 0-9, joined by underscores")
    content = _content(path)
    if unknown := sorted(map(str, content.keys() - KEYS)):
        known = ", ".join(sorted(KEYS))
        raise SheetError(path, 1, f"unknown key {unknown[0]!r}; there are: {known}")
    if missing := sorted(REQUIRED - content.keys()):
        raise SheetError(path, 1, f"{missing[0]!r} is missing")
    texts = [content["title"], content.get("text", "")]
    if not all(isinstance(text, str) for text in texts) or not texts[0].strip():
        raise SheetError(path, 1, "title and text must be texts")
    sheet = Sheet(path, texts[0].strip(), texts[1].strip(), {})
    sheet.use.update(_use(sheet, content["use"]))
    return sheet


def short_way(root: Path = _ROOT) -> set[str]:
    """Return the ids of the exercises on the short way through the course."""
    short = (name for name in names(root) if name.startswith(SHORT))
    return {exercise for name in short for exercise in read(name, root).use}


def _content(path: Path) -> dict:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or "it cannot be read"
        raise SheetError(
            path, mark.line + 1 if mark else 1, f"is no YAML: {reason}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SheetError(path, 1, f"cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise SheetError(path, 1, "expected the keys title and use")
    return content


def _use(sheet: Sheet, entries: object) -> dict[str, tuple[int, ...]]:
    if not isinstance(entries, list) or not entries:
        raise sheet.error("use: expected a list of exercises' ids")
    found: dict[str, tuple[int, ...]] = {}
    for entry in entries:
        name, points = entry, ()
        if isinstance(entry, dict) and len(entry) == 1:
            ((name, points),) = entry.items()
            points = tuple(points) if isinstance(points, list) else (points,)
        if not isinstance(name, str):
            raise sheet.error(f"use: {entry!r} is no id, and no id with its points")
        if name in found:
            raise sheet.error(f"{name} is there twice", name)
        if any(type(each) is not int or each < 1 for each in points):
            raise sheet.error(f"{name}: points must be whole numbers from 1", name)
        found[name] = points
    return found
