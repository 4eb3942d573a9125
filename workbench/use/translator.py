"""A trained translator with all that belongs to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from workbench.data.tokenizer import TOKENIZER_FILE, Tokenizer
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.training import records
from workbench.use.decoding import translate_batch

SENTENCES = 128  # translated at once


def search_of(
    folder: Path, beam: int | None = None, alpha: float | None = None
) -> tuple[int, float]:
    """Say how a translator searches: as asked for, or as its own record was scored.

    Args:
        folder: that training wrote.
        beam: hypotheses kept; None: as in the record.
        alpha: length penalty, likewise.

    Raises:
        WorkbenchError: there is no record, or it says nothing of a search.
    """
    if beam is not None and alpha is not None:
        return beam, alpha
    path = folder / records.FILE
    own = records.read(path).get("decoding")
    if own is None:
        raise WorkbenchError(f"{path} lacks 'decoding': type --beam and --alpha")
    beam = own["beam"] if beam is None else beam
    return beam, own["alpha"] if alpha is None else alpha


@dataclass(frozen=True)
class Translation:
    """What was written for a sentence.

    Args:
        text: the translation.
        ids: its tokens, without the end.
        ended: whether the model has written its end, and was not stopped.
    """

    text: str = ""
    ids: tuple[int, ...] = ()
    ended: bool = True


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
        written = self.translations(sentences, beam, alpha, shorten=shorten)
        return [each.text for each in written]

    def translations(
        self,
        sentences: list[str],
        beam: int = 1,
        alpha: float = 0.6,
        *,
        shorten: bool = False,
    ) -> list[Translation]:
        """Translate as ``translate`` does; say of each whether it came to an end."""
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
        found = [Translation()] * len(ids)
        for first in range(0, len(order), SENTENCES):
            chosen = order[first : first + SENTENCES]
            written = self._translate_rows([ids[n] for n in chosen], beam, alpha)
            for n, translation in zip(chosen, written, strict=True):
                found[n] = translation
        return found

    @torch.inference_mode()
    def probability(self, sentence: str, translation: Translation) -> float:
        """Return the probability of a translation: of all its tokens and its end."""
        source = self.tokenizer.encode(sentence.strip())
        end = [Tokenizer.EOS] if translation.ended else []
        written = [*translation.ids, *end]
        given = [Tokenizer.SOS, *written[:-1]]
        ids = (torch.tensor([row], device=self.device) for row in (source, given))
        shares = self.model(*ids)[0].float().log_softmax(dim=-1)  # (T, V)
        places = torch.arange(len(written), device=self.device)
        return float(shares[places, written].sum().exp())

    def _translate_rows(
        self, rows: list[list[int]], beam: int, alpha: float
    ) -> list[Translation]:
        """Translate ids of sentences in one batch."""
        width = max(map(len, rows))
        most = min(self.config.max_length, 2 * width + 16)
        padded = [row + [Tokenizer.PAD] * (width - len(row)) for row in rows]
        written = translate_batch(
            self.model,
            torch.tensor(padded, device=self.device),
            Tokenizer.SOS,
            Tokenizer.EOS,
            most,
            beam,
            alpha,
            parts=self.parts,
        )
        return [
            Translation(self.tokenizer.decode(each), tuple(each), len(each) < most - 1)
            for each in written
        ]
