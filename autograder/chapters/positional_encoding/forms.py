"""What the exercises of this chapter ask for alike: float32, and an even width.

Expected values come from complex numbers, matrix exponentials and PyTorch's attention,
in float64. Answers are float32, and sin(p) of a float32 angle is off by about p · 1e-7:
tolerances are set so that any order of the same arithmetic passes.
"""

import contextlib
from collections.abc import Iterator

import torch

from autograder import expect
from autograder.exercise.spec import Case, Function
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


def judge_float32(spec: Function, student: StudentFunction, case: Case) -> None:
    """Expect the right values, whatever they are computed in, and float32 of them."""
    with spec.accidents_named():
        got = student(*case.inputs)
    real = isinstance(got, torch.Tensor) and got.is_floating_point()
    spec.compare(got.float() if real else got, case)
    expect_float32(got, case.on)


def expect_float32(got: Data, on: str) -> None:
    """Expect the type of embeddings; anything but a tensor is another message's."""
    if not isinstance(got, torch.Tensor):
        return
    why = (
        "Embeddings are float32, and adding float64 to them makes the whole model "
        "float64. Finish with .float() if you compute in another type."
        if got.is_floating_point()
        else "The result must hold real numbers: whole ones lose what stands behind "
        "the point. Let it be float32 from the start."
    )
    say = {"on": on, "got": f"{got.dtype}", "expected": "torch.float32"}
    refuse_if(got.dtype != torch.float32, "float32 expected", why, **say)


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
