"""Sentences that the trained translator has translated, for readers without it."""

import functools
import random
import re

import torch

from tools import live_models
from tools.figure_data.heads import translator, watched
from transformer.decoder import greedy_decode
from workbench import phrasebook
from workbench.tokenizer import Tokenizer

SENTENCES = (
    "I know that Bobby likes sweet blackberries.",
    "In summer Anna invites the old king.",
    "Today Anna does not give the child a red apple.",
    "We know that Lena and Paul do not carry the brown cups.",
)
BEST = 5  # how many candidates are shown for a token
FILES = ("runtime", "phrasebook")


@functools.cache
def data() -> dict:
    """Give recorded translations, the English words learned, and what can be loaded."""
    model, _, tokenizer = translator()
    return {
        "files": [live_models.facts(name) for name in FILES],
        "words": " ".join(english_words()),
        "sentences": [recorded(model, tokenizer, text) for text in SENTENCES],
    }


def files() -> dict[str, bytes]:
    """Give the files that the figure loads when its reader asks."""
    return live_models.files(FILES)


def english_words() -> list[str]:
    """Give the English words that the translator has learned from, in small letters."""
    pairs = phrasebook.draw(random.Random(0), "train", 8000, set())
    text = " ".join(english for english, _ in pairs).lower()
    return sorted(set(re.findall(r"\w+", text)))


@torch.no_grad()
def recorded(model: torch.nn.Module, tokenizer: Tokenizer, text: str) -> dict:
    """Translate a sentence, and keep what the figure shows of each step."""
    source = tokenizer.encode(text)
    known = torch.tensor([source])
    written = greedy_decode(
        lambda target: model(known, target), [Tokenizer.SOS], Tokenizer.EOS, 128
    )
    with watched(model) as caught:
        logits = model(known, torch.tensor([written[:-1]]))[0]  # (T, V)
    attention = torch.stack(caught["cross"])  # (layers, heads, T, S)
    best = logits.softmax(-1).topk(BEST)
    steps = []
    for place, token in enumerate(written[1:]):
        candidates = zip(best.indices[place], best.values[place], strict=True)
        steps.append(
            {
                "piece": tokenizer.inner.id_to_token(token),
                "best": [
                    [tokenizer.inner.id_to_token(int(each)), float(probability)]
                    for each, probability in candidates
                ],
                "attention": short(attention[:, :, place].tolist()),
            }
        )
    pieces = [tokenizer.inner.id_to_token(each) for each in source]
    return {"text": text, "pieces": pieces, "steps": steps}


def short(value):
    """Round the weights: four digits are all that is ever shown of them."""
    return (
        [short(each) for each in value] if isinstance(value, list) else round(value, 4)
    )
