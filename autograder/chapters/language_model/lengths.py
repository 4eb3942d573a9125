"""What a text costs a model, per byte."""

import math
import sys
from collections.abc import Callable, Iterator
from functools import partial

import torch

from autograder.chapters.language_model.chapter import chapter
from autograder.exercise.inputs import seeded
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction


def per_byte(losses: torch.Tensor, text: str) -> float:
    """Sum in double precision, and count the bytes that each character takes."""
    nats = math.fsum(losses.tolist())
    return nats / math.log(2) / sum(len(each.encode()) for each in text)


length = Function("bits-per-byte", "bits_per_byte", per_byte)


# --- what goes wrong ------------------------------------------------------------------


def bits_by(
    losses: torch.Tensor,
    text: str,
    *,
    total: Callable = torch.sum,
    bits: Callable = lambda nats: nats / math.log(2),
    count: Callable = lambda text, tokens: len(text.encode()),
    share: Callable = lambda bits, count: bits / count,
    finish: Callable = lambda found: found,
) -> float:
    """Compute it by rules that can be varied.

    Args:
        losses: (T,).
        text: what they are of.
        total: makes one number of the losses.
        bits: makes bits of nats.
        count: of the text, and of how many tokens there are: by what is divided.
        share: made of both.
        finish: makes the result of that.
    """
    found = bits(float(total(losses)))
    return finish(share(found, count(text, len(losses))))


MEAN = (
    "a mean in place of the sum",
    "The mean over tokens depends on how the text was cut. Add up all losses: that is "
    "what the whole text costs. Only the sum is divided by the number of bytes.",
)
LEFT_OUT = (
    "the loss of a token is left out",
    "Each loss belongs to the cost of the text, the first and the last one, too.",
)
BASE = (
    "the logarithm of another base",
    "Losses are natural logarithms, and bits belong to the base 2: divide by ln 2.",
)
ENCODING = (
    "bytes of another encoding",
    "Count bytes of UTF-8, which encode() gives by default.",
)
STRIPPED = (
    "the text is stripped",
    "Spaces and line ends at both ends are bytes as well, and the model pays for them: "
    "count the text as it is.",
)
WHOLE = (
    "rounded to whole bits",
    "A cost is no message that has to be sent in whole bits. Keep the fraction.",
)
MULTIPLIED = (
    "probabilities multiplied in place of logarithms added",
    "Of a long text the product is too small for a float, or its inverse too large. "
    "The logarithm of a product is the sum of the logarithms. These are the losses: "
    "add them up.",
)
length.accident("math domain error", *MULTIPLIED)
length.accident("OverflowError", *MULTIPLIED)
length.slips(
    bits_by,
    (*MEAN, {"count": lambda text, tokens: tokens}),
    (*MEAN, {"total": torch.mean}),
    (*LEFT_OUT, {"total": lambda losses: losses[1:].sum()}),
    (*LEFT_OUT, {"total": lambda losses: losses[:-1].sum()}),
    (
        "nats in place of bits",
        "A nat is 1 / ln 2 bits: divide by ln 2.",
        {"bits": lambda nats: nats},
    ),
    (
        "multiplied by ln 2",
        "A nat is more than a bit, 1 / ln 2 = 1.44 of them: divide.",
        {"bits": lambda nats: nats * math.log(2)},
    ),
    (*BASE, {"bits": lambda nats: nats / math.log(10)}),
    (*BASE, {"bits": lambda nats: nats / math.log10(2)}),
    (
        "the logarithm of the losses",
        "Losses are logarithms already. In another base they differ by a factor: "
        "divide by ln 2.",
        {"bits": math.log2},
    ),
    (
        "characters in place of bytes",
        "Ö is one character and two bytes of UTF-8: len(text.encode()).",
        {"count": lambda text, tokens: len(text)},
    ),
    (
        "words in place of bytes",
        "How many words there are depends on the language. Count bytes of UTF-8.",
        {"count": lambda text, tokens: len(text.split())},
    ),
    (
        "per bit in place of per byte",
        "The cost is in bits, and it is divided by the number of bytes, not by eight "
        "times as many.",
        {"count": lambda text, tokens: 8 * len(text.encode())},
    ),
    *(
        (*ENCODING, {"count": lambda text, tokens, code=code: len(text.encode(code))})
        for code in ("utf-16-le", "utf-16", "utf-32-le", "utf-32", "utf-8-sig")
    ),
    (
        "the size of Python's object",
        "sys.getsizeof says how much memory an object takes, with a header of some 30 "
        "bytes. The bytes themselves are counted by len(text.encode()).",
        {"count": lambda text, tokens: sys.getsizeof(text.encode())},
    ),
    (
        "letters beyond ASCII are not counted",
        "They are bytes as well, and more of them: count bytes of UTF-8.",
        {"count": lambda text, tokens: len(text.encode("ascii", "ignore"))},
    ),
    (
        "two bytes for every letter beyond ASCII",
        "UTF-8 takes three for 中 or €, and four for 😀. Let the encoder count: "
        "len(text.encode()).",
        {"count": lambda text, tokens: sum(1 + (not each.isascii()) for each in text)},
    ),
    *(
        (*STRIPPED, {"count": lambda text, tokens, cut=cut: len(cut(text).encode())})
        for cut in (str.strip, str.rstrip, str.lstrip)
    ),
    (
        "spaces are not counted",
        "A space is a byte as the others are, and the model pays for it.",
        {"count": lambda text, tokens: len("".join(text.split()).encode())},
    ),
    (
        "the whole text in place of a byte",
        "A longer text costs more. Divide by the number of bytes.",
        {"share": lambda bits, count: bits},
    ),
    (
        "bytes per bit",
        "Asked for are the bits that a byte costs: divide the bits by the bytes.",
        {"share": lambda bits, count: count / bits},
    ),
    *(
        (
            *WHOLE,
            {"share": lambda bits, count, to=to, at=at: to(round(bits, at)) / count},
        )
        for to in (round, math.floor, math.ceil)
        for at in (4, 12)  # of 3.0000001 bits, too
    ),
    (*WHOLE, {"finish": math.floor}),
    (*WHOLE, {"finish": round}),
    *(
        (
            "the result is rounded",
            "Whoever shows the number may round it. Return all of its digits.",
            {"finish": lambda found, digits=digits: round(found, digits)},
        )
        for digits in (1, 2, 3, 4)
    ),
    (
        "a perplexity",
        "Return the loss itself, in bits. A perplexity is the exponential of a loss.",
        {"finish": lambda found: 2**found},
    ),
    (
        "a negative cost",
        "A loss is −ln p, which is positive already: add the losses up as they are.",
        {"finish": lambda found: -found},
    ),
)
length.mistake(*MULTIPLIED, when=lambda losses, text: losses.sum() > 800)(
    partial(bits_by, total=lambda losses: losses.exp().prod().log())
)


# --- the check ------------------------------------------------------------------------

ALPHABET = "aeinrst .,öäüßéøλπя中語😀"


def _cases(seed: int) -> Iterator[Case]:
    """The example by hand with both tokenizers, texts of any letters, a long one."""
    two = torch.tensor([2.0, 1.0]) * math.log(2)
    yield Case("the example by hand, 'Öl', two tokens", (two, "Öl"), 1.0)
    one = two.sum(dim=0, keepdim=True)
    yield Case("the example by hand, 'Öl', one token", (one, "Öl"), 1.0)
    generator = seeded(seed)
    for characters, tokens in ((23, 7), (60, 41), (700, 500)):
        drawn = torch.randint(len(ALPHABET), (characters,), generator=generator)
        text = "".join(ALPHABET[place] for place in [6, 9, *drawn.tolist()])
        text = f" {text}\n"  # its ends are bytes, too
        losses = 4 * torch.rand(tokens, generator=generator)
        said = repr(text) if characters < 30 else f"a text of {len(text)} letters"
        on = f"{tokens} tokens of {said}"
        yield Case(on, (losses, text), unless_finite=MULTIPLIED)


@chapter.check(section="language-model-bits")
def bits_per_byte(student: StudentFunction, seed: int = 0) -> None:
    """By hand, two tokenizers of one text, texts that are not English."""
    length.judge_all(student, _cases(seed))
