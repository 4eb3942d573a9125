"""How well a language model knows a text, and which agreements it keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from workbench.errors import WorkbenchError
from workbench.language_model.tales.stories import Prompt
from workbench.language_model.tokenizer import TextTokenizer

ROWS = 32  # blocks, or prompts, at once


@torch.no_grad()
def code_length(model: nn.Module, ids: Sequence[int], length: int) -> float:
    """Return how many nats the model needs to tell a text.

    The text is read in blocks that overlap by half, so that each token, but those of
    the first block, is told from at least half a block before it. The first token of
    all is told without the model, as one of the vocabulary.

    Args:
        model: in evaluation mode.
        ids: of the text, at least one.
        length: T, tokens in a block.
    """
    device = model.embedding.weight.device
    text = torch.tensor(ids, device=device)
    total = math.log(len(model.embedding.weight))
    labels = len(text) - 1
    if labels < 1:
        return total
    length = min(length, labels)
    half = max(1, length // 2)
    starts = [*range(0, labels - length, half), labels - length]
    # of each block the labels that no block before it has scored
    scored = [0, *(begin + length for begin in starts[:-1])]
    places = torch.arange(length + 1, device=device)
    for first in range(0, len(starts), ROWS):
        begin = torch.tensor(starts[first : first + ROWS], device=device)
        done = torch.tensor(scored[first : first + ROWS], device=device)
        block = text[begin.unsqueeze(1) + places]  # (B, T + 1)
        losses = F.cross_entropy(
            model(block[:, :-1]).float().mT, block[:, 1:], reduction="none"
        )
        new = begin.unsqueeze(1) + places[:-1] >= done.unsqueeze(1)  # (B, T)
        total += float(losses[new].double().sum())
    return total


def text_scores(nats: float, text: str) -> dict[str, float]:
    """Say in nats a character, and in bits a byte of UTF-8, what a text took."""
    return {
        "nats_per_character": nats / len(text),
        "bits_per_byte": nats / math.log(2) / len(text.encode()),
    }


@torch.no_grad()
def agreement_scores(
    model: nn.Module, tokenizer: TextTokenizer, prompts: dict[str, list[Prompt]]
) -> dict[str, float]:
    """Return for each kind how many agreements are kept, in percent.

    One is kept if the model, writing the most probable token each time, goes on with
    exactly what is right.
    """
    scores = {}
    for kind, asked in prompts.items():
        kept = keeps(model, tokenizer, asked)
        scores[f"agreement_{kind}"] = 100 * sum(kept) / len(kept)
    return scores


@torch.no_grad()
def keeps(
    model: nn.Module, tokenizer: TextTokenizer, prompts: Sequence[Prompt]
) -> list[bool]:
    """Say of each prompt whether the model goes on with what is right.

    Raises:
        WorkbenchError: a prompt and its answer are longer than the model's context.
    """
    begun = [tokenizer.encode(each.text) for each in prompts]
    wanted = [tokenizer.encode(each.right) for each in prompts]
    device, kept = model.embedding.weight.device, [False] * len(prompts)
    order = sorted(range(len(prompts)), key=lambda n: len(begun[n]) + len(wanted[n]))
    longest = len(begun[order[-1]]) + len(wanted[order[-1]])
    if longest > model.max_length:
        raise WorkbenchError(
            f"a story has {longest} tokens before its last agreement, and this model "
            f"reads {model.max_length}: train with a larger --context"
        )
    for first in range(0, len(order), ROWS):
        chosen = order[first : first + ROWS]
        rows = [begun[n] + wanted[n] for n in chosen]
        width = max(map(len, rows))
        padded = [
            row + [0] * (width - len(row)) for row in rows
        ]  # causal: it is unseen
        best = model(torch.tensor(padded, device=device)).argmax(dim=-1).tolist()
        for n, row in zip(chosen, best, strict=True):
            start = len(begun[n]) - 1
            kept[n] = row[start : start + len(wanted[n])] == wanted[n]
    return kept
