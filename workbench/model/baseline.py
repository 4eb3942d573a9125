"""A small convolutional network: what the Vision Transformer is compared with.

It is no part of the course's models, so it is written with PyTorch's own layers. It has
at most as many parameters as the Vision Transformer of the same data set, sees the same
images, changed in the same way, and is trained by the same code for as many steps.
"""

import torch
import torch.nn.functional as F
from torch import nn

GROUPS = 8  # of channels, normalised together


class ConvNet(nn.Module):
    """Convolutions in stages; each stage has half the side and twice the channels."""

    def __init__(
        self, channels: int, classes: int, width: int, stages: int, dropout: float
    ) -> None:
        """Build a network with new parameters.

        Args:
            channels: of the images.
            classes: logits of an image.
            width: channels of the first stage, a multiple of GROUPS.
            stages: how many; between two of them the side is halved.
            dropout: of the features before the logits.
        """
        super().__init__()
        widths = [width * 2**number for number in range(stages)]
        inputs = [channels, *widths]
        pairs = zip(inputs, widths, strict=False)
        self.stages = nn.ModuleList(stage(before, after) for before, after in pairs)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return logits (B, classes) of images (B, C, H, W)."""
        x = self.stages[0](images)  # (B, width, H, W)
        for later in self.stages[1:]:
            x = later(F.max_pool2d(x, 2))  # twice the channels, half the sides
        features = x.mean(dim=(2, 3))  # (B, channels of the last stage)
        return self.head(self.dropout(features))  # (B, classes)


def stage(before: int, after: int) -> nn.Sequential:
    """Two convolutions of 3 × 3 pixels, each normalised, with the side unchanged.

    Normalised over groups of channels of one image: unlike batch normalisation that
    needs no running averages, and is the same in training and afterwards.
    """
    layers: list[nn.Module] = []
    for channels in (before, after):
        convolution = nn.Conv2d(channels, after, 3, padding=1, bias=False)
        layers += [convolution, nn.GroupNorm(GROUPS, after), nn.ReLU()]
    return nn.Sequential(*layers)
