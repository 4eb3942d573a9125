"""Images by unfold, by reshape and permute as in einops, by strides of Python loops.

He et al. 2021, "Masked Autoencoders", and timm's layers; einops written out.
"""

import math
from itertools import product

import torch
import torch.nn.functional as F
from torch import nn


def rearrange(x, sizes, order, joined):
    """Split all axes, reorder them and join them: einops.rearrange, without names."""
    return x.reshape(sizes).permute(order).reshape(joined)


def patchify(images, patch_size):
    b, c, height, width = images.shape
    if height % patch_size or width % patch_size:
        raise ValueError(f"{height} x {width} by {patch_size}")
    columns = F.unfold(images, patch_size, stride=patch_size)  # (B, C·P·P, N)
    columns = columns.view(b, c, patch_size**2, -1)
    return columns.permute(0, 3, 2, 1).flatten(2)


def unpatchify(patches, patch_size, height, width):
    p = patch_size
    if height % p or width % p or patches.shape[1] != height * width // p**2:
        raise ValueError("another number of patches")
    b, n, size = patches.shape
    columns = patches.view(b, n, p * p, size // p**2).permute(0, 3, 2, 1)
    return F.fold(columns.reshape(b, -1, n), (height, width), p, stride=p)


class PatchEmbedding(nn.Module):
    """A convolution whose weight is a view of the matrix."""

    def __init__(self, patch_size, channels, d_model):
        super().__init__()
        self.patch_size, self.channels = patch_size, channels
        self.bias = nn.Parameter(torch.zeros(d_model))
        rows = patch_size * patch_size * channels
        self.weight = nn.Parameter(
            nn.init.normal_(torch.empty(rows, d_model), 0, rows**-0.5)
        )

    def forward(self, images):
        p = self.patch_size
        if images.shape[-2] % p or images.shape[-1] % p:
            raise ValueError(f"images {tuple(images.shape)}, patches of {p}")
        kernel = self.weight.t().reshape(-1, p, p, self.channels).movedim(-1, 1)
        return F.conv2d(images, kernel, self.bias, stride=p).flatten(2).mT


def receptive_field(gradient):
    seen = (gradient != 0).any(0)
    if not seen.any():
        return [0, 0]
    places = seen.nonzero()
    low, high = places.amin(0), places.amax(0)
    return list((high - low + 1).numpy())  # np.int64


def attention_rollout(weights):
    stacked = torch.stack([each.mean(0) for each in weights])
    mixed = 0.5 * stacked + 0.5 * torch.eye(stacked.shape[-1])
    return torch.linalg.multi_dot([*mixed.flip(0), torch.eye(mixed.shape[-1])])


def mixup(images, targets, share, permutation):
    def blend(x):
        return torch.lerp(x.index_select(0, permutation), x, share)

    return [blend(images), blend(targets)]


def seed_interval(changed, usual, quantile):
    deviation, mean = torch.std_mean(changed - usual)
    half = quantile * deviation / math.sqrt(changed.numel())
    return [mean.sub(half), mean.add(half)]


def cutmix(images, targets, box, permutation):
    top, left, height, width = box
    rows, columns = (torch.arange(size) for size in images.shape[-2:])
    inside = ((rows >= top) & (rows < top + height))[:, None]
    inside = inside & (columns >= left) & (columns < left + width)
    kept = 1 - inside.double().mean().item()
    mixed = torch.where(inside, images[permutation], images)
    return mixed, kept * targets + (1 - kept) * targets[permutation]


def shift_weights(height, width, row_offset, column_offset):
    found = torch.zeros(height, width, height, width)
    for r, c in product(range(height), range(width)):
        if 0 <= r + row_offset < height and 0 <= c + column_offset < width:
            found[r, c, r + row_offset, c + column_offset] = 1
    return found.view(height * width, -1)


def convolution_by_heads(tokens, kernel, height, width):
    *batch, _, channels = tokens.shape
    images = tokens.reshape(-1, height, width, channels).permute(0, 3, 1, 2)
    found = F.conv2d(images, kernel, padding=kernel.shape[-1] // 2)
    return found.flatten(2).transpose(1, 2).reshape(*batch, height * width, -1)


def standardise(images, train):
    pixels = rearrange(train, train.shape, (1, 0, 2, 3), (train.shape[1], -1))
    flat = pixels.max(1).values == pixels.min(1).values
    std = pixels.std(1, unbiased=False).masked_fill(flat, 1)
    shape = (1, -1, 1, 1)
    return images.sub(pixels.mean(1).view(shape)).div(std.view(shape))


def shift_images(images, down, right):
    height, width = images.shape[-2:]
    result = torch.zeros_like(images)
    for one, image, y, x in zip(
        result, images, down.tolist(), right.tolist(), strict=True
    ):
        if abs(y) < height and abs(x) < width:
            there = one[
                :, max(0, y) : height + min(0, y), max(0, x) : width + min(0, x)
            ]
            size = there.shape[1:]
            top, left = max(0, -y), max(0, -x)
            there += image[:, top : top + size[0], left : left + size[1]]
    return result


def confusion(predictions, labels, classes):
    matrix = torch.zeros(classes, classes, dtype=torch.int32)
    for place in zip(labels.tolist(), predictions.tolist(), strict=True):
        matrix[place] += 1
    both = (matrix + matrix.T).triu(1)
    return [matrix, list(divmod(both.argmax().numpy(), classes))]


def calibration_error(probabilities, labels, bins):
    n = probabilities.shape[0]
    sure, said = (each.numpy() for each in probabilities.max(dim=1))
    sums = [0.0] * bins
    for c, hit in zip(sure.astype(float), said == labels.numpy(), strict=True):
        sums[min(math.floor(c * bins), bins - 1)] += hit - c
    return torch.tensor(sum(map(abs, sums)) / n, dtype=torch.float32)


def position_similarity(table, rows, columns):
    more = table.shape[0] - rows * columns
    if more not in (0, 1):
        raise ValueError(f"{table.shape[0]} positions")
    grid = F.normalize(table[more:], dim=-1).view(rows, columns, -1)
    return torch.einsum("ijd,xyd->ijxy", grid, grid)


def read_by_the_head(rollouts, rows, columns, pooling):
    if pooling == "class":
        read = rollouts[:, 0, 1:]
    else:
        more = rollouts.shape[-1] - rows * columns
        read = rollouts[:, more:, more:].mean(1)
    pictures = read.unflatten(1, (rows, columns))
    return pictures / pictures.sum((1, 2), keepdim=True)
