"""Let a function that does not return raise at once, wherever it is called from.

A check that waited for a function in vain does not call it again, but later answers of
the student's may. When one of them does not return either, because it waits for that
function, the function gets another body: everything that calls it then fails at once.
"""

import functools
import types
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from autograder.interface import CALLS_ENDLESS, StudentError

METHODS = ("__init__", "forward")  # of a class, those that a check runs


def refuse(name: str) -> NoReturn:
    """Say that a function was not called."""
    raise StudentError(CALLS_ENDLESS, f"calls {name}, which does not return")


def end_those_that_run(found: dict[str, Any], frame: types.FrameType | None) -> None:
    """Give functions another body that are being called.

    Args:
        found: functions and classes that are known not to return, by name.
        frame: the innermost one of what is being run.
    """
    running = set(_codes(frame))
    for name, target in found.items():
        for function in _functions(target):
            if function.__code__ in running:
                function.__code__ = _body(name, function.__code__.co_freevars)


def _codes(frame: types.FrameType | None) -> Iterator[types.CodeType]:
    while frame:
        yield frame.f_code
        frame = frame.f_back


def _functions(target: Any) -> Iterable[types.FunctionType]:
    is_class = isinstance(target, type)
    found = [vars(target).get(each) for each in METHODS] if is_class else [target]
    return [each for each in found if isinstance(each, types.FunctionType)]


@functools.cache
def _body(name: str, enclosed: tuple[str, ...]) -> types.CodeType:
    """Compile a body that refuses; it must have the enclosed variables of the old."""
    text = f"""
def outer({", ".join(enclosed)}):
    def endless(*args, **kwargs):
        from autograder.boundary.endless import refuse
        refuse({name!r})
        return ({"".join(f"{each}, " for each in enclosed)})
    return endless
"""
    codes = [compile(text, __file__, "exec")]
    while codes[-1].co_name != "endless":
        parts = codes[-1].co_consts
        codes.append(next(x for x in parts if isinstance(x, types.CodeType)))
    return codes[-1]
