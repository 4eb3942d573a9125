"""The loss of logits that are products with a table, without ever holding them all.

The logits of a batch are its largest tensor: with 10,000 words they take 80 times the
memory of the hidden states, and on a CPU the time goes by in moving them. Here they are
made for a few rows at a time, and their gradient at once, while both are in the cache.
"""

from __future__ import annotations

from typing import Any

import torch

ROWS = 256  # at a time: with 10 000 words, 5 MB in bfloat16


class TiedLoss(torch.autograd.Function):
    """Chapter 7's smoothed cross-entropy of ``hidden @ table.mT``, in bfloat16.

    Sums and logarithms are float32; so is the table's gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: torch.Tensor,
        table: torch.Tensor,
        labels: torch.Tensor,
        smoothing: float,
    ) -> torch.Tensor:
        """Return the mean in nats, shape (); hidden (N, d), table (V, d), labels (N,).

        The gradient of a logit is its probability, less what the target gives it:
        smoothing / V, and 1 - smoothing more for the label.
        """
        count, words = max(1, len(labels)), len(table)
        low, rows_of_table = hidden.bfloat16(), table.bfloat16()
        of_hidden, of_table = torch.empty_like(low), torch.zeros_like(table)
        total = hidden.new_zeros((), dtype=torch.float32)
        # made once: what is allocated anew each time has to be emptied each time
        products, part = low.new_empty(ROWS, words), torch.empty_like(rows_of_table)
        scores = products.float()
        for begin in range(0, len(labels), ROWS):
            here = slice(begin, begin + ROWS)
            rows, wanted = low[here], labels[here].unsqueeze(1)
            own_products, logits = products[: len(rows)], scores[: len(rows)]
            logits.copy_(torch.mm(rows, rows_of_table.mT, out=own_products))
            own, even = logits.gather(1, wanted), logits.mean(dim=1, keepdim=True)
            top = logits.amax(dim=1, keepdim=True)
            of_all = logits.sub_(top).exp_().sum(dim=1, keepdim=True)
            level = top + of_all.log()
            total += (level - (1 - smoothing) * own - smoothing * even).sum()
            change = logits.div_(of_all).sub_(smoothing / words)
            change.scatter_add_(1, wanted, change.new_full(wanted.shape, smoothing - 1))
            own_products.copy_(change)
            torch.mm(own_products, rows_of_table, out=of_hidden[here])
            of_table += torch.mm(own_products.mT, rows, out=part)
        ctx.save_for_backward(of_hidden.to(hidden.dtype) / count, of_table / count)
        return total / count

    @staticmethod
    def backward(ctx: Any, *of_loss: torch.Tensor) -> tuple:
        """Scale what was worked out already."""
        of_hidden, of_table = ctx.saved_tensors
        return of_loss[0] * of_hidden, of_loss[0] * of_table, None, None


def tied_loss(
    hidden: torch.Tensor,
    table: torch.Tensor,
    labels: torch.Tensor,
    pad_id: int,
    smoothing: float = 0.0,
) -> torch.Tensor:
    """Average the cross-entropy over the real labels, with label smoothing.

    Args:
        hidden: (B, T, d_model), what the logits would be made of.
        table: (V, d_model).
        labels: (B, T), ids; where they equal pad_id nothing is scored.
        pad_id: the id of padding.
        smoothing: the share of the target that is spread over all V classes.

    Returns:
        What ``sequence_loss`` makes of the logits, but for the precision; shape ().
    """
    real = labels != pad_id
    loss: torch.Tensor = TiedLoss.apply(hidden[real], table, labels[real], smoothing)
    return loss
