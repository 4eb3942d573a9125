"""What a language model reads: characters, or the byte pairs of chapter 1."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from autograder.files import write_beside
from workbench.data.tokenizer import TOKENIZER_FILE
from workbench.errors import WorkbenchError
from workbench.model.models import Parts, load_parts


class TextTokenizer:
    """Turns a text into ids and back, and loses nothing.

    Without merges a token is a character. With them it is what ``bpe_encode`` makes of
    the text; each different piece of it is cut only once.
    """

    def __init__(
        self,
        alphabet: Iterable[str],
        merges: Iterable[tuple[str, str]] = (),
        parts: Parts | None = None,
    ) -> None:
        """Number the characters, then what the merges make of them."""
        self.alphabet, self.merges = list(alphabet), [tuple(pair) for pair in merges]
        joined = ("".join(pair) for pair in self.merges)
        self.tokens = list(dict.fromkeys([*self.alphabet, *joined]))
        self.numbers = {token: number for number, token in enumerate(self.tokens)}
        self.parts = parts
        self.cut: dict[str, list[int]] = {}  # piece -> ids

    @classmethod
    def train(
        cls, text: str, alphabet: Iterable[str], merges: int, parts: Parts
    ) -> TextTokenizer:
        """Learn up to so many merges by ``train_bpe``; with none, read characters."""
        found = parts.train_bpe(text, merges) if merges else []
        return cls(alphabet, found, parts)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text.

        Raises:
            WorkbenchError: it has a character that the model has never read.
        """
        strange = sorted(set(text) - set(self.alphabet))
        if strange:
            raise WorkbenchError(
                f"the text has the character {strange[0]!r}, which is none of the "
                f"{len(self.alphabet)} that this model knows: leave it out"
            )
        if not self.merges:
            return [self.numbers[character] for character in text]
        if self.parts is None:
            self.parts = load_parts()
        ids: list[int] = []
        for piece in self.parts.embeddings.split_words(text):
            if piece not in self.cut:
                tokens = self.parts.bpe_encode(piece, self.merges)
                self.cut[piece] = [self.numbers[token] for token in tokens]
            ids += self.cut[piece]
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids."""
        return "".join(self.tokens[number] for number in ids)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def name(self) -> str:
        """A short checksum: a model and its tokenizer are told apart from others."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:12]

    def to_json(self) -> str:
        """Write it down."""
        values = {"alphabet": self.alphabet, "merges": self.merges}
        return json.dumps({"kind": "text", **values}, ensure_ascii=False) + "\n"

    def save(self, folder: Path) -> None:
        """Write tokenizer.json into a folder."""
        write_beside(folder / TOKENIZER_FILE, self.to_json(), lasting=True)

    @classmethod
    def load(cls, folder: Path, parts: Parts | None = None) -> TextTokenizer:
        """Read what ``save`` wrote.

        Raises:
            WorkbenchError: the file is missing, cut, or a tokenizer of another kind.
        """
        path = Path(folder) / TOKENIZER_FILE
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            if values.get("kind") != "text":
                raise ValueError("it is no tokenizer of a language model")
            alphabet, merges = values["alphabet"], values["merges"]
            if not all(isinstance(x, str) and len(x) == 1 for x in alphabet):
                raise ValueError("its alphabet is not made of characters")
            if not all(len(pair) == 2 and all(pair) for pair in merges):
                raise ValueError("its merges are not pairs")
            return cls(alphabet, merges, parts)
        except OSError as error:
            raise WorkbenchError(
                f"{path} cannot be read ({error.strerror}): it is written when a "
                "language model is trained"
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WorkbenchError(
                f"{path} is not a tokenizer of a language model ({error}): copy it "
                "again, or train again"
            ) from None
