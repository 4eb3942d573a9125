"""The one place where a module's parameters are judged: names, shapes, and starts.

A mistake that only one exercise has is told before the common ones, by ``own``.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn

from autograder.exercise.showing import first_few
from autograder.expect import refuse, refuse_if, show
from autograder.interface import StudentInstance

State = dict[str, torch.Tensor]
Shapes = dict[str, tuple[int, ...]]
Conditions = Iterable[tuple[bool, str, str]]  # whether it is so, its name, why

SHOWN = 6  # parameters that a message lists
NARROWEST, WIDEST = 0.5, 1.7  # of the spread that is asked for; uniform ones have 0.58


def expect_parameters(
    student: StudentInstance,
    shapes: Shapes,
    on: str,
    own: Callable[[State, list[str], list[str]], Conditions] = lambda *_: (),
) -> None:
    """Expect parameters of these names and shapes, and no others.

    Args:
        student: the module that was built.
        shapes: the shape of each parameter, by its name in the state dict.
        on: how it was built.
        own: yields an exercise's own mistakes, given the state dict, the names that
            are missing and those that are too many.
    """
    state, trained = student.state_dict(), student.parameter_names()
    missing = [name for name in shapes if name not in trained]
    extra = [name for name in trained if name not in shapes]
    say = _described(state, shapes, trained, on)
    for condition, name, why in (
        *own(state, missing, extra),
        *_shared_misread(student, state, shapes, missing),
        *_names_misread(state, shapes, missing, extra),
        *(() if missing or extra else _shapes_misread(state, shapes)),
    ):
        refuse_if(bool(condition), name, why, **say)
    _expect_own_numbers(state, shapes, on)


def _described(state: State, shapes: Shapes, trained: list[str], on: str) -> dict:
    """Write what is there and what is asked for; of long lists what differs."""
    notable = [n for n in shapes if n not in trained or state[n].shape != shapes[n]]
    notable += [name for name in trained if name not in shapes]
    few = len(shapes) <= SHOWN and len(state) <= SHOWN
    chosen = [*state, *shapes] if few else notable[:SHOWN]
    got = {
        name: f"{name} {tuple(x.shape)}"
        + ("" if name in trained else " (not a parameter)")
        for name, x in state.items()
    }
    wanted = {name: f"{name} {shape}" for name, shape in shapes.items()}
    none = "parameters, none of these"
    return {
        "on": on,
        "got": _chosen(got, chosen) or f"{len(trained)} {none}",
        "expected": _chosen(wanted, chosen) or f"{len(shapes)} {none}",
    }


def _chosen(texts: dict[str, str], names: list[str]) -> str:
    """List what is said of these names; "…" stands for the others, "" if none is."""
    first = [text for name, text in texts.items() if name in names]
    others = [text for name, text in texts.items() if name not in names]
    return first_few([*first, *others], len(first)) if first else ""


ONLY = (
    "Only an nn.Parameter, or a module, that is an attribute of the module is found by "
    "an optimiser."
)


def _names_misread(
    state: State, shapes: Shapes, missing: list[str], extra: list[str]
) -> Iterator[tuple[bool, str, str]]:
    lost = first_few(sorted(missing), 5)
    inside = any(n.endswith((".weight", "_weight")) and n not in shapes for n in extra)
    yield (
        bool(missing) and inside,
        "PyTorch's module in place of your own",
        "nn.Linear and its like would do the same work, but they hide the matrix and "
        "store its transpose. Here the matrices themselves are the parameters: "
        "nn.Parameter, under the names of the docstring.",
    )
    yield (
        bool(missing) and any(name in state for name in missing),
        "a buffer in place of a parameter",
        f"{lost}: it moves with the module but is never trained. {ONLY}",
    )
    biases = all(name.rpartition(".")[2].startswith("b") for name in missing)
    yield (
        bool(missing) and biases and not extra,
        "the biases are missing",
        f"Not there: {lost}. Each projection is x W + b.",
    )
    yield (
        bool(missing) and not extra,
        "parameters are missing",
        f"Not among the parameters: {lost}. {ONLY}",
    )
    yield (
        bool(missing),
        "the parameters have other names",
        "The check loads its own numbers by name: keep the names of the docstring.",
    )
    biases = all(name.rpartition(".")[2].startswith("b") for name in extra)
    yield (
        bool(extra) and biases,
        "the projections have a bias",
        "Here y = x W, without a bias.",
    )
    yield (
        bool(extra),
        "one parameter too many",
        f"Not asked for: {first_few(sorted(extra), 5)}.",
    )


def _shared_misread(
    student: StudentInstance, state: State, shapes: Shapes, missing: list[str]
) -> Iterator[tuple[bool, str, str]]:
    """Look for names of one parameter: what one is given, the other has."""
    lost = [name for name in missing if name in state]
    if not lost:
        return
    given = enumerate(state.items())
    student.load_state_dict({n: torch.full_like(x, float(i)) for i, (n, x) in given})
    found = student.state_dict()
    student.load_state_dict(state)
    for name, other in itertools.product(lost, shapes):
        if other in found and other not in lost:
            yield (
                torch.equal(found[other], found[name]),
                "one parameter under several names",
                f"{other} and {name} are one and the same: what one learns, the other "
                "has, too. Make an nn.Parameter for each.",
            )


def _shapes_misread(state: State, shapes: Shapes) -> Iterator[tuple[bool, str, str]]:
    wrong = [name for name in shapes if tuple(state[name].shape) != shapes[name]]
    if not wrong:
        return
    yield (
        all(tuple(state[name].shape) == shapes[name][::-1] for name in wrong),
        "weights stored transposed",
        "Vectors are rows, y = x W, so a matrix is (width in, width out). Only "
        "torch.nn.Linear stores the transpose.",
    )
    yield (
        all(
            state[name].dim() == len(shapes[name]) + 1
            and state[name].numel() == math.prod(shapes[name])
            for name in wrong
        ),
        "one axis too many",
        "A bias or a gamma is one row of numbers: (d,), not (1, d) or (d, 1).",
    )
    yield (
        all(state[name].numel() == 1 for name in wrong),
        "one number for all features",
        "One number for each feature: the parameter has the width of the token.",
    )
    yield True, "parameters of other shapes", f"Look at {first_few(wrong, 5)}."


def _expect_own_numbers(state: State, shapes: Shapes, on: str) -> None:
    """Expect that no two parameters of a module were drawn as one."""
    drawn = [
        name
        for name in shapes
        if state[name].numel() > 1 and state[name].unique().numel() > 1
    ]
    for one, other in itertools.combinations(drawn, 2):
        owners = {name.rpartition(".")[0] for name in (one, other)}
        refuse_if(
            len(owners) == 1 and torch.equal(state[one], state[other]),
            "two parameters start with the same numbers",
            "What is drawn once and used twice may even be one memory, and then "
            "training changes both. Draw each by itself.",
            on=f"{on}, freshly built",
            got=f"{one} and {other} with the same numbers",
            expected="other numbers in each",
        )


def expect_constant(
    state: State, name: str, value: float, on: str, mistake: str, why: str
) -> None:
    """Expect a parameter that starts with the same number everywhere."""
    say = {"on": f"{on}, freshly built", "got": f"{name} = {show(state[name])}"}
    wrong = not bool((state[name] == value).all())
    refuse_if(wrong, mistake, why, expected=f"{value:g} everywhere", **say)


def expect_biases_of_zero(state: State, names: Iterable[str], on: str) -> None:
    """Expect biases that start at zero."""
    why = "Biases start at 0, so that at first the matrices alone count."
    for name in names:
        expect_constant(state, name, 0.0, on, "the biases do not start at zero", why)


def expect_spread(
    value: torch.Tensor, wanted: float, on: str, *, name: str, formula: str, why: str
) -> None:
    """Expect random numbers around 0 with this standard deviation.

    One rule for all exercises: half of what is asked for to 1.7 times as much. Build
    the module with widths of which the larger is at least six times the smaller: then
    the root of the other width is outside.

    Args:
        value: the parameter, at least 1,000 numbers.
        wanted: the standard deviation.
        on: how the module was built.
        name: what a message calls the parameter.
        formula: how ``wanted`` comes about: "1/√d_model".
        why: what happens with other starts.
    """
    if value.numel() < 1000:
        raise ValueError(f"{name}: {value.numel()} numbers do not tell their spread")
    spread, mean = value.std().item(), value.mean().item()
    say = {
        "on": f"{on}, freshly built",
        "got": f"{name} with a standard deviation of {spread:.3f}"
        + _root_of_a_width(value, spread),
        "expected": f"about {formula} = {wanted:.3f}",
    }
    refuse_if(not spread > 0.01 * wanted, "the weights all start alike", ALIKE, **say)
    if abs(mean) > max(spread, wanted) / 4:
        around = "Draw from both sides of 0: torch.randn, not torch.rand."
        centre = {"got": f"{name} with a mean of {mean:.3f}", "expected": "a mean of 0"}
        refuse("the weights do not start around 0", around, **say | centre)
    refuse_if(spread > WIDEST * wanted, "the weights start too large", why, **say)
    refuse_if(
        not spread > NARROWEST * wanted, "the weights start too small", why, **say
    )
    _expect_all_drawn(value, on, name)


ALIKE = "Features that start alike get the same gradient and never become different."


def _root_of_a_width(value: torch.Tensor, spread: float) -> str:
    """Say whose root the spread is one over, "" if of no width of the matrix."""
    widths = [n for n in value.shape if abs(spread * math.sqrt(n) - 1) < 0.05]
    return f", about 1/√{widths[0]}" if widths else ""


def _expect_all_drawn(value: torch.Tensor, on: str, name: str) -> None:
    """Expect no row and no column with one number everywhere or those of another."""
    if value.dim() != 2 or min(value.shape) < 3:
        return  # two equal numbers may be chance
    some = "some of the weights start alike"
    why = f"{ALIKE} Draw every entry by itself."
    say = {"on": f"{on}, freshly built", "expected": "random numbers everywhere"}
    for line, lines in (("row", value), ("column", value.mT)):
        still = (lines == lines[:, :1]).all(dim=1)
        if still.any():
            at = int(still.int().argmax())
            got = f"{line} {at} of {name} holds {lines[at, 0]:g} everywhere"
            refuse(some, why, got=got, **say)
        different = len({line.tobytes() for line in lines.numpy()})
        got = f"{len(lines)} {line}s of {name}, of which {different} are different"
        refuse_if(different < len(lines), some, why, got=got, **say)


# --- the bank's own copies ------------------------------------------------------------


def structural(reference: type, *names: str) -> Iterator[tuple[str, type]]:
    """Derive classes that do to a parameter what students do, for the bank.

    Args:
        reference: the right class.
        names: its parameters, as attributes of the module itself.
    """
    first = names[0]

    def plain(module: Any) -> None:
        value = module._parameters.pop(first)
        object.__setattr__(module, first, value.detach())

    def buffer(module: Any) -> None:
        module.register_buffer(first, module._parameters.pop(first).detach())

    def renamed(module: Any) -> None:
        value = module._parameters.pop(first)
        module._parameters[f"{first}_own"] = value

    def extra(module: Any) -> None:
        module.another = nn.Parameter(torch.zeros(2))

    for mistake, change in (
        ("parameters are missing", plain),
        ("a buffer in place of a parameter", buffer),
        ("the parameters have other names", renamed),
        ("one parameter too many", extra),
    ):
        yield mistake, _changed(reference, change)


def _changed(reference: Any, change: Callable[[Any], None]) -> type:
    @functools.wraps(reference.__init__)
    def build(module: Any, *args: Any, **kwargs: Any) -> None:
        reference.__init__(module, *args, **kwargs)
        change(module)

    return type(reference.__name__, (reference,), {"__init__": build})
