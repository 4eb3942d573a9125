"""Find a student's notebook and what belongs to it, or say why it cannot be graded.

Nothing is followed out of the student's folder, nothing is unpacked, and only regular
files of bounded size are read.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from autograder.files import entries, read_regular
from autograder.grading.clean import plain
from autograder.grading.deadlines import TIMESTAMP
from autograder.grading.reading import LARGEST_NOTEBOOK, Refused

MODEL_FILES = ("model.safetensors", "config.json", "tokenizer.json")
LARGEST_FILE = 25_000_000  # bytes; a check refuses much smaller ones, and says why
LARGEST_TEXTS = {"config.json": 1_000_000, "tokenizer.json": 5_000_000}
MOST_MODELS = 3
ARCHIVES = (".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".7z", ".rar")
ARCHIVES_BEGIN = (
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"7z\xbc\xaf",
    b"Rar!",
    b"BZh",
    b"\xfd7zXZ",
)


@dataclass(frozen=True)
class Found:
    """A submitted notebook, and what was unusual about it."""

    path: Path
    student: Path  # the student's folder, which nothing leads out of
    notes: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where the trained models lie."""
        return self.path.parent


@dataclass(frozen=True)
class Content:
    """What was handed in, read."""

    notebook: bytes
    models: dict[str, dict[str, bytes]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def sha256(self) -> str:
        """Return the notebook's checksum."""
        return hashlib.sha256(self.notebook).hexdigest()

    @property
    def size(self) -> int:
        """How many bytes it has, with the models."""
        models = (data for each in self.models.values() for data in each.values())
        return len(self.notebook) + sum(map(len, models))

    def fingerprint(self) -> str:
        """Return a checksum of everything: equal ones are graded alike."""
        models = {
            name: {
                file: hashlib.sha256(data).hexdigest() for file, data in each.items()
            }
            for name, each in self.models.items()
        }
        text = json.dumps([self.sha256(), models, self.notes], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


# --- finding --------------------------------------------------------------------------


def find(
    student: Path, chapter: str, folder: Path | None = None, others: Iterable[str] = ()
) -> Found:
    """Return the notebook that a student handed in for a chapter.

    Args:
        student: the student's folder.
        chapter: the chapter's name.
        folder: where the attempt lies; the chapter's own folder without it.
        others: names beside the notebook that have their own meaning.

    Raises:
        Refused: there is none, or it is unclear which; says what to do.
    """
    try:
        return _find(student, chapter, folder or student / chapter, set(others))
    except OSError as error:
        raise Refused(f"the folder cannot be read ({error.strerror})") from None


def _find(student: Path, chapter: str, folder: Path, others: set[str]) -> Found:
    named = folder / f"{chapter}.ipynb"
    if _leads_out(folder, student):
        raise Refused(f"{folder.name}/ is a link out of the student's folder")
    notebooks = _notebooks(folder)
    if named in notebooks:
        return _inside(Found(named, student, _leftovers(folder, named, others)))
    if len(notebooks) > 1:
        names = ", ".join(plain(path.name, 60) for path in notebooks[:5])
        raise Refused(f"several notebooks and none is named {named.name}: {names}")
    if notebooks:
        note = f"the notebook was named {plain(notebooks[0].name, 60)}"
        notes = (note, *_leftovers(folder, notebooks[0], others))
        return _inside(Found(notebooks[0], student, notes))
    loose = student / f"{chapter}.ipynb"
    if folder == student / chapter and loose.is_file():
        note = f"the notebook was not in a folder {chapter}/"
        return _inside(Found(loose, student, (note,)))
    raise Refused(_why_none(student, chapter, folder))


def _inside(found: Found) -> Found:
    if _leads_out(found.path, found.student):
        raise Refused("the notebook is a link out of the student's folder")
    return found


def _leads_out(path: Path, student: Path) -> bool:
    # os.path's goes on where a link leads to itself; pathlib's ends with RuntimeError
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(student))


def _why_none(student: Path, chapter: str, folder: Path) -> str:
    for path in (folder / f"{chapter}.ipynb", student / f"{chapter}.ipynb"):
        if path.is_symlink():
            return "the notebook is a link to a file that is not there"
    archives = [*_archives(folder), *_archives(student, chapter), *_packed(student)]
    if archives:
        return archive_reason(archives[0].name, f"{student.name}/{chapter}/")
    return "no notebook was submitted"


def archive_reason(name: str, where: str) -> str:
    """Say why an archive is not graded, and what to do with it."""
    return (
        f"{name} is an archive, and archives are not unpacked here: unpack it "
        f"yourself, so that the notebook lies in {where}, and grade again"
    )


def is_archive(path: Path) -> bool:
    """Tell by its name whether a file is an archive."""
    return path.suffix.lower() in ARCHIVES and path.is_file()


def packed_student(archive: Path) -> Path:
    """Return the folder that an archive stands in the place of."""
    name = archive.name.removesuffix(archive.suffix)
    return archive.with_name(name.removesuffix(".tar"))


def _archives(folder: Path, beginning: str = "") -> list[Path]:
    return [
        path
        for path in entries(folder)
        if path.name.startswith(beginning) and is_archive(path)
    ]


def _packed(student: Path) -> list[Path]:
    """Find an archive that stands in the place of a student's folder."""
    if student.is_dir():
        return []
    names = (
        f"{student.name}{middle}{end}" for middle in ("", ".tar") for end in ARCHIVES
    )
    return [path for path in map(student.with_name, names) if path.is_file()]


def _notebooks(folder: Path) -> list[Path]:
    return [
        path
        for path in entries(folder)
        if path.suffix.lower() == ".ipynb" and not path.name.startswith(".")
        if path.is_file()
    ]


def _leftovers(folder: Path, used: Path, others: set[str]) -> tuple[str, ...]:
    """Say which other files were handed in: a submission is its notebook only."""
    known = {used.name, TIMESTAMP, "transformer", "__pycache__"} | others
    known |= {path.name for path in _model_folders(folder)}
    names = [
        path.name
        for path in entries(folder)
        if path.name not in known and not path.name.startswith(".")
    ]
    if not names:
        return ()
    shown = ", ".join(plain(name, 60) for name in names[:3])
    return (f"other files were not used: {shown}{', …' if len(names) > 3 else ''}",)


def _model_folders(folder: Path) -> list[Path]:
    """Find the folders beside a notebook that hold a trained model."""
    return [
        path
        for path in entries(folder)
        if path.is_dir() and not path.is_symlink() and not path.name.startswith(".")
        if path.name.isprintable()
        # in the course's own folder, these names are taken
        if path.suffix.lower() != ".ipynb" and path.name != TIMESTAMP
        if any((path / name).is_file() for name in MODEL_FILES)
    ]


# --- reading --------------------------------------------------------------------------


def read(found: Found) -> Content:
    """Read a notebook and the models beside it.

    Raises:
        Refused: it cannot be read, is too large, or is an archive.
    """
    try:
        notebook = _read_file(found.path, LARGEST_NOTEBOOK)
        models, notes = read_models(found.folder)
    except OSError as error:
        raise Refused(f"the notebook cannot be read ({error.strerror})") from None
    if notebook is None:
        size = LARGEST_NOTEBOOK // 10**6
        raise Refused(f"the notebook is larger than {size} MB: clear its outputs")
    if notebook.startswith(ARCHIVES_BEGIN):
        where = f"{found.student.name}/"
        raise Refused(archive_reason(found.path.name, where))
    return Content(notebook, models, (*found.notes, *notes))


def read_models(folder: Path) -> tuple[dict[str, dict[str, bytes]], list[str]]:
    """Read the trained models beside a notebook: data of a few names, and small.

    Args:
        folder: the folder that was handed in.

    Returns:
        The files by folder and name, and what was not used, and why.
    """
    models: dict[str, dict[str, bytes]] = {}
    notes = []
    found = _model_folders(folder)
    for model in found[:MOST_MODELS]:
        models[model.name] = {}
        for name in MODEL_FILES:
            data, why = _read_small(model / name)
            if why:
                notes.append(f"{model.name}/{name} was not used: {why}")
            elif data is not None:
                models[model.name][name] = data
    if rest := found[MOST_MODELS:]:
        names = ", ".join(f"{plain(each.name, 60)}/" for each in rest[:3])
        names += ", … were" if len(rest) > 3 else " was" if len(rest) == 1 else " were"
        notes.append(f"{names} not used: {MOST_MODELS} models at most")
    return models, notes


def _read_small(path: Path) -> tuple[bytes | None, str]:
    """Return the content of a model's file, if it is there, or why it is not used."""
    if path.is_symlink():
        return None, "it is a link"
    if not path.is_file():
        return None, ""
    largest = LARGEST_TEXTS.get(path.name, LARGEST_FILE)
    try:
        data = _read_file(path, largest)
    except OSError as error:
        return None, f"it cannot be read ({error.strerror})"
    if data is None:
        return None, f"it is larger than {largest // 10**6} MB"
    return data, ""


def _read_file(path: Path, largest: int) -> bytes | None:
    """Read a regular file; None if it is larger than that."""
    data = read_regular(path, largest + 1)
    return data if len(data) <= largest else None
