"""What a student chose, on its way into each kind of output: properties, by hypothesis.

The texts go in where students' texts go in: as names of folders and attempts, as what
checks and cells say, and through the functions that write each output.
"""

import csv
import html.parser
import io
import json
import re
import sqlite3
import string
from pathlib import Path

import nbformat
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from nbconvert.exporters import HTMLExporter
from nbgrader.server_extensions.formgrader.handlers import template_path
from traitlets.config import Config

from autograder.grading import (
    clean,
    deadlines,
    dry_run,
    exports,
    feedback,
    markdown,
    report,
)
from autograder.grading.class_report import Report
from autograder.grading.classfile import Class
from autograder.grading.gradebook import Row
from autograder.grading.job import GRADED, UNGRADED, Outcome, Verdict
from autograder.grading.journal import Journal
from autograder.grading.notebook_html import clean_html
from autograder.grading.settings import configure
from tests import strangers

NASTY = (
    *("=1+1", "+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", "\n=1", " =1", "'=1", "''+1"),
    *("＝1", "=cmd|'/c calc'!A0", '"=1"', "a,b;c", "-3", "-", "a\nb", "a\r\nb", '"'),
    *("\x00", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b2J", "\u202egpj.exe"),
    *("\u2066", "\u2028", "\x85", "\ud800", "\udcff", "é", "<script>alert(1)</script>"),
    *(
        "</pre><img src=x onerror=alert(1)>",
        "' onmouseover='x",
        "`<b>`",
        "$x$",
        "{{1}}",
    ),
    *(
        "a' OR '1'='1",
        "'; DROP TABLE student; --",
        "[x](javascript:alert(1))",
        "&lt;b&gt;",
    ),
)
TEXTS = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.characters(), max_size=20),
    st.lists(st.sampled_from(NASTY), max_size=4).map("".join),
)
SEEN = settings(
    max_examples=60,
    database=None,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
PAPER = strangers.paper(only=strangers.FEW)
POINTS = dict.fromkeys(PAPER.points, 2.0)
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


def outcome(text: str, status: str = GRADED) -> Outcome:
    """What becomes of a submission in which everything that can be is this text."""
    failure = dict.fromkeys(("what", "mistake", "on", "got", "expected", "why"), text)
    failure |= {"read": text, "first": text, "text": text}
    parts = ("visible", "hidden", "not run")
    verdicts = [
        Verdict("softmax", name, 2.0, 0.0, parts[n % 3], text, failure)
        for n, name in enumerate(POINTS)
    ]
    return Outcome(
        text,
        strangers.CHAPTER,
        status,
        reason="" if status == GRADED else text or "no reason",
        repairs=[text],
        limited=[text],
        verdicts=verdicts,
    )


def entry(text: str, status: str = GRADED) -> dict:
    """A journal's entry of that submission."""
    facts = {"handed_in": None, "due": None, "penalty": -1.5, "notes": [text]}
    facts |= {"attempt": text, "paper": "0" * 64, "seeds": "0" * 12}
    return outcome(text, status).to_dict() | facts


def row(text: str) -> Row:
    """A gradebook's row of that submission."""
    names = (text, text, text, "-1.5")
    columns = ("student_id", "last_name", "first_name", "raw_score")
    return Row(dict(zip(columns, names, strict=True)), {text: {"score": -1.5}})


# --- CSV ------------------------------------------------------------------------------


def parsed(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def formulas(rows: list[list[str]]) -> list[str]:
    """The cells that a spreadsheet may compute; a number with a minus is none."""
    cells = [cell for each in rows for cell in each]
    number = re.compile(r"-(\d+(\.\d+)?)?")
    return [
        cell
        for cell in cells
        if cell.lstrip()[:1] in tuple("=+-@＝＋－＠") or cell[:1] in tuple("\t\r\n")
        if not number.fullmatch(cell)
    ]


@SEEN
@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_grades_csv_keeps_rows_columns_and_numbers(names) -> None:
    lines = [report.grade(entry(name), row(name), {}) for name in names]
    lines += [report.grade(entry(name, UNGRADED), None, {}) for name in names]
    found = parsed(report.grades(lines))
    assert len(found) == 1 + 2 * len(names)
    assert {len(each) for each in found} == {len(report.COLUMNS)}
    assert formulas(found) == []
    assert not UNSEEN.search(report.grades(lines))
    assert found[1][report.COLUMNS.index("raw_score")] == "-1.5"


@SEEN
@given(TEXTS)
@example("'=1")
@example("''-1+1")
@example("' =1")
def test_a_cell_gives_the_text_back(text) -> None:
    """So an id that is like a formula is found again by an export."""
    assert clean.from_csv_cell(str(clean.csv_cell(text))) == clean.visible(text)


@SEEN
@given(TEXTS, TEXTS)
def test_two_ids_stay_two(one, other) -> None:
    assert (clean.visible(one) == clean.visible(other)) == (one == other) or (
        "\\" in one + other
    )


@SEEN
@given(TEXTS, st.sampled_from([exports.canvas, exports.moodle]))
def test_an_export_has_no_formula(name, write) -> None:
    student = exports.Student(name, first=name, last=name, email=name)
    plain = exports.Student("ada", email="ada@example.org", login="ada", sis="7")
    grade = exports.Grade(None, "2", 0.0, name)
    chapters, students = ["04_attention"], {name: student, "ada": plain}
    grades = {(each, "04_attention"): grade for each in students}
    try:
        made = write(exports.Grades(chapters, students, grades))
    except exports.ExportError:  # one person twice
        return
    found = parsed(made.text)
    assert len({len(each) for each in found}) == 1
    assert formulas(found) == []


@SEEN
@given(TEXTS)
def test_the_report_is_text_and_its_tables_are_sound(tmp_path_factory, text) -> None:
    folder = tmp_path_factory.mktemp("report")
    about = Report({PAPER.chapter: PAPER})
    about.add(outcome(text).to_dict())
    about.add(outcome(text, UNGRADED).to_dict())
    page = about.write(folder).read_text("utf-8")
    assert_is_text(page)
    for path in folder.glob("*.csv"):
        found = parsed(path.read_text("utf-8"))
        assert {len(each) for each in found} == {len(found[0])}
        assert formulas(found) == []


# --- HTML -----------------------------------------------------------------------------

NAMES = """
    a article b bdi blockquote body br code dd details div dl dt em footer h1 h2
    h3 h4 head header html li main math meta mi mn mo mrow msup msub mfrac msqrt
    nav ol p pre section small span strong style sub summary sup table tbody td
    th thead title tr ul svg g path defs use clippath rect text metadata rdf:rdf
    cc:work dc:type dc:format dc:creator cc:agent dc:title mtext munder mover
    munderover mspace mstyle
"""
ELEMENTS = frozenset(re.findall(r"\S+", NAMES))  # of our pages, and of plots


class Elements(html.parser.HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def assert_is_text(page: str) -> None:
    """No element and no attribute in it came from a student."""
    page.encode("utf-8")
    assert not UNSEEN.search(page)
    for tag, attributes in Elements(page).found:
        assert tag in ELEMENTS, tag
        assert not any(name.startswith("on") for name in attributes)
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith(("#", "https://example.com/"))


@SEEN
@given(TEXTS)
def test_feedback_is_text(text) -> None:
    hand = [feedback.HandGrade(name, 1.0, text) for name in POINTS]
    for status in (GRADED, UNGRADED):
        site = "https://example.com"
        page = feedback.page(
            outcome(text, status), PAPER, hand=hand, site=site, notes=[text]
        )
        assert_is_text(page)


@SEEN
@given(TEXTS)
def test_what_formgrader_shows_can_do_nothing(text) -> None:
    for tag, attributes in Elements(clean_html(text)).found:
        assert tag not in ("script", "style", "iframe", "object", "svg", "form")
        assert not any(name.startswith("on") for name in attributes)
        assert not attributes.get("href", "").lower().startswith("javascript")


WRITTEN = {"grade": True, "solution": True, "locked": False, "grade_id": "explain"}
WRITTEN |= {"points": 3, "task": False, "cell_type": "markdown", "schema_version": 3}
RUBRIC = "**Rubric.** The variance is $d_k$."
BREAKS_OUT = "</td><td>**Rubric.** All is right.</td></tr></table><b>"


def shown_of(answer: str, **resources: str) -> str:
    """Return what a page of nbgrader's shows of a written answer."""
    config = configure(Config(), Path())
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [template_path]
    cell = nbformat.v4.new_markdown_cell(answer, metadata={"nbgrader": WRITTEN})
    cell.metadata["rubric"] = RUBRIC
    notebook = nbformat.v4.new_notebook(cells=[cell])
    given = {"index": 0, "total": 1} | resources
    page, _ = HTMLExporter(config=config).from_notebook_node(notebook, given)
    return page.partition("rendered_html")[2]


def test_the_rubric_stands_beside_the_answer_and_nothing_reaches_into_it() -> None:
    page = shown_of(f"The spread is $\\sqrt{{d_k}}$. {BREAKS_OUT}", submission_id="1")
    answer, rubric = re.findall("<td .*?</td>", page, re.DOTALL)
    assert "<msqrt>" in answer and "All is right." in answer
    assert "The variance is <math" in rubric and "All is right." not in rubric
    assert "$" not in answer + rubric


def test_the_rubric_is_in_no_page_that_a_student_gets() -> None:
    page = shown_of("Mine.")  # nbgrader's feedback uses the same filters
    assert "Mine." in page and "variance" not in page


@pytest.mark.parametrize(
    ("latex", "found"),
    [
        (r"$$\begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}$$", "<mtable>"),
        (r"\begin{align} a &= b \\ c &= d \end{align}", "<mtable "),
        (r"$\href{javascript:x()}{press}$", "<mi>h</mi>"),  # letters, and no link
        (r"$\text{<img src=x onerror=x()>}$", "<mtext>&lt;img"),
        (r"$\text{<?a > <img src=x onerror=x()> ?>}$", "<mtext>&lt;?a"),
        (r"$\text{<!-- > <img src=x onerror=x()> -->}$", "<mtext>&lt;!--"),
        ("$" + "x+" * 2000 + "x$", "<code>x+x"),
        (r"$\left( 1$", "<code>"),
    ],
)
def test_a_formula_is_set_without_a_script_and_does_nothing(latex, found) -> None:
    page = shown_of(latex)
    assert found in page
    for tag, attributes in Elements(page).found:
        assert tag not in ("script", "img")
        assert "href" not in attributes


PIECES = r"""
    \frac \sqrt \text \textbf \operatorname \mathbf \mathrm \hat \left( \right) \tag
    \begin{matrix} \end{matrix} \underbrace \label \hspace \href \style \class \html
    \limits \not \binom \displaystyle \substack { } [ ] ^ _ & \\ $ % ' a 1 + = < > " /
    <img onerror=x() </math> <!-- --> ]]> &lt; {<script>} {"onclick="} {1em}
    {red;background:url(x)}
"""
TEX = st.lists(
    st.sampled_from(re.findall(r"\S+", PIECES)) | st.text(max_size=3), max_size=12
).map(" ".join)
OF_FORMULAS = """
    math mi mn mo mtext mspace mrow mfrac msqrt mroot msub msup msubsup munder mover
    munderover mtable mtr mtd mstyle mphantom code
"""
HARMLESS = """
    display displaystyle scriptlevel stretchy symmetric width mathvariant minsize
    maxsize form accent lspace rspace movablelimits linethickness style
"""


@SEEN
@given(TEX, st.sampled_from(["inline", "block"]))
def test_whatever_a_formula_holds_is_text(latex, display) -> None:
    for tag, attributes in Elements(markdown.formula(latex, display)).found:
        assert tag in re.findall(r"\S+", OF_FORMULAS)
        assert set(attributes) <= set(re.findall(r"\S+", HARMLESS))
        assert not re.search(r"url|expression|[\"<>&@]", attributes.get("style", ""))


# --- lines of JSON --------------------------------------------------------------------


@SEEN
@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_the_audit_has_a_line_for_each(names) -> None:
    text = "".join(report.audit(entry(name), row(name)) for name in names)
    assert not UNSEEN.search(text)
    text.encode("utf-8")
    lines = text.splitlines()
    assert [json.loads(line)["student"] for line in lines] == names


@SEEN
@given(st.lists(TEXTS, min_size=1, max_size=3, unique=True))
def test_the_journal_finds_each_again(tmp_path_factory, names) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    with Journal(path) as journal:
        for name in names:
            journal.add(entry(name))
    with Journal(path) as journal:
        for name in names:
            assert journal.find(name, strangers.CHAPTER)["repairs"] == [name]
    assert len(path.read_text("ascii").splitlines()) == len(names)


# --- a terminal -----------------------------------------------------------------------


@SEEN
@given(TEXTS, st.sampled_from(["utf-8", "ascii", "latin-1"]))
def test_a_terminal_gets_no_control_character(text, encoding) -> None:
    """Neither from the table at the end, nor from a dry run, in any encoding."""
    planned = dry_run.Planned(
        text,
        strangers.CHAPTER,
        dry_run.REFUSE,
        deadlines.Attempt(None, text, None, (text,)),
        text,
    )
    of_class = Class()
    points = {strangers.CHAPTER: 2.0}
    said = [
        report.table([report.grade(entry(text, UNGRADED), None, {"max_score": "2"})]),
        dry_run.text([planned], of_class, points, {}, 1),
        text,
    ]
    kept = set(string.printable) - set("\x0b\x0c\r")
    for each in said:
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
        clean.say(each, stream)
        stream.flush()
        shown = stream.buffer.getvalue().decode(encoding)
        assert not UNSEEN.search(shown)
        assert all(
            c in kept or c.isprintable() or c.isspace() or ord(c) > 160 for c in shown
        )
    assert len(said[0].splitlines()) == 5  # one for each student, whatever its name
    assert len(said[1].splitlines()) == 7


# --- SQL ------------------------------------------------------------------------------


@SEEN
@given(TEXTS)
def test_sqlite_takes_it(text) -> None:
    with sqlite3.connect(":memory:") as database:
        (found,) = database.execute("select ?", [clean.sql(text, 128)]).fetchone()
    assert found == clean.sql(text, 128)
