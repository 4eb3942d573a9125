"""Batches of sentence pairs, all of them on the device before training begins.

A pair is put in a narrow one of a few fixed widths that hold it, and every batch of a
width has the same shape, so that what is compiled for a shape is used again and again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional

from workbench.data.tokenizer import Tokenizer
from workbench.errors import WorkbenchError

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
LENGTHS = (6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128)
FEW_LENGTHS = (12, 16, 20, 28, 64, 128)  # a graph for each is soon compiled


@dataclass(frozen=True)
class Bucket:
    """All pairs of one width, on the device: three integer tensors (N + 1, width)."""

    source: torch.Tensor
    inputs: torch.Tensor
    labels: torch.Tensor
    size: int  # pairs in a batch
    number: int  # batches an epoch


class PairBatches:
    """Batches of about the same number of tokens, in a new order each epoch.

    Every pair comes exactly once an epoch. Where the pairs of a width do not divide
    evenly, a batch ends in rows that have no label and so weigh nothing in the loss;
    with drop_last, the pairs left over are left out, other ones in each epoch.
    """

    def __init__(
        self,
        sources: list[list[int]],
        targets: list[list[int]],
        tokens: int,
        device: torch.device | str,
        seed: int = 0,
        lengths: Sequence[int] = LENGTHS,
        drop_last: bool = False,
        even: bool = True,
        shift_right: Callable | None = None,
    ):
        """Put every pair on the device, in the bucket of its width.

        Args:
            sources: N lists of ids, without special tokens.
            targets: N lists of ids, likewise; one place more is needed for SOS or EOS.
            tokens: the most source or target tokens in a batch, padding included.
            device: where the tensors are to be.
            seed: of the order.
            lengths: the widths that a batch may have.
            drop_last: leave out what does not fill a batch.
            even: make the batches of a width equally large; if not, each but the last
                is as large as ``tokens`` allows, and the shapes are those of any data.
            shift_right: chapter 7's function; None: the reference.

        Raises:
            WorkbenchError: on lists of different length, no pairs, a pair that is
                longer than every width, or too few tokens for one pair.
        """
        if shift_right is None:  # not on top: a student may have no reference
            from transformer import decoder

            shift_right = decoder.shift_right
        self.device, self.seed = torch.device(device), seed
        self.buckets = []
        for width, rows in by_width(sources, targets, lengths, tokens).items():
            pairs = [(sources[row], targets[row]) for row in rows]
            most = tokens // width
            size, number = divide(len(rows), most, drop_last)
            size = size if even else most
            tensors = make_rows(pairs, width, self.device, shift_right)
            self.buckets.append(Bucket(*tensors, size, number))

    def __len__(self) -> int:
        """Return the number of batches an epoch."""
        return sum(bucket.number for bucket in self.buckets)

    def shapes(self) -> list[tuple[int, int]]:
        """Return the shapes (B, width) that batches have, the narrowest first."""
        return [(bucket.size, bucket.source.shape[1]) for bucket in self.buckets]

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield the batches of an epoch: source, inputs, labels, each (B, width).

        The order depends on the seed and the number of the epoch alone, and is drawn on
        the CPU, so that it is the same on every device.
        """
        # far apart: the epochs of one seed are not those of its neighbour
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + number)
        orders = [
            order(bucket, generator).to(self.device, non_blocking=True)
            for bucket in self.buckets
        ]
        plan = [
            (bucket, rows)
            for bucket, ordered in zip(self.buckets, orders, strict=True)
            for rows in ordered
        ]
        for each in torch.randperm(len(plan), generator=generator).tolist():
            bucket, rows = plan[each]
            yield bucket.source[rows], bucket.inputs[rows], bucket.labels[rows]


def divide(pairs: int, most: int, drop_last: bool) -> tuple[int, int]:
    """Return the size and the number of the batches that hold some pairs.

    They are made equally large: 520 pairs, 512 at most, are two batches of 260, not one
    of 512 and one of 8 with 504 empty rows.
    """
    if drop_last:
        size = min(most, pairs)
        return size, pairs // size
    number = -(-pairs // most)
    return -(-pairs // number), number


def order(bucket: Bucket, generator: torch.Generator) -> torch.Tensor:
    """Shuffle the pairs of a bucket: the rows of each batch, (number, size)."""
    pairs, places = len(bucket.source) - 1, bucket.number * bucket.size
    rows = torch.randperm(pairs, generator=generator)[:places]
    empty = torch.full((places - len(rows),), pairs)  # the last row is the empty one
    return torch.cat((rows, empty)).view(bucket.number, bucket.size)


def by_width(
    sources: list[list[int]],
    targets: list[list[int]],
    lengths: Sequence[int],
    tokens: int,
) -> dict[int, list[int]]:
    """Sort the pairs into widths that hold them: width -> numbers of pairs.

    Where there are fewer pairs of a width than a batch holds, the longest ones of the
    next width join them: a step on three sentences alone would be mostly noise.
    """
    if len(sources) != len(targets):
        raise WorkbenchError(f"{len(sources)} sources but {len(targets)} targets")
    if not sources:
        raise WorkbenchError("no sentence pairs: the corpus is empty")
    both = zip(sources, targets, strict=True)
    needs = [max(len(source), len(target) + 1) for source, target in both]
    widths = [fitting(need, row, lengths) for row, need in enumerate(needs)]
    rows = sorted(range(len(needs)), key=lambda row: -needs[row])
    found = {}
    while rows:
        width = widths[rows[0]]
        if tokens < width:
            raise WorkbenchError(
                f"a batch of {tokens} tokens cannot hold a pair of width {width}: "
                f"allow at least {width} tokens a batch"
            )
        # those of this width that have not joined a wider one come first
        alike = sum(widths[row] == width for row in rows)
        take = max(alike, tokens // width)
        found[width], rows = rows[:take], rows[take:]
    return dict(sorted(found.items()))


def fitting(need: int, row: int, lengths: Sequence[int]) -> int:
    """Return the narrowest width that holds a pair."""
    width = min((each for each in lengths if each >= need), default=None)
    if width is None:
        raise WorkbenchError(
            f"pair {row + 1} needs {need} tokens, more than the {max(lengths)} that a "
            "batch may be wide: shorten it, leave it out, or allow a larger width"
        )
    return width


def make_rows(
    pairs: list[tuple[list[int], list[int]]],
    width: int,
    device: torch.device,
    shift_right: Callable,
) -> Batch:
    """Pad the pairs of a width, and put an empty row after them; (N + 1, width)."""
    sos, eos, pad = Tokenizer.SOS, Tokenizer.EOS, Tokenizer.PAD
    # the empty row still has a token to attend to: no softmax over nothing at all
    sources = [*(source for source, _ in pairs), [eos]]
    padded = [source + [pad] * (width - len(source)) for source in sources]
    inputs, labels = shift_right([*(target for _, target in pairs), []], sos, eos, pad)
    labels[-1] = pad
    wider = (0, width - inputs.shape[1])
    return (
        torch.tensor(padded, device=device),
        functional.pad(inputs, wider, value=pad).to(device),
        functional.pad(labels, wider, value=pad).to(device),
    )
