"""The words a check is written in, and the one error it raises.

Each function below returns None or raises ``CheckFailure``; the decorator that
``Chapter`` makes fills in which check it was and where the chapter explains it.
"""

import contextlib
import functools
import inspect
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

import torch

from autograder.exercise import front_end, progress
from autograder.exercise.card import card
from autograder.exercise.comparison import Comparison
from autograder.exercise.diagnosis import diagnose
from autograder.exercise.length import keep_short
from autograder.exercise.locate import Place, add_place, is_wanted
from autograder.exercise.locate.outcomes import (
    Follower,
    Known,
    Left,
    Outcome,
    Refuted,
)
from autograder.exercise.naming import (
    Collector,
    Mistake,
    PairFinder,
    collect,
    pair_that_explains,
    smallest,
)
from autograder.exercise.reasons import reasons
from autograder.exercise.showing import (
    differ,
    shortened,
    show,
    show_both,
    show_keys,
)
from autograder.exercise.typed import typed_call
from autograder.forms import as_asked, other_form
from autograder.interface import (
    CALLS_ENDLESS,
    Call,
    Data,
    StudentError,
    StudentFunction,
    StudentModule,
    is_trying,
    noting_calls,
    wrap,
)

DTYPES = {  # that came, that are expected -> what to do
    (torch.float64, torch.float32): "float64 and float32 do not multiply, and what "
    "comes from NumPy is float64: finish with .float().",
    (torch.int64, torch.float32): "Whole numbers and floats do not multiply: .float().",
    (torch.float32, torch.int64): "Ids and labels are whole numbers: .long().",
}
LOOKING = "Looking for the line …"
WIDTH = 77  # of an explanation's lines, which are indented by 11
TOLERANCE = 1e-5  # absolute and relative, for float32 results of order one
LONGEST_TEXT, LONGEST_LINE = 300, 100  # characters of an exception, and of its line
FEW = 256  # entries, which are compared sooner one by one: most differ at the first


class CheckFailure(AssertionError):
    """An answer is wrong: what was checked, on what, got, expected, why, and where.

    ``mistake`` is the name of a known mistake, or None when the answer is wrong in a
    way of its own.
    """

    def __init__(
        self,
        what: str,
        *,
        on: str = "",
        got: str = "",
        expected: str = "",
        why: str = "",
        mistake: str | None = None,
        section: str | None = None,
    ) -> None:
        super().__init__(what)
        self.check, self.read, self.first, self.number = "", "", "", ""
        self.asked: Call | None = None  # the call that it is about, if known
        self.call = ""  # the same, to be typed in again
        self.what, self.on, self.got, self.expected = what, on, got, expected
        self.why, self.mistake, self.section = why, mistake, section
        self.alternatives, self.besides = "", ""  # other names; a second slip
        self.hint = ""  # what relates the answers to what is right, without a name
        self.displayed = False  # as a card
        self.raised = False  # whether the student's code did, or did not return
        self.compared = False  # whether a value came that is not the right one
        self.place: Place | None = None  # where one step would make the answer pass

    def __str__(self) -> str:
        lines = [f"{self.check}: {self.what}"]
        for label, text in (
            ("mistake", self.mistake if self.mistake != self.what else None),
            ("or", self.alternatives),
            ("first", self.first),
            ("on", self.on),
            ("call", self.call),
            ("got", self.got),
            ("expected", self.expected),
            ("hint", self.hint),
            ("why", self.why),
            ("and", self.besides),
            ("look", str(self.place or "")),
            ("read", self.read),
        ):
            if text:
                if label in ("first", "hint", "why", "and"):
                    text = "\n".join(
                        textwrap.fill(line, WIDTH) for line in text.split("\n")
                    )
                indented = text.replace("\n", "\n" + " " * 11)
                lines.append(f"  {label:<8} {indented}")
        return "\n".join(lines)

    def reasons(self) -> list[str]:
        """Give the paragraphs of running text."""
        return reasons(
            alternatives=self.alternatives,
            hint=self.hint,
            why=self.why,
            besides=self.besides,
            look=str(self.place or ""),
        )

    def set_call(self, call: str) -> None:
        """Say which call it was, if that is known and not said yet."""
        if call and self.raised:
            self.on = call
        elif call != self.on:
            self.call = call

    @property
    def is_untouched(self) -> bool:
        """Whether there is no answer yet."""
        return self.what.endswith("not written yet") or self.what == "is not there"

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show the message while a line is looked for, and then with that line.

        Where nothing that is shown can be replaced, all is shown in the end.
        """
        display = front_end.replaceable()
        if display is None:
            yield
            return
        display(card(self, waiting=LOOKING), f"{self}\n  {LOOKING}")
        self.displayed = True
        try:
            yield
        finally:
            display(card(self), str(self))

    def _render_traceback_(self) -> list[str]:
        """Tell IPython to print the message instead of the check's own code.

        A notebook shows it as a card, and the error, which must remain one for whatever
        runs the notebook, is a line.
        """
        if front_end.kernel() is None:
            return [str(self)]
        if (
            not self.displayed
        ):  # IPython asks twice: for the screen, and for its history
            front_end.display(card(self), str(self))
            self.displayed = True
        name = self.number or self.check
        return [f"{name} is not yet right: {self.mistake or self.what} (see above)"]


@dataclass(frozen=True)
class Chapter:
    """Makes the decorator of a chapter's checks.

    >>> chapter = Chapter(4, "04_attention")
    >>> @chapter.check(section="attention-softmax")
    ... def softmax(student: StudentFunction, seed: int = 0) -> None: ...
    """

    number: int
    page: str

    def check(self, section: str, forbidden: tuple[str, ...] = ()) -> Callable:
        """Decorate a check.

        Args:
            section: the label in the book that explains it.
            forbidden: what the student's code must not use, by names that
                ``autograder.forbidden`` knows.
        """

        def decorate(function: Callable) -> Callable:
            wanted = {
                parameter.name: parameter.annotation
                for parameter in inspect.signature(function).parameters.values()
                if parameter.annotation in (StudentFunction, StudentModule)
            }

            @functools.wraps(function)
            def run(*students: object, **options: object) -> None:
                if len(students) != len(wanted):
                    raise TypeError(_how_to_call(function, wanted, len(students)))
                seen = []
                try:
                    seen = [
                        wrap(student, kind)
                        for student, kind in zip(students, wanted.values(), strict=True)
                    ]
                    for student in seen:
                        student.forbidden = forbidden
                    function(*seen, **options)
                except StudentError as error:
                    failure = failure_of(error)
                except CheckFailure as caught:
                    failure = caught
                    if failure.compared:
                        again = functools.partial(function, *seen, **options)
                        failure = _by_all_answers(failure, again)
                else:
                    print(progress.passed(self.page, function.__name__, options))
                    return
                if failure.what.startswith("stopped with") and not failure.why:
                    failure.why = advice_on(failure.got)
                failure.check = function.__name__
                failure.read = self.where(failure.section or section)
                calls = [failure.asked or each.last for each in seen]
                failure.set_call(typed_call(calls, failure.on, failure.got))
                tried = not failure.is_untouched
                failure.number = progress.failed(
                    self.page, function.__name__, options, tried=tried
                )
                keep_short(failure)
                if is_wanted(failure):
                    # who does not wait for the line keeps the message
                    with contextlib.suppress(KeyboardInterrupt), failure.shown():
                        add_place(failure, function, students, options, followed)
                        keep_short(failure)
                raise failure from None

            run.forbidden, run.read = forbidden, self.where(section)
            run.chapter = self.number
            return run

        return decorate

    def where(self, section: str) -> str:
        """Say where a section of the book is to be found."""
        return f"chapter {self.number}: {self.page}.html#{section}"

    def sheet(self, title: str, points: Mapping[str, Sequence[int]]) -> None:
        """Say that the notebook is a sheet with exercises of one's own choice.

        Args:
            title: of the sheet.
            points: of each graded cell, by the exercises' ids, in order.
        """
        progress.begin_sheet(title, points)

    def progress(self) -> None:
        """Show which of the notebook's exercises have passed."""
        progress.show(self.page)


_collector: ContextVar[tuple[Collector | Follower | PairFinder, list[Call]] | None]
_collector = ContextVar("_collector", default=None)


def is_collecting() -> bool:
    """Whether all values are taken note of, so that a wrong one ends nothing."""
    return _collector.get() is not None


def _by_all_answers(first: CheckFailure, again: Callable[[], None]) -> CheckFailure:
    """Run a check that has failed once more, to its end, and name what explains all."""
    collector = Collector(close)

    def run(noting: Collector | PairFinder) -> None:
        with noting_calls() as calls:
            token = _collector.set((noting, calls))
            try:
                collect(again)
            finally:
                _collector.reset(token)

    run(collector)
    named = collector.name()
    if not collector.explains_all:
        named = pair_that_explains(run, close) or collector.two_at_once() or named
    if named is None:
        return _unnamed(first, collector)
    where = named.where
    shown = show_both(where.got, where.expected, where.tolerance)
    failure = CheckFailure(
        named.mistake.name,
        on=where.on,
        got=shown[0],
        expected=shown[1],
        why=named.mistake.why,
        mistake=named.mistake.name,
        section=named.mistake.section,
    )
    failure.alternatives = "; ".join(named.alternatives)
    if named.besides and not named.besides.name:
        failure.besides = named.besides.why
    elif named.besides:
        failure.besides = f"{named.besides.name}. {named.besides.why}"
    failure.first, failure.asked = first.first, where.asked
    return failure


def followed(run: Callable[[], object], known: Known) -> Outcome:
    """Run a check on a changed answer, as long as one known mistake may explain it.

    The first one is the answer as it stands. All that is right in it has to be known,
    since no step may spoil that.
    """
    follower = Follower(close, known, patient=not known.noted)
    try:
        with noting_calls() as calls:
            token = _collector.set((follower, calls))
            try:
                run()
            finally:
                _collector.reset(token)
        if follower.all_right or not follower.count:
            run()  # what is compared is not all that a check asks for
            return follower.outcome(passes=True)
    except (Refuted, StudentError):
        return follower.outcome()
    except CheckFailure as failure:
        if follower.is_sure:
            left = failure.mistake and Left(failure.mistake, failure.why)
            return follower.outcome(left=left or None)
    except Exception:  # a check does not expect to be where it is after a wrong value
        if follower.all_right or not follower.count:
            return follower.outcome()
    return follower.outcome(left=follower.left())


def _unnamed(first: CheckFailure, collector: Collector) -> CheckFailure:
    """Say what is wrong without a name: what one input suggests, others refute."""
    wrong = [each for each in collector.judged if not each.right]
    if wrong:
        each = smallest(wrong).comparison
        try:
            equal(
                each.got,
                each.expected,
                what=each.what,
                on=each.on,
                why=each.why,
                tolerance=each.tolerance,
            )
        except CheckFailure as failure:
            failure.first, failure.asked = first.first, each.asked
            failure.hint = _diagnosed(collector.comparisons)
            return failure
    return first  # the second time nothing was wrong: the answer changes


def _diagnosed(comparisons: list[Comparison]) -> str:
    """Say what relates the answers to what is right; a fault in this costs nobody."""
    with contextlib.suppress(Exception):
        return diagnose(comparisons)
    return ""


def _how_to_call(function: Callable, wanted: Iterable[str], given: int) -> str:
    names = list(wanted)
    objects = "1 object" if len(names) == 1 else f"{len(names)} objects"
    call = f"{function.__name__}({', '.join(names)})"
    return f"check.{function.__name__} takes {objects}, not {given}: {call}"


ADVICE = {
    "NotImplementedError": "Write the body: replace `raise NotImplementedError()`.",
    "signature": "Keep the signature of the stub; a check calls the function by it.",
    "missing": "Run the cell that defines it first; keep the name of the stub.",
    "no module": "Derive it as the stub does, class ...(nn.Module), and begin __init__ "
    "with super().__init__().",
    "in-place": "Work on a copy: operations ending in _, assignments to x[...] or to "
    "a view of x, and pop, insert or append on a list change what the caller still "
    "needs.",
    "forbidden": "Write it from PyTorch's simpler operations: products, sums, "
    "exponentials and the like.",
    "MemoryError": "What is built grows larger than the memory. Look at what is "
    "appended, and how often.",
    "endless": "Does a loop never end? Look at what its condition tests, and whether "
    "the body changes it.",
}


WORDS = {  # of an exception -> what a beginner has probably done
    "Boolean value of Tensor with more than one value": "`if`, `and`, `not` and "
    "Python's max() ask a whole tensor for one truth value. Test `x is None`, write ~x "
    "for not x, and use the tensor's own .amax().",
    "can be converted to Python scalars": "Functions of the module math take one "
    "number; their namesakes in torch take whole tensors.",
    "must be Tensor, not": "Functions of torch take tensors; for a Python number use "
    "the module math, or wrap it: torch.tensor(number).",
    "must match the size of tensor b": "These two shapes do not broadcast. Print both "
    "with .shape; a sum, mean or maximum loses its axis without keepdim=True.",
    "shapes cannot be multiplied": "In A @ B the last axis of A must be as long as the "
    "second last of B. Print both with .shape.",
    "to have the same dtype": "Both factors of a product must be of one type: turn "
    "integers and booleans into floats with .float().",
    "only implemented on integer and Boolean": "A mask is boolean, and ~ turns it "
    "round: make it with dtype=torch.bool.",
    "Sizes of tensors must match except": "torch.cat joins tensors that agree on every "
    "axis but one, and it does not broadcast. Print their shapes.",
    "before Module.__init__() call": "Begin __init__ with super().__init__().",
}


def advice_on(text: str) -> str:
    """Say what usually lies behind the words of an exception."""
    return next((advice for words, advice in WORDS.items() if words in text), "")


def failure_of(error: StudentError) -> CheckFailure:
    """Turn an exception in the student's code into a message a student can act on."""
    owner = error.function.rpartition("<locals>.")[2].partition(".")[0]
    called = error.call.partition("(")[0]
    if error.kind == "NotImplementedError" and owner not in ("", called):
        failure = CheckFailure(
            f"calls {owner}, which is not written yet",
            on=error.call,
            why=f"Write {owner} first: it is an exercise of its own.",
        )
        failure.raised = True
        return failure
    what = {
        "NotImplementedError": "not written yet",
        "signature": "does not accept the arguments",
        "missing": "is not there",
        "no module": "is not a module",
        "in-place": "changes its argument in place",
        "endless": "does not return",
        "forbidden": error.text,
        CALLS_ENDLESS: error.text,
    }.get(error.kind, f"stopped with {shortened(error.kind, LONGEST_LINE)}")
    mistake = what if error.kind in ("in-place", "forbidden") else None
    failure = CheckFailure(
        what,
        on=error.call,
        got=describe_error(error),
        why=ADVICE.get(error.kind, ""),
        mistake=mistake,
    )
    failure.raised = True
    return failure


def describe_error(error: StudentError) -> str:
    """Write an exception's own words and the student's line that it came from."""
    if error.kind == "NotImplementedError":
        return ""
    line = shortened(error.line, LONGEST_LINE)
    place = f"in {error.function}, {line}" if error.function else ""
    said_already = error.kind in ("forbidden", CALLS_ENDLESS)
    text = "" if said_already else shortened(error.text, LONGEST_TEXT)
    return "\n".join(part for part in (text, place) if part)


@contextlib.contextmanager
def relying_on(earlier: Callable, *students: StudentFunction | StudentModule):
    """Say so when what follows fails and an earlier exercise fails its check, too.

    ``earlier`` is the decorated check of that exercise, ``students`` what it checks.
    """
    try:
        yield
    except (StudentError, CheckFailure) as error:
        failure = failure_of(error) if isinstance(error, StudentError) else error
        known = failure.first or failure.what.endswith("not written yet")
        alone = not is_collecting() and not is_trying()
        if not known and alone:  # what is collected is one check's
            failure.first = _verdict(earlier, students)
        raise failure from None


def _verdict(check: Callable, students: tuple) -> str:
    token = _collector.set(None)  # what the other check compares explains nothing here
    try:
        check.__wrapped__(*students)
    except StudentError as error:
        what = failure_of(error).what
    except CheckFailure as error:
        what = error.what
    else:
        return ""
    finally:
        _collector.reset(token)
    name = students[0].name
    return f"{name}, which this may use, fails its own check ({what}): begin there."


def refuse(name: str, why: str, *, on: str, got: str = "", expected: str = "") -> None:
    """Reject an answer as the known mistake of this name."""
    raise CheckFailure(name, on=on, got=got, expected=expected, why=why, mistake=name)


def refuse_if(condition: bool, name: str, why: str, **say: str) -> None:
    """Reject an answer as a known mistake, if it is one."""
    if condition:
        refuse(name, why, **say)


# --- expectations ---------------------------------------------------------------------


def close(got: Data, expected: Data, tolerance: float = TOLERANCE) -> bool:
    """Compare data of any nesting; tensors by shape and by value, NaN equal to NaN."""
    if isinstance(got, torch.Tensor) and isinstance(expected, torch.Tensor):
        if got.shape != expected.shape or got.is_complex() != expected.is_complex():
            return False
        if got.numel() <= FEW and not got.is_complex():
            pairs = zip(_entries(got), _entries(expected), strict=True)
            return all(a == b or _are_close(a, b, tolerance) for a, b in pairs)
        widest = torch.complex128 if got.is_complex() else torch.float64
        return torch.allclose(
            got.to(widest),
            expected.to(widest),
            rtol=tolerance,
            atol=tolerance,
            equal_nan=True,
        )
    if isinstance(got, bool) or isinstance(expected, bool):
        return got is expected
    if isinstance(got, (int, float)) and isinstance(expected, (int, float)):
        return math.isclose(got, expected, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(got, (list, tuple)) and isinstance(expected, (list, tuple)):
        return len(got) == len(expected) and all(
            close(a, b, tolerance) for a, b in zip(got, expected, strict=True)
        )
    if isinstance(got, dict) and isinstance(expected, dict):
        return got.keys() == expected.keys() and all(
            close(got[key], expected[key], tolerance) for key in expected
        )
    return type(got) is type(expected) and got == expected


def _entries(values: torch.Tensor) -> list[float]:
    found: list[float] = values.detach().flatten().tolist()
    return found


def _are_close(got: float, expected: float, tolerance: float) -> bool:
    """Compare two numbers that differ as torch.allclose does, NaN equal to NaN."""
    distance = abs(got - expected)
    if distance <= tolerance + tolerance * abs(expected):
        return distance != math.inf
    return got != got and expected != expected


def name_mistake(
    got: Data, mistakes: Iterable[Mistake], on: str, expected: Data, tolerance: float
) -> None:
    """Raise for the first known mistake whose value the answer equals.

    ``expected`` is the right value, or words for it.
    """
    for mistake in () if is_trying() else mistakes:
        if close(got, mistake.value, tolerance):
            shown = show(got), expected
            if not isinstance(expected, str):
                shown = show_both(got, expected, tolerance)
            failure = CheckFailure(
                mistake.name,
                on=on,
                got=shown[0],
                expected=shown[1],
                why=mistake.why,
                mistake=mistake.name,
                section=mistake.section,
            )
            failure.compared = not isinstance(expected, str)
            raise failure


def tensor(
    got: Data,
    *,
    shape: tuple[int, ...] | None = None,
    dtype: torch.dtype | None = None,
    finite: bool = True,
    what: str = "the result",
    on: str = "",
    why: str = "",
) -> None:
    """Expect a tensor: type, then shape, then dtype, then finite values."""
    if not isinstance(got, torch.Tensor):
        form(got, torch.empty(shape or ()), what=what, on=on)
        cause = "The function ends without `return`." if got is None else why
        _fail(f"{what} is not a tensor", on, show(got), "a torch.Tensor", cause)
    if shape is not None and tuple(got.shape) != tuple(shape):
        _fail(f"{what} has the wrong shape", on, f"{tuple(got.shape)}", f"{shape}", why)
    if dtype is not None and got.dtype != dtype:
        why = why or DTYPES.get((got.dtype, dtype), "")
        _fail(f"{what} has the wrong dtype", on, f"{got.dtype}", f"{dtype}", why)
    if finite and got.is_floating_point() and not got.isfinite().all():
        bad = "NaN" if got.isnan().any() else "infinity"
        _fail(f"{what} contains {bad}", on, show(got), "finite numbers", why)


def equal(
    got: Data,
    expected: Data,
    *,
    what: str = "the result",
    on: str = "",
    why: str = "",
    mistakes: Iterable[Mistake] = (),
    tolerance: float = TOLERANCE,
) -> None:
    """Expect a value: known mistakes are named first, then type, shape and values.

    What may stand for what, and what gets a message of its own, says ``forms``.
    """
    came = got
    got = as_asked(got, expected)
    if is_collecting():
        _take_note(came, got, expected, mistakes, on, what, why, tolerance)
        return
    if close(got, expected, tolerance) and _same_dtype(got, expected):
        return
    if not close(got, expected, tolerance):
        name_mistake(got, mistakes, on, expected, tolerance)
    form(got, expected, what=what, on=on)
    try:
        _expect_value(got, expected, what, on, why, tolerance)
    except CheckFailure as failure:
        failure.compared = True
        raise


def _take_note(came, got, expected, mistakes, on, what, why, tolerance) -> None:
    collector, calls = _collector.get()
    asked = next((call for call in reversed(calls) if call.gave(came)), None)
    comparison = Comparison(got, expected, on, what, tolerance, why).of(asked)
    collector.note(comparison, mistakes)


def _expect_value(got, expected, what, on, why, tolerance) -> None:
    if isinstance(expected, torch.Tensor):
        finite = not expected.is_floating_point() or bool(expected.isfinite().all())
        tensor(
            got,
            shape=tuple(expected.shape),
            dtype=expected.dtype,
            finite=finite,
            what=what,
            on=on,
            why=why,
        )
        _fail_at_first_difference(got, expected, what, on, why, tolerance)
    if isinstance(expected, dict):
        _expect_dict(got, expected, what=what, on=on, why=why, tolerance=tolerance)
    if isinstance(expected, (list, tuple)):
        _expect_items(got, expected, what=what, on=on, why=why, tolerance=tolerance)
    if got is None:
        why = "The function ends without `return`."
    elif type(got) is not type(expected) and not _both_numbers(got, expected):
        wanted = type(expected).__name__
        _fail(f"{what} has the wrong type", on, show(got), f"a {wanted}", why)
    _fail(f"{what} is wrong", on, *show_both(got, expected, tolerance), why)


def form(got: Data, expected: Data, *, what: str = "the result", on: str = "") -> None:
    """Expect a tensor, a number or a list, whichever is asked for."""
    other = other_form(got, expected)
    if other:
        name, why = other
        where = on if what == "the result" else f"{what}; {on}".removesuffix("; ")
        came, asked = show_both(got, expected, TOLERANCE)
        if isinstance(expected, torch.Tensor):
            asked = f"a tensor of shape {tuple(expected.shape)}"
        raise CheckFailure(
            name, on=where, got=came, expected=asked, why=why, mistake=name
        )


def true(
    condition: bool,
    what: str,
    *,
    on: str = "",
    got: str = "",
    expected: str = "",
    why: str = "",
    mistake: str | None = None,
    section: str | None = None,
) -> None:
    """Expect a property; ``what`` says what is wrong when it does not hold."""
    if not condition:
        raise CheckFailure(
            what,
            on=on,
            got=got,
            expected=expected,
            why=why,
            mistake=mistake,
            section=section,
        )


def raises(
    kind: str,
    call: Callable[[], Data],
    *,
    on: str,
    why: str = "",
    mistake: str | None = None,
) -> None:
    """Expect the student's code to refuse an input with the named exception."""
    try:
        value = call()
    except StudentError as error:
        if error.kind == kind:
            return
        if error.kind in ("NotImplementedError", "forbidden"):
            raise
        got = f"{error.kind}: {shortened(error.text, LONGEST_TEXT)}"
    else:
        got = f"no exception, but {show(value)}"
    raise CheckFailure(
        f"should raise {kind}", on=on, got=got, expected=kind, why=why, mistake=mistake
    )


def _fail(what: str, on: str, got: str, expected: str, why: str) -> None:
    raise CheckFailure(what, on=on, got=got, expected=expected, why=why)


def _both_numbers(a: Data, b: Data) -> bool:
    numbers = (int, float)
    return type(a) in numbers and type(b) in numbers


def _same_dtype(got: Data, expected: Data) -> bool:
    if isinstance(got, torch.Tensor) and isinstance(expected, torch.Tensor):
        return got.dtype == expected.dtype
    if isinstance(expected, (list, tuple)):
        return type(got) is type(expected) and all(map(_same_dtype, got, expected))
    if isinstance(expected, dict):
        return all(_same_dtype(got[key], expected[key]) for key in expected)
    return True


def _fail_at_first_difference(got, expected, what, on, why, tolerance) -> None:
    wrong = differ(got, expected, tolerance)
    place = tuple(wrong.nonzero()[0].tolist())
    at = f", first at index {list(place)}" if place else ""
    _fail(
        f"{what}: {int(wrong.sum())} of {wrong.numel()} values are wrong{at}",
        on,
        *show_both(got, expected, tolerance),
        why,
    )


def _expect_dict(got, expected, *, what, on, why, tolerance) -> None:
    if not isinstance(got, dict):
        _fail(f"{what} has the wrong type", on, show(got), "a dict", why)
    if got.keys() != expected.keys():
        _fail(f"{what} has other keys", on, show_keys(got), show_keys(expected), why)
    for key, value in expected.items():
        where = f"{what}[{key!r}]"
        equal(got[key], value, what=where, on=on, why=why, tolerance=tolerance)


def _expect_items(got, expected, *, what, on, why, tolerance) -> None:
    wanted = type(expected).__name__
    if type(got) is not type(expected):
        _fail(f"{what} has the wrong type", on, show(got), f"a {wanted}", why)
    if len(got) != len(expected):
        _fail(
            f"{what} has the wrong length", on, f"{len(got)}", f"{len(expected)}", why
        )
    for index, value in enumerate(expected):
        where = f"{what}[{index}]"
        equal(got[index], value, what=where, on=on, why=why, tolerance=tolerance)
