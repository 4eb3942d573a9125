"""The student's own language model, graded by what it knows of stories.

The stories are told anew by the grammar of *tales*, from the pairs of words that belong
to the test: each word was trained, and what is said of it was not. When a notebook is
graded, the seed is another one, so that nobody has seen the text.
"""

import math
import random
from dataclasses import dataclass

import torch
from torch import nn

from autograder import expect
from autograder.chapters import results
from autograder.chapters.language_model.chapter import chapter
from autograder.chapters.results import Demand, Submission
from autograder.expect import refuse_if
from autograder.interface import StudentFunction
from workbench.data.tales.stories import KINDS, Story, Telling, prompts
from workbench.errors import WorkbenchError
from workbench.use import scoring

DEMAND = Demand("lm", budget=1_500_000, layers=8, shipped="tales")
TOLD = 60  # stories a score is measured on
CLEARLY = 1.15  # times: by so much no right model is better with another config.json


@dataclass(frozen=True)
class _Score:
    """What a model makes of the stories."""

    bits: float  # per byte
    kept: dict[str, float]  # kind of agreement: percent
    copied: float  # percent of places at which it repeats what it has just read


def _stories(seed: int) -> list[Story]:
    """Tell stories that no training has seen."""
    generator = random.Random(f"own {seed}")
    return [Telling("test", generator).tell() for _ in range(TOLD)]


def _score(model: Submission, seed: int) -> _Score:
    """Score a model once; the second time, say what was found.

    Raises:
        CheckFailure: it cannot read the stories.
    """
    return results.measured(model, ("stories", seed), lambda: _measure(model, seed))


def _measure(model: Submission, seed: int) -> _Score:
    told = _stories(seed)
    text = _text(told)
    bits = _bits(model.model, model, text)
    try:
        kept = scoring.agreement_scores(model.model, model.tokenizer, prompts(told))
    except WorkbenchError as error:
        expect.refuse(
            "a context that is too short",
            "A whole story has to fit into it. Train with a larger --context.",
            on=model.on,
            got=str(error).partition(":")[0],
        )
    kinds = {kind: kept[f"agreement_{kind}"] for kind in KINDS}
    return _Score(bits, kinds, _copied(model.model, _read(model, text)))


def _text(told: list[Story]) -> str:
    return "".join(story.text for story in told)


def _bits(network: nn.Module, model: Submission, text: str) -> float:
    """Return the bits per byte that a network needs, with the model's tokenizer."""
    ids = _read(model, text)
    nats = scoring.code_length(network, ids, model.config.max_length)
    return scoring.text_scores(nats, text)["bits_per_byte"]


def _read(model: Submission, text: str) -> list[int]:
    """Cut the stories by the model's tokenizer."""
    try:
        return model.tokenizer.encode(text)
    except (WorkbenchError, KeyError) as error:
        expect.refuse(
            "a model of another text",
            "Its tokenizer cannot read the stories: it was trained on something else. "
            "Train with --data tales, the default.",
            on=model.on,
            got=str(error),
            expected="a tokenizer that knows the characters of the stories",
        )


def _copied(network: nn.Module, ids: list[int]) -> float:
    """Say in percent at how many places a model repeats what it has just read."""
    rows = len(ids) // network.max_length
    whole = torch.tensor(ids[: rows * network.max_length]).view(rows, -1)
    said = network(whole).argmax(dim=-1)
    return 100 * float((said == whole).double().mean())


def _on(model: Submission, seed: int) -> str:
    return f"{TOLD} new stories, seed {'hidden' if seed else 0}; {model.on}"


# --- what goes wrong ------------------------------------------------------------------


def _refuse_known(model: Submission, found: _Score, seed: int) -> None:
    """Name the mistake behind a poor model, where it is certain."""
    say = {"on": _on(model, seed), "got": f"{found.bits:.2f} bits per byte"}
    refuse_if(
        found.copied > 80,
        "the labels are the inputs",
        f"At {found.copied:.0f} % of all places it repeats the token that it has just "
        "read. The label of a token is the token after it.",
        **say,
    )
    refuse_if(
        model.tokenizer.name != model.config.tokenizer,
        "the tokenizer of another run",
        "config.json names the tokenizer that the weights were trained with, and this "
        "is another one: the ids have other meanings. Hand in the tokenizer.json that "
        "was written with the weights.",
        **say,
    )
    text = _text(_stories(seed))
    for words, other in results.alike(model):
        bits = _bits(other, model, text)
        refuse_if(
            bits * CLEARLY < found.bits,
            "config.json was changed",
            f"If {words}, the same weights need {bits:.2f} bits per byte. Hand in the "
            "config.json that was written with them.",
            **say,
        )


# --- the checks -----------------------------------------------------------------------


@chapter.check(section="language-model-own")
def own_model(student: StudentFunction, class_seed: int = 0) -> None:
    """The files, the budget, the text, and fewer bits than guessing needs."""
    model = results.submitted(student, DEMAND)
    found = _score(model, class_seed)
    guessing = math.log2(len(model.tokenizer.alphabet))
    if found.bits >= guessing:
        _refuse_known(model, found, class_seed)
    expect.true(
        found.bits < guessing,
        "it knows less than nothing",
        on=_on(model, class_seed),
        got=f"{found.bits:.2f} bits per byte",
        expected=f"fewer than log2 {len(model.tokenizer.alphabet)} = {guessing:.2f}, "
        "which guessing at letters needs",
        why="A model that was trained is better than guessing. Evaluate it where you "
        "trained it: python -m workbench evaluate lm.",
    )


@chapter.check(section="language-model-own")
def new_stories(student: StudentFunction, most: float, class_seed: int = 0) -> None:
    """Bits per byte of stories that nobody has seen."""
    model = results.submitted(student, DEMAND)
    found = _score(model, class_seed)
    if found.bits > most:
        _refuse_known(model, found, class_seed)
    expect.true(
        found.bits <= most,
        f"more than {most:g} bits per byte",
        on=_on(model, class_seed),
        got=f"{found.bits:.3f} bits per byte",
        expected=f"at most {most:g}",
        why="Look at curves.png: if the loss still falls at the end, train for more "
        "--steps. A larger model helps less.",
    )


@chapter.check(section="language-model-own")
def agreement(
    student: StudentFunction,
    least: float,
    kinds: tuple[str, ...] = tuple(KINDS),
    class_seed: int = 0,
) -> None:
    """What was said before decides what comes next: each kind of it."""
    model = results.submitted(student, DEMAND)
    found = _score(model, class_seed)
    worst = min(kinds, key=found.kept.__getitem__)
    if found.kept[worst] < least:
        _refuse_known(model, found, class_seed)
    results.reach(
        found.kept[worst],
        least,
        what=f"agreement ({worst})",
        on=_on(model, class_seed),
        why="Kept are "
        + ", ".join(f"{kind} {value:.0f} %" for kind, value in found.kept.items())
        + ". The far ones are learned last: train for more --steps.",
    )
