"""Wrong and right answers to chapter 11: a law of scale, heads, patches, a lens."""

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F

from mistakes import right, wrong
from transformer.encoder import RMSNorm
from transformer.language_model import induction_scores as right_scores
from transformer.language_model import record_activations as right_activations
from transformer.language_model import run_patched as right_run

# --- a law of scale -------------------------------------------------------------------


@wrong("scaling-law", "multiplied in place of divided")
def predicted_loss(law, parameters, tokens):
    """a lost minus sign"""
    terms = ((law["A"], parameters, law["a"]), (law["B"], tokens, law["b"]))
    return law["E"] + sum(factor * n**power for factor, n, power in terms)


@wrong("scaling-law", "the loss that stays is left out")
def predicted_loss(law, parameters, tokens):
    logs = (
        math.log(law["A"]) - law["a"] * math.log(parameters),
        math.log(law["B"]) - law["b"] * math.log(tokens),
    )
    return sum(map(math.exp, logs))


@right("scaling-law")
def predicted_loss(law, parameters, tokens):
    """with NumPy"""
    powers = np.array([parameters, tokens], dtype=float) ** [-law["a"], -law["b"]]
    return law["E"] + powers @ np.array([law["A"], law["B"]])


def solved(sizes, runs, exponents, losses=None, error=lambda left: (left**2).sum()):
    """By NumPy; the best pair of exponents is found in a table of errors."""
    losses = (
        np.array([run["bits_per_byte"] for run in runs]) if losses is None else losses
    )
    tokens = np.array([run["tokens"] for run in runs], dtype=float)
    best = {}
    for a, b in itertools.product(exponents, exponents):
        columns = np.column_stack((np.ones(len(runs)), sizes**-a, tokens**-b))
        found = np.linalg.pinv(columns) @ losses
        best[(a, b)] = error(columns @ found - losses), found.tolist()
    (a, b), (_, (e, x, y)) = min(best.items(), key=lambda item: item[1][0])
    return {"E": e, "A": x, "B": y, "a": a, "b": b}


def both(runs):
    return np.array([run["parameters"] + run["embedding"] for run in runs], dtype=float)


@wrong("scaling-law", "the embedding is not counted")
def fit_scaling_law(runs, exponents):
    sizes = np.array([run["parameters"] for run in runs], dtype=float)
    return solved(sizes, runs, exponents)


@wrong("scaling-law", "nats per token in place of bits per byte")
def fit_scaling_law(runs, exponents):
    losses = np.array([run["nats_per_token"] for run in runs])
    return solved(both(runs), runs, exponents, losses)


@wrong("scaling-law", "factors exchanged")
def fit_scaling_law(runs, exponents):
    law = solved(both(runs), runs, exponents)
    return {"E": law["E"], "B": law["A"], "A": law["B"], "a": law["a"], "b": law["b"]}


@wrong("scaling-law", "not the best pair of exponents")
def fit_scaling_law(runs, exponents):
    """the last pair that is better than the first: the best error is never renewed"""
    seen = []

    def place(left):
        seen.append((left**2).sum())
        return -len(seen) if seen[-1] <= seen[0] else 0

    return solved(both(runs), runs, exponents, error=place)


@wrong("scaling-law", "an entry is missing")
def fit_scaling_law(runs, exponents):
    law = solved(both(runs), runs, exponents)
    return {key.lower(): value for key, value in law.items()}


@right("scaling-law")
def fit_scaling_law(runs, exponents):
    """the pseudo-inverse"""
    return solved(both(runs), runs, exponents)


@right("scaling-law")
def fit_scaling_law(runs, exponents):
    """normal equations, the columns scaled, all exponents at once"""
    rows = [(r["parameters"] + r["embedding"], r["tokens"]) for r in runs]
    sizes, tokens = torch.tensor(rows, dtype=torch.float64).T
    losses = torch.tensor([r["bits_per_byte"] for r in runs], dtype=torch.float64)
    grid = torch.tensor(list(itertools.product(exponents, exponents))).double()
    grid = grid.round(decimals=6)
    a, b = grid[:, :1], grid[:, 1:]
    columns = torch.stack((torch.ones_like(a * sizes), sizes**-a, tokens**-b), dim=-1)
    scale = columns.norm(dim=1, keepdim=True)  # (pairs, 1, 3)
    scaled = columns / scale
    found = torch.linalg.solve(scaled.mT @ scaled, scaled.mT @ losses)
    errors = ((scaled @ found.unsqueeze(-1)).squeeze(-1) - losses).square().sum(dim=1)
    place = errors.argmin()
    e, x, y = (found[place] / scale[place, 0]).tolist()
    return {"E": e, "A": x, "B": y, "a": a[place].item(), "b": b[place].item()}


@wrong("scaling-law", "the 6 is left out")
def compute_optimal(law, budget):
    """in logarithms"""
    whole = law["a"] + law["b"]
    ratio = math.log(law["a"] * law["A"]) - math.log(law["b"] * law["B"])
    parameters = math.exp((ratio + law["b"] * math.log(budget)) / whole)
    return parameters, budget / parameters


@wrong("scaling-law", "parameters and tokens exchanged")
def compute_optimal(law, budget):
    n, d = search(law, budget)
    return d, n


def search(law, budget):
    """Look for the smallest loss in ever smaller steps."""

    def loss(size):
        n = math.exp(size)
        tokens = budget / 6 / n
        return law["A"] / n ** law["a"] + law["B"] / tokens ** law["b"]

    def slope(size):
        n = math.exp(size)
        tokens = budget / 6 / n
        falls = law["a"] * law["A"] / n ** law["a"]
        return law["b"] * law["B"] / tokens ** law["b"] - falls

    low, high = 0.0, math.log(budget / 6)
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    assert loss(low) <= loss(low + 1)
    return math.exp(low), budget / 6 / math.exp(low)


@right("scaling-law")
def compute_optimal(law, budget):
    """by bisection"""
    return list(search(law, budget))


# --- a head that copies ---------------------------------------------------------------


def pairs_of(tokens):
    """Each position with the latest earlier one of its token."""
    last, found = {}, []
    for place, token in enumerate(tokens.tolist()):
        if token in last:
            found.append((place, last[token]))
        last[token] = place
    return found


@wrong("induction-score", "the previous occurrence itself")
def induction_scores(weights, tokens):
    """a duplicate-token head"""
    same = torch.triu((tokens[:, None] == tokens[None]).int(), 1).T
    newest = same * torch.arange(1, len(tokens) + 1)
    keys = newest.argmax(dim=1)
    chosen = same.any(dim=1)
    return weights[:, :, chosen, keys[chosen]].mean(-1)


@wrong("induction-score", "divided by all positions")
def induction_scores(weights, tokens):
    total = sum(weights[:, :, t, p + 1] for t, p in pairs_of(tokens))
    return total / weights.shape[-1]


@wrong("induction-score", "queries and keys exchanged")
def induction_scores(weights, tokens):
    found = [weights[:, :, p + 1, t] for t, p in pairs_of(tokens)]
    return torch.stack(found).mean(dim=0)


@wrong("induction-score", "all earlier occurrences")
def induction_scores(weights, tokens):
    """a mask in place of pairs"""
    same = (tokens[:, None] == tokens[None, :]).tril(-1)
    after = torch.zeros_like(same)
    after[:, 1:] = same[:, :-1]
    return (weights * after).sum(dim=(-2, -1)) / after.sum()


@wrong("induction-score", "a position beyond the end")
def induction_scores(weights, tokens):
    """a token is its own previous occurrence"""
    places = torch.arange(len(tokens))
    previous = ((tokens[:, None] == tokens).tril() * places).amax(dim=-1)
    return weights[..., places, previous + 1].mean(dim=-1)


@wrong("induction-score", "averaged over the heads")
def induction_scores(weights, tokens):
    return right_scores(weights, tokens).mean(dim=-1)


@right("induction-score")
def induction_scores(weights, tokens):
    """a dict of what was read"""
    return torch.stack([weights[..., t, p + 1] for t, p in pairs_of(tokens)]).mean(0)


@right("induction-score")
def induction_scores(weights, tokens):
    """a mask and einsum"""
    mask = torch.zeros(weights.shape[-2:], dtype=weights.dtype)
    for t, p in pairs_of(tokens):
        mask[t, p + 1] = 1
    return torch.einsum("lhts,ts->lh", weights, mask / mask.sum())


@wrong("induction-score", "head and layer exchanged")
def best_head(scores):
    place = int(scores.T.argmax())
    return place // scores.shape[0], place % scores.shape[0]


@wrong("induction-score", "only one of two results")
def best_head(scores):
    """the place in the flattened table"""
    return scores.argmax()


@right("induction-score")
def best_head(scores):
    """unravel_index"""
    return tuple(int(x) for x in torch.unravel_index(scores.argmax(), scores.shape))


@right("induction-score")
def best_head(scores):
    """row by row"""
    layer = scores.amax(dim=1).argmax()
    return [layer.item(), scores[layer].argmax().item()]


# --- patching -------------------------------------------------------------------------


@wrong("patch-activations", "the input of the block in place of its output")
@torch.no_grad()
def record_activations(model, ids):
    """a pre-hook"""
    kept = []
    hooks = [
        block.register_forward_pre_hook(lambda _, given: kept.append(given[0][0]))
        for block in model.blocks
    ]
    model(ids)
    for hook in hooks:
        hook.remove()
    return torch.stack(kept)


@wrong("patch-activations", "only the last block")
def record_activations(model, ids):
    kept = {}
    hook = model.blocks[-1].register_forward_hook(
        lambda block, given, output: kept.update(x=output.detach())
    )
    model(ids)
    hook.remove()
    return kept["x"]


@wrong("patch-activations", "the hook is left in the model")
def record_activations(model, ids):
    """clears what is kept, and removes the last hook alone"""
    kept = []
    for block in model.blocks:
        hook = block.register_forward_hook(
            lambda block, given, output: kept.append(output.detach()[0])
        )
    model(ids)
    hook.remove()
    return torch.stack(kept)


@wrong("patch-activations", "hooks of others are removed")
def record_activations(model, ids):
    """all hooks of a block"""
    kept = right_activations(model, ids)
    for block in model.blocks:
        block._forward_hooks.clear()
    return kept


@wrong("patch-activations", "the hook takes other arguments")
def record_activations(model, ids):
    kept = []
    hooks = [
        block.register_forward_hook(lambda block, output: kept.append(output))
        for block in model.blocks
    ]
    model(ids)
    for hook in hooks:
        hook.remove()
    return torch.cat(kept)


@right("patch-activations")
def record_activations(model, ids):
    """without hooks, block by block"""
    with torch.no_grad():
        x, kept = model.embedding(ids), []
        for block in model.blocks:
            x = block(x)
            kept.append(x)
    return torch.cat(kept)


@wrong("patch-activations", "the hook is left in the model")
@torch.no_grad()
def run_patched(model, ids, layer, position, activation):
    def change(block, given, output):
        output = output.clone()
        output[0, position] = activation
        return output

    model.blocks[layer].register_forward_hook(change)
    return model(ids)


@wrong("patch-activations", "hooks of others are removed")
@torch.no_grad()
def run_patched(model, ids, layer, position, activation):
    """the oldest in place of one's own"""

    def change(block, given, output):
        output = output.clone()
        output[0, position] = activation
        return output

    hooks = model.blocks[layer]._forward_hooks
    hook = model.blocks[layer].register_forward_hook(change)
    logits = model(ids)
    hook.remove()
    del hooks[min(hooks)]
    return logits


@wrong("patch-activations", "nothing is patched")
@torch.no_grad()
def run_patched(model, ids, layer, position, activation):
    """the hook returns nothing"""

    def change(block, given, output):
        output = output.clone()
        output[:, position] = activation

    hook = model.blocks[layer].register_forward_hook(change)
    logits = model(ids)
    hook.remove()
    return logits


@wrong("patch-activations", "the position taken for the batch")
@torch.no_grad()
def run_patched(model, ids, layer, position, activation):
    def change(block, given, output):
        output = output.clone()
        output[position] = activation
        return output

    hook = model.blocks[layer].register_forward_hook(change)
    logits = model(ids)
    hook.remove()
    return logits


@wrong("patch-activations", "the input of the block in place of its output")
@torch.no_grad()
def run_patched(model, ids, layer, position, activation):
    """a pre-hook that patches"""

    def change(block, given):
        x = given[0].clone()
        x[:, position] = activation
        return (x,)

    hook = model.blocks[layer].register_forward_pre_hook(change)
    logits = model(ids)
    hook.remove()
    return logits


@right("patch-activations")
@torch.no_grad()
def run_patched(model, ids, layer, position, activation):
    """in place, in a with statement"""

    def change(block, given, output):
        output[:, position] = activation

    with model.blocks[layer].register_forward_hook(change):
        return model(ids)


@right("patch-activations")
@torch.no_grad()
def run_patched(model, ids, layer, position, activation):
    """torch.where"""
    here = (torch.arange(ids.shape[1]) == position).unsqueeze(-1)
    hook = model.blocks[layer].register_forward_hook(
        lambda block, given, output: torch.where(here, activation, output)
    )
    try:
        return model(ids)
    finally:
        hook.remove()


def table_of(model, source, goal, measure):
    """Put every activation of one text into the run of another."""
    found = [
        [
            measure(right_run(model, goal, layer, place, row[place]))
            for place in range(goal.shape[1])
        ]
        for layer, row in enumerate(right_activations(model, source))
    ]
    return torch.tensor(found)


@wrong("patch-activations", "the corrupted activation in the clean run")
@torch.no_grad()
def patching_effect(model, clean, corrupted, right, wrong):
    def measure(logits):
        return float(logits[0, -1, right] - logits[0, -1, wrong])

    high, low = measure(model(clean)), measure(model(corrupted))
    return (table_of(model, corrupted, clean, measure) - low) / (high - low)


@wrong("patch-activations", "every patched run is the clean one")
@torch.no_grad()
def patching_effect(model, clean, corrupted, right, wrong):
    """the clean run is patched with its own activations"""

    def measure(logits):
        return float(logits[0, -1, right] - logits[0, -1, wrong])

    high, low = measure(model(clean)), measure(model(corrupted))
    return (table_of(model, clean, clean, measure) - low) / (high - low)


@wrong("patch-activations", "probabilities in place of logits")
@torch.no_grad()
def patching_effect(model, clean, corrupted, right, wrong):
    def measure(logits):
        chances = F.softmax(logits[0, -1], dim=0)
        return float(chances[right] - chances[wrong])

    high, low = measure(model(clean)), measure(model(corrupted))
    return (table_of(model, clean, corrupted, measure) - low) / (high - low)


@wrong("patch-activations", "layers and positions exchanged")
@torch.no_grad()
def patching_effect(model, clean, corrupted, right, wrong):
    def measure(logits):
        return float(logits[0, -1, right] - logits[0, -1, wrong])

    high, low = measure(model(clean)), measure(model(corrupted))
    rows = table_of(model, clean, corrupted, measure)
    columns = [(rows[:, place] - low) / (high - low) for place in range(rows.shape[1])]
    return torch.stack(columns)


@right("patch-activations")
@torch.no_grad()
def patching_effect(model, clean, corrupted, right, wrong):
    """log-probabilities: the sum in the softmax cancels"""

    def measure(logits):
        chances = logits[0, -1].log_softmax(dim=-1)
        return chances[right].item() - chances[wrong].item()

    high, low = measure(model(clean)), measure(model(corrupted))
    return (table_of(model, clean, corrupted, measure) - low) / (high - low)


# --- the lens -------------------------------------------------------------------------


def in_loops(stream, gamma, table, targets, epsilon=1e-5):
    """Logits of one layer and position after the other."""
    norm = RMSNorm(len(gamma), epsilon)
    with torch.no_grad():
        norm.gamma.copy_(gamma)
        rows = [[table @ norm(x) for x in layer] for layer in stream]
    return torch.stack([torch.stack(row) for row in rows])


@wrong("logit-lens", "no final norm")
def logit_lens(stream, gamma, table, targets):
    logits = torch.einsum("ltd,vd->ltv", stream, table)
    places = range(len(targets))
    right = torch.stack([logits[:, t, targets[t]] for t in places], dim=1)
    chances = torch.exp(right - logits.logsumexp(dim=-1))
    return chances, 1 + (logits > right[..., None]).sum(-1)


@wrong("logit-lens", "ranks counted from 0")
def logit_lens(stream, gamma, table, targets):
    logits = in_loops(stream, gamma, table, targets)
    order = logits.argsort(dim=-1, descending=True)
    ranks = (order == targets[None, :, None]).long().argmax(dim=-1)
    chances = logits.softmax(dim=-1)
    return chances[:, torch.arange(len(targets)), targets], ranks


@wrong("logit-lens", "log-probabilities")
def logit_lens(stream, gamma, table, targets):
    logits = in_loops(stream, gamma, table, targets)
    losses = [F.cross_entropy(layer, targets, reduction="none") for layer in logits]
    own = logits.gather(-1, targets.expand(len(stream), -1)[..., None])
    return -torch.stack(losses), (logits > own).sum(dim=-1) + 1


@wrong("logit-lens", "softmax over the wrong axis")
def logit_lens(stream, gamma, table, targets):
    logits = in_loops(stream, gamma, table, targets)
    places = torch.arange(len(targets))
    ranks = logits.argsort(-1, descending=True).argsort(-1) + 1
    return torch.softmax(logits, 1)[:, places, targets], ranks[:, places, targets]


@right("logit-lens")
def logit_lens(stream, gamma, table, targets):
    """sorted, in loops"""
    logits = in_loops(stream, gamma, table, targets)
    places = torch.arange(len(targets))
    ranks = logits.argsort(-1, descending=True).argsort(-1) + 1
    return [logits.softmax(-1)[:, places, targets], ranks[:, places, targets]]


@wrong("logit-lens", "the right tokens once more")
def lens_gain(stream, gamma, table, targets, order):
    pairs = [(stream, targets), (stream[:, order], targets[order])]
    right, control = (
        in_loops(x, gamma, table, ids).log_softmax(-1)[:, torch.arange(len(ids)), ids]
        for x, ids in pairs
    )
    return right.mean(dim=1) - control.mean(dim=1)


@wrong("logit-lens", "no control")
def lens_gain(stream, gamma, table, targets, order):
    logits = in_loops(stream, gamma, table, targets)
    losses = [F.cross_entropy(layer, targets) for layer in logits]
    return -torch.stack(losses)


@wrong("logit-lens", "the sign is turned")
def lens_gain(stream, gamma, table, targets, order):
    logits = in_loops(stream, gamma, table, targets)
    pairs = [
        (F.cross_entropy(x, targets), F.cross_entropy(x, targets[order]))
        for x in logits
    ]
    return torch.stack([right - control for right, control in pairs])


@wrong("logit-lens", "the positions are shuffled in place of the tokens")
def lens_gain(stream, gamma, table, targets, order):
    logits = in_loops(stream, gamma, table, targets)
    pairs = [
        (F.cross_entropy(x, targets), F.cross_entropy(x[order], targets))
        for x in logits
    ]
    return torch.stack([control - right for right, control in pairs])


@right("logit-lens")
def lens_gain(stream, gamma, table, targets, order):
    """logits alone: the sum in the softmax cancels"""
    logits = in_loops(stream, gamma, table, targets)
    places = torch.arange(len(targets))
    gaps = logits[:, places, targets] - logits[:, places, targets[order]]
    return gaps.mean(dim=1)
