# ruff: noqa
# fmt: off

# === exercise: fixed-batch | function: fixed_batch | kind: plain | what is wrong: every source row is given an <eos> at its end (and one place more is counted for it), although the encoder's side has no special tokens
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
    need = max(len(row) for row in [*sources, *targets]) + 1
    fitting = [width for width in widths if width >= need]
    if not fitting:
        raise ValueError(f"no width holds {need} tokens")
    width = min(fitting)
    closed = [row + [eos_id] for row in sources]
    source = torch.tensor([row + [pad_id] * (width - len(row)) for row in closed])
    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    more = width - inputs.shape[1]
    inputs = F.pad(inputs, (0, more), value=pad_id)
    labels = F.pad(labels, (0, more), value=pad_id)
    return source, inputs, labels


# === exercise: fixed-batch | function: fixed_batch | kind: plain | what is wrong: the padding of the labels is replaced by -100 (what PyTorch's cross-entropy ignores) instead of being pad_id
# told: named
# now: named
# says: the labels padded with -100
def fixed_batch(
    sources: list[list[int]],
    targets: list[list[int]],
    widths: tuple[int, ...],
    sos_id: int,
    eos_id: int,
    pad_id: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    longest_source = max(map(len, sources))
    longest_target = max(map(len, targets)) + 1
    need = max(longest_source, longest_target)
    for width in sorted(widths):
        if width >= need:
            break
    else:
        raise ValueError(f"a width of {need} would be needed, the widest is {max(widths)}")
    shape = (len(sources), width)
    source = torch.full(shape, pad_id)
    for i, row in enumerate(sources):
        source[i, : len(row)] = torch.tensor(row, dtype=torch.long)
    given, wanted = shift_right(targets, sos_id, eos_id, pad_id)
    inputs = torch.full(shape, pad_id)
    inputs[:, : given.shape[1]] = given
    labels = torch.full(shape, -100)
    labels[:, : wanted.shape[1]] = wanted
    labels[labels == pad_id] = -100  # not scored
    return source, inputs, labels


# === exercise: fixed-batch | function: fixed_batch | kind: subtle | what is wrong: it takes the first width that fits in the order given instead of the narrowest, which shows where widths are not sorted upwards
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
    need = max([len(s) for s in sources] + [len(t) + 1 for t in targets])
    width = next((w for w in widths if w >= need), None)
    if width is None:
        raise ValueError(f"need a width of at least {need}, have {widths}")

    def fill(table):
        return F.pad(table, (0, width - table.shape[1]), value=pad_id)

    source = torch.tensor([s + [pad_id] * (width - len(s)) for s in sources])
    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    return source, fill(inputs), fill(labels)


# === exercise: fixed-batch | function: fixed_batch | kind: subtle | what is wrong: the special token of the targets is not counted, so where the longest target is exactly as long as a width, F.pad gets a negative number and silently cuts its last token and <eos> off
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
    fitting = sorted(width for width in widths if width >= need)
    if len(fitting) == 0:
        raise ValueError(f"the longest sentence has {need} tokens: no width is enough")
    width = fitting[0]
    source = torch.tensor([row + (width - len(row)) * [pad_id] for row in sources])
    tables = [source]
    for table in shift_right(targets, sos_id, eos_id, pad_id):
        tables.append(F.pad(table, (0, width - table.size(1)), value=pad_id))
    return tuple(tables)


# === exercise: fixed-batch | function: fixed_batch | kind: double | what is wrong: if no width is large enough the rows are cut to the widest instead of raising a ValueError; the source is filled up on the left instead of on the right
# told: named
# now: named
# says: padding on the left
def fixed_batch(
    sources: list[list[int]],
    targets: list[list[int]],
    widths: tuple[int, ...],
    sos_id: int,
    eos_id: int,
    pad_id: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    need = max(max(map(len, sources)), max(map(len, targets)) + 1)
    width = min((w for w in widths if w >= need), default=max(widths))
    rows = []
    for row in sources:
        row = row[:width]
        rows.append([pad_id] * (width - len(row)) + row)
    source = torch.tensor(rows)
    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    inputs, labels = inputs[:, :width], labels[:, :width]
    missing = (0, width - inputs.shape[1])
    return source, F.pad(inputs, missing, value=pad_id), F.pad(labels, missing, value=pad_id)


# === exercise: fixed-batch | function: fixed_batch | kind: double | what is wrong: a width has to be greater than what is needed, so an exact fit is refused and the next one is taken (or a ValueError is raised); F.pad is called without value, so the rows are filled up with 0 whatever pad_id is
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
    need = max(len(s) for s in sources)
    need = max(need, 1 + max(len(t) for t in targets))
    fitting = [w for w in widths if w > need]
    if not fitting:
        raise ValueError("no width is large enough for " + str(need))
    width = min(fitting)
    source = torch.stack(
        [F.pad(torch.tensor(s, dtype=torch.long), (0, width - len(s))) for s in sources]
    )
    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    more = width - inputs.shape[1]
    return source, F.pad(inputs, (0, more)), F.pad(labels, (0, more))


# === exercise: average-states | function: average_states | kind: plain | what is wrong: it halves the sum after each state (running mean of two) instead of dividing once by their number, so the last states weigh most: (1, 2), (2, 4), (6, 12) give (3.75, 7.5)
# told: named
# now: named
# says: an average of averages
def average_states(states: list[dict]) -> dict:
    result = {}
    for name, last in states[-1].items():
        if not last.is_floating_point():
            result[name] = last.clone()
            continue
        average = states[0][name].float().clone()
        for state in states[1:]:
            average = (average + state[name].float()) / 2
        result[name] = average.to(last.dtype)
    return result


# === exercise: average-states | function: average_states | kind: plain | what is wrong: whole numbers are averaged too (and cut back to integers) instead of being taken from the last state, so counters 100, 200, 300 give 200
# told: named
# now: named
# says: integers averaged
def average_states(states: list[dict]) -> dict:
    return {
        name: torch.stack([state[name].to(torch.float32) for state in states])
        .mean(dim=0)
        .to(tensor.dtype)
        for name, tensor in states[-1].items()
    }


# === exercise: average-states | function: average_states | kind: subtle | what is wrong: float() does not copy a float32 tensor, so the sum is written into the first state in place; for half precision, where it copies, the states stay as they are
# told: named
# now: named
# says: changes its argument in place
def average_states(states: list[dict]) -> dict:
    result = {}
    for name, last in states[-1].items():
        if last.is_floating_point():
            total = states[0][name].float()  # float32 while adding
            for state in states[1:]:
                total += state[name].float()
            result[name] = (total / len(states)).to(last.dtype)
        else:
            result[name] = last.clone()
    return result


# === exercise: average-states | function: average_states | kind: subtle | what is wrong: only int64 tensors count as whole numbers, so counters of another dtype (int32, uint8, bool) are averaged instead of taken from the last state
# told: passed
# now: named
# says: only int64 counts as an integer
def average_states(states: list[dict]) -> dict:
    def merge(tensors):
        newest = tensors[-1]
        if newest.dtype == torch.long:  # a counter
            return newest.clone()
        mean = sum(each.to(torch.float32) for each in tensors) / len(tensors)
        return mean.to(newest.dtype)

    return {name: merge([state[name] for state in states]) for name in states[-1]}


# === exercise: average-states | function: average_states | kind: double | what is wrong: the tensors are added in their own dtype, so float16 overflows to inf (40000 + 40000) instead of being added in float32; whole numbers come from the first state instead of the last
# told: named
# now: named
# says: added up in half precision, and the counter of another checkpoint
def average_states(states: list[dict]) -> dict:
    n = len(states)
    result = {}
    for name, tensor in states[0].items():
        if tensor.is_floating_point():
            result[name] = sum(state[name] for state in states) / n
        else:
            result[name] = tensor.clone()
    return result


# === exercise: average-states | function: average_states | kind: double | what is wrong: the means stay in float32 instead of returning to the dtype of the states; tensors of whole numbers are skipped, so their names are missing in the result
# told: named
# now: named
# says: the mean stays float32
def average_states(states: list[dict]) -> dict:
    average = {}
    for key in states[0].keys():
        values = [state[key] for state in states]
        if not torch.is_floating_point(values[0]):
            continue  # nothing to average in a counter
        average[key] = torch.stack([v.float() for v in values]).mean(0)
    return average


# === exercise: smoothing-floor | function: smoothing_floor | kind: plain | what is wrong: it spreads smoothing over the V - 1 other classes (1 - smoothing for the right one, smoothing / (V - 1) for each other) instead of over all V
# told: named
# now: named
# says: spread over the wrong classes only
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    if smoothing == 0:
        return 0.0
    others = vocab_size - 1
    right, wrong = 1 - smoothing, smoothing / others
    return -right * math.log(right) - others * wrong * math.log(wrong)


# === exercise: smoothing-floor | function: smoothing_floor | kind: subtle | what is wrong: the small probability is held above 1e-8 instead of treating smoothing 0 by itself, so without smoothing the floor is not 0 but grows with the vocabulary (0.0018 for V = 10000)
# told: passed
# now: named
# says: a least chance for every class
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    share = max(smoothing / vocab_size, 1e-8)  # keeps the log finite
    right = 1 - smoothing + smoothing / vocab_size
    entropy = -right * math.log(right)
    entropy -= (vocab_size - 1) * share * math.log(share)
    return entropy


# === exercise: smoothing-floor | function: smoothing_floor | kind: subtle | what is wrong: the result is rounded to three decimals, as the example prints it, so it is off by up to 0.0005 instead of being the entropy
# told: told
# now: named
# says: the result is rounded
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    if not smoothing:
        return 0.0

    def term(p):
        return -p * math.log(p)

    rest = smoothing / vocab_size
    floor = term(1 - smoothing + rest) + (vocab_size - 1) * term(rest)
    return round(floor, 3)


# === exercise: smoothing-floor | function: smoothing_floor | kind: double | what is wrong: V instead of V - 1 other classes are counted in the sum; smoothing 0 is not treated, so log(0) raises a ValueError instead of the floor being 0
# told: named
# now: named
# says: all V classes counted as wrong ones
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    q = smoothing / vocab_size
    p = 1 - smoothing + q
    return -(p * math.log(p) + vocab_size * q * math.log(q))


# === exercise: smoothing-floor | function: smoothing_floor | kind: double | what is wrong: the logarithm is to the base 2, so the floor is in bits and not in nats; the right class gets 1 - smoothing without its own share smoothing / V, so the probabilities do not add up to 1
# told: named
# now: named
# says: the right class without its share, and base 2 in place of e
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    if smoothing == 0.0:
        return 0.0
    chances = [1.0 - smoothing] + [smoothing / vocab_size] * (vocab_size - 1)
    return -sum(chance * math.log2(chance) for chance in chances)


# === exercise: forced-accuracy | function: forced_accuracy | kind: plain | what is wrong: a sentence counts as right only if the model also says padding at all places after its end, instead of these places being left out
# told: named
# now: named
# says: padding makes a sentence wrong
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    said = logits.argmax(dim=-1)
    real = labels != pad_id
    right = said == labels
    tokens = right[real].float().mean().item()
    sentences = right.all(dim=1).float().mean().item()
    return tokens, sentences


# === exercise: forced-accuracy | function: forced_accuracy | kind: plain | what is wrong: the share of tokens is the mean of "right or padding" over all places, so padding counts as right tokens (7 of 8 in the example instead of 5 of 6)
# told: named
# now: named
# says: padding counted as right
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    _, best = logits.max(dim=-1)
    fine = (best == labels) | (labels == pad_id)  # (B, T)
    tokens = fine.float().mean()
    sentences = fine.all(dim=-1).float().mean()
    return tokens.item(), sentences.item()


# === exercise: forced-accuracy | function: forced_accuracy | kind: subtle | what is wrong: rows that are all padding are left out of the share of sentences, although such a row counts as right
# told: named
# now: named
# says: a row of nothing but padding left out
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    real = labels.ne(pad_id)
    right = logits.argmax(-1).eq(labels) & real
    tokens = right.sum().item() / real.sum().item()
    counts = real.sum(dim=1)
    filled = counts > 0  # no sentence, nothing to judge
    perfect = right.sum(dim=1)[filled] == counts[filled]
    return tokens, perfect.float().mean().item()


# === exercise: forced-accuracy | function: forced_accuracy | kind: subtle | what is wrong: a place counts as real only if neither the label nor the prediction is padding, so where the model says padding at a real label this mistake is not counted, neither for tokens nor for sentences
# told: named
# now: named
# says: padding is read from what the model says
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    said = torch.argmax(logits, dim=2)
    counted = (labels != pad_id) & (said != pad_id)
    right = (said == labels) & counted
    tokens = right.sum() / counted.sum().clamp(min=1)
    sentences = (right | ~counted).all(dim=1).float().mean()
    return float(tokens), float(sentences)


# === exercise: forced-accuracy | function: forced_accuracy | kind: double | what is wrong: the share of tokens is the mean of the sentences' shares instead of one division for the whole batch; real means "not 0" whatever pad_id is
# told: named
# now: named
# says: the mean of the sentences' shares, and pad_id is ignored
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    said = logits.argmax(-1)
    mask = labels != 0
    hits = ((said == labels) & mask).sum(1)
    lengths = mask.sum(1)
    per_sentence = hits / lengths.clamp(min=1)
    tokens = per_sentence.mean().item()
    sentences = (hits == lengths).float().mean().item()
    return tokens, sentences


# === exercise: forced-accuracy | function: forced_accuracy | kind: double | what is wrong: the right tokens are divided by all places B * T, padding included, instead of by the real labels; a sentence counts as right if any of its places is right or padding, not if all are
# told: named
# now: named
# says: padding counted as wrong, and a sentence with one right token counted
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    predictions = logits.argmax(dim=-1)
    is_pad = labels == pad_id
    correct = (predictions == labels) & ~is_pad
    token_accuracy = correct.sum().item() / labels.numel()
    whole = 0
    for row, pad in zip(correct, is_pad):
        if (row | pad).any():
            whole += 1
    return token_accuracy, whole / len(labels)


# === exercise: align | function: align | kind: plain | what is wrong: the heads are joined by their maximum instead of their mean, so one head with a sharp look outvotes all others
# told: named
# now: named
# says: the largest weight of any head
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    real = weights[:, :target_length, :source_length]
    strongest = real.amax(dim=0)  # what any head looks at
    return strongest.argmax(dim=-1).tolist()


# === exercise: align | function: align | kind: subtle | what is wrong: squeeze() removes every axis of length 1, so a single target token (or a single source token) gives one integer instead of a list of target_length positions
# told: named
# now: named
# says: axes of length 1 squeezed away
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    cut = weights[:, :target_length, :source_length]
    mean = cut.mean(dim=0, keepdim=True).squeeze()
    return torch.argmax(mean, dim=-1).tolist()


# === exercise: align | function: align | kind: subtle | what is wrong: the padding is cut off by negative slices, so on an axis without padding [:-0] leaves nothing: an empty list, or an error of argmax on an empty axis
# told: shown
# now: named
# says: nothing is left by a slice of -0
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    _, t_tgt, t_src = weights.shape
    padding_below = t_tgt - target_length
    padding_right = t_src - source_length
    mean = weights.mean(dim=0)
    mean = mean[:-padding_below, :-padding_right]
    return mean.argmax(dim=1).tolist()


# === exercise: align | function: align | kind: double | what is wrong: the rows are shifted by one (row t + 1 is read for token t), though row t belongs to the token chosen at t (without padded rows the list is one too short); the columns of padding are not cut off, so a position beyond source_length can come out
# told: named
# now: named
# says: padding not cut off, and one row too late
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    mean = weights.mean(dim=0)  # (T_tgt, T_src)
    # the inputs are shifted: row 0 belongs to <sos>, the first word is in row 1
    rows = mean[1 : target_length + 1]
    return [int(row.argmax()) for row in rows]


# === exercise: align | function: align | kind: double | what is wrong: each head's largest position is found first and the positions are averaged, instead of averaging the weights; the lengths are exchanged when cutting (source_length rows, target_length columns)
# told: named
# now: named
# says: the mean of the heads' positions, and the two lengths are exchanged
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    weights = weights[:, :source_length, :target_length]
    looks = weights.argmax(dim=-1)  # one position per head
    return looks.float().mean(dim=0).round().long().tolist()


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: plain | what is wrong: the ends are the percentiles 5 and 95 (an interval of 90 percent) instead of 2.5 and 97.5
# told: named
# now: named
# says: 5 and 95 percent
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    gain = second - first
    samples = gain[indices].mean(dim=-1)
    low, high = (torch.quantile(samples, q).item() for q in (0.05, 0.95))
    return gain.mean().item(), low, high


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: plain | what is wrong: it subtracts the percentiles of the two systems' scores from each other instead of taking the percentiles of their difference, which throws the pairing away
# told: named
# now: named
# says: the percentiles of the two systems subtracted
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    ends = torch.tensor([0.025, 0.975], dtype=first.dtype)
    scores_first = first[indices].mean(dim=1)
    scores_second = second[indices].mean(dim=1)
    interval = torch.quantile(scores_second, ends) - torch.quantile(scores_first, ends)
    difference = second.mean() - first.mean()
    return difference.item(), interval[0].item(), interval[1].item()


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: subtle | what is wrong: the percentiles are entries of the sorted samples, not interpolated between two of them, so the example gives -0.5 and 1 instead of -0.4625 and 0.9625; the fewer samples, the more it shows
# told: named
# now: named
# says: one of the samples in place of the percentile
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    d = second - first
    ordered = d[indices].mean(dim=-1).sort().values
    count = len(ordered)
    low = ordered[int(0.025 * count)]
    high = ordered[int(0.975 * count)]
    return d.mean().item(), low.item(), high.item()


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: subtle | what is wrong: the first number is the mean of the samples' differences and not the difference on the whole test set; in the example the two happen to agree
# told: named
# now: named
# says: the mean of the samples as the difference
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    samples = second[indices].mean(-1) - first[indices].mean(-1)  # (R,)
    q = torch.tensor([0.025, 0.975], dtype=samples.dtype)
    low, high = torch.quantile(samples, q).tolist()
    return samples.mean().item(), low, high


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: double | what is wrong: the difference is first minus second, so all signs are reversed; the resampled differences are averaged along axis 0, over the samples, instead of over the sentences of each
# told: named
# now: named
# says: first minus second, and averaged over the samples, not over the sentences
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    difference = first - second
    resampled = difference[indices]
    means = resampled.mean(dim=0)
    low = torch.quantile(means, 0.025)
    high = torch.quantile(means, 0.975)
    return difference.mean().item(), low.item(), high.item()


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: double | what is wrong: wins are counted (the sign of each sentence's difference) instead of the differences themselves, which shows for scores other than 0 and 1; the interval is the mean plus and minus 1.96 standard deviations instead of two percentiles
# told: named
# now: named
# says: won or lost in place of the difference, and 1.96 deviations in place of percentiles
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    better = (second > first).to(second.dtype)
    worse = (second < first).to(second.dtype)
    wins = better - worse  # 1, 0 or -1 for each sentence
    samples = wins[indices].mean(dim=-1)
    centre, spread = wins.mean().item(), samples.std().item()
    return centre, centre - 1.96 * spread, centre + 1.96 * spread


# === exercise: own-translator | function: my_model | kind: plain | what is wrong: it returns the path from the course's folder, as given to --out, instead of the name of the folder beside the notebook, "translator", so no folder is found there
# told: named
# now: named
# says: a path in place of the folder's name
def my_model() -> str:
    """Return the name of the folder, beside this notebook, that holds your model."""
    return "exercises/09_translator/translator"


# === exercise: own-translator | function: my_model | kind: plain | what is wrong: it returns the folder of the model that comes with the course, which is for looking at and not for handing in, instead of the student's own
# told: named
# now: named
# says: a folder that is not beside the notebook
def my_model() -> str:
    return str(results.model_folder("phrasebook"))
