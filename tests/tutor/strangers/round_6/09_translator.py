# ruff: noqa
# fmt: off

# === exercise: fixed-batch | function: fixed_batch | kind: double | what is wrong: the extra place is counted for the sources, too, so a longest source that fits a width exactly gets the next width (or a ValueError) AND inputs and labels are filled up to the width with 0 instead of pad_id, which shows with another pad_id
# told: named
# now: named
# says: a place for a special token in the source, too, and filled with 0 in place of pad_id
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    longest = max(len(row) for row in [*sources, *targets])
    need = longest + 1
    fitting = sorted(w for w in widths if w >= need)
    if not fitting:
        raise ValueError(f"a width of at least {need} is needed, there are {widths}")
    width = fitting[0]
    source = torch.tensor([row + [pad_id] * (width - len(row)) for row in sources])
    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    more = width - inputs.shape[1]
    return source, F.pad(inputs, (0, more)), F.pad(labels, (0, more))


# === exercise: average-states | function: average_states | kind: subtle | what is wrong: .float() returns the same tensor if it is float32 already, so += writes the sum, and /= the mean, into the first state; the result is right, but the argument is changed; shows only for float32
# told: named
# now: named
# says: changes its argument in place
def average_states(states):
    average = {}
    for name, last in states[-1].items():
        if not last.is_floating_point():
            average[name] = last.clone()
            continue
        total = states[0][name].float()
        for state in states[1:]:
            total += state[name].float()
        total /= len(states)
        average[name] = total.to(last.dtype)
    return average


# === exercise: average-states | function: average_states | kind: plain | what is wrong: averages the average so far with the next state, (mean + x) / 2, so later states weigh more; right for one and two states, wrong from three on
# told: named
# now: named
# says: an average of averages
def average_states(states):
    result = {}
    for name, tensor in states[-1].items():
        if torch.is_floating_point(tensor):
            mean = states[0][name].to(torch.float32)
            for other in states[1:]:
                mean = (mean + other[name].to(torch.float32)) / 2
            result[name] = mean.to(tensor.dtype, copy=True)
        else:
            result[name] = tensor.clone()
    return result


# === exercise: smoothing-floor | function: smoothing_floor | kind: plain | what is wrong: spreads the smoothing over the V - 1 other classes only: 1 - ε for the right class and ε / (V - 1) for each other, instead of 1 - ε + ε / V and ε / V
# told: named
# now: named
# says: spread over the wrong classes only
def smoothing_floor(vocab_size, smoothing):
    if smoothing == 0:
        return 0.0
    others = vocab_size - 1
    chances = [1 - smoothing] + [smoothing / others] * others
    return -sum(p * math.log(p) for p in chances)


# === exercise: forced-accuracy | function: forced_accuracy | kind: subtle | what is wrong: a sentence is right if right / real equals 1, and for a row of nothing but padding that is 0 / 0 = nan, so it counts as wrong instead of right; shows only with a row without a real label
# told: passed
# now: named
# says: a row of nothing but padding counted as wrong
def forced_accuracy(logits, labels, pad_id=0):
    said = logits.argmax(dim=-1)
    real = labels.ne(pad_id)
    hits = said.eq(labels) & real
    share = hits.sum(dim=1) / real.sum(dim=1)
    whole = share.eq(1).float().mean()
    return (hits.sum() / real.sum()).item(), whole.item()


# === exercise: align | function: align | kind: plain | what is wrong: takes the largest weight of any head instead of the mean over the heads; the example by hand comes out right, heads of which one is sharp and the others agree on another word do not
# told: named
# now: named
# says: the largest weight of any head
def align(weights, source_length, target_length):
    strongest = weights.amax(dim=0)
    positions = []
    for row in strongest[:target_length]:
        positions.append(int(row[:source_length].argmax()))
    return positions


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: subtle | what is wrong: the percentiles are entries of the sorted list at int(q * R), without interpolation between neighbours; with the three samples of the example -0.5 and 1 instead of -0.4625 and 0.9625
# told: named
# now: named
# says: one of the samples in place of the percentile
def paired_bootstrap(first, second, indices):
    gain = second - first
    resampled = sorted(gain[row].mean().item() for row in indices)
    count = len(resampled)
    low = resampled[int(0.025 * count)]
    high = resampled[int(0.975 * count)]
    return gain.mean().item(), low, high


# === exercise: paired-bootstrap | function: paired_bootstrap | kind: double | what is wrong: the first number is the mean of the samples' differences, not the difference on the whole test set AND the ends are the percentiles 5 and 95 instead of 2.5 and 97.5
# told: named
# now: named
# says: the mean of the samples as the difference, and 5 and 95 percent
def paired_bootstrap(first, second, indices):
    samples = second[indices].mean(-1) - first[indices].mean(-1)
    low = torch.quantile(samples, 0.05)
    high = torch.quantile(samples, 0.95)
    return samples.mean().item(), low.item(), high.item()
