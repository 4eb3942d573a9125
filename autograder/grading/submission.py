"""Find a student's notebook and read it, or say in plain words why that cannot be."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from autograder.grading.reading import Refused, parse

MODEL_FILES = ("model.safetensors", "config.json", "tokenizer.json")
LARGEST_FILE = 25_000_000  # bytes; a check refuses much smaller ones, and says why
MOST_MODELS = 3


@dataclass(frozen=True)
class Found:
    """A submitted notebook, and what was unusual about it."""

    path: Path
    notes: tuple[str, ...] = ()

    def sha256(self) -> str:
        """Return the file's checksum."""
        try:
            with self.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise _unreadable(error) from None


def find(student: Path, chapter: str) -> Found:
    """Return the notebook that a student handed in for a chapter."""
    folder = student / chapter
    named = folder / f"{chapter}.ipynb"
    others = _notebooks(folder)
    if named in others:
        return Found(named, _leftovers(folder, named))
    if len(others) > 1:
        names = ", ".join(path.name for path in others)
        raise Refused(f"several notebooks and none is named {named.name}: {names}")
    if others:
        note = f"the notebook was named {others[0].name}"
        return Found(others[0], (note, *_leftovers(folder, others[0])))
    loose = student / f"{chapter}.ipynb"
    if loose.is_file():
        return Found(loose, (f"the notebook was not in a folder {chapter}/",))
    if named.is_symlink() or loose.is_symlink():
        raise Refused("the notebook is a link to a file that is not there")
    raise Refused("no notebook was submitted")


def _notebooks(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() == ".ipynb" and not path.name.startswith(".")
        if path.is_file()
    )


def _leftovers(folder: Path, used: Path) -> tuple[str, ...]:
    """Say which other files were handed in: a submission is its notebook only."""
    known = {used.name, "timestamp.txt", "transformer", "__pycache__"}
    known |= {path.name for path in _model_folders(folder)}
    names = sorted(
        path.name
        for path in folder.iterdir()
        if path.name not in known and not path.name.startswith(".")
    )
    if not names:
        return ()
    shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return (f"other files were not used: {shown}",)


def _model_folders(folder: Path) -> list[Path]:
    """Find the folders beside a notebook that hold a trained model."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_dir() and not path.is_symlink() and not path.name.startswith(".")
        if any((path / name).is_file() for name in MODEL_FILES)
    )


def copy_models(source: Path, folder: Path) -> list[str]:
    """Copy the trained models beside a notebook: data of a few names, and small.

    Args:
        source: the folder that was handed in.
        folder: where the notebook is graded.

    Returns:
        What was not copied, and why.
    """
    notes = []
    for number, model in enumerate(_model_folders(source)):
        if number >= MOST_MODELS:
            notes.append(f"{model.name}/ was not used: {MOST_MODELS} models at most")
            continue
        (folder / model.name).mkdir()
        for name in MODEL_FILES:
            path = model / name
            if path.is_symlink():
                notes.append(f"{model.name}/{name} was not used: it is a link")
            elif path.is_file():
                notes += _copy_small(path, folder / model.name / name)
    return notes


def _copy_small(path: Path, target: Path) -> list[str]:
    where = f"{path.parent.name}/{path.name} was not used"
    try:
        if path.stat().st_size > LARGEST_FILE:
            return [f"{where}: it is larger than {LARGEST_FILE // 10**6} MB"]
        shutil.copyfile(path, target)
    except OSError as error:
        return [f"{where}: it cannot be read ({error.strerror})"]
    return []


def read(path: Path) -> tuple[NotebookNode, tuple[str, ...]]:
    """Read a notebook of any format version; return it, and notes."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable(error) from None
    return parse(data)


def _unreadable(error: OSError) -> Refused:
    return Refused(f"the notebook cannot be read ({error.strerror})")
