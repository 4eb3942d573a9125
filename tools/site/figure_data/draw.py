"""Test images that the trained Vision Transformer has read, and how images are made."""

import functools

import torch

from pages.vision_results import attention_of
from tools.site import live_models
from transformer.vision_transformer import attention_rollout
from workbench.data.images import load_images
from workbench.model import models
from workbench.training import presets
from workbench.use import results

FILES = ("runtime", "digits")
GREYS = 16  # a pixel counts the dots of ink in a field of 4 x 4


@functools.cache
def data() -> dict:
    """Give one image of each class, those read wrongly, and what can be loaded."""
    model, config = models.load(results.model_folder("digits"))
    images = load_images("digits", validation=presets.VISION["digits"].held_out)
    mean, std = images.mean[0], images.std[0]
    pixels, truth = images.test
    with torch.no_grad():
        guesses = model((pixels / 255 - mean) / std).argmax(-1)
    firsts = [int((truth == digit).nonzero()[3]) for digit in range(config.classes)]
    wrong = (guesses != truth).nonzero()[:3, 0].tolist()
    samples = [
        {"truth": int(truth[number])} | read(model, pixels[number], mean, std)
        for number in firsts + wrong
    ]
    return {
        "files": [live_models.facts(name) for name in FILES],
        "mean": mean,
        "std": std,
        "samples": samples,
    }


def files() -> dict[str, bytes]:
    """Give the files that the figure loads when its reader asks."""
    return live_models.files(FILES)


@torch.no_grad()
def read(model: torch.nn.Module, image: torch.Tensor, mean: float, std: float) -> dict:
    """Read an image (1, 8, 8) of bytes: probabilities, rollout, and what is needed.

    What is needed of a patch is how far the probability of the answer falls without it.
    """
    pixels = (image[None] / 255 - mean) / std
    weights = attention_of(model, pixels)  # (layers, 1, heads, T, T)
    tokens = model.position(model.patches(pixels))
    shares = model.head(model.encoder(tokens)).softmax(-1)[0]
    needed, answer = [], shares.argmax()
    for patch in range(tokens.shape[1]):
        rest = [each for each in range(tokens.shape[1]) if each != patch]
        without = model.head(model.encoder(tokens[:, rest])).softmax(-1)[0]
        needed.append(float(shares[answer] - without[answer]))
    return {
        "counts": (image[0].flatten().float() * GREYS / 255).round().int().tolist(),
        "probabilities": shares.tolist(),
        "rollout": attention_rollout(weights[:, 0]).mean(0).tolist(),
        "needed": needed,
    }
