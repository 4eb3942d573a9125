"""The one place where a translated state dict is judged: names, then tensors."""

from collections.abc import Callable, Iterator, Sequence

from autograder import expect
from autograder.exercise.naming import Mistake
from autograder.exercise.parameters import Conditions, State
from autograder.exercise.showing import first_few
from autograder.expect import refuse_if, show
from autograder.interface import Data


def expect_state_dict(
    got: Data,
    expected: State,
    on: str,
    own: Callable[[list[str], list[str]], Conditions] = lambda *_: (),
    known: Sequence[Mistake] = (),
) -> None:
    """Expect a state dict with these names, and each tensor where it belongs.

    Args:
        got: what came.
        expected: the right tensors, by name.
        on: what was translated.
        own: yields an exercise's own mistakes, given the names that are missing and
            those that are too many.
        known: mistakes that concern several tensors; each value is a whole state dict.
    """
    expect_names(got, expected, on, own)
    if known:
        what = "the state dict"
        expect.equal(got, expected, on=on, what=what, mistakes=known)
    for name, right in expected.items():
        other, what = _misplaced(name, expected, got), f"the tensor {name!r}"
        expect.equal(got[name], right, on=on, what=what, mistakes=other)


def expect_names(
    got: Data,
    expected: State,
    on: str,
    own: Callable[[list[str], list[str]], Conditions] = lambda *_: (),
) -> None:
    """Expect a dict with these names; the arguments are those of expect_state_dict."""
    is_none = "The function ends without `return`." if got is None else ""
    count = f"{len(expected)} names"
    say = {"on": on, "got": show(got), "expected": f"a dict of {count}", "why": is_none}
    expect.true(isinstance(got, dict), "the result is not a dict", **say)
    missing = [name for name in expected if name not in got]
    extra = [str(name) for name in got if name not in expected]
    say = {
        "on": on,
        "got": f"{len(got)} names, among them {first_few(extra, 4) or '…'}",
        "expected": f"{count}, among them {first_few(missing, 4) or 'no others'}",
    }
    for condition, name, why in (*own(missing, extra), *_misnamed(missing, extra)):
        refuse_if(bool(condition), name, why, **say)


def _misnamed(missing: list[str], extra: list[str]) -> Iterator[tuple]:
    last = [name.rpartition(".")[2] for name in missing]
    biases = all(name == "beta" or name.startswith("b_") for name in last)
    yield (
        missing and not extra and biases,
        "biases left out",
        f"Not there: {first_few(missing, 5)}. Copy the biases as well.",
    )
    lost = f"Not there: {first_few(missing, 5)}. " if missing else ""
    yield (
        missing or extra,
        "the result has other names",
        f"{lost}Compare the names with those of the module's own state_dict().",
    )


def _misplaced(name: str, expected: State, got: dict) -> Iterator[Mistake]:
    """Say what else the tensor of this name may hold."""
    right = expected[name]
    if right.dim() == 2:
        why = "nn.Linear keeps its matrix as (out, in). Here it is (in, out): .T"
        yield Mistake("a matrix is not transposed", right.mT, why)
    for other, value in expected.items():
        if value.shape == right.shape and other != name:
            why = f"{name} holds what belongs to {other}."
            if expect.close(got[other], value):
                why += f" So does {other}: one tensor is lost, the other there twice."
                yield Mistake("one tensor under two names", value, why)
            else:
                yield Mistake("two tensors exchanged", value, why)
