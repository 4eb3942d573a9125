"""The one interface: in this process and in another, a check cannot tell."""

import contextlib
import logging
import sys
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from autograder import interface
from autograder.expect import Chapter, CheckFailure
from autograder.interface import (
    LocalFunction,
    LocalModule,
    Opaque,
    StudentError,
    StudentFunction,
    StudentModule,
    describe_call,
    wrap,
)

CHECK = Chapter(0, "00_example")


@CHECK.check(section="here")
def doubled(student: StudentFunction, seed: int = 0) -> None:
    student(torch.tensor([float(seed)]))


@CHECK.check(section="here")
def layer(student: StudentModule) -> None:
    student.build(2)


def message(answer: object, check=doubled) -> str:
    """What a student reads."""
    with pytest.raises(CheckFailure) as caught:
        check(answer)
    return str(caught.value)


def test_an_exception_in_the_answer_is_a_message() -> None:
    def broken(x):
        return x @ torch.ones(3, 2)

    assert "doubled: stopped with RuntimeError" in message(broken)
    assert "broken(torch.tensor([0.0]))" in message(broken)
    assert "why      In A @ B the last axis" in message(broken)


def test_where_pytorch_stopped_in_its_own_code_is_left_out() -> None:
    """It is many lines that help no student, and name files of the machine."""

    def unflattens(x):
        return x.unflatten(0, (-2, -2))

    with pytest.raises(RuntimeError, match="Exception raised from"):
        unflattens(torch.tensor([0.0]))
    said = message(unflattens)
    assert "invalid shape dimension -2" in said
    assert "raised from" not in said and "frame #" not in said


def test_a_call_is_written_shortly() -> None:
    floats, integers = torch.zeros(4, 5), torch.arange(4)
    call = describe_call("f", (floats, integers, 3), {"mask": floats.bool()})
    assert call == "f(tensor (4, 5), int64 tensor (4,), 3, mask=bool tensor (4, 5))"
    assert describe_call("f", (3.14159265358979, 1e4), {}) == "f(3.14159, 10000.0)"


def stub(x):
    raise NotImplementedError()


def test_a_stub_a_signature_and_a_missing_name_are_said_plainly() -> None:
    assert "doubled: not written yet" in message(stub)
    assert "missing a required argument: 'y'" in message(lambda x, y: x)
    assert "3 is not a function" in message(3)
    assert "is not a class" in message(lambda: 3, layer)
    plain = type("Plain", (), {"__init__": lambda self, width: None})
    said = message(plain, layer)
    assert "Plain is not derived from torch.nn.Module" in said
    assert "(nn.Module)" in said and "Run the cell" not in said


def test_a_check_called_wrongly_says_how_it_is_called() -> None:
    said = r"check\.doubled takes 1 object, not 0: doubled\(student\)"
    with pytest.raises(TypeError, match=said):
        doubled()
    with pytest.raises(TypeError, match="takes 1 object, not 2"):
        doubled(abs, abs)


def test_an_answer_that_exits_does_not_end_the_notebook() -> None:
    assert "stopped with SystemExit" in message(lambda x: sys.exit(1))


def test_a_changed_argument_is_noticed_in_tensors_lists_and_views() -> None:
    def in_place(x):
        x[0] = 7.0
        return x

    def through_a_view(x):
        x.view(-1).add_(1)
        return x

    for answer in (in_place, through_a_view):
        with pytest.raises(StudentError, match="in-place"):
            LocalFunction(answer, "answer")(torch.ones(3))
    with pytest.raises(StudentError, match="in-place"):
        LocalFunction(lambda items: items.append(1), "answer")([1, 2])


def test_what_never_returns_is_stopped_and_said(monkeypatch) -> None:
    monkeypatch.setattr(interface, "SECONDS_PER_CALL", 0.1)

    def stubborn(x):
        while True:
            with contextlib.suppress(Exception):
                x = x + 1

    said = message(stubborn)
    assert "doubled: does not return" in said
    assert "after 0.1 seconds" in said and "in " in said and "line " in said
    assert "Does a loop never end?" in said


def test_an_object_of_the_students_can_be_an_argument() -> None:
    """A decoder is given a model: the check names it, the student's code calls it."""
    linear = LocalModule(nn.Linear, "Linear").build(2, 2)
    linear.load_state_dict({"weight": 2 * torch.eye(2), "bias": torch.zeros(2)})
    twice = LocalFunction(lambda model, x: model(model(x)), "twice")
    assert twice(linear, torch.ones(2)).tolist() == [4, 4]
    found = twice.gradients(linear, torch.ones(2), wrt=(1,))
    assert found.inputs[0].tolist() == [4, 4]


def test_the_callers_tensor_is_not_shared_with_the_answer() -> None:
    result = LocalFunction(lambda x: x, "same")(given := torch.ones(2))
    result.zero_()
    assert given.tolist() == [1, 1]


def test_what_is_no_data_is_opaque() -> None:
    assert LocalFunction(lambda: np.ones(2), "array")() == Opaque("ndarray")
    assert LocalFunction(lambda: [object()], "items")() == [Opaque("object")]
    nested: list = []
    nested.append(nested)
    assert "Opaque" in repr(LocalFunction(lambda: nested, "endless")())


def test_numbers_of_numpy_are_numbers() -> None:
    given = [np.float64(0.5), np.int64(3), np.bool_(True), np.float32(2), np.str_("a")]
    found = LocalFunction(lambda: {"all": given, np.int64(1): ()}, "numbers")()
    assert found == {"all": [0.5, 3, True, 2.0, "a"], 1: ()}
    assert [type(each) for each in found["all"]] == [float, int, bool, float, str]


def test_what_is_handed_over_and_back_lies_row_after_row() -> None:
    seen = []

    def keep(x, items):
        seen.extend([x, *items])
        return x.T

    wide = torch.ones(1, 3).expand(2, 3)
    result = LocalFunction(keep, "keep")(wide, [wide.T])
    found = LocalFunction(keep, "keep").gradients(wide.T, [])
    assert all(each.is_contiguous() for each in (*seen, result, found.value))
    assert seen[0].stride() == (3, 1)


class WithBuffers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.ones(2, 2, dtype=torch.bool).tril())
        self.register_buffer("passing", torch.zeros(1), persistent=False)
        self.weight = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        return (x * self.weight).masked_fill(~self.mask, 0)


def test_buffers_are_kept_when_parameters_are_loaded() -> None:
    module = LocalModule(WithBuffers, "WithBuffers").build()
    module.load_state_dict({"weight": torch.ones(2)})
    assert module(torch.ones(2, 2)).tolist() == [[1, 0], [1, 1]]
    assert list(module.parameters()) == ["weight"]
    with pytest.raises(StudentError, match="Missing key"):
        module.load_state_dict({})


def test_a_warning_a_log_line_and_stderr_cost_nothing(capsys) -> None:
    def noisy(x):
        warnings.warn("old", stacklevel=1)
        print("progress", file=sys.stderr)
        logging.warning("careful")
        return x

    doubled(noisy)
    assert capsys.readouterr().err == ""


def test_gradients_of_inputs_and_parameters() -> None:
    linear = LocalModule(nn.Linear, "Linear").build(3, 2)
    linear.load_state_dict({"weight": torch.ones(2, 3), "bias": torch.zeros(2)})
    cotangent = torch.tensor([[1.0, 10.0]])
    found = linear.gradients(torch.tensor([[1.0, 2.0, 3.0]]), cotangent=cotangent)
    assert found.value.tolist() == [[6, 6]]
    assert found.inputs[0].tolist() == [[11, 11, 11]]
    assert found.parameters["weight"].tolist() == [[1, 2, 3], [10, 20, 30]]
    assert found.parameters["bias"].tolist() == [1, 10]


def test_a_gradient_that_does_not_flow_is_none() -> None:
    detached = LocalFunction(lambda x, y: x.detach() * 2, "detached")
    assert detached.gradients(torch.ones(2), torch.ones(2)).inputs == (None,)
    first = LocalFunction(lambda x, y: (x * 3, y), "first")
    found = first.gradients(torch.ones(2), torch.ones(2), wrt=(0, 1), output=0)
    assert found.inputs[0].tolist() == [3, 3]
    assert found.inputs[1] is None


def test_what_a_function_holds_is_counted_while_it_is_there() -> None:
    def work(x):
        pairs = x @ x.mT  # (4, 4)
        view = pairs[:2].T.expand(3, 4, 2)  # nothing new
        kept = [torch.zeros(10) for _ in range(3)]
        del pairs, view
        return x.mul_(1).sum() + len(kept)  # 1 + 1

    largest, most = LocalFunction(work, "work").memory(torch.ones(4, 9))
    assert largest == (4, 4)
    assert most == 16 + 30


def test_a_result_that_is_the_callers_own_is_told() -> None:
    def shared(function, *args):
        return LocalFunction(function, "f").shared(*args)

    x = torch.ones(2, 3)
    for same in (
        lambda x: x,
        lambda x: x[:1],
        lambda x: x.mT.detach(),
        lambda x: torch.from_numpy(x.numpy()),
    ):
        assert shared(same, x) == [0]
    assert shared(lambda x: x.clone(), x) == []
    assert shared(lambda x, y: (x + y, y), x, x.clone()) == [1]
    assert shared(lambda items: items, [1, 2]) == [0, 1]
    assert shared(list, [1, 2]) == []
    assert shared(lambda states: states[0], [{"w": x}]) == [0]
    assert shared(lambda states: dict(states[0]), [{"w": x}]) == []


class TwoMethods(nn.Module):
    """A module with a method besides forward, and what is no method of its own."""

    secret = "the student's"

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return x

    def scaled(self, x, by=1):
        return self.weight * x * by

    def spoilt(self, x):
        return x.add_(1)

    def _own(self):
        return 0


def test_a_method_is_called_as_forward_is() -> None:
    module = LocalModule(TwoMethods, "TwoMethods").build()
    module.load_state_dict({"weight": torch.tensor([2.0, 3.0])})
    scaled, spoilt = module.methods("scaled", "spoilt")
    assert scaled(torch.ones(2), by=2).tolist() == [4, 6]
    assert scaled.gradients(torch.ones(2)).parameters["weight"].tolist() == [1, 1]
    assert scaled.name == "TwoMethods.scaled"
    assert scaled.last.parameters["weight"].tolist() == [2, 3]
    with pytest.raises(StudentError, match="x was changed"):
        spoilt(torch.ones(2))
    with pytest.raises(StudentError, match="signature is"):
        scaled()


@pytest.mark.parametrize(
    "name", ["absent", "secret", "_own", "__init__", "train", "state_dict", "forward"]
)
def test_nothing_but_a_method_of_its_own_is_reached_by_name(name: str) -> None:
    module = LocalModule(TwoMethods, "TwoMethods").build()
    with pytest.raises(StudentError, match=f"TwoMethods has no method {name}"):
        module.methods(name)


def test_what_is_wrapped_is_not_wrapped_again() -> None:
    function = LocalFunction(abs, "abs")
    assert wrap(function, StudentFunction) is function
