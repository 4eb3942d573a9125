"""A joint byte-pair encoding of both languages, that gives every text back unchanged.

Chapter 1 trains one by hand; this one is the same idea over bytes, by the library that
everybody uses, because a corpus of 29 000 pairs is too much for plain Python.
"""

import functools
import json
from collections.abc import Iterable
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from autograder.files import write_beside
from workbench.errors import WorkbenchError

TOKENIZER_FILE = "tokenizer.json"  # beside the weights
SPECIAL = ["<pad>", "<unk>", "<sos>", "<eos>"]
BYTES = pre_tokenizers.ByteLevel.alphabet()


class Tokenizer:
    """Turns text into ids and back; ids below 4 are special and stand for no text."""

    PAD, UNK, SOS, EOS = 0, 1, 2, 3

    def __init__(self, inner: tokenizers.Tokenizer):
        self.inner = inner

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> "Tokenizer":
        """Learn the merges.

        Args:
            texts: sentences of both languages.
            vocab_size: how many ids at most, the 4 special ones and 256 bytes included.

        Raises:
            WorkbenchError: if vocab_size leaves no room for the bytes.
        """
        least = len(SPECIAL) + len(BYTES)
        if vocab_size < least:
            raise WorkbenchError(
                f"a vocabulary of {vocab_size} is too small: take {least} or more "
                f"({len(SPECIAL)} special tokens and {len(BYTES)} bytes)"
            )
        inner = tokenizers.Tokenizer(models.BPE(unk_token=SPECIAL[cls.UNK]))
        # a space belongs to the word after it, the first word is given one, too, so
        # that a word is the same token at the beginning of a sentence and inside it
        inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=SPECIAL,
            initial_alphabet=BYTES,
            show_progress=False,
        )
        inner.train_from_iterator((" " + text for text in texts), trainer)
        return cls(checked(inner))

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without special ones."""
        return self.encode_all([text])[0]

    def encode_all(self, texts: Iterable[str]) -> list[list[int]]:
        """Return the ids of each text, without special ones."""
        spaced = [" " + text for text in texts]
        return [each.ids for each in self.inner.encode_batch(spaced)]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids up to the first EOS; special ids stand for nothing."""
        real = []
        for each in ids:
            if each == self.EOS:
                break
            if each >= len(SPECIAL):
                real.append(int(each))
        return self.inner.decode(real).removeprefix(" ")

    def __len__(self) -> int:
        return self.inner.get_vocab_size()

    def save(self, path: Path) -> None:
        """Write the tokenizer as JSON; nobody ever meets half of it."""
        write_beside(Path(path), self.inner.to_str(pretty=False))

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Read what `save` wrote.

        Raises:
            WorkbenchError: if the file is missing, cut short, or not a tokenizer of
                this course.
        """
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
            if _settings(json.loads(text)) != _own_settings():
                raise ValueError("it cuts texts in another way")
            return cls(checked(tokenizers.Tokenizer.from_str(text)))
        except FileNotFoundError:
            raise WorkbenchError(
                f"{path} is not there: it is written when the translator is trained"
            ) from None
        # the library raises bare Exception for what it cannot read
        except Exception as error:
            raise WorkbenchError(
                f"{path} is not a tokenizer of this course ({error}): copy it again, "
                "or train again"
            ) from error


def _settings(content: dict) -> dict:
    """Return all of a tokenizer's JSON but what it has learned.

    Other settings may hold a regular expression that never ends.
    """
    model = content["model"].items()
    learned = ("vocab", "merges")
    rest = {key: value for key, value in model if key not in learned}
    return {**content, "version": "", "model": rest}


@functools.cache
def _own_settings() -> dict:
    plain = Tokenizer.train([], len(SPECIAL) + len(BYTES))
    return _settings(json.loads(plain.inner.to_str()))


def checked(inner: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Return the tokenizer if its ids are in place and it gives a text back."""
    found = [inner.token_to_id(token) for token in SPECIAL]
    if found != list(range(len(SPECIAL))):
        raise ValueError(f"the ids of {', '.join(SPECIAL)} are {found}, not 0 to 3")
    missing = [each for each in BYTES if inner.token_to_id(each) is None]
    if missing:
        raise ValueError(f"{len(missing)} of 256 bytes have no id")
    inner.encode_special_tokens = True  # "<pad>" in a text is text
    for text in (" Süße Brombeeren, <pad>!", " 2 × 3\n"):
        if inner.decode(inner.encode(text).ids) != text:
            raise ValueError("it does not give every text back unchanged")
    return inner
