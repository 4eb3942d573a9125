"""What a function has to refuse: inputs on which it raises a ValueError."""

from collections.abc import Callable

from autograder import expect
from autograder.chapters.embeddings.texts import write
from autograder.exercise.spec import Case, Function
from autograder.expect import describe_error, refuse
from autograder.interface import StudentError, StudentFunction

OTHER_EXCEPTION = (
    "another exception than ValueError",
    "It should say itself what is wrong: test the numbers first, and raise ValueError "
    "with a sentence that names the bad one.",
)
RETURNED = (
    "the exception is returned, not raised",
    "`return` hands an exception over like any value; `raise` stops with it.",
)


def mistakes_in_refusing(spec: Function, when: Callable[..., bool]) -> None:
    """Add what goes wrong in raising the exception, on inputs that are refused."""

    @spec.mistake(*OTHER_EXCEPTION, when=when)
    def _(*given):
        raise LookupError("no such number")

    spec.mistake(*RETURNED, when=when)(lambda *given: ValueError("no such number"))


def expect_refusal(
    spec: Function, student: StudentFunction, case: Case, accepted: tuple[str, str]
) -> None:
    """Expect a ValueError; the specification's mistakes say what came out in its place.

    Args:
        spec: its mistakes on this input are what is known.
        student: the function.
        case: the input.
        accepted: the name and reason of any other value.
    """
    try:
        value = student(*case.inputs)
    except StudentError as error:
        if error.kind == "ValueError":
            return
        if error.kind in ("NotImplementedError", "signature", "missing"):
            raise
        got = f"{error.kind}: {describe_error(error)}"
        refuse(*OTHER_EXCEPTION, on=case.on, got=got, expected="ValueError")
    say = {"on": case.on, "got": write(value), "expected": "ValueError"}
    if getattr(value, "type_name", "").endswith("Error"):
        refuse(*RETURNED, **say)
    for known in spec.known(*case.inputs):
        if expect.close(value, known.value):
            refuse(known.name, known.why, **say)
    refuse(*accepted, **say)
