"""Checks of chapter 7, the decoder, second part: training, writing and judging text.

The notebook reaches them through ``decoder``. The oracles are brute force over all
texts of a small table, PyTorch's own functions, sacrebleu, values worked out by hand,
and properties. A known mistake is found by computing what it would give.
"""

import hashlib
import importlib
import itertools
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.decoder_oracles import torch_transformer, transformer_shapes
from autograder.chapters.decoder_writing_mistakes import (
    BEAM_CANDIDATES,
    BLEU_CANDIDATES,
    CACHE_CANDIDATES,
    CHANCE_CANDIDATES,
    EPOCH_CANDIDATES,
    FILTER_CANDIDATES,
    GREEDY_CANDIDATES,
    PERPLEXITY_CANDIDATES,
    Candidate,
    Epoch,
    Language,
    attend_in_pieces,
    beam,
)
from autograder.chapters.encoder.parts import State
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.showing import first_few
from autograder.expect import (
    Chapter,
    CheckFailure,
    describe_error,
    refuse,
    refuse_if,
    show,
)
from autograder.forms import several
from autograder.interface import (
    Data,
    Opaque,
    StudentError,
    StudentFunction,
    StudentInstance,
    StudentModule,
)

chapter = Chapter(7, "07_decoder")

DEEP = 3e-5  # tolerance of what has gone through several matrices in float32
SMALL = 11, 8, 2, 1, 12, 16  # vocabulary, d_model, heads, layers, d_ff, max_length


# --- shared ---------------------------------------------------------------------------


def _whole(generator: torch.Generator, below: int) -> int:
    return int(torch.randint(below, (), generator=generator))


def _earlier(name: str) -> Callable:
    """The check of an exercise of the chapter's first part, imported when it is run."""

    def run(*students: StudentFunction | StudentModule) -> None:
        module = importlib.import_module("autograder.chapters.decoder")
        getattr(module, name).__wrapped__(*students)

    run.__wrapped__ = run
    return run


@dataclass(frozen=True)
class Case:
    """One input: how it is called in a message, what goes in, what must come out.

    ``known`` are the arguments of the candidates, where they differ from those of the
    student's function: tables in place of a model.
    """

    on: str
    given: tuple
    expected: Data
    known: tuple | None = None


def _judge(
    ask: Callable,
    cases: Iterable[Case],
    candidates: list[Candidate],
    *,
    what: str = "the result",
    tolerance: float = expect.TOLERANCE,
    form: Callable[[Data, Case], None] = lambda got, case: None,
) -> None:
    """Ask for every case; name the mistake that explains all answers.

    If there is none, that which explains the first wrong answer and spoils none of
    those that are right. ``form`` expects the type of an answer before its value is
    compared.
    """
    cases, answers, stopped = list(cases), [], None
    for case in cases:
        try:
            got = ask(*case.given)
        except StudentError as error:
            stopped = error
            break
        form(got, case)
        answers.append(got)
    wrong = [
        number
        for number, got in enumerate(answers)
        if not expect.close(got, cases[number].expected, tolerance)
    ]
    if wrong:
        right = [number for number in range(len(answers)) if number not in wrong]
        for some in (range(len(answers)), [*wrong[:1], *right]):
            _name([(cases[i], answers[i]) for i in some], candidates, tolerance)
    elif stopped is not None:
        raise stopped
    for case, got in zip(cases, answers, strict=False):
        say = {"on": case.on, "what": what, "tolerance": tolerance}
        expect.equal(got, case.expected, **say)


def _name(pairs: list, candidates: list[Candidate], tolerance: float) -> None:
    """Raise for the first candidate that gives all of these answers."""
    for name, answer, why in candidates:
        for case, got in pairs:
            try:
                value = answer(*(case.given if case.known is None else case.known))
            except (ArithmeticError, IndexError, RuntimeError, ValueError):
                break
            if not expect.close(got, value, tolerance):
                break
        else:
            case, got = next(
                (case, got)
                for case, got in pairs
                if not expect.close(got, case.expected, tolerance)
            )
            shown = show(got), show(case.expected)
            if isinstance(got, torch.Tensor):
                shown = expect.show_both(got, case.expected, tolerance)
            refuse(name, why, on=case.on, got=shown[0], expected=shown[1])


# --- the bug hunt ---------------------------------------------------------------------

NAMES = (
    "a name never assigned",
    "a tab among spaces",
    "all positions appended again",
    "argmax over positions",
    "classes on the wrong axis",
    "counts the source",
    "gradients never cleared",
    "labels not shifted",
    "multiplied by the mask",
    "no <eos>",
    "own predictions as input",
    "pointless empty leaf",
    "softmax before the loss",
    "starts from the source",
    "the graph is kept",
    "the mask hides the past",
    "the source never gets in",
)
# line -> digest of its line and name: reading this file does not spoil the hunt. Who
# tries all names finds them, as in the notebook, where the check answers for each line.
BUGS = {
    3: "7d254015f402",
    5: "afc3081ea82e",
    6: "309f644dff03",
    7: "9d1ca417ba3f",
    8: "7a7904da9afa",
    9: "98a7f3e148e9",
    10: "c9a05610ec82",
    11: "c5b6225c364e",
    12: "01e3327f7198",
    13: "90272c5efe51",
    14: "51a1c5b1249a",
    15: "92ebeafc0fb6",
    16: "6a28e414b861",
    17: "698832d460e8",
    18: "28ba2e651253",
}
QUESTIONS = {
    3: "Write down one row of target for a sentence of two words. What is the last "
    "thing that the model could learn to predict from it?",
    5: "What is the gradient of this tensor good for? What does the line promise that "
    "the next lines do not need?",
    6: "Which language does the first column hold?",
    7: "Of which sentence does the loop count the tokens?",
    8: "What should the encoder read, and what does it read here?",
    9: "Read each name in the line, and look for the line above that gives it a value.",
    10: "What does F.cross_entropy expect: logits, probabilities or logarithms?",
    11: "How many rows of scores does this line append in the first turn, how many in "
    "the second? How many are new?",
    12: "scores is (B, t, V). Which axis disappears here? What do the numbers count?",
    13: "Where do the tokens come from that the decoder reads in the next turn? Are "
    "they those of the true translation?",
    14: "What is the loss of a row of logits that are all 0? Is it left out?",
    15: "Compare the first label with the first prediction: which token do they mean?",
    16: "collected is (B, T, V). On which axis does F.cross_entropy look for classes?",
    17: "Does Python read this line at all? The arrow is a character, too.",
    18: "What does backward() do with gradients that are there already? Which call is "
    "missing before the next batch?",
}


def _is_bug(line: int, name: str) -> bool:
    digest = hashlib.sha256(f"{line} {name}".encode()).hexdigest()
    return BUGS.get(line) == digest[:12]


@chapter.check(section="decoder-bug-hunt")
def find_bugs(student: StudentFunction, seed: int = 0) -> None:
    """Check each line's name; ``seed`` changes nothing, the listing is always this."""
    found, on = student(), "the listing, lines 1 to 19"
    if not isinstance(found, dict):
        expect.equal(found, {}, on=on)
    _expect_lines(found, on)
    for line, name in found.items():
        got = f"line {line}: {show(name)}"
        why = (
            "Copy the name from the table of the exercise, letter by letter, without "
            "the backticks."
        )
        say = {"on": on, "got": got, "expected": "a name of the table"}
        known = isinstance(name, str) and name in NAMES
        refuse_if(not known, "a name that the table does not have", why, **say)
    _expect_names_once(found, on)
    wrong = [line for line in found if line in BUGS and not _is_bug(line, found[line])]
    _expect_no_exchange(found, wrong, on)
    for line in sorted(found):
        why = (
            "Fifteen lines have a bug; four do what they should. Ask of this one: what "
            "would go wrong if it stood in a loop without any other mistake?"
        )
        say = {"on": f"line {line}", "got": show(found[line]), "expected": "no bug"}
        refuse_if(line not in BUGS, "a line that is right", why, **say)
    for line in sorted(wrong):
        name = found[line]
        fits = any(_is_bug(other, name) for other in BUGS)
        title = "a bug on another line" if fits else "a name that fits nowhere"
        why = QUESTIONS[line]
        if not fits:
            why = f"Two names of the table are not in the listing. {why}"
        refuse(title, why, on=f"line {line}", got=show(name), expected="another name")
    missing = sorted(BUGS.keys() - found.keys())
    if missing:
        why = f"The {len(found)} that you named are right. {QUESTIONS[missing[0]]}"
        got = f"{len(found)} lines, without line {missing[0]}"
        refuse("not all bugs are named", why, on=on, got=got, expected="15 lines")


def _expect_lines(found: dict, on: str) -> None:
    """Expect line numbers from 1 to 19 as keys."""
    say = {"on": on, "expected": "line number -> name"}
    turned = bool(found) and all(isinstance(line, str) for line in found)
    why = "The keys are the numbers of the lines, and the values are the names."
    got = f"the keys {first_few(map(repr, found), 2)}"
    refuse_if(turned, "lines and names exchanged", why, got=got, **say)
    for line in found:
        good = type(line) is int and 1 <= line <= 19
        if line == 0 or not good:
            why = "The lines are numbered as printed, from 1 to 19."
            refuse("a line that is not there", why, got=f"line {show(line)}", **say)
    shifted = len(found) > 3 and all(_is_bug(k + 1, v) for k, v in found.items())
    why = "Your names are right, each one line too early: the first line printed is 1."
    got = f"lines {min(found, default=0)} to {max(found, default=0)}"
    refuse_if(shifted, "lines counted from 0", why, got=got, **say)


def _expect_names_once(found: dict, on: str) -> None:
    for one, two in itertools.combinations(sorted(found), 2):
        if found[one] == found[two]:
            why = (
                "Each name fits one line at most. Keep it where the bug is first made, "
                "and look at the other line again."
            )
            got = f"lines {one} and {two}: {show(found[one])}"
            expected = "fifteen different names"
            refuse("one name for two lines", why, on=on, got=got, expected=expected)


def _expect_no_exchange(found: dict, wrong: list[int], on: str) -> None:
    for one, two in itertools.combinations(sorted(wrong), 2):
        if _is_bug(one, found[two]) and _is_bug(two, found[one]):
            why = f"Read both again. Line {one}: {QUESTIONS[one]}"
            got = f"line {one}: {show(found[one])}, line {two}: {show(found[two])}"
            expected = "the other way round"
            name = "two lines have each other's names"
            refuse(name, why, on=on, got=got, expected=expected)


@chapter.check(section="decoder-teacher-forcing")
def repaired_epoch(
    student: StudentFunction,
    transformer: StudentModule,
    loss: StudentFunction,
    seed: int = 0,
) -> None:
    """Check losses and weights after three padded batches against steps done here."""
    generator = seeded(seed)
    state, right = _small_transformer(generator)
    batches = [_batch(generator, *size) for size in ((2, 5, 4), (3, 4, 6), (4, 7, 3))]
    rate = 0.3
    on = f"three batches with padding, learning_rate={rate}"
    epoch = Epoch(right, state, batches, rate)
    with (
        expect.relying_on(_earlier("sequence_loss"), loss),
        expect.relying_on(_earlier("_transformer_alone"), transformer),
    ):
        model = transformer.build(*SMALL)
        model.load_state_dict(state)
        try:
            got = student(model, batches, rate)
        except StudentError as error:
            _name_stop(error, student, model, epoch)
            raise
        after = model.parameters()
        _expect_losses(got, on)
        _expect_all_learn(state, after, on)
        losses, weights = epoch.run()
        if not (
            expect.close(got, losses, DEEP) and expect.close(after, weights, 10 * DEEP)
        ):
            _name_epoch(epoch, got, losses, after, weights, on)
            averaged = expect.close(got, [sum(losses[: i + 1]) for i in range(3)], DEEP)
            why = "Each entry is the loss of its own batch, not the sum so far."
            say = {"on": on, "got": show(got), "expected": show(losses)}
            refuse_if(averaged, "the losses are added up", why, **say)
        say = {"on": on, "what": "the list of losses", "tolerance": DEEP}
        expect.equal(got, losses, **say)
        say = {"on": on, "what": "the weights after the epoch", "tolerance": 10 * DEEP}
        expect.equal(after, weights, **say)


def _name_stop(error: StudentError, student, model, epoch: Epoch) -> None:
    """Raise for the mistake behind an epoch that stops."""
    say = {"on": "three batches with padding", "got": describe_error(error)}
    why = (
        "F.cross_entropy looks for the classes on axis 1, and logits are (B, T, V). "
        "sequence_loss takes them as they are."
    )
    axis = "Expected target size" in error.text
    refuse_if(axis, "classes on the wrong axis", why, **say)
    why = (
        "What was scored has fewer columns than the vocabulary has tokens. decode "
        "gives hidden states; the call of the whole model, model(source, inputs), "
        "gives logits."
    )
    few = "out of bounds" in error.text
    refuse_if(few, "hidden states in place of logits", why, **say)
    epoch.batches = epoch.batches[:1]  # here source and inputs have one length
    model.load_state_dict(epoch.state)
    try:
        got = student(model, epoch.batches, epoch.rate)
    except StudentError:
        return
    turned, _ = epoch.run(see=lambda batch: (batch[1], batch[0]))
    why = "The model takes the source first, then the inputs of the decoder."
    same = expect.close(got, turned, DEEP)
    refuse_if(same, "source and inputs exchanged", why, **say)


def _name_epoch(epoch, got, losses, after, weights, on: str) -> None:
    """Raise for the known mistake that leads to these losses and these weights."""
    say = _differing(got, losses, after, weights)
    epoch.wanted = got
    for name, answer, why in EPOCH_CANDIDATES:
        try:
            value, moved = answer(epoch)
        except (RuntimeError, ValueError):
            continue
        if expect.close(got, value, DEEP) and expect.close(after, moved, 10 * DEEP):
            refuse(name, why, on=on, **say)
    why = (
        "The first step of Adam has the length of the rate in every weight. Here plain "
        "gradient descent is asked for, torch.optim.SGD."
    )
    adam = expect.close(got, epoch.adam(), 1e-3)
    refuse_if(adam, "Adam in place of gradient descent", why, on=on, **say)


def _small_transformer(generator: torch.Generator) -> tuple[State, Callable]:
    """Draw the weights of a small Transformer; return them with PyTorch's model."""
    vocabulary, d, heads, n, d_ff, _ = SMALL
    state, shapes = {}, transformer_shapes(vocabulary, n, d, d_ff, False)
    for name, shape in sorted(shapes.items()):
        if len(shape) == 2:
            state[name] = 0.4 * normal(generator, *shape)
        else:
            state[name] = torch.full(shape, float(name.endswith("gamma")))
    return state, torch_transformer(n, d, heads, d_ff, False, "relu", 0)


def _batch(generator: torch.Generator, count: int, t_source: int, t_target: int):
    """Draw a source, the decoder's inputs and its labels; the first row is whole."""
    source = torch.randint(4, 11, (count, t_source), generator=generator)
    target = torch.randint(4, 11, (count, t_target), generator=generator)
    inputs = torch.cat((torch.full((count, 1), 2), target), dim=1)
    labels = torch.cat((target, torch.full((count, 1), 3)), dim=1)
    for row in range(1, count):
        source[row, t_source - 1 - _whole(generator, t_source - 2) :] = 0
        real = 1 + _whole(generator, t_target - 1)
        inputs[row, real + 1 :] = 0
        labels[row, real], labels[row, real + 1 :] = 3, 0
    return source, inputs, labels


def _expect_losses(got: Data, on: str) -> None:
    """Expect a list of three Python floats."""
    expected = "a list of three floats"
    if isinstance(got, list) and any(isinstance(x, torch.Tensor) for x in got):
        why = (
            "A tensor keeps its whole graph alive, batch for batch. `.item()` gives "
            "the number."
        )
        refuse("tensors in place of numbers", why, on=on, got=show(got[0]))
    if isinstance(got, (float, torch.Tensor)):
        why = "Remember the loss of each batch; the caller may average them."
        name = "one number for the epoch"
        refuse(name, why, on=on, got=show(got), expected=expected)
    if not isinstance(got, list):
        expect.equal(got, [0.0] * 3, on=on, what="the list of losses")
    if len(got) == 1:
        why = "Is `return` indented too far? It belongs after the loop."
        name = "returns after the first batch"
        refuse(name, why, on=on, got=show(got), expected=expected)
    good = len(got) == 3 and all(type(x) is float for x in got)
    expect.true(
        good, "the list of losses is wrong", on=on, got=show(got), expected=expected
    )


def _expect_all_learn(before: dict, after: dict, on: str) -> None:
    """Name what cuts the encoder, or the decoder, off from the loss."""
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    for part, other in (("encoder", "decoder"), ("decoder", "encoder")):
        still = not any(name.startswith(f"{part}.") for name in moved)
        if still and any(name.startswith(f"{other}.") for name in moved):
            why = (
                f"No weight of the {part} changed, so no gradient came back to it. "
                "Call the whole model, without detach() or torch.no_grad(), and give "
                "all its parameters to the optimiser."
            )
            say = {"on": on, "got": f"{part}.* as before", "expected": "changed"}
            refuse(f"the {part} never learns", why, **say)


def _differing(got, losses, after, weights) -> dict[str, str]:
    if not expect.close(got, losses, DEEP):
        return {"got": show(got), "expected": show(losses)}
    name = next(k for k in weights if not expect.close(after[k], weights[k], 10 * DEEP))
    pair = expect.show_both(after[name], weights[name], 10 * DEEP)
    return {
        key: f"{name} after the epoch: {text}"
        for key, text in zip(("got", "expected"), pair, strict=True)
    }


# --- texts that a model writes --------------------------------------------------------


def _hand() -> Language:
    """The table of exercise 7.11, as logarithms; an <eos> is never looked up."""
    rows = [[0, 0.5, 0.4, 0.1], [0, 0.2, 0.2, 0.6], [0, 0.1, 0, 0.9], [1, 0, 0, 0]]
    return Language(torch.tensor(rows).clamp_min(1e-9).log(), torch.zeros(4, 4))


def _language(
    generator: torch.Generator, size: int, end: float = 0.0, spread: float = 1.0
) -> Language:
    """Draw tables; ``end`` is added to the logits of the last token."""
    table = spread * normal(generator, size, size)
    start = spread * normal(generator, size, size)
    table[:, size - 1] += end
    return Language(table, start)


def _model(table: StudentModule, language: Language) -> StudentInstance:
    model = table.build(len(language.table))
    model.load_state_dict({"table": language.table, "start": language.start})
    return model


def _most_probable(
    language: Language, prefix: list[int], eos_id: int, limit: int
) -> list[int]:
    """Follow the largest entry of each row."""
    if len(prefix) >= limit or (prefix[-1] == eos_id):
        return prefix
    row = language.logits(prefix)[-1].tolist()
    return _most_probable(language, [*prefix, row.index(max(row))], eos_id, limit)


def _expect_ids(got: Data, case: Case, what: str = "the result") -> None:
    """Expect a list of whole numbers."""
    expect.form(
        got, case.expected if what == "the result" else [0], what=what, on=case.on
    )
    if not isinstance(got, list):
        why = "The function ends without `return`." if got is None else ""
        say = {"on": case.on, "got": show(got), "expected": "a list of ids"}
        raise CheckFailure(f"{what} is not a list", why=why, **say)
    for place, token in enumerate(got):
        expect.form(token, 0, what=f"{what}[{place}]", on=case.on)
    good = all(type(token) is int for token in got)
    say = {"on": case.on, "got": show(got), "expected": "a list of ids, ints"}
    expect.true(good, f"{what} holds something that is no id", **say)


@chapter.check(section="decoder-greedy")
def greedy_decode(
    student: StudentFunction, table: StudentModule, seed: int = 0
) -> None:
    """Check the example by hand, both ways to stop, and random tables."""
    generator = seeded(seed)
    hand = _hand()
    given = [0], 3, 10
    case = Case(
        "the table by hand, greedy_decode(model, [0], 3, 10)",
        (_model(table, hand), *given),
        [0, 1, 3],
        (hand, *given),
    )
    cases = [case]
    for size, end, limit, begin in (
        (6, -9.0, 9, 1),
        (7, 0.5, 25, 3),
        (5, -9.0, 6, 4),
        (6, 0.0, 30, 2),
        (5, -9.0, 3, 3),
        (8, 0.5, 12, 2),
    ):
        language = _language(generator, size, end)
        prefix = torch.randint(0, size - 1, (begin,), generator=generator).tolist()
        given = prefix, size - 1, limit
        on = (
            f"a random table for {size} tokens, prefix {prefix}, eos_id {size - 1}, "
            f"max_length {limit}"
        )
        expected = _most_probable(language, *given)
        case = Case(on, (_model(table, language), *given), expected, (language, *given))
        cases.append(case)
    try:
        _expect_no_chance(student, table, generator)
        _judge(student, cases, GREEDY_CANDIDATES, what="the text", form=_expect_ids)
    except StudentError as error:
        if error.kind == "IndexError" and "out of" in error.text:
            why = (
                "argmax() of all logits is a place among t × V numbers and no id. Take "
                "the last row first, logits[0, -1]."
            )
            got = describe_error(error)
            refuse("the largest of all positions", why, on=error.call, got=got)
        _name_conversion(error)
        raise


def _name_conversion(error: StudentError) -> None:
    """Name what several numbers in place of one id give away."""
    words = ("converted to Scalar", "to Python scalars", "elements cannot be converted")
    if any(each in error.text for each in words):
        why = (
            "One id is wanted, and here is a tensor with several entries: an argmax "
            "along an axis, over all positions. Take the last row first, logits[0, -1]."
        )
        got = describe_error(error)
        refuse("several numbers in place of one id", why, on=error.call, got=got)


def _expect_no_chance(student, table, generator) -> None:
    """Name sampling: the same call gives different texts."""
    language = _language(generator, 7, -9.0, 0.2)
    model = _model(table, language)
    texts = [student(model, [1], 6, 14) for _ in range(3)]
    on = "a random table for 7 tokens, the same call three times"
    why = (
        "The next token was drawn by chance, as source 4 says, so the same prefix "
        "gives different texts. Greedy decoding takes the most probable token: argmax."
    )
    same = all(expect.close(text, texts[0]) for text in texts)
    say = {"on": on, "got": f"{show(texts[0])}, then another text"}
    refuse_if(not same, "drawn by chance", why, expected="the same text", **say)


def _texts(size: int, prefix: list[int], eos_id: int, limit: int) -> list[list[int]]:
    """List every text that begins with the prefix and ends as a hypothesis may."""
    if len(prefix) == limit or prefix[-1] == eos_id:
        return [prefix]
    return [
        text
        for token in range(size)
        for text in _texts(size, [*prefix, token], eos_id, limit)
    ]


def _of_all(
    language: Language, prefix: list[int], eos_id: int, limit: int, alpha: float
) -> tuple[list[int], float]:
    """Rate every text, by brute force."""
    size, begin = len(language.table), len(prefix)

    def score(text: list[int]) -> float:
        rows = language.logits(text[:-1]).log_softmax(-1)
        gains = [float(rows[t - 1, text[t]]) for t in range(begin, len(text))]
        return math.fsum(gains) / len(gains) ** alpha

    best = max(_texts(size, prefix, eos_id, limit), key=score)
    return best, score(best)


def _expect_hypothesis(got: Data, case: Case) -> None:
    """Expect a pair of ids and a float."""
    expected = "(ids, score)"
    got = several(got)
    pair = isinstance(got, tuple) and len(got) == 2
    why = "The function ends without `return`." if got is None else "Return both."
    say = {"on": case.on, "got": show(got), "expected": expected}
    expect.true(pair, "the result is not a pair", why=why, **say)
    ids, score = got
    turned = isinstance(ids, (float, torch.Tensor)) and isinstance(score, list)
    why = "First the ids, then the score."
    refuse_if(turned, "ids and score exchanged", why, **say)
    _expect_ids(ids, case, "the first of the pair")
    expect.form(score, 0.0, what="the score", on=case.on)
    if type(score) is int:
        why = "The score is a float, also when it is 0."
        expect.true(False, "the score is not a float", why=why, **say)
    expect.true(type(score) is float, "the score is not a float", **say)
    finite = math.isfinite(score)
    expect.true(finite, "the score is nan or infinite", **say)


def _clear_search(
    generator: torch.Generator, size: int, end: float, spread: float, given: Callable
) -> tuple[Language, tuple]:
    """Draw tables and arguments without ties: two ways round a circle are as long."""
    while True:
        language = _language(generator, size, end, spread)
        arguments, gaps = given(), [1.0]
        beam(language, *arguments, gaps=gaps)  # the search itself says how clear it is
        if min(gaps) > 1e-3:
            return language, arguments


def _beam_case(table, language, given, kind: str, expected=None) -> Case:
    prefix, eos_id, width, limit, alpha = given
    on = (
        f"{kind}, prefix {prefix}, eos_id {eos_id}, beam_width {width}, max_length "
        f"{limit}, alpha {alpha}"
    )
    expected = expected or beam(language, *given)
    return Case(on, (_model(table, language), *given), expected, (language, *given))


def _telling_cases(table: StudentModule, generator: torch.Generator) -> list[Case]:
    """Draw searches until each known mistake gives another result on one of them."""
    cases, untold = [], [answer for _, answer, _ in BEAM_CANDIDATES]
    for number in range(300):
        size, begin = 4 + number % 3, 1 + number % 4
        alpha = (0.0, 1.0, 0.7)[(number + number // 3) % 3]
        end = (0.5, -0.5, 1.0)[(number + number // 9) % 3]

        def given(number=number, size=size, begin=begin, alpha=alpha):
            prefix = [_whole(generator, size - 1) for _ in range(begin)]
            limit = begin + 3 + number % 2
            return prefix, size - 1, 2 + number % 2, limit, alpha

        language, drawn = _clear_search(generator, size, end, 1.5, given)
        expected = beam(language, *drawn)
        left = [
            answer
            for answer in untold
            if expect.close(answer(language, *drawn), expected, 1e-3)
        ]
        if len(left) < len(untold) or number < 9:
            kind = f"a table for {size} tokens"
            cases.append(_beam_case(table, language, drawn, kind, expected))
            untold = left
        if not untold and number >= 9:
            break
    return cases


@chapter.check(section="decoder-beam")
def beam_search(student: StudentFunction, table: StudentModule, seed: int = 0) -> None:
    """Check by hand, against all texts by brute force, against greedy, and between."""
    generator = seeded(seed)
    hand, given = _hand(), ([0], 3, 2, 10, 0.0)
    expected = [0, 2, 3], math.log(0.36)
    cases = [_beam_case(table, hand, given, "the table by hand", expected)]
    for limit, begin, alpha in ((5, 2, 0.0), (4, 1, 1.0), (5, 2, 0.6)):

        def given(limit=limit, begin=begin, alpha=alpha):
            prefix = [_whole(generator, 3) for _ in range(begin)]
            return prefix, 3, 4 ** (limit - begin), limit, alpha

        language, drawn = _clear_search(generator, 4, 0.3, 1.0, given)
        expected = _of_all(language, drawn[0], 3, limit, alpha)
        kind = "as wide as there are texts: the best of all"
        cases.append(_beam_case(table, language, drawn, kind, expected))
    for begin in (1, 3):
        language = _language(generator, 6, 0.3)
        prefix = [_whole(generator, 5) for _ in range(begin)]
        ids = _most_probable(language, prefix, 5, 9)
        rows = language.logits(ids[:-1]).log_softmax(-1)
        score = sum(float(rows[t - 1, ids[t]]) for t in range(begin, len(ids)))
        drawn = prefix, 5, 1, 9, 0.0
        kind = "a beam of one: greedy"
        cases.append(_beam_case(table, language, drawn, kind, (ids, score)))
    cases += _telling_cases(table, generator)
    say = {"what": "the best hypothesis", "tolerance": DEEP}
    try:
        _judge(student, cases, BEAM_CANDIDATES, form=_expect_hypothesis, **say)
    except StudentError as error:
        _name_conversion(error)
        raise
    no_alpha = student(*cases[0].given[:-1])
    on = f"{cases[0].on}, not given: its default"
    expect.equal(no_alpha, cases[0].expected, on=on, **say)


# --- filters and chance ---------------------------------------------------------------


def _filtered(
    logits: torch.Tensor, temperature=1.0, top_k=None, top_p=None
) -> torch.Tensor:
    """Go through each row with a sorted list."""
    rows = logits.reshape(-1, logits.shape[-1]).double() / temperature
    kept = [_stays(row.tolist(), top_k, top_p) for row in rows]
    never = torch.tensor(-math.inf, dtype=torch.float64)
    return torch.where(torch.tensor(kept), rows, never).reshape(logits.shape).float()


def _stays(row: list[float], k: int | None, p: float | None) -> list[bool]:
    ranked = sorted(row, reverse=True)
    stays = [k is None or value >= ranked[min(k, len(row)) - 1] for value in row]
    if p is not None:
        weights = [math.exp(x) * keep for x, keep in zip(row, stays, strict=True)]
        share, taken = 0.0, set()
        for place in sorted(range(len(row)), key=lambda i: -weights[i]):
            if share >= p:
                break
            share += weights[place] / math.fsum(weights)
            taken.add(place)
        stays = [keep and i in taken for i, keep in enumerate(stays)]
    return stays


def _clear(logits: torch.Tensor, settings: dict) -> bool:
    """Say whether the result would be the same for a p a little smaller or larger."""
    if "top_p" not in settings:
        return True
    around = [{**settings, "top_p": settings["top_p"] + e} for e in (-1e-3, 1e-3)]
    one, two = (_filtered(logits, **each) for each in around)
    return torch.equal(one.isfinite(), two.isfinite())


def _filter_case(on: str, logits: torch.Tensor, **settings) -> Case:
    said = ", ".join(f"{name}={value}" for name, value in settings.items())
    order = ("temperature", "top_k", "top_p")
    settings = {"temperature": 1.0, **settings}
    given = [settings.get(name) for name in order]
    while given[-1] is None:
        given.pop()
    on = f"{on}{', ' if said else ''}{said}"
    return Case(on, (logits, *given), _filtered(logits, *given))


@chapter.check(section="decoder-sampling")
def filter_logits(student: StudentFunction, seed: int = 0) -> None:
    """Check the table by hand, sorted rows, ties, all three together, refusals."""
    generator = seeded(seed)
    hand = torch.tensor([0.5, 0.25, 0.15, 0.1]).log()
    on = "ln (.5, .25, .15, .1)"
    cases = [
        _filter_case(on, hand, top_k=2),
        _filter_case(on, hand, top_p=0.7),
        _filter_case(on, hand, top_p=0.45),
        _filter_case(on, hand, top_k=3, top_p=0.85),
        _filter_case(on, hand, top_k=2, top_p=0.95),
        _filter_case(on, hand, temperature=0.5),
    ]
    b, t = draw_sizes(generator, 2)
    settings = [
        {},
        {"temperature": 2.5},
        {"top_k": 4},
        {"top_p": 0.6},
        {"top_p": 0.93},
        {"temperature": 0.4, "top_p": 0.7},
        {"temperature": 3.0, "top_p": 0.7},
        {"temperature": 0.7, "top_k": 5, "top_p": 0.8},
        {"temperature": 1.7, "top_k": 3, "top_p": 0.55},
    ]
    for number, each in enumerate(settings):
        shape = [(11,), (b, 9), (b, t, 10)][number % 3]
        logits = 2 * normal(generator, *shape)
        while not _clear(logits, each):
            logits = 2 * normal(generator, *shape)
        cases.append(_filter_case(f"logits {shape}", logits, **each))
    ties = torch.tensor([[1.0, 3, 2, 2, 0, 2], [5.0, 5, 5, -1, 4, 4]])
    cases.append(_filter_case("rows with ties", ties, top_k=2))
    cases.append(_filter_case("rows with ties", ties, top_k=3, temperature=2.0))
    cases.append(_filter_case("even logits", torch.zeros(2, 4), top_p=1.0))
    form = _expect_logits
    try:
        _judge(student, cases, FILTER_CANDIDATES, what="the logits", form=form)
        _expect_large_k(student, hand)
    except StudentError as error:
        why = "Settings that are allowed: p may be 1, and k may be larger than V."
        say = {"on": error.call, "got": describe_error(error)}
        strict = error.kind == "ValueError"
        refuse_if(strict, "good settings are refused", why, **say)
        raise
    _expect_refusals(student, hand)


def _expect_logits(got: Data, case: Case) -> None:
    shape = tuple(case.given[0].shape)
    expect.tensor(got, shape=shape, finite=False, on=case.on, what="the logits")
    nan = bool(got.isnan().any())
    why = (
        "0 · −∞, or −∞ − (−∞), is nan. Put −∞ into the logits with masked_fill or "
        "torch.where; do not multiply or add."
    )
    say = {"on": case.on, "got": show(got), "expected": "numbers and −∞"}
    expect.true(not nan, "the logits contain nan", why=why, **say)


def _expect_large_k(student: StudentFunction, logits: torch.Tensor) -> None:
    on = "four logits, top_k=9"
    try:
        got = student(logits, 1.0, 9)
    except StudentError as error:
        if error.kind in ("RuntimeError", "IndexError") and "range" in error.text:
            why = "There is no 9th largest of 4. Take the smaller of k and V."
            got = describe_error(error)
            refuse("k is larger than the vocabulary", why, on=on, got=got)
        raise
    expect.equal(got, logits, on=on)


def _expect_refusals(student: StudentFunction, logits: torch.Tensor) -> None:
    settings = [
        ({"temperature": 0.0}, "a temperature of 0 divides by zero"),
        ({"temperature": -1.0}, "a negative temperature turns the order round"),
        ({"top_k": 0}, "nothing would be left"),
        ({"top_p": 0.0}, "nothing would be left; 0 is a number and not None"),
        ({"top_p": -0.2}, "nothing would be left"),
        ({"top_p": 1.2}, "a probability is at most 1"),
    ]
    for each, reason in settings:
        why = (
            f"Refuse it before anything is computed: {reason}. Test `is not None`, as "
            "`if top_p:` takes 0 for nothing."
        )
        on = ", ".join(f"{name}={value}" for name, value in each.items())
        call = lambda each=each: student(logits, **each)  # noqa: E731
        name = "bad settings are accepted"
        expect.raises("ValueError", call, on=on, why=why, mistake=name)


def _searched(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Find the ids with torch.searchsorted."""
    sums = probabilities.cumsum(-1).contiguous()
    number = (uniform.unsqueeze(-1) * sums[..., -1:]).contiguous()
    return torch.searchsorted(sums, number, right=True).squeeze(-1)


@chapter.check(section="decoder-sampling")
def sample_next(student: StudentFunction, seed: int = 0) -> None:
    """Check by hand, rows of several shapes, edges, rounding, and frequencies."""
    generator = seeded(seed)
    hand = torch.tensor([0.2, 0.5, 0.3])
    uniform = torch.tensor([0.1, 0.2001, 0.69, 0.7001, 0.0])
    on = "probabilities (.2, .5, .3), numbers .1, .2001, .69, .7001, 0"
    given = hand.expand(5, 3).clone(), uniform
    cases = [Case(on, given, torch.tensor([0, 1, 1, 2, 0]))]
    b, t, v = draw_sizes(generator, 3)
    for shape in ((v + 4,), (b, v), (b, t, v + 1)):
        probabilities = (1.5 * normal(generator, *shape)).softmax(-1)
        uniform = torch.rand(shape[:-1], generator=generator)
        on = f"probabilities {shape}, uniform {shape[:-1]}"
        given = probabilities, uniform
        cases.append(Case(on, given, _searched(*given)))
    zeros = torch.tensor([[0.0, 0.25, 0.0, 0.75, 0.0], [0.5, 0.0, 0.0, 0.5, 0.0]])
    uniform = torch.tensor([0.0, 0.5])
    on = "(0, .25, 0, .75, 0) with the number 0, (.5, 0, 0, .5, 0) with .5"
    cases.append(Case(on, (zeros, uniform), torch.tensor([1, 3])))
    short = torch.tensor([[0.25, 0.7499998], [0.6, 0.3999998]])
    short = torch.cat((short, torch.zeros(2, 1)), dim=1)
    uniform = torch.tensor([1 - 2**-24, 1 - 2**-24])
    on = "(.25, .7499998, 0) and (.6, .3999998, 0), with a number just below 1"
    cases.append(Case(on, (short, uniform), torch.tensor([1, 1])))
    many = (normal(generator, v)).softmax(-1)
    even = (torch.arange(4000) + 0.5) / 4000
    on = f"probabilities of {v} tokens, 4000 numbers evenly from 0 to 1"
    given = many.expand(4000, v).clone(), even
    cases.append(Case(on, given, _searched(*given)))
    _expect_number_used(student, *given)
    _judge(student, cases, CHANCE_CANDIDATES, what="the ids", form=_expect_tokens)
    counts = torch.bincount(student(*given).long(), minlength=v) / 4000
    what = "the frequencies of 4000 draws"
    expect.equal(counts, many, on=on, what=what, tolerance=1e-3)


def _expect_number_used(student, probabilities, uniform) -> None:
    one, two = (student(probabilities, uniform) for _ in range(2))
    why = (
        "The same call gave other ids: a random number of its own was drawn, as "
        "torch.multinomial does. Use the argument uniform."
    )
    say = {"on": "4000 numbers, the same call twice", "got": "different ids"}
    same = expect.close(one, two) or not isinstance(one, torch.Tensor)
    refuse_if(not same, "the number is not used", why, expected="the same", **say)


def _expect_tokens(got: Data, case: Case) -> None:
    probabilities, uniform = case.given
    if isinstance(got, torch.Tensor) and got.shape == probabilities.shape:
        why = "One id for each number: sum, or search, along the last axis."
        say = {"got": f"{tuple(got.shape)}", "expected": f"{tuple(uniform.shape)}"}
        refuse("a value for each token", why, on=case.on, **say)
    what = "the result"
    expect.tensor(got, shape=tuple(uniform.shape), on=case.on, what=what)
    whole = not (got.is_floating_point() or got.is_complex() or got.dtype == torch.bool)
    why = "An id is a place in the vocabulary, a whole number."
    say = {"on": case.on, "got": show(got), "expected": "integers"}
    refuse_if(not whole, "no integers", why, **say)


# --- the cache ------------------------------------------------------------------------


def _uncached(q, k, v, pieces: list[int]) -> list:
    """One causal attention over the whole text, cut into pieces."""
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    ends = list(itertools.accumulate(pieces))
    return [
        (
            whole[..., end - size : end, :],
            {"k": k[..., :end, :], "v": v[..., :end, :]},
        )
        for size, end in zip(pieces, ends, strict=True)
    ]


@chapter.check(section="decoder-cache")
def attend_cached(student: StudentFunction, seed: int = 0) -> None:
    """Check by hand, and against one attention, fed in pieces of several sizes."""
    generator = seeded(seed)
    zeros = torch.zeros(1, 1, 3, 1)
    values = torch.tensor([4.0, 8.0, 3.0]).reshape(1, 1, 3, 1)
    cases = []
    for pieces in ([1, 1, 1], [1, 2]):
        expected = _uncached(zeros, zeros, values, pieces)
        on = f"the values 4, 8, 3 by hand, fed in pieces of {pieces}"
        cases.append(Case(on, (zeros, zeros, values, pieces), expected))
    right = [float(each[0][0, 0, -1, 0]) for each in cases[0].expected]
    assert right == [4.0, 6.0, 5.0]
    b, h, d = (torch.randperm(3, generator=generator) + 2).tolist()
    for pieces in ([6], [1] * 5, [4, 1, 1], [2, 3, 2]):
        shape = b, h, sum(pieces), d
        q, k, v = (1.5 * normal(generator, *shape) for _ in range(3))
        on = f"a text of q, k, v {shape}, fed in pieces of {pieces}"
        expected = _uncached(q, k, v, pieces)
        cases.append(Case(on, (q, k, v, pieces), expected))

    def ask(q, k, v, pieces):
        def step(*given):
            answer = several(_step(student, given))
            _expect_output_and_cache(answer, given, pieces)
            return answer

        return attend_in_pieces(step, q, k, v, pieces)

    say = {"what": "the steps (output, cache)", "tolerance": DEEP}
    wrong = _first_wrong_step
    _judge_steps(ask, cases, CACHE_CANDIDATES, wrong, **say)


def _judge_steps(ask, cases, candidates, shorten, what: str, tolerance: float) -> None:
    """Judge as always, and show the step that differs in place of all of them."""
    try:
        _judge(ask, cases, candidates, what=what, tolerance=tolerance)
    except CheckFailure as failure:
        case = next((each for each in cases if each.on == failure.on), None)
        if case is not None and failure.mistake:
            place, got, expected = shorten(ask(*case.given), case.expected, tolerance)
            failure.on += place
            failure.got, failure.expected = got, expected
        raise


def _first_wrong_step(got: list, expected: list, tolerance: float) -> tuple:
    for number, (one, two) in enumerate(zip(got, expected, strict=True)):
        parts = [
            ("output", one[0], two[0]),
            ('cache["k"]', one[1]["k"], two[1]["k"]),
            ('cache["v"]', one[1]["v"], two[1]["v"]),
        ]
        for name, a, b in parts:
            if not expect.close(a, b, tolerance):
                shown = expect.show_both(a, b, tolerance)
                if a.shape != b.shape:
                    shown = f"shape {tuple(a.shape)}", f"shape {tuple(b.shape)}"
                return (f"; the {name} of step {number}", *shown)
    return "", "", ""


def _step(student: StudentFunction, given: tuple) -> Data:
    """Call once; name the mistakes that an exception gives away."""
    try:
        return student(*given)
    except StudentError as error:
        q, _, _, cache = given
        old = 0 if cache is None else cache["k"].shape[-2]
        on = f"q {tuple(q.shape)}, a cache of {old} positions"
        say = {"on": on, "got": describe_error(error)}
        if cache is None and error.kind in ("TypeError", "AttributeError"):
            why = "At the beginning there is no cache: test `cache is not None` first."
            if "NoneType" in error.text:
                refuse("the first call has no cache", why, **say)
        if cache is not None and error.kind == "RuntimeError":
            sizes = re.search(r"batch2.*\[\d+, (\d+)\].*\[\d+, (\d+)\]", error.text)
            short = bool(sizes) and int(sizes[1]) > int(sizes[2])
            why = "There are more keys than values. Append to both, and cache both."
            refuse_if(short, "the values are not appended", why, **say)
            fits = "except in dimension" in error.text or "batch2" in error.text
            why = (
                "Keys of different lengths can only be joined along the axis of the "
                "positions, the last but one: dim=-2."
            )
            refuse_if(fits, "joined along the wrong axis", why, **say)
            sizes = "must match the size" in error.text or "shape" in error.text
            why = (
                "The mask has a row for each new token and a column for each token, "
                f"here ({q.shape[-2]}, {q.shape[-2] + old}). A causal "
                "mask of the new tokens alone knows nothing of the past: take the last "
                "rows of that of the whole length."
            )
            refuse_if(sizes, "the mask knows nothing of the past", why, **say)
        raise


def _expect_output_and_cache(answer: Data, given: tuple, pieces: list[int]) -> None:
    q, _, v_new, cache = given
    old = 0 if cache is None else cache["k"].shape[-2]
    on = f"pieces of {pieces}, q {tuple(q.shape)}, a cache of {old} positions"
    pair = isinstance(answer, tuple) and len(answer) == 2
    why = "The function ends without `return`." if answer is None else "Return both."
    say = {"on": on, "got": show(answer), "expected": "(output, cache)"}
    expect.true(pair, "the result is not a pair", why=why, **say)
    output, new = answer
    turned = isinstance(output, dict) and isinstance(new, torch.Tensor)
    why = "First the output, then the cache."
    refuse_if(turned, "output and cache exchanged", why, **say)
    weights = isinstance(new, torch.Tensor) and new.ndim == q.ndim
    why = (
        "The second result of scaled_dot_product_attention are the weights. Return the "
        "new cache in their place, a dict."
    )
    refuse_if(weights, "the weights in place of the cache", why, **say)
    why = "Attention returns output and weights. Take the first of the two."
    whole = isinstance(output, tuple)
    refuse_if(whole, "the pair of attention is used whole", why, **say)
    if isinstance(output, torch.Tensor) and output.ndim == v_new.ndim and old:
        say = {
            "on": on,
            "got": f"{tuple(output.shape)}",
            "expected": f"{tuple(v_new.shape)}",
        }
        why = (
            "The mask has a row for each position of the text, but only the new ones "
            "ask. Take the last T_new rows."
        )
        rows = output.shape[-2] == old + q.shape[-2]
        refuse_if(rows, "a row for each position", why, **say)
        why = "The positions are the last axis but one: dim=-2. Axis 1 has the heads."
        heads = output.shape[-3] > q.shape[-3]
        refuse_if(heads, "joined along the wrong axis", why, **say)
    expect.tensor(output, shape=tuple(v_new.shape), on=on, what="the output")
    if not isinstance(new, dict) or isinstance(new, Opaque):
        expect.equal(new, {}, on=on, what="the cache")
    keys = {"k", "v"}
    say = {"on": on, "got": f"{list(new)}", "expected": '"k" and "v"'}
    expect.true(new.keys() == keys, "the cache has other keys", **say)
    for name in ("k", "v"):
        expect.tensor(new[name], on=on, what=f'cache["{name}"]')


# --- two ways to judge ----------------------------------------------------------------


@chapter.check(section="decoder-perplexity")
def perplexity(student: StudentFunction, loss: StudentFunction, seed: int = 0) -> None:
    """Check by hand, V of a model that knows nothing, padding, PyTorch's loss."""
    generator = seeded(seed)
    b, t, v = draw_sizes(generator, 3)
    b, t, v = b + 1, t + 3, v + 4
    hand = torch.tensor([[[0.25, 0.5, 0.25], [0.5, 0.25, 0.25], [0.9, 0.05, 0.05]]])
    labels = torch.tensor([[1, 2, 0]])
    on = "the example by hand, probabilities ½ and ¼, and one label of padding"
    cases = [Case(on, (hand.log(), labels), torch.tensor(8.0).sqrt())]
    even, labels = (
        torch.zeros(b, t, v),
        torch.randint(1, v, (b, t), generator=generator),
    )
    on = f"a model that knows nothing, V = {v}"
    cases.append(Case(on, (even, labels), torch.tensor(float(v))))
    for pad in ((), (0,), (v - 2,)):
        labels = torch.randint(0, v, (b, t), generator=generator)
        pad_id = pad[0] if pad else 0
        labels[labels == pad_id] = 1
        for row in range(b - 1):
            labels[row, 1 + _whole(generator, t - 1) :] = pad_id
        if pad_id:
            labels[-1, 0] = 0  # an id like others
        logits = 1.5 * normal(generator, b, t, v)
        options = {"ignore_index": pad_id}
        right = F.cross_entropy(logits.transpose(1, 2), labels, **options).exp()
        on = f"logits {(b, t, v)}, {int((labels != pad_id).sum())} real labels"
        on += f", pad_id {pad_id}"
        cases.append(Case(on, (logits, labels, *pad), right))
    sure = 40.0 * F.one_hot(labels, v).float()
    on = "a model that is sure and right"
    cases.append(Case(on, (sure, labels, v - 2), torch.tensor(1.0)))

    def form(got: Data, case: Case) -> None:
        say = {"on": case.on, "got": show(got), "expected": "a tensor of shape ()"}
        expect.tensor(got, on=case.on, finite=False)
        expect.true(not bool(got.isnan().any()), "the result is nan", **say)

    with expect.relying_on(_earlier("sequence_loss"), loss):
        say = {"what": "the perplexity", "form": form, "tolerance": DEEP}
        _judge(student, cases, PERPLEXITY_CANDIDATES, **say)


def _sacrebleu(hypotheses: list, references: list, maximum: int = 4) -> float:
    """Compute the score with sacrebleu."""
    metric = _metric(maximum)
    texts = [[" ".join(text) for text in side] for side in (hypotheses, references)]
    return float(metric.corpus_score(texts[0], [texts[1]]).score)


def _metric(maximum: int):
    from sacrebleu.metrics import BLEU  # slow to import, and needed here alone

    return BLEU(
        tokenize="none", smooth_method="none", force=True, max_ngram_order=maximum
    )


def _corpus(generator, sentences: int, words: int, shorter: int) -> tuple:
    """Draw references, and hypotheses that copy them with errors."""
    vocabulary = ["Bobby", "mag", "süße", "Beeren", ".", "Anna", "und", "rote", "isst"]
    references, hypotheses = [], []
    for number in range(sentences):
        length = 5 + _whole(generator, 8) + 3 * (number % 2)
        picks = torch.randint(words, (length,), generator=generator).tolist()
        reference = [vocabulary[pick] for pick in picks]
        ours = [
            word if _whole(generator, 5) else vocabulary[_whole(generator, words)]
            for word in reference
        ]
        change = shorter + _whole(generator, 3) - 1
        ours = ours[: length - change] if change > 0 else ours + ours[:-change]
        references.append(reference)
        hypotheses.append(ours)
    return hypotheses, references


@chapter.check(section="decoder-bleu")
def bleu(student: StudentFunction, seed: int = 0) -> None:
    """Check by hand, sacrebleu's score of random corpora, both lengths, and zeros."""
    generator = seeded(seed)
    reference = [["Bobby", "mag", "süße", "Beeren", "."]]
    cases = []
    for text, right in (
        ("Bobby mag Bobby mag Beeren .", 100 * math.sqrt(4 / 6 * 2 / 5)),
        ("Bobby mag Beeren .", 100 * math.exp(1 - 5 / 4) * math.sqrt(2 / 3)),
    ):
        on = f"{text!r}, maximum 2, by hand"
        cases.append(Case(on, ([text.split()], reference, 2), right))
    for sentences, words, shorter, maximum in (
        (6, 5, 2, 4),
        (5, 4, -2, 4),
        (7, 9, 1, 3),
        (4, 5, 0, 2),
        (8, 6, 2, 1),
        (5, 3, -1, 5),
    ):
        hypotheses, references = _corpus(generator, sentences, words, shorter)
        given = hypotheses, references, maximum
        on = (
            f"{sentences} sentences, {sum(map(len, hypotheses))} tokens for "
            f"{sum(map(len, references))}, maximum {maximum}"
        )
        cases.append(Case(on, given, _sacrebleu(*given)))
    short = [["Bobby"], ["mag", "Beeren"], *hypotheses]
    given = short, [["Bobby", "mag"], ["mag", "süße", "Beeren"], *references], 4
    on = "two of the sentences are shorter than four tokens"
    cases.append(Case(on, given, _sacrebleu(*given)))
    zeros = [
        ("no run of four tokens is right", "Bobby mag rote Beeren .", reference),
        ("no token is right", "Anna isst", reference),
        ("no run of four tokens is there", "Bobby mag süße", reference),
    ]
    for on, text, against in zeros:
        cases.append(Case(f"{on}: {text!r}", ([text.split()], against), 0.0))
    try:
        _judge(student, cases, BLEU_CANDIDATES, what="BLEU", form=_expect_score)
    except StudentError as error:
        say = {"on": error.call, "got": describe_error(error)}
        why = "One precision is 0. The result is 0 then: return before the logarithm."
        logarithm = error.kind == "ValueError" and (
            "math domain" in error.text or "positive input" in error.text
        )
        refuse_if(logarithm, "the logarithm of 0", why, **say)
        why = (
            "Hypotheses shorter than n have no n-grams, and nothing is divided by 0. "
            "The result is 0 if there are none in the whole corpus."
        )
        divided = error.kind == "ZeroDivisionError"
        refuse_if(divided, "no n-grams of this length", why, **say)
        raise


def _expect_score(got: Data, case: Case) -> None:
    say = {"on": case.on, "got": show(got), "expected": "a float from 0 to 100"}
    expect.form(got, 0.0, on=case.on)
    why = "The function ends without `return`." if got is None else ""
    number = type(got) in (int, float)
    expect.true(number, "the result is not a number", why=why, **say)
    expect.true(not math.isnan(got), "the result is nan", **say)
