"""A publisher's wheels of PyTorch in the page: read by checksum, loaded, and used.

The wheel here only says that it is there: no build of PyTorch for a browser was tried.
"""

import hashlib
import shutil
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests import browsers
from tests.site.test_exercises_in_page import LONG, Place, place_of
from tools.browser import served
from tools.site import on_page

ROOT = Path(__file__).resolve().parents[2]
CHAPTER, WHEEL = "04_attention", "torch-2.13.0-py3-none-any.whl"
STAND_IN = """import sys
from autograder.on_page import absent

absent.stand_in("torch")
torch = absent.Absent("torch")
torch.__path__, torch.__spec__ = [], __spec__
torch.greeting = lambda: "said by the wheel"
sys.modules["torch"] = torch
"""
PLACE = """<div><pre>{stub}</pre></div>
<div class="on-page" data-chapter="{chapter}" data-exercise="{name}"
  data-number="{number}" data-version="{version}" data-megabytes="{size}" {torch}></div>
"""
ALL_ONE = """def attention_cost(length, d_model):
    return dict.fromkeys(["projections", "scores", "mixing", "quadratic_share"], 1)
"""


def forget() -> None:
    """Read the folder anew."""
    for each in (on_page.added, on_page.pages, on_page.exercises):
        each.cache_clear()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of a publisher's own, named to whatever builds the site."""
    place = tmp_path_factory.mktemp("pyodide")
    with zipfile.ZipFile(place / WHEEL, "w") as wheel:
        wheel.writestr("torch/__init__.py", STAND_IN)
    digest = hashlib.sha256((place / WHEEL).read_bytes()).hexdigest()
    (place / "SHA256SUMS").write_text(f"{digest}  {WHEEL}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYODIDE", str(place))
        forget()
        yield place
    forget()


@pytest.fixture(scope="module")
def site(folder, tmp_path_factory):
    """A page with two exercises of chapter 4, one of which needs PyTorch."""
    place = tmp_path_factory.mktemp("site")
    static = place / "_static"
    for name in ("on_page", "live"):
        shutil.copytree(ROOT / "book" / "_static" / name, static / name)
    made = on_page.scripts()
    for path, content in made.items():
        (static / path).parent.mkdir(parents=True, exist_ok=True)
        (static / path).write_bytes(content)
    told = on_page.about(made)[CHAPTER]
    parts = [
        PLACE.format(
            stub=each["stub"],
            chapter=CHAPTER,
            version=told["version"],
            size="1",
            torch="data-torch" * each["torch"],
            **{key: each[key] for key in ("name", "number")},
        )
        for each in on_page.exercises(CHAPTER)
        if each["name"] in ("softmax", "attention-cost")
    ]
    (place / "page.html").write_text(
        '<!doctype html><meta charset="utf-8"><p class="on-page-sum"><span></span></p>'
        f'{"".join(parts)}<script defer src="_static/on_page/exercises.js"></script>'
    )
    return place


def test_a_wheel_without_its_checksum_is_refused(folder, tmp_path, monkeypatch) -> None:
    shutil.copytree(folder, tmp_path / "other")
    monkeypatch.setenv("PYODIDE", str(tmp_path / "other"))
    forget()
    with (tmp_path / "other" / WHEEL).open("ab") as wheel:
        wheel.write(b" ")
    with pytest.raises(ValueError, match="not what SHA256SUMS says"):
        on_page.added()
    (tmp_path / "other" / "SHA256SUMS").unlink()
    with pytest.raises(ValueError, match="has no SHA256SUMS"):
        on_page.added()
    forget()


def test_with_it_whole_chapters_run(folder) -> None:
    forget()
    names = {
        each["name"] for page in on_page.pages() for each in on_page.exercises(page)
    }
    assert len(names) > 40 and "softmax" in names
    assert "rms-norm" not in names  # its notebook imports parts of other chapters
    assert {*on_page.WITHOUT_TORCH} <= names


@pytest.mark.browser
def test_a_page_loads_the_wheel_and_checks_with_it(site, visit) -> None:
    with served(site) as address:
        visitor = visit(address, browsers.DESK)
        shown = Place(visitor, "softmax", "page.html")
        assert "has not been tried" in shown.place.inner_text()
        shown.open()
        told = shown.checked("import torch\nraise ValueError(torch.greeting())\n")
        assert "said by the wheel" in told
        shown.place = shown.page.locator(place_of("attention-cost"))
        shown.said = shown.place.locator(".on-page-said")
        shown.check = shown.place.get_by_role("button", name="Check")
        shown.place.locator(".on-page-main").click()
        told = shown.checked(ALL_ONE)  # in the Python that has the wheel
        assert " attention_cost · not yet right" in told
        assert shown.visitor.complaints == []


@pytest.mark.browser
def test_a_damaged_wheel_is_said(site, visit) -> None:
    wheel = site / "_static" / "on_page" / "wheels" / WHEEL
    before = wheel.read_bytes()
    wheel.write_bytes(before + b" ")
    with served(site) as address:
        shown = Place(visit(address), "softmax", "page.html")
        shown.place.locator(".on-page-main").click()
        expect(shown.said).to_contain_text("or is damaged", timeout=LONG)
    wheel.write_bytes(before)
