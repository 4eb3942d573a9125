"""Tokens on their way through the trained encoder: what each part adds to them."""

import torch

from tools.site.figure_data.heads import ONE, translator

SENTENCES = (
    "Anna helps the clever queen.",
    "Today Mia invites the king.",
    "Bobby likes blackberries.",
)


def data() -> dict:
    """Give, for each sentence, its tokens and what `follow` measures of them."""
    return {"one": ONE, "sentences": [follow(sentence) for sentence in SENTENCES]}


def follow(sentence: str) -> dict:
    """Run the encoder over a sentence, part by part.

    Returns:
        "tokens": T names. "weights": for each layer (T, T), the mean over its heads,
        times ONE. "lengths": the lengths of the tokens' vectors at the start and after
        each part, attention and feed-forward network in turn, (2 · layers + 1, T).
        "added": the lengths of what each part adds, (2 · layers, T).
    """
    model, _, tokenizer = translator()
    ids = tokenizer.encode(sentence)
    states, added, weights = [], [], []

    def heard(_module, _given, output) -> None:
        added.append(output[0][0])
        weights.append(output[1][0].mean(0))

    first = model.encoder.layers[0]
    hooks = [
        first.register_forward_pre_hook(lambda _, given: states.append(given[0][0]))
    ]
    for layer in model.encoder.layers:
        hooks.append(layer.attention.register_forward_hook(heard))
        hooks.append(
            layer.feed_forward.register_forward_hook(
                lambda *call: added.append(call[2][0])
            )
        )
    with torch.no_grad():
        model.encode(torch.tensor([ids]))
    for hook in hooks:
        hook.remove()
    for part in added:  # pre-norm: the stream is only ever added to
        states.append(states[-1] + part)
    return {
        "tokens": [tokenizer.decode([i]).strip() for i in ids],
        "weights": (torch.stack(weights) * ONE).round().int().tolist(),
        "lengths": torch.stack(states).norm(dim=-1).tolist(),
        "added": torch.stack(added).norm(dim=-1).tolist(),
    }
