"""What the sandbox shows of the course: an allow-list, for all and for a chapter.

A student's code may call what its notebook was handed out to call, and nothing that
answers: no check, for a check knows the right answers and the known mistakes; of the
workbench the modules that are listed here, since what reports a score in chapter 9 is
an exercise of chapter 7. Of everything else there are stand-ins, which do nothing (see
``autograder.boundary.stubs``).

All submissions see ``files``. What only some chapters' notebooks import is sent with
each submission of these chapters (``given_to``), because one process with everything
imported is forked for submissions of every chapter.
"""

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from pkgutil import iter_modules

import nbformat

from autograder.boundary.stubs import CHECKS
from autograder.grading.imports import ROOT, file_of, modules_of

WORKBENCH = "workbench"
BOUNDARY = "autograder.boundary"  # all of it: it holds no secret
# what else runs beside a student's code, and what a notebook of any chapter may call
EVERYBODYS = (
    "autograder",
    "autograder.files",
    "autograder.forbidden",
    "autograder.held",
    "autograder.interface",
    "autograder.time_limit",
    "workbench",
    "workbench.errors",
    "workbench.plots",
)
# what a chapter's submissions get if their notebook imports it; each imports, when it
# is imported itself, nothing of the course that is not listed here
SOME_CHAPTERS = (
    "workbench.data.batches",
    "workbench.data.digits",
    "workbench.data.images",
    "workbench.data.phrasebook",
    "workbench.data.tokenizer",
    "workbench.model.attention",
    "workbench.model.baseline",
    "workbench.model.kernels",
    "workbench.model.models",
    "workbench.model.variants",
    "workbench.training.records",
    "workbench.use.results",
)
DIGITS, DIGITS_FILE = "workbench.data.digits", "workbench/data/digits.safetensors"
RESULTS = "workbench.use.results"  # finds trained models in a folder beside its package
MODELS = ("results/models", "workbench/recorded/models")  # the latter in a wheel


def files(root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """Give each file that every submission sees, and its place among the course's."""
    for name in (*EVERYBODYS, BOUNDARY, *_modules_in(BOUNDARY, root)):
        path = _file(name, root)
        yield path, path.relative_to(root).as_posix()


def _file(module: str, root: Path) -> Path:
    """Return the file of one of the course's modules that has to be there."""
    found = file_of(module, root)
    if found is None:
        raise FileNotFoundError(f"{root}: no file of {module}, which submissions see")
    return found


def stubs() -> list[str]:
    """Name the modules of the course for which there are stand-ins."""
    found = [CHECKS, *_modules_in(CHECKS)]
    waiting = [WORKBENCH]
    while waiting:
        inside = _modules_in(waiting.pop())
        found += inside
        waiting += inside  # a room of it, or a module with nothing inside
    return [name for name in found if name not in EVERYBODYS]


def _modules_in(package: str, root: Path = ROOT) -> list[str]:
    folder = str(root.joinpath(*package.split(".")))
    return [each.name for each in iter_modules([folder], f"{package}.")]


@functools.lru_cache(maxsize=50)
def given_to(released: str) -> dict[str, bytes]:
    """Return what a submission sees besides, by path: what its notebook imports.

    Args:
        released: the notebook as it was handed out, in nbformat's JSON.
    """
    code = "\n".join(_code_cells(released))
    return {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for path in files_of(imported_by(released))
        if not _is_model(path) or f'"{path.parent.name}"' in code  # the cells name it
    }


def imported_by(released: str) -> set[str]:
    """Name what a notebook imports, and what those modules do that it may be given."""
    return modules_of(_code_cells(released), SOME_CHAPTERS)


def _code_cells(released: str) -> list[str]:
    cells = nbformat.reads(released, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


def _is_model(path: Path) -> bool:
    return any(path.is_relative_to(ROOT / each) for each in MODELS)


def files_of(imported: Iterable[str], root: Path = ROOT) -> list[Path]:
    """List the files that come with what a notebook imports."""
    wanted = set(SOME_CHAPTERS).intersection(imported)
    paths = [_file(name, root) for name in sorted(wanted)]
    if DIGITS in wanted:
        paths.append(root / DIGITS_FILE)
    if RESULTS in wanted:
        found = (path for each in MODELS for path in (root / each).glob("*/*"))
        paths += sorted(path for path in found if path.is_file())
    return paths
