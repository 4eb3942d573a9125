"""The generator: one text notebook a chapter in, everything else out.

Nothing is written before everything has been read and checked, and every file is
written beside its place and renamed, so a bad source leaves all as it was.
"""

import functools
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder import sheets
from autograder.files import write_beside
from autograder.generator import notebooks, numbers
from autograder.generator.composing import Composed
from autograder.generator.modules import PACKAGE, has_module, reference_module
from autograder.generator.source import Exercise, Source, SourceError
from autograder.generator.table import PLACE, site_of, table

__all__ = [
    "Exercise",
    "Missing",
    "Source",
    "SourceError",
    "assignments",
    "chapters",
    "parts_before",
    "read",
    "read_sheets",
    "release_notebook",
    "source_notebook",
    "write_course",
    "write_exercises",
    "write_folder",
    "write_handout",
    "write_nbgrader_source",
]

ROOT = Path(__file__).resolve().parents[2]
AGENTS = Path(__file__).with_name("AGENTS.md")
START = Path(__file__).with_name("START.md")
GENERATED = "Generated from solutions/"  # stands in every generated file


class Missing(Exception):
    """Something that a command needs is not there; says what to do."""


def chapters(root: Path = ROOT) -> list[str]:
    """Return the names of the chapters that have a source, in order."""
    folder = root / "solutions"
    names = sorted(path.stem for path in folder.glob("[0-9][0-9]_*.md"))
    if not names:
        raise Missing(
            f"{folder}: no text notebooks here. This command needs the instructor's "
            "folder solutions/; the exercises and their checks work without it."
        )
    return names


def assignments(root: Path = ROOT) -> list[str]:
    """Return the names of all that can be handed out and graded: chapters, sheets."""
    return chapters(root) + sheets.names(root)


def read(chapter: str, root: Path = ROOT) -> Source:
    """Read and check the source of a chapter, or of a sheet.

    Raises:
        Missing: there is nothing of that name.
        SheetError: the sheet cannot be made as it is.
        SourceError: a text notebook is bad.
    """
    known = chapters(root)
    if chapter in known:
        _refuse_a_sheet_named(chapter, root)
        folder = root / "solutions"
        return _source(folder / f"{chapter}.md", numbers.state(folder))
    if chapter in sheets.names(root):
        return Composed(
            sheets.read(chapter, root), [read(each, root) for each in known]
        )
    there = ", ".join(assignments(root))
    raise Missing(f"no chapter is named {chapter!r}; there are: {there}")


@functools.lru_cache(maxsize=50)
def _source(path: Path, state: tuple) -> Source:
    """Read a chapter's source, once as long as no chapter's text changes."""
    del state
    return Source(path)


def _refuse_a_sheet_named(chapter: str, root: Path) -> None:
    if chapter in sheets.names(root):
        path = root / sheets.FOLDER / f"{chapter}.yml"
        raise sheets.SheetError(path, 1, "is named as a chapter; choose another name")


def read_sheets(sources: list[Source], root: Path = ROOT) -> list[Source]:
    """Compose all sheets of the sources of all chapters; raise SheetError."""
    return [Composed(sheets.read(name, root), sources) for name in sheets.names(root)]


def source_notebook(chapter: str, root: Path = ROOT) -> NotebookNode:
    """Build the nbgrader source notebook of a chapter."""
    return notebooks.source_notebook(read(chapter, root), _marked(chapter, root))


def release_notebook(chapter: str, root: Path = ROOT) -> NotebookNode:
    """Build what a student gets of a chapter."""
    return notebooks.release_notebook(source_notebook(chapter, root))


def _marked(chapter: str, root: Path) -> set[str]:
    """Return which exercises to mark; all of a sheet's are on somebody's way."""
    return set() if chapter in sheets.names(root) else sheets.short_way(root)


def write_exercises(root: Path = ROOT) -> list[Source]:
    """Write all that is generated and kept anew; return what it came from."""
    sources = [read(chapter, root) for chapter in chapters(root)]
    files = {
        root
        / "exercises"
        / source.chapter
        / f"{source.chapter}.ipynb": notebooks.write(_release(source, root))
        for source in sources
    }
    for path in files:
        _refuse_to_overwrite_work(path)
    package = root / "solutions" / "transformer"
    files |= {package / name: text for name, text in _modules(sources).items()}
    files[root / PLACE] = table(sources, site_of(root))
    for path, text in files.items():
        write_beside(path, text)
    written = [*root.glob("exercises/*/*.ipynb"), *package.glob("*.py")]
    for path in set(written) - set(files):
        if GENERATED in path.read_text(encoding="utf-8"):
            path.unlink()  # its source is gone
    return sources


def write_handout(
    chapter: str, folder: Path, root: Path = ROOT, agents: Path | None = AGENTS
) -> None:
    """Write a chapter's notebook and the parts of the chapters before it.

    Args:
        chapter: such as 04_attention.
        folder: what is in it is replaced.
        root: where the sources are.
        agents: what coding assistants are asked to keep to; None leaves it out.
    """
    notebook = notebooks.write(release_notebook(chapter, root))
    parts = parts_before(chapter, root)
    write_folder(chapter, folder, notebook, parts | _for_assistants(agents))


def write_course(
    folder: Path,
    root: Path = ROOT,
    agents: Path | None = AGENTS,
    names: Sequence[str] = (),
) -> None:
    """Write the notebooks of several chapters, and no answer, into one folder.

    From chapter 2 on they use what was written before: ``workbench assemble`` makes
    its transformer/ of the notebooks, beside them.

    Args:
        folder: what is in it is replaced.
        root: where the sources are.
        agents: what coding assistants are asked to keep to; None leaves it out.
        names: chapters or sheets, in order; all chapters without it.
    """
    names = names or chapters(root)
    files = {
        f"{name}.ipynb": notebooks.write(release_notebook(name, root)) for name in names
    }
    start = START.read_text(encoding="utf-8").replace("FIRST", names[0])
    _replace(folder, files | _for_assistants(agents) | {START.name: start})


def _for_assistants(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    if not path.is_file():
        raise Missing(f"{path}: there is no such file for coding assistants")
    return {AGENTS.name: path.read_text(encoding="utf-8")}


def write_nbgrader_source(chapter: str, folder: Path, root: Path = ROOT) -> None:
    """Write what nbgrader makes a release from: a hand-out with the answers in."""
    notebook = notebooks.write(source_notebook(chapter, root))
    write_folder(chapter, folder, notebook, parts_before(chapter, root))


def write_folder(
    chapter: str, folder: Path, notebook: str, parts: dict[str, str]
) -> None:
    """Write a notebook and the parts beside it, in place of what the folder holds."""
    _replace(folder, {f"{chapter}.ipynb": notebook} | parts)


def _release(source: Source, root: Path) -> NotebookNode:
    marked = _marked(source.chapter, root)
    return notebooks.release_notebook(notebooks.source_notebook(source, marked))


def _modules(sources: list[Source]) -> dict[str, str]:
    modules = {
        f"{source.module}.py": reference_module(source)
        for source in sources
        if has_module(source)
    }
    return {"__init__.py": PACKAGE} | modules


def parts_before(chapter: str, root: Path = ROOT) -> dict[str, str]:
    """Return the reference modules that come with a chapter or sheet, by file name.

    With a chapter, those of the chapters before it; with a sheet, those that it uses,
    and of no chapter that it asks for.
    """
    names = chapters(root)
    if chapter in names:
        earlier = [read(name, root) for name in names[: names.index(chapter)]]
    else:
        beside = read(chapter, root).modules_beside
        sources = (read(name, root) for name in names)
        earlier = [source for source in sources if source.module in beside]
    if not earlier:
        return {}
    return {f"transformer/{name}": text for name, text in _modules(earlier).items()}


def _refuse_to_overwrite_work(path: Path) -> None:
    """Stop before an exercise notebook that somebody has worked in would be lost."""
    if path.exists():
        cells = nbformat.read(path, as_version=4).cells
        if any(cell.get("outputs") or cell.get("execution_count") for cell in cells):
            raise Missing(
                f"{path}: has been run, so it may hold somebody's work, and would be "
                "overwritten. Move it elsewhere, then try again."
            )


def _replace(folder: Path, files: dict[str, str]) -> None:
    """Make a folder hold just these files; the old one stays until all are written."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, text in files.items():
            write_beside(beside / name, text)
        beside.chmod(0o755)
        if folder.exists():
            os.rename(folder, beside.with_suffix(".old"))
        os.rename(beside, folder)
        shutil.rmtree(beside.with_suffix(".old"), ignore_errors=True)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
