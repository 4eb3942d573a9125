"""A loss where nothing is scored: 0, and not NaN."""

import torch

from autograder import expect
from autograder.exercise.spec import expect_finite
from autograder.expect import refuse_if
from autograder.interface import StudentError, StudentFunction


def judge_nothing_scored(student: StudentFunction, inputs: tuple, on: str) -> None:
    """Expect a loss of 0 with a gradient of 0, where no label counts.

    Args:
        student: the loss, a function of logits and more.
        inputs: what it is called with, the logits first.
        on: what a message calls it.
    """
    nothing = (
        "NaN when nothing is scored",
        "The mean of nothing is 0/0. Add the losses, and divide by their number, but "
        "at least by 1.",
    )
    got = student(*inputs)
    expect_finite(got, *nothing, on=on)
    if isinstance(got, (int, float)):
        got = torch.tensor(float(got))
    expect.equal(got, torch.tensor(0.0), on=on, what="the loss")
    try:
        gradient = student.gradients(*inputs).inputs[0]
    except StudentError as error:
        if error.kind == "NotImplementedError":
            raise
        gradient = None
    on = f"the gradient; {on}"
    why = (
        "Here the loss does not depend on the logits, so backward() stops with an "
        "error. Return a 0 that is computed from them: a sum over no positions is 0, "
        "and its gradient is 0."
    )
    say = {"on": on, "got": "none", "expected": "zeros"}
    refuse_if(gradient is None, "a constant when nothing is scored", why, **say)
    expect_finite(gradient, *nothing, on=on)
    zeros = torch.zeros_like(inputs[0])
    expect.equal(gradient, zeros, on=on, what="the gradient")
