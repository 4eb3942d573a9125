"""R-Drop: two passes through the same model, with other dropout, are to agree.

Liang et al. (2021), *R-Drop: Regularized Dropout for Neural Networks*. Dropout draws a
smaller network for each pass. What one of them says of a word the other should say,
too: beside the loss of both, how far their probabilities are apart is made small.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from workbench.data.tokenizer import Tokenizer
from workbench.errors import WorkbenchError


def agreeing_loss(
    sequence_loss: Callable[..., torch.Tensor], smoothing: float, weight: float
) -> Callable[[nn.Module, tuple], torch.Tensor]:
    """Make the loss of a batch that is read twice.

    Args:
        sequence_loss: chapter 7's, a mean over all words.
        smoothing: of the labels.
        weight: the paper's α, of a sum that is halved here as a whole: the mean of
            the two losses, and α / 2 times ``divergence``.

    Raises:
        WorkbenchError: the weight is negative.
    """
    if weight < 0:
        raise WorkbenchError(f"--r-drop {weight:g}: the weight cannot be negative")

    def loss_of(model: nn.Module, batch: tuple) -> torch.Tensor:
        source, inputs, labels = (torch.cat((part, part)) for part in batch)
        logits = model(source, inputs)  # (2B, T, V)
        first, second = logits.chunk(2)
        apart = divergence(first, second, batch[2] != Tokenizer.PAD)
        loss = sequence_loss(logits, labels, Tokenizer.PAD, smoothing)
        return loss + weight / 2 * apart

    return loss_of


def divergence(
    first: torch.Tensor, second: torch.Tensor, real: torch.Tensor
) -> torch.Tensor:
    """Average the Kullback-Leibler divergence of both directions over all words.

    KL(p‖q) + KL(q‖p) is the sum of (p - q) (log p - log q).

    Args:
        first: logits of one pass, (B, T, V).
        second: logits of the other.
        real: (B, T), false at padding.

    Returns:
        ½ (KL(p‖q) + KL(q‖p)) in nats, shape ().
    """
    log_p, log_q = (logits.float().log_softmax(-1) for logits in (first, second))
    both = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1) / 2  # (B, T)
    return both.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)
