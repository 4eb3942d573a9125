"""The module with the fixed table: a buffer that is not saved."""

import random

import torch

from autograder import expect
from autograder.chapters.positional_encoding import adding, dropping
from autograder.chapters.positional_encoding.chapter import chapter
from autograder.chapters.positional_encoding.encoding import (
    encoded,
    sinusoidal_positional_encoding,
)
from autograder.chapters.positional_encoding.forms import expect_type, explaining
from autograder.exercise.inputs import seeded
from autograder.expect import refuse_if
from autograder.interface import StudentFunction, StudentInstance, StudentModule


@chapter.check(section="position-adding")
def sinusoidal_module(
    student: StudentModule, encoding: StudentFunction, seed: int = 0
) -> None:
    """Check the table's kind, the sum, the limit, dropout and the gradient.

    The table is the right one, whatever the exercise before returns: what is compared
    with must not be the student's. Who adds the rows of a wrong function is told so.
    """
    with (
        expect.relying_on(sinusoidal_positional_encoding, encoding),
        explaining(**adding.CAUSES),
    ):
        _judge(student, seed)


def _judge(student: StudentModule, seed: int) -> None:
    draw, values = random.Random(seed), seeded(seed)
    limit, width = draw.choice([11, 13]), draw.choice([8, 10])
    module = student.build(width, max_length=limit)
    on = f"d_model = {width}, max_length = {limit}"
    _expect_quiet_buffer(module, on)
    module.train(False)
    expect_type(module(torch.zeros(2, 3, width)), f"{on}, x float32")
    spec, table = adding.sinusoids, encoded(limit, width)
    adding.judge_sum(spec, module, table, values, draw)
    adding.expect_limit(
        lambda rows: student.build(width, max_length=rows), width, limit
    )
    forgetful = student.build(width, max_length=limit, dropout=dropping.PROBABILITY)
    dropping.judge_dropout(dropping.sinusoids, module, forgetful, table)
    adding.judge_gradients(spec, module, table, values)


def _expect_quiet_buffer(module: StudentInstance, on: str) -> None:
    trained, saved = module.parameter_names(), list(module.state_dict())
    refuse_if(
        bool(trained),
        "the encoding is a parameter",
        "The sinusoids are fixed; an optimiser must not see them. Use "
        "self.register_buffer(name, table, persistent=False).",
        on=on,
        got=f"parameters {trained}",
        expected="no parameters",
    )
    refuse_if(
        bool(saved),
        "the buffer is persistent",
        "A table that can be computed need not be in every checkpoint, where it also "
        "fixes max_length: register it with persistent=False.",
        on=on,
        got=f"state_dict() has {saved}",
        expected="an empty state_dict()",
    )
    refuse_if(
        not module.buffer_names(),
        "the table is no buffer",
        "A plain attribute stays behind when the module moves: model.to('cuda') then "
        "adds a CPU table to a CUDA tensor. Use self.register_buffer.",
        on=on,
        got="no buffers",
        expected="one buffer, not persistent",
    )
