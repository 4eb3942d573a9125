"""The digits that come with the course: 1797 of them, of 8 × 8 pixels.

They are those of scikit-learn, the test set of *Optical Recognition of Handwritten
Digits* (E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, CC BY 4.0).
"""

from pathlib import Path

import torch
from safetensors.torch import load_file

FILE = Path(__file__).with_name("digits.safetensors")
LARGEST = 16  # the grey of a pixel that is all ink


def load() -> tuple[torch.Tensor, torch.Tensor]:
    """Return images (1797, 1, 8, 8), greys from 0 to 16, and labels (1797,)."""
    found = load_file(FILE)
    return found["images"].float(), found["labels"].long()
