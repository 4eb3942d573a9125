"""Chapter 9: wrong answers with their names, and right ones in other styles."""

import json
import math
import random
import shutil
import statistics

import torch
import torch.nn.functional as F

from mistakes import handed_in, right, wrong
from transformer.decoder import shift_right
from workbench import models, phrasebook, results
from workbench.tokenizer import Tokenizer

# --- a batch --------------------------------------------------------------------------


def wide(rows, width, fill):
    return torch.tensor([row + [fill] * (width - len(row)) for row in rows])


def three(sources, targets, width, sos_id, eos_id, pad_id):
    inputs = [[sos_id, *row] for row in targets]
    labels = [[*row, eos_id] for row in targets]
    return tuple(wide(rows, width, pad_id) for rows in (sources, inputs, labels))


def needed(sources, targets):
    return max(max(map(len, sources)), max(map(len, targets)) + 1)


def narrowest(widths, need):
    fitting = [width for width in widths if width >= need]
    if not fitting:
        raise ValueError(f"no width of {need}")
    return min(fitting)


@wrong("fixed-batch", "no place for the special token")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    """What hangs over is cut off, without a word."""
    need = max(max(map(len, sources)), max(map(len, targets)))
    width = narrowest(widths, need)
    inputs, labels = shift_right(targets, sos_id, eos_id, pad_id)
    more = (0, width - inputs.shape[1])
    inputs, labels = (F.pad(x, more, value=pad_id) for x in (inputs, labels))
    return wide(sources, width, pad_id), inputs, labels


@wrong("fixed-batch", "not one of the widths")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    need = needed(sources, targets)
    narrowest(widths, need)
    return three(sources, targets, need, sos_id, eos_id, pad_id)


@wrong("fixed-batch", "source and target of two widths")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    first = narrowest(widths, max(map(len, sources)))
    second = narrowest(widths, max(map(len, targets)) + 1)
    source = wide(sources, first, pad_id)
    others = [[sos_id, *row] for row in targets], [[*row, eos_id] for row in targets]
    return source, *(wide(rows, second, pad_id) for rows in others)


@wrong("fixed-batch", "the widest in place of the narrowest")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    narrowest(widths, needed(sources, targets))
    return three(sources, targets, max(widths), sos_id, eos_id, pad_id)


@wrong("fixed-batch", "the first width that fits, not the narrowest")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    need = needed(sources, targets)
    for width in widths:
        if width >= need:
            return three(sources, targets, width, sos_id, eos_id, pad_id)
    raise ValueError("too long")


@wrong("fixed-batch", "padding on the left")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    width = narrowest(widths, needed(sources, targets))
    inputs = [[sos_id, *row] for row in targets]
    labels = [[*row, eos_id] for row in targets]
    return tuple(
        torch.tensor([[pad_id] * (width - len(row)) + row for row in rows])
        for rows in (sources, inputs, labels)
    )


@wrong("fixed-batch", "the source with special tokens")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    """The width as if it had none, and cut where that is too narrow."""
    width = narrowest(widths, needed(sources, targets))
    _, inputs, labels = three(sources, targets, width, sos_id, eos_id, pad_id)
    framed = wide([[sos_id, *row, eos_id][:width] for row in sources], width, pad_id)
    return framed, inputs, labels


@wrong("fixed-batch", "inputs and labels exchanged")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    width = narrowest(widths, needed(sources, targets))
    source, a, b = three(sources, targets, width, sos_id, eos_id, pad_id)
    return source, b, a


@wrong("fixed-batch", "targets not shifted")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    width = narrowest(widths, needed(sources, targets))
    both = [[sos_id, *row, eos_id][:width] for row in targets]
    source = wide(sources, width, pad_id)
    return source, wide(both, width, pad_id), wide(both, width, pad_id)


@wrong("fixed-batch", "filled with 0 in place of pad_id")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    width = narrowest(widths, needed(sources, targets))
    return three(sources, targets, width, sos_id, eos_id, 0)


@wrong("fixed-batch", "the labels padded with <eos>")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    width = narrowest(widths, needed(sources, targets))
    source, inputs, _ = three(sources, targets, width, sos_id, eos_id, pad_id)
    return source, inputs, wide(targets, width, eos_id)


@wrong("fixed-batch", "what is too long is not refused")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    width = min(
        (each for each in widths if each >= needed(sources, targets)),
        default=max(widths),
    )
    inputs = [[sos_id, *row][:width] for row in targets]
    labels = [[*row, eos_id][:width] for row in targets]
    sources = [row[:width] for row in sources]
    return tuple(wide(rows, width, pad_id) for rows in (sources, inputs, labels))


@wrong("fixed-batch", "the rows have different lengths")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    narrowest(widths, needed(sources, targets))
    return torch.tensor(sources), *shift_right(targets, sos_id, eos_id, pad_id)


@right("fixed-batch")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    """full of padding, then filled in row by row"""
    width = narrowest(widths, needed(sources, targets))
    made = [torch.full((len(sources), width), pad_id) for _ in range(3)]
    for row, (read, written) in enumerate(zip(sources, targets, strict=True)):
        for table, ids in zip(
            made, (read, [sos_id, *written], [*written, eos_id]), strict=True
        ):
            table[row, : len(ids)] = torch.tensor(ids, dtype=torch.long)
    return tuple(made)


@right("fixed-batch")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    """the widths in order, and a loop that finds none"""
    for width in sorted(widths):
        if width >= needed(sources, targets):
            return three(sources, targets, width, sos_id, eos_id, pad_id)
    raise ValueError(f"the widest is {max(widths)}")


# --- averaging ------------------------------------------------------------------------


def named(states, combine, counter=lambda values: values[-1].clone()):
    return {
        name: (combine if last.is_floating_point() else counter)(
            [state[name] for state in states]
        )
        for name, last in states[-1].items()
    }


def mean(values):
    return torch.stack(values).float().mean(dim=0).to(values[0].dtype)


@wrong("average-states", "added up in half precision")
def average_states(states):
    return named(states, lambda values: sum(values[1:], values[0]) / len(values))


@wrong("average-states", "added, not averaged")
def average_states(states):
    return named(
        states, lambda values: torch.stack(values).float().sum(0).to(values[0].dtype)
    )


@wrong("average-states", "divided by one too few")
def average_states(states):
    def combine(values):
        total = torch.stack(values).float().sum(0)
        return (total / (len(values) - 1)).to(values[0].dtype)

    return named(states, combine)


@wrong("average-states", "only the last checkpoint")
def average_states(states):
    result = {}
    for state in states:
        for name, value in state.items():
            result[name] = value.clone()
    return result


@wrong("average-states", "only the first checkpoint")
def average_states(states):
    return {name: value.clone() for name, value in states[0].items()}


@wrong("average-states", "an average of averages")
def average_states(states):
    def combine(values):
        total = values[0].float()
        for value in values[1:]:
            total = (total + value.float()) / 2
        return total.to(values[0].dtype)

    return named(states, combine)


@wrong("average-states", "the median in place of the mean")
def average_states(states):
    def combine(values):
        return torch.stack(values).float().median(dim=0).values.to(values[0].dtype)

    return named(states, combine)


@wrong("average-states", "integers averaged")
def average_states(states):
    """And so turned into floats."""
    return named(states, mean, lambda values: torch.stack(values).float().mean())


@wrong("average-states", "integers averaged")
def average_states(states):
    """PyTorch refuses."""
    return named(states, mean, lambda values: torch.stack(values).mean(dim=0))


@wrong("average-states", "integers averaged")
def average_states(states):
    """And rounded down."""
    return named(states, mean, mean)


@wrong("average-states", "the counter of another checkpoint")
def average_states(states):
    return named(states, mean, lambda values: values[0].clone())


@wrong("average-states", "integers left out")
def average_states(states):
    result = named(states, mean)
    return {n: value for n, value in result.items() if value.is_floating_point()}


@wrong("average-states", "changes its argument in place")
def average_states(states):
    total = states[0]
    for state in states[1:]:
        for name in total:
            total[name] += state[name]
    return {name: value / len(states) for name, value in total.items()}


@right("average-states")
def average_states(states):
    """a running sum"""
    result = {}
    for name, last in states[-1].items():
        if not last.is_floating_point():
            result[name] = last
            continue
        total = torch.zeros_like(last, dtype=torch.float32)
        for state in states:
            total = total + state[name]
        result[name] = (total / len(states)).to(last.dtype)
    return result


@right("average-states")
def average_states(states):
    """a running mean"""

    def combine(values):
        found = values[0].float()
        for count, value in enumerate(values[1:], start=2):
            found = found + (value.float() - found) / count
        return found.to(values[0].dtype)

    return named(states, combine)


# --- the floor of a smoothed loss -----------------------------------------------------


def terms(first, other, count):
    rest = count * other * math.log(other) if other else 0.0
    return -(first * math.log(first) + rest)


@wrong("smoothing-floor", "the smoothing itself")
def smoothing_floor(vocab_size, smoothing):
    return smoothing


@wrong("smoothing-floor", "spread over the wrong classes only")
def smoothing_floor(vocab_size, smoothing):
    others = vocab_size - 1
    return terms(1 - smoothing, smoothing / others, others)


@wrong("smoothing-floor", "the right class without its share")
def smoothing_floor(vocab_size, smoothing):
    return terms(1 - smoothing, smoothing / vocab_size, vocab_size - 1)


@wrong("smoothing-floor", "all V classes counted as wrong ones")
def smoothing_floor(vocab_size, smoothing):
    other = smoothing / vocab_size
    return terms(1 - smoothing + other, other, vocab_size)


@wrong("smoothing-floor", "only the right class counted")
def smoothing_floor(vocab_size, smoothing):
    return -math.log(1 - smoothing + smoothing / vocab_size)


@wrong("smoothing-floor", "one wrong class in place of V - 1")
def smoothing_floor(vocab_size, smoothing):
    other = smoothing / vocab_size
    return terms(1 - smoothing + other, other, 1)


@wrong("smoothing-floor", "sign not changed")
def smoothing_floor(vocab_size, smoothing):
    other = smoothing / vocab_size
    return -terms(1 - smoothing + other, other, vocab_size - 1)


@wrong("smoothing-floor", "base 2 in place of e")
def smoothing_floor(vocab_size, smoothing):
    other = smoothing / vocab_size
    return terms(1 - smoothing + other, other, vocab_size - 1) / math.log(2)


@wrong("smoothing-floor", "the loss of an even guess")
def smoothing_floor(vocab_size, smoothing):
    return smoothing * math.log(vocab_size)


@wrong("smoothing-floor", "fails without smoothing")
def smoothing_floor(vocab_size, smoothing):
    other = smoothing / vocab_size
    first = 1 - smoothing + other
    others = vocab_size - 1
    return -(first * math.log(first) + others * other * math.log(other))


@wrong("smoothing-floor", "a tensor in place of a number")
def smoothing_floor(vocab_size, smoothing):
    chances = torch.full((vocab_size,), smoothing / vocab_size)
    chances[0] += 1 - smoothing
    return -torch.xlogy(chances, chances).sum()


@right("smoothing-floor")
def smoothing_floor(vocab_size, smoothing):
    """the entropy of a tensor of chances"""
    chances = torch.full((vocab_size,), smoothing / vocab_size, dtype=torch.double)
    chances[0] += 1 - smoothing
    return -torch.xlogy(chances, chances).sum().item()


@right("smoothing-floor")
def smoothing_floor(vocab_size, smoothing):
    """cross-entropy of the best prediction"""
    other = smoothing / vocab_size
    top = 1 - smoothing + other
    first = -(1 - smoothing) * math.log(top)
    even = math.log(top) + (vocab_size - 1) * (math.log(other) if other else 0.0)
    return first - other * even


# --- teacher-forced accuracy ----------------------------------------------------------


def verdicts(logits, labels, pad_id):
    return logits.argmax(dim=-1) == labels, labels != pad_id


def part(x):
    return x.float().mean().item()


@wrong("forced-accuracy", "padding is counted")
def forced_accuracy(logits, labels, pad_id=0):
    said, real = verdicts(logits, labels, pad_id)
    return part(said), part((said | ~real).all(dim=-1))


@wrong("forced-accuracy", "padding is counted")
def forced_accuracy(logits, labels, pad_id=0):
    """Everywhere."""
    said, _ = verdicts(logits, labels, pad_id)
    return part(said), part(said.all(dim=-1))


@wrong("forced-accuracy", "padding counted as right")
def forced_accuracy(logits, labels, pad_id=0):
    said, real = verdicts(logits, labels, pad_id)
    return part(said | ~real), part((said | ~real).all(dim=-1))


@wrong("forced-accuracy", "padding counted as wrong")
def forced_accuracy(logits, labels, pad_id=0):
    said, real = verdicts(logits, labels, pad_id)
    return part(said & real), part((said | ~real).all(dim=-1))


@wrong("forced-accuracy", "padding makes a sentence wrong")
def forced_accuracy(logits, labels, pad_id=0):
    said, real = verdicts(logits, labels, pad_id)
    return part(said[real]), part((said & real).all(dim=-1))


@wrong("forced-accuracy", "the mean of the sentences' shares")
def forced_accuracy(logits, labels, pad_id=0):
    said, real = verdicts(logits, labels, pad_id)
    each = (said & real).sum(-1) / real.sum(-1)
    return each.mean().item(), part((said | ~real).all(dim=-1))


@wrong("forced-accuracy", "a sentence with one right token counted")
def forced_accuracy(logits, labels, pad_id=0):
    said, real = verdicts(logits, labels, pad_id)
    return part(said[real]), part((said & real).any(dim=-1))


@wrong("forced-accuracy", "shifted once more")
def forced_accuracy(logits, labels, pad_id=0):
    said, real = verdicts(logits[:, :-1], labels[:, 1:], pad_id)
    return part(said[real]), part((said | ~real).all(dim=-1))


@wrong("forced-accuracy", "percent in place of shares")
def forced_accuracy(logits, labels, pad_id=0):
    said, real = verdicts(logits, labels, pad_id)
    return 100 * part(said[real]), 100 * part((said | ~real).all(dim=-1))


@wrong("forced-accuracy", "the two shares are exchanged")
def forced_accuracy(logits, labels, pad_id=0):
    said, real = verdicts(logits, labels, pad_id)
    return part((said | ~real).all(dim=-1)), part(said[real])


@wrong("forced-accuracy", "the same share twice")
def forced_accuracy(logits, labels, pad_id=0):
    said, real = verdicts(logits, labels, pad_id)
    return part(said[real]), part(said[real])


@wrong("forced-accuracy", "a tensor in place of a number")
def forced_accuracy(logits, labels, pad_id=0):
    said, real = verdicts(logits, labels, pad_id)
    return said[real].float().mean(), (said | ~real).all(dim=-1).float().mean()


@right("forced-accuracy")
def forced_accuracy(logits, labels, pad_id=0):
    """counting mistakes"""
    real = labels != pad_id
    wrong_ones = (logits.argmax(-1) != labels) & real
    tokens = 1 - wrong_ones.sum().item() / real.sum().item()
    return tokens, 1 - wrong_ones.any(dim=-1).sum().item() / len(labels)


@right("forced-accuracy")
def forced_accuracy(logits, labels, pad_id=0):
    """sentence by sentence"""
    hits, whole = [], []
    for scores, row in zip(logits, labels, strict=True):
        length = int((row != pad_id).sum())
        right_ones = (scores[:length].argmax(-1) == row[:length]).tolist()
        hits += right_ones
        whole.append(all(right_ones))
    return sum(hits) / len(hits), sum(whole) / len(whole)


# --- alignment ------------------------------------------------------------------------


@wrong("align", "padding not cut off")
def align(weights, source_length, target_length):
    return weights.mean(dim=0).argmax(dim=-1)[:target_length].tolist()


@wrong("align", "padding not cut off")
def align(weights, source_length, target_length):
    """In the rows."""
    return weights.mean(dim=0)[:, :source_length].argmax(dim=-1).tolist()


@wrong("align", "rows and columns exchanged")
def align(weights, source_length, target_length):
    return weights[:, :target_length, :source_length].mean(0).argmax(dim=0).tolist()


@wrong("align", "only the first head")
def align(weights, source_length, target_length):
    return weights[0, :target_length, :source_length].argmax(dim=-1).tolist()


@wrong("align", "the largest weight of any head")
def align(weights, source_length, target_length):
    real = weights[:, :target_length, :source_length]
    return real.amax(dim=0).argmax(dim=-1).tolist()


@wrong("align", "a vote of the heads")
def align(weights, source_length, target_length):
    votes = weights[:, :target_length, :source_length].argmax(dim=-1)
    return votes.mode(dim=0).values.tolist()


@wrong("align", "the least in place of the largest")
def align(weights, source_length, target_length):
    return weights[:, :target_length, :source_length].mean(0).argmin(dim=-1).tolist()


@wrong("align", "one row too late")
def align(weights, source_length, target_length):
    real = weights[:, 1 : target_length + 1, :source_length]
    return real.mean(0).argmax(dim=-1).tolist()


@wrong("align", "counted from 1")
def align(weights, source_length, target_length):
    found = weights[:, :target_length, :source_length].mean(0).argmax(dim=-1)
    return (found + 1).tolist()


@wrong("align", "weights in place of positions")
def align(weights, source_length, target_length):
    return weights[:, :target_length, :source_length].mean(0).amax(dim=-1).tolist()


@wrong("align", "a tensor in place of a list")
def align(weights, source_length, target_length):
    return weights[:, :target_length, :source_length].mean(0).argmax(dim=-1)


@right("align")
def align(weights, source_length, target_length):
    """a sum over the heads, and a loop"""
    total = weights.sum(dim=0)
    return [int(row[:source_length].argmax()) for row in total[:target_length]]


@right("align")
def align(weights, source_length, target_length):
    """padding made impossible, then sorted"""
    masked = weights.mean(dim=0).clone()
    masked[:, source_length:] = -1.0
    return masked.argsort(dim=-1, descending=True)[:target_length, 0].tolist()


# --- is a difference real? ------------------------------------------------------------


def ends(values, low=0.025, high=0.975):
    return torch.quantile(
        values, torch.tensor([low, high], dtype=values.dtype)
    ).tolist()


@wrong("paired-bootstrap", "the samples of the two systems drawn apart")
def paired_bootstrap(first, second, indices):
    gap = second[indices.flip(0)].mean(-1) - first[indices].mean(-1)
    return (second.mean() - first.mean()).item(), *ends(gap)


@wrong("paired-bootstrap", "first minus second")
def paired_bootstrap(first, second, indices):
    gap = first - second
    return gap.mean().item(), *ends(gap[indices].mean(-1))


@wrong("paired-bootstrap", "5 and 95 percent")
def paired_bootstrap(first, second, indices):
    gap = second - first
    return gap.mean().item(), *ends(gap[indices].mean(-1), 0.05, 0.95)


@wrong("paired-bootstrap", "the interval of sentences, not of samples")
def paired_bootstrap(first, second, indices):
    gap = second - first
    return gap.mean().item(), *ends(gap)


@wrong("paired-bootstrap", "the smallest and the largest sample")
def paired_bootstrap(first, second, indices):
    gap = second - first
    samples = gap[indices].mean(-1)
    return gap.mean().item(), samples.min().item(), samples.max().item()


@wrong("paired-bootstrap", "1.96 deviations in place of percentiles")
def paired_bootstrap(first, second, indices):
    gap = (second - first).double()
    spread = 1.96 * gap[indices].mean(-1).std().item()
    return gap.mean().item(), gap.mean().item() - spread, gap.mean().item() + spread


@wrong("paired-bootstrap", "the mean of the samples as the difference")
def paired_bootstrap(first, second, indices):
    samples = (second - first)[indices].mean(-1)
    return samples.mean().item(), *ends(samples)


@wrong("paired-bootstrap", "the interval of the second system alone")
def paired_bootstrap(first, second, indices):
    return (second - first).mean().item(), *ends(second[indices].mean(-1))


@wrong("paired-bootstrap", "averaged over the samples, not over the sentences")
def paired_bootstrap(first, second, indices):
    gap = second - first
    return gap.mean().item(), *ends(gap[indices].mean(dim=0))


@wrong("paired-bootstrap", "low and high exchanged")
def paired_bootstrap(first, second, indices):
    gap = second - first
    return gap.mean().item(), *ends(gap[indices].mean(-1), 0.975, 0.025)


@wrong("paired-bootstrap", "counts in place of means")
def paired_bootstrap(first, second, indices):
    gap = second - first
    return gap.sum().item(), *ends(gap[indices].sum(-1))


@wrong("paired-bootstrap", "a tensor in place of a number")
def paired_bootstrap(first, second, indices):
    gap = second - first
    return gap.mean(), *gap[indices].mean(-1).quantile(torch.tensor([0.025, 0.975]))


@right("paired-bootstrap")
def paired_bootstrap(first, second, indices):
    """both means of each sample, then NumPy's percentiles"""
    samples = second[indices].mean(-1) - first[indices].mean(-1)
    import numpy as np

    low, high = np.percentile(samples.numpy(), [2.5, 97.5])
    return (second.mean() - first.mean()).item(), float(low), float(high)


@right("paired-bootstrap")
def paired_bootstrap(first, second, indices):
    """plain Python"""
    a, b = first.tolist(), second.tolist()
    gaps = [y - x for x, y in zip(a, b, strict=True)]
    found = sorted(statistics.fmean(gaps[i] for i in row) for row in indices.tolist())

    def at(share):
        place = share * (len(found) - 1)
        low = int(place)
        high = min(low + 1, len(found) - 1)
        return found[low] + (place - low) * (found[high] - found[low])

    return statistics.fmean(gaps), at(0.025), at(0.975)


# --- a model of one's own -------------------------------------------------------------


@wrong("own-translator", "there is no such folder")
def my_model():
    return "my model"


@wrong("own-translator", "a folder that is not beside the notebook")
def my_model():
    return f"../{handed_in.right('translator')}"


@wrong("own-translator", "a folder that is not beside the notebook")
def my_model():
    """By its whole path."""
    return str(handed_in.PLACE / handed_in.right("translator"))


@wrong("own-translator", "a file is missing")
def my_model():
    return handed_in.damaged(
        "translator", "no-tokenizer", lambda x: (x / "tokenizer.json").unlink()
    )


@wrong("own-translator", "a file is missing")
def my_model():
    """The weights."""
    return handed_in.damaged(
        "translator", "no-weights", lambda x: (x / "model.safetensors").unlink()
    )


def cut(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100_000])


@wrong("own-translator", "a file was cut short")
def my_model():
    return handed_in.damaged("translator", "cut", cut)


@wrong("own-translator", "a file was cut short")
def my_model():
    """Nothing has arrived."""
    return handed_in.damaged(
        "translator", "empty", lambda x: (x / "model.safetensors").write_bytes(b"")
    )


@wrong("own-translator", "a pickled file")
def my_model():
    return handed_in.damaged(
        "translator",
        "pickled",
        lambda x: torch.save({"a": torch.ones(3)}, x / "model.safetensors"),
    )


@wrong("own-translator", "a file is too large")
def my_model():
    return handed_in.damaged(
        "translator",
        "large",
        lambda x: (x / "model.safetensors").write_bytes(bytes(20_000_000)),
    )


@wrong("own-translator", "config.json cannot be used")
def my_model():
    return handed_in.damaged(
        "translator", "half", lambda x: (x / "config.json").write_text('{"kind": "tr')
    )


@wrong("own-translator", "config.json cannot be used")
def my_model():
    """A value that cannot be."""
    return handed_in.changed("translator", "no-heads", heads=7)


def picture_model(folder):
    (folder / "config.json").write_text(
        '{"kind": "vit", "image_size": 8, "patch_size": 4, "channels": 1, '
        '"classes": 10, "d_model": 64, "heads": 4, "layers": 2, "d_ff": 64}'
    )


@wrong("own-translator", "config.json cannot be used")
def my_model():
    """An older file, which lacks two keys."""
    return handed_in.damaged("translator", "old", picture_model)


def whole_picture_model(folder):
    picture_model(folder)
    path = folder / "config.json"
    more = ', "dropout": 0.0, "pooling": "class"}'
    path.write_text(path.read_text()[:-1] + more)


@wrong("own-translator", "another kind of model")
def my_model():
    return handed_in.damaged("translator", "vit", whole_picture_model)


@wrong("own-translator", "over the parameter budget")
def my_model():
    return handed_in.changed("translator", "over", vocab_size=9000)


@wrong("own-translator", "over the parameter budget")
def my_model():
    """A shape that would not fit into any memory."""
    return handed_in.changed("translator", "giant", vocab_size=9_000_000, d_ff=9999999)


@wrong("own-translator", "more layers than allowed")
def my_model():
    return handed_in.changed("translator", "deep", layers=200)


@wrong("own-translator", "weights and config.json do not fit")
def my_model():
    return handed_in.changed("translator", "narrow", d_model=64)


@wrong("own-translator", "weights and config.json do not fit")
def my_model():
    """A layer too many."""
    return handed_in.changed("translator", "layers", layers=3)


@wrong("own-translator", "pre-norm and post-norm exchanged")
def my_model():
    return handed_in.changed("translator", "post", norm_first=False)


@wrong("own-translator", "NaN in the weights")
def my_model():
    def spoil(state):
        state["embedding.weight"][7, 3] = math.nan

    return handed_in.reweighed("translator", "nan", spoil)


@wrong("own-translator", "weights that are all zero")
def my_model():
    def spoil(state):
        for value in state.values():
            value.zero_()

    return handed_in.reweighed("translator", "zero", spoil)


@wrong("own-translator", "untrained weights")
def my_model():
    def spoil(folder):
        config = models.load_config(folder)
        models.save(folder, models.build(config), config)

    return handed_in.damaged("translator", "untrained", spoil)


@wrong("own-translator", "the course's own model")
def my_model():
    def copy(folder):
        own = results.model_folder("phrasebook")
        for name in handed_in.FILES:
            shutil.copy(own / name, folder)

    return handed_in.damaged("translator", "copied", copy)


@wrong("own-translator", "tokenizer.json cannot be used")
def my_model():
    return handed_in.damaged(
        "translator", "words", lambda x: (x / "tokenizer.json").write_text("{}")
    )


def other_tokenizer(size):
    def write(folder):
        pairs = phrasebook.draw(random.Random(5), "train", 3000, set())
        texts = [text[::-1].lower() for pair in pairs for text in pair]
        Tokenizer.train(texts, size).save(folder / "tokenizer.json")

    return write


@wrong("own-translator", "a tokenizer of another size")
def my_model():
    return handed_in.damaged("translator", "small-words", other_tokenizer(700))


def exchange_meanings(folder):
    """The same tokens, but each id means another one."""
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text("utf-8"))
    vocabulary = content["model"]["vocab"]
    ids = sorted(vocabulary.values())
    moved = dict(zip(ids, ids[:4] + ids[5:] + ids[4:5], strict=True))
    content["model"]["vocab"] = {token: moved[i] for token, i in vocabulary.items()}
    path.write_text(json.dumps(content), "utf-8")


@wrong("own-translator", "the tokenizer of another run")
def my_model():
    return handed_in.damaged("translator", "other-words", exchange_meanings)


@wrong("own-translator", "languages exchanged")
def my_model():
    return handed_in.changed("translator", "reverse", source="de", target="en")


@wrong("own-translator", "config.json was changed")
def my_model():
    return handed_in.changed("translator", "heads", heads=2)


@wrong("own-translator", "config.json was changed")
def my_model():
    """One head in place of several."""
    return handed_in.changed("translator", "head", heads=1)


@wrong("own-translator", "config.json was changed")
def my_model():
    """Embeddings that are said to be unscaled."""
    return handed_in.changed("translator", "unscaled", scaled=False)


@wrong("own-translator", "targets not shifted")
def my_model():
    return handed_in.mistrained("unshifted", 60, shifted=False, causal=True)


@wrong("own-translator", "trained without the causal mask")
def my_model():
    return handed_in.mistrained("future", 140, shifted=True, causal=False)


@wrong("own-translator", "the end was never learned")
def my_model():
    def spoil(state):
        state["embedding.weight"][Tokenizer.EOS] *= -1

    return handed_in.reweighed("translator", "endless", spoil)


@right("own-translator")
def my_model():
    """a path of two steps, beside the notebook"""
    return f"./{handed_in.right('translator')}/"


@right("own-translator")
def my_model():
    """weights in half precision"""

    def halve(state):
        for name in state:
            state[name] = state[name].half()

    return handed_in.reweighed("translator", "half-precision", halve)
