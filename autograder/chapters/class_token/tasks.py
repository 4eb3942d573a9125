"""Several class tokens: a head for each task."""

from collections.abc import Iterator

import torch

from autograder import expect
from autograder.chapters.class_token.chapter import chapter
from autograder.chapters.class_token.heads import BIAS, WEIGHT, class_head, linear
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.parameters import Shapes, State, expect_parameters
from autograder.exercise.spec import CUT_OFF, GRADIENT, Case, Module, expect_gradients
from autograder.expect import refuse_if, show
from autograder.interface import StudentInstance, StudentModule


def answered(rows: list[torch.Tensor], flat: tuple[torch.Tensor, ...]) -> list:
    """Answer each task from what it reads; its weight and bias follow each other."""
    pairs = zip(rows, flat[::2], flat[1::2], strict=True)
    return [linear(row, weight, bias) for row, weight, bias in pairs]


def from_places(places: range | list[int], hidden, flat) -> list[torch.Tensor]:
    """Answer each task from a position."""
    return answered([hidden[:, place] for place in places], flat)


def right(hidden: torch.Tensor, *flat: torch.Tensor) -> list[torch.Tensor]:
    """Answer task i from position i."""
    return from_places(range(len(flat) // 2), hidden, flat)


tasks = Module("task-heads", "TaskHeads", right)

# --- what goes wrong ------------------------------------------------------------------


def _several(hidden: torch.Tensor, *flat: torch.Tensor) -> bool:
    return len(flat) > 2


IN_FRONT = (
    "the heads read the last positions",
    "The class tokens come first: positions 0 to the number of tasks − 1.",
)
for name, places, when, why in (
    (
        "all heads read position 0",
        lambda n: [0] * n,
        _several,
        "Position 0 belongs to task 0. Each task has a class token of its own, which "
        "can attend to what this task needs: the head of task i reads position i.",
    ),
    (
        "class tokens counted from 1",
        lambda n: range(1, n + 1),
        None,
        "Positions and tasks are both counted from 0: task i reads position i.",
    ),
    (
        "the class tokens are read backwards",
        lambda n: range(n - 1, -1, -1),
        _several,
        "The head of task i reads position i.",
    ),
    (
        "positions counted from the end",
        lambda n: [-i for i in range(n)],
        _several,
        "hidden[:, -i:] begins i places before the end. Task i reads position i, "
        "counted from the front: hidden[:, i].",
    ),
    (IN_FRONT[0], lambda n: range(-n, 0), None, IN_FRONT[1]),
    (IN_FRONT[0], lambda n: range(-1, -n - 1, -1), None, IN_FRONT[1]),
):
    tasks.mistake(name, why, when=when)(
        lambda hidden, *flat, places=places: from_places(
            places(len(flat) // 2), hidden, flat
        )
    )
for name, read, why in (
    (
        "the heads read the mean",
        lambda hidden, task: hidden.mean(1),
        "Then all tasks get the same vector. The head of task i reads position i.",
    ),
    (
        "the heads read every position",
        lambda hidden, task: hidden,
        "There is one answer for each sequence and task: pick position i first.",
    ),
    (
        "the axis of the positions is kept",
        lambda hidden, task: hidden[:, task : task + 1],
        "hidden[:, i : i + 1] is a piece of length 1; hidden[:, i] is one position.",
    ),
    (
        "the heads read sequence i",
        lambda hidden, task: hidden[task],
        "Axis 0 is the batch. Positions are axis 1: hidden[:, i].",
    ),
):
    tasks.mistake(name, why)(
        lambda hidden, *flat, read=read: answered(
            [read(hidden, task) for task in range(len(flat) // 2)], flat
        )
    )
tasks.mistake(
    "the heads read the mean of the class tokens",
    "Then all tasks get the same vector. The head of task i reads position i alone.",
    when=_several,
)(
    lambda hidden, *flat: answered(
        [hidden[:, : len(flat) // 2].mean(1)] * (len(flat) // 2), flat
    )
)
tasks.mistake(
    "probabilities in place of logits",
    "A softmax was applied. F.cross_entropy wants logits and applies its own softmax; "
    "twice is too often: the gradient becomes small and the loss never gets near 0.",
)(lambda *given: [logits.softmax(-1) for logits in right(*given)])
ONE_TENSOR = (
    "one tensor for all tasks",
    "Tasks may differ in their classes: return a list, one entry a task.",
)
tasks.mistake(*ONE_TENSOR)(lambda *given: torch.cat(right(*given), -1))
tasks.mistake("no gradient comes back", CUT_OFF)(
    lambda hidden, *flat: right(hidden.detach(), *flat)
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
