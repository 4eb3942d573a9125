"""What the exercises of this chapter ask for alike: float32, and an even width.

Expected values come from complex numbers, matrix exponentials and PyTorch's attention,
in float64. Answers are float32, and sin(p) of a float32 angle is off by about p · 1e-7:
tolerances are set so that any order of the same arithmetic passes.
"""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager

import torch

from autograder import expect
from autograder.exercise.spec import Case, Function, errors_named
from autograder.expect import failure_of, refuse_if
from autograder.interface import Data, StudentError, StudentFunction

NEAR = 1e-4  # positions below 100
FAR = 2e-3  # positions in the thousands


@contextlib.contextmanager
def explaining(**causes: str) -> Iterator[None]:
    """Add a likely cause to an exception in the student's code, by the kind of it."""
    try:
        yield
    except StudentError as error:
        failure = failure_of(error)
        failure.why = failure.why or causes.get(error.kind, "")
        raise failure from None


def judge_typed(
    spec: Function,
    student: StudentFunction,
    case: Case,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Expect the right values, whatever they are computed in, and then their type."""
    with spec.accidents_named():
        got = student(*case.inputs)
    real = isinstance(got, torch.Tensor) and got.is_floating_point()
    spec.compare(got.to(dtype) if real else got, case)
    expect_type(got, case.on, dtype)


def expect_type(got: Data, on: str, dtype: torch.dtype = torch.float32) -> None:
    """Expect the type of the input; anything but a tensor is another message's."""
    if not isinstance(got, torch.Tensor):
        return
    why = (
        f"The result keeps the type of x, here {dtype}: finish with .to(x.dtype)."
        if dtype != torch.float32
        else "Embeddings are float32, and adding float64 to them makes the whole model "
        "float64. Finish with .float() if you compute in another type."
        if got.is_floating_point()
        else "The result must hold real numbers: whole ones lose what comes after "
        "the point. Let it be float32 from the start."
    )
    name = f"{dtype} expected".removeprefix("torch.")
    say = {"on": on, "got": f"{got.dtype}", "expected": f"{dtype}"}
    refuse_if(got.dtype != dtype, name, why, **say)


def refuses_odd_width(student: StudentFunction, *args: Data) -> None:
    """Expect ValueError for an odd width, the last of the arguments."""
    expect.raises(
        "ValueError",
        lambda: student(*args),
        on=f"{student.name} with d_model = {args[-1]}",
        why="Sine and cosine come in pairs: an odd width leaves a sine without its "
        "cosine. Say so: raise ValueError(...).",
        mistake="odd width accepted",
    )


def wrong_axis_named(name: str, why: str, *, axes: int) -> AbstractContextManager:
    """Name what stops where x has another number of axes than the three of a batch."""
    words = ["unpack"]
    if axes != 3:
        words += ["must match", "out of range", "out of bounds", "too many indices"]
    return errors_named(*((each, name, why) for each in words))
