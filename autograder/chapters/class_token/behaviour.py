"""What each readout does when the tokens change places."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from autograder.chapters.class_token.chapter import chapter
from autograder.exercise.answers import expect_entries, judge_by_hand
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.spec import Function
from autograder.expect import refuse_if, show
from autograder.interface import StudentFunction

WORDS = ("equivariant", "invariant", "neither")


@dataclass(frozen=True)
class Readout:
    """What is read off the outputs z of an encoder, and what its reader should know.

    Args:
        word: what it does.
        read: makes an answer of the outputs and the weights of a head.
        why: the reason.
        positions: whether positions were added to the tokens.
    """

    word: str
    read: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    why: str
    positions: bool = False


SUMS = (
    "Attention without positions gives every token an output that depends on which "
    "tokens there are, not on where they are. "
)
POSITIONS = (
    "With positions added, another order is another input: the same word at another "
    "place is another vector. That is what positions are for."
)
READOUTS = {
    "class_token": Readout(
        "invariant",
        lambda z, head: z[0] @ head[:4],
        SUMS + "The class token itself stays in front, and what it collects is a "
        "weighted sum over all tokens; a sum does not know an order.",
    ),
    "mean": Readout(
        "invariant",
        lambda z, head: z[1:].mean(0) @ head[:4],
        SUMS + "The same outputs in another order have the same mean.",
    ),
    "maximum": Readout(
        "invariant",
        lambda z, head: z[1:].amax(0) @ head[:4],
        SUMS + "The largest of a set of numbers is the same in any order.",
    ),
    "last_token": Readout(
        "neither",
        lambda z, head: z[-1] @ head[:4],
        SUMS + "But after the exchange another token is the last one.",
    ),
    "flattened": Readout(
        "neither",
        lambda z, head: z.flatten() @ head,
        SUMS + "But each place of the flattened vector has weights of its own, and now "
        "other tokens meet them.",
    ),
    "token_head": Readout(
        "equivariant",
        lambda z, head: z[1:] @ head[:4],
        SUMS + "There is one answer per token, and it moves with it: f(RX) = R "
        "f(X). Invariant would mean that the rows stay where they were.",
    ),
    "class_token_with_positions": Readout(
        "neither", lambda z, head: z[0] @ head[:4], POSITIONS, positions=True
    ),
    "token_head_with_positions": Readout(
        "neither", lambda z, head: z[1:] @ head[:4], POSITIONS, positions=True
    ),
}


@functools.cache
def measured() -> dict[str, str]:
    """Say what happens to each readout when the tokens of a sequence change places.

    One encoder may happen not to care: what attends to a single token, say.
    """
    found = {
        key: {_measured_once(each, seed) for seed in range(5)}
        for key, each in READOUTS.items()
    }
    return {
        key: words.pop() if len(words) == 1 else "neither"
        for key, words in found.items()
    }


def _measured_once(readout: Readout, seed: int) -> str:
    generator = seeded(seed)
    length, d_model = 5, 4
    table = 2 * normal(generator, length + 1, d_model) * readout.positions
    matrices = [normal(generator, d_model, d_model) / 2 for _ in range(3)]
    token = normal(generator, 1, d_model)
    head = normal(generator, (length + 1) * d_model, 3)

    def answer(x: torch.Tensor) -> torch.Tensor:
        x = torch.cat((token, x)) + table
        mixed = F.scaled_dot_product_attention(*(x @ matrix for matrix in matrices))
        return readout.read(torch.tanh(x + mixed), head)

    x, order = normal(generator, length, d_model), torch.tensor([3, 0, 4, 1, 2])
    before, after = answer(x), answer(x[order])
    if torch.allclose(before, after, atol=1e-5):
        return "invariant"
    rows = before.dim() == 2 and torch.allclose(before[order], after, atol=1e-5)
    return "equivariant" if rows else "neither"


def stated() -> dict[str, str]:
    """Say what happens to each readout; a test measures it."""
    return {key: each.word for key, each in READOUTS.items()}


answers = Function("readout-behaviour", "readout_behaviour", stated)


def _mistake(key: str, word: str) -> str:
    if READOUTS[key].positions:
        return "positions are forgotten"
    if key == "token_head" and word == "invariant":
        return "equivariant and invariant exchanged"
    return {
        "equivariant": "a single answer is called equivariant",
        "invariant": "invariant although the order matters",
        "neither": "neither although the tokens only changed places",
    }[word]


for key, readout in READOUTS.items():
    for word in WORDS:
        if word != readout.word:
            answers.mistake(_mistake(key, word), readout.why)(
                lambda key=key, word=word: stated() | {key: word}
            )


@chapter.check(section="class-token-order")
def readout_behaviour(student: StudentFunction, seed: int = 0) -> None:
    """Eight words: what an encoder does when tokens change places."""
    got = student()
    expect_entries(got, READOUTS)
    for key in READOUTS:
        other = not isinstance(got[key], str) or got[key] not in WORDS
        why = f"One of three words, as a string: {', '.join(WORDS)}."
        say = {"on": f"the entry {key!r}", "got": show(got[key])}
        refuse_if(other, "another word", why, **say)
    reasons = {key: readout.why for key, readout in READOUTS.items()}
    judge_by_hand(answers, got, reasons)
