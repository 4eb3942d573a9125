"""The trained translator writes: the beam as a tree, the cache row by row.

The search is workbench's own, step by step; beside what it keeps stand the best of what
it drops.
"""

import functools

import torch

from tools.site.figure_data.heads import translator
from workbench.model import models
from workbench.use.decoding import Remembering, Search

RIGHT = {  # sentences, each with a right translation
    "The bear and the fox like honey.": "Der Bär und der Fuchs mögen Honig.",
    "Bobby likes blackberries.": "Bobby mag Brombeeren.",
    "Does Paul help mice?": "Hilft Paul Mäusen?",
    "The girl greets the uncle and the aunt.": (
        "Das Mädchen grüßt den Onkel und die Tante."
    ),
    "The teacher who hears the uncle is tired.": (
        "Der Lehrer, der den Onkel hört, ist müde."
    ),
}
SENTENCES = tuple(RIGHT)
GLOSSES = {  # what is written, word for word, as wrong as it is
    "Der Bär mögen den Fuchs im Wald.": "the bear like the fox in the forest.",
    "Der Bär mögen den Fuchs.": "the bear like the fox.",
    "Bobby mag Brombeeren.": "Bobby likes blackberries.",
    "Hilft Paul Mäuse?": "helps Paul mice (not in the dative)?",
    "Das Mädchen grüßt den Tanten die Tante.": "the girl greets the aunts the aunt.",
    "Das Mädchen grüßt den und die Tante.": "the girl greets the and the aunt.",
    "Der Tee ist dem Onkel müde ist.": "the tea is to the uncle tired is.",
    "Der Tee ist alt.": "the tea is old.",
}
BEAMS = (1, 2, 3)
SHOWN = 4  # extensions at each step: those kept, and the best of the others
LONGEST = 16
HEAD_NUMBERS = 6  # of the first head, from each key and value
DROPPED, KEPT, ENDED = range(3)


@functools.cache
def data() -> dict:
    """Search for all sentences with all widths."""
    _, _, tokenizer = translator()
    sentences = []
    for text in SENTENCES:
        source = torch.tensor([tokenizer.encode(text)])
        beams = {str(beam): search(source, beam) for beam in BEAMS}
        longest = max(len(each["path"]) for each in beams.values())
        sentences.append(
            {
                "text": text,
                "right": RIGHT[text],
                "beams": beams,
                "products": products(source.shape[1], longest),
            }
        )
    return {"sentences": sentences}


@torch.inference_mode()
def search(source: torch.Tensor, beam: int) -> dict:
    """Run one search; give its steps, what it writes, and the cache of that."""
    model, _, tokenizer = translator()
    writer = Remembering(model, source, beam, LONGEST, models.load_parts())
    found = Search(source, tokenizer.EOS, beam, 0.0, LONGEST)
    sums = found.totals[0].clone()  # (beam,), as logarithms also where beam is 1
    newest = torch.full((beam,), tokenizer.SOS)
    steps = []
    while not steps or not found.all_done(len(steps)):
        logits = writer.next_logits(newest)
        logits[:, [model.pad_id, tokenizer.SOS]] = -torch.inf
        gains = logits.double().log_softmax(-1)  # (beam, V)
        best = (sums[:, None] + gains).flatten().topk(SHOWN)
        newest = found.extend(logits, len(steps) + 1)
        width = gains.shape[-1]
        step = []
        for rank, (total, place) in enumerate(zip(*best, strict=True)):
            parent, token = divmod(int(place), width)
            if rank < beam:  # the search must have kept the same
                assert (int(found.parents[0, rank]), int(newest[rank])) == (
                    parent,
                    token,
                )
            state = DROPPED
            if rank < beam:
                state = ENDED if token == tokenizer.EOS else KEPT
            chance = float(gains[parent, token].exp())
            step.append((token, chance, float(total.exp()), parent, state))
        steps.append(step)
        sums = best.values[:beam].masked_fill(found.totals[0].isinf(), -torch.inf)
        writer.reorder(found.parents.flatten())
    return finished(source, steps, found.best()[0])


def finished(source: torch.Tensor, steps: list, ids: list[int]) -> dict:
    """Follow what is written back through the steps, and name the tokens."""
    _, _, tokenizer = translator()
    length = len(ids) + 1  # with the end
    ended = [step[4] == ENDED for step in steps[length - 1]]
    rank = ended.index(True)
    path = []
    for step in reversed(steps[:length]):
        path.append(rank)
        rank = step[rank][3]
    path.reverse()
    written = [steps[i][rank][0] for i, rank in enumerate(path)]
    assert written == [*ids, tokenizer.EOS], "the path is what the search has found"
    text = tokenizer.decode(ids)
    return {
        "steps": [[(piece(step[0]), *step[1:]) for step in each] for each in steps],
        "path": path,
        "text": text,
        "gloss": GLOSSES[text],
        "cache": cache(source, [tokenizer.SOS, *ids]),
    }


def piece(token: int) -> str:
    """Write a token for people; a middle dot before what continues a word."""
    _, _, tokenizer = translator()
    special = {tokenizer.EOS: "<eos>", tokenizer.SOS: "<sos>"}
    if token in special:
        return special[token]
    text = tokenizer.decode([token])
    begins = tokenizer.inner.id_to_token(token).startswith("Ġ")
    return text if begins or not text.isalnum() else f"·{text}"


@torch.inference_mode()
def cache(source: torch.Tensor, tokens: list[int]) -> list:
    """Give for each token read some numbers of its keys and values, layer by layer."""
    model, _, _ = translator()
    writer = Remembering(model, source, 1, LONGEST, models.load_parts())
    for token in tokens:
        writer.next_logits(torch.tensor([token]))
    rows = [
        [kept[name][0, 0, :, :HEAD_NUMBERS] for name in "kv"] for kept in writer.caches
    ]  # layers, k and v, (T, n)
    return [
        [[part[t].tolist() for part in layer] for layer in rows]
        for t in range(len(tokens))
    ]


def products(source_length: int, steps: int) -> dict[str, list[int]]:
    """Count the multiplications of each step for one hypothesis.

    The source's keys and values, which a cache keeps as well, are in its first step.
    """
    _, config, _ = translator()
    d, layers = config.d_model, config.layers
    row = 6 * d**2 + 2 * d * config.d_ff  # four and two projections, and the network
    source = 2 * source_length * d**2
    last = d * config.vocab_size  # logits of the last row
    counted: dict[str, list[int]] = {"kept": [], "again": []}
    for t in range(1, steps + 1):
        pairs = 2 * d * (t + source_length)  # scores and weighted sums of one query
        once = source if t == 1 else 0
        counted["kept"].append(layers * (row + pairs + once) + last)
        counted["again"].append(layers * (t * (row + pairs) + source) + last)
    return counted
