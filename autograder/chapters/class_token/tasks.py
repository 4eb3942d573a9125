"""Several class tokens: a head for each task."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from autograder import expect
from autograder.chapters.class_token.chapter import chapter
from autograder.chapters.class_token.heads import (
    BIAS,
    WEIGHT,
    class_head,
    first,
    linear,
)
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.parameters import Shapes, State, expect_parameters
from autograder.exercise.spec import GRADIENT, Case, Module, expect_gradients
from autograder.expect import refuse_if, show
from autograder.interface import StudentInstance, StudentModule


def answered(
    hidden: torch.Tensor,
    *flat: torch.Tensor,
    places: Callable = range,
    heads: Callable = range,
    read: Callable = lambda hidden, place: hidden[:, place],
    biased: Callable = lambda bias: bias,
    form: Callable = lambda logits: logits,
    listed: Callable = list,
) -> Any:
    """Answer each task, with slips, which may be several.

    Args:
        hidden: (B, T, d).
        flat: weight and bias of each head, one after the other.
        places: the positions that are read, of the number of tasks.
        heads: the heads that answer, of the number of tasks.
        read: what a head gets, of hidden and a position.
        biased: what is added, of the bias.
        form: of the logits of a task.
        listed: of all of them.
    """
    count = len(flat) // 2
    return listed(
        form(linear(read(hidden, place), flat[2 * i], biased(flat[2 * i + 1])))
        for place, i in zip(places(count), heads(count), strict=True)
    )


tasks = Module("task-heads", "TaskHeads", answered)

# --- what goes wrong ------------------------------------------------------------------


def _together(answers: Iterable[torch.Tensor]) -> torch.Tensor:
    return torch.cat(list(answers), -1)


IN_FRONT = (
    "the heads read the last positions",
    "The class tokens come first: positions 0 to the number of tasks − 1.",
)
ONE_TENSOR = (
    "one tensor for all tasks",
    "Tasks may differ in their classes: return a list, one entry a task.",
)
WORDS = (
    "the heads read words",
    "The words come after the class tokens, and these are what the heads read: task i "
    "reads position i.",
)
SAID = {each.name: (each.name, each.why) for each in first.mistakes}
tasks.slips(
    answered,
    (
        "all heads read position 0",
        "Position 0 belongs to task 0. Each task has a class token of its own, which "
        "can attend to what this task needs: the head of task i reads position i.",
        {"places": lambda n: [0] * n},
    ),
    (
        "class tokens counted from 1",
        "Positions and tasks are both counted from 0: task i reads position i.",
        {"places": lambda n: range(1, n + 1)},
    ),
    (
        "the class tokens are read backwards",
        "The head of task i reads position i.",
        {"places": lambda n: range(n - 1, -1, -1)},
    ),
    (
        "positions counted from the end",
        "hidden[:, -i:] begins i places before the end. Task i reads position i, "
        "counted from the front: hidden[:, i].",
        {"places": lambda n: [-i for i in range(n)]},
    ),
    (*IN_FRONT, {"places": lambda n: range(-n, 0)}),
    (*IN_FRONT, {"places": lambda n: range(-1, -n - 1, -1)}),
    (
        "every head reads the last class token",
        "The head of task i reads position i. A loop that ends before its variable is "
        "used leaves the last value in it.",
        {"places": lambda n: [n - 1] * n},
    ),
    (*WORDS, {"places": lambda n: [n] * n}),
    (*WORDS, {"places": lambda n: range(n, 2 * n)}),
    (
        "positions are cut off again and again",
        "Cut i positions off the whole of hidden. What is left after the task before "
        "lacks its positions already, so that task 2 reads position 3.",
        {"places": lambda n: [i * (i + 1) // 2 for i in range(n)]},
    ),
    (
        "the heads read the mean",
        "Then all tasks get the same vector. The head of task i reads position i.",
        {"read": lambda hidden, place: hidden.mean(1)},
    ),
    (
        "the heads read the mean from position i on",
        "hidden[:, i:] begins at position i. Its first row is what the head reads, not "
        "the mean of all.",
        {"read": lambda hidden, place: hidden[:, place:].mean(1)},
    ),
    (
        "the heads read the mean of the class tokens",
        "Then all tasks get the same vector. The head of task i reads position i.",
        {
            "places": lambda n: [range(n)] * n,
            "read": lambda hidden, place: hidden[:, list(place)].mean(1),
        },
    ),
    (
        "the heads read every position",
        "There is one answer for each sequence and task: pick position i first.",
        {"read": lambda hidden, place: hidden},
    ),
    (
        "the axis of the positions is kept",
        "hidden[:, i : i + 1] is a piece of length 1; hidden[:, i] is one position.",
        {"read": lambda hidden, place: hidden[:, place, None]},
    ),
    (
        "the heads read sequence i",
        "Axis 0 is the batch. Positions are axis 1: hidden[:, i].",
        {"read": lambda hidden, place: hidden[place]},
    ),
    (
        "sequences are left out in place of positions",
        "hidden[i:] begins at sequence i. Positions are axis 1: hidden[:, i:].",
        {"read": lambda hidden, place: hidden[place:, 0]},
    ),
    (
        "one head answers all tasks",
        "Task i has a head of its own, self.heads[i].",
        {"heads": lambda n: [0] * n},
    ),
    (
        "the last head answers all tasks",
        "Task i has a head of its own, self.heads[i].",
        {"heads": lambda n: [n - 1] * n},
    ),
    (
        "the heads are asked in reverse order",
        "Head i answers task i, from position i.",
        {"heads": lambda n: range(n - 1, -1, -1)},
    ),
    (*SAID["the bias is not added"], {"biased": torch.zeros_like}),
    (
        *SAID["probabilities in place of logits"],
        {"form": lambda logits: logits.softmax(-1)},
    ),
    (
        *SAID["logarithms of probabilities in place of logits"],
        {"form": lambda logits: logits.log_softmax(-1)},
    ),
    (
        *SAID["a class in place of logits"],
        {"form": lambda logits: logits.argmax(-1)},
    ),
    (
        *SAID["squeeze takes the axis of the batch away"],
        {"form": torch.squeeze},
    ),
    (*SAID["no gradient comes back"], {"form": torch.detach}),
    (*ONE_TENSOR, {"listed": _together}),
    (
        "the answers in reverse order",
        "Entry i of the list is the answer to task i.",
        {"listed": lambda answers: list(answers)[::-1]},
    ),
    (
        "only the first task is answered",
        "A return inside the loop ends it at the first task: collect all answers, and "
        "return the list after the loop.",
        {"listed": lambda answers: list(answers)[:1]},
    ),
)

# --- the check ------------------------------------------------------------------------


def _misread(state: State, missing: list, extra: list, shapes: Shapes) -> Iterator:
    count = len(shapes)
    wanted = [shape for name, shape in shapes.items() if name.endswith("weight")]
    found = [tuple(state[name].shape) for name in state if name.endswith("weight")]
    named = not missing and not extra
    yield (
        named and set(found) == {wanted[0]} != set(wanted),
        "every head has the classes of the first",
        "classes has one number for each task: head i has classes[i] columns.",
    )
    yield (
        named and found == wanted[::-1] != wanted,
        "the heads in reverse order",
        "Head i answers task i: it has classes[i] columns.",
    )
    yield (
        len(missing) == count and not state,
        "an ordinary list in place of nn.ModuleList",
        "A Python list hides its modules: no optimiser finds their parameters, and "
        "they are missing from what is saved. nn.ModuleList([...]) is a list that "
        "shows them.",
    )
    yield (
        not extra and 0 < len(missing) < count and any(n in state for n in missing),
        "one head shared by all tasks",
        "[head] * n is n times the same head, so all tasks would pull at the same "
        "weights. Build one head for each task.",
    )
    yield (
        count > 2 and not extra and len(missing) == count - 2,
        "only one head",
        "classes is a list: build one head for each of its entries.",
    )
    yield (
        len(extra) == len(missing) == count,
        "the parameters have other names",
        "The check loads its own numbers by name: keep the names of the docstring.",
    )


def loaded(student: StudentModule, flat: list, on: str) -> StudentInstance:
    """Build a head for each task, and give them these numbers."""
    d_model, classes = len(flat[0]), [len(bias) for bias in flat[1::2]]
    module = student.build(d_model, classes)
    names = [
        f"heads.{i}.{name}" for i in range(len(classes)) for name in ("weight", "bias")
    ]
    state = dict(zip(names, flat, strict=True))
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    expect_parameters(module, shapes, on, lambda *found: _misread(*found, shapes))
    module.load_state_dict(state)
    return module


def expect_tasks(student: StudentModule, hidden, flat: list, on: str) -> None:
    """Expect an answer for each task, and the gradients of each."""
    module, count = loaded(student, flat, on), len(flat) // 2
    got = module(hidden)
    say = {"on": on, "got": show(got), "expected": f"a list of {count} tensors"}
    refuse_if(isinstance(got, torch.Tensor), *ONE_TENSOR, **say)
    case = Case(on, (hidden,), given=tuple(flat), what="the list of logits")
    tasks.compare(got, case)
    for task in range(count):
        expect_task_gradients(module, hidden, task, flat[2 * task], on)


def expect_task_gradients(
    module: StudentInstance, hidden, task: int, weight: torch.Tensor, on: str
) -> None:
    """Expect that a task pulls at its own position, weight and bias."""
    cotangent = normal(seeded(task), len(hidden), weight.shape[1])
    found = module.gradients(hidden, cotangent=cotangent, output=task)
    wanted = torch.zeros_like(hidden)
    wanted[:, task] = cotangent @ weight.mT
    right = {
        "hidden": wanted,
        f"heads.{task}.weight": hidden[:, task].mT @ cotangent,
        f"heads.{task}.bias": cotangent.sum(0),
    }
    got = {"hidden": found.inputs[0], **found.parameters}
    expect_gradients({name: got[name] for name in right}, f"task {task}; {on}")
    for name, value in right.items():
        say = {"on": f"the gradient of task {task}; {on}", "tolerance": GRADIENT}
        expect.equal(got[name], value, what=f"the gradient of {name}", **say)


def expect_task_heads(student: StudentModule, seed: int) -> None:
    """Expect tasks with all sizes equal, by hand, and with sizes that differ."""
    generator = seeded(seed)
    by_hand = [WEIGHT, BIAS, torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.zeros(2)]
    loaded(student, by_hand, "TaskHeads(2, [3, 2])")
    # where what is read along another axis has a value, too, and the value a name
    flat = [normal(generator, *shape) for shape in 2 * ((4, 4), (4,))]
    on = "TaskHeads(4, [4, 4]), hidden (4, 4, 4)"
    expect_tasks(student, normal(generator, 4, 4, 4), flat, on)
    hand = torch.tensor([[[1.0, 2.0], [3.0, 0.0], [5.0, 5.0], [6.0, 1.0]]])
    expect_tasks(student, hand, by_hand, f"hidden {hand.tolist()}, classes [3, 2]")
    for count in (2, 3, 1):
        batch, d_model, *classes = draw_sizes(generator, 2 + count, largest=8)
        if count == 3:
            classes[2] = classes[0]  # two tasks with as many classes
        hidden = normal(generator, batch, count + 4, d_model)
        shapes = [shape for n in classes for shape in ((d_model, n), (n,))]
        flat = [normal(generator, *shape) for shape in shapes]
        on = f"TaskHeads({d_model}, {classes}), hidden {tuple(hidden.shape)}"
        expect_tasks(student, hidden, flat, on)


@chapter.check(section="class-token-several")
def task_heads(
    student: StudentModule, class_head_student: StudentModule, seed: int = 0
) -> None:
    """Task i is answered from position i, by a head of its own."""
    with expect.relying_on(class_head, class_head_student):
        expect_task_heads(student, seed)
