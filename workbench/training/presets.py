"""What is trained, and how, unless an option says otherwise: one preset a data set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from workbench.data.augmentation import Augmentation
from workbench.data.image_batches import Growing
from workbench.errors import WorkbenchError
from workbench.training.loop import TrainingConfig


@dataclass(frozen=True)
class TranslatorPreset:
    """The shape of a translator, its vocabulary, and its training."""

    vocab_size: int
    layers: int
    training: TrainingConfig
    d_model: int = 128
    heads: int = 4
    d_ff: int = 256
    dropout: float = 0.3
    norm_first: bool = True
    tokens: int = 4096  # in a batch, of the longer side, padding included
    beam: int = 5


@dataclass(frozen=True)
class VisionPreset:
    """The shape of a Vision Transformer, its images' changes, and its training."""

    patch_size: int
    d_model: int
    heads: int
    layers: int
    d_ff: int
    batch: int  # images
    augmentation: Augmentation
    training: TrainingConfig
    dropout: float = 0.0
    pooling: str = "class"
    growing: Growing = ()
    held_out: float = 0.1  # share of the training images for the validation curve


@dataclass(frozen=True)
class BaselinePreset:
    """The shape of a convolutional network; the rest is the Vision Transformer's."""

    width: int
    stages: int
    batch: int  # images
    augmentation: Augmentation
    training: TrainingConfig
    dropout: float = 0.0
    held_out: float = 0.1


@dataclass(frozen=True)
class LanguageModelPreset:
    """The shape of a language model, what it reads, and its training."""

    context: int  # tokens
    tokens: int  # in a batch
    training: TrainingConfig
    merges: int = 0  # byte pairs; 0: characters
    d_model: int = 128
    heads: int = 4
    kv_heads: int = 2
    layers: int = 4
    d_ff: int = 352
    dropout: float = 0.0
    norm: str = "rms"
    feed_forward: str = "swiglu"
    positions: str = "rotary"
    qk_norm: bool = True


TRANSLATORS = {
    # at most three minutes on two CPU cores. Each sentence has one translation, so
    # that neither dropout nor smoothing is of use.
    "phrasebook": TranslatorPreset(
        vocab_size=2000,
        layers=2,
        dropout=0.0,
        tokens=1024,
        beam=1,
        training=TrainingConfig(
            steps=1000,
            peak_rate=2.5e-3,
            warmup=200,
            schedule="one-cycle",
            average="ema",
            ema_decay=0.99,
        ),
    ),
    # four times the words, and many more forms; a step takes little longer
    "everyday": TranslatorPreset(
        vocab_size=4000,
        layers=2,
        dropout=0.0,
        tokens=1024,
        beam=1,
        training=TrainingConfig(
            steps=14_000,
            peak_rate=4e-3,
            warmup=100,
            schedule="one-cycle",
            optimizer="muon",
            average="ema",
            ema_decay=0.99,
            attention="fused",
        ),
    ),
    # the size of Wu et al. 2021, Transformer-Tiny: 10 000 merges, 4 + 4 layers
    "multi30k": TranslatorPreset(
        vocab_size=10_000,
        layers=4,
        training=TrainingConfig(
            epochs=60,
            peak_rate=5e-3,
            warmup=1000,
            schedule="inverse-sqrt",
            smoothing=0.1,
            average="last-k",
            last=10,
        ),
    ),
    "text": TranslatorPreset(
        vocab_size=8000,
        layers=4,
        training=TrainingConfig(
            epochs=30, peak_rate=2e-3, warmup=500, smoothing=0.1, average="ema"
        ),
    ),
}

VISION = {
    # at most two minutes on two CPU cores
    "digits": VisionPreset(
        patch_size=4,
        d_model=64,
        heads=4,
        layers=3,
        d_ff=256,
        batch=64,
        pooling="mean",
        augmentation=Augmentation(rotate=12, scale=0.1, shear=0.1, shift=0.8),
        training=TrainingConfig(
            epochs=60,
            peak_rate=3e-3,
            warmup=120,
            betas=(0.9, 0.98),
            eps=1e-8,
            weight_decay=0.05,
            smoothing=0.1,
            average="ema",
            ema_decay=0.99,
            validate_every=10,
        ),
    ),
    # the size of Lee et al. 2021: 2.7 million parameters
    "cifar10": VisionPreset(
        patch_size=4,
        d_model=192,
        heads=12,
        layers=9,
        d_ff=384,
        batch=512,
        held_out=0.02,
        augmentation=Augmentation(
            pad=4,
            flip=0.5,
            operations=2,
            magnitude=0.5,
            erase=0.25,
            mixup=0.8,
            cutmix=1.0,
            mix=0.5,
        ),
        training=TrainingConfig(
            epochs=200,
            peak_rate=1e-3,
            warmup=1000,
            betas=(0.9, 0.99),
            eps=1e-8,
            weight_decay=0.05,
            smoothing=0.1,
            average="ema",
            ema_decay=0.999,
            validate_every=5,
        ),
    ),
    # as much as two CPU cores learn in hours: few wide layers, small images at first
    "cifar10_hours": VisionPreset(
        patch_size=4,
        d_model=192,
        heads=3,
        layers=6,
        d_ff=768,
        batch=128,
        pooling="mean",
        held_out=0.02,
        growing=((16, 18), (24, 6)),
        augmentation=Augmentation(pad=4, flip=0.5, operations=1, magnitude=0.3),
        training=TrainingConfig(
            epochs=29,
            peak_rate=3e-3,
            warmup=400,
            betas=(0.9, 0.95),
            eps=1e-8,
            weight_decay=0.1,
            smoothing=0.1,
            schedule="one-cycle",
            optimizer="muon",
            average="ema",
            ema_decay=0.998,
            attention="fused",
            validate_every=5,
        ),
    ),
    "images": VisionPreset(
        patch_size=8,
        d_model=128,
        heads=4,
        layers=6,
        d_ff=256,
        batch=64,
        dropout=0.1,
        augmentation=Augmentation(pad=4, flip=0.5, operations=1),
        training=TrainingConfig(
            epochs=50,
            warmup=200,
            betas=(0.9, 0.99),
            eps=1e-8,
            weight_decay=0.05,
            smoothing=0.1,
            average="ema",
            ema_decay=0.99,
        ),
    ),
}


def beside(data: str, width: int, stages: int) -> BaselinePreset:
    """Return a convolutional network's preset: images and training as for the ViT."""
    vision = VISION[data]
    return BaselinePreset(
        width=width,
        stages=stages,
        batch=vision.batch,
        augmentation=vision.augmentation,
        training=vision.training,
        dropout=vision.dropout,
        held_out=vision.held_out,
    )


# each with at most as many parameters as the data set's Vision Transformer
BASELINES = {
    "digits": beside("digits", width=32, stages=2),
    "cifar10": beside("cifar10", width=64, stages=3),
    "images": beside("images", width=48, stages=3),
}

# what the trainings of language models have in common
READING = TrainingConfig(
    warmup=100, schedule="one-cycle", betas=(0.9, 0.95), attention="fused"
)

LANGUAGE_MODELS = {
    # about three minutes on two CPU cores
    "tales": LanguageModelPreset(
        merges=1000,  # each word is a token then
        context=160,
        tokens=1536,  # small batches: what counts is the number of steps
        kv_heads=4,  # with 2 and with norms of queries and keys pronouns agree later
        qk_norm=False,
        training=replace(
            READING,
            steps=1500,
            peak_rate=4e-3,
            warmup=50,
            optimizer="muon",
            validate_every=0.25,
        ),
    ),
    # about a minute on one CPU core. As small as shows what a second layer is for
    "repeats": LanguageModelPreset(
        context=64,
        tokens=4096,
        d_model=48,
        kv_heads=4,
        layers=2,
        d_ff=64,
        qk_norm=False,
        training=replace(READING, steps=1500, peak_rate=4e-3, optimizer="muon"),
    ),
    # about ten minutes on two CPU cores, or one that multiplies in bfloat16. The text
    # is read nine times: so much decay keeps it from being learned by heart
    "shakespeare": LanguageModelPreset(
        context=256,
        tokens=4096,
        training=replace(
            READING, steps=2100, peak_rate=4e-3, weight_decay=3.0, optimizer="muon"
        ),
    ),
    "text": LanguageModelPreset(
        context=128,
        tokens=4096,
        dropout=0.1,
        training=replace(READING, epochs=10, peak_rate=3e-3, weight_decay=0.05),
    ),
}


def preset_for(table: dict[str, Any], data: str) -> Any:
    """Return the preset of a data set, by the part of its name before a colon.

    Raises:
        WorkbenchError: there is no such data set.
    """
    kind = data.partition(":")[0]
    if kind not in table:
        names = ", ".join(table)
        raise WorkbenchError(f"unknown data {data!r}: use one of {names}, see --help")
    return table[kind]
