"""A student's own transformer/, taken out of their notebooks."""

import ast
from pathlib import Path

import nbformat
import pytest

from autograder import generator
from autograder.generator import ROOT, notebooks
from autograder.generator.modules import has_module
from tests import chapters
from workbench import assemble

CHAPTER = "04_attention"


def put(notebook: nbformat.NotebookNode, path: Path) -> Path:
    path.write_text(notebooks.write(notebook), encoding="utf-8")
    return path


def solved(chapter: str, folder: Path) -> Path:
    return put(generator.source_notebook(chapter), folder / f"{chapter}.ipynb")


def code(path: Path) -> dict[str, str]:
    """The definitions of a module without their docstrings, by name."""
    found = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        for inner in ast.walk(node):
            if isinstance(inner, (ast.FunctionDef, ast.ClassDef)):
                inner.body = [
                    each
                    for each in inner.body
                    if not (
                        isinstance(each, ast.Expr)
                        and isinstance(each.value, ast.Constant)
                    )
                ]
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = ast.dump(node)
    return found


def test_solved_notebooks_become_the_reference_modules(tmp_path, capsys) -> None:
    for chapter in chapters.CHAPTERS:
        solved(chapter, tmp_path)
    out = tmp_path / "out"
    assert assemble.run([tmp_path], out, check=False) == 0
    for chapter in chapters.CHAPTERS:
        if not has_module(chapters.source(chapter)):
            continue
        module = f"{chapters.source(chapter).module}.py"
        reference = ROOT / "solutions" / "transformer" / module
        assert code(out / "transformer" / module) == code(reference)
    assert "not written" not in capsys.readouterr().out


def test_what_is_written_is_checked_and_what_is_not_is_named(tmp_path, capsys) -> None:
    """One right answer, one wrong, one that is no Python, the others not written."""
    untouched = generator.release_notebook(CHAPTER)
    right = {cell.id: cell.source for cell in generator.source_notebook(CHAPTER).cells}
    for cell in untouched.cells:
        if cell.id == "softmax":
            cell.source = right["softmax"] + "\nprint('scratch')"
        if cell.id == "causal-mask":
            cell.source = right["causal-mask"].replace(".tril()", ".triu()")
        if cell.id == "padding-mask":
            cell.source = "def padding_mask(lengths, max_length)\n    return 1"
    path = put(untouched, tmp_path / "mine.ipynb")
    out = tmp_path / "out"
    assert assemble.run([path], out) == 1
    lines = {line.split()[1]: line for line in capsys.readouterr().out.splitlines()[:9]}
    assert lines["softmax"].split()[2:] == ["yours"]
    assert "fails its check" in lines["causal-mask"]
    assert "upper triangle" in lines["causal-mask"]
    assert "not Python" in lines["padding-mask"] and "line 1" in lines["padding-mask"]
    assert "not written" in lines["project-qkv"]
    text = (out / "transformer" / "attention.py").read_text(encoding="utf-8")
    assert "import torch" in text and "scratch" not in text and "triu" in text

    assert assemble.run([path], out, fill=True) == 0
    table = capsys.readouterr().out
    assert "padding-mask                  from the reference  not Python" in table
    reference = code(ROOT / "solutions" / "transformer" / "attention.py")
    assert code(out / "transformer" / "attention.py") == reference


def test_what_a_later_hand_out_brings_fills_an_earlier_chapter(
    tmp_path, monkeypatch
) -> None:
    """Students without solutions/ get the reference of chapter 4 with chapter 5."""
    monkeypatch.setattr(assemble.importlib.util, "find_spec", lambda name: None)
    for chapter in (CHAPTER, "05_multi_head_attention"):
        generator.write_handout(chapter, tmp_path / "mine" / chapter)
    out = tmp_path / "out"
    assert assemble.run([tmp_path / "mine"], out, fill=True, check=False) == 1
    reference = code(ROOT / "solutions" / "transformer" / "attention.py")
    assert code(out / "transformer" / "attention.py") == reference


def test_bad_input_is_named(tmp_path) -> None:
    with pytest.raises(assemble.BadInput, match="no such file"):
        assemble.run([tmp_path / "missing"], tmp_path)
    with pytest.raises(assemble.BadInput, match="no exercise notebook"):
        assemble.run([tmp_path], tmp_path)
    broken = tmp_path / "broken.ipynb"
    broken.write_text("{", encoding="utf-8")
    with pytest.raises(assemble.BadInput, match=r"broken\.ipynb: cannot be read"):
        assemble.run([broken], tmp_path)
    other = put(nbformat.v4.new_notebook(), tmp_path / "other.ipynb")
    with pytest.raises(assemble.BadInput, match="not an exercise notebook"):
        assemble.run([other], tmp_path)
    broken.unlink()
    solved(CHAPTER, tmp_path)
    (tmp_path / "copy").mkdir()
    solved(CHAPTER, tmp_path / "copy")
    with pytest.raises(assemble.BadInput, match="the same chapter"):
        assemble.run([tmp_path], tmp_path / "out")
