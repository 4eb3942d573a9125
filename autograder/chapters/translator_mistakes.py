"""What known mistakes in chapter 9 give on a check's input, and why they are wrong."""

import math
from collections.abc import Iterator

import torch

from autograder.exercise.naming import Candidate

# --- a batch --------------------------------------------------------------------------


def _filled(rows: list[list[int]], width: int, pad: int, left: bool = False):
    """Pad, or cut, rows to a width."""
    found = []
    for row in rows:
        padding = [pad] * (width - len(row))
        found.append((padding + row if left else row + padding)[:width])
    return torch.tensor(found)


def batch_candidates(
    sources: list, targets: list, widths: tuple, sos: int, eos: int, pad: int
) -> Iterator[Candidate]:
    """What a batch of fixed width becomes by each mistake."""
    longest = max(map(len, sources))
    written = max(map(len, targets))
    need = max(longest, written + 1)
    inputs = [[sos, *row] for row in targets]
    labels = [[*row, eos] for row in targets]

    def made(width, read=sources, first=inputs, second=labels, fill=pad, left=False):
        rows = read, first, second
        return tuple(_filled(each, width, fill, left) for each in rows)

    def fitting(size: int) -> int:
        return min(width for width in widths if width >= size)

    width = fitting(need)
    framed = [[sos, *row, eos] for row in sources]
    both = [[sos, *row, eos] for row in targets]
    yield (
        "no place for the special token",
        lambda: made(fitting(max(longest, written))),
        "Inputs and labels are one longer than the target: it needs a width of its "
        "length plus 1. Without it, the last token or <eos> is cut off.",
    )
    yield (
        "not one of the widths",
        lambda: made(need),
        "The batch is as wide as its longest row. Then nearly every batch has a shape "
        "of its own; take the narrowest of the given widths that holds it.",
    )
    yield (
        "source and target of two widths",
        lambda: (made(fitting(longest))[0], *made(fitting(written + 1))[1:]),
        "All three tensors have one width, the narrowest that holds both sides.",
    )
    yield (
        "the widest in place of the narrowest",
        lambda: made(max(widths)),
        "It fits, but most of it is padding, which costs as much as words do.",
    )
    yield (
        "the first width that fits, not the narrowest",
        lambda: made(next(each for each in widths if each >= need)),
        "The widths need not be in order: take the minimum of those that fit.",
    )
    yield (
        "padding on the left",
        lambda: made(width, left=True),
        "Words come first, padding after them: positions count from the first word.",
    )
    yield (
        "the source with special tokens",
        lambda: made(width, read=framed),
        "Only the decoder needs <sos> and <eos>; the source is given as it is.",
    )
    yield (
        "inputs and labels exchanged",
        lambda: tuple(made(width)[place] for place in (0, 2, 1)),
        "The decoder reads what begins with <sos> and predicts what ends with <eos>.",
    )
    yield (
        "targets not shifted",
        lambda: made(width, first=both, second=both),
        "Inputs and labels are the same, so the model only learns to repeat what it "
        "reads. Use shift_right.",
    )
    yield (
        "filled with 0 in place of pad_id",
        lambda: made(width, fill=0),
        "pad_id is an argument, and need not be 0.",
    )
    yield (
        "the labels padded with <eos>",
        lambda: (*made(width)[:2], _filled(labels, width, eos)),
        "One <eos> ends a sentence. Where nothing is to be predicted stands pad_id, "
        "and the loss leaves it out.",
    )


# --- averaging ------------------------------------------------------------------------


def average_candidates(states: list[dict], right: dict) -> Iterator[Candidate]:
    """What checkpoints become by each mistake; counters as they should be."""
    count = len(states)

    def made(combine) -> dict:
        return {
            name: combine([state[name] for state in states]).to(value.dtype)
            if value.is_floating_point()
            else value
            for name, value in right.items()
        }

    def halves(tensors: list) -> torch.Tensor:
        found = tensors[0].float()
        for each in tensors[1:]:
            found = (found + each.float()) / 2
        return found

    yield (
        "added up in half precision",
        lambda: made(lambda tensors: sum(tensors[1:], tensors[0]) / count),
        "float16 ends at 65504, and the sum is larger than the mean. Convert with "
        ".float() before adding, and back after dividing.",
    )
    yield (
        "added, not averaged",
        lambda: made(lambda tensors: torch.stack(tensors).float().sum(0)),
        "Divide by the number of checkpoints.",
    )
    yield (
        "divided by one too few",
        lambda: made(lambda tensors: torch.stack(tensors).float().sum(0) / (count - 1)),
        "A mean divides by the number of checkpoints.",
    )
    yield (
        "only the last checkpoint",
        lambda: dict(states[-1]),
        "The others have no part in it. Is the result written anew in each turn?",
    )
    yield (
        "only the first checkpoint",
        lambda: {**states[0]},
        "The others have no part in it.",
    )
    yield (
        "an average of averages",
        lambda: made(halves),
        "Half of it is the last checkpoint, an eighth or less the first. Add them all, "
        "then divide once.",
    )
    yield (
        "the median in place of the mean",
        lambda: made(lambda tensors: torch.stack(tensors).float().median(0).values),
        "The mean of the values is asked for.",
    )

    def with_counters(combine) -> dict:
        return {
            name: value if value.is_floating_point() else combine(name)
            for name, value in right.items()
        }

    why = "A counter is no weight: keep that of the last checkpoint."
    yield (
        "integers averaged",
        lambda: with_counters(
            lambda name: sum(state[name] for state in states) // count
        ),
        why,
    )
    yield (
        "integers averaged",
        lambda: with_counters(
            lambda name: torch.stack([state[name] for state in states]).float().mean()
        ),
        why,
    )
    yield (
        "integers averaged",
        lambda: with_counters(
            lambda name: (
                torch.stack([state[name] for state in states])
                .float()
                .mean()
                .to(right[name].dtype)
            )
        ),
        why,
    )
    yield (
        "the counter of another checkpoint",
        lambda: with_counters(lambda name: states[0][name]),
        why,
    )
    yield (
        "integers left out",
        lambda: {n: v for n, v in right.items() if v.is_floating_point()},
        "load_state_dict wants every key. " + why,
    )


# --- the floor of a smoothed loss -----------------------------------------------------


def floor_candidates(vocab_size: int, smoothing: float) -> Iterator[Candidate]:
    """What the lowest loss becomes by each mistake."""
    share = smoothing / vocab_size
    top = 1 - smoothing + share

    def entropy(first: float, other: float, count: int) -> float:
        total = first * math.log(first) if first else 0.0
        return -(total + count * other * math.log(other)) if other else -total

    yield (
        "spread over the wrong classes only",
        lambda: entropy(1 - smoothing, smoothing / (vocab_size - 1), vocab_size - 1),
        "PyTorch and the paper spread it over all V classes, so the right one gets its "
        "share, too: 1 - ε + ε/V.",
    )
    yield (
        "the right class without its share",
        lambda: entropy(1 - smoothing, share, vocab_size - 1),
        "ε is spread over all V classes, the right one included: 1 - ε + ε/V. The "
        "chances sum to 1.",
    )
    yield (
        "all V classes counted as wrong ones",
        lambda: entropy(top, share, vocab_size),
        "V - 1 classes are not the right one.",
    )
    yield (
        "only the right class counted",
        lambda: -math.log(top),
        "That is the loss without smoothing of this prediction. The smoothed loss asks "
        "for the other classes, too.",
    )
    yield (
        "only the right class counted",
        lambda: -top * math.log(top),
        "An entropy is a sum over all classes; those that are not right add the most.",
    )
    yield (
        "one wrong class in place of V - 1",
        lambda: entropy(top, share, 1),
        "There are V - 1 classes with the chance ε/V; multiply by their number.",
    )
    yield (
        "sign not changed",
        lambda: -entropy(top, share, vocab_size - 1),
        "Logarithms of chances are negative, and a loss is not.",
    )
    yield (
        "base 2 in place of e",
        lambda: entropy(top, share, vocab_size - 1) / math.log(2),
        "The cross-entropy of PyTorch is in nats: math.log, not math.log2.",
    )
    yield (
        "the smoothing itself",
        lambda: smoothing,
        "The floor is the entropy of the smoothed target; ε is a part of it.",
    )
    yield (
        "the loss of an even guess",
        lambda: smoothing * math.log(vocab_size),
        "This is one of two parts. Write down the chances of all V classes, then their "
        "entropy.",
    )


# --- teacher-forced accuracy ----------------------------------------------------------


def forced_candidates(
    logits: torch.Tensor, labels: torch.Tensor, pad: int
) -> Iterator[Candidate]:
    """What the two shares become by each mistake."""
    said, real = logits.argmax(dim=-1), labels != pad
    hit = said == labels

    def share(x: torch.Tensor) -> float:
        return x.float().mean().item()

    tokens, whole = share(hit[real]), share((hit | ~real).all(dim=-1))
    each = (hit & real).sum(-1) / real.sum(-1)
    yield (
        "padding is counted",
        lambda: (share(hit), whole),
        "What stands where nothing is to be said does not count, neither as right nor "
        "as wrong.",
    )
    yield (
        "padding is counted",
        lambda: (share(hit), share(hit.all(dim=-1))),
        "What stands where nothing is to be said does not count, neither as right nor "
        "as wrong.",
    )
    yield (
        "padding counted as right",
        lambda: (share(hit | ~real), whole),
        "Padding says nothing about the model: divide by the number of real labels.",
    )
    yield (
        "padding counted as wrong",
        lambda: (share(hit & real), whole),
        "Divide by the number of real labels, not by all places.",
    )
    yield (
        "padding makes a sentence wrong",
        lambda: (tokens, share(hit.all(dim=-1))),
        "A sentence is right if each of its real labels is said; what the model says "
        "after the end is nothing to anybody.",
    )
    yield (
        "padding makes a sentence wrong",
        lambda: (tokens, share((hit & real).all(dim=-1))),
        "A sentence is right if each of its real labels is said; what the model says "
        "after the end is nothing to anybody.",
    )
    yield (
        "the mean of the sentences' shares",
        lambda: (share(each), whole),
        "Then a word of a short sentence counts more than one of a long one. Count all "
        "tokens that are right, and divide by all that are real.",
    )
    yield (
        "a sentence with one right token counted",
        lambda: (tokens, share((hit & real).any(dim=-1))),
        "All of its tokens have to be right: .all, not .any.",
    )
    yield (
        "shifted once more",
        lambda: (
            share((said[:, :-1] == labels[:, 1:])[real[:, 1:]]),
            share(((said[:, :-1] == labels[:, 1:]) | ~real[:, 1:]).all(dim=-1)),
        ),
        "logits[:, t] already scores labels[:, t]: shift_right has moved them.",
    )
    yield (
        "percent in place of shares",
        lambda: (100 * tokens, 100 * whole),
        "The result is from 0 to 1.",
    )
    yield (
        "the two shares are exchanged",
        lambda: (whole, tokens),
        "First that of the tokens, then that of the sentences.",
    )
    yield (
        "the same share twice",
        lambda: (tokens, tokens),
        "A sentence is right only if all of its tokens are.",
    )


# --- alignment ------------------------------------------------------------------------


def align_candidates(
    weights: torch.Tensor, source: int, target: int
) -> Iterator[Candidate]:
    """What the alignment becomes by each mistake."""
    cut = weights[:, :target, :source]
    mean = cut.mean(dim=0)  # (T_tgt, T_src)
    yield (
        "padding not cut off",
        lambda: weights.mean(dim=0).argmax(dim=-1)[:target].tolist(),
        "Only the first source_length columns are words of the source.",
    )
    yield (
        "padding not cut off",
        lambda: weights.mean(dim=0)[:, :source].argmax(dim=-1).tolist(),
        "Only the first target_length rows are tokens of the target.",
    )
    yield (
        "padding not cut off",
        lambda: weights.mean(dim=0).argmax(dim=-1).tolist(),
        "Only target_length rows and source_length columns are words.",
    )
    yield (
        "rows and columns exchanged",
        lambda: mean.argmax(dim=0).tolist(),
        "A row is a query: the target token that looks. Its largest entry is along the "
        "last axis, over the source.",
    )
    yield (
        "only the first head",
        lambda: cut[0].argmax(dim=-1).tolist(),
        "One head shows one part of the work: average over all of them.",
    )
    yield (
        "only the last head",
        lambda: cut[-1].argmax(dim=-1).tolist(),
        "One head shows one part of the work: average over all of them.",
    )
    yield (
        "the largest weight of any head",
        lambda: cut.amax(dim=0).argmax(dim=-1).tolist(),
        "One head that is sure then decides for all. Average over the heads first.",
    )
    yield (
        "a vote of the heads",
        lambda: cut.argmax(dim=-1).mode(dim=0).values.tolist(),
        "How sure a head is, is lost when each has one vote. Average, then look for "
        "the largest.",
    )
    yield (
        "the least in place of the largest",
        lambda: mean.argmin(dim=-1).tolist(),
        "A token looks where its weight is largest.",
    )
    yield (
        "one row too late",
        lambda: weights.mean(0)[1 : target + 1, :source].argmax(dim=-1).tolist(),
        "Row t is where the model looks while it chooses target token t: its input is "
        "moved already, so the rows are not.",
    )
    yield (
        "counted from 1",
        lambda: [place + 1 for place in mean.argmax(dim=-1).tolist()],
        "Positions count from 0.",
    )
    yield (
        "weights in place of positions",
        lambda: mean.amax(dim=-1).tolist(),
        "The largest weight is asked for by its place: argmax, not max.",
    )


# --- is a difference real? ------------------------------------------------------------


def bootstrap_candidates(
    first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor
) -> Iterator[Candidate]:
    """What difference and interval become by each mistake."""
    gap = (second - first).double()
    means = gap[indices].mean(dim=-1)
    middle = gap.mean().item()

    def made(values: torch.Tensor, low=0.025, high=0.975, mean=middle) -> tuple:
        ends = torch.tensor([low, high], dtype=torch.double)
        return (mean, *torch.quantile(values.double(), ends).tolist())

    apart = second[indices.flip(0)].double().mean(-1) - first[indices].mean(-1)
    rolled = second[indices.roll(1, 0)].double().mean(-1) - first[indices].mean(-1)
    spread = 1.96 * means.std()
    yield (
        "the samples of the two systems drawn apart",
        lambda: made(apart),
        "Both are judged on the same sentences: a sample takes the same rows of both. "
        "Else the luck of the draw counts twice.",
    )
    yield (
        "the samples of the two systems drawn apart",
        lambda: made(rolled),
        "Both are judged on the same sentences: a sample takes the same rows of both. "
        "Else the luck of the draw counts twice.",
    )
    yield (
        "first minus second",
        lambda: (-middle, *made(-means)[1:]),
        "A positive difference says that the second system is better.",
    )
    yield (
        "5 and 95 percent",
        lambda: made(means, 0.05, 0.95),
        "An interval of 95 % leaves out 2.5 % at either end.",
    )
    yield (
        "the interval of sentences, not of samples",
        lambda: made(gap),
        "How much sentences differ is another question. Average over each sample "
        "first; then look how much the averages differ.",
    )
    yield (
        "the smallest and the largest sample",
        lambda: (middle, means.min().item(), means.max().item()),
        "They grow with the number of samples. Take the percentiles 2.5 and 97.5.",
    )
    yield (
        "1.96 deviations in place of percentiles",
        lambda: (middle, *(middle + s * spread.item() for s in (-1, 1))),
        "That assumes a bell curve. Take the percentiles of the samples themselves.",
    )
    yield (
        "the mean of the samples as the difference",
        lambda: made(means, mean=means.mean().item()),
        "The difference is that of the whole test set; samples only tell how sure it "
        "is.",
    )
    yield (
        "the interval of the second system alone",
        lambda: made(second[indices].mean(-1)),
        "The interval is that of the difference.",
    )
    yield (
        "averaged over the samples, not over the sentences",
        lambda: made(gap[indices].mean(dim=0)),
        "indices is (samples, sentences): a sample is a row. Average along the last "
        "axis.",
    )
    yield (
        "low and high exchanged",
        lambda: (middle, *made(means)[:0:-1]),
        "The low end comes before the high one.",
    )
    yield (
        "counts in place of means",
        lambda: (gap.sum().item(), *made(gap[indices].sum(dim=-1))[1:]),
        "Scores are shares of the test set: divide by the number of sentences.",
    )
