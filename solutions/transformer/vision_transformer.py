"""Vision Transformer: the answers to the exercises of chapter 8.

Generated from solutions/08_vision_transformer.md by `make exercises`; change that file.
"""

import math

import torch
from torch import nn


from transformer.class_token import ClassHead, ClassToken, MeanHead
from transformer.encoder import Encoder
from transformer.positional_encoding import LearnedPositionalEncoding


def patch_count(height: int, width: int, patch_size: int) -> int:
    """Return how many patches an image has.

    Raises:
        ValueError: if patch_size does not divide height and width.
    """
    if height % patch_size or width % patch_size:
        raise ValueError(
            f"{height} x {width} pixels cannot be cut into patches of {patch_size}"
        )
    return (height // patch_size) * (width // patch_size)


def patchify(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    """Cut images into square patches and flatten each.

    Args:
        images: (B, C, H, W).
        patch_size: P, the pixels along each side of a patch.

    Returns:
        (B, N, P·P·C): patches in reading order; inside a patch (row, column, channel).

    Raises:
        ValueError: if P does not divide H and W.

    Dosovitskiy et al. 2020, section 3.1.

    Defined in Exercise 8.1 · Cut an image into patches.
    """
    # 1. Split height and width, (B, C, H/P, P, W/P, P). 2. Reorder the axes.
    # 3. Join them.
    b, c, h, w = images.shape
    p, count = patch_size, patch_count(h, w, patch_size)
    x = images.reshape(b, c, h // p, p, w // p, p)  # (B, C, H/P, P, W/P, P)
    x = x.permute(0, 2, 4, 3, 5, 1)  # (B, H/P, W/P, P, P, C)
    return x.reshape(b, count, p * p * c)


def unpatchify(
    patches: torch.Tensor, patch_size: int, height: int, width: int
) -> torch.Tensor:
    """Put flattened patches together to images.

    Args:
        patches: (B, N, P·P·C), as patchify makes them.
        patch_size: P.
        height: of the images, in pixels.
        width: of the images, in pixels.

    Returns:
        Images (B, C, height, width).

    Raises:
        ValueError: if an image of this size does not have N patches.

    Defined in Exercise 8.2 · Put the patches together again.
    """
    # 1. Refuse another number of patches. 2. Split. 3. Reorder. 4. Join.
    p, (b, n, _) = patch_size, patches.shape
    if n != patch_count(height, width, p):
        raise ValueError(f"{n} patches of {p} do not make {height} x {width} pixels")
    x = patches.reshape(b, height // p, width // p, p, p, -1)
    x = x.permute(0, 5, 1, 3, 2, 4)  # (B, C, H/P, P, W/P, P)
    return x.reshape(b, -1, height, width)


class PatchEmbedding(nn.Module):
    """Map every patch of an image to a vector.

    Parameters: weight (patch_size · patch_size · channels, d_model), bias (d_model,).
    Dosovitskiy et al. 2020, equation 1.

    Defined in Exercise 8.3 · Embed the patches.
    """

    def __init__(self, patch_size: int, channels: int, d_model: int) -> None:
        """Draw weight with spread 1/√(patch_size² · channels); the bias is zero."""
        super().__init__()
        self.patch_size = patch_size
        # 1. The two parameters.
        length = patch_size * patch_size * channels
        self.weight = nn.Parameter(torch.randn(length, d_model) / math.sqrt(length))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Embed the patches of images (B, C, H, W); returns (B, N, d_model).

        Raises:
            ValueError: if patch_size does not divide H and W.
        """
        # 2. Patches (B, N, P·P·C), times the matrix, plus the bias.
        return patchify(images, self.patch_size) @ self.weight + self.bias


class VisionTransformer(nn.Module):
    """Classify images by an encoder that reads their patches.

    Submodules: patches, class_token, position, encoder (pre-norm, GELU), head.
    Dosovitskiy et al. 2020, "An Image is Worth 16x16 Words".

    Defined in Exercise 8.4 · The Vision Transformer.
    """

    def __init__(
        self,
        image_size: int | tuple[int, int],
        patch_size: int,
        channels: int,
        classes: int,
        d_model: int,
        heads: int,
        layers: int,
        d_ff: int,
        dropout: float = 0.0,
        pooling: str = "class",
    ) -> None:
        """Build the parts for images of one size, in pixels: a side, or (height, width).

        Raises:
            ValueError: if pooling is neither "class" nor "mean", or if patch_size does
                not divide the image's sides.
        """
        super().__init__()
        if pooling not in ("class", "mean"):
            raise ValueError(f"pooling must be 'class' or 'mean', not {pooling!r}")
        square = isinstance(image_size, int)
        height, width = (image_size, image_size) if square else image_size
        self.image_size = height, width
        # 1. The number of positions. 2. The five submodules.
        by_token = pooling == "class"
        positions = patch_count(height, width, patch_size) + by_token
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        self.class_token = ClassToken(d_model) if by_token else nn.Identity()
        self.position = LearnedPositionalEncoding(positions, d_model, dropout)
        self.encoder = Encoder(
            layers, d_model, heads, d_ff, dropout, norm_first=True, activation="gelu"
        )
        head = ClassHead if by_token else MeanHead
        self.head = head(d_model, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Classify images.

        Args:
            images: (B, channels, H, W), of the size the model was built for.

        Returns:
            Logits (B, classes).

        Raises:
            ValueError: if the images have another size.
        """
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"images {tuple(images.shape)} are not {self.image_size}")
        # 3. Patches, class token, positions. 4. Encode, and let the head read.
        x = self.position(self.class_token(self.patches(images)))  # (B, N+1, d)
        return self.head(self.encoder(x))  # (B, classes)


def interpolate_positions(
    table: torch.Tensor,
    old_grid: tuple[int, int],
    new_grid: tuple[int, int],
    class_tokens: int = 1,
) -> torch.Tensor:
    """Resize a table of learned positions to another grid of patches.

    Args:
        table: (class_tokens + h·w, d), the rows of the grid in reading order.
        old_grid: (h, w), in patches.
        new_grid: (h', w'), in patches.
        class_tokens: how many rows at the front belong to no patch.

    Returns:
        (class_tokens + h'·w', d): the first rows unchanged, the others interpolated
        bilinearly between the middles of the patches.

    Dosovitskiy et al. 2020, section 3.2.

    Defined in Exercise 8.5 · Positions for another image size.
    """
    # 1. Class tokens aside. 2. The others as an image (1, d, h, w).
    # 3. Interpolate. 4. Rows again, class tokens first.
    special, grid = table[:class_tokens], table[class_tokens:]
    image = grid.reshape(1, *old_grid, -1).permute(0, 3, 1, 2)  # (1, d, h, w)
    image = nn.functional.interpolate(
        image, size=tuple(new_grid), mode="bilinear", align_corners=False
    )
    rows = image[0].flatten(1).T  # (h'·w', d)
    return torch.cat((special, rows))


def shift_weights(
    height: int, width: int, row_offset: int, column_offset: int
) -> torch.Tensor:
    """Return the attention weights of a fixed step on a grid of tokens.

    Args:
        height: of the grid, in tokens.
        width: of the grid; N = height · width tokens, in reading order.
        row_offset: the step down.
        column_offset: the step to the right.

    Returns:
        (N, N), float32: token (r, c) has the weight 1 on (r + row_offset,
        c + column_offset); a row of zeros where this place is outside the grid.

    Defined in Exercise 8.6 · Attention that looks one step to the right.
    """
    # 1. Where each token looks. 2. A one, if that is inside.
    weights = torch.zeros(height * width, height * width)
    for r in range(height):
        for c in range(width):
            row, column = r + row_offset, c + column_offset
            if 0 <= row < height and 0 <= column < width:
                weights[r * width + c, row * width + column] = 1.0
    return weights


def convolution_by_heads(
    tokens: torch.Tensor, kernel: torch.Tensor, height: int, width: int
) -> torch.Tensor:
    """Convolve tokens on a grid, one attention head for each place of the kernel.

    Args:
        tokens: (..., height · width, C_in), in reading order.
        kernel: (C_out, C_in, k, k), k odd, not flipped.
        height: of the grid, in tokens; zeros continue it.
        width: of the grid, in tokens.

    Returns:
        (..., height · width, C_out).

    Cordonnier, Loukas and Jaggi 2020.

    Defined in Exercise 8.7 · A convolution made of attention heads.
    """
    # 1. The weights of each head. 2. Times the tokens, times its matrix. 3. The sum.
    k = kernel.shape[-1]
    result = torch.zeros(())
    for i in range(k):
        for j in range(k):
            weights = shift_weights(height, width, i - k // 2, j - k // 2)
            result = result + weights @ tokens @ kernel[:, :, i, j].T
    return result


def principal_filters(
    weight: torch.Tensor, count: int, patch_size: int, channels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the principal components of a patch embedding's filters.

    Args:
        weight: (P·P·C, d_model); each column is a filter.
        count: how many components, at most d_model and at most P·P·C.
        patch_size: P.
        channels: C.

    Returns:
        Components (count, P, P, C) of length 1, the largest variance first, of either
        sign; and the share of the variance that each explains, (count,).

    Dosovitskiy et al. 2020, figure 7.

    Defined in Exercise 8.9 · What the patch embedding has learned.
    """
    # 1. Filters as rows, centred. 2. Their directions. 3. Shares. 4. Pictures.
    filters = weight.T  # (d, P·P·C)
    centred = filters - filters.mean(dim=0)
    _, s, directions = torch.linalg.svd(centred, full_matrices=False)
    share = s.square() / s.square().sum()
    pictures = directions[:count].reshape(count, patch_size, patch_size, channels)
    return pictures, share[:count]


def attention_rollout(weights: list[torch.Tensor]) -> torch.Tensor:
    """Combine the attention of all layers, residual connections included.

    Args:
        weights: for each layer (heads, T, T), the first layer first; rows sum to 1.

    Returns:
        (T, T): row i is the share of each input token in output i; rows sum to 1.

    Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers".

    Defined in Exercise 8.10 · Attention through all layers.
    """
    # 1. Each layer: mean over the heads, mixed with the identity. 2. The product.
    identity = torch.eye(weights[0].shape[-1])
    rollout = identity
    for layer in weights:
        mixed = 0.5 * layer.mean(dim=0) + 0.5 * identity  # (T, T)
        rollout = mixed @ rollout
    return rollout


def mixup(
    images: torch.Tensor,
    targets: torch.Tensor,
    share: float,
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Lay over each image a partner of the same batch.

    Args:
        images: (B, C, H, W).
        targets: (B, classes), one-hot or any shares that sum to 1.
        share: in [0, 1], the weight of the image itself.
        permutation: (B,), integers: the partner of each image.

    Returns:
        Mixed images (B, C, H, W) and mixed targets (B, classes), new tensors.

    Zhang et al. 2018, "mixup: Beyond Empirical Risk Minimization".

    Defined in Exercise 8.11 · Mixup, and what it changes.
    """
    # 1. The mixed images. 2. The mixed targets.
    mixed_images = share * images + (1 - share) * images[permutation]
    mixed_targets = share * targets + (1 - share) * targets[permutation]
    return mixed_images, mixed_targets


def seed_interval(
    changed: torch.Tensor, usual: torch.Tensor, quantile: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return an interval for the mean of what a change adds.

    Args:
        changed: (n,), measured with the change, one entry for each seed.
        usual: (n,), measured without it, with the same seeds.
        quantile: Student's quantile for n - 1.

    Returns:
        The lower and the upper end, each of shape ().

    Defined in Exercise 8.11 · Mixup, and what it changes.
    """
    # 3. Differences, their mean and spread. 4. Both ends.
    differences = changed - usual
    width = quantile * differences.std() / math.sqrt(len(differences))
    return differences.mean() - width, differences.mean() + width


def cutmix(
    images: torch.Tensor,
    targets: torch.Tensor,
    box: tuple[int, int, int, int],
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Paste into each image a box from a partner of the same batch.

    Args:
        images: (B, C, H, W).
        targets: (B, classes), one-hot or any shares that sum to 1.
        box: (top, left, height, width), in pixels, inside the image.
        permutation: (B,), integers: the partner of each image.

    Returns:
        New images (B, C, H, W) and targets (B, classes), mixed by area.

    Yun et al. 2019, "CutMix".

    Defined in Exercise 8.12 · CutMix.
    """
    # 1. Paste the box into a copy. 2. The share of the area that is left.
    # 3. The mixed targets.
    top, left, height, width = box
    rows, columns = slice(top, top + height), slice(left, left + width)
    mixed = images.clone()
    mixed[..., rows, columns] = images[permutation][..., rows, columns]
    share = 1 - height * width / (images.shape[-2] * images.shape[-1])
    return mixed, share * targets + (1 - share) * targets[permutation]
