"""Train a Vision Transformer, or the convolutional network beside it."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from workbench.data.image_batches import Growing, ImageBatches
from workbench.data.images import ImageData, load_images, subset
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.model.sizes import use_sizes
from workbench.training.devices import world
from workbench.training.loop import TrainingConfig, fit
from workbench.training.presets import BaselinePreset, VisionPreset
from workbench.training.runs import Trained, TrainingRun, finish, prepare_folder
from workbench.use import image_metrics
from workbench.use.classifier import IMAGES as TEST_IMAGES
from workbench.use.classifier import Classifier

Preset = VisionPreset | BaselinePreset

# all seeds of a command learn from the same
images_of = functools.lru_cache(maxsize=1)(load_images)


@dataclass(frozen=True, kw_only=True)
class VisionRun(TrainingRun):
    """A classifier of images that is to be trained.

    Args:
        preset: its shape, batches and augmentation; a BaselinePreset is that of a
            convolutional network.
        images: learn from so many of the training images; None: from all.
        same_steps: in as many steps as the training has with all images. A subset
            would otherwise be compared with a run that was also trained for longer.
    """

    preset: Preset
    images: int | None = None
    same_steps: bool = True


def train_vision(run: VisionRun, device: torch.device) -> None:
    """Train a classifier of images on a device, score it, and write its folder."""
    begun = time.perf_counter()
    prepare_folder(run.out, run.resume)
    data, preset, training = learned_from(run)
    parts, config = None, config_for(data, preset)
    if isinstance(config, models.VisionConfig):
        parts = models.load_parts(run.parts)
    growing = growing_of(preset, data)
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
        growing=growing,
    )
    held = ImageBatches.of(data, "validation", TEST_IMAGES, device)
    with contextlib.ExitStack() as ways:
        if parts and growing:
            ways.enter_context(use_sizes(model, parts))
        if parts:
            ways.enter_context(models.use_fast(training.attention, model, parts))
        history = fit(
            model,
            image_loss(training.smoothing),
            batches,
            lambda model: {"accuracy": accuracy_of(model, held)},
            training,
            run.out,
            device,
            resume=run.resume,
        )
    if world()[0] > 0:
        return
    models.save(run.out, model, config)  # whatever becomes of the scores
    accuracy = 100 * Classifier(model, config, device).accuracy(data, run.split)
    about: dict[str, Any] = {"name": data.name, "copy": data.copy, "test": run.split}
    about["images"] = len(data.train[1])
    finish(
        models.kind_of(config),
        run.out,
        Trained(model, config, training, history, device, begun),
        about,
        {"accuracy": accuracy},
        batch=preset.batch,
        augmentation=asdict(preset.augmentation),
        **({"growing": growing} if growing else {}),
        classes=list(data.classes),
    )


def growing_of(preset: Preset, data: ImageData) -> Growing:
    """Return the sides of the images in the first epochs.

    Raises:
        WorkbenchError: the images have no such smaller size that can be cut.
    """
    if isinstance(preset, BaselinePreset):
        return ()
    _, height, width = data.shape
    for side, _ in preset.growing:
        if height != width or side > height or side % preset.patch_size:
            raise WorkbenchError(
                f"images of {height} x {width} pixels cannot begin with {side} pixels "
                f"a side in patches of {preset.patch_size}: choose another --preset"
            )
    return preset.growing


def learned_from(run: VisionRun) -> tuple[ImageData, Preset, TrainingConfig]:
    """Load the images of a run; fit batches and steps to how many they are."""
    preset, training = run.preset, run.training
    data = images_of(run.data, run.data_dir, preset.held_out)
    if not run.images:
        return data, preset, training
    if run.same_steps:
        steps = training.epochs * max(1, len(data.train[1]) // preset.batch)
        training = replace(training, steps=steps)
    preset = replace(preset, batch=min(preset.batch, run.images))
    return subset(data, run.images), preset, training


def config_for(
    data: ImageData, preset: Preset
) -> models.VisionConfig | models.BaselineConfig:
    """Shape the model of a preset for images."""
    if isinstance(preset, VisionPreset):
        return vision_config(data, preset)
    return baseline_config(data, preset)


def vision_config(data: ImageData, preset: VisionPreset) -> models.VisionConfig:
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


def baseline_config(data: ImageData, preset: BaselinePreset) -> models.BaselineConfig:
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
