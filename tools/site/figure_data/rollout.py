"""A Vision Transformer reads digits: its attention, for the figure to multiply.

The model is kept in models/rollout/. It has chapter 8's patches of 2 x 2 pixels and a
class token, where the one of results/models/digits has four patches, too few for a map.
Its metrics.json says how it was trained: `python -m workbench train vit --patch-size 2
--pooling class --d-model 32 --heads 4 --layers 2 --d-ff 64 --epochs 40 --seed 8`.
"""

import functools
from pathlib import Path

import torch

from pages.vision_results import attention_of
from workbench.data.images import load_images
from workbench.model import models

FOLDER = Path(__file__).parent / "models" / "rollout"
RIGHT, WRONG = 5, 3
PARTS = 10_000  # a weight of 1


@functools.cache
def load() -> tuple:
    """Load the model, and the test images that are shown with their labels."""
    model, _ = models.load(FOLDER)
    digits = load_images("digits")
    images, labels = digits.test
    mean, std = digits.mean[0], digits.std[0]
    inputs = (images.float() / 255 - mean) / std
    with torch.no_grad():
        right = model(inputs).argmax(-1) == labels
    picked = different(right, labels, RIGHT) + different(~right, labels, WRONG)
    return model, images[picked], inputs[picked], labels[picked]


def different(wanted: torch.Tensor, labels: torch.Tensor, count: int) -> list[int]:
    """Find the first images that are wanted, each of another digit."""
    found: dict[int, int] = {}
    for number in wanted.nonzero()[:, 0].tolist():
        found.setdefault(int(labels[number]), number)
    return list(found.values())[:count]


@functools.cache
def data() -> dict:
    """Give each image with its answer and attention (layers, heads, T, T)."""
    model, images, inputs, labels = load()
    weights = attention_of(model, inputs)  # (layers, B, heads, T, T)
    with torch.no_grad():
        shares = model(inputs).softmax(-1)
    return {
        "parts": PARTS,
        "images": [
            {
                "pixels": images[i, 0].tolist(),
                "label": int(labels[i]),
                "answer": int(shares[i].argmax()),
                "share": float(shares[i].max()),
                "weights": (weights[:, i] * PARTS).round().int().tolist(),
            }
            for i in range(len(images))
        ],
    }
