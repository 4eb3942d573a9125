"""Time every check as it runs in an open notebook, on one core.

A part of `make bench`. For each exercise: the part of its check that a student sees,
and the whole check with its hidden part, on the reference answer.
"""

import contextlib
import io
import time

import torch

from autograder.expect import CheckFailure
from tests import chapters

REPEATS = 5


def seconds(text: str, names: dict) -> float:
    """Run a check cell several times; return the slowest run."""
    code, slowest = compile(text, "check", "exec"), 0.0
    for _ in range(REPEATS):
        start = time.perf_counter()
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.suppress(CheckFailure),
        ):
            exec(code, names)
        slowest = max(slowest, time.perf_counter() - start)
    return slowest


def main() -> None:
    """Print a table: each exercise's check, visible part and whole."""
    torch.set_num_threads(1)
    print(f"slowest of {REPEATS} runs, one core, milliseconds")
    print(f"{'chapter':<24}{'exercise':<32}{'as seen':>8}{'graded':>8}")
    rows = []
    for chapter in chapters.CHAPTERS:
        names = chapters.solved(chapter)
        for exercise in chapters.source(chapter).exercises:
            parts = []
            for hidden in (False, True):
                texts = chapters.check_cells(chapter, exercise.name, hidden=hidden)
                parts.append(1000 * sum(seconds(text, names) for text in texts))
            if not exercise.by_hand:
                rows.append((parts[0], chapter, exercise.name))
                seen, graded = parts
                print(f"{chapter:<24}{exercise.name:<32}{seen:>8.0f}{graded:>8.0f}")
    milliseconds, chapter, name = max(rows)
    print(f"the slowest a student waits for: {milliseconds:.0f} ms, {chapter} {name}")
