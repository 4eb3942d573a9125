"""The language model reads a story: what it would say after each block."""

import functools

import torch

from workbench.data.tales.stories import stories
from workbench.use import looking

BEST = 3  # tokens, and places, that are shown of each row
SHORT = 620  # characters: the story of the page


@functools.cache
def load() -> tuple:
    """Load the model of the tales with its tokenizer, and cut a story of the test.

    The last that is given is the place after which a thing is named that somebody has.
    """
    model, tokenizer = looking.load("tales")
    story = next(each for each in stories("test") if len(each.text) < SHORT)
    asked = next(each.start for each in story.agreements if each.kind == "having")
    begun = tokenizer.encode(story.text[:asked])
    ids = torch.tensor(tokenizer.encode(story.text.strip()))
    return model, tokenizer, ids, len(begun) - 1


@functools.cache
def data() -> dict:
    """Give the tokens; of each layer and place what is said, and where is looked."""
    model, tokenizer, ids, start = load()
    said = probabilities(model, ids)  # (layers + 1, T, V)
    chosen = said.topk(BEST)
    # the head that looks hardest at a place speaks for its block
    weights = looking.attention_weights(model, ids).amax(dim=1)  # (layers, T, T)
    looks = weights.topk(BEST)
    follows = said[:, torch.arange(len(ids) - 1), ids[1:]]
    words = sorted({*ids.tolist(), *chosen.indices.flatten().tolist()})
    place = {number: index for index, number in enumerate(words)}
    return {
        "words": [tokenizer.decode([number]) for number in words],
        "start": start,
        "tokens": [place[number] for number in ids.tolist()],
        "said": [
            [[[place[n], p] for n, p in zip(*row, strict=True)] for row in rows]
            for rows in pairs(chosen.indices, chosen.values)
        ],
        "follows": follows.tolist(),
        "looks": [
            [[[n, p] for n, p in zip(*row, strict=True)] for row in rows]
            for rows in pairs(looks.indices, looks.values)
        ],
    }


@torch.no_grad()
def probabilities(model: torch.nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """Read the stream after the embedding and after each block as if it were the last.

    Returns:
        (layers + 1, T, V).
    """
    stream = looking.residual_stream(model, ids)
    return model.tied_logits(model.norm(stream), model.embedding.weight).softmax(-1)


def pairs(indices: torch.Tensor, values: torch.Tensor) -> list:
    """Put the indices and the values of each row side by side."""
    both = zip(indices.tolist(), values.tolist(), strict=True)
    return [list(zip(*rows, strict=True)) for rows in both]
