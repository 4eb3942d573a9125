"""Language model: the answers to the exercises of chapter 11.

Generated from solutions/11_language_model.md by `make exercises`; change that file.
"""

import math

import torch
from torch import nn


def bits_per_byte(losses: torch.Tensor, text: str) -> float:
    """Say what a text costs a model, in a unit that no tokenizer changes.

    Args:
        losses: (T,), the cross-entropy of each token in nats.
        text: all that the tokens stand for, at least one character.

    Returns:
        Bits per byte of UTF-8.

    Defined in Exercise 11.1 · Bits per byte.
    """
    # 1. The whole text, in bits. 2. Per byte.
    return losses.sum().item() / math.log(2) / len(text.encode())


def predicted_loss(law: dict[str, float], parameters: float, tokens: float) -> float:
    """Say what a model loses by a law.

    Args:
        law: E, A, B, a and b.
        parameters: N, all of them.
        tokens: D, that it is trained on.

    Returns:
        L(N, D).

    Defined in Exercise 11.2 · A law of scale.
    """
    # 1. Three terms.
    size, text = law["A"] / parameters ** law["a"], law["B"] / tokens ** law["b"]
    return law["E"] + size + text


def fit_scaling_law(
    runs: list[dict[str, float]], exponents: list[float]
) -> dict[str, float]:
    """Find the law that fits runs best.

    Args:
        runs: R dicts with parameters (without the embedding), embedding, tokens,
            bits_per_byte, nats_per_token.
        exponents: the candidates, each tried as a and as b.

    Returns:
        E, A, B, a and b, with the smallest sum of squared errors in bits per byte.

    Defined in Exercise 11.2 · A law of scale.
    """
    # 2. N, D and the losses. 3. For each a and each b: columns, least squares, error.
    # 4. Keep the best.
    keys = ("parameters", "embedding", "tokens", "bits_per_byte")
    rows = [[run[key] for key in keys] for run in runs]
    rows = torch.tensor(rows, dtype=torch.float64)  # (R, 4)
    sizes, tokens, losses = rows[:, 0] + rows[:, 1], rows[:, 2], rows[:, 3:]
    fits = []
    for a in exponents:
        for b in exponents:
            columns = torch.stack((torch.ones_like(sizes), sizes**-a, tokens**-b), -1)
            found = torch.linalg.lstsq(columns, losses).solution  # (3, 1)
            error = (columns @ found - losses).square().sum().item()
            fits.append((error, *found.flatten().tolist(), a, b))
    return dict(zip("EABab", min(fits)[1:], strict=True))


def compute_optimal(law: dict[str, float], budget: float) -> tuple[float, float]:
    """Split a budget between the model and its text.

    Args:
        law: E, A, B, a and b.
        budget: C, operations.

    Returns:
        N and D with the smallest loss of all with 6 · N · D = C.

    Defined in Exercise 11.2 · A law of scale.
    """
    # 5. The parameters. 6. The tokens that are left.
    a, b, pairs = law["a"], law["b"], budget / 6
    ratio = a * law["A"] / (b * law["B"])
    parameters = ratio ** (1 / (a + b)) * pairs ** (b / (a + b))
    return parameters, pairs / parameters


def induction_scores(weights: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Say of each head how much it looks at what followed the same token before.

    Args:
        weights: (layers, heads, T, T), each row sums to 1.
        tokens: (T,), integers, at least one of which occurs twice.

    Returns:
        (layers, heads), the mean weight on the position after the previous occurrence,
        over the positions that have one.

    Defined in Exercise 11.3 · A head that looks at what came next last time.
    """
    # 1. The latest earlier position of each token. 2. Where there is one. 3. The mean.
    places = torch.arange(len(tokens), device=tokens.device)
    earlier = (tokens.unsqueeze(-1) == tokens).tril(-1)  # (T, T)
    after = (earlier * (places + 1)).amax(dim=-1)  # (T,), 0 if there is none
    queries = places[after > 0]
    return weights[..., queries, after[queries]].mean(dim=-1)


def best_head(scores: torch.Tensor) -> tuple[int, int]:
    """Return layer and head of the largest score, both counted from 0.

    Args:
        scores: (layers, heads).

    Defined in Exercise 11.3 · A head that looks at what came next last time.
    """
    # 4. The largest of all, and where it stands.
    return divmod(scores.argmax().item(), scores.shape[1])


@torch.no_grad()
def record_activations(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """Keep what each block gives while a model reads.

    Args:
        model: has a list of blocks, model.blocks.
        ids: (1, T), integers.

    Returns:
        (layers, T, d_model).

    Defined in Exercise 11.4 · What if it had been another?.
    """
    # 1. A hook on each block that keeps the output. 2. Run. 3. Remove the hooks.
    kept = []

    def keep(block, inputs, output):
        kept.append(output[0])  # (T, d_model)

    hooks = [block.register_forward_hook(keep) for block in model.blocks]
    model(ids)
    for hook in hooks:
        hook.remove()
    return torch.stack(kept)


@torch.no_grad()
def run_patched(
    model: nn.Module,
    ids: torch.Tensor,
    layer: int,
    position: int,
    activation: torch.Tensor,
) -> torch.Tensor:
    """Run a model with one activation replaced, and leave it as it was.

    Args:
        model: has a list of blocks, model.blocks.
        ids: (1, T), integers.
        layer: the block after which the stream is changed, from 0.
        position: where, from 0.
        activation: (d_model,), what is to stand there.

    Returns:
        The logits of this run, (1, T, V).

    Defined in Exercise 11.4 · What if it had been another?.
    """
    # 4. A hook that returns a changed copy. 5. Run. 6. Remove the hook.
    def change(block, inputs, output):
        output = output.clone()  # (1, T, d_model)
        output[:, position] = activation
        return output

    hook = model.blocks[layer].register_forward_hook(change)
    logits = model(ids)
    hook.remove()
    return logits


@torch.no_grad()
def patching_effect(
    model: nn.Module,
    clean: torch.Tensor,
    corrupted: torch.Tensor,
    right: int,
    wrong: int,
) -> torch.Tensor:
    """Say how much each activation of the clean run brings back in the corrupted one.

    Args:
        model: has a list of blocks, model.blocks.
        clean: (1, T), integers.
        corrupted: (1, T), integers.
        right: the token that should follow the clean text.
        wrong: the one that it is compared with.

    Returns:
        (layers, T), shares of the logit difference.

    Defined in Exercise 11.4 · What if it had been another?.
    """
    # 7. The clean activations, and both differences. 8. Patch each layer and position.
    # 9. The share that came back.
    def difference(logits):
        return (logits[0, -1, right] - logits[0, -1, wrong]).item()

    activations = record_activations(model, clean)  # (layers, T, d_model)
    high, low = difference(model(clean)), difference(model(corrupted))
    effects = [
        difference(run_patched(model, corrupted, layer, place, activations[layer, place]))
        for layer in range(len(activations))
        for place in range(clean.shape[1])
    ]
    return (torch.tensor(effects).view(activations.shape[:2]) - low) / (high - low)


def logit_lens(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Read every layer of the residual stream as if the model ended there.

    Args:
        stream: (layers + 1, T, d_model).
        gamma: (d_model,), of the final RMS norm; its epsilon is 1e-5.
        table: (V, d_model), the output matrix.
        targets: (T,), the token that follows each position.

    Returns:
        Probability and rank of the targets, both (layers + 1, T); rank 1 is the best.

    Defined in Exercise 11.5 · Layer by layer.
    """
    # 1. The norm. 2. The logits. 3. The targets' probability. 4. How many are ahead.
    scale = (stream.square().mean(dim=-1, keepdim=True) + 1e-5).rsqrt()
    logits = stream * scale * gamma @ table.T  # (layers + 1, T, V)
    places = torch.arange(len(targets))
    own = logits[:, places, targets]  # (layers + 1, T)
    ranks = 1 + (logits > own.unsqueeze(-1)).sum(dim=-1)
    return logits.softmax(dim=-1)[:, places, targets], ranks


def lens_gain(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
    order: torch.Tensor,
) -> torch.Tensor:
    """Say how much more each layer says for the right tokens than for others.

    Args:
        stream: (layers + 1, T, d_model).
        gamma: (d_model,), of the final RMS norm; its epsilon is 1e-5.
        table: (V, d_model), the output matrix.
        targets: (T,), the token that follows each position.
        order: (T,), for each position another one, whose target is the control.

    Returns:
        (layers + 1,), the mean difference of the logarithms of both probabilities.

    Defined in Exercise 11.5 · Layer by layer.
    """
    # 5. The right tokens. 6. The control. 7. The mean of the differences.
    right, _ = logit_lens(stream, gamma, table, targets)
    control, _ = logit_lens(stream, gamma, table, targets[order])
    return (right.log() - control.log()).mean(dim=-1)
