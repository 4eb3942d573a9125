# ruff: noqa
# fmt: off

# === exercise: fixed-batch | function: fixed_batch | kind: plain | what is wrong: the labels are filled up with -100 (PyTorch's ignore_index) in place of pad_id, in every column that is added behind the longest target; shows whenever the width is larger than the longest target plus 1
# told: shown
# now: named
# says: the labels padded with -100
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    need = max(max(len(s) for s in sources), max(len(t) for t in targets) + 1)
    fitting = [w for w in widths if w >= need]
    if not fitting:
        raise ValueError(f"no width holds {need} tokens")
    width = min(fitting)
    source = torch.tensor([s + [pad_id] * (width - len(s)) for s in sources])
    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    more = width - inputs.shape[1]
    inputs = F.pad(inputs, (0, more), value=pad_id)
    labels = F.pad(labels, (0, more), value=-100)  # the loss does not count these
    return source, inputs, labels


# === exercise: fixed-batch | function: fixed_batch | kind: subtle | what is wrong: the longest row is looked for with max(rows) without key=len, which gives the row that is last in lexicographic order; where that row is not the longest one, the width can be too small, and longer sentences are cut in silence in place of a larger width or a ValueError
# told: wrong
# now: named
# says: a row that is not the longest decides the width
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    longest_source = len(max(sources))
    longest_target = len(max(targets)) + 1
    need = max(longest_source, longest_target)

    for width in sorted(widths):
        if width >= need:
            break
    else:
        raise ValueError(f"a width of at least {need} is needed, there is {widths}")

    def to_width(x):
        return F.pad(x, (0, width - x.size(1)), value=pad_id)

    rows = [(list(row) + width * [pad_id])[:width] for row in sources]
    source = torch.tensor(rows, dtype=torch.long)
    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    return source, to_width(inputs), to_width(labels)


# === exercise: fixed-batch | function: fixed_batch | kind: double | what is wrong: first, the caller's source lists are filled up in place with +=, so that they hold padding after the call; second, shift_right is called without pad_id, so that with a pad_id other than 0 the shorter targets of the batch are filled with 0 up to the longest one and with pad_id only behind it
# told: named
# now: named
# says: changes its argument in place
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    needed = 0
    for src, tgt in zip(sources, targets):
        needed = max(needed, len(src), len(tgt) + 1)
    W = None
    for w in widths:
        if w >= needed and (W is None or w < W):
            W = w
    if W is None:
        raise ValueError(f"none of the widths {widths} has {needed} places")

    for src in sources:
        src += [pad_id] * (W - len(src))
    source = torch.tensor(sources)

    inputs, labels = shift_right(targets, sos_id, eos_id)
    missing = W - inputs.shape[-1]
    inputs, labels = (F.pad(x, (0, missing), value=pad_id) for x in (inputs, labels))
    return source, inputs, labels


# === exercise: average-states | function: average_states | kind: plain | what is wrong: each state is averaged with the mean so far by (mean + x) / 2, which gives the later states more weight; shows with three or more states, right with one and two
# told: named
# now: named
# says: an average of averages
def average_states(states):
    result = {}
    for name, last in states[-1].items():
        if not last.is_floating_point():
            result[name] = last.clone()
            continue
        mean = states[0][name].float()
        for state in states[1:]:
            mean = (mean + state[name].float()) / 2
        result[name] = mean.to(last.dtype).clone()
    return result


# === exercise: average-states | function: average_states | kind: subtle | what is wrong: only float32 and float64 are taken for floating-point numbers, so that tensors in float16 or bfloat16 are not averaged but copied from the last state; right for every state in float32
# told: shown
# now: named
# says: half precision is copied, not averaged
def average_states(states: list[dict]) -> dict:
    def merge(tensors):
        if tensors[-1].dtype in (torch.float32, torch.float64):
            stacked = torch.stack([t.to(torch.float32) for t in tensors])
            return stacked.mean(dim=0).to(tensors[-1].dtype)
        return tensors[-1].clone()

    return {name: merge([s[name] for s in states]) for name in states[-1]}


# === exercise: average-states | function: average_states | kind: double | what is wrong: first, tensors of whole numbers are copied from the first state and not from the last (shows where the counters differ); second, the means stay float32 and do not return to the dtype of the states (shows with float16, bfloat16 and float64)
# told: named
# now: named
# says: the mean stays float32
def average_states(states):
    n = len(states)
    averaged = {}
    for name, tensor in states[0].items():
        if torch.is_floating_point(tensor):
            total = torch.zeros(tensor.shape, dtype=torch.float32, device=tensor.device)
            for s in states:
                total += s[name].float()
            averaged[name] = total / n
        else:
            averaged[name] = tensor.clone()
    return averaged


# === exercise: smoothing-floor | function: smoothing_floor | kind: plain | what is wrong: the exponential of the entropy (a perplexity) is returned in place of the entropy in nats; shows with every smoothing above 0
# told: told
# now: named
# says: the perplexity in place of the loss
def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    if smoothing == 0:
        return 0.0
    other = smoothing / vocab_size
    right = 1 - smoothing + other
    entropy = -right * math.log(right) - (vocab_size - 1) * other * math.log(other)
    return math.exp(entropy)


# === exercise: smoothing-floor | function: smoothing_floor | kind: subtle | what is wrong: in the form (1 - ε) · loss of the right class + ε · mean loss over the classes, the mean is taken over the wrong classes alone and leaves out the right one, which has its part ε / V too; the floor is too high by ε / V · ln(right / other), 0.14 at V = 4 and ε = 0.2, but hardly anything where V is large
# told: useless
# now: named
# says: the mean over the wrong classes alone
def smoothing_floor(vocab_size, smoothing):
    if not smoothing:
        return 0.0
    p_other = smoothing / vocab_size
    p_right = 1.0 - smoothing + p_other
    nll = -math.log(p_right)  # the part with the hard target
    spread = -math.log(p_other)  # the part with the uniform target
    return (1.0 - smoothing) * nll + smoothing * spread


# === exercise: smoothing-floor | function: smoothing_floor | kind: double | what is wrong: first, each other class gets ε / (V - 1) in place of ε / V while the right one keeps 1 - ε + ε / V, so that the probabilities add up to more than 1 (hardly seen where V is large); second, the logarithm is to base 2, so that the result is in bits and not in nats
# told: useless
# now: named
# says: the other classes share more than is left, and base 2 in place of e
def smoothing_floor(vocab_size, smoothing):
    if smoothing <= 0:
        return 0.0
    probabilities = torch.full(
        (vocab_size,), smoothing / (vocab_size - 1), dtype=torch.float64
    )
    probabilities[0] = 1 - smoothing + smoothing / vocab_size
    return -(probabilities * probabilities.log2()).sum().item()


# === exercise: forced-accuracy | function: forced_accuracy | kind: plain | what is wrong: the share of right sentences is not counted but estimated from the share of tokens, as tokens ** (mean length of a sentence); shows wherever not every token is right
# told: useless
# now: named
# says: the share of sentences estimated, not counted
def forced_accuracy(logits, labels, pad_id=0):
    real = labels != pad_id
    right = (logits.argmax(-1) == labels) & real
    tokens = (right.sum() / real.sum()).item()
    length = real.sum(-1).float().mean().item()
    return tokens, tokens**length


# === exercise: forced-accuracy | function: forced_accuracy | kind: subtle | what is wrong: a place counts as real only if neither the label nor what the model says is pad_id; where the model says padding in place of a real label, the mistake is left out of both shares
# told: named
# now: named
# says: padding is read from what the model says
def forced_accuracy(
    logits: torch.Tensor, labels: torch.Tensor, pad_id: int = 0
) -> tuple[float, float]:
    said = logits.argmax(dim=-1)
    is_pad = (labels == pad_id) | (said == pad_id)
    hit = said == labels
    tokens = hit[~is_pad].sum().item() / max(1, (~is_pad).sum().item())
    whole = (hit | is_pad).all(dim=-1).float().mean().item()
    return tokens, whole


# === exercise: forced-accuracy | function: forced_accuracy | kind: double | what is wrong: first, a label is taken for real if it is larger than pad_id and not if it differs from it, so that with a pad_id above 0 labels with smaller ids are not counted; second, a sentence is right if its right places divided by its real places are 1, which is 0 / 0 = nan for a row that is all padding, so that such a row counts as wrong
# told: named
# now: named
# says: a row of nothing but padding counted as wrong, and ids below pad_id taken for padding
def forced_accuracy(logits, labels, pad_id=0):
    mask = (labels > pad_id).float()
    correct = logits.argmax(-1).eq(labels).float() * mask

    n_correct = correct.sum(dim=1)
    n_real = mask.sum(dim=1)

    token_share = n_correct.sum() / n_real.sum()
    sentence_share = (n_correct / n_real == 1).float().mean()
    return token_share.item(), sentence_share.item()


# === exercise: align | function: align | kind: plain | what is wrong: the position that is returned is the mean position, weighted by the attention and rounded, and not that of the largest weight; shows where a row has weight on both sides or a flat tail, as in the first row of the example
# told: shown
# now: named
# says: the mean position in place of the largest weight
def align(weights, source_length, target_length):
    attention = weights[:, :target_length, :source_length].mean(dim=0)
    attention = attention / attention.sum(dim=-1, keepdim=True)
    positions = torch.arange(source_length, dtype=attention.dtype, device=attention.device)
    return (attention @ positions).round().long().tolist()


# === exercise: align | function: align | kind: subtle | what is wrong: each head names its own largest weight and the most frequent position wins, in place of the largest weight of the heads' mean; shows where two unsure heads agree against a sure one, or where the heads all differ (then the smallest position wins)
# told: named
# now: named
# says: a vote of the heads
def align(weights: torch.Tensor, source_length: int, target_length: int) -> list[int]:
    cut = weights[:, :target_length, :source_length]
    per_head = cut.argmax(dim=-1)  # (heads, target_length)
    return per_head.mode(dim=0).values.tolist()


# === exercise: align | function: align | kind: double | what is wrong: first, the largest weight of any head is taken (amax over the heads) in place of their mean; second, the source's padding is not cut off before the argmax, and a position in it is only set back to the last real token afterwards, which shows where a column of padding has the largest weight
# told: shown
# now: named
# says: the largest weight of any head, and padding not cut off
def align(weights, source_length, target_length):
    best = weights.amax(dim=0)
    looked_at = []
    for t in range(target_length):
        position = int(best[t].argmax())
        looked_at.append(min(position, source_length - 1))
    return looked_at


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: subtle | what is wrong: for each sentence it is only noted which system is better (+1, 0, -1), and not by how much; right for scores of 0 and 1, wrong for all others
# told: named
# now: named
# says: won or lost in place of the difference
def paired_bootstrap(first, second, indices):
    better = (second > first).float() - (second < first).float()
    samples = better[indices].mean(dim=-1)
    ends = torch.tensor([0.025, 0.975], dtype=samples.dtype, device=samples.device)
    low, high = torch.quantile(samples, ends).tolist()
    return better.mean().item(), low, high


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: subtle | what is wrong: the percentiles are read from the sorted samples at int(0.025 · R) and int(0.975 · R), without interpolation; with few samples (as in the example) the ends are off by a lot, with a thousand hardly at all
# told: named
# now: named
# says: one of the samples in place of the percentile
def paired_bootstrap(first, second, indices):
    delta = second - first
    draws = sorted(delta[row].mean().item() for row in indices)
    r = len(draws)
    return delta.mean().item(), draws[int(0.025 * r)], draws[int(0.975 * r)]


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: double | what is wrong: first, a sentence that is drawn several times into a sample counts only once (unique), which makes the samples differ from those drawn with replacement wherever a row has repetitions; second, the difference that is returned is the mean over the samples and not that of the whole test set
# told: shown
# now: named
# says: a sentence that is drawn twice counts once, and the mean of the samples as the difference
def paired_bootstrap(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> tuple[float, float, float]:
    differences = []
    for sample in indices:
        chosen = torch.unique(sample)
        differences.append(second[chosen].mean() - first[chosen].mean())
    differences = torch.stack(differences)
    low = torch.quantile(differences, 0.025)
    high = torch.quantile(differences, 0.975)
    return differences.mean().item(), low.item(), high.item()
