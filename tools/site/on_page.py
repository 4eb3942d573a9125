"""Exercises in the page: Python for the browser, an editor, and the checks.

    python -m tools.site.on_page

makes python.js (Pyodide's core), editor.js (CodeMirror), course.js (the modules of the
checks) and a script for each chapter that has such exercises, and says how large they
are. A page loads them when its reader asks for them. They are scripts for the same
reason as those of live_models.py, and packed as they are.

Nothing of solutions/ is read here: stubs and checks come from the notebooks that are
handed out.

    PYODIDE=folder

names a folder of a publisher's own, with a build of PyTorch for Pyodide: wheels, their
checksums in SHA256SUMS, and Pyodide's python_stdlib.zip if they need more of it than
the page's own has (see fetch_on_page.py). With it, all exercises of the chapters run
whose notebooks import no other chapter's parts. No such build belongs to the course,
and none was tried.
"""

import ast
import base64
import functools
import hashlib
import importlib
import json
import os
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

from autograder.exercise import chapters
from autograder.grading.imports import files_behind
from autograder.on_page.runner import Exercise
from tools.site import fetch_on_page
from tools.site.live_models import as_text, facts_of, worker
from tools.steps import ROOT

WORKER = ROOT / "tools" / "site" / "on_page_worker.js"
SHARED = ("python", "course", "editor")
ABOUT = "on_page/about.json"  # book/_extensions/on_page.py reads it
PYTHON = (*fetch_on_page.FILES, fetch_on_page.LIBRARY, fetch_on_page.LOCK)

WITHOUT_TORCH = (  # exercises whose answers and checks need Python alone
    *("vocabulary", "encode-decode", "pair-counts", "merge-pair", "train-bpe"),
    *("bpe-encode", "skip-gram-pairs", "find-the-slips", "readout-behaviour"),
    *("attention-cost", "attention-parameters", "texts-served"),
    *("noam-rate", "bleu", "smoothing-floor"),
)
ABSENT = ("torch", "numpy")  # libraries that a page has not got
WHEELS = "PYODIDE"  # names the folder of those that a publisher adds
SUMS = "SHA256SUMS"
OWN_MODEL = "my_model"  # an answer that is a folder, and no code
PLOTS = {"plt", "plots"}  # names of what no page has got
TENSORS = {"torch", "nn", "F", "np", "plt", "plots"}  # names that given code must lack
NEEDED = ("autograder.on_page.absent", "autograder.on_page.runner")


def notebook(page: str) -> dict:
    """Read the notebook of a chapter as it is handed out."""
    path = ROOT / "exercises" / page / f"{page}.ipynb"
    return json.loads(path.read_text("utf-8"))


# --- what a publisher adds ------------------------------------------------------------


@functools.cache
def added() -> dict[str, bytes]:
    """Read what a publisher adds, by name; nothing if no folder is named.

    Raises:
        ValueError: one has no checksum, or another than it should have.
    """
    if not os.environ.get(WHEELS):
        return {}
    folder = Path(os.environ[WHEELS])
    sums = folder / SUMS
    if not sums.is_file():
        raise ValueError(f"{folder} has no {SUMS}; `sha256sum *.whl > {SUMS}` makes it")
    lines = [line.split() for line in sums.read_text("utf-8").splitlines()]
    known = {name.lstrip("*"): wanted for wanted, name in lines}
    paths = [*sorted(folder.glob("*.whl")), folder / fetch_on_page.LIBRARY]
    found = {path.name: path.read_bytes() for path in paths if path.is_file()}
    if not any(name.endswith(".whl") for name in found):
        raise ValueError(f"{folder} has no wheels (*.whl)")
    for name, content in found.items():
        if hashlib.sha256(content).hexdigest() != known.get(name):
            raise ValueError(f"{folder / name} is not what {SUMS} says")
    return found


def wheels() -> dict[str, bytes]:
    """Give the wheels among it."""
    return {name: data for name, data in added().items() if name.endswith(".whl")}


def has_torch(page: str) -> bool:
    """Whether a page can have PyTorch: its notebook needs no other chapter's parts."""
    text = "\n".join("".join(cell["source"]) for cell in code_cells(page))
    return bool(wheels()) and "from transformer" not in text


def listed_wheels() -> list[dict]:
    """Say of each wheel what a page needs: name, size, and how it is verified."""
    digests = {name: hashlib.sha256(content) for name, content in wheels().items()}
    return [
        {
            "name": name,
            "bytes": len(wheels()[name]),
            "integrity": f"sha256-{base64.b64encode(each.digest()).decode()}",
        }
        for name, each in digests.items()
    ]


# --- the exercises --------------------------------------------------------------------


@functools.cache
def pages() -> list[str]:
    """List the chapters that have exercises which run in a page."""
    return [page for page in chapters.chapters() if exercises(page)]


@functools.cache
def exercises(page: str) -> list[Exercise]:
    """Say what a page needs to know of a chapter's exercises that run in it."""
    known = chapters.chapters()[page]
    package = importlib.import_module(f"autograder.chapters.{package_of(page)}")
    given, earlier, found = [], [], []
    torch = has_torch(page)
    for cell in code_cells(page):
        text, graded = "".join(cell["source"]), cell["metadata"].get("nbgrader")
        if graded is None:
            given += filter(None, [given_part(cell, text, torch=torch)])
            continue
        name = re.sub(r"^test-|(?<=[a-z])-\d+$", "", graded["grade_id"])
        if name not in WITHOUT_TORCH and (not torch or OWN_MODEL in text):
            continue
        if graded["solution"]:
            stub = text
            continue
        if found and found[-1]["name"] == name:  # a second check
            found[-1]["check"] += f"\n{text}"
            found[-1]["modules"] |= modules_of_checks(package, text)
            continue
        number = next(each.number for each in known.exercises if each.name == name)
        found.append(
            Exercise(
                name=name,
                number=number,
                given=[*given],
                earlier=[*earlier],
                stub=stub,
                check=text,
                modules=modules_of_checks(package, text),
                torch=name not in WITHOUT_TORCH,
            )
        )
        earlier.append((name, stub))
    return found


def modules_of_checks(package: ModuleType, text: str) -> dict[str, str]:
    """Say in which module each check of a cell is."""
    asked = dict.fromkeys(re.findall(r"\bcheck\.(\w+)\(", text))
    return {each: getattr(package, each).__module__ for each in asked}


def code_cells(page: str) -> list[dict]:
    """List the cells of code of a chapter's notebook."""
    return [each for each in notebook(page)["cells"] if each["cell_type"] == "code"]


def package_of(page: str) -> str:
    """Name the package of a chapter's checks.

    >>> package_of("04_attention")
    'attention'
    """
    return page.partition("_")[2]


def given_part(cell: dict, text: str, *, torch: bool) -> str:
    """Take from a cell that is given what can run in a page, and is not only shown."""
    tree = ast.parse(text)
    imports = [
        ast.unparse(node)
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom)) and is_there(node)
    ]
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    defines = any(isinstance(node, ast.FunctionDef) for node in tree.body)
    is_module = cell["metadata"].get("course", {}).get("module")
    if is_module and defines and not names & (PLOTS if torch else TENSORS):
        return text
    return "\n".join(imports)


def is_there(statement: ast.Import | ast.ImportFrom) -> bool:
    """Whether a page can import it; for PyTorch something stands there."""
    if isinstance(statement, ast.ImportFrom):
        names = [statement.module]
    else:
        names = [alias.name for alias in statement.names]
    known = {*sys.stdlib_module_names, *ABSENT}
    return all(name.partition(".")[0] in known for name in names)


def course_files() -> dict[str, bytes]:
    """Give the modules that the checks need: path -> content; none has an answer."""
    checks = {
        module
        for page in pages()
        for each in exercises(page)
        for module in each["modules"].values()
    }
    files = files_behind([*NEEDED, *checks])
    packages = {folder / "__init__.py" for file in files for folder in file.parents}
    kept = {file for file in files | packages if is_packed(file)}
    paths = [*sorted(kept), chapters.TABLE]
    return {str(path.relative_to(ROOT)): path.read_bytes() for path in paths}


def is_packed(file: Path) -> bool:
    """Whether a module goes with the page; of a chapter its checks, not their package.

    The package of a chapter imports all of its checks.
    """
    place = file.relative_to(ROOT).parts if file.is_relative_to(ROOT) else ()
    package_of_checks = place[:2] == ("autograder", "chapters") and len(place) > 3
    return (
        place[:1] == ("autograder",)
        and file.is_file()
        and not (package_of_checks and file.name == "__init__.py")
    )


# --- what a page loads ----------------------------------------------------------------


def python_files() -> dict[str, bytes]:
    """Give Python for the browser, as the worker looks for its files."""
    own = {name: fetch_on_page.unpacked(name) for name in PYTHON}
    return own | {name: data for name, data in added().items() if name in own}


def receive(*given: object) -> bytes:
    """Write a script that hands over what is given."""
    written = json.dumps(given, ensure_ascii=False, separators=(",", ":"))
    return f"OnPage.receive({written[1:-1]});\n".encode()


def shared_scripts() -> dict[str, bytes]:
    """Make what all pages with such exercises load: name -> content."""
    return {
        "python": receive("python", as_text(python_files()), worker(WORKER)),
        "course": receive("course", as_text(course_files())),
        "editor": fetch_on_page.unpacked(fetch_on_page.EDITOR),
    }


def chapter_data(page: str) -> dict:
    """Give what the script of a chapter's page holds: exercises, and the notebook."""
    return {
        "exercises": exercises(page),
        "notebook": notebook(page),
        "wheels": listed_wheels(),
    }


def scripts() -> dict[str, bytes]:
    """Make all scripts: path below _static/ -> content.

    That of a chapter is loaded first: it says of the others how large they are.
    """
    shared = shared_scripts()
    files = {name: facts_of(name, content) for name, content in shared.items()}
    made = {
        page: receive(page, chapter_data(page) | {"files": files}) for page in pages()
    }
    notices = fetch_on_page.unpacked(fetch_on_page.NOTICES)
    every = {f"{name}.js": content for name, content in (shared | made).items()}
    placed = {f"on_page/{name}": content for name, content in every.items()}
    whole = {f"on_page/wheels/{name}": data for name, data in wheels().items()}
    return placed | {"on_page/notices.txt": notices} | whole


def about(made: dict[str, bytes]) -> dict:
    """Say what a page knows before anything is loaded, for its reader and itself."""
    names = (*SHARED, *pages())
    facts = {name: facts_of(name, made[f"on_page/{name}.js"]) for name in names}
    return {
        page: {
            "exercises": {each["name"]: each["number"] for each in exercises(page)},
            "torch": [each["name"] for each in exercises(page) if each["torch"]],
            "torch_bytes": sum(map(len, wheels().values())),
            "version": facts[page]["version"],
            "bytes": sum(facts[name]["bytes"] for name in (*SHARED, page)),
        }
        for page in pages()
    }


def write(folder: Path) -> None:
    """Write all scripts into a folder, anew, and what the pages are told of them."""
    shutil.rmtree(folder / "on_page", ignore_errors=True)
    made = scripts()
    made[ABOUT] = json.dumps(about(made)).encode()
    for place, content in made.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def main() -> None:
    """Make all scripts, and say how large they are."""
    for name, content in scripts().items():
        print(f"{name:36} {facts_of(name, content)['bytes']:>10,} bytes compressed")


if __name__ == "__main__":
    main()
