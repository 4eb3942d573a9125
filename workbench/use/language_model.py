"""A trained language model with all that belongs to it: writing, and its scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from workbench.data import corpora
from workbench.data.text_tokenizer import TextTokenizer
from workbench.data.tokenizer import TOKENIZER_FILE
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.model.language_model import LanguageModel
from workbench.training import records
from workbench.training.language_model import Material, score
from workbench.use import counting, scoring, writing


@dataclass(frozen=True)
class Writer:
    """A model on its device, and what turns texts into its ids and back.

    Args:
        model: a language model of the parts.
        tokenizer: of the same run.
        parts: what the model is made of.
        device: where the model is.
    """

    model: LanguageModel
    tokenizer: TextTokenizer
    parts: models.Parts
    device: torch.device

    @classmethod
    def load(
        cls, folder: Path, device: torch.device, parts: models.Parts | None = None
    ) -> Writer:
        """Load a trained language model; ``parts``: None: the reference.

        Raises:
            WorkbenchError: the folder holds none, or the tokenizer of another one.
        """
        found = models.kind_of(models.load_config(folder))
        if found != "lm":
            raise WorkbenchError(f"{folder} holds a {found} and no language model (lm)")
        parts = models.load_parts() if parts is None else parts
        model, config = models.load(folder, parts)
        tokenizer = TextTokenizer.load(folder, parts)
        assert isinstance(config, models.LanguageModelConfig)
        if tokenizer.name != config.tokenizer:
            raise WorkbenchError(
                f"{folder / TOKENIZER_FILE} is not the tokenizer that this model was "
                "trained with: they are of different runs"
            )
        model.fused = True
        return cls(model.to(device), tokenizer, parts, device)

    def write(
        self,
        prompt: str,
        length: int,
        temperature: float = 0.8,
        top_p: float = 0.95,
        seed: int = 0,
        *,
        use_cache: bool = True,
    ) -> Iterator[str]:
        """Go on with a text, as ``writing.write`` does; give each token's text."""
        ids = self.tokenizer.encode(prompt)
        written = writing.write(
            self.model,
            ids,
            length,
            self.parts,
            temperature,
            top_p,
            seed,
            use_cache=use_cache,
        )
        for number in written:
            yield self.tokenizer.decode([number])


@dataclass(frozen=True)
class Evaluated:
    """What a language model reaches on a test text, and what else does.

    Args:
        data: the name of the text.
        characters: of the text that was scored.
        scores: of the model.
        table: nats a character and bits a byte, of the model, of counting and of xz.
    """

    data: str
    characters: int
    scores: dict[str, float]
    table: dict[str, tuple[float, float]]


def evaluate(
    writer: Writer, folder: Path, data: str | None = None, data_dir: Path | None = None
) -> Evaluated:
    """Score a language model on the test text, and set counting and packing beside it.

    Args:
        writer: the model.
        folder: whose record says what it learned from.
        data: score it on other data.
        data_dir: holds the data's files; None: they are downloaded once.
    """
    if data is None:
        data = records.read(folder / records.FILE)["data"]["name"]
    texts = corpora.load_texts(data, data_dir)
    material = Material(texts, writer.tokenizer, writer.parts, writer.device)
    found = {"this model": score(writer.model, material, "test")}
    scores = found["this model"]
    for order, nats in counting.counted(texts.train, texts.test, texts.alphabet):
        name = f"counting {order} character{'s' * (order > 1)}"
        found[name] = scoring.text_scores(nats, texts.test)
    packed = counting.packed(texts.train, texts.test)
    found["xz"] = scoring.text_scores(packed, texts.test)
    table = {
        name: (each["nats_per_character"], each["bits_per_byte"])
        for name, each in found.items()
    }
    return Evaluated(data, len(texts.test), scores, table)
