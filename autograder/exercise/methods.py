"""Methods that later exercises call: each is judged by itself, not only by ``forward``.

A statement names them, with what they take and return. So an answer whose ``forward``
goes another way is right only if they are.
"""

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from autograder.exercise.spec import Known, Specification
from autograder.expect import describe_error, refuse
from autograder.interface import StudentError, StudentFunction, StudentInstance


@dataclass
class Method(Specification):
    """The specification of a method: its mistakes stand in its place.

    Args:
        method: its name.
        given: makes of a built module what oracle and mistakes are told besides the
            inputs.
    """

    method: str = ""
    given: Callable[[Any], tuple] = lambda module: tuple(module.parameters())

    def handed_in(self, mistake: Known, reference: Any) -> type:
        """Derive a class whose method makes the mistake, and whose forward does not."""
        right = getattr(reference, self.method)
        signature, given = inspect.signature(right), self.given

        def wrong(module: Any, *args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(module, *args, **kwargs)
            bound.apply_defaults()
            told = (*bound.args[1:], *given(module))
            if mistake.when is not None and not mistake.when(*told):
                return right(module, *args, **kwargs)
            return mistake.answer(*told)

        def forward(module: Any, *args: Any, **kwargs: Any) -> Any:
            same = copy.copy(module)  # with the same parameters
            same.__class__ = reference
            return reference.forward(same, *args, **kwargs)

        vars(wrong)["__signature__"] = signature
        vars(forward)["__signature__"] = inspect.signature(reference.forward)
        changed = {self.method: wrong, "forward": forward}
        return type(reference.__name__, (reference,), changed)


def methods_of(module: StudentInstance, *names: str) -> list[StudentFunction]:
    """Take the methods that a statement names; say so if one is missing."""
    with unwritten_named():
        return module.methods(*names)


@contextlib.contextmanager
def unwritten_named() -> Iterator[None]:
    """Name a method that is not there, or not written, where ``forward`` is right."""
    try:
        yield
    except StudentError as error:
        if error.kind not in ("missing", "NotImplementedError"):
            raise
        refuse(
            "forward does without a method that is asked for",
            "Later chapters call it by its name, and not through forward. Write it as "
            "the exercise says, and let forward call it.",
            on=error.call,
            got=describe_error(error) or "it is not written yet",
        )
