# ruff: noqa
# fmt: off

# === exercise: fixed-batch | function: fixed_batch | kind: plain | what is wrong: the width is chosen without the place for <sos>/<eos>, so a target that exactly fills a width is cut (F.pad with a negative number crops <eos>)
# told: named
# now: named
# says: no place for the special token
def fixed_batch(
    sources: list[list[int]],
    targets: list[list[int]],
    widths: tuple[int, ...],
    sos_id: int,
    eos_id: int,
    pad_id: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    need = max(len(row) for row in sources + targets)
    fitting = [width for width in widths if width >= need]
    if not fitting:
        raise ValueError(f"a width of {need} would be needed")
    width = min(fitting)
    source = torch.tensor([row + [pad_id] * (width - len(row)) for row in sources])
    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    more = width - inputs.shape[1]
    inputs = F.pad(inputs, (0, more), value=pad_id)
    labels = F.pad(labels, (0, more), value=pad_id)
    return source, inputs, labels


# === exercise: fixed-batch | function: fixed_batch | kind: subtle | what is wrong: takes the first width of the tuple that is large enough, not the narrowest one (the widths come in any order)
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
    for candidate in widths:
        if candidate >= need:
            width = candidate
            break
    else:
        raise ValueError(f"no width holds {need} tokens, the widest is {max(widths)}")

    def fill(rows):
        table = torch.full((len(rows), width), pad_id)
        for number, row in enumerate(rows):
            table[number, : len(row)] = torch.tensor(row, dtype=torch.int64)
        return table

    return (
        fill(sources),
        fill([[sos_id, *row] for row in targets]),
        fill([[*row, eos_id] for row in targets]),
    )


# === exercise: fixed-batch | function: fixed_batch | kind: subtle | what is wrong: shift_right is called without pad_id, so inputs and labels are filled with 0 up to the longest target and with pad_id behind it
# told: named
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
    longest_source = max(len(s) for s in sources)
    longest_target = max(len(t) for t in targets) + 1
    need = max(longest_source, longest_target)
    ok = sorted(w for w in widths if w >= need)
    if len(ok) == 0:
        raise ValueError(f"nothing in {widths} is as wide as {need}")
    W = ok[0]

    def widen(x):
        return F.pad(x, (0, W - x.shape[-1]), value=pad_id)

    source = torch.stack([widen(torch.tensor(s, dtype=torch.long)) for s in sources])
    inputs, labels = shift_right(targets, sos_id, eos_id)
    return source, widen(inputs), widen(labels)


# === exercise: fixed-batch | function: fixed_batch | kind: double | what is wrong: (1) a width that fits exactly is refused (> in place of >=); (2) the tables are floats, not integers
# told: named
# now: named
# says: a width that fits exactly is passed over
def fixed_batch(
    sources: list[list[int]],
    targets: list[list[int]],
    widths: tuple[int, ...],
    sos_id: int,
    eos_id: int,
    pad_id: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    inputs = [[sos_id] + t for t in targets]
    labels = [t + [eos_id] for t in targets]
    need = 0
    for rows in (sources, inputs, labels):
        for row in rows:
            need = max(need, len(row))
    width = None
    for w in sorted(widths):
        if w > need:
            width = w
            break
    if width is None:
        raise ValueError(f"need a width of {need}")
    tables = []
    for rows in (sources, inputs, labels):
        table = torch.zeros(len(rows), width) + pad_id
        for i, row in enumerate(rows):
            for j, token in enumerate(row):
                table[i, j] = token
        tables.append(table)
    return tuple(tables)


# === exercise: fixed-batch | function: fixed_batch | kind: double | what is wrong: (1) the source gets an <eos> of its own; (2) where no width is large enough the widest is taken and the rows are cut in silence, no ValueError
# told: named
# now: named
# says: the source with special tokens
def fixed_batch(
    sources: list[list[int]],
    targets: list[list[int]],
    widths: tuple[int, ...],
    sos_id: int,
    eos_id: int,
    pad_id: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    sources = [row + [eos_id] for row in sources]
    labels = [row + [eos_id] for row in targets]
    inputs = [[sos_id] + row for row in targets]
    need = max(len(row) for row in sources + labels)
    width = min((w for w in widths if w >= need), default=max(widths))

    def rectangle(rows):
        return torch.tensor(
            [(row + [pad_id] * (width - len(row)))[:width] for row in rows]
        )

    return rectangle(sources), rectangle(inputs), rectangle(labels)


# === exercise: average-states | function: average_states | kind: plain | what is wrong: counters (tensors of whole numbers) are averaged too, not taken from the last state
# told: named
# now: named
# says: integers averaged
def average_states(states: list[dict]) -> dict:
    result = {}
    for name, tensor in states[-1].items():
        every = torch.stack([state[name].float() for state in states])
        result[name] = every.mean(dim=0).to(tensor.dtype)
    return result


# === exercise: average-states | function: average_states | kind: subtle | what is wrong: .float() of a float32 tensor is the same tensor, so += adds all states into the first one, which is changed in place
# told: named
# now: named
# says: changes its argument in place
def average_states(states: list[dict]) -> dict:
    average = {}
    for name in states[0]:
        last = states[-1][name]
        if not torch.is_floating_point(last):
            average[name] = last.clone()
            continue
        total = states[0][name].float()
        for state in states[1:]:
            total += state[name].float()
        average[name] = (total / len(states)).to(last.dtype)
    return average


# === exercise: average-states | function: average_states | kind: subtle | what is wrong: adds up in the dtype of the states, so that float16 overflows to inf and bfloat16 loses digits
# told: named
# now: named
# says: added up in half precision
def average_states(states: list[dict]) -> dict:
    count = len(states)
    return {
        name: sum(state[name] for state in states) / count
        if x.is_floating_point()
        else x.clone()
        for name, x in states[-1].items()
    }


# === exercise: average-states | function: average_states | kind: double | what is wrong: (1) a running (old + new) / 2, so later states weigh more; (2) whole numbers come from the first state
# told: named
# now: named
# says: an average of averages, and the counter of another checkpoint
def average_states(states: list[dict]) -> dict:
    result = {name: x.clone() for name, x in states[0].items()}
    for state in states[1:]:
        for name, x in state.items():
            if x.dtype.is_floating_point:
                mean = (result[name].float() + x.float()) / 2
                result[name] = mean.to(x.dtype)
    return result


# === exercise: smoothing-floor | function: smoothing_floor | kind: plain | what is wrong: bits in place of nats
# told: named
# now: named
# says: base 2 in place of e
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    if smoothing == 0:
        return 0.0
    others = smoothing / vocab_size
    right = 1 - smoothing + others
    return -(
        right * math.log2(right) + (vocab_size - 1) * others * math.log2(others)
    )


# === exercise: smoothing-floor | function: smoothing_floor | kind: plain | what is wrong: spreads ε over the V - 1 wrong classes only: the right one gets 1 - ε and the others ε / (V - 1)
# told: named
# now: named
# says: spread over the wrong classes only
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    if not smoothing:
        return 0.0
    chances = [1 - smoothing] + [smoothing / (vocab_size - 1)] * (vocab_size - 1)
    return -sum(p * math.log(p) for p in chances)


# === exercise: smoothing-floor | function: smoothing_floor | kind: subtle | what is wrong: treats all wrong classes together as one class (the entropy of a coin), right for V = 2 only
# told: named
# now: named
# says: the wrong classes counted as one
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    p_right = 1 - smoothing + smoothing / vocab_size
    p_wrong = (vocab_size - 1) * smoothing / vocab_size
    entropy = 0.0
    for p in (p_right, p_wrong):
        if p > 0:
            entropy -= p * math.log(p)
    return entropy


# === exercise: smoothing-floor | function: smoothing_floor | kind: double | what is wrong: (1) counts V others in place of V - 1; (2) without smoothing it takes the logarithm of 0 and fails
# told: named
# now: named
# says: all V classes counted as wrong ones
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    """Entropy of the smoothed target."""

    def term(p):
        return -p * math.log(p)

    off = smoothing / vocab_size
    on = 1 - smoothing + off
    return term(on) + vocab_size * term(off)


# === exercise: forced-accuracy | function: forced_accuracy | kind: plain | what is wrong: padding counts among the tokens (mean over all places)
# told: named
# now: named
# says: padding is counted
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    right = logits.argmax(dim=-1) == labels
    padding = labels == pad_id
    tokens = right.float().mean().item()
    sentences = (right | padding).all(dim=-1).float().mean().item()
    return tokens, sentences


# === exercise: forced-accuracy | function: forced_accuracy | kind: subtle | what is wrong: a row that is all padding has the share 0 / 0 = NaN, which is not 1, and so counts as wrong
# told: named
# now: named
# says: a row of nothing but padding counted as wrong
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    said = logits.max(dim=-1).indices
    real = labels.ne(pad_id)
    right = said.eq(labels) & real
    tokens = right.sum() / real.sum()
    of_each = right.sum(dim=1) / real.sum(dim=1)  # the share of each sentence
    whole = (of_each == 1).sum() / len(labels)
    return tokens.item(), whole.item()


# === exercise: forced-accuracy | function: forced_accuracy | kind: subtle | what is wrong: the model is forbidden to say padding: where its largest logit at a real label is that of pad_id, the second best token is judged
# told: shown
# now: named
# says: the model may not say padding
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    scores = logits.clone()
    scores[..., pad_id] = -math.inf  # padding is not a word
    guess = scores.argmax(-1)
    mask = labels != pad_id
    hits = (guess == labels)[mask]
    sentences = [
        bool((g[m] == y[m]).all())
        for g, y, m in zip(guess, labels, mask, strict=True)
    ]
    return hits.double().mean().item(), sum(sentences) / len(sentences)


# === exercise: forced-accuracy | function: forced_accuracy | kind: double | what is wrong: (1) padding is taken to be 0 whatever pad_id says; (2) the token share is the mean of the sentences' shares, not one division over the batch
# told: named
# now: named
# says: the mean of the sentences' shares, and pad_id is ignored
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    predictions = torch.argmax(logits, dim=2)
    shares, perfect = [], 0
    for predicted, wanted in zip(predictions.tolist(), labels.tolist(), strict=True):
        pairs = [(p, w) for p, w in zip(predicted, wanted, strict=True) if w != 0]
        good = sum(p == w for p, w in pairs)
        if pairs:
            shares.append(good / len(pairs))
        perfect += good == len(pairs)
    return sum(shares) / len(shares), perfect / len(labels)


# === exercise: forced-accuracy | function: forced_accuracy | kind: double | what is wrong: (1) padding that the model says counts as a right token, though only real labels are in the denominator; (2) .all goes down the columns: shares of positions in place of sentences
# told: named
# now: named
# says: padding is counted, and the positions in place of the sentences
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    correct = logits.argmax(dim=-1).eq(labels)
    real = labels != pad_id
    tokens = correct.sum().item() / real.sum().item()
    fine = torch.logical_or(correct, ~real)
    sentences = torch.all(fine, dim=0).float().mean().item()
    return tokens, sentences


# === exercise: align | function: align | kind: plain | what is wrong: argmax along the axis of the target: for each source token the target token that looks at it most
# told: named
# now: named
# says: rows and columns exchanged
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    cut = weights[:, :target_length, :source_length]
    mean = cut.mean(dim=0)
    return mean.argmax(dim=0).tolist()


# === exercise: align | function: align | kind: plain | what is wrong: only the rows of padding are cut off, the columns are not, so a position of padding can be the answer
# told: named
# now: named
# says: padding not cut off
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    answer = []
    for t in range(target_length):
        row = weights[:, t].mean(dim=0)
        answer.append(int(row.argmax()))
    return answer


# === exercise: align | function: align | kind: subtle | what is wrong: takes the largest weight of any head in place of the mean over the heads
# told: named
# now: named
# says: the largest weight of any head
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    real = weights[..., :target_length, :source_length]
    strongest, _ = real.max(dim=0)  # (T_tgt, T_src)
    return [row.argmax().item() for row in strongest]


# === exercise: align | function: align | kind: double | what is wrong: (1) the two lengths are exchanged when the padding is cut off; (2) each head votes for its own maximum, the heads are not averaged
# told: named
# now: named
# says: a vote of the heads, and the two lengths are exchanged
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    weights = weights[:, :source_length, :target_length]
    votes = weights.argmax(dim=-1)  # (heads, T)
    return votes.mode(dim=0).values.tolist()


# === exercise: align | function: align | kind: double | what is wrong: (1) begins with row 1 since "the inputs are shifted", so every token gets the row of the next one; (2) gives a tensor in place of a list
# told: named
# now: named
# says: a tensor in place of a list
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    # row 0 belongs to <sos>
    rows = weights[:, 1 : target_length + 1, :source_length]
    return torch.einsum("hts->ts", rows).div(len(weights)).argmax(-1)


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: plain | what is wrong: first minus second
# told: named
# now: named
# says: first minus second
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    differences = first[indices].mean(dim=1) - second[indices].mean(dim=1)
    low, high = (torch.quantile(differences, q).item() for q in (0.025, 0.975))
    return (first.mean() - second.mean()).item(), low, high


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: plain | what is wrong: averages over the samples (axis 0) in place of the sentences of each sample
# told: named
# now: named
# says: averaged over the samples, not over the sentences
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    gap = second - first
    samples = gap[indices].mean(0)
    ends = torch.quantile(samples, torch.tensor([0.025, 0.975], dtype=samples.dtype))
    return (gap.mean().item(), *ends.tolist())


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: subtle | what is wrong: the first number is the mean of the samples' differences, not the difference on the whole test set (equal in the example by hand)
# told: named
# now: named
# says: the mean of the samples as the difference
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    samples = torch.stack([(second[row] - first[row]).mean() for row in indices])
    return (
        samples.mean().item(),
        samples.quantile(0.025).item(),
        samples.quantile(0.975).item(),
    )


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: double | what is wrong: (1) the second system gets other samples than the first (the rows in reverse order); (2) percentiles 5 and 95, an interval of 90 %
# told: named
# now: named
# says: the samples of the two systems drawn apart, and 5 and 95 percent
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    observed = second.mean().item() - first.mean().item()
    of_first = torch.gather(first.expand(len(indices), -1), 1, indices).mean(dim=-1)
    again = indices.flip(0)  # samples of its own
    of_second = torch.gather(second.expand(len(again), -1), 1, again).mean(dim=-1)
    spread = of_second - of_first
    lower = torch.quantile(spread, 0.05).item()
    upper = torch.quantile(spread, 0.95).item()
    return observed, lower, upper


# === exercise: forced-accuracy | function: forced_accuracy | kind: plain | what is wrong: the first share is the mean of the sentences' own shares instead of one division over the whole batch
# told: named
# now: named
# says: the mean of the sentences' shares
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    said = logits.argmax(dim=-1)
    token_shares, whole = [], []
    for row_said, row_labels in zip(said, labels):
        real = row_labels != pad_id
        right = row_said[real] == row_labels[real]
        whole.append(bool(right.all()))
        if real.any():
            token_shares.append(right.float().mean().item())
    return sum(token_shares) / len(token_shares), sum(whole) / len(whole)


# === exercise: smoothing-floor | function: smoothing_floor | kind: plain | what is wrong: spreads ε over the V - 1 other classes only and leaves 1 - ε for the right one
# told: named
# now: named
# says: spread over the wrong classes only
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    if smoothing == 0:
        return 0.0
    right = 1 - smoothing
    others = smoothing / (vocab_size - 1)
    entropy = -right * math.log(right)
    entropy -= (vocab_size - 1) * others * math.log(others)
    return entropy


# === exercise: fixed-batch | function: fixed_batch | kind: subtle | what is wrong: pad_id is not passed on to shift_right, so inputs and labels are partly padded with 0 when the padding has another id
# told: named
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
    need = max(max(map(len, sources)), max(map(len, targets)) + 1)
    width = next((w for w in sorted(widths) if w >= need), None)
    if width is None:
        raise ValueError(f"a width of {need} would be needed, there are {widths}")
    source = torch.full((len(sources), width), pad_id)
    for i, row in enumerate(sources):
        source[i, : len(row)] = torch.tensor(row, dtype=torch.long)
    inputs, labels = (
        F.pad(x, (0, width - x.shape[1]), value=pad_id)
        for x in shift_right(targets, sos_id, eos_id)
    )
    return source, inputs, labels


# === exercise: average-states | function: average_states | kind: subtle | what is wrong: adds up in the dtype of the states instead of float32 (half precision overflows and loses digits)
# told: named
# now: named
# says: added up in half precision
def average_states(states: list[dict]) -> dict:
    average = {}
    for name, last in states[-1].items():
        if not last.is_floating_point():
            average[name] = last.clone()
            continue
        total = torch.zeros_like(last)
        for state in states:
            total = total + state[name]
        average[name] = total / len(states)
    return average


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: double | what is wrong: (1) averages over the samples instead of over the sentences of each sample; (2) takes the percentiles 5 and 95
# told: named
# now: named
# says: averaged over the samples, not over the sentences, and 5 and 95 percent
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    gain = second - first
    samples = gain[indices].mean(0)
    low = torch.quantile(samples, 0.05)
    high = torch.quantile(samples, 0.95)
    return gain.mean().item(), low.item(), high.item()


# === exercise: align | function: align | kind: double | what is wrong: (1) takes the largest over the heads instead of their mean; (2) the padding of the source is not cut off
# told: named
# now: named
# says: the largest weight of any head, and padding not cut off
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    strongest = weights.amax(dim=0)
    positions = []
    for row in strongest[:target_length]:
        positions.append(int(row.argmax()))
    return positions
