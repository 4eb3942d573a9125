"""Sheets: what a selection of exercises is made of, refused for, and graded by."""

import ast
import builtins
import functools
import json
import re
from pathlib import Path

import nbformat
import pytest

from autograder import generator, sheets
from autograder.chapters import attention as check
from autograder.collecting.notebooks import by_name, chapter_of
from autograder.collecting.sources import File
from autograder.exercise import progress
from autograder.exercise.chapters import exercises
from autograder.generator import ROOT, Source, notebooks
from autograder.generator.composing import Composed
from autograder.generator.modules import without_markers
from autograder.grading.grader import Grader
from autograder.grading.job import Job
from autograder.grading.needless import binds, reads
from autograder.grading.paper import Paper
from autograder.grading.sandbox import problem
from autograder.sheets import SheetError
from workbench import assemble
from workbench.model import models

MIX = """
title: A mix
text: For the third week.
use:
  - softmax: 4
  - causal-mask
  - masked-softmax
  - explain-scaling
  - layer-norm
  - gelu
  - feed-forward
  - attention-parameters
"""
SHORT = [name for name in sheets.names() if name.startswith(sheets.SHORT)]
TELLS_NOTHING = re.compile(r"return \w+|[\w.]+\(")  # "return total", "check.it("
SLIP = "softmax over the wrong axis"


@functools.cache
def sources() -> list[Source]:
    """The sources of all chapters, read once."""
    return [generator.read(chapter) for chapter in generator.chapters()]


def composed(folder: Path, text: str, name: str = "mix") -> Composed:
    """Make the source of a sheet."""
    path = folder / sheets.FOLDER / f"{name}.yml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return Composed(sheets.read(name, folder), sources())


def short(name: str) -> Composed:
    """Return the source of a sheet that ships with the course."""
    return Composed(sheets.read(name), sources())


def parts_of(sheet: Composed) -> dict[str, str]:
    """Return what lies beside its notebook."""
    folder = ROOT / "solutions" / "transformer"
    return {
        f"transformer/{name}.py": (folder / f"{name}.py").read_text("utf-8")
        for name in sheet.modules_beside
    }


def told(folder: Path, *use: str) -> str:
    """Return why a sheet is refused."""
    with pytest.raises(SheetError) as refused:
        composed(folder, "title: X\nuse:\n" + "".join(f"  - {each}\n" for each in use))
    text = str(refused.value)
    assert "\n" not in text
    return text.removeprefix(f"{folder}/")


# --- what is refused ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        (["softmax", "sofmax"], "4: no exercise is named 'sofmax'"),
        (
            ["causal-mask", "masked-softmax"],
            "4: masked-softmax needs softmax, which is not in the sheet",
        ),
        (
            ["encoder"],
            "3: encoder needs layer-norm and encoder-layer, which are not in the sheet",
        ),
        (
            ["masked-softmax", "softmax"],
            "3: masked-softmax needs softmax: put it before",
        ),
        (
            ["softmax", "layer-norm", "gelu", "feed-forward", "encoder-layer"],
            "7: encoder-layer needs multi-head-attention, which is not in the sheet",
        ),
        (
            ["softmax", "gelu", "causal-mask"],
            "5: causal-mask: the exercises of 04_attention must stand together",
        ),
        (["softmax", "softmax"], "3: softmax is there twice"),
        (["softmax: 0"], "3: softmax: points must be whole numbers from 1"),
        (["softmax: [1, 1]"], "3: softmax has 1 graded cell, and points for 2"),
        (["{}"], "2: use: {} is no id, and no id with its points"),
    ],
)
def test_what_cannot_be_a_sheet_is_refused_in_a_line(tmp_path, use, reason) -> None:
    assert told(tmp_path, *use) == f"sheets/mix.yml:{reason}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("title: X", "1: 'use' is missing"),
        ("title: X\nuse: [gelu]\npoint: 3", "1: unknown key 'point'; there are: "),
        ("title: [", "1: is no YAML: "),
        ("- gelu", "1: expected the keys title and use"),
        ("title: 3\nuse: [gelu]", "1: title and text must be texts"),
    ],
)
def test_a_file_that_says_something_else_is_refused(tmp_path, text, reason) -> None:
    with pytest.raises(SheetError, match=re.escape(f"mix.yml:{reason}")):
        composed(tmp_path, text)


def test_a_sheet_is_not_named_as_a_chapter_nor_beyond_what_names_may_be(
    tmp_path,
) -> None:
    (tmp_path / "solutions").symlink_to(ROOT / "solutions")
    (tmp_path / "sheets").mkdir()
    for name, reason in (
        ("04_attention", "is named as a chapter; choose another name"),
        ("Week-3", "its name must be a-z and 0-9, joined by underscores"),
    ):
        (tmp_path / "sheets" / f"{name}.yml").write_text("title: X\nuse: [gelu]")
        with pytest.raises(SheetError, match=rf"{name}\.yml:1: {reason}"):
            generator.read(name, tmp_path)
    with pytest.raises(generator.Missing, match="'week_4'; there are: 01_embeddings"):
        generator.read("week_4", tmp_path)


# --- what it is made of ---------------------------------------------------------------


def answers(exercises: list[str]) -> tuple[set[str], set[str]]:
    """Return the lines and the names of the reference's answers."""
    wanted = [
        e for source in sources() for e in source.exercises if e.name in exercises
    ]
    lines, names = set(), set()
    for cell in (cell for e in wanted for cell in (*e.answers, *e.graded)):
        inside = False
        for line in map(str.strip, cell.text.splitlines()):
            if line.startswith(("### BEGIN", "### END")):
                inside = line.startswith("### BEGIN")
            elif inside and len(line) >= 12 and not TELLS_NOTHING.fullmatch(line):
                lines.add(line)
    names.update(name for e in wanted for name in e.defines)
    return lines, names


@pytest.mark.parametrize("name", ["mix", *SHORT])
def test_nothing_of_the_answers_asked_for_is_handed_out(tmp_path, name) -> None:
    sheet = short(name) if name in SHORT else composed(tmp_path, MIX)
    asked = [each.name for each in sheet.exercises]
    lines, names = answers(asked)
    notebook = notebooks.release_notebook(notebooks.source_notebook(sheet))
    shown = {line.strip() for c in notebook.cells for line in c.source.splitlines()}
    assert lines and not lines & shown
    for text in parts_of(sheet).values():
        defined = {getattr(node, "name", "") for node in ast.parse(text).body}
        assert not defined & names


@pytest.mark.parametrize("name", ["mix", *SHORT])
def test_every_name_that_a_sheet_s_cells_use_is_defined_before(tmp_path, name) -> None:
    sheet = short(name) if name in SHORT else composed(tmp_path, MIX)
    known = set(dir(builtins))
    for cell in sheet.cells:
        if cell.node.cell_type == "code":
            text = without_markers(cell.text)
            assert reads(text) <= known, text
            known |= binds(text)


def test_a_mix_brings_what_its_exercises_need_and_no_more(tmp_path) -> None:
    sheet = composed(tmp_path, MIX)
    points = {each.name: each.points for each in sheet.exercises}
    assert list(points) == list(sheets.read("mix", tmp_path).use)
    assert points["softmax"] == 4 and points["causal-mask"] == 1
    text = "\n".join(cell.text for cell in sheet.cells)
    assert text.startswith("# A mix\n\nFor the third week.")
    assert "masked_softmax_of_source_1" in text  # is given within an exercise
    assert "from transformer." not in text and not sheet.modules_beside
    assert "additive" not in text.lower()


def test_a_sheet_gets_the_parts_of_chapters_that_it_does_not_ask_for() -> None:
    assert short("short_05_multi_head_attention").modules_beside == {"attention"}
    beside = short("short_08_vision_transformer").modules_beside
    assert "encoder" in beside and "vision_transformer" not in beside


def test_a_sheet_of_written_answers_alone_counts_them_too(tmp_path) -> None:
    sheet = composed(tmp_path, "title: X\nuse: [explain-scaling]")
    texts = [cell.text for cell in sheet.cells]
    call = texts.index("check.sheet('X', {'explain-scaling': [4]})")
    assert any(" as check\n" in text for text in texts[:call])


def test_a_figure_that_uses_another_exercise_is_left_out(tmp_path) -> None:
    alone = composed(tmp_path, "title: X\nuse: [padding-mask]")
    both = composed(tmp_path, "title: X\nuse: [causal-mask, padding-mask]")
    combines = "causal_mask(5) & padding_mask"
    assert not any(combines in cell.text for cell in alone.cells)
    assert any(combines in cell.text for cell in both.cells)


@pytest.mark.parametrize("name", SHORT)
def test_a_sheet_s_notebook_tells_the_checks_what_it_asks_for(
    name, monkeypatch
) -> None:
    monkeypatch.setattr(progress, "_sheet", None)
    sheet = short(name)
    place = next(n for n, c in enumerate(sheet.cells) if "check.sheet(" in c.text)
    imports = [line for c in sheet.cells[:place] for line in c.text.splitlines()]
    (line,) = (each for each in imports if each.endswith(" as check"))
    exec(f"{line}\n{sheet.cells[place].text}", {})
    assert progress._sheet.title == sheet.title
    told = {
        each.name: (each.points, len(each.cells)) for each in progress._sheet.exercises
    }
    checks = {e.name: (e.points, len(e.graded) - e.by_hand) for e in sheet.exercises}
    assert told == checks


def test_the_sheet_s_own_exercises_and_points_are_counted(monkeypatch, capsys) -> None:
    monkeypatch.setattr(progress, "_sheet", None)
    points = {"softmax": [4], "causal-mask": [1], "gelu": [1]}
    check.sheet("A week", points)
    check.progress()
    said = capsys.readouterr().out
    assert "A week: 0 of 3 exercises · 0 of 6 points" in said
    numbers = [line.split()[0] for line in said.splitlines()[1:]]
    assert numbers == [exercises()[name].number for name in points]


# --- how it is graded -----------------------------------------------------------------


@pytest.mark.sandbox
@pytest.mark.skipif(bool(problem()), reason=problem() or "works")
def test_right_untouched_and_wrong_answers_to_a_mix(tmp_path) -> None:
    sheet = composed(tmp_path, MIX)
    solved = notebooks.source_notebook(sheet)
    untouched = notebooks.release_notebook(solved)
    texts = notebooks.write(untouched), notebooks.write(solved)
    paper = Paper.of_notebooks(sheet.chapter, *texts, parts_of(sheet))
    wrong = nbformat.reads(texts[1], 4)
    (cell,) = (each for each in wrong.cells if each.id == "softmax")
    cell.source = cell.source.replace("dim=-1", "dim=-2")
    done = []
    with Grader(imports=()) as grader:
        for notebook in (solved, untouched, wrong):
            data = nbformat.writes(notebook).encode()
            done.append(grader.grade(Job("x", sheet.chapter, data, paper)))
    assert [each.status for each in done] == ["graded"] * 3
    assert [each.limited for each in done] == [[]] * 3
    assert [each.score for each in done] == [17, 0, 17 - 4]
    assert done[0].points == 21  # 4 of them by hand
    verdicts = {each.grade_id: each for each in done[2].verdicts}
    assert SLIP in json.dumps(vars(verdicts["test-softmax"]))
    # right in itself, and judged with a right softmax
    assert verdicts["test-masked-softmax"].given == ["softmax"]


# --- the short way --------------------------------------------------------------------


def test_the_short_way_is_all_that_the_models_are_made_of(tmp_path, capsys) -> None:
    """Its answers alone are assembled: nothing of the reference is beside them."""
    for name in SHORT:
        text = notebooks.write(notebooks.source_notebook(short(name)))
        (tmp_path / f"{name}.ipynb").write_text(text)
    assert assemble.run([tmp_path], tmp_path, check=False) == 0
    parts = models.load_parts(tmp_path)
    assert parts.failures == {}
    sizes = {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 8}
    translator = models.TranslatorConfig(20, max_length=9, **sizes)
    vision = models.VisionConfig(4, 2, 1, 3, **sizes)
    language = models.LanguageModelConfig(20, kv_heads=1, max_length=9, **sizes)
    for config in (translator, vision, language):
        built = models.parameters_of(config, parts)
        assert built == models.parameters_of(config)
    for name in ("shift_right", "sequence_loss", "greedy_decode", "attend_cached"):
        assert callable(getattr(parts, name))


def test_the_short_way_takes_12_to_16_hours() -> None:
    exercises = [each for name in SHORT for each in short(name).exercises]
    assert 12 * 60 <= sum(each.minutes for each in exercises) <= 16 * 60


def test_notebooks_mark_the_short_way() -> None:
    marked = set()
    for chapter in generator.chapters():
        notebook = nbformat.read(ROOT / f"exercises/{chapter}/{chapter}.ipynb", 4)
        facts = ""
        for cell in notebook.cells:
            if cell.cell_type == "markdown" and "\n## Exercise " in cell.source:
                facts = cell.source
            elif cell.metadata.get("nbgrader", {}).get("solution"):
                is_marked = f" · {notebooks.SHORT_WAY}*" in facts
                marked |= {cell.metadata.nbgrader.grade_id} if is_marked else set()
    assert marked == sheets.short_way()


# --- what comes in --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["short_04_attention", "short_10_vision"])
def test_a_sheet_that_was_handed_in_is_known_from_its_chapter(name) -> None:
    notebook = notebooks.release_notebook(notebooks.source_notebook(short(name)))
    for course in (notebook.metadata.course, {}):
        notebook.metadata["course"] = course
        data = nbformat.writes(notebook).encode()
        file = File("notebook.ipynb", len(data), lambda: b"")
        assert chapter_of(file, data) == name
    assert by_name(f"{name}-2.ipynb") == name
    assert by_name(f"{name.removeprefix('short_')} (1).ipynb") == name[6:]
