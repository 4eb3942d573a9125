# ruff: noqa
# fmt: off

# === exercise: fixed-batch | function: fixed_batch | kind: subtle | what is wrong: the place for the end of a target is forgotten unless a source is longer, so a target that fills a width exactly takes that width and is then cut
# told: named
# now: named
# says: no place for the special token
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    need = max(max(map(len, sources)), max(map(len, targets)))
    fitting = [w for w in sorted(widths) if w >= need]
    if not fitting:
        raise ValueError(f"no width holds {need}")
    W = fitting[0]

    def fill(rows):
        out = torch.full((len(rows), W), pad_id)
        for i, row in enumerate(rows):
            row = row[:W]
            out[i, : len(row)] = torch.tensor(row, dtype=torch.long)
        return out

    return (
        fill(sources),
        fill([[sos_id, *t] for t in targets]),
        fill([[*t, eos_id] for t in targets]),
    )


# === exercise: fixed-batch | function: fixed_batch | kind: double | what is wrong: the widest of the widths is taken and not the narrowest that fits AND the source is given an end-of-sentence token
# told: named
# now: named
# says: the widest in place of the narrowest, and the source with special tokens
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    need = max(max(len(s) + 1 for s in sources), max(len(t) + 1 for t in targets))
    W = max(widths)
    if need > W:
        raise ValueError("too long")
    pad = lambda row: row + [pad_id] * (W - len(row))
    source = torch.tensor([pad(s + [eos_id]) for s in sources])
    inputs = torch.tensor([pad([sos_id] + t) for t in targets])
    labels = torch.tensor([pad(t + [eos_id]) for t in targets])
    return source, inputs, labels


# === exercise: fixed-batch | function: fixed_batch | kind: subtle | what is wrong: the sources are filled up with 0 whatever pad_id is
# told: named
# now: named
# says: filled with 0 in place of pad_id
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    need = max([len(s) for s in sources] + [len(t) + 1 for t in targets])
    for W in sorted(widths):
        if need <= W:
            break
    else:
        raise ValueError(f"{need} places are needed, the widths are {widths}")
    source = torch.zeros(len(sources), W, dtype=torch.long)
    for row, ids in zip(source, sources):
        row[: len(ids)] = torch.tensor(ids, dtype=torch.long)
    inputs = torch.full_like(source, pad_id)
    labels = torch.full_like(source, pad_id)
    for i, ids in enumerate(targets):
        inputs[i, : len(ids) + 1] = torch.tensor([sos_id, *ids])
        labels[i, : len(ids) + 1] = torch.tensor([*ids, eos_id])
    return source, inputs, labels


# === exercise: average-states | function: average_states | kind: plain | what is wrong: a running mean of the mean and the next state, so later states weigh more
# told: named
# now: named
# says: an average of averages
def average_states(states):
    result = {k: v.clone() for k, v in states[0].items()}
    for state in states[1:]:
        for k, v in state.items():
            if v.is_floating_point():
                result[k] = ((result[k].float() + v.float()) / 2).to(v.dtype)
            else:
                result[k] = v.clone()
    return result


# === exercise: average-states | function: average_states | kind: double | what is wrong: the sum starts with the first state's own tensors and is added to in place, so that state is changed AND counters are averaged, too, and rounded down
# told: named
# now: named
# says: changes its argument in place
def average_states(states):
    out = dict(states[0])
    for state in states[1:]:
        for name in out:
            out[name] += state[name]
    return {
        name: (x / len(states) if x.is_floating_point() else x // len(states))
        for name, x in out.items()
    }


# === exercise: smoothing-floor | function: smoothing_floor | kind: plain | what is wrong: the smoothing is spread over the V - 1 wrong classes alone
# told: named
# now: named
# says: spread over the wrong classes only
def smoothing_floor(vocab_size, smoothing):
    if smoothing == 0:
        return 0.0
    right = 1 - smoothing
    other = smoothing / (vocab_size - 1)
    return -(right * math.log(right) + (vocab_size - 1) * other * math.log(other))


# === exercise: smoothing-floor | function: smoothing_floor | kind: double | what is wrong: only one of the V - 1 other classes is counted AND the logarithm has base 2
# told: named
# now: named
# says: one wrong class in place of V - 1, and base 2 in place of e
def smoothing_floor(vocab_size, smoothing):
    other = smoothing / vocab_size
    p = torch.tensor([1 - smoothing + other, other], dtype=torch.float64)
    return float(-(p * torch.log2(p).nan_to_num(neginf=0.0)).sum())


# === exercise: forced-accuracy | function: forced_accuracy | kind: subtle | what is wrong: a position counts as real if the predicted token is not padding, not if the label is not
# told: told
# now: named
# says: padding is read from what the model says
def forced_accuracy(logits, labels, pad_id=0):
    said = logits.argmax(-1)
    real = (labels != pad_id) & (said != pad_id)
    right = (said == labels) & real
    tokens = right.sum() / real.sum().clamp(min=1)
    sentences = (right | ~real).all(-1).double().mean()
    return tokens.item(), sentences.item()


# === exercise: forced-accuracy | function: forced_accuracy | kind: double | what is wrong: the share of tokens is a mean of the sentences' shares AND a sentence counts as right if any of its tokens is
# told: named
# now: named
# says: the mean of the sentences' shares, and a sentence with one right token counted
def forced_accuracy(logits, labels, pad_id=0):
    t, s = [], []
    for l, y in zip(logits.argmax(-1).tolist(), labels.tolist()):
        hits = [a == b for a, b in zip(l, y) if b != pad_id]
        if not hits:
            s.append(1.0)
            continue
        t.append(sum(hits) / len(hits))
        s.append(float(any(hits)))
    return sum(t) / len(t), sum(s) / len(s)


# === exercise: align | function: align | kind: subtle | what is wrong: columns of padding are not cut off, only rows
# told: named
# now: named
# says: padding not cut off
def align(weights, source_length, target_length):
    mean = weights[:, :target_length].mean(0)
    return [int(row.argmax()) for row in mean]


# === exercise: align | function: align | kind: double | what is wrong: the head with the single largest weight decides, not the mean of the heads AND the list has one entry for each source token
# told: named
# now: named
# says: the largest weight of any head, and rows and columns exchanged
def align(weights, source_length, target_length):
    strongest = weights[:, :target_length, :source_length].amax(dim=0)
    return strongest.argmax(dim=0).tolist()


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: subtle | what is wrong: the two ends are the percentiles 5 and 95
# told: named
# now: named
# says: 5 and 95 percent
def paired_bootstrap(first, second, indices):
    d = (second - first).double()
    means = d[indices].mean(dim=1)
    low, high = torch.quantile(means, torch.tensor([0.05, 0.95], dtype=torch.float64))
    return d.mean().item(), low.item(), high.item()


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: double | what is wrong: first minus second AND the first number is the mean over the samples, not that of the whole test set
# told: named
# now: named
# says: first minus second, and the mean of the samples as the difference
def paired_bootstrap(first, second, indices):
    sampled = first.double()[indices].mean(1) - second.double()[indices].mean(1)
    return (
        float(sampled.mean()),
        float(torch.quantile(sampled, 0.025)),
        float(torch.quantile(sampled, 0.975)),
    )


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: subtle | what is wrong: the ends are entries of the sorted list, without a step between neighbours
# told: named
# now: named
# says: one of the samples in place of the percentile
def paired_bootstrap(first, second, indices):
    delta = second - first
    values = sorted(delta[row].mean().item() for row in indices)
    n = len(values)
    return delta.mean().item(), values[int(0.025 * n)], values[min(n - 1, int(0.975 * n))]
