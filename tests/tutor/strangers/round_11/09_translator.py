# ruff: noqa
# fmt: off

# === exercise: fixed-batch | function: fixed_batch | kind: plain | what is wrong: inputs and labels are filled up by width minus the longest target without counting its special token, so they come out W + 1 wide instead of W
# told: told
# now: named
# says: the special token is not counted when the targets are filled up
def fixed_batch(
    sources: list[list[int]],
    targets: list[list[int]],
    widths: tuple[int, ...],
    sos_id: int,
    eos_id: int,
    pad_id: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    longest_source = max(len(s) for s in sources)
    longest_target = max(len(t) for t in targets)
    need = max(longest_source, longest_target + 1)

    fitting = [w for w in widths if w >= need]
    if not fitting:
        raise ValueError(f"a width of {need} is needed, the largest is {max(widths)}")
    width = min(fitting)

    source = torch.tensor([s + [pad_id] * (width - len(s)) for s in sources])
    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    more = width - longest_target
    inputs = F.pad(inputs, (0, more), value=pad_id)
    labels = F.pad(labels, (0, more), value=pad_id)
    return source, inputs, labels


# === exercise: fixed-batch | function: fixed_batch | kind: subtle | what is wrong: shift_right is called without pad_id, so the shorter target rows are filled with 0 up to the longest one and only the columns beyond it get pad_id, which is wrong as soon as pad_id is not 0
# told: shown
# now: named
# says: filled with 0 in place of pad_id
def fixed_batch(
    sources: list[list[int]],
    targets: list[list[int]],
    widths: tuple[int, ...],
    sos_id: int,
    eos_id: int,
    pad_id: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    need = max([len(row) for row in sources] + [len(row) + 1 for row in targets])
    for width in sorted(widths):
        if width >= need:
            break
    else:
        raise ValueError(f"no width among {widths} holds {need} tokens")

    source = torch.full((len(sources), width), pad_id)
    for i, row in enumerate(sources):
        source[i, : len(row)] = torch.tensor(row, dtype=torch.long)

    def widen(x):
        return F.pad(x, (0, width - x.size(1)), value=pad_id)

    inputs, labels = shift_right(targets, sos_id, eos_id)
    return source, widen(inputs), widen(labels)


# === exercise: fixed-batch | function: fixed_batch | kind: double | what is wrong: the source rows get an <eos> too (and a place for it is counted) AND the first fitting width in the given order is taken instead of the narrowest one
# told: named
# now: named
# says: the first width that fits, not the narrowest, and the source with special tokens
def fixed_batch(
    sources: list[list[int]],
    targets: list[list[int]],
    widths: tuple[int, ...],
    sos_id: int,
    eos_id: int,
    pad_id: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    encoder_rows = [list(ids) + [eos_id] for ids in sources]
    n_src = max(map(len, encoder_rows))
    n_tgt = max(map(len, targets)) + 1
    n = max(n_src, n_tgt)

    width = next((w for w in widths if w >= n), None)
    if width is None:
        raise ValueError(f"The batch needs {n} places, but the widths are {widths}.")

    rows = []
    for ids in encoder_rows:
        filler = [pad_id] * (width - len(ids))
        rows.append(ids + filler)
    source = torch.tensor(rows, dtype=torch.long)

    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    missing = width - inputs.shape[1]
    inputs = F.pad(inputs, (0, missing), value=pad_id)
    labels = F.pad(labels, (0, missing), value=pad_id)
    return source, inputs, labels


# === exercise: average-states | function: average_states | kind: plain | what is wrong: the running mean adds the next state and halves each time, so with three or more states the last ones weigh more (1/4, 1/4, 1/2 instead of 1/3 each)
# told: named
# now: named
# says: an average of averages
def average_states(states: list[dict]) -> dict:
    averaged = {}
    for name, newest in states[-1].items():
        if not torch.is_floating_point(newest):
            averaged[name] = newest.clone()
            continue
        mean = states[0][name].to(torch.float32).clone()
        for state in states[1:]:
            mean = (mean + state[name].to(torch.float32)) / 2
        averaged[name] = mean.to(newest.dtype)
    return averaged


# === exercise: average-states | function: average_states | kind: subtle | what is wrong: the sum begins with states[0][name].float(), which is no copy when the tensor is float32 already, so += writes the sum into the first state
# told: named
# now: named
# says: changes its argument in place
def average_states(states: list[dict]) -> dict:
    result = {}
    for name, last in states[-1].items():
        if last.is_floating_point():
            total = states[0][name].float()
            for state in states[1:]:
                total += state[name].float()
            result[name] = (total / len(states)).to(last.dtype)
        else:
            result[name] = last.clone()
    return result


# === exercise: average-states | function: average_states | kind: double | what is wrong: the means stay in float32 and do not return to the dtype of the states AND whole-number tensors come from the first state instead of the last
# told: named
# now: named
# says: the mean stays float32
def average_states(states: list[dict]) -> dict:
    def merge(tensors):
        if tensors[0].is_floating_point():
            return torch.stack([t.float() for t in tensors]).mean(dim=0)
        return tensors[0].clone()

    return {key: merge([sd[key] for sd in states]) for key in states[0]}


# === exercise: smoothing-floor | function: smoothing_floor | kind: plain | what is wrong: returns only minus the logarithm of the right class's probability (the loss on a one-hot label when the model predicts the smoothed target), not the entropy of all V probabilities
# told: named
# now: named
# says: only the right class counted
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    if smoothing == 0:
        return 0.0
    share = smoothing / vocab_size
    best_prediction = 1 - smoothing + share
    return -math.log(best_prediction)


# === exercise: smoothing-floor | function: smoothing_floor | kind: subtle | what is wrong: without smoothing the term 0 times ln 0 is not treated, so the answer for smoothing 0 is nan instead of 0
# told: named
# now: named
# says: fails without smoothing
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    p = torch.full((vocab_size,), smoothing / vocab_size, dtype=torch.float64)
    p[0] += 1 - smoothing
    entropy = -(p * p.log()).sum()
    return entropy.item()


# === exercise: forced-accuracy | function: forced_accuracy | kind: plain | what is wrong: a place counts as real where the model's own token is not padding, instead of where the label is not padding
# told: named
# now: named
# says: padding is read from what the model says
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    predicted = logits.argmax(dim=-1)
    mask = predicted != pad_id
    hits = (predicted == labels) & mask
    token_share = hits.sum() / mask.sum()
    sentence_share = (hits | ~mask).all(dim=1).float().mean()
    return token_share.item(), sentence_share.item()


# === exercise: forced-accuracy | function: forced_accuracy | kind: subtle | what is wrong: for the sentences, the said tokens are multiplied with the mask and compared with the labels, which is right only if padding is 0; with another pad_id every row with padding counts as wrong
# told: shown
# now: named
# says: what is hidden is compared as 0
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    real = labels.ne(pad_id)
    said = logits.argmax(-1)
    tokens = (said.eq(labels) & real).sum().item() / real.sum().item()
    sentences = (said * real == labels).all(-1).float().mean().item()
    return tokens, sentences


# === exercise: forced-accuracy | function: forced_accuracy | kind: double | what is wrong: the share of tokens is the mean of the sentences' shares instead of one division over the whole batch AND a sentence is right only if the model also says padding at the padded places
# told: named
# now: named
# says: padding makes a sentence wrong, and the mean of the sentences' shares
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    best = torch.max(logits, dim=2).indices
    shares = []
    perfect = 0
    for guess, truth in zip(best, labels):
        keep = truth != pad_id
        n = int(keep.sum())
        if n > 0:
            shares.append((guess[keep] == truth[keep]).sum().item() / n)
        if torch.equal(guess, truth):
            perfect += 1
    return sum(shares) / len(shares), perfect / len(labels)


# === exercise: align | function: align | kind: subtle | what is wrong: squeeze() without an axis also removes the axis of the targets or of the sources when its length is 1, so that with target_length 1 or source_length 1 a bare number comes back instead of a list of target_length positions
# told: told
# now: named
# says: axes of length 1 squeezed away
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    real = weights[:, :target_length, :source_length]
    average = real.mean(dim=0, keepdim=True).squeeze()
    return average.argmax(dim=-1).tolist()


# === exercise: align | function: align | kind: double | what is wrong: the heads vote with their own largest positions instead of having their weights averaged AND the columns of padding are not cut off, so a position can lie outside of the real source
# told: shown
# now: named
# says: a vote of the heads, and padding not cut off
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    from collections import Counter

    heads = weights.shape[0]
    alignment = []
    for t in range(target_length):
        votes = Counter()
        for h in range(heads):
            position = int(torch.argmax(weights[h, t]))
            votes[position] += 1
        winner, _ = votes.most_common(1)[0]
        alignment.append(winner)
    return alignment


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: plain | what is wrong: the two ends are the mean of the samples plus and minus 1.96 standard deviations (a normal approximation) instead of the percentiles 2.5 and 97.5 of the samples
# told: shown
# now: named
# says: 1.96 deviations in place of percentiles
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    gain = second - first
    observed = gain.mean().item()
    samples = gain[indices].mean(dim=-1)
    center = samples.mean().item()
    spread = samples.std().item()
    return observed, center - 1.96 * spread, center + 1.96 * spread


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: subtle | what is wrong: each sentence counts as won, lost or even (the sign of the difference) instead of by the difference itself, which is the same only for scores of 0 and 1
# told: shown
# now: named
# says: won or lost in place of the difference
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    won = (second > first).double()
    lost = (second < first).double()
    per_sentence = won - lost

    per_sample = torch.stack([per_sentence[row].mean() for row in indices])
    low = torch.quantile(per_sample, 0.025)
    high = torch.quantile(per_sample, 0.975)
    return per_sentence.mean().item(), low.item(), high.item()


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: double | what is wrong: the percentiles are taken of each system's own sample means and then subtracted, instead of the percentiles of the paired differences AND the first number is the mean difference over the samples, not over the whole test set
# told: named
# now: named
# says: the percentiles of the two systems subtracted, and the mean of the samples as the difference
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    means_a = torch.take(first, indices).mean(1)
    means_b = torch.take(second, indices).mean(1)
    q = torch.tensor([0.025, 0.975], dtype=first.dtype)
    ends = torch.quantile(means_b, q) - torch.quantile(means_a, q)
    difference = means_b.mean() - means_a.mean()
    low, high = ends.tolist()
    return float(difference), low, high
