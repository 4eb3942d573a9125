"""Where the heads of the trained translator look, in sentences that it translates."""

import contextlib
from functools import cache

import torch

from workbench.data.tokenizer import TOKENIZER_FILE, Tokenizer
from workbench.model import models
from workbench.use import results
from workbench.use.translator import Translator

SENTENCES = (
    "Bobby likes blackberries.",
    "Anna helps the clever queen.",
    "Today Mia invites the king.",
    "I know that Anna sees the old king.",
    "Paul and Lena do not help my clever pig.",
)
ONE = 10_000  # weights are whole ten-thousandths: half as long as decimal fractions


def data() -> dict:
    """Give all weights of all heads: kind -> layer -> head -> row -> weight · ONE."""
    found = []
    for english, german in zip(SENTENCES, translations(SENTENCES), strict=True):
        source, written, weights, _ = look(english, german)
        found.append(
            {
                "english": english,
                "german": german,
                "source": source,
                "read": ["<sos>", *written[:-1]],
                "written": written,
                "weights": {
                    kind: (torch.stack(of_layers) * ONE).round().int().tolist()
                    for kind, of_layers in weights.items()
                },
            }
        )
    return {"one": ONE, "sentences": found}


@cache
def translator():
    """Load the trained model, its configuration and its tokenizer, for all figures."""
    folder = results.model_folder("phrasebook")
    model, config = models.load(folder)
    return model, config, Tokenizer.load(folder / TOKENIZER_FILE)


def translations(sentences) -> list[str]:
    """Translate, greedily."""
    model, config, tokenizer = translator()
    cpu, parts = torch.device("cpu"), models.load_parts()
    found = Translator(model, config, tokenizer, parts, cpu)
    return found.translate(list(sentences))


@contextlib.contextmanager
def watched(model):
    """Keep all weights of a pass: kind -> for each layer (heads, rows, columns)."""
    caught = {"encoder": [], "decoder": [], "cross": []}
    attentions = [("encoder", layer.attention) for layer in model.encoder.layers]
    for layer in model.decoder.layers:
        attentions.append(("decoder", layer.self_attention))
        attentions.append(("cross", layer.cross_attention))
    hooks = [
        attention.register_forward_hook(
            lambda _module, _given, output, kind=kind: caught[kind].append(output[1][0])
        )
        for kind, attention in attentions
    ]
    try:
        yield caught
    finally:
        for hook in hooks:
            hook.remove()


def look(english: str, german: str) -> tuple[list[str], list[str], dict, torch.Tensor]:
    """Run the model over a sentence and its translation.

    Returns:
        Source tokens; written tokens, the end included; kind -> for each layer the
        weights (heads, rows, columns); the probability of each written token.
    """
    model, _, tokenizer = translator()
    source, target = tokenizer.encode(english), tokenizer.encode(german)
    with torch.no_grad(), watched(model) as caught:
        given = torch.tensor([source]), torch.tensor([[Tokenizer.SOS, *target]])
        probabilities = model(*given)[0].softmax(-1)
    written = [*target, Tokenizer.EOS]
    sure = probabilities[range(len(written)), written]
    names = [[tokenizer.decode([i]).strip() for i in ids] for ids in (source, target)]
    return names[0], [*names[1], "<eos>"], caught, sure
