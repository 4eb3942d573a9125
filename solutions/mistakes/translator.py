"""Chapter 9: wrong answers with their names, and right ones in other styles."""

import math
import random
import statistics

import numpy as np
import torch
import torch.nn.functional as F

from mistakes import handed_in, right, wrong
from transformer.decoder import shift_right
from workbench.data import phrasebook
from workbench.data.tokenizer import Tokenizer

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


@wrong("average-states", "the caller's own dict is returned")
def average_states(states):
    """of one there is nothing to average"""
    return states[0] if len(states) == 1 else named(states, mean)


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


@wrong("forced-accuracy", "a row of nothing but padding counted as wrong")
def forced_accuracy(logits, labels, pad_id=0):
    """one division for each row"""
    hits, whole = [], 0
    for scores, row in zip(logits.argmax(-1).tolist(), labels.tolist(), strict=True):
        found = [a == b for a, b in zip(scores, row, strict=True) if b != pad_id]
        hits += found
        whole += sum(found) / len(found) == 1
    return sum(hits) / len(hits), whole / len(labels)


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


@wrong("align", "nothing is left by a slice of -0")
def align(weights, source_length, target_length):
    rows, columns = weights.shape[1:]
    cut = weights[:, : target_length - rows, : source_length - columns]
    return cut.mean(0).argmax(dim=-1).tolist()


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


def hands_in(mistake, make, *arguments, **options):
    """Enter an answer that names the folder which a function makes."""

    def my_model():
        return make(*arguments, **options)

    wrong("own-translator", mistake)(my_model)


def my_folder():
    return handed_in.right("translator")


hands_in("there is no such folder", lambda: "my model")
hands_in(
    "a path in place of the folder's name",
    lambda: f"exercises/09_translator/{my_folder()}",
)
for path in (lambda: f"../{my_folder()}", lambda: str(handed_in.PLACE / my_folder())):
    hands_in("a folder that is not beside the notebook", path)


def train_other_tokenizer(folder):
    pairs = phrasebook.draw(random.Random(5), "train", 3000, set())
    texts = [text[::-1].lower() for pair in pairs for text in pair]
    Tokenizer.train(texts, 700).save(folder / "tokenizer.json")


def exchange_meanings(content):
    """The same tokens, but each id means another one."""
    vocabulary = content["model"]["vocab"]
    ids = sorted(vocabulary.values())
    moved = dict(zip(ids, ids[:4] + ids[5:] + ids[4:5], strict=True))
    content["model"]["vocab"] = {token: moved[i] for token, i in vocabulary.items()}


OLDER = (  # a file that lacks two keys
    b'{"kind": "vit", "image_size": 8, "patch_size": 4, "channels": 1, "classes": 10, '
    b'"d_model": 64, "heads": 4, "layers": 2, "d_ff": 64}'
)
WHOLE = OLDER[:-1] + b', "dropout": 0.0, "pooling": "class"}'
for mistake, label, damage in (
    ("a file is missing", "no-words", lambda x: (x / "tokenizer.json").unlink()),
    ("a file is missing", "no-weights", lambda x: (x / "model.safetensors").unlink()),
    ("a file was cut short", "cut", handed_in.cut),
    ("a file was cut short", "empty", handed_in.writing("model.safetensors", b"")),
    ("a pickled file", "pickled", handed_in.pickle),
    (
        "a file is too large",
        "large",
        handed_in.writing("model.safetensors", bytes(20_000_000)),
    ),
    (
        "config.json cannot be used",
        "half",
        handed_in.writing("config.json", b'{"kind": "tr'),
    ),
    ("config.json cannot be used", "old", handed_in.writing("config.json", OLDER)),
    ("another kind of model", "vit", handed_in.writing("config.json", WHOLE)),
    ("untrained weights", "untrained", handed_in.start_again),
    ("the course's own model", "copied", handed_in.copy_the_course_s("phrasebook")),
    (
        "tokenizer.json cannot be used",
        "words",
        handed_in.writing("tokenizer.json", b"{}"),
    ),
    ("a tokenizer of another size", "small-words", train_other_tokenizer),
    (
        "the tokenizer of another run",
        "other-words",
        handed_in.change_tokenizer(exchange_meanings),
    ),
):
    hands_in(mistake, handed_in.damaged, "translator", label, damage)

for mistake, label, changes in (
    ("config.json cannot be used", "no-heads", {"heads": 7}),
    ("over the parameter budget", "over", {"vocab_size": 9000}),
    # it would not fit into any memory
    ("over the parameter budget", "giant", {"vocab_size": 9_000_000, "d_ff": 9999999}),
    ("more layers than allowed", "deep", {"layers": 200}),
    ("weights and config.json do not fit", "narrow", {"d_model": 64}),
    ("weights and config.json do not fit", "layers", {"layers": 3}),
    ("pre-norm and post-norm exchanged", "post", {"norm_first": False}),
    ("languages exchanged", "reverse", {"source": "de", "target": "en"}),
    ("config.json was changed", "heads", {"heads": 2}),
    ("config.json was changed", "head", {"heads": 1}),
    ("config.json was changed", "unscaled", {"scaled": False}),
):
    hands_in(mistake, handed_in.changed, "translator", label, **changes)

for mistake, label, change in (
    ("NaN in the weights", "nan", lambda x: x["embedding.weight"][7].fill_(math.nan)),
    ("weights that are all zero", "zero", lambda x: [y.zero_() for y in x.values()]),
    (
        "the end was never learned",
        "endless",
        lambda x: x["embedding.weight"][Tokenizer.EOS].neg_(),
    ),
):
    hands_in(mistake, handed_in.reweighed, "translator", label, change)

for mistake, *arguments, shifted, causal in (
    ("targets not shifted", "unshifted", 60, False, True),
    ("trained without the causal mask", "future", 140, True, False),
):
    hands_in(mistake, handed_in.mistrained, *arguments, shifted=shifted, causal=causal)


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
