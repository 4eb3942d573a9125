"""What has two results, an output and the weights that it was mixed with."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace

from autograder.chapters.attention.batches import only_a_batch
from autograder.chapters.attention.oracles import Pair
from autograder.exercise.spec import (
    Case,
    Specification,
    expect_finite,
    judge_parts,
)
from autograder.expect import describe_error, refuse
from autograder.forms import several
from autograder.interface import StudentError, StudentFunction

REVERSED = ("weights returned first", "The order is (output, weights).")


def mistakes_in_returning(spec: Specification, right: Callable[..., Pair]) -> None:
    """Add the two mistakes in what is handed back."""
    spec.mistake(*REVERSED)(lambda *given: right(*given)[::-1])
    spec.mistake(
        "only the output is returned",
        "A pair is asked for: the output and the weights it was mixed with.",
    )(lambda *given: right(*given)[0])


def judge_pair(
    spec: Specification,
    student: StudentFunction,
    case: Case,
    names: tuple[str, str] = ("output", "weights"),
) -> None:
    """Expect two results; a NaN in either gives a mistake away."""
    one = only_a_batch(student, case.passed, lambda: spec.right(case))
    with spec.accidents_named(), one:
        got = several(student(*case.passed))
    for each in got if case.unless_finite and isinstance(got, tuple) else ():
        expect_finite(each, *case.unless_finite, on=case.on)
    both = replace(case, what=f"({', '.join(names)})")
    judge_parts(spec, got, both, names, turned=REVERSED)


@contextlib.contextmanager
def named(name: str, why: str, saying: str = "") -> Iterator[None]:
    """Give this name to an exception of the student's code that has these words."""
    try:
        yield
    except StudentError as error:
        others = ("NotImplementedError", "signature", "forbidden", "in-place")
        if error.kind in others or saying not in error.text:
            raise
        got = f"{error.kind}: {describe_error(error)}"
        refuse(name, why, on=error.call, got=got)


def more_axes(
    dimensions: int, name: str = "only works for 2-D inputs"
) -> contextlib.AbstractContextManager[None]:
    """Name an exception on inputs of more than two axes; it worked on two."""
    if dimensions == 2:
        return contextlib.nullcontext()
    return named(name, MORE_AXES)


MORE_AXES = (
    "One sequence works, a batch of them does not. Count from the end: exchange the "
    "last two axes with .mT or .transpose(-2, -1) (.T turns all of them round), take "
    "sizes as shape[-1] and shape[-2], sum over dim=-1."
)
