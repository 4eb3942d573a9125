"""A trained translator with all that belongs to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from workbench.data.tokenizer import TOKENIZER_FILE, Tokenizer
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.use.decoding import translate_batch

SENTENCES = 128  # translated at once


@dataclass(frozen=True)
class Translator:
    """A model on its device, and what turns sentences into its ids and back.

    Args:
        model: a Transformer of the parts.
        config: what it was built from; it names the languages.
        tokenizer: of the same run.
        parts: what the model is made of.
        device: where the model is.
    """

    model: Any
    config: models.TranslatorConfig
    tokenizer: Tokenizer
    parts: models.Parts
    device: torch.device

    @classmethod
    def load(
        cls, folder: Path, device: torch.device, parts: models.Parts | None = None
    ) -> Translator:
        """Load a trained translator from its folder; ``parts``: None: the reference.

        Raises:
            WorkbenchError: the folder holds none, or the tokenizer of another run.
        """
        parts = models.load_parts() if parts is None else parts
        model, config = models.load(folder, parts)
        if not isinstance(config, models.TranslatorConfig):
            found = models.kind_of(config)
            raise WorkbenchError(f"{folder} holds a {found} and no translator")
        tokenizer = Tokenizer.load(folder / TOKENIZER_FILE)
        if len(tokenizer) != config.vocab_size:
            raise WorkbenchError(
                f"{folder / TOKENIZER_FILE} has {len(tokenizer)} tokens, but the "
                f"model {config.vocab_size}: they are of different runs"
            )
        return cls(model.to(device), config, tokenizer, parts, device)

    def translate(
        self,
        sentences: list[str],
        beam: int = 1,
        alpha: float = 0.6,
        *,
        shorten: bool = False,
    ) -> list[str]:
        """Translate sentences, those of a similar length together.

        Args:
            sentences: N texts; an empty one has an empty translation.
            beam: hypotheses kept.
            alpha: length penalty.
            shorten: cut what is too long for the model, instead of refusing it.

        Returns:
            N translations, in order.

        Raises:
            WorkbenchError: a sentence is too long.
        """
        ids = self.tokenizer.encode_all(sentence.strip() for sentence in sentences)
        most = self.config.max_length
        for number, each in enumerate(ids):
            if len(each) > most and not shorten:
                raise WorkbenchError(
                    f"sentence {number + 1} has {len(each)} tokens, and this model "
                    f"reads {most}: divide it"
                )
        ids = [each[:most] for each in ids]
        full = [n for n, sentence in enumerate(sentences) if sentence.strip()]
        order = sorted(full, key=lambda n: len(ids[n]))
        found = [""] * len(ids)
        for first in range(0, len(order), SENTENCES):
            chosen = order[first : first + SENTENCES]
            written = self._translate_rows([ids[n] for n in chosen], beam, alpha)
            for n, translation in zip(chosen, written, strict=True):
                found[n] = translation
        return found

    def _translate_rows(
        self, rows: list[list[int]], beam: int, alpha: float
    ) -> list[str]:
        """Translate ids of sentences in one batch."""
        width = max(map(len, rows))
        padded = [row + [Tokenizer.PAD] * (width - len(row)) for row in rows]
        written = translate_batch(
            self.model,
            torch.tensor(padded, device=self.device),
            Tokenizer.SOS,
            Tokenizer.EOS,
            min(self.config.max_length, 2 * width + 16),
            beam,
            alpha,
            parts=self.parts,
        )
        return [self.tokenizer.decode(each) for each in written]
