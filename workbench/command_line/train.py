"""``train``: what can be typed, and the run that it asks for."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from workbench.command_line.options import (
    add_beam,
    add_training,
    changed,
    not_negative,
    positive,
    shaped,
    training_config,
)
from workbench.data import corpora
from workbench.model.models import FEED_FORWARDS, NORMS, POSITIONS
from workbench.training import presets
from workbench.training.devices import choose_device
from workbench.training.language_model import (
    LanguageModelRun,
    as_long_as,
    train_language_model,
)
from workbench.training.presets import preset_for
from workbench.training.runs import train_each
from workbench.training.translator import TranslatorRun, train_translator
from workbench.training.vision import Preset, VisionRun, train_vision

TRAIN_HELP = (
    "Train, and write into the folder --out: model.safetensors, config.json, "
    "metrics.json (how it was made, and its scores) and curves.png. A run that was "
    "stopped goes on with --resume and the same options. Several GPUs: "
    "torchrun --nproc-per-node 2 -m workbench train …"
)
PAIRS = "phrasebook (the default), everyday, multi30k, text:FILE.tsv or text:FILE,FILE"
IMAGES = "digits (the default), cifar10 or images:FOLDER, a folder in it per class"
SHAPE = ("kv_heads", "norm", "feed_forward", "positions", "qk_norm", "merges")


def add_command(commands: argparse._SubParsersAction) -> None:
    """Describe ``train``."""
    text = "train a model from the course's parts"
    train = commands.add_parser("train", help=text, description=TRAIN_HELP)
    kinds = train.add_subparsers(title="what to train", required=True, metavar="TASK")
    add_translator(kinds)
    add_vision(kinds)
    add_baseline(kinds)
    add_language_model(kinds)


def of_any_kind(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read what all trainings are asked alike, as fields of a TrainingRun."""
    return {
        "data": arguments.data,
        "data_dir": arguments.data_dir,
        "out": arguments.out,
        "parts": arguments.parts,
        "resume": arguments.resume,
        "split": arguments.score,
    }


# --- The translator -------------------------------------------------------------------


def add_translator(kinds: argparse._SubParsersAction) -> None:
    """Describe ``train translator``."""
    command = kinds.add_parser(
        "translator", help="an encoder-decoder", description=TRAIN_HELP
    )
    command.set_defaults(run=run_translator)
    add_training(command, "phrasebook", PAIRS, "tokens, padding included")
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
    command.add_argument(
        "--bpe-dropout",
        type=float,
        default=0.0,
        metavar="P",
        help="cut words anew in each epoch: the probability that a pair is not joined",
    )
    command.add_argument(
        "--r-drop",
        type=float,
        default=0.0,
        metavar="ALPHA",
        help="read each batch twice, with other dropout, and let both agree (R-Drop, "
        "Liang et al. 2021); a step takes twice as long",
    )
    text = "give the logits a matrix of their own, not the embeddings'"
    command.add_argument("--untied", action="store_true", help=text)
    text = "do not multiply the embeddings by the root of d_model"
    command.add_argument("--unscaled", action="store_true", help=text)
    add_beam(command, beam="the data's preset", alpha=f"{TranslatorRun.alpha}")


def run_translator(arguments: argparse.Namespace) -> int:
    """Train a translator."""
    device = choose_device(arguments.device)
    preset = preset_for(presets.TRANSLATORS, arguments.data)
    names = {"vocab_size": "vocab_size", "tokens": "batch", "beam": "beam"}
    preset = shaped(preset, arguments, **names)
    if arguments.norm:
        preset = replace(preset, norm_first=arguments.norm == "pre")
    run = TranslatorRun(
        **of_any_kind(arguments),
        preset=preset,
        training=training_config(preset.training, arguments, device),
        source=arguments.source,
        target=arguments.target,
        form=arguments.form,
        tied=not arguments.untied,
        scaled=not arguments.unscaled,
        few_shapes=arguments.few_shapes,
        bpe_dropout=arguments.bpe_dropout,
        r_drop=arguments.r_drop,
    )
    run = changed(run, arguments, alpha="alpha")
    train_each(run, arguments.seed, device, train_translator)
    return 0


# --- Images ---------------------------------------------------------------------------


def add_vision(kinds: argparse._SubParsersAction) -> None:
    """Describe ``train vit``."""
    command = kinds.add_parser(
        "vit", help="a Vision Transformer", description=TRAIN_HELP
    )
    command.set_defaults(run=run_vision, read_preset=vision_preset)
    add_training(command, "digits", IMAGES, "images")
    add_subset(command)
    command.add_argument("--patch-size", type=positive, metavar="PIXELS")
    command.add_argument("--pooling", choices=["class", "mean"])
    command.add_argument(
        "--preset",
        choices=presets.VISION,
        metavar="NAME",
        help="what is not said by options; cifar10_hours: for hours on a CPU (default: "
        "the data's)",
    )


def add_baseline(kinds: argparse._SubParsersAction) -> None:
    """Describe ``train cnn``."""
    text = "a small convolutional network, to set a Vision Transformer beside"
    command = kinds.add_parser("cnn", help=text, description=TRAIN_HELP)
    command.set_defaults(run=run_vision, read_preset=baseline_preset)
    add_training(command, "digits", IMAGES, "images", shape=("width", "stages"))
    add_subset(command)


def add_subset(command: argparse.ArgumentParser) -> None:
    """Describe how many images to learn from."""
    command.add_argument(
        "--images",
        type=positive,
        metavar="N",
        help="learn from N of the training images, as many of every class, in as many "
        "steps as from all; the test images stay the same",
    )


def vision_preset(arguments: argparse.Namespace) -> Preset:
    """Read a Vision Transformer's shape and batches."""
    preset = preset_for(presets.VISION, arguments.preset or arguments.data)
    names = {"patch_size": "patch_size", "pooling": "pooling", "batch": "batch"}
    return shaped(preset, arguments, **names)


def baseline_preset(arguments: argparse.Namespace) -> Preset:
    """Read a convolutional network's shape and batches."""
    preset = preset_for(presets.BASELINES, arguments.data)
    own = {name: name for name in ("width", "stages", "dropout", "batch")}
    return changed(preset, arguments, **own)


def run_vision(arguments: argparse.Namespace) -> int:
    """Train a classifier of images."""
    device = choose_device(arguments.device)
    preset = arguments.read_preset(arguments)
    run = VisionRun(
        **of_any_kind(arguments),
        preset=preset,
        training=training_config(preset.training, arguments, device),
        images=arguments.images,
        same_steps=not (arguments.epochs or arguments.steps),
    )
    train_each(run, arguments.seed, device, train_vision)
    return 0


# --- The language model ---------------------------------------------------------------


def add_language_model(kinds: argparse._SubParsersAction) -> None:
    """Describe ``train lm``."""
    command = kinds.add_parser("lm", help="a language model", description=TRAIN_HELP)
    command.set_defaults(run=run_language_model)
    add_training(command, "tales", corpora.NAMES, "tokens")
    text = "tokens that the model looks back on; also the length of a block"
    command.add_argument("--context", type=positive, metavar="TOKENS", help=text)
    text = "byte pairs that chapter 1's train_bpe joins; 0: characters"
    command.add_argument("--merges", type=not_negative, metavar="N", help=text)
    text = "heads of keys and values; with --heads alone, as many as those"
    command.add_argument("--kv-heads", type=positive, metavar="N", help=text)
    text = "chapter 6's LayerNorm or RMSNorm"
    command.add_argument("--norm", choices=NORMS, help=text)
    text = "chapter 6's FeedForward with this activation, or its SwiGLU"
    command.add_argument("--feed-forward", choices=FEED_FORWARDS, help=text)
    text = "chapter 3's learned table or rotary encoding"
    command.add_argument("--positions", choices=POSITIONS, help=text)
    command.add_argument(
        "--qk-norm",
        action=argparse.BooleanOptionalAction,
        help="RMS norm of queries and keys",
    )


def language_model_preset(
    arguments: argparse.Namespace,
) -> presets.LanguageModelPreset:
    """Read a language model's shape and batches."""
    preset = preset_for(presets.LANGUAGE_MODELS, arguments.data)
    own = {name: name for name in SHAPE}
    preset = shaped(preset, arguments, context="context", tokens="batch", **own)
    if arguments.heads and not arguments.kv_heads:
        return replace(preset, kv_heads=arguments.heads)
    return preset


def run_language_model(arguments: argparse.Namespace) -> int:
    """Train a language model."""
    device = choose_device(arguments.device)
    preset = language_model_preset(arguments)
    training = training_config(preset.training, arguments, device)
    asked = arguments.steps, arguments.epochs, arguments.minutes
    run = LanguageModelRun(
        **of_any_kind(arguments), preset=preset, training=as_long_as(training, *asked)
    )
    train_each(run, arguments.seed, device, train_language_model)
    return 0
