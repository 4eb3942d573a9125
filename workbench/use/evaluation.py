"""Score what was trained on its test data, or on other data; compare two models."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from workbench.data.images import ImageData, load_images, subset
from workbench.data.texts import load_corpus, test_name
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.training import records
from workbench.training.presets import VISION, preset_for
from workbench.use import metrics, results
from workbench.use.classifier import Classifier
from workbench.use.comparison import Difference, Judged, judge_right, paired_bootstrap
from workbench.use.translator import Translator, search_of

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
        beam: hypotheses kept by a translator; None: as its record was scored.
        alpha: length penalty of the beam, likewise.
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
    beam: int | None = None
    alpha: float | None = None

    def settled(self) -> Evaluation:
        """Name what the model learned from, where nothing else was asked for.

        Other data, too, are given to it in the form that it has learned.
        """
        learned = records.read(self.folder / records.FILE)["data"]
        data, form = self.data or learned["name"], self.form or learned.get("form")
        images = learned.get("images") if data == learned["name"] else None
        return replace(self, data=data, form=form, images=images)

    def of_another(self, folder: Path) -> Evaluation:
        """Ask another model of the same data, in the form that it has learned."""
        return replace(self, folder=folder, parts=None, data=self.settled().data)


@dataclass(frozen=True)
class Answers:
    """What was said of each example of a test set, and what is right.

    Args:
        data: the test set, as a record names it; for pairs with their languages.
        found: translations, or names of classes.
        expected: the right ones, in the same order.
    """

    data: dict[str, Any]
    found: list[str]
    expected: list[str]

    def judged(self) -> dict[str, Judged]:
        """Judge each answer by every metric."""
        if "target" not in self.data:
            return {"accuracy": judge_right(self.found, self.expected)}
        texts = self.found, self.expected
        judged = metrics.judge_bleu(*texts, self.data["target"], self.data["form"])
        stripped = ([text.strip() for text in each] for each in texts)
        return judged | {"exact_match": judge_right(*stripped)}

    def scores(self) -> dict[str, float]:
        """Score them by every metric, in percent."""
        return {name: each.whole() for name, each in self.judged().items()}


def answer(asked: Evaluation) -> Answers:
    """Let a translator or a classifier answer a whole test set.

    Raises:
        WorkbenchError: the folder holds another model, or one for other data.
    """
    if asked.kind == "translator":
        return answer_pairs(asked)
    classifier, data = load_classifier(asked)
    about = {"name": data.name, "copy": data.copy, "test": asked.split}
    found, expected = (
        [data.classes[each] for each in classes.tolist()]
        for classes in classifier.classify(data, asked.split)
    )
    return Answers(about, found, expected)


def compare(
    asked: Evaluation, answers: Answers, other: str, kept: Path = results.FOLDER
) -> dict[str, Difference]:
    """Tell by how much answers are better than another model's on the same examples.

    Args:
        asked: what was answered.
        answers: of the model that was asked.
        other: a folder that training wrote, or the name of a record.
        kept: holds the records, and what they keep.

    Returns:
        The difference by every metric.

    Raises:
        WorkbenchError: nothing of the other is kept, or it was asked something else.
    """
    others = answers_of(other, asked, answers, kept)
    for key, value in answers.data.items():
        if others.data[key] != value:
            raise WorkbenchError(
                f"{other} has another {key}: {others.data[key]!r}, not {value!r}. "
                "Both must answer the same examples: see --data, --form and --score"
            )
    first, second = answers.judged(), others.judged()
    return {name: paired_bootstrap(first[name], second[name]) for name in first}


def answers_of(other: str, asked: Evaluation, answers: Answers, kept: Path) -> Answers:
    """Let another model answer; where none is kept, take what it said back then."""
    for folder in (Path(other), kept / results.MODELS / other):
        if folder.is_dir():
            return answer(asked.of_another(folder))
    learned = results.read_record(other, kept)["data"]
    data = {key: learned.get(key) for key in answers.data}
    return Answers(data, results.read_outputs(other, kept), answers.expected)


def answer_pairs(asked: Evaluation) -> Answers:
    """Let a trained translator translate the sources of pairs."""
    parts = models.load_parts(asked.parts)
    translator = Translator.load(asked.folder, asked.device, parts)
    search = search_of(asked.folder, asked.beam, asked.alpha)
    asked = asked.settled()
    source, target = translator.config.source, translator.config.target
    name, form = str(asked.data), asked.form or metrics.RAW
    corpus = corpus_of(name, asked.data_dir, source, target, form)
    data = {"name": name, "form": form, "source": source, "target": target}
    data["test"] = test_name(name, asked.split)
    pairs = getattr(corpus, asked.split)
    return Answers(data, *translate_pairs(translator, pairs, *search))


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
