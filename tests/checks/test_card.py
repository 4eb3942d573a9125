"""What a failed check shows: values that differ in print, and a card in notebooks."""

import ast
import contextlib
import html
import io
import re
from pathlib import Path

import nbformat
import pytest
import torch
from nbclient import NotebookClient

from autograder import expect
from autograder.exercise import front_end
from autograder.exercise.card import card
from autograder.exercise.chapters import exercises
from autograder.exercise.showing import Shown, first_few, shortened, show, show_both
from autograder.exercise.typed import typed_call
from autograder.expect import Chapter, CheckFailure
from autograder.interface import LocalFunction, StudentFunction

TOLERANCE = 1e-5
NUMBER = exercises()["softmax"].number
chapter = Chapter(4, "04_attention")


@chapter.check(section="attention-softmax")
def softmax(student: StudentFunction, seed: int = 0) -> None:
    """Compare with PyTorch's own."""
    x = torch.tensor([[0.0, 1.0], [2.0, 2.0]])
    expect.equal(student(x), torch.softmax(x, dim=-1), on="softmax(x)")


def failure_of(answer) -> CheckFailure:
    """Let the check above look at an answer that is wrong."""
    with contextlib.redirect_stdout(io.StringIO()), pytest.raises(CheckFailure) as said:
        softmax(answer)
    return said.value


def marked(shown: Shown) -> list[str]:
    """The parts of a text that are marked."""
    return [shown[start:end] for start, end in shown.marks]


# --- values ---------------------------------------------------------------------------


@pytest.mark.parametrize("distance", [1.0, 1e-3, 1e-5, 1e-7, 1e-12])
@pytest.mark.parametrize("size", [1, 6, 60])
def test_values_that_differ_never_print_alike(distance: float, size: int) -> None:
    got = torch.linspace(1, 2, size, dtype=torch.float64)
    expected = got.clone()
    expected[size // 2] += distance
    pair = show_both(got, expected, distance / 10)
    assert pair[0] != pair[1]
    assert [len(marked(each)) for each in pair] == [1, 1]


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (torch.tensor([1, 2]), [1, 2]),
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0], dtype=torch.float64)),
        (torch.zeros(0), torch.zeros(0, 3)),
        (torch.ones(50), torch.ones(50, dtype=torch.float64)),
        (0.1234567, 0.1234568),
        (1, 1.0000001),
        (10**70, 10**70 + 1),
        (list(range(100)), [*range(99), 0]),
        ("a" * 100, "a" * 99 + "b"),
        ({"a": torch.ones(2)}, {"a": torch.ones(2).half()}),
        ((torch.ones(2), 1), (torch.ones(2), 2)),
        ({"x": {n: n for n in range(50)}}, {"x": {n: n % 49 for n in range(50)}}),
    ],
)
def test_two_values_of_any_kind_differ_in_print(got, expected) -> None:
    pair = show_both(got, expected, TOLERANCE)
    assert pair[0] != pair[1]


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor([[0.5, -2.0], [1e-6, 123.5]]),
        torch.tensor([True, False]),
        torch.arange(12).reshape(2, 3, 2),
        torch.tensor(3.5),
    ],
)
def test_a_small_tensor_can_be_typed_in_again(value: torch.Tensor) -> None:
    for text in (show(value), show_both(value, value + 1, TOLERANCE)[0]):
        assert torch.equal(torch.tensor(ast.literal_eval(text)), value)


def test_only_the_entries_that_differ_are_marked() -> None:
    got = torch.tensor([[0.5, 0.25], [0.1, 0.7]])
    expected = torch.tensor([[0.5, 0.25 + 1e-7], [0.2, 0.7001]])
    pair = show_both(got, expected, TOLERANCE)
    assert [marked(each) for each in pair] == [["0.1", "0.7"], ["0.2", "0.7001"]]


def test_of_a_large_tensor_the_part_is_shown_where_it_differs() -> None:
    got = torch.zeros(3, 40)
    expected = got.clone()
    expected[1, 30] = 1e-4
    pair = show_both(got, expected, TOLERANCE)
    assert pair[0].startswith("[1, 30:36] is [")
    assert [marked(each) for each in pair] == [["0.0"], ["0.0001"]]


@pytest.mark.parametrize(
    "value", [torch.zeros(30), list(range(99)), "a" * 99, {n: n for n in range(99)}]
)
def test_what_is_left_out_leaves_a_sign(value) -> None:
    assert "…" in show(value)


def test_texts_and_lists_of_names_are_cut_with_a_sign() -> None:
    assert shortened("abcdef", 4) == "abc…"
    assert shortened("abcd", 4) == "abcd"
    assert first_few(["a", "b", "c"], 2) == "a, b, …"
    assert first_few(iter("ab"), 2) == "a, b"


def test_of_a_dict_of_tensors_the_entries_are_shown_that_differ() -> None:
    got = {"a": torch.ones(2), "b": torch.zeros(2)}
    expected = {"a": torch.ones(2), "b": torch.ones(2)}
    pair = show_both(got, expected, TOLERANCE)
    assert list(pair) == ["{'b': [0.0, 0.0], …}", "{'b': [1.0, 1.0], …}"]
    assert marked(pair[0]) == ["0.0", "0.0"]


# --- the card -------------------------------------------------------------------------


def test_a_card_has_the_mistake_first_and_marks_what_differs() -> None:
    failure = failure_of(lambda x: torch.softmax(x, dim=0))
    shown = card(failure)
    text = html.unescape(re.sub(r"<[^>]+>", " ", shown))
    words = ("softmax", failure.what, "on", "got", "expected", "chapter 4")
    places = [text.index(word) for word in words]
    assert places == sorted(places)
    assert shown.count("<mark") == 2 * int(re.search(r"(\d+) of 4", failure.what)[1])
    assert f'role="region" aria-label="{NUMBER} softmax: not yet right"' in shown


def test_a_card_takes_its_colours_from_where_it_stands() -> None:
    """So it can be read in light and in dark: no text has a colour of its own."""
    shown = card(failure_of(lambda x: x))
    colours = re.findall(r"(?<![-\w])color:([^;\"]+)", shown)
    assert set(colours) == {"inherit"}
    for background in re.findall(r"background:([^;\"]+)", shown):
        found = re.fullmatch(r"none|rgba\(\d+,\d+,\d+,(\.\d+)\)", background)
        assert float(found[1] or 0) <= 0.3


def test_what_a_student_chose_is_shown_as_text() -> None:
    evil = "<script>alert(1)</script><img src=x onerror='alert(1)'>"

    def answer(x):
        raise ValueError(evil)

    answer.__name__ = answer.__qualname__ = f"softmax{evil}"
    failure = failure_of(answer)
    failure.mistake, failure.why, failure.first = evil, f"`{evil}`", evil
    shown = card(failure)
    tags = set(re.findall(r"<(\w+)", shown))
    assert tags <= {
        *("div", "p", "h4", "table", "tbody", "tr", "th", "td", "pre", "mark", "code"),
    }
    assert html.escape(evil) in shown


def test_the_section_is_a_link_where_the_book_has_an_address() -> None:
    failure = failure_of(lambda x: x)
    assert "<a " not in card(failure, site="")
    link = 'href="https://example.org/course/04_attention.html#attention-softmax"'
    assert link in card(failure, site="https://example.org/course/")
    assert "<a " not in card(failure, site="javascript:alert(1)")


# --- the call, to be typed in again ---------------------------------------------------


def test_the_call_that_showed_it_gives_the_same_when_typed_in() -> None:
    def answer(x):
        return torch.softmax(x, dim=0)

    failure = failure_of(answer)
    assert failure.call == "answer(torch.tensor([[0.0, 1.0], [2.0, 2.0]]))"
    assert show(eval(failure.call)) == failure.got.replace("\n", "")
    assert failure.call in str(failure)
    assert html.escape(failure.call) in card(failure)


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor([1 / 3, torch.nan, -torch.inf, 1e-30, 16777217.0]),
        torch.tensor([1 / 3, 2.0], dtype=torch.float64),
        torch.tensor([True, False]),
        torch.tensor([[7], [9]], dtype=torch.int32),
        torch.tensor(0.1, dtype=torch.bfloat16),
    ],
)
def test_an_argument_is_written_exactly(value: torch.Tensor) -> None:
    student = LocalFunction(lambda x, **options: None, "answer")
    student(value, p=0.1, names=["a", None], pair=(1,))
    written = typed_call([student.last], "", show(None))
    args, options = eval(written, {"answer": lambda *a, **o: (a, o), "torch": torch})
    assert options == {"p": 0.1, "names": ["a", None], "pair": (1,)}
    assert args[0].dtype == value.dtype
    assert torch.equal(args[0].nan_to_num(), value.nan_to_num())


def test_a_call_that_is_large_or_not_the_one_is_left_out() -> None:
    student = LocalFunction(lambda x: x, "answer")
    student(torch.zeros(99))
    assert typed_call([student.last], "", show(torch.zeros(99))) == ""
    student(torch.zeros(2))
    assert typed_call([student.last], "", show(torch.ones(2))) == ""
    assert typed_call([student.last], "", "written by hand") == ""


def test_a_call_that_raised_is_written_in_place_of_its_shapes() -> None:
    def answer(x):
        return x.nope

    failure = failure_of(answer)
    assert failure.on == "answer(torch.tensor([[0.0, 1.0], [2.0, 2.0]]))"


# --- where it is shown ----------------------------------------------------------------


def test_without_a_notebook_the_message_is_plain_text(monkeypatch) -> None:
    shown = []
    monkeypatch.setattr(front_end, "display", lambda *both: shown.append(both))
    failure = failure_of(lambda x: x)
    assert failure._render_traceback_() == [str(failure)]
    assert not shown


WRONG = """
import torch
from autograder.chapters import attention as check
def softmax(scores):
    return torch.exp(scores) / torch.exp(scores).sum(dim=0, keepdim=True)
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> list:
    """What a notebook shows of a check that fails."""
    cells = [
        nbformat.v4.new_code_cell(text) for text in (WRONG, "check.softmax(softmax)")
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    folder = tmp_path_factory.mktemp("notebook")
    client = NotebookClient(
        notebook,
        timeout=120,
        allow_errors=True,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    assert not list(folder.iterdir())
    return notebook.cells[1].outputs


def test_a_notebook_shows_a_card_and_a_line(outputs) -> None:
    shown, error = outputs
    assert shown.output_type == "display_data"
    assert 'role="region"' in shown.data["text/html"]
    assert "<mark" in shown.data["text/html"]
    assert error.output_type == "error"
    assert error.traceback == [
        f"{NUMBER} is not yet right: softmax over the wrong axis (see above)"
    ]


def test_whatever_runs_a_notebook_still_gets_the_error_and_its_text(outputs) -> None:
    shown, error = outputs
    assert error.ename == "CheckFailure"
    assert error.evalue == shown.data["text/plain"]
    assert "expected [[0.125, 0.25, 0.625]," in error.evalue


# --- while a line is looked for -------------------------------------------------------


SLIP = """
import os, pathlib, signal, time
import torch
from autograder.chapters import attention as check
from autograder.exercise import locate
def softmax(scores):
    largest = scores.amax(dim=-1, keepdim=True)
    below = (scores - largest).exp()
    return below / (-below).sum(dim=-1, keepdim=True)
os.environ["COURSE_LOOK"] = "1"
locate.SECONDS = locate.SECONDS_PER_TRY = locate.SECONDS_PER_CALL = 60
search = locate.locate
"""
WAITING = """
os.environ["JPY_SESSION_NAME"] = "/elsewhere/a.ipynb"
def locate_once_seen(*args):
    while not pathlib.Path("seen").exists():
        time.sleep(0.05)
    return search(*args)
locate.locate = locate_once_seen
check.softmax(softmax)
"""
STOPPED = """
def interrupted(*args):
    signal.raise_signal(signal.SIGINT)
    time.sleep(60)
locate.locate = interrupted
check.softmax(softmax)
"""
NO_NOTEBOOK = """
del os.environ["JPY_SESSION_NAME"]
locate.locate = search
check.softmax(softmax)
"""


class Reader(NotebookClient):
    """Runs a notebook, and leaves a file once something is shown."""

    def execute(self, **kwargs) -> nbformat.NotebookNode:
        """Note what is shown, in order, by the number of the cell."""
        self.seen: dict[int, list[tuple[str, dict]]] = {}
        return super().execute(**kwargs)

    def process_message(self, msg, cell, cell_index):
        """Note a message before it is used."""
        kind, content = msg["header"]["msg_type"], msg["content"]
        if kind in ("display_data", "update_display_data", "error", "stream"):
            self.seen.setdefault(cell_index, []).append((kind, content))
        if kind == "display_data":
            Path(self.resources["metadata"]["path"], "seen").touch()
        return super().process_message(msg, cell, cell_index)


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Reader:
    """Who has seen checks fail that look for a line."""
    texts = (SLIP, WAITING, STOPPED, NO_NOTEBOOK)
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(text) for text in texts]
    )
    folder = {"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}}
    client = Reader(notebook, timeout=120, allow_errors=True, resources=folder)
    client.execute()
    return client


ENDING = [
    f"{NUMBER} is not yet right: the result: 2 of 2 values are wrong, first at index "
    "[0] (see above)"
]


def test_the_card_is_there_before_the_line_and_gets_it_in_its_place(reader) -> None:
    """The search waits until the card has been seen."""
    kinds = [kind for kind, _ in reader.seen[1]]
    assert kinds == ["display_data", "update_display_data", "error"]
    (_, first), (_, last), (_, error) = reader.seen[1]
    assert first["transient"] == last["transient"]
    for kind in ("text/html", "text/plain"):
        assert "values are wrong" in first["data"][kind]
        assert expect.LOOKING in first["data"][kind]
        assert expect.LOOKING not in last["data"][kind]
        assert "look at the sign" in last["data"][kind]
        assert "look at" not in first["data"][kind]
    assert error["traceback"] == ENDING
    shown, error = reader.nb.cells[1].outputs
    assert shown.data == last["data"]
    assert (error.ename, error.evalue) == ("CheckFailure", shown.data["text/plain"])


def test_who_stops_the_search_keeps_the_card(reader) -> None:
    kinds = [kind for kind, _ in reader.seen[2]]
    assert kinds == ["display_data", "update_display_data", "error"]
    shown, error = reader.nb.cells[2].outputs
    for kind in ("text/html", "text/plain"):
        assert "values are wrong" in shown.data[kind]
        assert expect.LOOKING not in shown.data[kind]
    assert error.ename == "CheckFailure"
    assert error.traceback == ENDING


def test_where_nothing_may_be_replaced_the_card_comes_with_the_line(reader) -> None:
    (kind, shown), (last, _) = reader.seen[3]
    assert (kind, last) == ("display_data", "error")
    assert shown["data"] == reader.nb.cells[1].outputs[0].data
    assert not shown.get("transient")


# --- what is said ---------------------------------------------------------------------


def test_all_that_is_said_is_in_the_card_and_in_the_text() -> None:
    failure = CheckFailure("the result is wrong", got="1", expected="2", why="Add 1.")
    failure.hint = "Every value is 1 too small."
    failure.alternatives = "the one is missing"
    failure.besides = "squared. Twice, not the square."
    shown = card(failure, site="")
    for words in (failure.hint, failure.alternatives, failure.besides, failure.why):
        assert words in shown
        assert words in str(failure)
    assert shown.index("Every value") < shown.index("Add 1.") < shown.index("squared")
