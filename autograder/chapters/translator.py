"""Checks of chapter 9: a translator, trained, judged, and handed in.

The oracles are PyTorch's cross-entropy and averaged model, NumPy's percentiles, loops
over entries, values worked out by hand, and sentences that no training split holds. A
known mistake is found by computing what it would give on the same input.
"""

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from autograder import expect
from autograder.chapters import results
from autograder.chapters.results import Demand, Submission
from autograder.chapters.translator_mistakes import (
    align_candidates,
    average_candidates,
    batch_candidates,
    bootstrap_candidates,
    floor_candidates,
    forced_candidates,
)
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.naming import known_mistakes
from autograder.exercise.showing import shortened
from autograder.expect import Chapter, describe_error, refuse, refuse_if, show
from autograder.interface import Data, StudentError, StudentFunction
from workbench import phrasebook
from workbench.decoding import translate_batch
from workbench.tokenizer import Tokenizer
from workbench.variants import output_matrix

chapter = Chapter(9, "09_translator")
progress = chapter.progress


# --- a batch --------------------------------------------------------------------------

SPECIAL = (2, 3)  # <sos> and <eos>


def _batch(sources: list, targets: list, width: int, sos, eos, pad) -> tuple:
    """Write three padded tensors, entry by entry."""
    source, inputs, labels = (
        torch.full((len(sources), width), pad, dtype=torch.long) for _ in range(3)
    )
    for row, (read, written) in enumerate(zip(sources, targets, strict=True)):
        inputs[row, 0], labels[row, len(written)] = sos, eos
        for place, token in enumerate(read):
            source[row, place] = token
        for place, token in enumerate(written):
            inputs[row, place + 1] = labels[row, place] = token
    return source, inputs, labels


def _sentences(generator: torch.Generator, lengths: Iterable[int]) -> list[list[int]]:
    return [
        torch.randint(10, 40, (length,), generator=generator).tolist()
        for length in lengths
    ]


@chapter.check(section="translator-batches")
def fixed_batch(student: StudentFunction, seed: int = 0) -> None:
    """By hand, several widths, a sentence as long as a width, what fits nowhere."""
    generator = seeded(seed)
    a, b, c = draw_sizes(generator, 3)
    hand = ([[11, 12, 13], [14]], [[21, 22], [23, 24, 25]], (4, 8), 4)
    drawn = (
        _sentences(generator, (a, 1, b)),
        _sentences(generator, (c, 8, a)),
        (16, 12, 8),
        12,
    )
    wide = (
        _sentences(generator, (10 + a % 3, 2)),
        _sentences(generator, (3, b % 4 + 1)),
        (6, 24, 17, 9, 32),
        17,
    )
    cases = (
        (hand, (2, 3), "the example by hand"),
        (drawn, (5, 4, 7), "a target of 8 tokens, widths (16, 12, 8)"),
        (wide, (2, 3, 1), "a source of 10 to 12 tokens, widths (6, 24, 17, 9, 32)"),
    )
    for (sources, targets, widths, width), special, on in cases:
        pad = special[2] if len(special) == 3 else 0
        ids = (special[0], special[1], pad)
        right = _batch(sources, targets, width, *ids)
        got = _called(student, (sources, targets, widths, *special), on)
        candidates = batch_candidates(sources, targets, widths, *ids)
        expect.equal(got, right, on=on, mistakes=known_mistakes(candidates))
    too_long = _sentences(generator, (3,)), _sentences(generator, (8,))
    expect.raises(
        "ValueError",
        lambda: student(*too_long, (4, 8), 2, 3),
        on="a target of 8 tokens, widths (4, 8)",
        why="With <sos> or <eos> it needs 9 places. A sentence that is cut has lost "
        "its end without anybody noticing.",
        mistake="what is too long is not refused",
    )


def _called(student: StudentFunction, given: tuple, on: str) -> Data:
    """Call it; explain rows of several lengths, and a batch that is one tensor."""
    try:
        got = student(*given)
    except StudentError as error:
        if "expected sequence of length" not in error.text:
            raise
        why = "Rows of one tensor have one length: fill up before making it."
        said = describe_error(error)
        refuse("the rows have different lengths", why, on=on, got=said)
    wanted = isinstance(got, (tuple, list)) and len(got) == 3
    why = "The function ends without `return`." if got is None else "Return all three."
    say = {"on": on, "got": show(got), "expected": "(source, inputs, labels)"}
    expect.true(wanted, "the result is not three tensors", why=why, **say)
    return tuple(got)


# --- averaging ------------------------------------------------------------------------


def _states(generator: torch.Generator, count: int) -> list[dict]:
    """Draw checkpoints: two matrices, one of half precision, and a counter."""
    a, b, c = draw_sizes(generator, 3)
    return [
        {
            "weight": normal(generator, a, b),
            "half.weight": 30_000 + 100 * normal(generator, c).half(),
            "bias": normal(generator, b),
            "steps": torch.tensor(100 * (number + 1) + number % 2),
        }
        for number in range(count)
    ]


def _averaged(states: list[dict]) -> dict:
    """Let PyTorch's own averaged model do it, tensor by tensor, in double precision."""
    found = {}
    for name, last in states[-1].items():
        found[name] = last
        if last.is_floating_point():
            modules = [nn.ParameterList([state[name].double()]) for state in states]
            mean = torch.optim.swa_utils.AveragedModel(modules[0])
            for module in modules:
                mean.update_parameters(module)
            found[name] = mean.module[0].detach().to(last.dtype)
    return found


@chapter.check(section="translator-averaging")
def average_states(student: StudentFunction, seed: int = 0) -> None:
    """By hand, PyTorch's averaged model, counters, half precision, one checkpoint."""
    generator = seeded(seed)
    hand = [{"w": torch.tensor([value, 2 * value])} for value in (1.0, 2.0, 6.0)]
    cases = [(hand, {"w": torch.tensor([3.0, 6.0])}, "the example by hand")]
    for count in (4, 3, 1):
        states = _states(generator, count)
        words = f"{count} checkpoints" if count > 1 else "one checkpoint"
        cases.append((states, _averaged(states), words))
    for states, right, on in cases:
        try:
            got = student(states)
        except StudentError as error:
            if "floating point or complex dtype" not in error.text:
                raise
            why = "A counter is no weight: keep that of the last checkpoint."
            refuse("integers averaged", why, on=on, got=describe_error(error))
        known = (
            replace(each, value=_rounded(each.value, right))
            for each in known_mistakes(average_candidates(states, right))
        )
        expect.equal(_rounded(got, right), right, on=on, mistakes=known)


def _rounded(got: Data, right: dict) -> Data:
    """Let half precision, which has three digits, differ in its last one."""
    if not isinstance(got, dict) or got.keys() != right.keys():
        return got
    near = {
        name: value
        for name, value in right.items()
        if value.dtype == torch.float16
        and isinstance(got[name], torch.Tensor)
        and got[name].dtype == value.dtype
        and expect.close(got[name], value, 2e-3)
    }
    return got | near


# --- the floor of a smoothed loss -----------------------------------------------------


@chapter.check(section="translator-curves")
def smoothing_floor(student: StudentFunction, seed: int = 0) -> None:
    """By hand, PyTorch's smoothed cross-entropy of the best, no smoothing."""
    generator = seeded(seed)
    drawn = [
        (10 + int(torch.randint(3000, (), generator=generator)), smoothing)
        for smoothing in (0.1, 0.3, 0.05)
    ]
    for vocab_size, smoothing in [(4, 0.2), *drawn, (7, 0.0)]:
        on = f"vocab_size {vocab_size}, smoothing {smoothing:g}"
        chances = torch.full((vocab_size,), smoothing / vocab_size, dtype=torch.double)
        chances[0] += 1 - smoothing
        scores = chances.clamp(min=1e-300).log().unsqueeze(0)
        target = torch.tensor([0])
        right = F.cross_entropy(scores, target, label_smoothing=smoothing).item()
        try:
            got = student(vocab_size, smoothing)
        except StudentError as error:
            if smoothing or error.kind == "NotImplementedError":
                raise
            why = "0 · ln 0 counts as 0: without smoothing the floor is 0."
            refuse("fails without smoothing", why, on=on, got=describe_error(error))
        if isinstance(got, float) and math.isnan(got) and not smoothing:
            why = "0 · ln 0 counts as 0: without smoothing the floor is 0."
            refuse("fails without smoothing", why, on=on, got="nan", expected="0")
        right = abs(right)  # no negative zero
        expect.equal(
            got,
            right,
            on=on,
            mistakes=known_mistakes(floor_candidates(vocab_size, smoothing)),
        )


# --- teacher-forced accuracy ----------------------------------------------------------


def _counted(logits: torch.Tensor, labels: torch.Tensor, pad: int) -> tuple:
    """Count tokens and sentences, one by one."""
    verdicts = []
    for scores, sentence in zip(logits.tolist(), labels.tolist(), strict=True):
        verdicts.append(
            [
                row.index(max(row)) == label
                for row, label in zip(scores, sentence, strict=True)
                if label != pad
            ]
        )
    tokens = [verdict for sentence in verdicts for verdict in sentence]
    return sum(tokens) / len(tokens), sum(map(all, verdicts)) / len(verdicts)


def _scored(generator: torch.Generator, pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw labels of several lengths, and logits that are right three times in four."""
    b, t, v = 8, 7, 11
    lengths = [t, 2, 3, t - 1, 1, 4, 2, 5]
    labels = torch.full((b, t), pad)
    for row, length in enumerate(lengths):
        ids = torch.randint(2, v, (length,), generator=generator)
        labels[row, :length] = ids.masked_fill(ids == pad, 2 + (pad == 2))
    logits = normal(generator, b, t, v)
    hit = torch.rand(b, t, generator=generator) < 0.75
    hit[1], hit[2, 0], hit[6] = True, False, True
    bonus = F.one_hot(labels, v) * (12.0 * hit.unsqueeze(-1))
    # where nothing is to be said, the model says something else
    return logits + bonus.masked_fill((labels == pad).unsqueeze(-1), 0.0), labels


@chapter.check(section="translator-accuracy")
def forced_accuracy(student: StudentFunction, seed: int = 0) -> None:
    """By hand, counted one by one, padding of another id."""
    generator = seeded(seed)
    labels = torch.tensor([[5, 3, 0, 0], [4, 1, 2, 3]])
    said = torch.tensor([[5, 3, 1, 1], [4, 1, 1, 3]])
    hand = 4.0 * F.one_hot(said, 6).float()
    cases = [(hand, labels, (), "the example by hand")]
    for pad in (0, 1):
        logits, labels = _scored(generator, pad)
        on = f"logits {tuple(logits.shape)}, pad_id {pad}"
        cases.append((logits, labels, (pad,), on))
    for logits, labels, more, on in cases:
        pad = more[0] if more else 0
        right = _counted(logits, labels, pad)
        got = student(logits, labels, *more)
        expect.equal(
            got,
            right,
            on=on,
            mistakes=known_mistakes(forced_candidates(logits, labels, pad)),
        )


# --- alignment ------------------------------------------------------------------------


def _looked_at(weights: torch.Tensor, source: int, target: int) -> list[int]:
    """Find the source token of each target token by adding up, head by head."""
    found = []
    for row in range(target):
        sums = [
            sum(weights[head, row, column].item() for head in range(len(weights)))
            for column in range(source)
        ]
        found.append(sums.index(max(sums)))
    return found


@chapter.check(section="translator-attention")
def align(student: StudentFunction, seed: int = 0) -> None:
    """By hand, several heads, rows and columns that are padding."""
    generator = seeded(seed)
    hand = torch.tensor(
        [
            [[0.6, 0.3, 0.1], [0.2, 0.4, 0.4], [0.1, 0.2, 0.7]],
            [[0.5, 0.2, 0.3], [0.1, 0.8, 0.1], [0.6, 0.2, 0.2]],
        ]
    )
    cases = [((hand, 3, 2), "the example by hand")]
    for heads, rows, columns in ((3, 9, 11), (4, 12, 8), (5, 10, 13)):
        weights = (3 * normal(generator, heads, rows, columns)).softmax(-1)
        source, target = columns - 3, rows - 2
        on = f"weights {tuple(weights.shape)}, {source} source and {target} target"
        cases.append(((weights.contiguous(), source, target), on))
    for given, on in cases:
        right = _looked_at(*given)
        got = student(*given)
        expect.form(got, right, on=on)
        expect.equal(
            got, right, on=on, mistakes=known_mistakes(align_candidates(*given))
        )


# --- is a difference real? ------------------------------------------------------------


def _resampled(first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor):
    """Let NumPy do it, sample by sample."""
    a, b = first.double().numpy(), second.double().numpy()
    found = [b[rows].mean() - a[rows].mean() for rows in indices.numpy()]
    low, high = np.percentile(found, (2.5, 97.5))
    return float(b.mean() - a.mean()), float(low), float(high)


@chapter.check(section="translator-significance")
def paired_bootstrap(student: StudentFunction, seed: int = 0) -> None:
    """By hand, NumPy's percentiles, right and wrong sentences, other scores."""
    generator = seeded(seed)
    first = torch.tensor([1.0, 0.0, 0.0, 1.0])
    second = torch.tensor([1.0, 1.0, 1.0, 0.0])
    draws = torch.tensor([[0, 1, 2, 3], [1, 1, 2, 2], [3, 3, 0, 0]])
    cases = [((first, second, draws), "the example by hand")]
    for size, samples in ((60, 200), (37, 150)):
        drawn = torch.rand(2, size, generator=generator)
        if samples == 200:
            drawn = (drawn < torch.tensor([[0.6], [0.75]])).float()
        indices = torch.randint(size, (samples, size), generator=generator)
        on = f"{size} sentences, {samples} samples"
        cases.append(((drawn[0].contiguous(), drawn[1].contiguous(), indices), on))
    for given, on in cases:
        right = _resampled(*given)
        got = student(*given)
        expect.equal(
            got, right, on=on, mistakes=known_mistakes(bootstrap_candidates(*given))
        )


# --- the student's own model ----------------------------------------------------------

DEMAND = Demand("translator", budget=1_500_000, layers=8, shipped="phrasebook")
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
            _padded(test.sources[chosen]),
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


def _padded(rows: list[list[int]]) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [Tokenizer.PAD] * (width - len(row)) for row in rows])


def _forced(
    model: nn.Module, sources: list, targets: list, *, causal: bool = True
) -> tuple[float, float, float]:
    """Read the right translations: loss, share of labels said, share of inputs said.

    Without the causal mask the decoder sees what it is to predict.
    """
    source = _padded(sources)
    inputs = _padded([[Tokenizer.SOS, *row] for row in targets])
    labels = _padded([[*row, Tokenizer.EOS] for row in targets])
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
