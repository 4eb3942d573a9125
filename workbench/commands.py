"""Train a translator, a classifier of images or a language model, score it, use it."""

from __future__ import annotations

import argparse
import contextlib
import functools
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from workbench.data.batches import FEW_LENGTHS, PairBatches
from workbench.data.image_batches import ImageBatches
from workbench.data.images import ImageData, load_images, subset
from workbench.data.texts import TEST_SETS, Corpus, load_corpus
from workbench.data.tokenizer import TOKENIZER_FILE, Tokenizer
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.training import presets, records
from workbench.training.devices import choose_device, world
from workbench.training.loop import TrainingConfig, fit
from workbench.training.options import (
    add_data_folder,
    add_folder,
    add_place,
    add_training,
    changed,
    positive,
    preset_for,
    shaped,
    training_config,
)
from workbench.training.runs import Trained, finish, prepare_folder, train_each
from workbench.use import comparison, image_metrics, language_model, metrics, results
from workbench.use.classifier import IMAGES as TEST_IMAGES
from workbench.use.classifier import Classifier
from workbench.use.translator import Translator

# --- What is typed --------------------------------------------------------------------


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Describe train, evaluate, translate and write."""
    text = "train a model from the course's parts"
    train = commands.add_parser("train", help=text, description=TRAIN_HELP)
    kinds = train.add_subparsers(title="what to train", required=True, metavar="TASK")
    add_train_translator(kinds)
    add_train_vision(kinds)
    add_train_baseline(kinds)
    language_model.add_train(kinds, TRAIN_HELP)
    text = "score what was trained, on its test data"
    evaluate = commands.add_parser("evaluate", help=text, description=EVALUATE_HELP)
    evaluate.set_defaults(run=run_evaluate, score="test")
    evaluate.add_argument("task", choices=list(models.KINDS))
    add_folder(evaluate)
    evaluate.add_argument("--data", metavar="NAME", help="default: what it learnt from")
    evaluate.add_argument("--form", choices=["raw", "lowercased"])
    evaluate.add_argument(
        "--against",
        metavar="DIR",
        help="another trained model, or a record's name whose model is kept: how much "
        "better this one is on the same examples, by the paired bootstrap",
    )
    add_data_folder(evaluate)
    add_beam(evaluate)
    add_place(evaluate)
    text = "translate sentences with what was trained"
    translate = commands.add_parser("translate", help=text, description=TRANSLATE_HELP)
    translate.set_defaults(run=run_translate)
    add_folder(translate)
    translate.add_argument("sentences", nargs="*", metavar="SENTENCE")
    add_beam(translate)
    add_place(translate)
    language_model.add_write(commands)


TRAIN_HELP = (
    "Train, and write into the folder --out: model.safetensors, config.json, "
    "metrics.json (how it was made, and its scores) and curves.png. A run that was "
    "stopped goes on with --resume and the same options. Several GPUs: "
    "torchrun --nproc-per-node 2 -m workbench train …"
)
EVALUATE_HELP = "Print the scores of a trained model; nothing is written."
TRANSLATE_HELP = (
    "Print the translation of each sentence on a line of its own; without sentences, "
    "of each line of the standard input."
)


def add_beam(command: argparse.ArgumentParser) -> None:
    """Describe the search for a translation."""
    command.add_argument(
        "--beam", type=positive, metavar="N", help="hypotheses kept; 1 is greedy"
    )
    command.add_argument(
        "--alpha", type=float, default=0.6, help="length penalty of the beam (0.6)"
    )


def add_train_translator(kinds: argparse._SubParsersAction) -> None:
    """Describe ``train translator``."""
    command = kinds.add_parser(
        "translator", help="an encoder-decoder", description=TRAIN_HELP
    )
    command.set_defaults(run=run_train_translator)
    names = (
        "phrasebook (the default), everyday, multi30k, text:FILE.tsv or text:FILE,FILE"
    )
    add_training(command, "phrasebook", names, "tokens, padding included")
    command.add_argument("--source", default="en", metavar="LANGUAGE", help="(en)")
    command.add_argument("--target", default="de", metavar="LANGUAGE", help="(de)")
    command.add_argument(
        "--form",
        choices=["raw", "lowercased"],
        default="raw",
        help="multi30k's text as it is, or its lowercased and tokenised files",
    )
    command.add_argument("--vocab-size", type=positive, metavar="N")
    command.add_argument(
        "--norm", choices=["pre", "post"], help="layer norm before or after"
    )
    text = "give the logits a matrix of their own, not the embeddings'"
    command.add_argument("--untied", action="store_true", help=text)
    text = "do not multiply the embeddings by the root of d_model"
    command.add_argument("--unscaled", action="store_true", help=text)
    add_beam(command)


def add_train_vision(kinds: argparse._SubParsersAction) -> None:
    """Describe ``train vit``."""
    command = kinds.add_parser(
        "vit", help="a Vision Transformer", description=TRAIN_HELP
    )
    command.set_defaults(run=run_train_vision, task="vit")
    add_training(command, "digits", IMAGE_DATA, "images")
    add_subset(command)
    command.add_argument("--patch-size", type=positive, metavar="PIXELS")
    command.add_argument("--pooling", choices=["class", "mean"])


def add_train_baseline(kinds: argparse._SubParsersAction) -> None:
    """Describe ``train cnn``."""
    text = "a small convolutional network, to set a Vision Transformer beside"
    command = kinds.add_parser("cnn", help=text, description=TRAIN_HELP)
    command.set_defaults(run=run_train_vision, task="cnn")
    add_training(command, "digits", IMAGE_DATA, "images", shape=("width", "stages"))
    add_subset(command)


IMAGE_DATA = "digits (the default), cifar10 or images:FOLDER, a folder in it per class"


def add_subset(command: argparse.ArgumentParser) -> None:
    """Describe how many images to learn from."""
    command.add_argument(
        "--images",
        type=positive,
        metavar="N",
        help="learn from N of the training images, as many of every class, in as many "
        "steps as from all; the test images stay the same",
    )


# --- The translator -------------------------------------------------------------------


def run_train_translator(arguments: argparse.Namespace) -> int:
    """Train a translator."""
    return train_each(arguments, train_translator)


def train_translator(arguments: argparse.Namespace, device: torch.device) -> None:
    """Train a translator on a device, score it, and write its folder."""
    begun = time.perf_counter()
    preset = preset_for(presets.TRANSLATORS, arguments.data)
    preset = shaped(preset, arguments, vocab_size="vocab_size", tokens="batch")
    if arguments.norm:
        preset = replace(preset, norm_first=arguments.norm == "pre")
    training = training_config(preset.training, arguments, device)
    out, languages = arguments.out, (arguments.source, arguments.target)
    prepare_folder(out, arguments.resume)
    texts = arguments.data, arguments.data_dir, *languages, arguments.form
    corpus = corpus_of(*texts)
    tokenizer = tokenizer_of(texts, preset.vocab_size, out, arguments.resume)
    parts = models.load_parts(arguments.parts)
    config = models.TranslatorConfig(
        vocab_size=len(tokenizer),
        d_model=preset.d_model,
        heads=preset.heads,
        layers=preset.layers,
        d_ff=preset.d_ff,
        dropout=preset.dropout,
        norm_first=preset.norm_first,
        source=languages[0],
        target=languages[1],
        tied=not arguments.untied,
        scaled=not arguments.unscaled,
    )
    torch.manual_seed(training.seed)
    model = models.build(config, parts)
    few = arguments.few_shapes
    pairs = pair_batches(
        corpus.train, tokenizer, preset.tokens, device, parts, training.seed, few
    )
    held = pair_batches(
        corpus.validation, tokenizer, preset.tokens, device, parts, few=few
    )
    loss_of = translation_loss(parts, training.smoothing)
    fast = models.use_attention(training.attention, parts)
    with fast, models.use_masks(device, parts):
        history = fit(
            model,
            loss_of,
            pairs,
            lambda model: {"loss": mean_loss(model, held, parts)},
            training,
            out,
            device,
            resume=arguments.resume,
            weight_of=count_words,
        )
    if world()[0] > 0:
        return
    models.save(out, model, config)  # whatever becomes of the scores
    beam = arguments.beam or preset.beam
    scores, signatures = score_translator(
        Translator(model, config, tokenizer, parts, device),
        corpus,
        arguments.score,
        arguments.form or "raw",
        beam,
        arguments.alpha,
    )
    data = {"name": arguments.data, "form": arguments.form}
    data |= {"source": languages[0], "target": languages[1]}
    data["test"] = test_name(arguments.data, arguments.score)
    trained = Trained(model, config, training, history, device, begun)
    search = {"beam": beam, "alpha": arguments.alpha}
    finish(
        "translator",
        arguments,
        trained,
        data,
        scores,
        signatures=signatures,
        decoding=search,
        batch=preset.tokens,
    )


def test_name(data: str, split: str) -> str:
    """Name what was scored on for a record."""
    kind, _, name = data.partition(":")
    if (kind, split) != ("multi30k", "test"):
        return split
    return name or TEST_SETS[0]


# All seeds of a command learn from the same.
corpus_of = functools.lru_cache(maxsize=1)(load_corpus)
images_of = functools.lru_cache(maxsize=1)(load_images)


@functools.lru_cache(maxsize=1)
def trained_tokenizer(texts: tuple, vocab_size: int) -> Tokenizer:
    """Train the tokenizer of both languages; ``texts``: arguments of load_corpus."""
    both = [text for pair in corpus_of(*texts).train for text in pair]
    return Tokenizer.train(both, vocab_size)


def tokenizer_of(texts: tuple, vocab_size: int, out: Path, resume: bool) -> Tokenizer:
    """Train the tokenizer and keep it in a folder; to resume, take that one."""
    path = out / TOKENIZER_FILE
    if resume:
        return Tokenizer.load(path)
    tokenizer = trained_tokenizer(texts, vocab_size)
    if world()[0] == 0:
        tokenizer.save(path)
    return tokenizer


def pair_batches(
    pairs: list[tuple[str, str]],
    tokenizer: Tokenizer,
    tokens: int,
    device: torch.device,
    parts: models.Parts,
    seed: int = 0,
    few: bool = False,
) -> PairBatches:
    """Put a split on the device; ``few``: in batches of few fixed shapes."""
    sources = tokenizer.encode_all(source for source, _ in pairs)
    targets = tokenizer.encode_all(target for _, target in pairs)
    shapes: dict[str, Any] = {"lengths": FEW_LENGTHS, "even": False} if few else {}
    return PairBatches(
        sources, targets, tokens, device, seed, shift_right=parts.shift_right, **shapes
    )


def translation_loss(
    parts: models.Parts, smoothing: float
) -> Callable[[nn.Module, tuple], torch.Tensor]:
    """Return chapter 7's loss of a batch."""
    sequence_loss = parts.sequence_loss

    def loss_of(model: nn.Module, batch: tuple) -> torch.Tensor:
        source, inputs, labels = batch
        logits = model(source, inputs)  # (B, T, V)
        return sequence_loss(logits, labels, Tokenizer.PAD, smoothing)

    return loss_of


def count_words(batch: tuple) -> torch.Tensor:
    """Count the labels that are scored, shape ()."""
    return (batch[2] != Tokenizer.PAD).sum()


def mean_loss(model: nn.Module, batches: PairBatches, parts: models.Parts) -> float:
    """Return the mean over all words of the loss without smoothing, in nats."""
    loss_of = translation_loss(parts, 0.0)
    total = torch.zeros((), device=batches.device)
    words = torch.zeros((), device=batches.device, dtype=torch.long)
    for batch in batches.epoch(0):
        count = count_words(batch)
        total, words = total + loss_of(model, batch) * count, words + count
    return float(total / words)


def score_translator(
    translator: Translator,
    corpus: Corpus,
    split: str,
    form: str,
    beam: int,
    alpha: float,
) -> tuple[dict[str, float], dict[str, str]]:
    """Translate a split; return its scores, and how BLEU was counted."""
    found, references = translate_split(translator, corpus, split, beam, alpha)
    target = translator.config.target
    scores: dict[str, Any] = metrics.bleu_scores(found, references, target, form)
    signatures = scores.pop("signatures")
    scores["exact_match"] = metrics.exact_match(found, references)
    return scores, signatures


def translate_split(
    translator: Translator, corpus: Corpus, split: str, beam: int, alpha: float
) -> tuple[list[str], list[str]]:
    """Translate a split; return the translations, and the references."""
    pairs = getattr(corpus, split)
    sources, references = (list(side) for side in zip(*pairs, strict=True))
    return translator.translate(sources, beam, alpha, shorten=True), references


def translate_all(
    model: nn.Module,
    config: models.TranslatorConfig,
    tokenizer: Tokenizer,
    sentences: list[str],
    device: torch.device,
    parts: models.Parts,
    beam: int = 1,
    alpha: float = 0.6,
) -> list[str]:
    """Translate with a model that is no folder's, such as one that a page trains."""
    translator = Translator(model, config, tokenizer, parts, device)
    return translator.translate(sentences, beam, alpha)


def load_translator(arguments: argparse.Namespace, device: torch.device) -> Translator:
    """Load the translator that the options name."""
    parts = models.load_parts(arguments.parts)
    return Translator.load(arguments.folder, device, parts)


def run_translate(arguments: argparse.Namespace) -> int:
    """Translate the sentences of the command line, or of the standard input."""
    device = choose_device(arguments.device)
    translator = load_translator(arguments, device)
    sentences = arguments.sentences or sys.stdin.read().splitlines()
    beam = arguments.beam or 5
    for translation in translator.translate(sentences, beam, arguments.alpha):
        print(translation)
    return 0


# --- The Vision Transformer, and the convolutional network beside it ------------------


def run_train_vision(arguments: argparse.Namespace) -> int:
    """Train a classifier of images."""
    return train_each(arguments, train_vision)


def train_vision(arguments: argparse.Namespace, device: torch.device) -> None:
    """Train a classifier of images on a device, score it, and write its folder."""
    begun = time.perf_counter()
    preset = vision_preset(arguments)
    training = training_config(preset.training, arguments, device)
    prepare_folder(arguments.out, arguments.resume)
    data = images_of(arguments.data, arguments.data_dir, preset.held_out)
    if arguments.images:
        training = as_many_steps(training, arguments, len(data.train[1]), preset.batch)
        data = subset(data, arguments.images)
        preset = replace(preset, batch=min(preset.batch, arguments.images))
    parts, config = None, config_for(data, preset)
    if isinstance(config, models.VisionConfig):
        parts = models.load_parts(arguments.parts)
    torch.manual_seed(training.seed)
    model = models.build(config, parts)
    batches = ImageBatches.of(
        data,
        "train",
        preset.batch,
        device,
        training.seed,
        preset.augmentation,
        parts=parts.vision_transformer if parts else None,
        compiled=training.compile,
    )
    held = ImageBatches.of(data, "validation", TEST_IMAGES, device)
    attention: contextlib.AbstractContextManager = contextlib.nullcontext()
    if parts:
        attention = models.use_attention(training.attention, parts)
    with attention:
        history = fit(
            model,
            image_loss(training.smoothing),
            batches,
            lambda model: {"accuracy": accuracy_of(model, held)},
            training,
            arguments.out,
            device,
            resume=arguments.resume,
        )
    if world()[0] > 0:
        return
    models.save(arguments.out, model, config)  # whatever becomes of the scores
    scores = score_vision(model, data, device, arguments.score)
    about = {"name": data.name, "copy": data.copy, "test": arguments.score}
    about["images"] = len(data.train[1])
    trained = Trained(model, config, training, history, device, begun)
    finish(
        arguments.task,
        arguments,
        trained,
        about,
        scores,
        batch=preset.batch,
        augmentation=asdict(preset.augmentation),
        classes=list(data.classes),
    )


def vision_preset(
    arguments: argparse.Namespace,
) -> presets.VisionPreset | presets.BaselinePreset:
    """Return the data set's preset with the options about shape and batch."""
    if arguments.task == "cnn":
        preset = preset_for(presets.BASELINES, arguments.data)
        own = {name: name for name in ("width", "stages", "dropout", "batch")}
        return changed(preset, arguments, **own)
    preset = preset_for(presets.VISION, arguments.data)
    names = {"patch_size": "patch_size", "pooling": "pooling", "batch": "batch"}
    return shaped(preset, arguments, **names)


def as_many_steps(
    training: TrainingConfig, arguments: argparse.Namespace, images: int, batch: int
) -> TrainingConfig:
    """Give a subset the steps that the preset's epochs over all images would have.

    Otherwise it would be compared with a run that was also trained for longer.
    """
    if arguments.epochs or arguments.steps:
        return training
    return replace(training, steps=training.epochs * max(1, images // batch))


def config_for(
    data: ImageData, preset: presets.VisionPreset | presets.BaselinePreset
) -> models.VisionConfig | models.BaselineConfig:
    """Shape the model of a preset for images."""
    if isinstance(preset, presets.VisionPreset):
        return vision_config(data, preset)
    return baseline_config(data, preset)


def vision_config(data: ImageData, preset: presets.VisionPreset) -> models.VisionConfig:
    """Shape a Vision Transformer for images."""
    channels, height, width = data.shape
    return models.VisionConfig(
        image_size=height if height == width else (height, width),
        patch_size=preset.patch_size,
        channels=channels,
        classes=len(data.classes),
        d_model=preset.d_model,
        heads=preset.heads,
        layers=preset.layers,
        d_ff=preset.d_ff,
        dropout=preset.dropout,
        pooling=preset.pooling,
    )


def baseline_config(
    data: ImageData, preset: presets.BaselinePreset
) -> models.BaselineConfig:
    """Shape a convolutional network for images."""
    channels, height, width = data.shape
    return models.BaselineConfig(
        image_size=height if height == width else (height, width),
        channels=channels,
        classes=len(data.classes),
        width=preset.width,
        stages=preset.stages,
        dropout=preset.dropout,
    )


def image_loss(smoothing: float) -> Callable[[nn.Module, tuple], torch.Tensor]:
    """Return the cross-entropy of a batch; labels are classes or shares of them."""

    def loss_of(model: nn.Module, batch: tuple) -> torch.Tensor:
        images, labels = batch
        return F.cross_entropy(model(images), labels, label_smoothing=smoothing)

    return loss_of


def accuracy_of(model: nn.Module, batches: ImageBatches) -> float:
    """Return the share of images that are classified rightly, from 0 to 1."""
    return image_metrics.accuracy(*image_metrics.predict(model, batches.epoch(0)))


def score_vision(
    model: nn.Module, data: ImageData, device: torch.device, split: str = "test"
) -> dict[str, float]:
    """Classify the images of a split; the accuracy is in percent."""
    batches = ImageBatches.of(data, split, TEST_IMAGES, device)
    return {"accuracy": 100 * accuracy_of(model, batches)}


# --- Scores of what was trained -------------------------------------------------------


def run_evaluate(arguments: argparse.Namespace) -> int:
    """Print the scores of a trained model."""
    device = choose_device(arguments.device)
    if arguments.task == "lm":
        if arguments.against is not None:
            raise WorkbenchError("--against compares translators or classifiers")
        return language_model.run_evaluate(arguments, device)
    translates = arguments.task == "translator"
    evaluate = evaluate_translator if translates else evaluate_vision
    scores = evaluate(arguments, device)
    for name, value in scores.items():
        print(f"{name:28} {value:.2f}")
    if arguments.against is not None:
        print(f"against {arguments.against}:")
        judge = judge_translator if translates else judge_vision
        first, second = judge(arguments, device), judge(other_one(arguments), device)
        for name in first:
            found = comparison.paired_bootstrap(first[name], second[name])
            print(comparison.told(name, found))
    return 0


def other_one(arguments: argparse.Namespace) -> argparse.Namespace:
    """Name the other model: a folder, or a record's model that is kept."""
    folder = Path(arguments.against)
    if not folder.is_dir():
        folder = results.model_folder(arguments.against)
    return argparse.Namespace(**{**vars(arguments), "folder": folder, "parts": None})


def judge_translator(
    arguments: argparse.Namespace, device: torch.device
) -> dict[str, comparison.Judged]:
    """Judge each translation of a test set, by every metric."""
    translator = load_translator(arguments, device)
    corpus = evaluated_corpus(arguments, translator.config)
    search = arguments.beam or 5, arguments.alpha
    found, references = translate_split(translator, corpus, arguments.score, *search)
    form, target = arguments.form or "raw", translator.config.target
    judged = metrics.judge_bleu(found, references, target, form)
    stripped = ([text.strip() for text in texts] for texts in (found, references))
    return judged | {"exact_match": comparison.judge_right(*stripped)}


def judge_vision(
    arguments: argparse.Namespace, device: torch.device
) -> dict[str, comparison.Judged]:
    """Judge each test image."""
    classifier, data = load_vision(arguments, device)
    found, labels = classifier.classify(data)
    judged = comparison.judge_right(found.tolist(), labels.tolist())
    return {"accuracy": judged}


def evaluated_corpus(
    arguments: argparse.Namespace, config: models.TranslatorConfig
) -> Corpus:
    """Load what to evaluate on: what was asked for, or what was learned from."""
    if arguments.data is None:
        trained_on = records.read(arguments.folder / records.FILE)["data"]
        arguments.data = trained_on["name"]
        arguments.form = arguments.form or trained_on["form"]
    form = arguments.form or "raw"
    return corpus_of(
        arguments.data, arguments.data_dir, config.source, config.target, form
    )


def evaluate_translator(
    arguments: argparse.Namespace, device: torch.device
) -> dict[str, float]:
    """Score a translator on the test split of its data, or of other data."""
    translator = load_translator(arguments, device)
    corpus = evaluated_corpus(arguments, translator.config)
    form, search = arguments.form or "raw", (arguments.beam or 5, arguments.alpha)
    scores, _ = score_translator(translator, corpus, arguments.score, form, *search)
    return scores


def evaluate_vision(
    arguments: argparse.Namespace, device: torch.device
) -> dict[str, float]:
    """Score a classifier of images on the test images of its data, or of other data."""
    classifier, data = load_vision(arguments, device)
    return {"accuracy": 100 * classifier.accuracy(data)}


def load_vision(
    arguments: argparse.Namespace, device: torch.device
) -> tuple[Classifier, ImageData]:
    """Load a trained classifier, and the images to evaluate it on.

    Raises:
        WorkbenchError: the folder holds another model, or one for other images.
    """
    task, images = arguments.task, None
    parts = models.load_parts(arguments.parts) if task == "vit" else None
    classifier = Classifier.load(arguments.folder, task, device, parts)
    if arguments.data is None:
        trained_on = records.read(arguments.folder / records.FILE)["data"]
        arguments.data, images = trained_on["name"], trained_on.get("images")
    preset = preset_for(presets.VISION, arguments.data)  # the same mean and spread
    data = load_images(arguments.data, arguments.data_dir, preset.held_out)
    if images:
        data = subset(data, images)
    classifier.check_fits(data)
    return classifier, data
