"""What a student gets back: named mistakes, hints, and nothing that could do harm."""

import copy
import html.parser
import itertools
import json
import re

import pytest

from autograder.exercise.chapters import exercises
from autograder.grading import feedback, markdown, telling
from autograder.grading.feedback import HandGrade
from autograder.grading.job import GRADED, NOT_RUN, Outcome, Verdict
from autograder.grading.paper import Paper, exercise_of
from tests import browsers, chapters

CHAPTER = "04_attention"
FULL, MOST = chapters.points(CHAPTER)
MISTAKE = {
    "what": "the scores are not scaled",
    "mistake": "the scores are not scaled",
    "on": "q (4, 5), k (7, 5), v (7, 2)",
    "got": "output (4, 2), first row [0.9426, 0.3164]",
    "expected": "output (4, 2), first row [0.6105, 0.1838]",
    "why": "A score is a sum of d_k = 5 products. Divide by `√d_k`.",
    "read": "chapter 4: 04_attention.html#attention-weighted-average",
    "first": "",
    "text": "all of it",
}
BAD = '<script>alert(1)</script><img src=x onerror="alert(2)">" style="x'
VOID = {"meta", "br", "hr", "img", "link", "input"}
ACTIVE = {"script", "iframe", "object", "embed", "form", "link", "base", "svg", "img"}


@pytest.fixture(scope="module")
def paper() -> Paper:
    return Paper.of(CHAPTER)


@pytest.fixture
def outcome(paper) -> Outcome:
    """Everything right, a written answer waiting."""
    made = Outcome("amelia.brandt", CHAPTER, GRADED, sha256="ab" * 32)
    for grade_id, points in paper.points.items():
        exercise = exercise_of(grade_id)
        if grade_id.startswith("test-"):
            title = f"{exercise}: what it checks"
            made.verdicts.append(Verdict(exercise, grade_id, points, points, "", title))
        else:
            made.by_hand.append(
                {
                    "exercise": exercise,
                    "grade_id": grade_id,
                    "points": points,
                    "answer": "**Your explanation:**\n\nVariances add up.",
                }
            )
    return made


def fail(outcome: Outcome, exercise: str, part: str = "visible", **changes) -> None:
    for verdict in outcome.verdicts:
        if verdict.exercise == exercise:
            verdict.part, verdict.score = part, 0.0
            verdict.failure = MISTAKE | changes


class Page(html.parser.HTMLParser):
    """The elements of a page, their attributes, and the text of each section."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data

    def of(self, tag: str) -> list[dict]:
        return [attributes for name, attributes in self.elements if name == tag]


def section(page: str, exercise: str) -> str:
    """Cut out what a page says about an exercise."""
    return re.search(rf'<article [^>]*id="{exercise}".*?</article>', page, re.S).group()


# --- what it says ---------------------------------------------------------------------


def test_a_page_is_sound_html_with_landmarks_and_one_heading(outcome, paper):
    page = Page(feedback.page(outcome, paper))
    assert page.of("html") == [{"lang": "en"}]
    names = [name for name, _ in page.elements]
    for name in ("header", "main", "nav", "footer", "h1", "title"):
        assert names.count(name) == 1, name
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for attributes in page.of("a"):
        assert attributes["href"].removeprefix("#") in ids


def test_a_named_mistake_stands_out_with_input_got_expected_why_and_where(
    outcome, paper
):
    fail(outcome, "scaled-dot-product-attention")
    page = feedback.page(outcome, paper, site="https://course.example.org/book/")
    said = section(page, "scaled-dot-product-attention")
    assert '<p class="mistake">' in said
    for key in ("mistake", "on", "got", "expected"):
        assert MISTAKE[key] in said
    assert "Divide by <code>√d_k</code>." in said
    address = "https://course.example.org/book/04_attention.html"
    assert f'href="{address}#attention-weighted-average"' in said
    assert "0 of 3 points" in said
    assert f"<strong>{FULL - 3}</strong> of {MOST} points" in page
    all_of_them = len(chapters.source("04_attention").exercises)
    solved = f"{all_of_them - 2} of {all_of_them} exercises solved"
    assert f"{solved}; {MOST - FULL} points wait" in page


def test_without_the_address_of_the_book_the_section_is_named(outcome, paper):
    fail(outcome, "softmax")
    said = section(feedback.page(outcome, paper), "softmax")
    assert "Read: chapter 4, “weighted average”" in said
    assert "href" not in said


@pytest.mark.parametrize("site", ["javascript:alert(1)//", "data:text/html,x", "a b"])
def test_an_odd_address_of_the_book_makes_no_link(outcome, paper, site):
    fail(outcome, "softmax")
    said = section(feedback.page(outcome, paper, site=site), "softmax")
    assert "href" not in said


def test_it_says_where_to_begin(outcome, paper):
    fail(outcome, "scaled-dot-product-attention")
    fail(outcome, "masked-softmax", mistake="mask inverted")
    page = feedback.page(outcome, paper)
    begin = re.search(r'class="box begin".*?</section>', page, re.S).group()
    exercise = exercises()["masked-softmax"]
    assert f"{exercise.number} · {exercise.title}" in begin
    assert "mask inverted" in begin


def test_what_to_mend_first_stands_before_the_numbers(outcome, paper):
    first = "softmax, which this may use, fails its own check: begin there."
    fail(outcome, "masked-softmax", first=first)
    said = section(feedback.page(outcome, paper), "masked-softmax")
    assert said.index(first) < said.index(MISTAKE["got"])


def test_hints_are_offered_folded_where_something_is_to_do(outcome, paper):
    fail(outcome, "softmax")
    page = feedback.page(outcome, paper)
    said = section(page, "softmax")
    assert re.findall(r"<summary>(Hint \d)", said) == ["Hint 1", "Hint 2", "Hint 3"]
    assert "<details open" not in page
    assert "<math" in said and "$" not in said, "formulas are rendered"
    assert page.count("<summary>Hint") == 3, "only of the exercise that is not solved"


def test_every_hint_of_every_chapter_is_rendered():
    for chapter in ("01_embeddings", "07_decoder", "10_vision"):
        paper = Paper.of(chapter)
        headings = feedback._headings(paper.released)
        made = Outcome("a", chapter, GRADED)
        for grade_id, points in paper.points.items():
            title, hints = headings[exercise_of(grade_id)]
            assert re.match(r"\d+\.\d+ · ", title)
            assert len(hints) == (3 if grade_id.startswith("test-") else 0)
            verdict = Verdict(exercise_of(grade_id), grade_id, points, 0.0, "visible")
            verdict.failure = MISTAKE
            made.verdicts.append(verdict)
        assert len(Page(feedback.page(made, paper)).of("details")) >= 3


def test_a_hidden_test_shows_what_it_checks_and_never_on_what(outcome, paper):
    fail(outcome, "softmax", part="hidden")
    said = section(feedback.page(outcome, paper), "softmax")
    assert MISTAKE["mistake"] in said and "what it checks" in said
    assert "Divide by" in said
    for key in ("on", "got", "expected"):
        assert MISTAKE[key] not in said
    assert "seed" not in said and "7301" not in said


@pytest.mark.parametrize(
    ("what", "raised", "shown"),
    [
        ("stopped with IndexError", True, telling.RAISED),
        ("stopped with Scores_1_2_3", True, telling.RAISED),
        ("does not return", True, telling.RAISED),
        ("the result: 3 of 8 values are wrong", False, telling.WRONG),
    ],
)
def test_an_unnamed_failure_of_a_hidden_test_gives_no_input_away(
    outcome, paper, what, raised, shown
):
    said = {"mistake": what if raised else None, "what": what, "why": "It is 17."}
    fail(outcome, "softmax", part="hidden", raised=raised, first="17", **said)
    found = section(feedback.page(outcome, paper), "softmax")
    assert shown in found and "The visible check passes." in found
    assert what not in found and "17" not in found


def test_a_reason_after_a_hidden_test_holds_no_computed_number(outcome, paper):
    why = "A row sums to 0.9812 in place of 1; the loss was 12345, along axis 2."
    fail(outcome, "softmax", part="hidden", why=why)
    found = section(feedback.page(outcome, paper), "softmax")
    assert "A row sums to … in place of 1; the loss was …, along axis 2." in found


def with_answer(outcome: Outcome, paper: Paper, code: str) -> None:
    notebook = json.loads(paper.released)
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "softmax":
            cell["source"] = code
    outcome.notebook = json.dumps(notebook)


def test_the_answer_stands_above_the_message_folded_if_it_is_long(outcome, paper):
    fail(outcome, "softmax")
    with_answer(outcome, paper, f"def softmax(scores):\n\treturn {BAD!r}")
    found = section(feedback.page(outcome, paper), "softmax")
    assert "def softmax(scores):\n\treturn" in found and "<script" not in found
    assert found.index("def softmax") < found.index(MISTAKE["got"])
    assert "lines</summary>" not in found
    with_answer(outcome, paper, "\n".join(f"line_{n} = {n}" for n in range(40)))
    found = section(feedback.page(outcome, paper), "softmax")
    assert "<summary>Your answer, 40 lines</summary>" in found


def test_an_answer_that_is_right_is_not_repeated(outcome, paper):
    with_answer(outcome, paper, "the_answer_as_it_is = 1")
    assert "the_answer_as_it_is" not in feedback.page(outcome, paper)


def test_what_is_not_written_yet_is_no_mistake(outcome, paper):
    fail(outcome, "softmax", mistake=None, what="not written yet", got="")
    said = section(feedback.page(outcome, paper), "softmax")
    assert "What went wrong" not in said and "Still to do" in said


def test_a_solved_notebook_has_nothing_left(outcome, paper):
    page = feedback.page(outcome, paper)
    assert "Every check passed. A person will read what you wrote." in page
    assert f"<strong>{FULL}</strong> of {MOST} points" in page
    assert "Hint" not in page


# --- people ---------------------------------------------------------------------------


def test_a_written_answer_waits_without_its_rubric(outcome, paper):
    said = section(feedback.page(outcome, paper), "explain-scaling")
    assert ">Variances add up.<" in said and "A person reads this" in said
    assert "Rubric" not in said and "Size of the scores" not in said


def test_a_graded_answer_comes_with_points_comment_and_rubric(outcome, paper):
    given = HandGrade("explain-scaling", 2.5, "And *why* not $d_v$?")
    page = feedback.page(outcome, paper, hand=[given])
    said = section(page, "explain-scaling")
    assert "2.5 of 4 points" in said and "And <em>why</em> not <span" in said
    assert "Rubric (4 points" in said and "Size of the scores, 1 point." in said
    assert "Model answer" not in page
    assert f"<strong>{FULL + 2.5}</strong> of {MOST} points" in page


def test_an_untouched_answer_is_still_to_do(outcome, paper):
    answer = outcome.by_hand.pop()
    failure = {"what": "nothing was written", "text": "nothing was written"}
    outcome.verdicts.append(
        Verdict(answer["exercise"], answer["grade_id"], 4.0, 0.0, NOT_RUN, "", failure)
    )
    said = section(feedback.page(outcome, paper), "explain-scaling")
    assert "nothing was written" in said and "not written yet" in said


def test_a_person_may_overrule_a_check(outcome, paper):
    fail(outcome, "softmax")
    given = HandGrade("test-softmax", 2.0, "Right, in its own way.")
    page = feedback.page(outcome, paper, hand=[given])
    assert f"<strong>{FULL}</strong> of {MOST} points" in page
    assert "Right, in its own way." in section(page, "softmax")


def test_points_for_being_late_are_taken_off_in_sight(outcome, paper):
    notes = ["late by 1 day 3 hours: -3 points"]
    page = feedback.page(outcome, paper, penalty=3.0, notes=notes)
    assert f"<strong>{FULL - 3}</strong> of {MOST} points" in page
    assert f"{FULL} without the 3 points taken off for being late" in page
    assert notes[0] in page


# --- what was not graded, repaired, stopped -------------------------------------------


def test_an_ungraded_notebook_has_a_reason_and_no_zero(paper):
    reason = "the kernel died while running exercise softmax (memory)"
    page = feedback.page(Outcome("a", CHAPTER, reason=reason), paper)
    assert reason in page and "This is not a score of 0." in page
    assert "tensors that grow in a loop" in page and "instructor" in page
    assert "0 of" not in page and "Hint" not in page
    Page(page)


def test_repairs_and_limits_are_said(outcome, paper):
    outcome.repairs = ["check cell test-softmax: missing, put back"]
    outcome.limited = ["cell softmax: stopped after 30 seconds"]
    page = feedback.page(outcome, paper)
    for text in outcome.repairs + outcome.limited:
        assert text in page


# --- nothing active -------------------------------------------------------------------


def everything_bad(outcome: Outcome, text: str) -> Outcome:
    bad = copy.deepcopy(outcome)
    bad.student = text
    bad.repairs, bad.limited = [text], [f"cell {text}: stopped"]
    bad.by_hand[0]["answer"] = text
    failure = dict.fromkeys(MISTAKE, text)
    parts = itertools.cycle(["visible", "hidden", NOT_RUN])
    for verdict in bad.verdicts:
        verdict.part, verdict.score, verdict.failure = next(parts), 0.0, failure
    return bad


@pytest.mark.parametrize(
    "text",
    [
        BAD,
        "`<script>alert(1)</script>`",
        "</pre></dl></article></main><script>alert(1)</script>",
        "[x](javascript:alert(1)) ![x](data:image/png,x) $\\href{javascript:1}{x}$",
        "{{ 7 * 7 }}{% include '/etc/passwd' %}",
        "\x00\x1b[31m\ud800\u202etxt.exe",
        "&lt;script&gt;" * 1000,
    ],
)
def test_whatever_a_student_wrote_stays_text(outcome, paper, text):
    bad = everything_bad(outcome, text)
    hand = [
        HandGrade("explain-scaling", 1.0, text),
        HandGrade("test-softmax", None, text),
    ]
    text = feedback.page(bad, paper, hand=hand, site="https://example.com")
    text.encode("utf-8")
    page = Page(text)
    assert ACTIVE.isdisjoint(name for name, _ in page.elements)
    for name, attributes in page.elements:
        assert not any(key.startswith("on") for key in attributes)
        if "href" in attributes:
            assert re.match(r"#|https://example\.com/", attributes["href"]), attributes
        assert "src" not in attributes and name != "http-equiv"
    assert "49" not in page.text
    assert not set("\x00\x1b\u202e") & set(text)


def test_a_page_asks_nobody_for_anything(outcome, paper):
    fail(outcome, "softmax")
    page = feedback.page(outcome, paper)
    assert "url(" not in page and "@import" not in page
    policy = Page(page).of("meta")[2]
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'"


def test_a_flood_of_text_is_cut(outcome, paper):
    fail(outcome, "softmax", got="x" * 10_000_000)
    page = feedback.page(outcome, paper)
    assert len(page) < 100_000 and "(10000000 characters)" in page


def test_a_formula_that_carries_more_than_a_formula_is_shown_as_source():
    for latex in (r"\href{javascript:alert(1)}{x}", r"\frac{"):
        shown = markdown.render(f"${latex}$")
        assert "<math" not in shown and "<script" not in shown and "<code>" in shown
    shown = markdown.render(r"$\text{<script>1</script>}$")
    assert "<script" not in shown and "<mtext>&lt;script&gt;1&lt;/script&gt;<" in shown
    assert "<math" in markdown.render(r"$\frac{1}{\sqrt{d_k}}$")


# --- colours --------------------------------------------------------------------------


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_text_can_be_read_in_light_and_dark(outcome, paper):
    style = feedback.page(outcome, paper).partition("</style>")[0]
    light, dark = (
        dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", block))
        for block in re.findall(r":root \{(.*?)\}", style, re.S)[:2]
    )
    words = (
        "text",
        "muted",
        "link",
        "passed",
        "failed",
        "waiting",
        "partly",
        "untouched",
    )
    for colours in (light, dark):
        for word in words:
            for ground in ("page", "card"):
                assert contrast(colours[word], colours[ground]) >= 4.5, (word, ground)
        for word, ground in (
            ("text", "tint"),
            ("failed", "tint"),
            ("text", "code"),
            ("link", "hint"),
            ("text", "hint"),
        ):
            assert contrast(colours[word], colours[ground]) >= 4.5, (word, ground)


@pytest.mark.browser
def test_a_page_fits_a_phone_and_asks_for_nothing(outcome, paper, tmp_path, browser):
    fail(outcome, "scaled-dot-product-attention", got="x" * 500)
    fail(outcome, "attention-cost")
    path = tmp_path / "page.html"
    path.write_text(feedback.page(outcome, paper), encoding="utf-8")
    asked = []
    page = browser.new_page(viewport=browsers.PHONE)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    for summary in page.locator("summary").all():
        summary.click()
    width = page.evaluate("document.documentElement.scrollWidth")
    page.close()
    assert width == 360
    assert asked == [path.as_uri()]
