# ruff: noqa
# fmt: off

# === exercise: fixed-batch | function: fixed_batch | kind: subtle | what is wrong: The extra place is added to the longest source as well (max over both sides, plus 1), so when the longest source sets the need and just fills a width, a wider width is taken or a ValueError raised though it fits.
# told: named
# now: named
# says: a place for a special token in the source, too
def fixed_batch(
    sources: list[list[int]],
    targets: list[list[int]],
    widths: tuple[int, ...],
    sos_id: int,
    eos_id: int,
    pad_id: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    longest = max(len(row) for row in sources + targets)
    need = longest + 1
    fitting = [w for w in widths if w >= need]
    if not fitting:
        raise ValueError(f"no width for {need} places among {widths}")
    width = min(fitting)

    def fill(x):
        return F.pad(x, (0, width - x.shape[1]), value=pad_id)

    source = torch.tensor([row + [pad_id] * (width - len(row)) for row in sources])
    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    return source, fill(inputs), fill(labels)


# === exercise: fixed-batch | function: fixed_batch | kind: subtle | what is wrong: It takes the first width in the given order that is large enough, not the narrowest, so the batch is too wide when widths are not ascending and a wider fitting width stands before a narrower fitting one.
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
    need = max(max(map(len, sources)), 1 + max(map(len, targets)))
    for width in widths:
        if width >= need:
            break
    else:
        raise ValueError(f"a width of at least {need} is needed")
    source, inputs, labels = torch.full((3, len(sources), width), pad_id).unbind(0)
    ins, outs = shift_right(targets, sos_id, eos_id, pad_id)
    inputs[:, : ins.shape[1]] = ins
    labels[:, : outs.shape[1]] = outs
    for b, row in enumerate(sources):
        source[b, : len(row)] = torch.tensor(row, dtype=torch.long)
    return source, inputs, labels


# === exercise: fixed-batch | function: fixed_batch | kind: double | what is wrong: FIRST the caller's source lists are padded in place with extend, so they hold pad ids after the call wherever a source is shorter than the width; SECOND where no width is large enough it silently uses the needed width itself and raises no ValueError.
# told: named
# now: named
# says: changes its argument in place
def fixed_batch(
    sources: list[list[int]],
    targets: list[list[int]],
    widths: tuple[int, ...],
    sos_id: int,
    eos_id: int,
    pad_id: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    need = max(inputs.size(1), max(len(s) for s in sources))
    width = min((w for w in widths if w >= need), default=need)

    for row in sources:
        row.extend([pad_id] * (width - len(row)))
    source = torch.tensor(sources, dtype=torch.long)

    more = width - inputs.size(1)
    inputs = F.pad(inputs, (0, more), value=pad_id)
    labels = F.pad(labels, (0, more), value=pad_id)
    return source, inputs, labels


# === exercise: average-states | function: average_states | kind: plain | what is wrong: It halves after each addition (running (average + next) / 2), so later states weigh more than earlier ones; wrong for three or more states, right for one or two.
# told: named
# now: named
# says: an average of averages
def average_states(states: list[dict]) -> dict:
    average = {name: x.clone() for name, x in states[0].items()}
    for state in states[1:]:
        for name, x in state.items():
            if x.is_floating_point():
                both = average[name].float() + x.float()
                average[name] = (both / 2).to(x.dtype)
            else:
                average[name] = x.clone()
    return average


# === exercise: average-states | function: average_states | kind: subtle | what is wrong: Counters are recognised by having no axis instead of by their dtype, so a floating-point scalar (0-dimensional) is taken from the last state and not averaged, and whole-number tensors with axes are averaged and truncated.
# told: passed
# now: named
# says: what has no axis is taken for a counter
def average_states(states: list[dict]) -> dict:
    last = states[-1]
    result = {}
    for name in last:
        tensor = last[name]
        if tensor.dim() == 0:  # a counter such as num_batches_tracked
            result[name] = tensor.clone()
            continue
        total = torch.zeros_like(tensor, dtype=torch.float32)
        for state in states:
            total += state[name].to(torch.float32)
        result[name] = (total / len(states)).to(tensor.dtype)
    return result


# === exercise: average-states | function: average_states | kind: double | what is wrong: FIRST the means stay float32 and do not return to the tensors' dtype (shows for float16, bfloat16, float64); SECOND tensors of whole numbers come from the first state and not the last (shows where counters differ).
# told: named
# now: named
# says: the mean stays float32
def average_states(states: list[dict]) -> dict:
    def merge(tensors):
        if not torch.is_floating_point(tensors[0]):
            return tensors[0].clone()
        return torch.stack([t.float() for t in tensors]).mean(dim=0)

    return {name: merge([state[name] for state in states]) for name in states[0]}


# === exercise: smoothing-floor | function: smoothing_floor | kind: plain | what is wrong: It returns only -ln of the right class's probability, the loss of the best prediction under an unsmoothed label, so the weights and the V - 1 other terms are missing; too low whenever smoothing is above 0.
# told: named
# now: named
# says: only the right class counted
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    best = 1 - smoothing + smoothing / vocab_size  # what an ideal model gives it
    return -math.log(best)


# === exercise: smoothing-floor | function: smoothing_floor | kind: subtle | what is wrong: A constant 1e-6 is added inside the logarithm against ln 0, which is not small beside smoothing / V, so the floor is too low for large vocabularies or small smoothing (by about 0.01 at V = 10,000 and 0.1) and hardly changed for small V.
# told: named
# now: named
# says: a small number added in the logarithm
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    tiny = 1e-6
    other = smoothing / vocab_size
    right = 1.0 - smoothing + other

    def term(p):
        return -p * math.log(p + tiny)

    return term(right) + (vocab_size - 1) * term(other)


# === exercise: smoothing-floor | function: smoothing_floor | kind: double | what is wrong: FIRST each other class gets smoothing / (V - 1) in place of smoothing / V, so the probabilities add up to more than 1; SECOND the entropy is in bits (log2) and not in nats; both show whenever smoothing is above 0.
# told: named
# now: named
# says: the other classes share more than is left, and base 2 in place of e
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    if smoothing == 0:
        return 0.0
    others = vocab_size - 1
    p = [1 - smoothing + smoothing / vocab_size] + others * [smoothing / others]
    return -sum(x * math.log2(x) for x in p)


# === exercise: forced-accuracy | function: forced_accuracy | kind: plain | what is wrong: The token share counts each padded place as a right one and divides by all places, so it is too high whenever there is padding and a mistake; the share of sentences is correct.
# told: named
# now: named
# says: padding counted as right
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    said = logits.argmax(dim=-1)
    fine = (said == labels) | (labels == pad_id)
    return fine.float().mean().item(), fine.all(dim=1).float().mean().item()


# === exercise: forced-accuracy | function: forced_accuracy | kind: subtle | what is wrong: Real labels are those greater than pad_id, not those different from it, so with a pad_id above 0 every label with a smaller id is taken for padding in both shares; right for pad_id 0.
# told: named
# now: named
# says: ids below pad_id taken for padding
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    real = labels > pad_id
    hits = torch.max(logits, -1).indices.eq(labels) & real
    tokens = hits.sum().item() / real.sum().item()
    whole = hits.sum(1) == real.sum(1)
    return tokens, whole.sum().item() / len(labels)


# === exercise: forced-accuracy | function: forced_accuracy | kind: double | what is wrong: FIRST the logit of pad_id is set to -inf before the argmax, so where the model says padding at a real label its second choice is judged, and a mistake can count as right; SECOND rows that are all padding are left out of the share of sentences in place of counting as right.
# told: named
# now: named
# says: the model may not say padding
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    scores = logits.clone()
    scores[:, :, pad_id] = -math.inf  # padding is never an answer
    answers = scores.argmax(-1)

    right_tokens, all_tokens, right_rows, all_rows = 0, 0, 0, 0
    for answer, label in zip(answers, labels):
        keep = label != pad_id
        count = int(keep.sum())
        if count == 0:
            continue
        right = int((answer[keep] == label[keep]).sum())
        right_tokens += right
        all_tokens += count
        right_rows += right == count
        all_rows += 1
    return right_tokens / all_tokens, right_rows / all_rows


# === exercise: align | function: align | kind: plain | what is wrong: It moves the rows by one, taking the row before for each token (the first token gets row 0 again), although row t already belongs to the token chosen at t; wrong wherever neighbouring rows have different largest positions.
# told: useless
# now: named
# says: one row too early
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    mean = weights[:, :target_length, :source_length].mean(0)
    positions = []
    for t in range(target_length):
        row = mean[max(t - 1, 0)]  # inputs are moved by one
        positions.append(int(row.argmax()))
    return positions


# === exercise: align | function: align | kind: subtle | what is wrong: squeeze() before tolist() also removes the axis of the target when it has length 1, so a target of one token gives a bare int in place of a list of one.
# told: named
# now: named
# says: axes of length 1 squeezed away
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    real = weights[:, :target_length, :source_length]
    average = real.mean(dim=0, keepdim=True)
    return average.argmax(dim=-1).squeeze().tolist()


# === exercise: align | function: align | kind: double | what is wrong: FIRST the heads vote (the most frequent of their own argmax positions) in place of being averaged, wrong where a head's large weight outweighs others or heads disagree; SECOND both axes are cut to the larger of the two lengths, so columns of source padding remain when the target is longer than the source.
# told: useless
# now: useless
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    n = max(source_length, target_length)
    heads = weights[:, :n, :n]
    looked_at = heads.argmax(dim=2)  # (heads, rows)
    chosen, _ = torch.mode(looked_at, dim=0)
    return [int(p) for p in chosen[:target_length]]


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: plain | what is wrong: The ends are mean ± 1.96 standard deviations of the samples' differences (a normal approximation) in place of the percentiles 2.5 and 97.5; wrong with few samples or skewed differences, close with many symmetric ones.
# told: named
# now: named
# says: 1.96 deviations in place of percentiles
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    delta = second - first
    resampled = delta[indices].mean(dim=-1)
    center, spread = resampled.mean().item(), resampled.std().item()
    return delta.mean().item(), center - 1.96 * spread, center + 1.96 * spread


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: subtle | what is wrong: The first number is the mean of the samples' differences and not the difference on the whole test set; they differ whenever the samples do not draw every sentence equally often, and agree in the example by hand.
# told: named
# now: named
# says: the mean of the samples as the difference
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    a, b = first[indices], second[indices]
    samples = b.mean(-1) - a.mean(-1)
    q = torch.tensor([0.025, 0.975], dtype=samples.dtype)
    low, high = torch.quantile(samples, q).tolist()
    return samples.mean().item(), low, high


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: double | what is wrong: FIRST the ends are the percentiles 5 and 95 (an interval of 90 %) in place of 2.5 and 97.5; SECOND a sentence drawn several times in a sample is counted once (unique indices), wrong wherever a row's repeats are not all equally frequent or of equal difference.
# told: named
# now: named
# says: a sentence that is drawn twice counts once, and 5 and 95 percent
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    gain = second - first
    draws = []
    for sample in indices:
        chosen = torch.unique(sample)
        draws.append(gain[chosen].mean())
    draws = torch.stack(draws)
    alpha = 0.05
    low = torch.quantile(draws, alpha)
    high = torch.quantile(draws, 1 - alpha)
    return gain.mean().item(), low.item(), high.item()
