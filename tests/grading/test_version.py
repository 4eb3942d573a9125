"""What is graded again after a change of the course: what a verdict can depend on."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.grading import record, version
from autograder.grading.classfile import Class
from autograder.grading.course import Course
from autograder.grading.imports import ROOT
from autograder.grading.limits import Limits
from autograder.grading.paper import Paper
from autograder.grading.planning import Terms, Work
from autograder.grading.record import Record
from autograder.grading.version import code_version

CHAPTERS = ("04_attention", "05_multi_head_attention", "07_decoder", "10_vision")
PAGES = (  # what pages, hand-outs and commands are made with
    *("pages/attention_plots.py", "pages/decoder_plots.py"),
    *("workbench/command_line/use.py", "autograder/generator/notebooks.py"),
    *("autograder/collecting/canvas.py", "autograder/grading/exports.py"),
    *("autograder/grading/class_report.py", "autograder/grading/feedback.py"),
)
CHECKS = {  # which of the chapters use them
    "autograder/chapters/attention/weights.py": {"04_attention"},
    "autograder/chapters/attention/masks.py": {"04_attention", "07_decoder"},
    "autograder/chapters/attention/oracles.py": {
        "04_attention",
        "05_multi_head_attention",
    },
    "autograder/chapters/decoder/writing/beams.py": {"07_decoder"},
    "workbench/data/images.py": {"10_vision"},
    "results/models/digits/config.json": {"10_vision"},
}
EVERYBODYS = (
    *("autograder/interface.py", "autograder/exercise/spec.py"),
    *("autograder/boundary/student.py", "autograder/grading/remote.py"),
    *("autograder/grading/submission.py", "workbench/plots.py"),
)


@pytest.fixture(scope="module")
def released() -> dict[str, str]:
    """The chapters' notebooks, as they are handed out."""
    return {chapter: Paper.of(chapter).released for chapter in CHAPTERS}


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of the course's packages, and of its trained models."""
    root = tmp_path_factory.mktemp("course")
    for package in ("autograder", "pages", "workbench", "results/models"):
        for path in (ROOT / package).rglob("*"):
            if path.suffix in (".py", ".json", ".safetensors"):
                to = root / path.relative_to(ROOT)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, to)
    return root


def versions_in(root: Path, released: dict[str, str]) -> dict[str, str]:
    code_version.cache_clear()
    return {chapter: code_version(text, root) for chapter, text in released.items()}


@pytest.fixture(scope="module")
def before(copy, released) -> dict[str, str]:
    return versions_in(copy, released)


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        (PAGES, set()),
        *(([path], chapters) for path, chapters in CHECKS.items()),
        *(([path], set(CHAPTERS)) for path in EVERYBODYS),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_a_change_grades_again_what_depends_on_it(
    changed, again, copy, before, released
) -> None:
    texts = {copy / each: (copy / each).read_bytes() for each in changed}
    for path, text in texts.items():
        path.write_bytes(text + b"\n# a word\n")
    after = versions_in(copy, released)
    for path, text in texts.items():
        path.write_bytes(text)
    assert {chapter for chapter in before if before[chapter] != after[chapter]} == again


def test_equal_files_elsewhere_are_the_same_version(before, released) -> None:
    assert before == versions_in(ROOT, released)


def test_each_chapter_is_graded_by_its_own_version(released) -> None:
    papers = {chapter: Paper.of(chapter) for chapter in CHAPTERS[:2]}
    terms = Terms(papers, Class(), Limits())
    found = [code_version(released[chapter]) for chapter in papers]
    for each, chapter in zip(found, papers, strict=True):
        assert each in terms.fingerprint(chapter)
    assert len({*found, code_version()}) == 3


def test_whatever_is_imported_where_verdicts_are_made_counts(released) -> None:
    """But for the files of packages from which only a module is taken."""
    checks = [f"{version.CHECKS}.attention", f"{version.CHECKS}.vision"]
    code = f"""
import importlib, json, sys
for name in {["autograder.boundary.zygote", *version.GRADING, *checks]}:
    importlib.import_module(name)
files = [getattr(each, "__file__", None) for each in list(sys.modules.values())]
print(json.dumps([each for each in files if each]))
"""
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    loaded = {Path(each) for each in json.loads(ran.stdout)}
    ours = {path for path in loaded if path.is_relative_to(ROOT / "autograder")}
    ours |= {path for path in loaded if path.is_relative_to(ROOT / "workbench")}
    counted = set().union(
        *(
            version._files_that_decide(released[chapter], ROOT)
            for chapter in ("04_attention", "10_vision")
        )
    )
    assert len(ours) > 90
    assert {path for path in ours - counted if path.name != "__init__.py"} == set()


def test_a_page_that_would_read_otherwise_is_written_again(
    tmp_path, monkeypatch
) -> None:
    """Without grading anything again: what is ungraded has a page, too."""
    chapter = CHAPTERS[0]
    terms = Terms({chapter: Paper.of(chapter)}, Class(), Limits())
    work = Work(tmp_path / "class" / "ada", chapter)
    (work.student / chapter).mkdir(parents=True)  # without a notebook
    work.read(terms)
    assert list(work.jobs(terms)) == [] and work.is_done
    page = tmp_path / "out" / "feedback" / "ada" / f"{chapter}.html"
    (tmp_path / "out" / "course").mkdir(parents=True)
    with Record(tmp_path / "out", Course(tmp_path / "out" / "course"), terms) as kept:
        kept.add([work])
        same = version.page_version()
        for now, written in ((same, False), ("another", True), ("another", False)):
            page.write_text("as it was")
            monkeypatch.setattr(record, "page_version", lambda now=now: now)
            work.read(terms)
            assert kept.keep(work)
            assert (page.read_text() != "as it was") is written
