"""The student's own translator, graded by what it can do.

It translates sentences of the phrasebook's test split, which no training split holds.
"""

import math
import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from autograder import expect
from autograder.chapters import results
from autograder.chapters.own_model import padded
from autograder.chapters.results import Demand, Submission
from autograder.chapters.translator.chapter import chapter
from autograder.exercise.showing import shortened
from autograder.expect import refuse_if
from autograder.interface import StudentFunction
from workbench.data import phrasebook
from workbench.data.tokenizer import Tokenizer
from workbench.model.variants import output_matrix
from workbench.use.decoding import translate_batch

DEMAND = Demand(
    "translator",
    budget=1_500_000,
    layers=8,
    shipped="phrasebook",
    likewise=("everyday",),
)
LOOKED_AT = 100  # sentences, to find out what is wrong
TESTED = 300  # sentences a score is measured on
TOGETHER = 100  # sentences translated at once


@dataclass(frozen=True)
class _Test:
    """Sentence pairs as ids, the shortest first, and what the right texts are."""

    sources: list[list[int]]
    targets: list[list[int]]
    texts: list[str]

    def some(self, count: int) -> "_Test":
        """Take pairs from all lengths."""
        step = max(1, len(self.texts) // count)
        return _Test(self.sources[::step], self.targets[::step], self.texts[::step])


def _test(model: Submission, seed: int) -> _Test:
    """Draw sentences of the test split, which no training split of any seed holds."""
    return results.measured(model, ("test", seed), lambda: _draw(model, seed))


def _draw(model: Submission, seed: int) -> _Test:
    known = phrasebook.well_known()
    pairs = phrasebook.draw(random.Random(seed), "test", TESTED, known)
    pairs.sort(key=lambda pair: len(pair[0]))
    most = model.config.max_length
    encoded = [model.tokenizer.encode_all(side) for side in zip(*pairs, strict=True)]
    sources, targets = ([ids[: most - 1] for ids in side] for side in encoded)
    return _Test(sources, targets, [target for _, target in pairs])


@dataclass(frozen=True)
class _Score:
    """What a model wrote."""

    exact: float  # percent
    endless: float  # percent of what begins rightly, then does not end
    example: str


def _translate(model: Submission, test: _Test) -> _Score:
    """Translate greedily; no right translation is longer than the longest of all."""
    longest = max(map(len, test.targets)) + 2
    right, endless, example = 0, 0, ""
    for first in range(0, len(test.texts), TOGETHER):
        chosen = slice(first, first + TOGETHER)
        written = translate_batch(
            model.model,
            padded(test.sources[chosen]),
            Tokenizer.SOS,
            Tokenizer.EOS,
            min(longest, model.config.max_length),
        )
        for ids, target, text in zip(
            written, test.targets[chosen], test.texts[chosen], strict=True
        ):
            found = model.tokenizer.decode(ids)
            right += found == text
            endless += found != text and ids[: len(target)] == target
            if found != text and not example:
                example = f"{shortened(found, 70)!r} in place of {text!r}"
    count = len(test.texts)
    return _Score(100 * right / count, 100 * endless / count, example)


def _forced(
    model: nn.Module, sources: list, targets: list, *, causal: bool = True
) -> tuple[float, float, float]:
    """Read the right translations: loss, share of labels said, share of inputs said.

    Without the causal mask the decoder sees what it is to predict.
    """
    source = padded(sources)
    inputs = padded([[Tokenizer.SOS, *row] for row in targets])
    labels = padded([[*row, Tokenizer.EOS] for row in targets])
    if causal:
        logits = model(source, inputs)
    else:
        seen = (inputs != Tokenizer.PAD).unsqueeze(1)
        across = (source != Tokenizer.PAD).unsqueeze(1)
        x = model.position(model.embedding(inputs))
        hidden = model.decoder(x, model.encode(source), seen, across)
        logits = hidden @ output_matrix(model).T
    real = labels != Tokenizer.PAD
    loss = F.cross_entropy(logits[real], labels[real]).item()
    said = logits.argmax(dim=-1)
    hits = (said == labels)[real].float().mean().item()
    later = real & (inputs != Tokenizer.SOS)
    return loss, hits, (said == inputs)[later].float().mean().item()


def _refuse_known(model: Submission, test: _Test) -> None:
    """Name the mistake behind a poor model, where it is certain."""
    few = test.some(LOOKED_AT)
    sources, targets = few.sources, few.targets
    loss, hits, copied = _forced(model.model, sources, targets)
    say = {"on": model.on}
    say["got"] = f"{100 * hits:.0f} % of the next tokens right, given those before"
    backwards = _forced(model.model, targets, sources)[1]
    refuse_if(
        backwards > hits + 0.3,
        "languages exchanged",
        f"From German to English it finds {100 * backwards:.0f} % of the next tokens. "
        "This exercise translates from English to German.",
        **say,
    )
    for words, other in results.alike(model):
        better = _forced(other, sources, targets)[1]
        refuse_if(
            better > hits + 0.01 and 1 - better < 0.5 * (1 - hits),
            "config.json was changed",
            f"If {words}, the same weights find {100 * better:.0f} % of the next "
            "tokens. Hand in the config.json that was written with them.",
            **say,
        )
    refuse_if(
        copied > 0.8,
        "targets not shifted",
        f"At {100 * copied:.0f} % of all places it repeats the token that it has just "
        "read: it was trained with labels equal to inputs. Look at shift_right.",
        **say,
    )
    uncovered = _forced(model.model, sources, targets, causal=False)[1]
    refuse_if(
        uncovered > max(0.5, hits + 0.3),
        "trained without the causal mask",
        f"If the decoder may see what comes next, it finds {100 * uncovered:.0f} % of "
        "it. It has learned to copy the future, which is not there when it writes: "
        "look at the mask that your decode gives to the decoder.",
        **say,
    )
    refuse_if(
        loss > math.log(model.config.vocab_size) and hits < 0.1,
        "the tokenizer of another run",
        f"Its loss of {loss:.1f} is above ln {model.config.vocab_size} = "
        f"{math.log(model.config.vocab_size):.1f}, that of guessing: it is sure, and "
        "wrong, as if the ids had other meanings. Hand in the tokenizer.json that was "
        "written with the weights.",
        **say,
    )


@chapter.check(section="translator-yours")
def own_model(student: StudentFunction, class_seed: int = 0) -> None:
    """The files, the budget, the direction, and a loss below that of guessing."""
    model = results.submitted(student, DEMAND)
    config = model.config
    direction = f"{config.source} → {config.target}"
    refuse_if(
        (config.source, config.target) != ("en", "de"),
        "languages exchanged",
        "This exercise translates from English to German: train without --reverse.",
        on=model.on,
        got=direction,
        expected="en → de",
    )
    guessing = math.log(config.vocab_size)
    loss = results.measured(
        model, ("loss", class_seed), lambda: _loss(model, class_seed)
    )
    expect.true(
        loss < guessing,
        "it knows less than nothing",
        on=f"{model.on}, {LOOKED_AT} sentences of the test split",
        got=f"a loss of {loss:.2f}",
        expected=f"below ln {config.vocab_size} = {guessing:.2f}",
        why="A model that was trained is better than guessing. Evaluate it where you "
        "trained it: python -m workbench evaluate translator.",
    )


def _loss(model: Submission, seed: int) -> float:
    test = _test(model, seed)
    few = test.some(LOOKED_AT)
    loss = _forced(model.model, few.sources, few.targets)[0]
    if not loss < math.log(model.config.vocab_size):
        _refuse_known(model, test)
    return loss


@chapter.check(section="translator-yours")
def exact_match(student: StudentFunction, least: float, class_seed: int = 0) -> None:
    """Translations of sentences with unseen combinations, word for word."""
    model = results.submitted(student, DEMAND)
    test = _test(model, class_seed)
    score = results.measured(
        model, ("exact", class_seed), lambda: _translate(model, test)
    )
    which = "others than in your notebook" if class_seed else "those of your notebook"
    on = f"{TESTED} sentences of the test split, {which}"
    if score.exact < least:
        with torch.inference_mode():
            _refuse_known(model, test)
        refuse_if(
            score.endless > 50,
            "the end was never learned",
            "It translates rightly and then goes on. Was <eos> among the labels, and "
            "did the loss count it?",
            on=on,
            got=f"{score.endless:.0f} % begin with the right translation",
        )
    results.reach(
        score.exact,
        least,
        what="exact match",
        on=f"{on}; {model.on}",
        why=f"The first that is wrong: {score.example}. Train longer, or on more "
        "pairs; look at the curve of the validation loss first.",
    )
