"""Where a statement asks for something new, the caller's own is none."""

from autograder.exercise.spec import Case
from autograder.expect import refuse_if, show
from autograder.interface import StudentFunction


def expect_new(
    student: StudentFunction, case: Case, name: str, why: str, place: int | None = None
) -> None:
    """Expect a right result that nobody else can write into.

    Args:
        student: whose value for this case is right.
        case: one in which the result equals an argument, so that it might be it.
        name: what the message calls it.
        why: the reason.
        place: of the result that is meant, if others may be the caller's own.
    """
    shared = student.shared(*case.passed)
    own = bool(shared) if place is None else place in shared
    got = f"an argument itself, or a view of it; {show(case.inputs[0])}"
    expected = "the same values in memory of their own"
    refuse_if(own, name, why, on=case.on, got=got, expected=expected)
