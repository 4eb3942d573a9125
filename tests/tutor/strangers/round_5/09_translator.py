# ruff: noqa
# fmt: off

# === exercise: fixed-batch | function: fixed_batch | kind: subtle | what is wrong: takes the first width that is large enough, as if they were sorted
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
    need = max(max(map(len, sources)), max(map(len, targets)) + 1)
    width = next((w for w in widths if w >= need), None)
    if width is None:
        raise ValueError(f"no width holds {need} tokens")

    def fill(rows):
        return torch.tensor([row + [pad_id] * (width - len(row)) for row in rows])

    return (
        fill([list(s) for s in sources]),
        fill([[sos_id, *t] for t in targets]),
        fill([[*t, eos_id] for t in targets]),
    )


# === exercise: fixed-batch | function: fixed_batch | kind: double | what is wrong: the sources get an <eos> and need a place for it AND source and inputs are filled up with 0, whatever pad_id is
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
    longest = max(len(sentence) for sentence in sources + targets) + 1
    wide_enough = [width for width in sorted(widths) if width >= longest]
    if not wide_enough:
        raise ValueError("a sentence is too long for all widths")
    shape = (len(sources), wide_enough[0])
    source = torch.zeros(shape, dtype=torch.long)
    inputs = torch.zeros(shape, dtype=torch.long)
    labels = torch.full(shape, pad_id)
    for i, (s, t) in enumerate(zip(sources, targets)):
        source[i, : len(s) + 1] = torch.tensor([*s, eos_id])
        inputs[i, : len(t) + 1] = torch.tensor([sos_id, *t])
        labels[i, : len(t) + 1] = torch.tensor([*t, eos_id])
    return source, inputs, labels


# === exercise: average-states | function: average_states | kind: subtle | what is wrong: averages whole numbers, too, and rounds them down
# told: named
# now: named
# says: integers averaged
def average_states(states: list[dict]) -> dict:
    result = {}
    for name in states[0]:
        stacked = torch.stack([state[name].float() for state in states])
        result[name] = stacked.mean(dim=0).to(states[0][name].dtype)
    return result


# === exercise: average-states | function: average_states | kind: double | what is wrong: adds up in the tensors' own dtype, so half precision loses digits AND takes whole numbers from the first state, not from the last
# told: named
# now: named
# says: added up in half precision, and the counter of another checkpoint
def average_states(states: list[dict]) -> dict:
    average = {}
    for name, first in states[0].items():
        if first.is_floating_point():
            total = first.clone()
            for other in states[1:]:
                total += other[name]
            average[name] = total / len(states)
        else:
            average[name] = first.clone()
    return average


# === exercise: smoothing-floor | function: smoothing_floor | kind: plain | what is wrong: gives the right class 1-ε and the others ε/(V-1)
# told: named
# now: named
# says: spread over the wrong classes only
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    if smoothing == 0:
        return 0.0
    right = 1 - smoothing
    other = smoothing / (vocab_size - 1)
    return -right * math.log(right) - (vocab_size - 1) * other * math.log(other)


# === exercise: forced-accuracy | function: forced_accuracy | kind: double | what is wrong: averages the accuracies of the sentences, not all tokens at once AND takes 0 for padding, whatever pad_id is
# told: useless
# now: named
# says: the mean of the sentences' shares, and pad_id is ignored
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    said = logits.argmax(dim=-1)
    real = labels > 0
    right = (said == labels) & real
    tokens = (right.sum(dim=1) / real.sum(dim=1).clamp(min=1)).mean()
    sentences = (right | ~real).all(dim=1).float().mean()
    return tokens.item(), sentences.item()


# === exercise: align | function: align | kind: plain | what is wrong: takes the largest weight of any head, not the largest mean
# told: named
# now: named
# says: the largest weight of any head
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    real = weights[:, :target_length, :source_length]
    strongest = real.max(dim=0).values
    return strongest.argmax(dim=-1).tolist()


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: plain | what is wrong: takes the percentiles 5 and 95, which leave out 5 % on each side
# told: named
# now: named
# says: 5 and 95 percent
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    difference = second - first
    samples = difference[indices].mean(dim=1)
    low, high = torch.quantile(samples, torch.tensor([0.05, 0.95]))
    return difference.mean().item(), low.item(), high.item()
