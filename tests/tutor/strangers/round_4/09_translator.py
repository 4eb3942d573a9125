# ruff: noqa
# fmt: off

# === exercise: fixed-batch | function: fixed_batch | kind: subtle | what is wrong: takes the first of the widths that is large enough, not the narrowest (widths not sorted)
# told: named
# now: named
# says: the first width that fits, not the narrowest
def fixed_batch(
    sources: list[list[int]],
    targets: list[list[int]],
    widths: tuple[int, ...],
    sos_id: int,
    eos_id: int,
    pad_id: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    needed = max(max(len(s) for s in sources), max(len(t) for t in targets) + 1)
    width = next((w for w in widths if w >= needed), None)
    if width is None:
        raise ValueError(f"no width holds {needed} tokens")

    def fill(rows):
        return torch.tensor([row + [pad_id] * (width - len(row)) for row in rows])

    return (
        fill(sources),
        fill([[sos_id] + t for t in targets]),
        fill([t + [eos_id] for t in targets]),
    )


# === exercise: fixed-batch | function: fixed_batch | kind: double | what is wrong: source gets an <eos> of its own, with a place for it in the width AND the source is filled up with 0 whatever pad_id is
# told: named
# now: named
# says: the source with special tokens, and filled with 0 in place of pad_id
def fixed_batch(
    sources: list[list[int]],
    targets: list[list[int]],
    widths: tuple[int, ...],
    sos_id: int,
    eos_id: int,
    pad_id: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    needed = max(len(row) for row in sources + targets)
    fitting = sorted(w for w in widths if w > needed)
    if not fitting:
        raise ValueError("too long")
    W = fitting[0]
    source = torch.zeros(len(sources), W, dtype=torch.long)
    for i, row in enumerate(sources):
        source[i, : len(row) + 1] = torch.tensor([*row, eos_id])
    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    extra = W - inputs.shape[1]
    inputs = nn_pad(inputs, extra, pad_id)
    labels = nn_pad(labels, extra, pad_id)
    return source, inputs, labels


def nn_pad(x, extra, value):
    return torch.nn.functional.pad(x, (0, extra), value=value)


# === exercise: average-states | function: average_states | kind: subtle | what is wrong: adds up in the dtype of the states: float16 overflows and bfloat16 loses digits
# told: named
# now: named
# says: added up in half precision
def average_states(states: list[dict]) -> dict:
    result = {}
    for name, last in states[-1].items():
        if last.is_floating_point():
            total = torch.zeros_like(last)
            for state in states:
                total = total + state[name]
            result[name] = total / len(states)
        else:
            result[name] = last.clone()
    return result


# === exercise: average-states | function: average_states | kind: double | what is wrong: the first state is changed in place (float() makes no copy of float32, then +=) AND integers come from the first state
# told: named
# now: named
# says: changes its argument in place
def average_states(states: list[dict]) -> dict:
    result = dict(states[0])
    for name in result:
        if not torch.is_floating_point(result[name]):
            continue
        dtype = result[name].dtype
        total = result[name].float()
        for state in states[1:]:
            total += state[name].float()
        result[name] = (total / len(states)).to(dtype)
    return result


# === exercise: smoothing-floor | function: smoothing_floor | kind: double | what is wrong: the right class has 1 - ε and the others ε/(V-1) AND result in bits (log2)
# told: named
# now: named
# says: spread over the wrong classes only, and base 2 in place of e
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    if smoothing == 0:
        return 0.0
    right = 1 - smoothing
    other = smoothing / (vocab_size - 1)
    return -right * math.log2(right) - (vocab_size - 1) * other * math.log2(other)


# === exercise: forced-accuracy | function: forced_accuracy | kind: plain | what is wrong: padding is counted in both shares
# told: named
# now: named
# says: padding is counted
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    correct = logits.argmax(dim=-1) == labels
    return correct.float().mean().item(), correct.all(dim=1).float().mean().item()


# === exercise: align | function: align | kind: subtle | what is wrong: takes the vote of the heads (each head's argmax, then the most frequent) in place of the mean of the weights
# told: named
# now: named
# says: a vote of the heads
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    real = weights[:, :target_length, :source_length]
    votes = real.argmax(dim=-1)
    return votes.mode(dim=0).values.tolist()


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: plain | what is wrong: percentiles 5 and 95
# told: named
# now: named
# says: 5 and 95 percent
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    difference = (second - first).float()
    samples = difference[indices].mean(dim=1)
    low, high = torch.quantile(samples, torch.tensor([0.05, 0.95])).tolist()
    return difference.mean().item(), low, high
