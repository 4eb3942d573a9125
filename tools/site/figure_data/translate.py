"""Sentences that the trained translator has translated, for readers without it."""

import functools

import torch

from tools.site import live_models
from tools.site.figure_data.heads import watched
from transformer.decoder import greedy_decode
from workbench.data.tokenizer import TOKENIZER_FILE, Tokenizer
from workbench.model import models
from workbench.use import results

SENTENCES = (
    "I know that Bobby likes sweet blackberries.",
    "Does the dog like the bear?",
    "Today Anna does not give the child a red apple.",
    "My sister and her friend are reading a book in the garden.",
)
BEST = 5  # how many candidates are shown for a token
FILES = ("runtime", "everyday")


@functools.cache
def translator():
    """Load the model that the page offers, as it has it, and its tokenizer."""
    folder = results.model_folder("everyday")
    model, _ = models.load(folder)
    return live_models.rounded(model), Tokenizer.load(folder / TOKENIZER_FILE)


@functools.cache
def data() -> dict:
    """Give recorded translations, and what can be loaded."""
    model, tokenizer = translator()
    return {
        "files": [live_models.facts(name) for name in FILES],
        "sentences": [recorded(model, tokenizer, text) for text in SENTENCES],
    }


def files() -> dict[str, bytes]:
    """Give the files that the figure loads when its reader asks."""
    return live_models.files(FILES)


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
