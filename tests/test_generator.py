"""The generator: what it writes, that it is the same every time, what it refuses."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from autograder import generator
from autograder.exercise import progress
from autograder.generator import ROOT, Missing, SourceError, notebooks, numbers
from autograder.generator.table import PLACE
from autograder.sheets import SheetError

GOLDEN = Path(__file__).parent / "golden"


def files_of(folder: Path) -> dict[str, bytes]:
    """Read a folder whole, less what Python, an editor or a check puts there."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.name != progress.FILE
    }


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course of two small chapters with every kind of cell."""
    shutil.copytree(GOLDEN / "solutions", tmp_path / "solutions")
    return tmp_path


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """The sources of the course itself, and nothing that is generated."""
    (tmp_path / "solutions").mkdir()
    for path in ROOT.glob("solutions/*.md"):
        shutil.copy(path, tmp_path / "solutions")
    shutil.copy(ROOT / "_config.yml", tmp_path)  # it may have the site's address
    shutil.copytree(ROOT / "sheets", tmp_path / "sheets")  # they mark the short way
    return tmp_path


def test_the_golden_course_is_generated_byte_for_byte(course: Path) -> None:
    """Everything generated equals the folder kept in tests/golden.

    After a wanted change: ``python -m tests.update_golden`` and read the difference.
    """
    shutil.rmtree(course / "solutions" / "transformer")
    generator.write_exercises(course)
    for chapter in ("01_scaling", "02_quiz"):
        folder = course / "handout" / chapter
        generator.write_handout(chapter, folder, course, agents=None)
        generator.write_nbgrader_source(chapter, course / "source" / chapter, course)
    assert files_of(course) == files_of(GOLDEN)


def test_the_committed_exercises_and_modules_are_what_the_sources_say(real) -> None:
    generator.write_exercises(real)
    assert files_of(real / "exercises") == files_of(ROOT / "exercises")
    package = "solutions/transformer"
    assert files_of(real / package) == files_of(ROOT / package)
    assert (real / PLACE).read_bytes() == (ROOT / PLACE).read_bytes()


@pytest.mark.parametrize("chapter", generator.chapters())
def test_no_line_of_an_answer_or_a_hidden_test_is_handed_out(chapter: str) -> None:
    """Read from the text file itself, so that the generator does not judge itself."""
    text = (ROOT / "solutions" / f"{chapter}.md").read_text(encoding="utf-8")
    tells_nothing = re.compile(r"return \w+|[\w.]+\(")  # "return total", "check.it("
    secret, inside = set(), False
    for line in map(str.strip, text.splitlines()):
        if line.startswith(("### BEGIN", "### END")):
            inside = line.startswith("### BEGIN")
        elif inside and len(line) >= 12 and not tells_nothing.fullmatch(line):
            secret.add(line)
    assert len(secret) > 40
    notebook = nbformat.read(ROOT / f"exercises/{chapter}/{chapter}.ipynb", 4)
    shown = {
        line.strip() for cell in notebook.cells for line in cell.source.splitlines()
    }
    assert not secret & shown


def test_a_second_run_changes_nothing(course: Path) -> None:
    generator.write_exercises(course)
    before = files_of(course)
    generator.write_exercises(course)
    assert files_of(course) == before


def test_stubs_are_valid_python_that_is_not_implemented(course: Path) -> None:
    notebook = generator.release_notebook("01_scaling", course)
    text = next(cell.source for cell in notebook.cells if "class Scale" in cell.source)
    names: dict = {}
    exec("import torch\nfrom torch import nn\n" + text, names)
    with pytest.raises(NotImplementedError):
        names["Scale"](1.0)


def test_the_module_works_and_says_where_it_comes_from(course: Path) -> None:
    generator.write_exercises(course)
    command = (
        "import torch; from transformer.scaling import Scale, double;"
        "assert double(torch.ones(1)) == 2 and Scale(3.0)(torch.ones(1)) == 3;"
        "assert 'Defined in Exercise 1.1 · Double.' in double.__doc__;"
        "assert 'Defined in Exercise 1.2 · Scale.' in Scale.__doc__"
    )
    where = {"PYTHONPATH": str(course / "solutions")}
    subprocess.run([sys.executable, "-c", command], env=os.environ | where, check=True)


def test_a_handout_has_the_parts_of_earlier_chapters_only(course: Path) -> None:
    for chapter in ("01_scaling", "02_quiz"):
        generator.write_handout(chapter, course / chapter, course)
    assert files_of(course / "01_scaling").keys() == {"01_scaling.ipynb", "AGENTS.md"}
    assert files_of(course / "02_quiz").keys() == {
        "02_quiz.ipynb",
        "AGENTS.md",
        "transformer/__init__.py",
        "transformer/scaling.py",
    }


def test_the_whole_course_is_its_notebooks_without_an_answer(course: Path) -> None:
    generator.write_course(course / "all", course)
    notebooks = {"01_scaling.ipynb", "02_quiz.ipynb"}
    files = files_of(course / "all")
    assert files.keys() == notebooks | {"AGENTS.md", "START.md"}
    for chapter in ("01_scaling", "02_quiz"):
        generator.write_handout(chapter, course / chapter, course)
        one = files_of(course / chapter)
        assert files[f"{chapter}.ipynb"] == one[f"{chapter}.ipynb"]


def test_what_assistants_are_asked_can_be_changed_or_left_out(course: Path) -> None:
    mine = course / "mine.md"
    mine.write_text("Answer in French.\n")
    generator.write_course(course / "all", course, agents=mine)
    assert (course / "all" / "AGENTS.md").read_text() == "Answer in French.\n"
    generator.write_course(course / "all", course, agents=None)
    assert not (course / "all" / "AGENTS.md").exists()
    with pytest.raises(generator.Missing, match=r"nothing\.md: there is no such file"):
        generator.write_course(course / "all", course, agents=course / "nothing.md")
    assert (course / "all" / "START.md").exists()


def test_a_stale_notebook_goes_and_what_is_not_generated_stays(course: Path) -> None:
    generator.write_exercises(course)
    own = course / "exercises" / "02_quiz" / "my_notes.ipynb"
    own.write_text(nbformat.writes(nbformat.v4.new_notebook()))
    (course / "solutions" / "02_quiz.md").unlink()
    generator.write_exercises(course)
    assert own.exists()
    assert not (course / "exercises/02_quiz/02_quiz.ipynb").exists()
    assert not (course / "solutions/transformer/quiz.py").exists()


def test_a_notebook_that_has_been_run_is_not_overwritten(course: Path) -> None:
    generator.write_exercises(course)
    path = course / "exercises" / "02_quiz" / "02_quiz.ipynb"
    notebook = nbformat.read(path, as_version=4)
    code = next(cell for cell in notebook.cells if cell.cell_type == "code")
    code.execution_count = 1
    nbformat.write(notebook, path)
    before = files_of(course)
    with pytest.raises(Missing, match=r"02_quiz\.ipynb: has been run"):
        generator.write_exercises(course)
    assert files_of(course) == before


REFUSALS = {
    # what is wrong: (text to replace, replacement, reason)
    "nested": ("    total = x + x\n", "    ### BEGIN SOLUTION\n", "inside another"),
    "no end": ("    return total\n    ### END SOLUTION\n", "", "never closed"),
    "no begin": ("    ### BEGIN SOLUTION\n    total", "    total", "without its BEGIN"),
    "empty": ("    total = x + x\n    return total\n", "\n", "is empty"),
    "marker in a given cell": ('print("given")', "### BEGIN SOLUTION", "misplaced"),
    "marker in a string": ("total = x + x", '"### BEGIN SOLUTION"', "misplaced"),
    "hidden tests in an answer": ("total = x", "### BEGIN HIDDEN TESTS", "misplaced"),
    "no region": (
        "    ### BEGIN SOLUTION\n    total = x + x\n    return total\n"
        "    ### END SOLUTION\n",
        "    return x + x\n",
        "has no '### BEGIN SOLUTION'",
    ),
    "described twice": ('"exercise": "scale"', '"exercise": "double"', "twice"),
    "two answers": (":exercise: scale", ":exercise: double", "needs one answer cell"),
    "no id": (":check: double", ":check: dubble", "no description"),
    "bad id": (":exercise: double", ":exercise: Double It", "joined by hyphens"),
    "no points": (":check: double\n:points: 2", ":check: double", "points must be"),
    "points of nothing": (":points: 2", ":points: 0", "points must be"),
    "only hidden": ("print(double(torch.ones(2)))\n", "", "no visible part"),
    "no hidden": (
        "### BEGIN HIDDEN TESTS\nprint(double(torch.zeros(3)))\n"
        "### END HIDDEN TESTS\n",
        "",
        "has no '### BEGIN HIDDEN TESTS'",
    ),
    "value on the last line": ("print(double(torch.zeros(3)))", "3", "the last line"),
    "no docstring": ('"""double: is it twice as large?"""\n', "", "docstring"),
    "unknown option": (":tags: [hide-input]", ":tag: [hide-input]", "unknown option"),
    "syntax": ("total = x + x", "total = x +", "Python cannot read it"),
    "no difficulty": ('"difficulty": 1, ', "", "difficulty must be"),
    "no minutes": ('"difficulty": 1, "minutes": 5', '"difficulty": 1', "minutes must"),
    "a number": ("## Exercise · Double", "## Exercise 1.1 · Double", "must start with"),
    "unknown reference": ("**Goal.**", "See {ex}`none`. **Goal.**", "is named 'none'"),
    "no goal": ("**Goal.** Double", "Double", "no paragraph '**Goal.**'"),
    "a hint missing": ("Hint 2: pseudocode</summary>\n\nAdd", "Add", "needs hint"),
    "header": ("module: scaling, ", "", "the header has no course: module"),
    "header not YAML": ("kernelspec: {", "kernelspec: {{", "is no text notebook"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSALS)
def test_a_bad_source_is_refused_with_file_line_and_reason(course: Path, what) -> None:
    old, new, reason = REFUSALS[what]
    path = course / "solutions" / "01_scaling.md"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    before = files_of(course)
    with pytest.raises(SourceError, match=re.escape(reason)) as caught:
        generator.write_exercises(course)
    assert re.match(rf"{re.escape(str(path))}:\d+: ", str(caught.value))
    assert files_of(course) == before, "a refused source must leave all as it was"


def test_exercises_are_numbered_by_their_order(course: Path) -> None:
    """Moving one is one edit: what names it by id follows."""
    path = course / "solutions" / "01_scaling.md"
    text = path.read_text(encoding="utf-8")
    head, first, rest = text.partition('+++ {"exercise": "double"')
    double, second, scale = (first + rest).partition('+++ {"exercise": "scale"')
    scale, third, explain = (second + scale).partition('+++ {"exercise": "explain')
    explain = explain.replace("**Goal.**", "See {ex}`double`. **Goal.**", 1)
    path.write_text(head + scale + double + third + explain, encoding="utf-8")
    titles = [each.title for each in generator.read("01_scaling", course).exercises]
    assert titles[:2] == ["Exercise 1.1 · Scale", "Exercise 1.2 · Double"]
    last = generator.read("01_scaling", course).exercises[2]
    assert "See 1.2. " in last.description.text


def test_the_guide_s_lines_make_a_report_a_written_answer(course: Path) -> None:
    guide = (ROOT / "book" / "instructors.md").read_text(encoding="utf-8")
    lines = re.search(r'^```text\n(\+\+\+ \{"exercise".*?)^```$', guide, re.S | re.M)[1]
    source = course / "solutions" / "01_scaling.md"
    source.write_text(f"{source.read_text()}\n{lines}")
    report = generator.read("01_scaling", course).exercises[-1]
    assert (report.name, report.by_hand, report.points) == ("own-report", True, 10)


PLACES = (
    *("*.md", "book/**/*.md", "book/**/*.js", "book/**/*.py", "book/**/*.yml"),
    *("results/*.yml", "sheets/*.yml", "solutions/*.md", "solutions/mistakes/*.py"),
    *("autograder/**/*.py", "pages/**/*.py", "tests/**/*.py", "tools/**/*.py"),
    "workbench/**/*.py",
)
# in these, courses and pages are made up
EXCEPT = {"golden", "test_generator.py", "test_results.py", "test_spaces.py"}


def test_no_text_names_an_exercise_by_its_number() -> None:
    """Where exercises are moved, such a number would be wrong; {ex}`softmax` is not."""
    number = re.compile(r"\bexercises?\s+\d+\.\d+", re.IGNORECASE)
    paths = {path for place in PLACES for path in ROOT.glob(place)}
    assert len(paths) > 500
    for path in sorted(paths):
        if not EXCEPT & set(path.relative_to(ROOT).parts):
            found = number.search(path.read_text("utf-8"))
            assert not found, f"{path}: {found[0]}"


def test_every_exercise_that_a_page_names_is_there() -> None:
    known = numbers.numbers(ROOT / "solutions")
    named = [
        (path, name)
        for path in ROOT.glob("book/**/*.md")
        for name in numbers.REFERENCE.findall(path.read_text("utf-8"))
    ]
    assert len(named) > 50
    assert not [each for each in named if each[1] not in known]


# --- one edit of the course itself ----------------------------------------------------

OPENED = re.compile(r'^(?=\+\+\+ \{"exercise": "([\w-]+)")', re.MULTILINE)


def edit(course: Path, order: Callable[[list[str]], list[str]]) -> list[str]:
    """Put chapter 4's exercises into an order, which may lack some; give their ids."""
    path = course / "solutions" / "04_attention.md"
    head, *rest = OPENED.split(path.read_text("utf-8"))
    texts = dict(zip(rest[::2], rest[1::2], strict=True))
    names = order(list(texts))
    path.write_text("".join([head, *(texts[name] for name in names)]), "utf-8")
    return names


def generated_numbers(course: Path) -> dict[str, str]:
    """Generate; see that all that is written agrees on the numbers, and give them."""
    generator.write_exercises(course)
    table = json.loads((course / PLACE).read_text("utf-8"))["chapters"]
    exercises = [each for chapter in table.values() for each in chapter["exercises"]]
    known = {each["name"]: each["number"] for each in exercises}
    texts = {chapter: notebook_text(course, chapter) for chapter in table}
    for each in exercises:
        heading = f"## Exercise {each['number']} · {each['title']}\n"
        assert sum(heading in text for text in texts.values()) == 1
    for chapter, text in texts.items():
        source = (course / "solutions" / f"{chapter}.md").read_text("utf-8")
        for line in filter(numbers.REFERENCE.search, source.splitlines()):
            assert numbers.REFERENCE.sub(lambda found: known[found[1]], line) in text
    return known


def notebook_text(course: Path, chapter: str) -> str:
    """All that stands in a chapter's notebook with its answers."""
    cells = generator.source_notebook(chapter, course).cells
    return "\n".join(cell.source for cell in cells)


def test_an_exercise_of_the_course_is_dropped_by_one_edit(real: Path) -> None:
    dropped = "worked-context"  # which no other exercise names
    left = edit(real, lambda names: [each for each in names if each != dropped])
    known = generated_numbers(real)
    assert dropped not in known
    assert [known[name] for name in left] == [
        f"4.{place}" for place in range(1, len(left) + 1)
    ]
    notebook = (real / "exercises/04_attention/04_attention.ipynb").read_text("utf-8")
    assert "worked_context" not in notebook
    before = numbers.numbers(ROOT / "solutions")
    assert known.keys() == before.keys() - {dropped}
    assert all(known[each] == before[each] for each in known.keys() - set(left))


def test_an_exercise_of_the_course_is_moved_by_one_edit(real: Path) -> None:
    moved = edit(real, lambda names: [*names[1:4], names[0], *names[4:]])
    known = generated_numbers(real)
    assert known["softmax"] == "4.4"
    assert [known[name] for name in moved] == [
        f"4.{place}" for place in range(1, len(moved) + 1)
    ]
    before = numbers.numbers(ROOT / "solutions")
    assert known.keys() == before.keys()
    same = known.keys() - set(moved[:4])
    assert all(known[each] == before[each] for each in same)


def test_a_text_that_names_a_dropped_exercise_is_found(real: Path) -> None:
    edit(real, lambda names: names[1:])
    with pytest.raises(SourceError, match="no exercise is named 'softmax'"):
        generator.write_exercises(real)
    assert not (real / "exercises").exists()


def test_a_sheet_that_asks_for_a_dropped_exercise_is_found(real: Path) -> None:
    edit(real, lambda names: [each for each in names if each != "causal-mask"])
    with pytest.raises(SheetError, match="no exercise is named 'causal-mask'"):
        generator.read("short_04_attention", real)


def test_the_line_of_a_refusal_is_where_the_fault_is(course: Path) -> None:
    path = course / "solutions" / "01_scaling.md"
    text = path.read_text(encoding="utf-8").replace("total = x + x", "total = x +")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SourceError) as caught:
        generator.read("01_scaling", course)
    assert "total = x +" in text.splitlines()[caught.value.line - 1]


def test_unreadable_and_missing_sources(course: Path) -> None:
    (course / "solutions" / "02_quiz.md").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SourceError, match="cannot be read"):
        generator.write_exercises(course)
    with pytest.raises(Missing, match="no chapter is named '09_none'; there are: 01"):
        generator.read("09_none", course)
    with pytest.raises(Missing, match="no text notebooks here"):
        generator.chapters(course / "elsewhere")


def test_the_command_line_says_what_is_wrong_in_one_line() -> None:
    command = [sys.executable, "-m", "autograder", "handout", "12_nothing"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 2
    assert run.stderr.startswith("error: no chapter is named '12_nothing'; there are:")
    assert run.stderr.count("\n") == 1


# --- the first cell that is run -------------------------------------------------------


@pytest.fixture
def opening(monkeypatch) -> Callable[[], list[tuple]]:
    """Run the cell where the package is missing; give the magics that it called."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    def run() -> list[tuple]:
        called: list[tuple] = []
        shell = SimpleNamespace(run_line_magic=lambda *given: called.append(given))
        exec(notebooks.OPENING, {"get_ipython": lambda: shell})
        return called

    return run


def test_a_missing_package_is_one_line_that_says_what_to_do(opening) -> None:
    command = "pip install transformers-by-hand "
    with pytest.raises(ModuleNotFoundError, match=command) as raised:
        opening()
    assert raised.value._render_traceback_() == [str(raised.value)]
    assert "\n" not in str(raised.value)


def test_on_colab_the_package_is_installed(opening, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "google.colab", SimpleNamespace())
    assert opening() == [("pip", "install --quiet transformers-by-hand")]


def test_the_first_cell_that_is_run_looks_for_the_package() -> None:
    for chapter in generator.chapters():
        cells = generator.release_notebook(chapter).cells
        first = next(cell for cell in cells if cell.cell_type == "code")
        assert first.source == notebooks.OPENING
        assert "nbgrader" not in first.metadata
        exec(first.source, {})  # and does nothing where it is
