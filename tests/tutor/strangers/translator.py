"""Wrong answers to chapter 9, written from its notebook alone."""

# ruff: noqa: E501, F811, RUF005

import math

import torch
import torch.nn.functional as F

from tests.tutor.bank import stranger
from transformer.decoder import shift_right


@stranger(
    "fixed-batch",
    "the longest target is counted without its special token, and F.pad with a negative "
    "number cuts the last column off where that decides",
    kind="subtle",
    first="named",
    verdict="named",
    says="no place for the special token",
)
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    need = max(max(len(row) for row in sources), max(len(row) for row in targets))
    fitting = [width for width in widths if width >= need]
    if not fitting:
        raise ValueError(f"no width holds {need} places")
    width = min(fitting)
    source = torch.tensor([row + [pad_id] * (width - len(row)) for row in sources])
    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    more = width - inputs.shape[1]
    inputs = F.pad(inputs, (0, more), value=pad_id)
    labels = F.pad(labels, (0, more), value=pad_id)
    return source, inputs, labels


@stranger(
    "fixed-batch",
    "the first width in the tuple that is large enough, not the least",
    kind="subtle",
    first="named",
    verdict="named",
    says="the first width that fits, not the narrowest",
)
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    need = max(max(map(len, sources)), max(map(len, targets)) + 1)
    for width in widths:
        if width >= need:
            break
    else:
        raise ValueError(f"{need} places are needed, the widths are {widths}")
    source = torch.full((len(sources), width), pad_id)
    for row, ids in enumerate(sources):
        source[row, : len(ids)] = torch.tensor(ids)
    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    more = (0, width - inputs.shape[1])
    return source, F.pad(inputs, more, value=pad_id), F.pad(labels, more, value=pad_id)


@stranger(
    "fixed-batch",
    "F.pad without a value: inputs and labels are filled with 0, whatever pad_id is",
    kind="subtle",
    first="shown",
    verdict="named",
    says="filled with 0 in place of pad_id",
)
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    need = max(max(map(len, sources)), 1 + max(map(len, targets)))
    fitting = sorted(width for width in widths if width >= need)
    if len(fitting) == 0:
        raise ValueError(f"a width of {need} would be needed")
    width = fitting[0]
    source = torch.tensor([row + [pad_id] * (width - len(row)) for row in sources])
    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    more = width - inputs.size(1)
    return source, F.pad(inputs, (0, more)), F.pad(labels, (0, more))


@stranger(
    "fixed-batch",
    "the source gets an <eos>, too AND a width that fits exactly is passed over",
    kind="double",
    first="shown",
    verdict="named",
    says="a width that fits exactly is passed over, and the source with special tokens",
)
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    need = max(len(row) + 1 for row in [*sources, *targets])
    fitting = [width for width in widths if width > need]
    if not fitting:
        raise ValueError("too long")
    width = min(fitting)

    def fill(rows):
        return torch.tensor([row + [pad_id] * (width - len(row)) for row in rows])

    source = fill([row + [eos_id] for row in sources])
    inputs = fill([[sos_id, *row] for row in targets])
    labels = fill([[*row, eos_id] for row in targets])
    return source, inputs, labels


@stranger(
    "fixed-batch",
    "a sentence that is too long is cut to the largest width",
    first="named",
    verdict="named",
    says="what is too long is not refused",
)
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    need = max(max(map(len, sources)), max(map(len, targets)) + 1)
    fitting = [width for width in widths if width >= need]
    width = min(fitting) if fitting else max(widths)
    source = torch.full((len(sources), width), pad_id)
    for i, row in enumerate(sources):
        row = row[:width]
        source[i, : len(row)] = torch.tensor(row)
    targets = [row[: width - 1] for row in targets]
    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    more = width - inputs.shape[1]
    inputs = F.pad(inputs, (0, more), value=pad_id)
    return source, inputs, F.pad(labels, (0, more), value=pad_id)


@stranger(
    "average-states",
    "each state is averaged with the average so far: the last counts half",
    kind="subtle",
    first="named",
    verdict="named",
    says="an average of averages",
)
def average_states(states):
    result = {name: tensor.clone() for name, tensor in states[0].items()}
    for state in states[1:]:
        for name, tensor in state.items():
            if tensor.is_floating_point():
                mean = (result[name].float() + tensor.float()) / 2
                result[name] = mean.to(tensor.dtype)
            else:
                result[name] = tensor.clone()
    return result


@stranger(
    "average-states",
    "the counters come from the first state",
    kind="subtle",
    first="named",
    verdict="named",
    says="the counter of another checkpoint",
)
def average_states(states):
    result = {}
    for name, tensor in states[0].items():
        if tensor.is_floating_point():
            stacked = torch.stack([state[name].float() for state in states])
            result[name] = stacked.mean(dim=0).to(tensor.dtype)
        else:
            result[name] = tensor.clone()
    return result


@stranger(
    "average-states",
    "added up in half precision AND the counters are averaged, too, and rounded down",
    kind="double",
    first="shown",
    verdict="named",
    says="added up in half precision, and integers averaged",
)
def average_states(states):
    result = {}
    for name, tensor in states[-1].items():
        total = torch.zeros_like(tensor)
        for state in states:
            total = total + state[name]
        result[name] = (total / len(states)).to(tensor.dtype)
    return result


@stranger(
    "average-states",
    "the median of the states, which for two is the lower of them",
    first="named",
    verdict="named",
    says="the median in place of the mean",
)
def average_states(states):
    result = {}
    for name, tensor in states[-1].items():
        if torch.is_floating_point(tensor):
            stacked = torch.stack([state[name].float() for state in states])
            result[name] = stacked.median(dim=0).values.to(tensor.dtype)
        else:
            result[name] = tensor.clone()
    return result


@stranger(
    "smoothing-floor",
    "smoothing is spread over the other classes only: 1 - ε for the right one",
    kind="subtle",
    first="named",
    verdict="named",
    says="spread over the wrong classes only",
)
def smoothing_floor(vocab_size, smoothing):
    if smoothing == 0:
        return 0.0
    right = 1 - smoothing
    other = smoothing / (vocab_size - 1)
    entropy = right * math.log(right) + (vocab_size - 1) * other * math.log(other)
    return -entropy


@stranger(
    "smoothing-floor",
    "all V classes are counted as others beside the right one",
    kind="subtle",
    first="named",
    verdict="named",
    says="all V classes counted as wrong ones",
)
def smoothing_floor(vocab_size, smoothing):
    if smoothing == 0:
        return 0.0
    other = smoothing / vocab_size
    right = 1 - smoothing + other
    return -(right * math.log(right)) - vocab_size * (other * math.log(other))


@stranger(
    "smoothing-floor",
    "only the right class has a term AND the logarithm is to the base 2",
    kind="double",
    first="useless",
    verdict="named",
    says="only the right class counted, and base 2 in place of e",
)
def smoothing_floor(vocab_size, smoothing):
    right = 1 - smoothing + smoothing / vocab_size
    return -right * math.log2(right)


@stranger(
    "forced-accuracy",
    "padding is taken from what the model says: a place where it says <pad> is skipped",
    kind="subtle",
    first="useless",
    verdict="named",
    says="padding is read from what the model says",
)
def forced_accuracy(logits, labels, pad_id=0):
    said = logits.argmax(dim=-1)
    real = said != pad_id
    right = said == labels
    tokens = (right & real).sum() / real.sum()
    sentences = (right | ~real).all(dim=-1).float().mean()
    return tokens.item(), sentences.item()


@stranger(
    "forced-accuracy",
    "the share of each sentence is averaged, not the batch at once AND a sentence with "
    "padding is right only if padding is said, too",
    kind="double",
    first="useless",
    verdict="named",
    says="padding makes a sentence wrong, and the mean of the sentences' shares",
)
def forced_accuracy(logits, labels, pad_id=0):
    real = labels.ne(pad_id)
    said = logits.argmax(-1).eq(labels)
    shares = (said & real).sum(dim=1) / real.sum(dim=1)
    sentences = said.all(dim=1).float().mean()
    return shares.mean().item(), sentences.item()


@stranger(
    "forced-accuracy",
    "half or more of a sentence's tokens make it right",
    first="told",
    verdict="named",
    says="a sentence that is mostly right counted",
)
def forced_accuracy(logits, labels, pad_id=0):
    real = labels != pad_id
    right = (logits.argmax(dim=-1) == labels) & real
    tokens = right.sum().item() / real.sum().item()
    shares = right.sum(dim=1) / real.sum(dim=1)
    return tokens, (shares >= 0.5).float().mean().item()


@stranger(
    "align",
    "each head has one vote: the most frequent of the heads' positions",
    kind="subtle",
    first="named",
    verdict="named",
    says="a vote of the heads",
)
def align(weights, source_length, target_length):
    real = weights[:, :target_length, :source_length]
    votes = real.argmax(dim=-1)
    return votes.mode(dim=0).values.tolist()


@stranger(
    "align",
    "the row of <sos> is left out: row t + 1 is read for token t",
    kind="subtle",
    first="named",
    verdict="named",
    says="one row too late",
)
def align(weights, source_length, target_length):
    mean = weights.mean(dim=0)[:, :source_length]
    return mean[1 : target_length + 1].argmax(dim=-1).tolist()


@stranger(
    "align",
    "only the first head is read AND the padding of the source is not cut off",
    kind="double",
    first="shown",
    verdict="named",
    says="only the first head, and padding not cut off",
)
def align(weights, source_length, target_length):
    return weights[0, :target_length].argmax(dim=-1).tolist()


@stranger(
    "paired-bootstrap",
    "mean plus and minus 1.96 standard deviations of the samples, in place of the "
    "percentiles",
    kind="subtle",
    first="named",
    verdict="named",
    says="1.96 deviations in place of percentiles",
)
def paired_bootstrap(first, second, indices):
    gap = second - first
    samples = gap[indices].mean(dim=1)
    centre, spread = gap.mean().item(), samples.std().item()
    return centre, centre - 1.96 * spread, centre + 1.96 * spread


@stranger(
    "paired-bootstrap",
    "first minus second AND the mean of the samples in place of the whole test set",
    kind="double",
    first="shown",
    verdict="named",
    says="first minus second, and the mean of the samples as the difference",
)
def paired_bootstrap(first, second, indices):
    samples = (first[indices] - second[indices]).mean(dim=-1)
    ends = torch.tensor([0.025, 0.975], dtype=samples.dtype)
    low, high = torch.quantile(samples, ends).tolist()
    return samples.mean().item(), low, high


@stranger(
    "paired-bootstrap",
    "percentiles 5 and 95",
    first="named",
    verdict="named",
    says="5 and 95 percent",
)
def paired_bootstrap(first, second, indices):
    gap = second - first
    samples = torch.stack([gap[row].mean() for row in indices])
    low = samples.quantile(0.05).item()
    high = samples.quantile(0.95).item()
    return gap.mean().item(), low, high


@stranger(
    "own-translator",
    "the path from the course's folder, not the name of the folder beside the notebook",
    first="told",
    verdict="named",
    says="a path in place of the folder's name",
)
def my_model():
    return "exercises/09_translator/translator"


# --- a third round, of what came later ---


@stranger(
    "paired-bootstrap",
    "the percentiles are those of the sentences' differences in all samples together, "
    "not of the samples' means",
    kind="subtle",
    first="useless",
    verdict="named",
    says="the percentiles of all drawn sentences",
    round=3,
)
def paired_bootstrap(first, second, indices):
    difference = second - first
    samples = difference[indices].flatten()
    low = torch.quantile(samples, 0.025).item()
    high = torch.quantile(samples, 0.975).item()
    return difference.mean().item(), low, high


@stranger(
    "paired-bootstrap",
    "the difference is first minus second AND the interval is of 90 % (5 and 95)",
    kind="double",
    first="named",
    verdict="named",
    round=3,
    says="first minus second, and 5 and 95 percent",
)
def paired_bootstrap(first, second, indices):
    observed = (first.mean() - second.mean()).item()
    samples = first[indices].mean(dim=-1) - second[indices].mean(dim=-1)
    low, high = torch.quantile(samples, torch.tensor([0.05, 0.95], dtype=samples.dtype))
    return observed, low.item(), high.item()


@stranger(
    "paired-bootstrap",
    "the ends are entries of the sorted samples, without interpolation",
    kind="subtle",
    first="named",
    verdict="named",
    says="one of the samples in place of the percentile",
    round=3,
)
def paired_bootstrap(first, second, indices):
    d = second - first
    samples = sorted(d[row].mean().item() for row in indices)
    n = len(samples)
    return d.mean().item(), samples[int(0.025 * n)], samples[min(n - 1, int(0.975 * n))]


@stranger(
    "paired-bootstrap",
    "the first number is the mean over the samples in place of the whole test set",
    kind="subtle",
    first="named",
    verdict="named",
    says="the mean of the samples as the difference",
    round=3,
)
def paired_bootstrap(first, second, indices):
    differences = (second - first)[indices].mean(dim=-1)
    ends = torch.tensor([0.025, 0.975], dtype=differences.dtype)
    low, high = torch.quantile(differences, ends).tolist()
    return differences.mean().item(), low, high
