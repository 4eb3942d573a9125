"""Language model: the answers to the exercises of chapter 11.

Generated from solutions/11_language_model.md by `make exercises`; change that file.
"""

import math

import torch


def bits_per_byte(losses: torch.Tensor, text: str) -> float:
    """Say what a text costs a model, in a unit that no tokenizer changes.

    Args:
        losses: (T,), the cross-entropy of each token in nats.
        text: all that the tokens stand for, at least one character.

    Returns:
        Bits per byte of UTF-8.

    Defined in Exercise 11.1 · Bits per byte.
    """
    # 1. The whole text, in bits. 2. Per byte.
    return losses.sum().item() / math.log(2) / len(text.encode())
