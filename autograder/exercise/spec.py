"""One exercise, one specification: its oracle, and each of its mistakes written once.

A mistake is written as a student would have written it, as a function of what the
answer is called with. From that comes what the check names (the value that the mistake
gives on the check's own inputs), and an answer for the bank, which is handed in to
prove that it is refused under this name.

>>> gelu = Function("gelu", answer="gelu", oracle=F.gelu)
>>> @gelu.mistake("the factor x is missing", "This is the gate; it multiplies x.")
... def _(x):
...     return torch.special.ndtr(x)
"""

import contextlib
import functools
import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from autograder import expect
from autograder.exercise.naming import Mistake, Pairs, pairs_wanted
from autograder.exercise.remembered import NotKept, Remembered, key_of
from autograder.expect import describe_error, refuse, refuse_if, show
from autograder.interface import Data, StudentError, StudentFunction

UNASKED: Data = object()  # stands for a right value that the oracle has to give
UNFIT = (  # what a mistake raises that is none on this input
    RuntimeError,
    LookupError,
    ValueError,
    ArithmeticError,
    TypeError,
    AttributeError,
)
GRADIENT = 1e-4  # tolerance of a gradient: sums of many terms, in another order


@dataclass(frozen=True, eq=False)
class Case:
    """One input of a check.

    Args:
        on: what a message calls it: "the example by hand", "random x (3, 4)".
        inputs: what the answer is called with.
        expected: the right value, where it is known by hand; else the oracle is asked.
        given: what oracle and mistakes are told besides: parameters, options.
        tolerance: absolute and relative.
        unless_finite: the name and reason of the mistake that a NaN gives away.
        what: what a message calls the value.
        why: what a message says of a wrong value that has no name.
    """

    on: str
    inputs: tuple
    expected: Data = UNASKED
    given: tuple = ()
    tolerance: float = expect.TOLERANCE
    unless_finite: tuple[str, str] | None = None
    what: str = "the result"
    why: str = ""

    @property
    def passed(self) -> tuple:
        """The inputs as they are passed: what is None at the end is left out."""
        count = len(self.inputs)
        while count and self.inputs[count - 1] is None:
            count -= 1
        return self.inputs[:count]


def foreseen(student: StudentFunction, cases: Iterable[Case]) -> Iterator[Case]:
    """Give cases that are asked in this order, whatever is answered.

    Answers then come together: one by one, the way to another process takes longer
    than most answers do.
    """
    cases = list(cases)
    student.ahead([case.passed for case in cases])
    yield from cases


@dataclass(frozen=True)
class Known:
    """A mistake as it was written."""

    name: str
    why: str
    answer: Callable[..., Data]
    section: str | None = None
    when: Callable[..., bool] | None = None


REMEMBERED = Remembered()


def _given_by(known: Known, given: tuple, options: dict) -> tuple[Data, ...]:
    """Compute what a mistake gives; nothing, where it does not fit the input."""
    with contextlib.suppress(*UNFIT):
        if known.when is None or known.when(*given, **options):
            return (known.answer(*given, **options),)
    return ()


@dataclass
class Specification:
    """What an exercise is checked by, and what is known to go wrong.

    Args:
        exercise: its name in the notebook, "layer-norm".
        answer: what the student defines, "LayerNorm".
        oracle: gives the right value; called as the mistakes are.
        mistakes: what is known, in the order in which it is tried.
        accidents: words of an exception, with the name and reason of what causes it.
    """

    exercise: str
    answer: str
    oracle: Callable[..., Data] | None = None
    mistakes: list[Known] = field(default_factory=list)
    accidents: list[tuple[str, str, str]] = field(default_factory=list)

    def mistake(
        self,
        name: str,
        why: str,
        *,
        section: str | None = None,
        when: Callable[..., bool] | None = None,
    ) -> Callable:
        """Decorate a mistake, written as the answer of a student.

        Args:
            name: what the message calls it.
            why: the reason, and what to do.
            section: the label in the book, if it is not the check's own.
            when: whether the mistake shows for these arguments; on others it gives
                what is right, or something that is another mistake's.
        """

        def add(answer: Callable[..., Data]) -> Callable[..., Data]:
            self.mistakes.append(Known(name, why, answer, section, when))
            return answer

        return add

    def slips(
        self,
        rule: Callable[..., Data],
        *slips: tuple[str, str, dict[str, Any]],
        when: Callable[..., bool] | None = None,
    ) -> None:
        """State mistakes that each set other keywords of one function.

        Any two of them that set none in common are looked for together, too.

        Args:
            rule: gives what is right without keywords, called as the mistakes are.
            slips: the name, the reason, and the keywords of each.
            when: as for ``mistake``, for all of them.
        """
        for name, why, changes in slips:
            self.mistake(name, why, when=when)(functools.partial(rule, **changes))

    def accident(self, words: str, name: str, why: str) -> None:
        """Name what lies behind an exception: words of its kind or of its text."""
        self.accidents.append((words, name, why))

    def known(self, *given: Data, **options: Data) -> Iterator[Mistake]:
        """Compute what each mistake gives; leave out those that do not fit the input.

        Nothing is computed before it is asked for, so a right answer costs nothing.
        """
        pairs = pairs_wanted.get()
        if pairs is not None:
            yield from self._known_pairs(pairs, given, options)
            return
        try:
            asked = key_of((given, options))
        except NotKept:
            asked = None
        for number, each in enumerate(self.mistakes):
            compute = functools.partial(_given_by, each, given, options)
            key = None if asked is None else (each, asked)
            for value in REMEMBERED.value(key, compute) if key else compute():
                yield Mistake(each.name, value, each.why, each.section, number)

    def _known_pairs(
        self, pairs: Pairs, given: tuple, options: dict
    ) -> Iterator[Mistake]:
        """Compute what two mistakes give that are rules for one function."""
        for way, first, second, answer in self._pairs:
            if pairs.ways is None or way in pairs.ways:
                with contextlib.suppress(*UNFIT):
                    name = f"{first.name}, and {second.name}"
                    why = f"{first.why}\n{second.why}"
                    shown = [
                        each
                        for each in (first, second)
                        if each.when is None or each.when(*given, **options)
                    ]
                    if len(shown) == 1:
                        answer = shown[0].answer
                    if shown:
                        value = answer(*given, **options)
                        yield Mistake(name, value, why, first.section, way)

    @functools.cached_property
    def _pairs(self) -> list[tuple[tuple[int, int], Known, Known, Callable]]:
        """Join any two mistakes that set other rules of the same function.

        ``partial(take, sign=1)`` and ``partial(take, decay=none)`` are made together in
        ``partial(take, sign=1, decay=none)``.
        """
        rules = [
            (number, each, each.answer)
            for number, each in enumerate(self.mistakes)
            if isinstance(each.answer, functools.partial)
        ]
        return [
            ((i, j), one, other, functools.partial(a.func, **a.keywords, **b.keywords))
            for (i, one, a), (j, other, b) in itertools.combinations(rules, 2)
            if a.func is b.func and not (a.args or b.args or one.name == other.name)
            if a.keywords.keys().isdisjoint(b.keywords)
        ]

    def judge(self, student: StudentFunction, case: Case) -> Data:
        """Ask for one case, expect the right value, and return what came."""
        with self.accidents_named():
            got = student(*case.passed)
        self.compare(got, case)
        return got

    def compare(self, got: Data, case: Case) -> None:
        """Expect the right value of what came for a case."""
        if case.unless_finite:
            expect_finite(got, *case.unless_finite, on=case.on)
        expect.equal(
            got,
            self.right(case),
            what=case.what,
            on=case.on,
            why=case.why,
            mistakes=self.known(*case.inputs, *case.given),
            tolerance=case.tolerance,
        )

    def judge_all(self, student: StudentFunction, cases: Iterable[Case]) -> None:
        """Ask for every case, in order."""
        for case in foreseen(student, cases):
            self.judge(student, case)

    def right(self, case: Case) -> Data:
        """The right value of a case."""
        if case.expected is not UNASKED:
            return case.expected
        return self.ask_oracle(*case.inputs, *case.given)

    def ask_oracle(self, *told: Data) -> Data:
        """What the oracle gives for inputs, parameters and options.

        Raises:
            TypeError: there is no oracle.
        """
        if self.oracle is None:
            raise TypeError(f"{self.exercise}: no oracle, and no value by hand")
        return self.oracle(*told)

    def accidents_named(self) -> contextlib.AbstractContextManager:
        """Name the mistake behind an exception of the student's code."""
        return errors_named(*self.accidents)

    def judge_gradient(
        self,
        student: StudentFunction,
        case: Case,
        cotangent: torch.Tensor,
        *,
        wrt: tuple[int, ...] = (0,),
        parameters: Iterable[str] = (),
        tolerance: float = GRADIENT,
        output: int | None = None,
    ) -> None:
        """Expect the oracle's gradients with respect to inputs and parameters.

        Args:
            student: the function, or the module with its parameters loaded.
            case: the input; the parameters stand first among what is ``given``, in the
                order in which they were loaded into the module.
            cotangent: of the shape of the result.
            wrt: the inputs that are differentiated.
            parameters: their names, if not all that were loaded are given.
            tolerance: absolute and relative.
            output: which of several results.
        """
        found = student.gradients(
            *case.inputs, wrt=wrt, cotangent=cotangent, output=output
        )
        if self.oracle is None:
            raise TypeError(f"{self.exercise}: no oracle to differentiate")
        names = _argument_names(self.oracle, wrt)
        order = parameters or student.loaded or found.parameters
        trained = found.parameters
        loaded = {name: trained[name] for name in order if name in trained}
        got = dict(zip(names, found.inputs, strict=True)) | loaded
        expect_gradients(got, case.on)
        if case.unless_finite:
            for gradient in got.values():
                expect_finite(
                    gradient, *case.unless_finite, on=f"the gradient; {case.on}"
                )
        inputs = [_leaf(x) if i in wrt else x for i, x in enumerate(case.inputs)]
        count = len(loaded)
        given = [_leaf(x) if i < count else x for i, x in enumerate(case.given)]
        sources = [inputs[index] for index in wrt] + given[:count]

        def differentiate(value: Data) -> tuple[torch.Tensor, ...]:
            value = value if output is None else value[output]
            return torch.autograd.grad((value * cotangent).sum(), sources)

        value = self.oracle(*inputs, *given)
        wanted = differentiate(value)
        for place, (name, right) in enumerate(zip(got, wanted, strict=True)):
            expect.equal(
                got[name],
                right,
                on=f"the gradient; {case.on}",
                what=f"the gradient of {name}",
                tolerance=tolerance,
                mistakes=known_gradients(
                    self.known(*inputs, *given), value, differentiate, place
                ),
            )

    def answers(self, reference: Any) -> Iterator[tuple[str, Any]]:
        """Make an answer of each mistake: its name, and what a student would hand in.

        Args:
            reference: the right function or class, whose signature is kept.
        """
        for each in self.mistakes:
            yield each.name, self.handed_in(each, reference)

    def handed_in(self, mistake: Known, reference: Any) -> Any:
        """Make an answer of a mistake."""
        raise NotImplementedError


@dataclass
class Function(Specification):
    """The specification of a function.

    Mistakes and oracle are called with the function's arguments and what ``given`` of
    a case adds; ``given`` here makes that out of the arguments, for the bank.
    """

    given: Callable[..., tuple] = lambda *arguments: ()

    def handed_in(self, mistake: Known, reference: Callable) -> Callable:
        """Put the mistake in place of what is right, wherever it shows."""
        signature = inspect.signature(reference)

        @functools.wraps(reference)
        def answer(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            told = (*bound.args, *self.given(*bound.args))
            if mistake.when is not None and not mistake.when(*told):
                return reference(*args, **kwargs)
            return mistake.answer(*told)

        return answer


@dataclass
class Module(Specification):
    """The specification of a module: its mistakes stand in place of ``forward``.

    Args:
        given: makes of a built module what oracle and mistakes are told besides the
            inputs: ``lambda module: (module.gamma, module.beta, module.epsilon)``.
    """

    given: Callable[[Any], tuple] = lambda module: tuple(module.parameters())

    def handed_in(self, mistake: Known, reference: Any) -> type:
        """Derive a class whose ``forward`` makes the mistake."""
        signature = inspect.signature(reference.forward)
        given = self.given

        def forward(module: Any, *args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(module, *args, **kwargs)
            bound.apply_defaults()
            told = (*bound.args[1:], *given(module))
            if mistake.when is not None and not mistake.when(*told):
                return reference.forward(module, *args, **kwargs)
            return mistake.answer(*told)

        vars(forward)["__signature__"] = signature
        return type(reference.__name__, (reference,), {"forward": forward})


def known_gradients(
    known: Iterable[Mistake], value: Data, differentiate: Callable, place: int
) -> Iterator[Mistake]:
    """Compute what mistakes that give the right value make of one of its gradients."""
    for each in known:
        if expect.close(each.value, value):
            with contextlib.suppress(*UNFIT):  # not one of the inputs has a part in it
                yield replace(each, value=differentiate(each.value)[place])


def _leaf(value: torch.Tensor) -> torch.Tensor:
    return value.detach().clone().requires_grad_()


def _argument_names(oracle: Callable, wrt: tuple[int, ...]) -> list[str]:
    """Name arguments as the oracle does: it is the same on both sides of a boundary."""
    names: dict[int, str] = {}
    with contextlib.suppress(ValueError):  # of PyTorch's own it may not be known
        names = dict(enumerate(inspect.signature(oracle).parameters))
    return [names.get(index, f"argument {index + 1}") for index in wrt]


# --- what every exercise may say ------------------------------------------------------


@contextlib.contextmanager
def errors_named(*accidents: tuple[str, str, str]) -> Iterator[None]:
    """Name what lies behind an exception: words of it, the mistake's name, why.

    The words are looked for in what Python prints: "IndexError: list index out of …".
    """
    try:
        yield
    except StudentError as error:
        for words, name, why in accidents:
            if words in f"{error.kind}: {error.text}":
                got = f"{error.kind}: {describe_error(error)}"
                refuse(name, why, on=error.call, got=got)
        raise


def expect_finite(got: Data, name: str, why: str, *, on: str) -> None:
    """Name the mistake that NaN or infinity in a result gives away."""
    if isinstance(got, float):
        finite = math.isfinite(got)
    elif isinstance(got, torch.Tensor) and got.is_floating_point():
        finite = bool(got.isfinite().all())
    else:
        return
    say = {"on": on, "got": show(got), "expected": "finite numbers"}
    refuse_if(not finite, name, why, **say)


CUT_OFF = (
    "A step cut the result off from it, so nothing before it could learn. Stay in "
    "PyTorch: no .detach(), .item(), .numpy(), torch.no_grad() and no "
    "torch.tensor(...) of a tensor."
)


def squeezed(axis: str, where: str) -> tuple[str, str]:
    """Name a squeeze() that takes too much, and say why: whose axis, and with what."""
    return (
        f"squeeze takes the axis of the {axis} away",
        f"squeeze() removes every axis of length 1, {where} also that of the {axis}. "
        "Name the axis that is meant, or take it by its index.",
    )


def expect_gradients(found: dict[str, torch.Tensor | None], on: str) -> None:
    """Expect that a gradient reached every input and parameter."""
    for name, gradient in found.items():
        where = f"the gradient with respect to {name}; {on}"
        say = {"on": where, "got": "None", "expected": "a tensor"}
        refuse_if(gradient is None, "no gradient comes back", CUT_OFF, **say)


def judge_parts(
    spec: Specification,
    got: Data,
    case: Case,
    names: Iterable[str],
    form: Callable[[Data], Data] = lambda results: results,
    turned: tuple[str, str] | None = None,
) -> None:
    """Expect several results, in a tuple or a dict; two slips get two names.

    What the mistakes do not explain as a whole is judged part by part. There a mistake
    that spoils several results is none of a student's who has one of these right.

    Args:
        spec: whose mistakes give all results, each in its place.
        got: what came.
        case: what was asked.
        names: of the results of a tuple, in order; of a dict, its keys.
        form: brings results that count alike into one form.
        turned: name and reason of results in reverse order; a mistake is then looked
            for in that order, too.
    """
    right, got = form(spec.right(case)), form(got)
    known: list[Mistake] = []  # computed if they are asked for

    def mistakes() -> Iterator[Mistake]:
        for each in spec.known(*case.inputs, *case.given):
            known.append(replace(each, value=form(each.value)))
            yield known[-1]
        if turned:
            yield from _in_reverse(known, *turned)

    common: dict[str, Any] = {"on": case.on, "tolerance": case.tolerance}
    expect.equal(got, right, what=case.what, mistakes=mistakes(), **common)
    if not expect.is_collecting():
        return  # it is right
    wholes = [right, *(each.value for each in known)]
    if any(expect.close(got, each, case.tolerance) for each in wholes):
        return
    places = _places(right, names)
    known = [each for each in known if _alike(each.value, right)]
    if not _alike(got, right):
        return

    def wrong(value: Data) -> set[Any]:
        """Say which parts of a value are not right."""
        return {
            place
            for place in places.values()
            if not expect.close(value[place], right[place], case.tolerance)
        }

    mine, spoilt = wrong(got), [(each, wrong(each.value)) for each in known]
    for what, place in places.items():
        parts = list(_of_part(place, spoilt, mine))
        expect.equal(got[place], right[place], what=what, mistakes=parts, **common)


def _in_reverse(known: list[Mistake], name: str, why: str) -> Iterator[Mistake]:
    """Yield each mistake in a tuple's parts as it is with these in reverse order."""
    for each in known:
        if isinstance(each.value, tuple) and each.name != name:
            both = f"{each.name}, and {name}"
            reason = f"{each.why}\n{why}"
            yield replace(each, name=both, value=each.value[::-1], why=reason)


def _places(right: tuple | dict, names: Iterable[str]) -> dict[str, Any]:
    """Where each result stands, by what a message calls it."""
    if isinstance(right, dict):
        return {repr(name): name for name in names}
    return dict(zip(names, range(len(right)), strict=True))


def _of_part(
    place: Any, spoilt: list[tuple[Mistake, set]], mine: set
) -> Iterator[Mistake]:
    """What the mistakes that spoil a part make of it; of those not made, no value."""
    for each, places in spoilt:
        if place in places:
            made = places <= mine
            yield replace(each, value=each.value[place] if made else UNASKED)


def _alike(value: Data, right: tuple | dict) -> bool:
    """Whether a value has the same parts."""
    if isinstance(right, dict):
        return isinstance(value, dict) and value.keys() == right.keys()
    return isinstance(value, (tuple, list)) and len(value) == len(right)


def expect_several(got: Data, names: Iterable[str], on: str) -> tuple:
    """Expect as many results as there are names, and return them."""
    names = list(names)
    count = "two" if len(names) == 2 else f"{len(names)}"
    say = {"on": on, "got": show(got), "expected": f"({', '.join(names)})"}
    why = f"Return them all, in this order: {', '.join(names)}."
    refuse_if(isinstance(got, torch.Tensor), f"only one of {count} results", why, **say)
    if got is None:
        why = "The function ends without `return`."
    several = isinstance(got, (tuple, list)) and len(got) == len(names)
    expect.true(several, f"{count} results are asked for", why=why, **say)
    return tuple(got)
