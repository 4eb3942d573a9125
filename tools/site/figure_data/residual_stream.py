"""Stacks of the reference encoder before any training: stream and gradients.

For each depth and both places of the norm, mean over some seeds: the length of a
token's vector after each layer, and the length of the gradient of each layer's w_2.
"""

import functools

import torch
from torch.nn import functional

from transformer.encoder import Encoder

DEPTHS = range(4, 25, 4)
SEEDS = 4
WIDTH, CLASSES = 32, 10
BATCH, TOKENS = 4, 7


@functools.cache
def data() -> dict:
    """Measure all depths, post-norm and pre-norm."""
    kinds = {"post": False, "pre": True}
    with torch.random.fork_rng(devices=[]):
        stacks = {
            str(depth): {kind: mean(depth, first) for kind, first in kinds.items()}
            for depth in DEPTHS
        }
    return {"width": WIDTH, "seeds": SEEDS, "stacks": stacks}


def mean(depth: int, norm_first: bool) -> dict:
    """Average what `measure` finds over the seeds."""
    found = [measure(depth, norm_first, seed) for seed in range(SEEDS)]
    lengths, gradients = (
        torch.stack(each).mean(0).tolist() for each in zip(*found, strict=True)
    )
    return {"lengths": lengths, "gradients": gradients}


def measure(depth: int, norm_first: bool, seed: int) -> tuple[torch.Tensor, ...]:
    """Return the stream's lengths (depth + 1,) and the gradients' (depth,).

    The last norm of pre-norm comes after the stream, and is not in the lengths.
    """
    torch.manual_seed(seed)
    encoder = Encoder(depth, WIDTH, 4, 4 * WIDTH, norm_first=norm_first)
    states = [torch.randn(BATCH, TOKENS, WIDTH)]
    head = torch.randn(WIDTH, CLASSES) / WIDTH**0.5
    labels = torch.randint(CLASSES, (BATCH * TOKENS,))
    for layer in encoder.layers:
        states.append(layer(states[-1]))
    logits = (encoder.norm(states[-1]) @ head).flatten(0, 1)
    functional.cross_entropy(logits, labels).backward()
    lengths = torch.stack([state.detach().norm(dim=-1).mean() for state in states])
    matrices = [layer.feed_forward.w_2 for layer in encoder.layers]
    return lengths, torch.stack([matrix.grad.norm() for matrix in matrices])
