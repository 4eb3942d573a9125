"""How well a language model knows a text, and which agreements it keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F

from workbench.data import repeats
from workbench.data.tales.stories import Prompt
from workbench.data.text_tokenizer import TextTokenizer
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.model.language_model import LanguageModel
from workbench.use.looking import attention_weights

ROWS = 32  # blocks, or prompts, at once


@torch.no_grad()
def code_length(model: LanguageModel, ids: Sequence[int], length: int) -> float:
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
    model: LanguageModel, tokenizer: TextTokenizer, prompts: dict[str, list[Prompt]]
) -> dict[str, float]:
    """Return for each kind how many agreements are kept, in percent.

    One is kept if the model, writing the most probable token each time, goes on with
    exactly what is right.
    """
    asked = [prompt for each in prompts.values() for prompt in each]
    kept: dict[str, list[bool]] = {kind: [] for kind in prompts}
    for prompt, is_kept in zip(asked, keeps(model, tokenizer, asked), strict=True):
        kept[prompt.kind].append(is_kept)
    return {
        f"agreement_{kind}": 100 * sum(found) / len(found)
        for kind, found in kept.items()
    }


@torch.no_grad()
def keeps(
    model: LanguageModel, tokenizer: TextTokenizer, prompts: Sequence[Prompt]
) -> list[bool]:
    """Say of each prompt whether the model goes on with what is right.

    Raises:
        WorkbenchError: a prompt and its answer are longer than the model's context.
    """
    begun = [tokenizer.encode(each.text) for each in prompts]
    wanted = [tokenizer.encode(each.right) for each in prompts]
    rows = [first + then for first, then in zip(begun, wanted, strict=True)]
    longest = max(map(len, rows), default=0)
    if longest > model.max_length:
        raise WorkbenchError(
            f"a story has {longest} tokens before its last agreement, and this model "
            f"reads {model.max_length}: train with a larger --context"
        )
    texts, place = without_beginnings(rows)
    best: list[list[int]] = []
    for first in range(0, len(texts), ROWS):
        some = texts[first : first + ROWS]
        width = max(map(len, some))
        padded = [row + [0] * (width - len(row)) for row in some]  # nobody sees it
        ids = torch.tensor(padded, device=model.embedding.weight.device)
        best += model(ids).argmax(dim=-1).tolist()
    kept = []
    for number, right in enumerate(wanted):
        start = len(begun[number]) - 1
        kept.append(best[place[number]][start : start + len(right)] == right)
    return kept


def without_beginnings(rows: list[list[int]]) -> tuple[list[list[int]], list[int]]:
    """Leave out each row that begins another one: a causal model reads both at once.

    Returns:
        The other rows, and for each of all rows which of them it begins.
    """
    texts: list[list[int]] = []
    place = [0] * len(rows)
    for number in sorted(range(len(rows)), key=rows.__getitem__, reverse=True):
        row = rows[number]
        if not texts or texts[-1][: len(row)] != row:  # sorted: it follows its own end
            texts.append(row)
        place[number] = len(texts) - 1
    return texts, place


@torch.no_grad()
def copying_scores(
    model: LanguageModel, tokenizer: TextTokenizer, parts: models.Parts
) -> dict[str, float]:
    """Say how well a model copies, and by how much of an induction head.

    Returns:
        ``copied``, of the characters that could be copied those that the model takes
        for the most probable, in percent; ``induction``, the largest score that
        exercise 11's induction_scores gives one of its heads, from 0 to 1.
    """
    ids = torch.tensor([tokenizer.encode(line) for line in repeats.asked()])  # (B, T)
    ids = ids.to(model.embedding.weight.device)
    best = model(ids)[:, repeats.HALF : -1].argmax(dim=-1)
    copied = (best == ids[:, repeats.HALF + 1 :]).float().mean()
    found = [parts.induction_scores(attention_weights(model, row), row) for row in ids]
    scores = torch.stack(found).mean(dim=0)  # (layers, heads)
    return {"copied": 100 * copied.item(), "induction": scores.max().item()}
