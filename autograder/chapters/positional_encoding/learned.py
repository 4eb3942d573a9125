"""The module with the trained table."""

import random
from collections.abc import Iterator

import torch

from autograder.chapters.positional_encoding import adding, dropping
from autograder.chapters.positional_encoding.chapter import chapter
from autograder.chapters.positional_encoding.forms import explaining
from autograder.exercise.inputs import seeded
from autograder.exercise.parameters import State, expect_parameters, expect_spread
from autograder.interface import StudentModule

UNTRAINED = (
    "A parameter is trained unless it is told not to be: leave out "
    "requires_grad=False, and compute nothing under torch.no_grad()."
)
SMALL = (
    "At a standard deviation of 1 the positions drown small embeddings, and much "
    "below 0.02 no two positions differ at first. Multiply by 0.02, or use "
    "nn.init.normal_(table, std=0.02)."
)


@chapter.check(section="position-learned")
def learned_module(student: StudentModule, seed: int = 0) -> None:
    """Check the parameter and its start, the sum, the limit, dropout, gradients."""
    with explaining(**adding.CAUSES):
        _judge(student, seed)


def _judge(student: StudentModule, seed: int) -> None:
    draw, values = random.Random(seed), seeded(seed)
    limit, width = draw.choice([11, 13]), draw.choice([8, 10])
    module = student.build(limit, width)
    on = f"max_length = {limit}, d_model = {width}"
    expect_parameters(module, {"table": (limit, width)}, on, _own(limit, width))
    expect_spread(
        student.build(150, 20).state_dict()["table"],
        0.02,
        "max_length = 150, d_model = 20",
        name="table",
        formula="1/50",
        why=SMALL,
    )
    # row p is p, p + 0.01, ...: a message shows at a glance which row was added
    table = torch.arange(limit)[:, None] + torch.arange(width) / 100
    module.load_state_dict({"table": table})
    adding.judge_sum(adding.rows, module, table, values, draw)
    adding.expect_limit(lambda rows: student.build(rows, width), width, limit)
    forgetful = student.build(limit, width, dropout=dropping.PROBABILITY)
    table = 0.3 + 0.7 * torch.rand(limit, width, generator=values)
    module.load_state_dict({"table": table})
    forgetful.load_state_dict({"table": table})
    dropping.judge_dropout(dropping.rows, module, forgetful, table)
    with explaining(RuntimeError=UNTRAINED):
        adding.judge_gradients(adding.rows, module, table, values)


def _own(limit: int, width: int):
    """What goes wrong with a table only."""

    def conditions(state: State, missing: list, extra: list) -> Iterator[tuple]:
        shape = tuple(state["table"].shape) if "table" in state else ()
        yield (
            extra == ["table.weight"],
            "PyTorch's module in place of your own",
            "nn.Embedding is a module of its own: its parameter is called "
            "table.weight. Here the table itself is an nn.Parameter, self.table.",
        )
        yield (
            shape == (width, limit) and not missing,
            "table transposed",
            "A row is a position: (max_length, d_model). Note the order of the "
            "constructor's arguments, the same.",
        )
        yield (
            shape in ((1, limit, width), (limit, 1, width)) and not missing,
            "one axis too many",
            "A row for each position and no axis more: broadcasting repeats the table "
            "for every sequence by itself.",
        )

    return conditions
