"""A trained classifier of images with what belongs to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from workbench.data.image_batches import ImageBatches
from workbench.data.images import ImageData
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.use import image_metrics

IMAGES = 500  # classified at once


@dataclass(frozen=True)
class Classifier:
    """A Vision Transformer or a convolutional network on its device.

    Args:
        model: what classifies.
        config: what it was built from.
        device: where the model is.
    """

    model: Any
    config: models.VisionConfig | models.BaselineConfig
    device: torch.device

    @classmethod
    def load(
        cls,
        folder: Path,
        kind: str,
        device: torch.device,
        parts: models.Parts | None = None,
    ) -> Classifier:
        """Load a trained classifier from its folder.

        Args:
            folder: that training wrote.
            kind: "vit" or "cnn".
            device: where it is to classify.
            parts: what a Vision Transformer is made of; None: the reference.

        Raises:
            WorkbenchError: the folder holds another model.
        """
        found = models.kind_of(models.load_config(folder))
        if found != kind:
            raise WorkbenchError(f"{folder} holds a {found}, no {kind}")
        model, config = models.load(folder, parts)
        assert isinstance(config, (models.VisionConfig, models.BaselineConfig))
        return cls(model.to(device), config, device)

    def check_fits(self, data: ImageData) -> None:
        """Expect images of the size, and with as many classes, that it was made for.

        Raises:
            WorkbenchError: they are others.
        """
        sides = (self.config.channels, *self.config.sides)
        if data.shape != sides or len(data.classes) != self.config.classes:
            raise WorkbenchError(
                f"the model is for {self.config.classes} classes of images {sides}, "
                f"but {data.name} has {len(data.classes)} of {data.shape}"
            )

    def classify(
        self, data: ImageData, split: str = "test"
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Classify the images of a split; return classes (N,) and labels (N,)."""
        batches = ImageBatches.of(data, split, IMAGES, self.device)
        return image_metrics.predict(self.model, batches.epoch(0))

    def accuracy(self, data: ImageData, split: str = "test") -> float:
        """Return the share of images of a split that are classified rightly, 0 to 1."""
        return image_metrics.accuracy(*self.classify(data, split))
