"""Score what was trained on its test data, or on other data; compare two models."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from workbench.data.images import ImageData, load_images, subset
from workbench.data.texts import load_corpus
from workbench.model import models
from workbench.training import records
from workbench.training.presets import VISION, preset_for
from workbench.use import metrics, results
from workbench.use.classifier import Classifier
from workbench.use.comparison import Judged, judge_right
from workbench.use.translator import Translator

# what is scored twice, or trained with several seeds, is read once
corpus_of = functools.lru_cache(maxsize=1)(load_corpus)


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A trained model, and what it is to be scored on.

    Args:
        kind: "translator", "vit" or "cnn".
        folder: that training wrote.
        device: where to compute.
        parts: a folder with the parts that it is made of; None: the reference.
        data: the data set; None, until ``settled``: what the model learned from.
        data_dir: holds its files; None: they are downloaded once.
        form: of multi30k's text, likewise.
        images: the training images of a subset.
        split: of the data, "test" or "validation".
        beam: hypotheses kept by a translator.
        alpha: length penalty of the beam.
    """

    kind: str
    folder: Path
    device: torch.device
    parts: Path | None = None
    data: str | None = None
    data_dir: Path | None = None
    form: str | None = None
    images: int | None = None
    split: str = "test"
    beam: int = 5
    alpha: float = 0.6

    def settled(self) -> Evaluation:
        """Name what the model learned from, where nothing else was asked for."""
        if self.data is not None:
            return self
        learned = records.read(self.folder / records.FILE)["data"]
        form = self.form or learned.get("form")
        images = learned.get("images")
        return replace(self, data=learned["name"], form=form, images=images)

    def of_another(self, name: str) -> Evaluation:
        """Ask the same of another model: a folder, or a record whose model is kept."""
        folder = Path(name)
        if not folder.is_dir():
            folder = results.model_folder(name)
        return replace(self, folder=folder, parts=None)


def evaluate(asked: Evaluation) -> dict[str, float]:
    """Score a translator or a classifier; its accuracy is in percent."""
    if asked.kind == "translator":
        return score_translator(*load_translator(asked), asked.beam, asked.alpha)[0]
    classifier, data = load_classifier(asked)
    return {"accuracy": 100 * classifier.accuracy(data, asked.split)}


def judge(asked: Evaluation) -> dict[str, Judged]:
    """Judge each translation, or each image, of a test set, by every metric."""
    if asked.kind == "translator":
        return judge_translator(*load_translator(asked), asked.beam, asked.alpha)
    classifier, data = load_classifier(asked)
    found, labels = classifier.classify(data, asked.split)
    return {"accuracy": judge_right(found.tolist(), labels.tolist())}


def load_translator(
    asked: Evaluation,
) -> tuple[Translator, list[tuple[str, str]], str]:
    """Load a trained translator; the pairs to evaluate it on, and their form."""
    parts = models.load_parts(asked.parts)
    translator = Translator.load(asked.folder, asked.device, parts)
    asked = asked.settled()
    languages = translator.config.source, translator.config.target
    form = asked.form or "raw"
    corpus = corpus_of(str(asked.data), asked.data_dir, *languages, form)
    return translator, getattr(corpus, asked.split), form


def score_translator(
    translator: Translator,
    pairs: list[tuple[str, str]],
    form: str,
    beam: int,
    alpha: float,
) -> tuple[dict[str, float], dict[str, str]]:
    """Translate pairs; return the scores, and how BLEU was counted."""
    found, references = translate_pairs(translator, pairs, beam, alpha)
    target = translator.config.target
    scores: dict[str, Any] = metrics.bleu_scores(found, references, target, form)
    signatures = scores.pop("signatures")
    scores["exact_match"] = metrics.exact_match(found, references)
    return scores, signatures


def judge_translator(
    translator: Translator,
    pairs: list[tuple[str, str]],
    form: str,
    beam: int,
    alpha: float,
) -> dict[str, Judged]:
    """Judge the translation of each pair, by every metric."""
    found, references = translate_pairs(translator, pairs, beam, alpha)
    judged = metrics.judge_bleu(found, references, translator.config.target, form)
    stripped = ([text.strip() for text in texts] for texts in (found, references))
    return judged | {"exact_match": judge_right(*stripped)}


def translate_pairs(
    translator: Translator, pairs: list[tuple[str, str]], beam: int, alpha: float
) -> tuple[list[str], list[str]]:
    """Translate the sources of pairs; return translations, and the references."""
    sources, references = (list(side) for side in zip(*pairs, strict=True))
    return translator.translate(sources, beam, alpha, shorten=True), references


def load_classifier(asked: Evaluation) -> tuple[Classifier, ImageData]:
    """Load a trained classifier, and the images to evaluate it on.

    Raises:
        WorkbenchError: the folder holds another model, or one for other images.
    """
    parts = models.load_parts(asked.parts) if asked.kind == "vit" else None
    classifier = Classifier.load(asked.folder, asked.kind, asked.device, parts)
    asked = asked.settled()
    preset = preset_for(VISION, str(asked.data))  # the same mean and spread
    data = load_images(str(asked.data), asked.data_dir, preset.held_out)
    if asked.images:
        data = subset(data, asked.images)
    classifier.check_fits(data)
    return classifier, data
