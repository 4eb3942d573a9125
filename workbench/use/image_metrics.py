"""How good a classifier of images is: accuracy, and what it takes for what."""

from collections.abc import Iterable

import torch
from torch import nn

from workbench.errors import WorkbenchError


def predict(
    model: nn.Module, batches: Iterable[tuple[torch.Tensor, torch.Tensor]]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Classify every image, without dropout and without gradients.

    Args:
        model: images to logits (B, classes); its mode afterwards is that of before.
        batches: images and labels (B,), e.g. `ImageBatches.epoch(0)`.

    Returns:
        Predicted classes (N,) and labels (N,), on the device of the batches.

    Raises:
        WorkbenchError: if there are no batches.
    """
    predictions, labels = [], []
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            for images, truth in batches:
                predictions.append(model(images).argmax(dim=-1))
                labels.append(truth)
    finally:
        model.train(training)
    if not labels:
        raise WorkbenchError("there are no images to classify")
    return torch.cat(predictions), torch.cat(labels)


def accuracy(predictions: torch.Tensor, labels: torch.Tensor) -> float:
    """Return the share of right predictions, from 0 to 1.

    Args:
        predictions: classes (N,), or logits (N, classes).
        labels: classes (N,).

    Raises:
        WorkbenchError: if their numbers differ or are 0.
    """
    if predictions.ndim == 2:
        predictions = predictions.argmax(dim=-1)
    _check_pairs(predictions, labels)
    return (predictions == labels).sum().item() / len(labels)


def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> torch.Tensor:
    """Count what was taken for what.

    Args:
        predictions: classes (N,), or logits (N, classes).
        labels: classes (N,).
        classes: how many there are.

    Returns:
        (classes, classes), long: row i, column j counts images of class i that were
        taken for class j.

    Raises:
        WorkbenchError: if the numbers differ, or a class is none.
    """
    if predictions.ndim == 2:
        predictions = predictions.argmax(dim=-1)
    _check_pairs(predictions, labels)
    for name, values in (("prediction", predictions), ("label", labels)):
        if values.min() < 0 or values.max() >= classes:
            raise WorkbenchError(f"a {name} is none of the {classes} classes")
    places = labels * classes + predictions
    return torch.bincount(places, minlength=classes**2).reshape(classes, classes)


def _check_pairs(predictions: torch.Tensor, labels: torch.Tensor) -> None:
    """Refuse what does not go together: a broadcast would give a wrong number."""
    if predictions.shape != labels.shape or labels.ndim != 1 or not len(labels):
        raise WorkbenchError(
            f"{tuple(predictions.shape)} predictions do not go with "
            f"{tuple(labels.shape)} labels"
        )
