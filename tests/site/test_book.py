"""Building again: only what has changed is made; the site is as a new one."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tools.site import book, lighten

ROOT = Path(__file__).resolve().parents[2]
PAGE = """# A page

A sentence.

```{code-cell} ipython3
:tags: [hide-input]
1 + 1
```
"""


@pytest.fixture
def course(tmp_path: Path, monkeypatch):
    """A course of one page; `run` holds what was run each time."""
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: page\n")
    (tmp_path / "page.md").write_text(PAGE)
    monkeypatch.setattr(book, "ROOT", tmp_path)
    monkeypatch.setattr(book, "STAGE", tmp_path)
    cache = tmp_path / "_build" / ".jupyter_cache"

    def run_new(pages: list[str]) -> set[str]:
        cache.mkdir(parents=True, exist_ok=True)
        run_new.ran += [Path(page).name for page in pages]
        return {page for page in pages if "1 / 0" in Path(page).read_text()}

    run_new.ran = []
    monkeypatch.setattr(book, "run_new", run_new)

    def edit(old: str, new: str) -> list[str]:
        (tmp_path / "page.md").write_text(PAGE.replace(old, new))
        run_new.ran = []
        book.run_pages()
        return run_new.ran

    return edit


def test_a_page_is_run_when_its_code_is_new_and_not_when_its_text_is(course):
    assert course("", "") == ["page.md"]
    assert course("A sentence.", "Another one.") == []
    assert course("1 + 1", "1 + 2") == ["page.md"]
    assert course("hide-input", "remove-input") == ["page.md"]


def test_a_page_that_failed_is_run_until_it_does_not(course):
    assert course("1 + 1", "1 / 0") == ["page.md"]
    assert course("1 + 1", "1 / 0") == ["page.md"]
    assert course("1 + 1", "1 / 1") == ["page.md"]
    assert course("1 + 1", "1 / 1") == []


def test_all_pages_are_run_again_when_the_cache_is_gone(course, tmp_path):
    course("", "")
    (tmp_path / "_build" / ".jupyter_cache" / "code.json").unlink()
    assert course("", "") == ["page.md"]


ALWAYS = "---\nmystnb:\n  execution_mode: force\n---\n"


def test_a_page_that_jupyter_book_always_runs_is_not_run_here(course):
    assert course("# A page", f"{ALWAYS}# A page") == []


def test_a_new_heading_has_pages_read_again_that_look_at_others(tmp_path, monkeypatch):
    monkeypatch.setattr(book, "ROOT", tmp_path)
    monkeypatch.setattr(book, "STAGE", tmp_path)
    read = tmp_path / "_build" / ".doctrees" / "book"
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "looks.md").write_text(ALWAYS)

    def left(text: str) -> set[str]:
        (tmp_path / "book" / "page.md").write_text(text)
        book.forget_what_is_stale()
        return {path.stem for path in read.glob("*")}

    left("# One")
    read.mkdir(parents=True)
    for name in ("looks", "page"):
        (read / f"{name}.doctree").touch()
    assert left("# One\n\nMore text.") == {"looks", "page"}
    assert left("# Two\n\nMore text.") == {"page"}


def test_what_reads_notebooks_starts_without_the_grammar_of_addresses():
    program = (
        "import sys; sys.path.insert(0, '.'); from tools.site import quick_start\n"
        "quick_start.prepare(); import nbformat, jsonschema\n"
        "assert 'lark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


# ----------------------------------------------------------------------
# Light pages
# ----------------------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path):
    """Write a site of one page, with a stamp and data; give its folder."""

    def write(stamp: str = "", data: str = "", body: str = "") -> Path:
        static = tmp_path / "site" / "_static"
        static.mkdir(parents=True, exist_ok=True)
        for name in (*lighten.THEME_SCRIPTS, "documentation_options.js"):
            (static / name).write_text("")
        (static / "a.css").write_text("p { color: red } .kind { color: blue }")
        (static / "data").mkdir(exist_ok=True)
        (static / "data" / "a.js").write_text(f'set("{data}")')
        (tmp_path / "site" / "page.html").write_text(
            '<html><head><link rel="stylesheet" href="_static/a.css">'
            '<script src="_static/data/a.js"></script></head><body>'
            f'<p data-verified="page">{stamp}</p>{body}</body></html>'
        )
        lighten.lighten(tmp_path / "site", tmp_path / "cache")
        return tmp_path / "site"

    return write


def test_a_commit_makes_no_page_light_again(site, monkeypatch):
    site("At commit 1.")
    monkeypatch.setattr(lighten, "light_page", lambda *_: "made again")
    page = (site("At commit 2.") / "page.html").read_text()
    assert page.count('<p data-verified="page">At commit 2.</p>') == 1


def test_a_page_knows_the_new_size_of_a_picture_that_has_its_old_name(site, tmp_path):
    pictures = tmp_path / "site" / "_images"
    pictures.mkdir(parents=True)
    for width in (30, 60):
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20"/>'
        (pictures / "a.svg").write_text(svg)
        page = (site(body='<img src="_images/a.svg">') / "page.html").read_text()
        assert f'width="{width}" height="20"' in page


def test_a_page_with_too_much_below_its_first_screen_is_refused(site, tmp_path):
    pictures = tmp_path / "site" / "_images"
    pictures.mkdir(parents=True)
    picture = Image.effect_noise((600, 600), 100)
    picture.save(pictures / "a.png")
    assert (pictures / "a.png").stat().st_size > 300_000
    with pytest.raises(SystemExit, match="too heavy"):
        site(body='<img src="_images/a.png">')
    picture.convert("RGB").resize((300, 300)).save(pictures / "a.jpeg")
    page = (site(body='<img src="_images/a.jpeg">') / "page.html").read_text()
    assert 'width="300" height="300" loading="lazy"' in page


def test_the_picture_that_opens_a_page_comes_first(site, tmp_path):
    pictures = tmp_path / "site" / "_images"
    pictures.mkdir(parents=True)
    for name in "abc":
        svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'
        (pictures / f"{name}.svg").write_text(svg)
    body = (
        '<article><h1>Page</h1><noscript><img src="_images/a.svg"></noscript>'
        '<img src="_images/b.svg"><h2>Part</h2><img src="_images/c.svg"></article>'
    )
    page = (site(body=body) / "page.html").read_text()
    first = {
        name: "fetchpriority" in tag and "lazy" not in tag
        for name, tag in re.findall(r'<img src="_images/(.).svg"([^>]*)>', page)
    }
    assert first == {"a": False, "b": True, "c": False}


def test_a_word_of_a_text_keeps_no_rule(site):
    sheet = site(data="kind") / "_static" / "site.css"
    assert sheet.read_text() == "p{color:red}"


@pytest.mark.parametrize(
    ("code", "pieces"),
    [
        ("torch.nn.functional.softmax", "torch. nn. functional. softmax"),
        ("nn.TransformerEncoderLayer", "nn. TransformerEncoderLayer"),
        ("NotImplementedError", "Not Implemented Error"),
        ("nrefs:1|case:mixed|version:2.6.0", "nrefs:1| case:mixed| version:2.6.0"),
    ],
)
def test_long_code_breaks_at_its_joints(code, pieces) -> None:
    assert lighten.with_joints(code).split("<wbr>") == pieces.split()


def test_a_long_line_of_code_knows_how_far_it_is_indented() -> None:
    long = "    " + "<b>scores</b> @ " * 5 + "1"
    text = '"""A text that begins here, and is long enough for two lines of a phone'
    lines = f'x = 1\n{long}\n<span class="sd">{text}\nand ends here."""</span>'
    short, folded, *text = lighten.with_folds(lines).split("\n")
    assert short == "x = 1"
    assert folded == f'<span class="fold" style="--in: 4">{long}</span>'
    assert "fold" not in "".join(text)  # an element ends in the line where it began
