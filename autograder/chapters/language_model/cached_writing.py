"""Writing with a cache: what was read once is not read again."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.decoder.writing.greedy import ALL_POSITIONS
from autograder.chapters.decoder.writing.language import expect_ids, name_several
from autograder.chapters.language_model.chapter import chapter
from autograder.exercise.inputs import draw_whole, normal, seeded
from autograder.exercise.naming import Mistake
from autograder.exercise.spec import UNFIT, Case, Function, judge_parts
from autograder.expect import refuse, refuse_if
from autograder.interface import StudentFunction, StudentInstance, StudentModule

Cache = dict[str, torch.Tensor] | None
Row = tuple[
    int, int, int
]  # of a call: new ids, position of the first, ids in the cache

POSITIONS = 48  # of the given decoder
CLEAR = 0.05  # by so much the best logit must exceed the second


@dataclass
class Decoder:
    """The given decoder, in double precision: it is called as that is, and counts.

    Args:
        tokens: a row for each id, (V, d).
        places: a row for each position, (positions, d).
        output: (d, V).
        calls: what it was asked so far.
    """

    tokens: torch.Tensor
    places: torch.Tensor
    output: torch.Tensor
    calls: list[Row] = field(default_factory=list)

    def __call__(
        self, ids: torch.Tensor, start: int = 0, cache: Cache = None
    ) -> tuple[torch.Tensor, Cache]:
        """Read ids (1, T) behind what the cache holds; logits (1, T, V) and cache."""
        new, old = ids.shape[1], 0 if cache is None else cache["k"].shape[-2]
        self.calls.append((new, start, old))
        x = self.tokens[ids[0]] + self.places[start : start + new]  # (T, d)
        known = x if cache is None else torch.cat((cache["k"], x))
        seen = torch.ones(new, old + new).tril(old).bool()
        z = F.scaled_dot_product_attention(x, known, known, attn_mask=seen)
        return ((x + z) @ self.output)[None], {"k": known}

    def fresh(self) -> "Decoder":
        """Return the same decoder, of which nobody has asked anything."""
        return replace(self, calls=[])

    def state(self) -> dict[str, torch.Tensor]:
        """Return its tables as the given class names them."""
        tables = {"token": self.tokens, "place": self.places, "output": self.output}
        return {name: table.float() for name, table in tables.items()}


def write(
    model: Decoder,
    prompt: list[int],
    length: int,
    *,
    begin: Callable = lambda prompt: [prompt],
    newest: Callable = lambda ids: ids[-1:],
    place: Callable = lambda ids, prompt: len(ids) - 1,
    keep: Callable = lambda old, new: new,
    choose: Callable = lambda logits: int(logits[0, -1].argmax()),
    last: bool = False,
) -> list[int]:
    """Write with a step done in another way.

    Args:
        model: what it is asked.
        prompt: what it reads first.
        length: how many tokens are written.
        begin: the pieces in which the prompt is read.
        newest: of all ids so far, those that are read next.
        place: the position of the first of these, of all ids and the prompt.
        keep: the next cache, of the one before and the new one.
        choose: an id, of the logits.
        last: whether the prompt's last token is read once more before all others.
    """
    ids, cache, at = list(prompt), None, 0
    for piece in begin(prompt):
        logits, cache = model(torch.tensor([piece]), at, cache)
        at += len(piece)
    for number in range(length):
        if number or last:
            logits, new = model(torch.tensor([newest(ids)]), place(ids, prompt), cache)
            cache = keep(cache, new)
        ids.append(choose(logits))
    return ids


class Writing(Function):
    """A specification whose results are the text and the calls that it took."""

    def known(self, model: Decoder, prompt: list[int], length: int):
        """Compute what each mistake writes, and what it asks."""
        for number, each in enumerate(self.mistakes):
            asked = model.fresh()
            with suppress(*UNFIT):
                text = each.answer(asked, prompt, length)
                value = text, needed(asked.calls, length)
                yield Mistake(each.name, value, each.why, each.section, number)


def _right(model: Decoder, prompt: list[int], length: int) -> tuple:
    """Write without a cache; the calls are known without writing."""
    ids = list(prompt)
    for _ in range(length):
        logits, _ = model(torch.tensor([ids]))
        ids.append(int(logits[0, -1].argmax()))
    calls = [(len(prompt), 0, 0)]
    calls += [(1, read, read) for read in range(len(prompt), len(ids) - 1)]
    return ids, needed(calls, length)


def needed(calls: list[Row], length: int) -> list[list[int]]:
    """Return as many calls as are needed: one more is a slip of its own."""
    return [list(call) for call in calls[:length]]


cached = Writing("write-with-cache", "write_with_cache", _right)
cached.accident(
    "out of bounds for dimension", "the largest of all positions", ALL_POSITIONS
)
cached.accident(
    "tensors used as indices",
    "nothing is left to read",
    "A call got no id at all. What is new has to be read before it counts as read.",
)
cached.accident(
    "tuple index out of range",
    "no axis for the batch",
    "The model takes ids (1, T), a batch of one text: torch.tensor([ids]).",
)
name_several(cached)

# --- what goes wrong ------------------------------------------------------------------


def stated(name: str, why: str, **steps) -> None:
    """State a mistake that is one step done in another way."""
    cached.mistake(name, why)(partial(write, **steps))


def _none(old: Cache, new: Cache) -> Cache:
    return None


def _all(ids: list[int]) -> list[int]:
    return ids


def _zero(ids: list[int], prompt: list[int]) -> int:
    return 0


@cached.mistake(
    "the whole text is read again for each token",
    "The text is right, but nothing was saved: each call reads all ids. With the cache "
    "a call reads the newest token alone.",
)
def _(model, prompt, length):
    ids = list(prompt)
    for _ in range(length):
        logits, _ = model(torch.tensor([ids]), 0, None)
        ids.append(int(logits[0, -1].argmax()))
    return ids


DOUBLE = (
    "the whole text is read behind the cache",
    "The cache holds all that was read. If you read the text again after it, "
    "it is there twice. Pass the newest token alone.",
)
stated(*DOUBLE, newest=_all, place=_zero)
stated(*DOUBLE, newest=_all)
stated(*DOUBLE, newest=_all, place=lambda ids, prompt: len(prompt))
stated(
    "the prompt is read token by token",
    "All ids of the prompt are known at once, so one call reads them all. Only what is "
    "written comes one by one.",
    begin=lambda prompt: [[each] for each in prompt],
)
COUNT = "The position is that of the first new id: as many ids as were read before."
stated("positions begin at 0 again", COUNT, place=_zero)
for ahead in (0, 1):
    stated(
        "positions count what was written alone",
        f"{COUNT} The prompt counts, too.",
        place=lambda ids, prompt, ahead=ahead: len(ids) - len(prompt) - 1 + ahead,
    )
stated(
    "positions stand still",
    f"{COUNT} It grows by one with every token.",
    place=lambda ids, prompt: len(prompt),
)
stated(
    "positions one too far",
    f"{COUNT} The first new token has position len(prompt), not the next one.",
    place=lambda ids, prompt: len(ids),
)
stated(
    "a position is used twice",
    f"{COUNT} The prompt has used 0 to len(prompt) - 1.",
    place=lambda ids, prompt: len(ids) - 2,
)
stated(
    "the cache is thrown away",
    "The model was given the newest token and nothing of what came before. Pass it "
    "the cache that the last call has returned.",
    keep=_none,
)
stated(
    "the cache of the prompt again and again",
    "Each call returns a longer cache. Keep the newest, or the model forgets what it "
    "has written.",
    keep=lambda old, new: old,
)
TWICE = (
    "the prompt's last token is read twice",
    "The call that reads the prompt gives the logits of the first new token already: "
    "in its last row.",
)
stated(*TWICE, last=True)
stated(*TWICE, last=True, place=lambda ids, prompt: len(ids))
stated(
    "the last two tokens are read",
    "One of them is in the cache already. Pass the newest token alone.",
    newest=lambda ids: ids[-2:],
    place=lambda ids, prompt: len(ids) - 2,
)
stated(
    "the wrong row of logits",
    "The model answers with a row for each id that it reads. What follows the last of "
    "them is in the last row: logits[0, -1].",
    choose=lambda logits: int(logits[0, 0].argmax()),
)
stated(
    "the largest of all positions",
    ALL_POSITIONS,
    choose=lambda logits: int(logits.argmax()),
)
stated(
    "the least probable token",
    "The smallest logit was taken. The most probable token has the largest.",
    choose=lambda logits: int(logits[0, -1].argmin()),
)
for name, why, answer in (
    (
        "the prompt is left out",
        "The result begins with the prompt; only what is new was returned.",
        lambda model, prompt, length: write(model, prompt, length)[len(prompt) :],
    ),
    (
        "length counts the prompt, too",
        "length is how many tokens are written. The prompt comes on top of it.",
        lambda model, prompt, length: write(model, prompt, length - len(prompt)),
    ),
    (
        "one token too many",
        "length tokens are written, and with a length of 0 none: the prompt comes back "
        "as it is.",
        lambda model, prompt, length: write(model, prompt, length + 1),
    ),
    (
        "a token is written although length is 0",
        "With a length of 0 the prompt comes back as it is: append inside the loop.",
        lambda model, prompt, length: write(model, prompt, max(1, length)),
    ),
    (
        "one token too few",
        "length tokens are written. Do you append what the last call has said?",
        lambda model, prompt, length: write(model, prompt, max(0, length - 1)),
    ),
):
    cached.mistake(name, why)(answer)

EMPTY = (
    "an empty prompt is not refused",
    "Without a single id there is nothing from which the first token could follow. Say "
    "so before the model is called: raise ValueError.",
)
LAST = (
    "the last token is read, too",
    "Its logits would say what comes next, and nothing more is wanted. Read a token "
    "when the next one is asked for, not as soon as it is written.",
)
SHARED = (
    "two texts share a cache",
    "The text before this one has left its cache behind: in a default argument, in a "
    "global name or in the model. Begin each text with None.",
)

# --- the check ------------------------------------------------------------------------


def draw_decoder(generator: torch.Generator, size: int, width: int) -> Decoder:
    """Draw tables that float32 holds as they are."""
    tables = (
        normal(generator, *shape)
        for shape in ((size, width), (POSITIONS, width), (width, size))
    )
    return Decoder(*(table.double() for table in tables))


def _is_clear(model: Decoder, prompt: list[int], length: int) -> bool:
    """Whether rounding decides nothing: no two tokens are nearly as probable."""
    ids, _ = _right(model.fresh(), prompt, length)
    logits, _ = model.fresh()(torch.tensor([ids]))
    best, second = logits[0].topk(2).values.T
    return bool((best - second > CLEAR).all())


def _draw(
    generator: torch.Generator, *wanted: tuple[int, int]
) -> tuple[Decoder, list[list[int]]]:
    """Draw a decoder, and prompts of which it writes on clearly.

    Args:
        generator: what is drawn with.
        wanted: for each prompt its length, and how many tokens are to be written.
    """
    size = 6 + draw_whole(generator, 4)
    prompts = [
        torch.randint(size, (begin,), generator=generator).tolist()
        for begin, _ in wanted
    ]
    while True:
        model = draw_decoder(generator, size, 5)
        texts = zip(prompts, wanted, strict=True)
        if all(_is_clear(model, prompt, length) for prompt, (_, length) in texts):
            return model, prompts


def _cases(seed: int) -> Iterator[Case]:
    """Draw decoders, prompts of one id and more, and lengths, 0 and 1 among them."""
    generator = seeded(seed)
    for begin, length in ((3, 4), (1, 6), (6, 9), (4, 1), (2, 0), (5, 7)):
        model, (prompt,) = _draw(generator, (begin, length))
        yield _case(model, prompt, length)


def _case(model: Decoder, prompt: list[int], length: int) -> Case:
    on = (
        f"a decoder of {len(model.tokens)} tokens, prompt {prompt}, length {length}; "
        "of each call: new ids, position of the first, ids in the cache"
    )
    return Case(on, (model, prompt, length))


@chapter.check(section="language-model-cache")
def write_with_cache(
    student: StudentFunction, decoder: StudentModule, seed: int = 0
) -> None:
    """The text without a cache, nothing read in vain, texts one after the other."""
    for case in _cases(seed):
        built = _built(decoder, case.inputs[0])
        _judge(student, built, case)
    _expect_own_cache(student, decoder, seeded(seed + 1))
    _expect_last_unread(student, built)
    on, (name, why) = f"{student.name}(model, [], 3)", EMPTY
    expect.raises(
        "ValueError", lambda: student(built, [], 3), on=on, why=why, mistake=name
    )


def _built(decoder: StudentModule, model: Decoder) -> StudentInstance:
    """Build the notebook's decoder of these tables."""
    built = decoder.build(*model.tokens.shape, POSITIONS)
    built.load_state_dict(model.state())
    return built


def _judge(student: StudentFunction, built: StudentInstance, case: Case) -> None:
    """Expect a text, and of the given decoder's notes that each token was read once."""
    _, prompt, length = case.inputs
    before = len(built.state_dict()["calls"])
    with cached.accidents_named():
        text = student(built, prompt, length)
    expect_ids(text, cached.right(case)[0], on=case.on, what="the text")
    calls = built.state_dict()["calls"][before:].tolist()
    if calls and calls[0][2]:
        got = f"{calls[0][2]} ids in the cache at the first call"
        refuse(*SHARED, on=case.on, got=got, expected="none")
    got = text, needed(calls, length)
    judge_parts(cached, got, case, ("the text", "the calls"))


def _expect_own_cache(student, decoder, generator: torch.Generator) -> None:
    """Expect that a text does not depend on the one that was written before it."""
    model, prompts = _draw(generator, (4, 3), (3, 5))
    built = _built(decoder, model)
    for prompt, length in zip(prompts, (3, 5), strict=True):
        _judge(student, built, _case(model, prompt, length))


def _expect_last_unread(student: StudentFunction, built: StudentInstance) -> None:
    """Expect that nothing is read once all tokens are written."""
    prompt, length = [2, 0, 1], 4
    before = len(built.state_dict()["calls"])
    student(built, prompt, length)
    count = len(built.state_dict()["calls"]) - before
    on = f"prompt {prompt}, length {length}"
    say = {"got": f"{count} calls of the model", "expected": f"{length}"}
    refuse_if(count > length, *LAST, on=on, **say)
