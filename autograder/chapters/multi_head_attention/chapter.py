"""Where the checks of this chapter send their readers, and what all of them may say."""

import contextlib
from collections.abc import Iterator

import torch

from autograder.exercise.spec import UNFIT, Case, Specification
from autograder.expect import Chapter, close, describe_error, refuse, refuse_if, show
from autograder.interface import StudentError, StudentFunction

chapter = Chapter(5, "05_multi_head_attention")


@contextlib.contextmanager
def exception_named(
    name: str, why: str, kinds: tuple[str, ...] = (), saying: str = ""
) -> Iterator[None]:
    """Give an exception this name: the answer was right until here.

    With ``kinds``, only exceptions of these kinds are named, and of them only those
    whose text contains ``saying``.
    """
    try:
        yield
    except StudentError as error:
        if error.kind in ("NotImplementedError", "signature", "in-place", "forbidden"):
            raise
        if kinds and (error.kind not in kinds or saying not in error.text):
            raise
        if kinds and "ambiguous" in error.text:
            raise  # a tensor asked for one truth value; that is explained elsewhere
        refuse(name, why, on=error.call, got=f"{error.kind}: {describe_error(error)}")


ONLY_A_BATCH = (
    "only works with a batch",
    "With a batch it works, with another number of axes in front it does not. Count "
    "axes from the end: features −1, tokens −2, and let any number of axes come "
    "before them.",
)
NO_BATCH = (
    "only works without a batch",
    "Without a batch it works, with one it does not: axis 0 is the batch then. Count "
    "axes from the end: features −1, tokens −2, heads −3.",
)


def judge_axes(
    spec: Specification, student: StudentFunction, case: Case, fewest: int
) -> None:
    """Judge a case; say so if nothing but the number of axes in front is at fault.

    Args:
        spec: of the function.
        student: the function.
        case: its first input may have any axes in front, and so has the result.
        fewest: the axes of that input where no batch stands in front.
    """
    batch_axes = case.inputs[0].dim() - fewest
    only_a_batch = exception_named(*ONLY_A_BATCH)
    by_axes = contextlib.nullcontext() if batch_axes == 1 else only_a_batch
    with by_axes, spec.accidents_named():
        got = student(*case.inputs)
    right = spec.right(case)
    if not close(got, right):
        own = ONLY_A_BATCH[0], NO_BATCH[0]
        known = any(
            each.name not in own and close(got, each.value)
            for each in spec.known(*case.inputs)
        )
        say = {"on": case.on, "got": show(got), "expected": show(right)}
        refuse_if(
            not known and _right_otherwise(student, case, fewest, right),
            *(NO_BATCH if batch_axes == 1 else ONLY_A_BATCH),
            **say,
        )
    spec.compare(got, case)


def _right_otherwise(
    student: StudentFunction, case: Case, fewest: int, right: torch.Tensor
) -> bool:
    """Ask what came out wrong with one batch axis, or with none where it had one."""
    x, *others = case.inputs
    with contextlib.suppress(StudentError, *UNFIT):
        if x.dim() == fewest + 1:
            return close(torch.stack([student(each, *others) for each in x]), right)
        flat = x.reshape(-1, *x.shape[-fewest:])
        return close(student(flat, *others).reshape(right.shape), right)
    return False


@contextlib.contextmanager
def refusal_named(name: str, why: str) -> Iterator[None]:
    """Name an exception that a student raises where nothing is wrong."""
    try:
        yield
    except StudentError as error:
        unpacked = "unpack" in error.text
        if error.kind not in ("AssertionError", "ValueError") or unpacked:
            raise
        refuse(name, why, on=error.call, got=f"{error.kind}: {describe_error(error)}")


def pair_named() -> contextlib.AbstractContextManager[None]:
    """Name what happens to a pair that is used as a tensor."""
    why = (
        "A function that returns several things gives a tuple. Take it apart first, as "
        "in z, weights = scaled_dot_product_attention(...)."
    )
    kinds = ("AttributeError", "TypeError")
    return exception_named("a tuple where a tensor is wanted", why, kinds, "tuple")
