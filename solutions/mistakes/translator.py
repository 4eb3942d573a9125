"""Chapter 9: wrong answers with their names, and right ones in other styles."""

import json
import math
import random
import shutil
import statistics

import numpy as np
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


@wrong("fixed-batch", "the first width that fits, not the narrowest")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    need = needed(sources, targets)
    for width in widths:
        if width >= need:
            return three(sources, targets, width, sos_id, eos_id, pad_id)
    raise ValueError("too long")


@wrong("fixed-batch", "the source with special tokens")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    """by shift_right, which makes two"""
    width = narrowest(widths, needed(sources, targets))
    source, _ = shift_right(sources, sos_id, eos_id, pad_id)
    made = source, *shift_right(targets, sos_id, eos_id, pad_id)
    return tuple(F.pad(x, (0, width - x.shape[1]), value=pad_id) for x in made)


@wrong("fixed-batch", "the labels padded with <eos>")
def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    """full of <eos>, then filled in row by row"""
    width = narrowest(widths, needed(sources, targets))
    source, inputs, labels = three(sources, targets, width, sos_id, eos_id, pad_id)
    labels = torch.full_like(labels, eos_id)
    for row, ids in enumerate(targets):
        labels[row, : len(ids)] = torch.tensor(ids)
    return source, inputs, labels


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


@wrong("average-states", "only the last checkpoint")
def average_states(states):
    result = {}
    for state in states:
        for name, value in state.items():
            result[name] = value.clone()
    return result


@wrong("average-states", "added up in half precision")
def average_states(states):
    """a running sum of the type that the tensors have"""
    result = {}
    for name, last in states[-1].items():
        if not last.is_floating_point():
            result[name] = last.clone()
            continue
        total = torch.zeros_like(last)
        for state in states:
            total += state[name]
        result[name] = total / len(states)
    return result


@wrong("average-states", "an average of averages")
def average_states(states):
    """two by two, as often as there are more"""
    if len(states) == 1:
        return {name: value.clone() for name, value in states[0].items()}
    rest = average_states_of(states[:-1])
    return {
        name: torch.lerp(rest[name].float(), last.float(), 0.5).to(last.dtype)
        if last.is_floating_point()
        else last.clone()
        for name, last in states[-1].items()
    }


average_states_of = average_states


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


@wrong("smoothing-floor", "only the right class counted")
def smoothing_floor(vocab_size, smoothing):
    """the loss without smoothing"""
    chances = torch.full((1, vocab_size), smoothing / vocab_size)
    chances[0, 0] += 1 - smoothing
    return F.nll_loss(chances.log(), torch.tensor([0])).item()


@wrong("smoothing-floor", "spread over the wrong classes only")
def smoothing_floor(vocab_size, smoothing):
    """by PyTorch's distribution"""
    chances = torch.full((vocab_size,), smoothing / (vocab_size - 1)).double()
    chances[0] = 1 - smoothing
    return torch.distributions.Categorical(chances).entropy().item()


@wrong("smoothing-floor", "fails without smoothing")
def smoothing_floor(vocab_size, smoothing):
    """a logarithm of all chances, one by one"""
    others = [smoothing / vocab_size] * vocab_size
    others[0] += 1 - smoothing
    return -sum(chance * math.log(chance) for chance in others)


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


@wrong("forced-accuracy", "the mean of the sentences' shares")
def forced_accuracy(logits, labels, pad_id=0):
    """sentence by sentence"""
    shares = []
    for scores, row in zip(logits, labels, strict=True):
        length = int((row != pad_id).sum())
        hits = (scores[:length].argmax(-1) == row[:length]).tolist()
        shares.append(statistics.fmean(hits))
    return statistics.fmean(shares), shares.count(1.0) / len(shares)


@wrong("forced-accuracy", "padding makes a sentence wrong")
def forced_accuracy(logits, labels, pad_id=0):
    """rows compared as a whole"""
    said = logits.argmax(dim=-1)
    hits = [torch.equal(one, two) for one, two in zip(said, labels, strict=True)]
    return part((said == labels)[labels != pad_id]), statistics.fmean(hits)


@wrong("forced-accuracy", "shifted once more")
def forced_accuracy(logits, labels, pad_id=0):
    """by the numbers of the places that are real"""
    rows, columns = (labels[:, 1:] != pad_id).nonzero(as_tuple=True)
    hits = logits[rows, columns].argmax(-1) == labels[rows, columns + 1]
    missed = set(rows[~hits].tolist())
    return part(hits), 1 - len(missed) / len(labels)


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
    """token by token"""
    total = weights.sum(dim=0)
    return [int(total[row].argmax()) for row in range(target_length)]


@wrong("align", "rows and columns exchanged")
def align(weights, source_length, target_length):
    """the target that looks most at each source, by sorting"""
    mean = torch.einsum("hts->st", weights[:, :target_length, :source_length])
    return mean.sort(dim=-1, descending=True).indices[:, 0].tolist()


@wrong("align", "the largest weight of any head")
def align(weights, source_length, target_length):
    """all heads in one line"""
    found = []
    for row in range(target_length):
        line = weights[:, row, :source_length].flatten()
        found.append(int(line.argmax()) % source_length)
    return found


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


@wrong("paired-bootstrap", "averaged over the samples, not over the sentences")
def paired_bootstrap(first, second, indices):
    """by NumPy"""
    gap = (second - first).double().numpy()
    low, high = np.percentile(gap[indices.numpy()].mean(axis=0), (2.5, 97.5))
    return float(gap.mean()), float(low), float(high)


@wrong("paired-bootstrap", "one of the samples in place of the percentile")
def paired_bootstrap(first, second, indices):
    """sorted in plain Python"""
    gaps = (second - first).tolist()
    found = sorted(statistics.fmean(gaps[i] for i in row) for row in indices.tolist())
    last = len(found) - 1
    low, high = math.floor(0.025 * last), math.ceil(0.975 * last)
    return statistics.fmean(gaps), found[low], found[high]


@wrong("paired-bootstrap", "the interval of the second system alone")
def paired_bootstrap(first, second, indices):
    """sample by sample"""
    found = torch.stack([second[row].mean() for row in indices])
    return (second.mean() - first.mean()).item(), *ends(found)


@wrong("paired-bootstrap", "a tensor in place of a number")
def paired_bootstrap(first, second, indices):
    gap = second - first
    return gap.mean(), *gap[indices].mean(-1).quantile(torch.tensor([0.025, 0.975]))


@right("paired-bootstrap")
def paired_bootstrap(first, second, indices):
    """both means of each sample, then NumPy's percentiles"""
    samples = second[indices].mean(-1) - first[indices].mean(-1)
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


@wrong("own-translator", "a path in place of the folder's name")
def my_model():
    """From the course's folder."""
    return f"exercises/09_translator/{handed_in.right('translator')}"


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
