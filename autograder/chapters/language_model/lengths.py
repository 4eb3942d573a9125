"""What a text costs a model, per byte."""

import math
from collections.abc import Iterator

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


def _bits(losses) -> float:
    return losses.sum().item() / math.log(2)


CHARACTERS = (
    "characters in place of bytes",
    "Ö is one character and two bytes of UTF-8: len(text.encode()).",
)
MEAN = (
    "a mean in place of the sum",
    "The mean over tokens depends on how the text was cut. Add up all losses: that is "
    "what the whole text costs.",
)


@length.mistake(*CHARACTERS)
def _(losses, text):
    return _bits(losses) / len(text)


@length.mistake(*MEAN)
def _(losses, text):
    return _bits(losses) / len(losses)


@length.mistake(
    f"{MEAN[0]}, and per byte",
    f"{MEAN[1]} Only the sum is divided by the number of bytes.",
)
def _(losses, text):
    return _bits(losses) / len(losses) / len(text.encode())


@length.mistake("nats in place of bits", "A nat is 1 / ln 2 bits: divide by ln 2.")
def _(losses, text):
    return losses.sum().item() / len(text.encode())


@length.mistake(
    "multiplied by ln 2", "A nat is more than a bit, 1 / ln 2 = 1.44 of them: divide."
)
def _(losses, text):
    return losses.sum().item() * math.log(2) / len(text.encode())


@length.mistake(
    "bytes of another encoding",
    "Count bytes of UTF-8, which encode() gives by default.",
)
def _(losses, text):
    return _bits(losses) / len(text.encode("utf-16-le"))


@length.mistake(
    "two bytes for every letter beyond ASCII",
    "UTF-8 takes three for 中 or €, and four for 😀. Let the encoder count: "
    "len(text.encode()).",
)
def _(losses, text):
    return _bits(losses) / sum(1 + (not each.isascii()) for each in text)


@length.mistake(
    "the whole text in place of a byte",
    "A longer text costs more. Divide by the number of bytes.",
)
def _(losses, text):
    return _bits(losses)


@length.mistake(
    "a perplexity",
    "Return the loss itself, in bits. A perplexity is the exponential of a loss.",
)
def _(losses, text):
    return 2 ** (_bits(losses) / len(text.encode()))


@length.mistake(
    f"{MEAN[0]}, and nats in place of bits",
    f"{MEAN[1]} A nat is 1 / ln 2 bits: divide by ln 2, too.",
)
def _(losses, text):
    return losses.mean().item() / len(text.encode())


@length.mistake(
    "the text is stripped",
    "Spaces and line ends at both ends are bytes as well, and the model pays for them: "
    "count the text as it is.",
    when=lambda losses, text: text != text.strip(),
)
def _(losses, text):
    return _bits(losses) / len(text.strip().encode())


MULTIPLIED = (
    "probabilities multiplied in place of logarithms added",
    "Of a long text the product is too small for a float, or its inverse too large. "
    "The logarithm of a product is the sum of the logarithms. These are the losses: "
    "add them up.",
)
length.accident("math domain error", *MULTIPLIED)
length.accident("OverflowError", *MULTIPLIED)


@length.mistake(*MULTIPLIED, when=lambda losses, text: losses.sum() > 800)
def _(losses, text):
    return losses.exp().prod().log2().item() / len(text.encode())


for rounded in (round, math.floor, math.ceil):

    @length.mistake(
        "rounded to whole bits",
        "A cost is no message that has to be sent in whole bits. Keep the fraction.",
    )
    def _(losses, text, rounded=rounded):
        return rounded(round(_bits(losses), 4)) / len(text.encode())


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
