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
        of_hidden, of_table = torch.empty_like(low), torch.zeros_like(table).float()
        total = hidden.new_zeros((), dtype=torch.float32)
        parts = zip(low.split(ROWS), labels.split(ROWS), of_hidden.split(ROWS), strict=True)
        for rows, wanted, gradient in parts:
            logits = (rows @ rows_of_table.mT).float()  # (ROWS, V)
            places = wanted.unsqueeze(1)
            own, even = logits.gather(1, places).squeeze(1), logits.mean(dim=1)
            level = logits.logsumexp(dim=1)
            total += (level - (1 - smoothing) * own - smoothing * even).sum()
            change = logits.sub_(level.unsqueeze(1)).exp_().sub_(smoothing / words)
            change.scatter_add_(1, places, change.new_full(places.shape, smoothing - 1))
            change = change.bfloat16()
            torch.mm(change, rows_of_table, out=gradient)
            of_table += change.mT @ rows
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
