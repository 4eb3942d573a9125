"""Which version of the grader this is, told by what is in its files."""

import functools
import hashlib
import platform
from importlib.metadata import version
from pathlib import Path

import nbformat

from autograder.grading import shown
from autograder.grading.paper import ROOT, Paper, files_of, modules_of

PACKAGES = {
    "autograder": "transformers-by-hand",
    "torch": "torch",
    "nbgrader": "nbgrader",
}
DECIDES = ("autograder", "workbench")  # what a grade may depend on
# what examines a submission, on both sides; the checks are those that a paper imports
GRADER = "import autograder.grading.grader, autograder.boundary.zygote"
# all else of the package finds, writes or shows, and changes no verdict
JUDGING = (
    *("autograder.boundary", "autograder.chapters", "autograder.exercise"),
    *("autograder.expect", "autograder.files", "autograder.forbidden"),
    *("autograder.forms", "autograder.grading", "autograder.interface", "workbench"),
)


@functools.cache
def code_version() -> str:
    """Return the package's version and a checksum of its code.

    Two machines with equal ones grade alike, whether the package is installed there
    or used from a checkout.
    """
    top = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for package in DECIDES:
        for path in sorted((top / package).rglob("*.py")):
            digest.update(str(path.relative_to(top)).encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return f"{version(PACKAGES['autograder'])}+{digest.hexdigest()[:12]}"


def verdict_version(paper: Paper, root: Path = ROOT) -> str:
    """Return a checksum of the code that a verdict on a paper can depend on.

    It follows imports: from what examines a submission, and from the paper's notebook
    to its checks and to what they and it use of the workbench.

    Args:
        paper: the chapter's or sheet's.
        root: where the packages are.
    """
    cells = nbformat.reads(paper.source, as_version=4).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    names = modules_of([GRADER, *code], JUDGING, root)
    digest = hashlib.sha256()
    for name in sorted(name for name in names if name.startswith(JUDGING)):
        for path in files_of(name, root):
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    for name, content in shown.given_to(paper.released).items():
        if not name.endswith(".py"):  # a trained model
            digest.update(name.encode() + b"\0" + content + b"\0")
    libraries = (version(PACKAGES[each]) for each in ("torch", "nbgrader"))
    return f"{'+'.join(libraries)}+{digest.hexdigest()}"


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of everything that grades."""
    found = {name: version(package) for name, package in PACKAGES.items()}
    return found | {"autograder": code_version(), "python": platform.python_version()}
