"""Train a language model, and score it."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from workbench.data.block_batches import BlockBatches
from workbench.data.corpora import Texts, load_texts
from workbench.data.tales.stories import prompts, stories
from workbench.data.text_tokenizer import TextTokenizer
from workbench.model import models
from workbench.model.language_model import LanguageModel
from workbench.training.devices import world
from workbench.training.loop import TrainingConfig, fit
from workbench.training.presets import LanguageModelPreset
from workbench.training.runs import Trained, TrainingRun, finish, prepare_folder
from workbench.training.steps import Loss
from workbench.use import scoring

MOST_STEPS = 10_000_000  # as many as fit into --minutes


# all seeds of a command learn from the same
texts_of = functools.lru_cache(maxsize=1)(load_texts)


@dataclass(frozen=True)
class Material:
    """A text, its tokens, and what a model of it is made of."""

    texts: Texts
    tokenizer: TextTokenizer
    parts: models.Parts
    device: torch.device


@dataclass(frozen=True, kw_only=True)
class LanguageModelRun(TrainingRun):
    """A language model that is to be trained: its shape and batches are the preset."""

    preset: LanguageModelPreset


def train_language_model(run: LanguageModelRun, device: torch.device) -> None:
    """Train a language model on a device, score it, and write its folder."""
    begun, preset, training = time.perf_counter(), run.preset, run.training
    prepare_folder(run.out, run.resume)
    material = material_of(run, device)
    config = config_of(preset, material.tokenizer)
    torch.manual_seed(training.seed)
    model = models.build(config, material.parts)
    model.fused = training.attention == "fused"
    batches = batches_of(material, preset, training.seed)
    history = fit(
        model,
        next_token_loss(training.smoothing),
        batches,
        validation_of(material),
        training,
        run.out,
        device,
        resume=run.resume,
    )
    if world()[0] > 0:
        return
    models.save(run.out, model, config)  # whatever becomes of the scores
    about: dict[str, Any] = {"name": run.data, "test": run.split}
    about["characters"] = len(material.texts.train)
    finish(
        "lm",
        run.out,
        Trained(model, config, training, history, device, begun),
        about,
        score(model, material, run.split),
        batch=preset.tokens,
        merges=len(material.tokenizer.merges),
    )


def as_long_as(
    training: TrainingConfig,
    steps: int | None,
    epochs: int | None,
    minutes: float | None,
) -> TrainingConfig:
    """Let what was asked for decide the length: minutes alone, or epochs, or steps."""
    if minutes and not (steps or epochs):
        return replace(training, steps=MOST_STEPS)
    if epochs and not steps:
        return replace(training, steps=None)
    return training


def config_of(
    preset: LanguageModelPreset, tokenizer: TextTokenizer
) -> models.LanguageModelConfig:
    """Shape a model for a tokenizer."""
    return models.LanguageModelConfig(
        vocab_size=len(tokenizer),
        d_model=preset.d_model,
        heads=preset.heads,
        kv_heads=preset.kv_heads,
        layers=preset.layers,
        d_ff=preset.d_ff,
        max_length=preset.context,
        dropout=preset.dropout,
        norm=preset.norm,
        feed_forward=preset.feed_forward,
        positions=preset.positions,
        qk_norm=preset.qk_norm,
        tokenizer=tokenizer.name,
    )


# --- What is learned from -------------------------------------------------------------


def material_of(run: LanguageModelRun, device: torch.device) -> Material:
    """Load the text, and train its tokenizer; to resume, take the one that is there."""
    texts = texts_of(run.data, run.data_dir)
    parts = models.load_parts(run.parts)
    if run.resume:
        tokenizer = TextTokenizer.load(run.out, parts)
    else:
        merges = run.preset.merges
        tokenizer = TextTokenizer.train(texts.train, texts.alphabet, merges, parts)
        if world()[0] == 0:
            tokenizer.save(run.out)
    return Material(texts, tokenizer, parts, device)


def batches_of(
    material: Material, preset: LanguageModelPreset, seed: int
) -> BlockBatches:
    """Put the text to learn from on the device."""
    tokenizer, texts = material.tokenizer, material.texts
    return BlockBatches(
        tokenizer.encode(texts.train),
        preset.context,
        max(1, preset.tokens // preset.context),
        material.device,
        seed,
        tokenizer.numbers["\n"] if texts.stories else None,
    )


def next_token_loss(smoothing: float = 0.0) -> Loss:
    """Return the mean cross-entropy of the tokens that follow, in nats."""

    def loss_of(model: nn.Module, batch: tuple) -> torch.Tensor:
        ids, labels = batch
        logits = model(ids).flatten(0, 1)  # (B·T, V)
        return F.cross_entropy(logits, labels.flatten(), label_smoothing=smoothing)

    return loss_of


def validation_of(
    material: Material,
) -> Callable[[LanguageModel], dict[str, float]]:
    """Return what scores a model while it is trained.

    Its loss is in nats a token. Of stories the agreements that it keeps are counted,
    too: they say what is learned when, which the loss does not.
    """
    tokenizer, texts = material.tokenizer, material.texts
    held = tokenizer.encode(texts.validation)
    asked = prompts(stories("validation")) if texts.stories else None

    def validate(model: LanguageModel) -> dict[str, float]:
        nats = scoring.code_length(model, held, model.max_length)
        scores = {"loss": nats / max(1, len(held))}
        if asked:
            scores |= scoring.agreement_scores(model, tokenizer, asked)
        return scores

    return validate


def score(model: LanguageModel, material: Material, split: str) -> dict[str, Any]:
    """Score a split: nats a character, bits a byte, and what else the text asks for."""
    text = getattr(material.texts, split)
    ids = material.tokenizer.encode(text)
    nats = scoring.code_length(model, ids, model.max_length)
    scores = scoring.text_scores(nats, text)
    if material.texts.name == "repeats":
        scores |= scoring.copying_scores(model, material.tokenizer, material.parts)
    if material.texts.stories:
        asked = prompts(stories(split))
        scores |= scoring.agreement_scores(model, material.tokenizer, asked)
    return scores
