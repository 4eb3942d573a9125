"""Greedy decoding: the most probable token, again and again."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from autograder import expect
from autograder.chapters.decoder.writing.chapter import chapter
from autograder.chapters.decoder.writing.language import (
    Language,
    by_hand,
    draw_language,
    expect_ids,
    load_model,
    most_probable,
    name_several,
)
from autograder.exercise.inputs import seeded
from autograder.exercise.spec import Case, Function
from autograder.expect import refuse_if, show
from autograder.interface import StudentFunction, StudentModule

ONLY_LAST = (
    "The model was given the last token alone, so it has forgotten how the text "
    "began. Call it with everything written so far."
)
ALL_POSITIONS = (
    "argmax() of all logits is a place among t × V numbers and no id. Take the last "
    "row first, logits[0, -1]."
)

greedy = Function("greedy-decode", "greedy_decode", most_probable)
greedy.accident(
    "out of bounds for dimension", "the largest of all positions", ALL_POSITIONS
)
name_several(greedy)

# --- what goes wrong ------------------------------------------------------------------


def _greedy(
    model: Callable[[torch.Tensor], torch.Tensor],
    prefix: list[int],
    eos_id: int,
    max_length: int,
    *,
    see: Callable = lambda ids, begun: ids,
    choose: Callable = lambda logits: int(logits[-1].argmax()),
    stop: bool = True,
    limit: Callable = lambda most, begun: most,
    least: int = 0,
    finish: Callable = lambda ids, begun, eos_id: ids,
) -> list[int]:
    """Write by rules that can be varied.

    Args:
        model: gives logits.
        prefix: what the text begins with.
        eos_id: what it ends with.
        max_length: ids at most.
        see: what the model reads, of the ids so far and how long the prefix is.
        choose: the next id, of all rows of logits.
        stop: whether the text ends with ``eos_id``.
        limit: how many ids there may be, of ``max_length`` and how long the prefix is.
        least: so many new ids come without a test.
        finish: the result, of the ids, how long the prefix is, and ``eos_id``.
    """
    ids, begun = list(prefix), len(prefix)
    while len(ids) < max(limit(max_length, begun), begun + least):
        ids.append(choose(model(torch.tensor([see(ids, begun)]))[0]))
        if stop and ids[-1] == eos_id:
            break
    return finish(ids, begun, eos_id)


greedy.slips(
    _greedy,
    (
        "the wrong row of logits",
        "The model answers with a row for each position, and the first row says what "
        "follows the first token. What comes next is in the last row: logits[0, -1].",
        {"choose": lambda logits: int(logits[0].argmax())},
    ),
    ("only the last token is read", ONLY_LAST, {"see": lambda ids, begun: ids[-1:]}),
    (
        "the model reads the prefix again and again",
        "The model was given the prefix in every turn, so it says the same each time. "
        "Give it everything written so far.",
        {"see": lambda ids, begun: ids[:begun]},
    ),
    (
        "goes on after the end",
        "With eos_id the text is complete. Stop the loop as soon as it was appended.",
        {"stop": False},
    ),
    (
        "the end token is left out",
        "eos_id belongs to the result: append first, then test whether to stop.",
        {"finish": lambda ids, begun, end: ids[:-1] if ids[-1] == end else ids},
    ),
    (
        "the prefix is left out",
        "The result begins with the prefix; only what is new was returned.",
        {"finish": lambda ids, begun, end: ids[begun:]},
    ),
    (
        "max_length counts the new tokens alone",
        "max_length is the largest number of ids of the result, with the prefix.",
        {"limit": lambda most, begun: most + begun},
    ),
    (
        "one token too many",
        "The result may have max_length ids and no more: go on while len(ids) < "
        "max_length.",
        {"limit": lambda most, begun: most + 1},
    ),
    (
        "one token too many",
        "A prefix that has max_length ids is complete. Test before you append.",
        {"least": 1},
    ),
    (
        "one token too few",
        "The result may have max_length ids: go on while len(ids) < max_length.",
        {"limit": lambda most, begun: most - 1},
    ),
    (
        "the least probable token",
        "The smallest logit was taken. The most probable token has the largest.",
        {"choose": lambda logits: int(logits[-1].argmin())},
    ),
    (
        "the largest of all positions",
        ALL_POSITIONS,
        {"choose": lambda logits: int(logits.argmax())},
    ),
)

# --- the check ------------------------------------------------------------------------


def _cases(seed: int) -> Iterator[tuple[Case, Language]]:
    """The table by hand, both ways to stop, and random tables."""
    on = "the table by hand, greedy_decode(model, [0], 3, 10)"
    yield Case(on, ([0], 3, 10), [0, 1, 3]), by_hand()
    generator = seeded(seed)
    for size, end, limit, begin in (
        (6, -9.0, 9, 1),
        (7, 0.5, 25, 3),
        (5, -9.0, 6, 4),
        (6, 0.0, 30, 2),
        (5, -9.0, 3, 3),
        (8, 0.5, 12, 2),
    ):
        language = draw_language(generator, size, end)
        prefix = torch.randint(0, size - 1, (begin,), generator=generator).tolist()
        on = (
            f"a random table for {size} tokens, prefix {prefix}, eos_id {size - 1}, "
            f"max_length {limit}"
        )
        yield Case(on, (prefix, size - 1, limit)), language


@chapter.check(section="decoder-greedy")
def greedy_decode(
    student: StudentFunction, table: StudentModule, seed: int = 0
) -> None:
    """Check the example by hand, both ways to stop, and random tables."""
    with greedy.accidents_named():
        _expect_no_chance(student, table, seeded(seed + 1))
    for case, language in _cases(seed):
        with greedy.accidents_named():
            got = student(load_model(table, language), *case.inputs)
        case = replace(case, inputs=(language, *case.inputs), what="the text")
        expect_ids(got, greedy.right(case), on=case.on, what="the text")
        greedy.compare(got, case)


def _expect_no_chance(student, table, generator) -> None:
    """Name sampling: the same call gives different texts."""
    language = draw_language(generator, 7, -9.0, 0.2)
    model = load_model(table, language)
    texts = [student(model, [1], 6, 14) for _ in range(3)]
    on = "a random table for 7 tokens, the same call three times"
    why = (
        "The next token was drawn by chance, so the same prefix gives different texts. "
        "Greedy decoding takes the most probable token: argmax."
    )
    same = all(expect.close(text, texts[0]) for text in texts)
    say = {"on": on, "got": f"{show(texts[0])}, then another text"}
    refuse_if(not same, "drawn by chance", why, expected="the same text", **say)
