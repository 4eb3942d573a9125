"""One value that a check compared with the right one, and how it came about."""

from dataclasses import dataclass, replace

import torch

from autograder.interface import Call, Data


@dataclass(frozen=True, eq=False)
class Comparison:
    """What was asked, what came and what is right.

    Args:
        got: the answer, or the part of it that was compared.
        expected: the right value.
        on: what a message calls the input.
        what: what a message calls the value: "the result", "the gradient of x".
        tolerance: absolute and relative, within which two values are equal.
        why: what the check says of a wrong value that has no name.
        call: the name of what was called, "" if it is not known.
        arguments: what it was called with, by parameter name where that is known.
        parameters: what its module had loaded, by name.
        training: whether the module was in training mode.
        options: the words and switches among what was passed, to the module, too.
        asked: the call itself.
    """

    got: Data
    expected: Data
    on: str = ""
    what: str = "the result"
    tolerance: float = 1e-5
    why: str = ""
    call: str = ""
    arguments: dict[str, Data] | None = None
    parameters: dict[str, torch.Tensor] | None = None
    training: bool = False
    options: tuple = ()
    asked: Call | None = None

    def of(self, call: Call | None) -> "Comparison":
        """The same, with what is known of the call that gave the answer."""
        if call is None:
            return self
        return replace(
            self,
            call=call.name,
            arguments=call.arguments,
            parameters=call.parameters,
            training=call.training,
            options=call.options,
            asked=call,
        )
