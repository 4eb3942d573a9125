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
        agreement: float,
    ) -> torch.Tensor:
        """Return the mean in nats, shape ().

        Args:
            ctx: keeps the gradients.
            hidden: (P, N, d), of each pass; two if they are to agree, else one.
            table: (V, d).
            labels: (N,), the same for all passes.
            smoothing: the gradient of a logit is its probability, less what the
                target gives it: smoothing / V, and 1 - smoothing more for the label.
            agreement: R-Drop's weight of what is apart, see ``draw_together``.
        """
        passes, count, words = len(hidden), max(1, hidden[..., 0].numel()), len(table)
        low, rows_of_table = hidden.bfloat16(), table.bfloat16()
        of_hidden, of_table = torch.empty_like(low), torch.zeros_like(table)
        total = hidden.new_zeros((), dtype=torch.float32)
        # made once: what is allocated anew each time has to be emptied each time
        products, part = low.new_empty(ROWS, words), torch.empty_like(rows_of_table)
        scores = products.float()
        for begin in range(0, len(labels), ROWS // passes):
            here = slice(begin, begin + ROWS // passes)
            rows = low[:, here].flatten(0, 1)
            wanted = labels[here].repeat(passes).unsqueeze(1)
            own_products, logits = products[: len(rows)], scores[: len(rows)]
            logits.copy_(torch.mm(rows, rows_of_table.mT, out=own_products))
            own, even = logits.gather(1, wanted), logits.mean(dim=1, keepdim=True)
            top = logits.amax(dim=1, keepdim=True)
            of_all = logits.sub_(top).exp_().sum(dim=1, keepdim=True)
            level = top + of_all.log()
            total += (level - (1 - smoothing) * own - smoothing * even).sum()
            change = logits.div_(of_all)
            if agreement:
                log_p, log_q = own_products.float().sub_(level).chunk(2)
                apart = draw_together(change, log_p.sub_(log_q), agreement)
                total += agreement * apart
            change.sub_(smoothing / words)
            change.scatter_add_(1, wanted, change.new_full(wanted.shape, smoothing - 1))
            own_products.copy_(change)
            of_rows = torch.mm(own_products, rows_of_table)
            of_hidden[:, here] = of_rows.unflatten(0, (passes, -1))
            of_table += torch.mm(own_products.mT, rows, out=part)
        ctx.save_for_backward(of_hidden.to(hidden.dtype) / count, of_table / count)
        return total / count

    @staticmethod
    def backward(ctx: Any, *of_loss: torch.Tensor) -> tuple:
        """Scale what was worked out already."""
        of_hidden, of_table = ctx.saved_tensors
        return of_loss[0] * of_hidden, of_loss[0] * of_table, None, None, None


def draw_together(
    probabilities: torch.Tensor, log_odds: torch.Tensor, weight: float
) -> torch.Tensor:
    """Add to probabilities what R-Drop adds to the gradient of their logits.

    Args:
        probabilities: (2R, V), of one pass and then of the other; changed in place.
        log_odds: (R, V), log p - log q; overwritten.
        weight: of the divergence.

    Returns:
        ½ (KL(p‖q) + KL(q‖p)) in nats, summed over the rows, shape ().
    """
    p, q = probabilities.chunk(2)
    p_to_q = (p * log_odds).sum(dim=1, keepdim=True)
    q_to_p = -(q * log_odds).sum(dim=1, keepdim=True)
    gap = p - q
    of_p = (log_odds - p_to_q).mul_(p).add_(gap)
    of_q = log_odds.add_(q_to_p).mul_(q).add_(gap)  # with the other sign
    p.add_(of_p, alpha=weight / 2)
    q.sub_(of_q, alpha=weight / 2)
    return (p_to_q + q_to_p).sum() / 2


def tied_loss(
    hidden: torch.Tensor,
    table: torch.Tensor,
    labels: torch.Tensor,
    pad_id: int,
    smoothing: float = 0.0,
    agreement: float = 0.0,
) -> torch.Tensor:
    """Average the cross-entropy over the real labels, with label smoothing.

    Args:
        hidden: (B, T, d_model), what the logits would be made of; (2B, T, d_model) if
            the batch was read twice.
        table: (V, d_model).
        labels: (B, T), ids; where they equal pad_id nothing is scored.
        pad_id: the id of padding.
        smoothing: the share of the target that is spread over all V classes.
        agreement: R-Drop's weight, if the batch was read twice.

    Returns:
        What ``sequence_loss`` makes of the logits, and ``agreeing_loss`` of those of
        two passes, but for the precision; shape ().
    """
    real, passes = labels != pad_id, len(hidden) // max(1, len(labels))
    rows = hidden.unflatten(0, (passes, -1))[:, real]  # (P, N, d_model)
    loss: torch.Tensor = TiedLoss.apply(rows, table, labels[real], smoothing, agreement)
    return loss
