"""Class token: the answers to the exercises of chapter 2.

Generated from solutions/02_class_token.md by `make exercises`; change that file.
"""

import math

import torch
from torch import nn


class ClassToken(nn.Module):
    """Put trained vectors in front of every sequence (BERT 2018, ViT 2020).

    Parameters: token (count, d_model), shared by all sequences.

    Defined in Exercise 2.1 · The class token.
    """

    def __init__(self, d_model: int, count: int = 1) -> None:
        """Draw the parameter with a standard deviation of 0.02."""
        super().__init__()
        # 1. The parameter.
        self.token = nn.Parameter(0.02 * torch.randn(count, d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Prepend the class tokens.

        Args:
            x: (B, T, d_model).

        Returns:
            (B, count + T, d_model), class tokens at the positions 0 ... count - 1.
        """
        # 2. The tokens, once for each sequence. 3. Join, the tokens first.
        tokens = self.token.expand(len(x), -1, -1)  # (B, count, d_model)
        return torch.cat((tokens, x), dim=1)  # (B, count + T, d_model)


def mask_with_class_token(mask: torch.Tensor, count: int = 1) -> torch.Tensor:
    """Extend a padding mask by class tokens at the front.

    Args:
        mask: boolean (B, 1, T), True for real tokens.
        count: the number of class tokens.

    Returns:
        Boolean (B, 1, count + T); the first count entries are True.

    Defined in Exercise 2.2 · The mask grows, too.
    """
    # 1. True for each class token. 2. Join along the last axis.
    real = mask.new_ones(len(mask), 1, count)  # (B, 1, count)
    return torch.cat((real, mask), dim=-1)


class ClassHead(nn.Module):
    """Classify a sequence by the output at position 0, the class token's.

    Parameters: weight (d_model, classes) and bias (classes,).

    Defined in Exercise 2.3 · The head reads position 0.
    """

    def __init__(self, d_model: int, classes: int) -> None:
        """Draw the weight with a standard deviation of 1/√d_model; bias 0."""
        super().__init__()
        # 1. The two parameters.
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map the output at position 0 to logits.

        Args:
            hidden: (B, T, d_model), what the encoder returns.

        Returns:
            Logits (B, classes).
        """
        # 2. Position 0 of every sequence. 3. y = x W + b.
        return hidden[:, 0] @ self.weight + self.bias


def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Average the real tokens of each sequence.

    Args:
        hidden: (B, T, d_model).
        mask: boolean (B, 1, T), True for real tokens.

    Returns:
        (B, d_model); zeros for a sequence without real tokens.

    Defined in Exercise 2.4 · The mean of the real tokens.
    """
    # 1. The mask as a column, (B, T, 1).
    # 2. The sum of the real tokens. 3. Divide by their number, at least 1.
    real = mask.mT  # (B, T, 1)
    total = hidden.masked_fill(~real, 0.0).sum(dim=1)  # (B, d_model)
    return total / real.sum(dim=1).clamp(min=1)


class MeanHead(nn.Module):
    """Classify a sequence by the mean of the outputs of its real tokens.

    Parameters: weight (d_model, classes) and bias (classes,).

    Defined in Exercise 2.4 · The mean of the real tokens.
    """

    def __init__(self, d_model: int, classes: int) -> None:
        """Draw the weight with a standard deviation of 1/√d_model; bias 0."""
        super().__init__()
        # 4. The two parameters.
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Map the mean of the real tokens to logits.

        Args:
            hidden: (B, T, d_model), what the encoder returns.
            mask: boolean (B, 1, T), True for real tokens; None: all are real.

        Returns:
            Logits (B, classes).
        """
        # 5. Without a mask, all are real. 6. The mean, then y = x W + b.
        if mask is None:
            mask = hidden.new_ones(len(hidden), 1, hidden.shape[1], dtype=torch.bool)
        return masked_mean(hidden, mask) @ self.weight + self.bias


def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    """Average the negative log-likelihood of the words' tags.

    Args:
        logits: (B, count + T, classes); the first count rows are the class tokens'.
        tags: (B, T), a class for each position; of no meaning in the padding.
        mask: boolean (B, 1, T), True for words.
        count: the number of class tokens.

    Returns:
        The mean over all words of the batch, shape (); 0 if there are none.

    Defined in Exercise 2.6 · A label for each word: the loss.
    """
    # 1. The rows of the words. 2. The loss of each position. 3. The mean of the words.
    scores = logits[:, count:].mT  # (B, classes, T)
    losses = nn.functional.cross_entropy(scores, tags, reduction="none")  # (B, T)
    words = mask[:, 0]  # (B, T)
    return losses.masked_fill(~words, 0.0).sum() / words.sum().clamp(min=1)


class TaskHeads(nn.Module):
    """Answer task i from position i, the output of the i-th class token.

    Parameters: heads.i.weight (d_model, classes[i]) and heads.i.bias (classes[i],).

    Defined in Exercise 2.7 · A class token for each task.
    """

    def __init__(self, d_model: int, classes: list[int]) -> None:
        """Build a head for each task."""
        super().__init__()
        # 1. One head for each entry of classes, in an nn.ModuleList.
        self.heads = nn.ModuleList(ClassHead(d_model, number) for number in classes)

    def forward(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        """Map the output at position i to the logits of task i.

        Args:
            hidden: (B, T, d_model) with class tokens at the first positions.

        Returns:
            A list of logits, entry i of shape (B, classes[i]).
        """
        # 2. Head i reads position i. 3. All of them in a list.
        return [head(hidden[:, task:]) for task, head in enumerate(self.heads)]
