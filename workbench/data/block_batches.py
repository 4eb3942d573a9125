"""Blocks of a text, all of it on the device before training begins."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from workbench.errors import WorkbenchError

Batch = tuple[torch.Tensor, torch.Tensor]
MANY = 16  # blocks; in a longer text they begin elsewhere in each epoch


class BlockBatches:
    """Batches of blocks and of the tokens that follow, in a new order each epoch."""

    def __init__(
        self,
        ids: list[int],
        length: int,
        rows: int,
        device: torch.device | str,
        seed: int = 0,
        newline: int | None = None,
    ) -> None:
        """Put a text on the device.

        Args:
            ids: of all its tokens.
            length: T, tokens in a block.
            rows: B, blocks in a batch.
            device: where the tensors are to be.
            seed: of the order.
            newline: the id that ends a story, if every block is to begin with a story.
                What a block cuts is whole in the next one.

        Raises:
            WorkbenchError: the text is shorter than a block.
        """
        if len(ids) <= length:
            raise WorkbenchError(
                f"the text to learn from has {len(ids)} tokens, and a block with the "
                f"token after it {length + 1}: take a longer text, or a shorter "
                "--context"
            )
        self.ids = torch.tensor(ids, device=device)
        self.length, self.seed = length, seed
        self.starts = None if newline is None else story_starts(ids, length, newline)
        blocks = (len(ids) - 1) // length
        blocks -= blocks > MANY
        self.count = blocks if self.starts is None else len(self.starts)
        self.rows = min(rows, self.count)

    def __len__(self) -> int:
        """Return the number of batches an epoch."""
        return self.count // self.rows

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield the batches of an epoch: inputs and labels, each (B, T).

        The order depends on the seed and the number of the epoch alone, and is drawn on
        the CPU, so that it is the same on every device.
        """
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + number)
        if self.starts is None:
            free = len(self.ids) - 1 - self.count * self.length
            first = torch.randint(free + 1, (), generator=generator)
            starts = first + self.length * torch.arange(self.count)
        else:
            starts = self.starts
        order = torch.randperm(self.count, generator=generator)
        places = torch.arange(self.length + 1, device=self.ids.device)
        for chosen in order[: len(self) * self.rows].split(self.rows):
            begin = starts[chosen].to(self.ids.device, non_blocking=True)
            block = self.ids[begin.unsqueeze(1) + places]  # (B, T + 1)
            yield block[:, :-1], block[:, 1:]


def story_starts(ids: list[int], length: int, newline: int) -> torch.Tensor:
    """Return where blocks begin, each with a story, so that each story is in one whole.

    A story that is longer than a block is continued in the next.
    """
    begins = [0, *(place + 1 for place, each in enumerate(ids) if each == newline)]
    last = len(ids) - 1 - length  # where the last block can begin
    starts, place, candidate = [], 0, 0
    while place <= last:
        starts.append(place)
        end = place + length
        while candidate < len(begins) and begins[candidate] <= end:
            candidate += 1
        begin = begins[candidate - 1]
        place = begin if begin > place else end
    if place < len(ids) - 1:
        starts.append(last)  # the end of the text
    return torch.tensor(starts)
