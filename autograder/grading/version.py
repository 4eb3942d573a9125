"""Which version of the grader this is, told by what is in its files."""

import functools
import hashlib
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from pkgutil import iter_modules

from autograder.boundary.stubs import CHECKS
from autograder.grading import shown
from autograder.grading.imports import ROOT, files_behind

PACKAGES = {
    "autograder": "transformers-by-hand",
    "torch": "torch",
    "nbgrader": "nbgrader",
}
# what makes a job of a submission and a verdict of a job; they import the rest
GRADING = tuple(
    f"autograder.grading.{each}" for each in ("planning", "cluster", "grader")
)
FEEDBACK, TEMPLATES = "autograder.grading.feedback", "autograder/grading/templates"
# its product, the paper of a chapter, has a checksum of its own in every fingerprint
MAKES_PAPERS = "autograder.generator"


@functools.lru_cache(maxsize=50)
def code_version(released: str | None = None, root: Path = ROOT) -> str:
    """Return the package's version and a checksum of what a verdict can depend on.

    Two machines with equal ones grade alike, whether the package is installed there
    or used from a checkout.

    Args:
        released: a chapter's notebook as it was handed out, in nbformat's JSON; without
            one the checksum is that of all chapters.
        root: the folder in which the packages are.
    """
    decides = _checksum(_files_that_decide(released, root), root)
    return f"{version(PACKAGES['autograder'])}+{decides}"


@functools.cache
def page_version() -> str:
    """Return a checksum of what writes a student's page of feedback."""
    templates = (ROOT / TEMPLATES).iterdir()
    return _checksum({*files_behind([FEEDBACK]), *templates}, ROOT)


def _checksum(files: Iterable[Path], root: Path) -> str:
    digest = hashlib.sha256()
    named = {_place(path.relative_to(root)): path for path in files}
    for place, path in sorted(named.items()):
        digest.update(place.encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _place(path: Path) -> str:
    """Name a file alike in a checkout and in a wheel, which keep models elsewhere."""
    for models in map(Path, shown.MODELS):
        if path.is_relative_to(models):
            return f"models/{path.relative_to(models).as_posix()}"
    return path.as_posix()


def _files_that_decide(released: str | None, root: Path) -> set[Path]:
    """Find the files: grading's own, the checks', and what the sandbox shows."""
    if released is None:
        packages = iter_modules([str(root.joinpath(*CHECKS.split(".")))], f"{CHECKS}.")
        imported = {*shown.SOME_CHAPTERS, *(each.name for each in packages)}
    else:
        imported = shown.imported_by(released)
    checks = {name for name in imported if name.startswith(f"{CHECKS}.")}
    trusted = files_behind((*GRADING, *checks), root, without=MAKES_PAPERS)
    seen = {path for path, _ in shown.files(root)}
    return trusted | seen | set(shown.files_of(imported, root))


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of everything that grades."""
    found = {name: version(package) for name, package in PACKAGES.items()}
    return found | {"autograder": code_version(), "python": platform.python_version()}
