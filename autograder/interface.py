"""What a check sees of a student's work: data go in, data come out.

A check never touches a student's object. It holds a ``StudentFunction`` or a
``StudentModule`` and exchanges tensors, numbers, strings, lists, tuples and dicts with
it. An argument may also be another object of the student's, such as a model that a
decoder runs: it is named, and stays where it is. In an open notebook the classes below
that start with ``Local`` stand behind that interface: thin wrappers in the same
process. A grader may put another process behind it; a check cannot tell.
"""

import contextlib
import functools
import inspect
import io
import itertools
import linecache
import sysconfig
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder import forbidden as forbidding
from autograder import time_limit
from autograder.held import Held
from autograder.time_limit import TookTooLong, limited_time

Data = Any  # tensors, numbers, strings, None, and lists, tuples and dicts of them

MAXIMUM_DEPTH = 8  # of nested lists and dicts; deeper data are an Opaque
SECONDS_PER_CALL = 15.0  # of the student's code, if not 0; a right answer needs one
_trying = False  # see the function of this name
FEW = 4  # numbers of a tensor in a list or a dict, which are shown
SHOWN = 30  # items of a list, in which each takes three characters or more
CHECKS = Path(__file__).with_name("chapters")
CALLS_ENDLESS = "calls endless"  # kind of the error of what calls an endless function


@dataclass(frozen=True)
class Opaque:
    """Stands for a value that is no data, such as a NumPy array or a generator."""

    type_name: str


class StudentError(Exception):
    """Something went wrong in the student's code, not in the check.

    ``kind`` is the exception's class name, or one of the interface's own: "signature"
    (the arguments do not fit), "missing" (not callable), "no module" (a class that is
    not a ``torch.nn.Module``), "in-place" (an argument was changed), "endless" (the
    call did not return), ``CALLS_ENDLESS`` (it needs one that did not), "forbidden"
    (it used what is forbidden). ``function`` and ``line`` say where in the student's
    code it happened, if known: "Attention.forward", "line 12: return scores @ values".
    """

    def __init__(
        self, kind: str, text: str, call: str = "", function: str = "", line: str = ""
    ) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind, self.text, self.call = kind, text, call
        self.function, self.line = function, line


@dataclass(frozen=True)
class Gradients:
    """The value of a call and the gradients of ``(value * cotangent).sum()``.

    A gradient is None where the value does not depend on that input or parameter.
    """

    value: Data
    inputs: tuple[torch.Tensor | None, ...]
    parameters: dict[str, torch.Tensor | None] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Call:
    """A call of the student's code that a check made.

    Args:
        student: what was called.
        args: the positional arguments.
        kwargs: the others, by name.
        returned: whether it did.
        value: what came.
        parameters: what its module had loaded, by name.
        training: whether the module was in training mode.
        built_with: what the module was built with; None of a function.
    """

    student: "StudentFunction"
    args: tuple
    kwargs: dict
    returned: bool = False
    value: Data = None
    parameters: dict[str, torch.Tensor] | None = None
    training: bool = False
    built_with: tuple | None = None

    @property
    def name(self) -> str:
        """What was called."""
        return self.student.name

    @property
    def arguments(self) -> dict[str, Data]:
        """All arguments by name, as far as names are known."""
        names = self.student.argument_names(len(self.args))
        return dict(zip(names, self.args, strict=False)) | self.kwargs

    @property
    def options(self) -> tuple:
        """The words and switches that were passed: they choose a branch.

        A text that is passed by position to a function is what it works on.
        """
        words = [*(self.built_with or ()), *self.kwargs.values()]
        chosen = [each for each in words if isinstance(each, str)]
        switches = [*words, *self.args]
        return (*chosen, *(e for e in switches if e is None or type(e) is bool))

    def gave(self, value: Data) -> bool:
        """Whether this very object came from it, whole or as one of several."""
        parts = self.value if isinstance(self.value, (tuple, list)) else ()
        return self.value is value or any(part is value for part in parts)


_calls: list[Call] | None = None


@contextlib.contextmanager
def noting_calls() -> Iterator[list[Call]]:
    """Keep what the student's code is asked from here on, and what it answers."""
    global _calls
    before, _calls = _calls, []
    try:
        yield _calls
    finally:
        _calls = before


def note_call(
    student: "StudentFunction", args: tuple, kwargs: dict, ask: Callable[[], Data]
) -> Data:
    """Ask, and take note of the call, also if it does not return."""
    state = (student.loaded, student.training, student.built_with)
    student.last = Call(student, args, kwargs)
    value = ask()
    student.last = Call(student, args, kwargs, True, value, *state)
    if _calls is not None:
        _calls.append(student.last)
    return value


class StudentFunction(ABC):
    """A function of the student's, and the names that it must not use."""

    name: str
    forbidden: tuple[str, ...] = ()
    # of a module that was built: what a message or a diagnosis may mention
    loaded: dict[str, torch.Tensor] | None = None
    training: bool = True
    built_with: tuple | None = None
    last: Call | None = None  # the latest call

    def argument_names(self, count: int) -> list[str]:
        """Name the first positional arguments, as far as that is known."""
        return [f"argument {number + 1}" for number in range(count)]

    def ahead(self, calls: Iterable[tuple]) -> None:
        """Say which calls come next, each with what arguments; it changes no answer.

        Where the student's code runs in another process, answers then come many at a
        time instead of one by one.
        """
        del calls

    @abstractmethod
    def __call__(self, *args: Data, **kwargs: Data) -> Data:
        """Call the function on copies of the arguments; raise StudentError."""

    @abstractmethod
    def gradients(
        self,
        *args: Data,
        wrt: tuple[int, ...] = (0,),
        cotangent: torch.Tensor | None = None,
        output: int | None = None,
        **kwargs: Data,
    ) -> Gradients:
        """Differentiate the result with respect to the positional arguments ``wrt``.

        ``cotangent`` has the shape of the result and defaults to ones; ``output``
        picks one of several results.
        """

    @abstractmethod
    def memory(self, *args: Data, **kwargs: Data) -> tuple[tuple[int, ...], int]:
        """Call the function without gradients, and say what it holds on the way.

        Returns:
            The shape of the largest tensor that it makes, and how many numbers all of
            them have together, at most at one time.
        """

    @abstractmethod
    def shared(self, *args: Data, **kwargs: Data) -> list[int]:
        """Call the function, and say which of its results are the caller's own.

        That is a tensor whose memory is an argument's, as of a view, and a list or a
        dict that is an argument, or in one.

        Returns:
            The places of such results; of one that is no tuple and no list, 0.
        """


class StudentInstance(StudentFunction):
    """A module of the student's that has been built; calling it runs ``forward``.

    Its ``gradients`` also has those of the parameters, by their state-dict names.
    """

    @abstractmethod
    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return copies of the parameters and buffers, by name."""

    @abstractmethod
    def parameter_names(self) -> list[str]:
        """Return the names of what is trained, in order."""

    @abstractmethod
    def buffer_names(self) -> list[str]:
        """Return the names of what moves with the module without being trained."""

    def parameters(self) -> dict[str, torch.Tensor]:
        """Return copies of what is trained, by name, without the buffers."""
        state = self.state_dict()
        return {name: state[name] for name in self.parameter_names() if name in state}

    @abstractmethod
    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Copy the tensors in; the names and shapes of what is trained must fit.

        A buffer that ``state`` does not name stays as it is.
        """

    @abstractmethod
    def train(self, mode: bool = True) -> None:
        """Switch to training (True) or evaluation (False)."""

    @abstractmethod
    def methods(self, *names: str) -> list[StudentFunction]:
        """Return methods that the exercise asks for; no others can be called.

        They are to be asked for after parameters and mode are set: a message mentions
        those of that time.

        Raises:
            StudentError: "missing", there is no method of such a name. What starts with
                an underscore, or belongs to every ``torch.nn.Module``, is none.
        """

    def _lend(self, method: StudentFunction) -> StudentFunction:
        """Let a method know what is forbidden, and what messages mention."""
        method.forbidden, method.loaded = self.forbidden, self.loaded
        method.training, method.built_with = self.training, self.built_with
        return method


class StudentModule(ABC):
    """A class of the student's, derived from ``torch.nn.Module``."""

    name: str
    forbidden: tuple[str, ...] = ()  # also to what is built
    last: Call | None = None  # a class is built, and what is built is called

    @abstractmethod
    def build(self, *args: Data, **kwargs: Data) -> StudentInstance:
        """Construct an instance; raise StudentError."""


# --- the same process -----------------------------------------------------------------


def describe(value: Data) -> str:
    """Say in a few words what a value is: a shape for a tensor, the value if short.

    >>> describe(torch.zeros(4, 5)), describe(torch.arange(4))
    ('tensor (4, 5)', 'int64 tensor (4,)')
    """
    if isinstance(value, torch.Tensor):
        kind = str(value.dtype).removeprefix("torch.")
        kind = "" if value.dtype == torch.float32 else f"{kind} "
        return f"{kind}tensor {tuple(value.shape)}"
    if isinstance(value, StudentFunction):
        return value.name
    shown = float(f"{value:.6g}") if type(value) is float else _beginning(value)
    text = repr(shown)
    return text if len(text) <= 60 else f"{text[:59]}…"


class _Words(str):
    """Text that stands for a value, without quotation marks."""

    __slots__ = ()
    __repr__ = str.__str__


def _beginning(value: Data) -> Data:
    """Cut off what would not be shown: to write all of a large value takes minutes."""
    if isinstance(value, torch.Tensor) and value.numel() > FEW:
        return _Words(describe(value))
    if isinstance(value, (list, tuple)):
        items = [_beginning(item) for item in value[:SHOWN]]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        items = itertools.islice(value.items(), SHOWN)
        return {_beginning(key): _beginning(item) for key, item in items}
    return value[: 3 * SHOWN] if isinstance(value, str) else value


def describe_call(name: str, args: tuple, kwargs: dict) -> str:
    """Write a call the way a student would."""
    parts = [describe(arg) for arg in args]
    parts += [f"{key}={describe(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(parts)})"


def to_data(value: Any, depth: int = 0) -> Data:
    """Copy a student's value into plain data; what is none becomes an Opaque."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.is_meta or value.is_quantized:
            return Opaque("tensor that is sparse, quantized or without values")
        plain = torch.Tensor.detach(value).resolve_conj().resolve_neg()
        return plain.clone(memory_format=torch.contiguous_format)
    if isinstance(value, np.generic):
        value = value.item()  # np.float64, np.int64, np.bool_ are numbers
    if value is None or type(value) in (bool, int, float, str, Opaque):
        return value
    if depth < MAXIMUM_DEPTH:
        if isinstance(value, (list, tuple)):
            items = [to_data(item, depth + 1) for item in value]
            return items if isinstance(value, list) else tuple(items)
        if isinstance(value, dict):
            return {
                to_data(key, depth + 1): to_data(item, depth + 1)
                for key, item in value.items()
            }
    return Opaque(type(value).__qualname__)


@contextlib.contextmanager
def trying(seconds_per_call: float):
    """Run checks for their verdict alone, on code that nobody wrote.

    Messages are left short, a call ends early, and what it is given it may spoil.
    """
    global _trying, SECONDS_PER_CALL
    before, SECONDS_PER_CALL = SECONDS_PER_CALL, seconds_per_call
    _trying = True
    try:
        yield
    finally:
        _trying, SECONDS_PER_CALL = False, before


def is_trying() -> bool:
    """Tell whether a check runs for its verdict alone."""
    return _trying


@contextlib.contextmanager
def _students_turn(call: str, forbidden: tuple[str, ...]):
    """Run student code: silence stderr (it would cost all points), name exceptions."""
    with forbidding.while_running(forbidden) as used, _named_exceptions(call, used):
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stderr(io.StringIO()),
            limited_time(SECONDS_PER_CALL),
        ):
            warnings.simplefilter("ignore")
            yield
        if used:  # and what it raised was caught
            raise StudentError("forbidden", forbidding.message(used[0]), call)


@contextlib.contextmanager
def _named_exceptions(call: str, used: list[str]):
    """Turn what student code raises into a StudentError; ``used``: forbidden names."""
    try:
        yield
    except StudentError:
        raise
    except TookTooLong as error:
        raise StudentError("endless", str(error), call, *_place(error)) from None
    except (Exception, SystemExit) as error:
        kind, text = type(error).__name__, _words(error)
        if used:
            kind, text = "forbidden", forbidding.message(used[0])
        raise StudentError(kind, text, call, *_place(error)) from error


def _words(error: BaseException) -> str:
    """Write an exception's text; one whose own method for it fails has none.

    PyTorch adds to some where they come from in its own C++, in many lines.
    """
    try:
        return str(error).partition("\nException raised from ")[0]
    except Exception:
        return ""


_LIBRARIES = (
    *("site-packages", "dist-packages", sysconfig.get_path("stdlib")),
    *(__file__, forbidding.__file__, time_limit.__file__),
    str(Path(__file__).with_name("boundary")),
    str(Path(__file__).with_name("on_page")),
)


def _place(error: BaseException) -> tuple[str, str]:
    """Find the innermost function and line of the student's that an exception left."""
    place = "", ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if not any(part in code.co_filename for part in _LIBRARIES):
            text = linecache.getline(code.co_filename, number).strip()
            place = code.co_qualname, f"line {number}: {text}".removesuffix(": ")
    return place


def _same(a: Data, b: Data) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if not a.is_floating_point():
            return torch.equal(a, b)
        return torch.equal(a, b) or torch.equal(
            a.nan_to_num(nan=1.5e30), b.nan_to_num(nan=1.5e30)
        )
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    return a == b


def _signature_of(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None  # built-in functions have none; the call itself will tell


def _bind(
    signature: inspect.Signature | None, call: str, args: tuple, kwargs: dict
) -> None:
    if signature is None:
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise StudentError(
            "signature", f"{error}; its signature is {signature}", call
        ) from None


def _argument_name(
    signature: inspect.Signature | None,
    number: int,
    keywords: list[str],
    positional: int,
) -> str:
    if number >= positional:
        return f"the argument {keywords[number - positional]}"
    names = list(signature.parameters) if signature else []
    if number < len(names):
        return f"the argument {names[number]}"
    return f"argument {number}"


def _handed_over(value: Data) -> Data:
    """Lay tensors out as a student would: row after row, each value in its place.

    A check may expand, transpose or cut what it draws. ``view``, and writing into a
    copy, must not fail on that, and in another process nothing of it is left.
    """
    if isinstance(value, torch.Tensor):
        spared = _trying and not value.requires_grad
        return value.contiguous().clone() if spared else value.contiguous()
    if type(value) in (list, tuple):
        return type(value)(map(_handed_over, value))
    if type(value) is dict:
        return {key: _handed_over(item) for key, item in value.items()}
    return value


def _places_of(value: Any, given: list[Data]) -> list[int]:
    """Say which results are among what was given; see ``StudentFunction.shared``."""
    results = value if isinstance(value, (tuple, list)) else [value]
    own = {key for each in given for key in _memory_of(each)}
    if own & set(_memory_of(value, inside=False)):
        return list(range(max(len(results), 1)))
    kept = [set(_memory_of(each, inside=False)) for each in results]
    return [place for place, keys in enumerate(kept) if own & keys]


def _memory_of(value: Any, inside: bool = True) -> Iterator[tuple[str, int]]:
    """Tell what one may write into and see again through other names for it."""
    if isinstance(value, torch.Tensor):
        if value.numel() and value.layout == torch.strided and not value.is_meta:
            yield "storage", value.untyped_storage().data_ptr()
    elif isinstance(value, (list, dict)):
        yield "object", id(value)
    if inside and isinstance(value, (list, tuple, dict)):
        items = value.values() if isinstance(value, dict) else value
        for each in items:
            yield from _memory_of(each)


def _their_own(value: Data) -> Any:
    """Give student code its own object where a check holds a handle of it."""
    return value._target if isinstance(value, _LocalCallable) else value


@contextlib.contextmanager
def _unchanged(
    signature: inspect.Signature | None, call: str, args: tuple, kwargs: dict
) -> Iterator[None]:
    """Refuse a call in the block that changes what it was given."""
    given = [*args, *kwargs.values()]
    before = [to_data(value) for value in given]  # copies
    yield
    for number, (old, new) in enumerate(zip(before, given, strict=True)):
        if not _same(old, to_data(new)):
            name = _argument_name(signature, number, list(kwargs), len(args))
            raise StudentError("in-place", f"{name} was changed", call)


class _LocalCallable(StudentFunction):
    """What functions and built modules share: copied arguments and gradients."""

    def __init__(self, target: Any, name: str) -> None:
        self._target, self.name = target, name

    @functools.cached_property
    def _signature(self) -> inspect.Signature | None:
        return _signature_of(getattr(self._target, "forward", self._target))

    def argument_names(self, count: int) -> list[str]:
        names = list(self._signature.parameters) if self._signature else []
        unnamed = super().argument_names(count)[len(names) :]  # of *args, say
        return names[:count] + unnamed

    def __call__(self, *args: Data, **kwargs: Data) -> Data:
        return note_call(self, args, kwargs, lambda: to_data(self._run(args, kwargs)))

    def memory(self, *args: Data, **kwargs: Data) -> tuple[tuple[int, ...], int]:
        held = Held()

        def ask() -> tuple[tuple[int, ...], int]:
            with torch.no_grad():
                self._run(args, kwargs, held)
            return held.largest, held.most

        return note_call(self, args, kwargs, ask)

    def shared(self, *args: Data, **kwargs: Data) -> list[int]:
        args, kwargs = _handed_over(args), _handed_over(kwargs)

        def ask() -> list[int]:
            return _places_of(self._run_on(args, kwargs), [*args, *kwargs.values()])

        return note_call(self, args, kwargs, ask)

    def _run(self, args: tuple, kwargs: dict, held: Held | None = None) -> Any:
        return self._run_on(_handed_over(args), _handed_over(kwargs), held)

    def _run_on(self, args: tuple, kwargs: dict, held: Held | None = None) -> Any:
        call = describe_call(self.name, args, kwargs)
        _bind(self._signature, call, args, kwargs)
        with (
            _unchanged(self._signature, call, args, kwargs),
            _students_turn(call, self.forbidden),
            held or contextlib.nullcontext(),
        ):
            return self._target(
                *map(_their_own, args),
                **{key: _their_own(value) for key, value in kwargs.items()},
            )

    def _parameters(self) -> dict[str, torch.Tensor]:
        return {}

    def gradients(self, *args, wrt=(0,), cotangent=None, output=None, **kwargs):
        args = list(args)
        for index in wrt:
            args[index] = to_data(args[index]).requires_grad_()
        parameters = self._parameters()
        with torch.enable_grad():
            value = self._run(tuple(args), kwargs)
            result = value if output is None else value[output]
            sources = [args[index] for index in wrt] + list(parameters.values())
            found = self._differentiate(result, cotangent, sources)
        return Gradients(
            note_call(self, tuple(args), kwargs, lambda: to_data(value)),
            tuple(found[: len(wrt)]),
            dict(zip(parameters, found[len(wrt) :], strict=True)),
        )

    def _differentiate(self, result, cotangent, sources):
        if not isinstance(result, torch.Tensor) or not result.requires_grad:
            return [None] * len(sources)
        weight = torch.ones_like(result) if cotangent is None else cotangent
        with _students_turn(f"the backward pass of {self.name}", self.forbidden):
            return torch.autograd.grad(
                (result * weight).sum(), sources, allow_unused=True
            )


class LocalFunction(_LocalCallable):
    """A function in this process."""


class LocalInstance(_LocalCallable, StudentInstance):
    """A built module in this process."""

    def _parameters(self) -> dict[str, torch.Tensor]:
        return dict(self._target.named_parameters())

    def state_dict(self) -> dict[str, torch.Tensor]:
        return to_data(dict(self._target.state_dict()))

    def parameter_names(self) -> list[str]:
        return list(self._parameters())

    def buffer_names(self) -> list[str]:
        return [name for name, _ in self._target.named_buffers()]

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        with _students_turn(f"{self.name}.load_state_dict(...)", self.forbidden):
            own = dict(self._target.state_dict())
            kept = {name: own[name] for name in self.buffer_names() if name in own}
            self._target.load_state_dict({**kept, **to_data(state)})
        self.loaded = state

    def train(self, mode: bool = True) -> None:
        with _students_turn(f"{self.name}.train({mode})", self.forbidden):
            self._target.train(mode)
        self.training = mode

    def methods(self, *names: str) -> list[StudentFunction]:
        return [self._lend(LocalMethod(self, name)) for name in names]

    def find(self, name: str) -> Callable:
        """Return a method as ``methods`` may give it; raise StudentError."""
        call, found = f"{self.name}.{name}", None
        if not name.startswith("_") and not hasattr(torch.nn.Module, name):
            with _students_turn(call, self.forbidden):
                found = getattr(self._target, name, None)
        if not callable(found):
            text = f"{self.name} has no method {name}"
            raise StudentError("missing", text, call)
        return found


class LocalMethod(LocalFunction):
    """A method of a built module; its parameters are the module's."""

    def __init__(self, module: LocalInstance, name: str) -> None:
        super().__init__(module.find(name), f"{module.name}.{name}")
        self._module = module

    def _parameters(self) -> dict[str, torch.Tensor]:
        return self._module._parameters()


class LocalModule(StudentModule):
    """A class in this process."""

    def __init__(self, target: type, name: str) -> None:
        self._target, self.name = target, name

    def build(self, *args: Data, **kwargs: Data) -> LocalInstance:
        call = describe_call(self.name, args, kwargs)
        signature = _signature_of(self._target)
        _bind(signature, call, args, kwargs)
        args, kwargs = _handed_over(args), _handed_over(kwargs)
        with (
            _unchanged(signature, call, args, kwargs),
            _students_turn(call, self.forbidden),
        ):
            instance = self._target(*args, **kwargs)
        if not isinstance(instance, torch.nn.Module):
            text = f"{self.name} is not derived from torch.nn.Module"
            raise StudentError("no module", text, call)
        built = LocalInstance(instance, self.name)
        built.forbidden = self.forbidden
        built.built_with = (*args, *kwargs.values())
        return built


def wrap(target: Any, wanted: type) -> StudentFunction | StudentModule:
    """Put the interface around a student's object, unless it is there already."""
    if isinstance(target, (StudentFunction, StudentModule)):
        return target
    name = getattr(target, "__name__", type(target).__name__)
    if _is_a_check_s_own(target):
        raise StudentError("missing", f"{name} belongs to the checks; write one", name)
    if wanted is StudentModule:
        if not isinstance(target, type):
            raise StudentError("missing", f"{name} is not a class", name)
        return LocalModule(target, name)
    if not callable(target):
        raise StudentError("missing", f"{describe(target)} is not a function", name)
    return LocalFunction(target, name)


def _is_a_check_s_own(target: Any) -> bool:
    """Tell whether a check's own function or class is handed in as the answer."""
    target = inspect.unwrap(getattr(target, "func", target))
    body = getattr(target, "forward", target) if inspect.isclass(target) else target
    code = getattr(getattr(body, "__func__", body), "__code__", None)
    return code is not None and Path(code.co_filename).is_relative_to(CHECKS)
