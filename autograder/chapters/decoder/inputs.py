"""What the checks of this chapter draw."""

import torch

from autograder.chapters.encoder.oracles import draw_masks


def draw_sizes(generator: torch.Generator) -> tuple[int, ...]:
    """Draw the batch, both lengths, heads, d, d_ff and layers, all different."""
    b, t, s = (torch.randperm(4, generator=generator)[:3] + 4).tolist()
    heads = 2 + int(torch.randint(2, (), generator=generator))
    return b, t, s, heads, 6 * heads, 6 * heads + 5, 5 - heads


def draw_ids(generator, b: int, t: int, vocabulary: int, pad: int) -> torch.Tensor:
    """Draw sentences, padded on the right; one has no padding, one a gap."""
    ids = torch.randint(vocabulary - 1, (b, t), generator=generator)
    ids = ids + (ids >= pad)
    lengths = torch.randint(2, t, (b,), generator=generator)
    lengths[0] = t
    ids[torch.arange(t) >= lengths.unsqueeze(1)] = pad
    ids[0, 1] = pad
    return ids


def draw_kinds(generator: torch.Generator, b: int, t: int, s: int) -> list[tuple]:
    """Draw pairs of masks: mask and memory_mask, each of which may be None."""
    causal, _, pairs = draw_masks(generator, b, t)
    _, memory_mask, _ = draw_masks(generator, b, s)
    return [(None, None), (causal, None), (None, memory_mask), (pairs, memory_mask)]
