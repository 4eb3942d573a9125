"""Wrong and right answers to the exercises of chapter 8."""

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.decomposition import PCA
from torch import nn

from mistakes import right, wrong
from transformer import vision_transformer as reference
from transformer.class_token import ClassHead, ClassToken, MeanHead
from transformer.encoder import Encoder
from transformer.positional_encoding import (
    LearnedPositionalEncoding,
    SinusoidalPositionalEncoding,
)
from transformer.vision_transformer import PatchEmbedding as Patches
from transformer.vision_transformer import patch_count
from transformer.vision_transformer import patchify as cut
from transformer.vision_transformer import shift_weights as shift

# --- patches --------------------------------------------------------------------------


def joined(x, images, p):
    b, c, h, w = images.shape
    return x.reshape(b, patch_count(h, w, p), p * p * c)


@wrong("patchify", "channels first inside a patch")
def patchify(images, patch_size):
    """PyTorch's unfold as it comes"""
    patch_count(*images.shape[2:], patch_size)
    return F.unfold(images, patch_size, stride=patch_size).mT


@wrong("patchify", "a reshape without a permutation")
def patchify(images, patch_size):
    """channels to the end, then one reshape"""
    return joined(images.permute(0, 2, 3, 1), images, patch_size)


@wrong("patchify", "height and width exchanged")
def patchify(images, patch_size):
    """the shape read in the wrong order"""
    b, c, w, h = images.shape
    return cut(images.reshape(b, c, h, w), patch_size)


@wrong("patchify", "no ValueError for a remainder")
def patchify(images, patch_size):
    *_, h, w = images.shape
    p = patch_size
    whole = images[..., : h // p * p, : w // p * p]
    return cut(whole, p)


@wrong("patchify", "no ValueError for a remainder")
def patchify(images, patch_size):
    """filled up with zeros"""
    p = patch_size
    down, right_of = -images.shape[2] % p, -images.shape[3] % p
    return cut(F.pad(images, (0, right_of, 0, down)), p)


@wrong("patchify", "no gradient comes back")
def patchify(images, patch_size):
    return torch.tensor(cut(images.detach(), patch_size).tolist())


@right("patchify")
def patchify(images, patch_size):
    """a loop over slices"""
    _, _, h, w = images.shape
    p = patch_size
    patch_count(h, w, p)
    rows = [
        images[:, :, top : top + p, left : left + p].permute(0, 2, 3, 1).flatten(1)
        for top in range(0, h, p)
        for left in range(0, w, p)
    ]
    return torch.stack(rows, dim=1)


@right("patchify")
def patchify(images, patch_size):
    """unfold twice"""
    p = patch_size
    patch_count(*images.shape[2:], p)
    x = images.unfold(2, p, p).unfold(3, p, p)  # (B, C, H/P, W/P, P, P)
    return x.permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)


@right("patchify")
def patchify(images, patch_size):
    """channels last from the beginning"""
    p = patch_size
    b, c, h, w = images.shape
    n = patch_count(h, w, p)
    x = images.movedim(1, -1).reshape(b, h // p, p, w // p, p, c)
    return x.transpose(2, 3).reshape(b, n, p * p * c)


@right("patchify")
def patchify(images, patch_size):
    """F.unfold, channels brought to the end"""
    p = patch_size
    patch_count(*images.shape[2:], p)
    columns = F.unfold(images, p, stride=p).mT  # (B, N, C·P·P)
    return columns.unflatten(2, (-1, p * p)).mT.flatten(2)


# --- patches together -----------------------------------------------------------------


def refuse(patches, p, height, width):
    if patches.shape[1] != patch_count(height, width, p):
        raise ValueError(f"{patches.shape[1]} patches do not make such an image")


def taken_apart(patches, p, height, width):
    refuse(patches, p, height, width)
    return patches.reshape(len(patches), height // p, width // p, p, p, -1)


def as_image(x, height, width):
    return x.reshape(len(x), -1, height, width)


@wrong("unpatchify", "a reshape without a permutation")
def unpatchify(patches, patch_size, height, width):
    """channels brought to the front, nothing else"""
    refuse(patches, patch_size, height, width)
    return patches.reshape(len(patches), height, width, -1).permute(0, 3, 1, 2)


@wrong("unpatchify", "channels first inside a patch")
def unpatchify(patches, patch_size, height, width):
    """PyTorch's fold as it comes"""
    refuse(patches, patch_size, height, width)
    return F.fold(patches.mT, (height, width), patch_size, stride=patch_size)


@wrong("unpatchify", "height and width exchanged")
def unpatchify(patches, patch_size, height, width):
    """an image of W rows"""
    return reference.unpatchify(patches, patch_size, width, height)


@wrong("unpatchify", "a reshape without a permutation")
def unpatchify(patches, patch_size, height, width):
    """each axis of patches not followed by its axis of pixels"""
    x = taken_apart(patches, patch_size, height, width)
    return as_image(x.permute(0, 5, 1, 2, 3, 4), height, width)


@wrong("unpatchify", "no ValueError for another number of patches")
def unpatchify(patches, patch_size, height, width):
    p = patch_size
    patch_count(height, width, p)
    x = patches.reshape(len(patches), height // p, width // p, p, p, -1)
    return as_image(x.permute(0, 5, 1, 3, 2, 4), height, width)


@wrong("unpatchify", "no ValueError for a remainder")
def unpatchify(patches, patch_size, height, width):
    """the pixels of all patches are compared with those of the image"""
    p = patch_size
    if patches.shape[1] * p * p != height * width:
        raise ValueError("these patches do not fill the image")
    x = patches.reshape(len(patches), height // p, width // p, p, p, -1)
    return as_image(x.permute(0, 5, 1, 3, 2, 4), height, width)


@right("unpatchify")
def unpatchify(patches, patch_size, height, width):
    """a loop over the patches"""
    p = patch_size
    refuse(patches, p, height, width)
    channels = patches.shape[2] // (p * p)
    images = patches.new_zeros(len(patches), channels, height, width)
    for number in range(patches.shape[1]):
        top, left = number // (width // p) * p, number % (width // p) * p
        patch = patches[:, number].reshape(-1, p, p, channels).permute(0, 3, 1, 2)
        images[:, :, top : top + p, left : left + p] = patch
    return images


@right("unpatchify")
def unpatchify(patches, patch_size, height, width):
    """concatenated, patch by patch and row by row"""
    p = patch_size
    refuse(patches, p, height, width)
    squares = patches.unflatten(2, (p, p, -1)).permute(0, 1, 4, 2, 3)
    columns = width // p
    rows = [
        torch.cat(list(squares[:, start : start + columns].unbind(1)), dim=-1)
        for start in range(0, patches.shape[1], columns)
    ]
    return torch.cat(rows, dim=-2)


@right("unpatchify")
def unpatchify(patches, patch_size, height, width):
    """F.fold, channels brought to the front"""
    p = patch_size
    refuse(patches, p, height, width)
    channels_first = patches.unflatten(2, (p * p, -1)).mT.flatten(2)
    return F.fold(channels_first.mT, (height, width), p, stride=p)


# --- patch embedding ------------------------------------------------------------------


class EmbeddingBase(nn.Module):
    rows_too_many = 0

    def __init__(self, patch_size, channels, d_model):
        super().__init__()
        self.patch_size = patch_size
        length = patch_size * patch_size * channels
        size = length + self.rows_too_many, d_model
        self.weight = nn.Parameter(torch.randn(size) / math.sqrt(length))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, images):
        return cut(images, self.patch_size) @ self.weight + self.bias


@wrong("patch-embedding", "a row too many in the matrix")
class PatchEmbedding(EmbeddingBase):
    """As source 3 counts them: 769."""

    rows_too_many = 1


@wrong("patch-embedding", "channels not counted")
class PatchEmbedding(EmbeddingBase):
    def __init__(self, patch_size, channels, d_model):
        super().__init__(patch_size, 1, d_model)


@wrong("patch-embedding", "weights stored transposed")
class PatchEmbedding(EmbeddingBase):
    def __init__(self, patch_size, channels, d_model):
        super().__init__(patch_size, channels, d_model)
        self.weight = nn.Parameter(self.weight.data.T.clone())

    def forward(self, images):
        return F.linear(cut(images, self.patch_size), self.weight, self.bias)


@wrong("patch-embedding", "PyTorch's module in place of your own")
class PatchEmbedding(nn.Module):
    def __init__(self, patch_size, channels, d_model):
        super().__init__()
        self.convolution = nn.Conv2d(channels, d_model, patch_size, patch_size)

    def forward(self, images):
        return self.convolution(images).flatten(2).mT


@wrong("patch-embedding", "PyTorch's module in place of your own")
class PatchEmbedding(nn.Module):
    """nn.Linear"""

    def __init__(self, patch_size, channels, d_model):
        super().__init__()
        self.patch_size = patch_size
        self.linear = nn.Linear(patch_size * patch_size * channels, d_model)

    def forward(self, images):
        return self.linear(cut(images, self.patch_size))


@wrong("patch-embedding", "the biases are missing")
class PatchEmbedding(EmbeddingBase):
    def __init__(self, patch_size, channels, d_model):
        super().__init__(patch_size, channels, d_model)
        del self.bias
        self.bias = 0.0


@wrong("patch-embedding", "channels first inside a patch")
class PatchEmbedding(EmbeddingBase):
    def forward(self, images):
        p = self.patch_size
        patch_count(*images.shape[2:], p)
        return F.unfold(images, p, stride=p).mT @ self.weight + self.bias


@wrong("patch-embedding", "channels first inside a patch")
class PatchEmbedding(EmbeddingBase):
    """a convolution whose kernel is only reshaped"""

    def forward(self, images):
        p = self.patch_size
        patch_count(*images.shape[2:], p)
        kernel = self.weight.T.reshape(-1, images.shape[1], p, p)
        return F.conv2d(images, kernel, self.bias, stride=p).flatten(2).mT


@wrong("patch-embedding", "the weights start too large")
class PatchEmbedding(EmbeddingBase):
    """divided by the root of the other width"""

    def __init__(self, patch_size, channels, d_model):
        super().__init__(patch_size, channels, d_model)
        nn.init.normal_(self.weight, std=1 / math.sqrt(d_model))


@wrong("patch-embedding", "the weights start too large")
class PatchEmbedding(EmbeddingBase):
    """the channels forgotten"""

    def __init__(self, patch_size, channels, d_model):
        super().__init__(patch_size, channels, d_model)
        nn.init.normal_(self.weight, std=1 / patch_size)


@wrong("patch-embedding", "the weights do not start around 0")
class PatchEmbedding(EmbeddingBase):
    def __init__(self, patch_size, channels, d_model):
        super().__init__(patch_size, channels, d_model)
        bound = math.sqrt(12 / len(self.weight))  # of the spread that is asked for
        self.weight = nn.Parameter(bound * torch.rand_like(self.weight))


@wrong("patch-embedding", "the weights start too large")
class PatchEmbedding(EmbeddingBase):
    def __init__(self, patch_size, channels, d_model):
        super().__init__(patch_size, channels, d_model)
        nn.init.normal_(self.weight)


@wrong("patch-embedding", "the weights all start alike")
class PatchEmbedding(EmbeddingBase):
    def __init__(self, patch_size, channels, d_model):
        super().__init__(patch_size, channels, d_model)
        nn.init.zeros_(self.weight)


@wrong("patch-embedding", "the biases do not start at zero")
class PatchEmbedding(EmbeddingBase):
    def __init__(self, patch_size, channels, d_model):
        super().__init__(patch_size, channels, d_model)
        nn.init.normal_(self.bias)


@wrong("patch-embedding", "parameters are missing")
class PatchEmbedding(nn.Module):
    def __init__(self, patch_size, channels, d_model):
        super().__init__()
        self.weight = torch.randn(patch_size * patch_size * channels, d_model)
        self.bias = torch.zeros(d_model)


@wrong("patch-embedding", "no ValueError for a remainder")
class PatchEmbedding(EmbeddingBase):
    """A convolution does not mind."""

    def forward(self, images):
        p = self.patch_size
        kernel = self.weight.unflatten(0, (p, p, -1)).permute(3, 2, 0, 1)
        return F.conv2d(images, kernel, self.bias, stride=p).flatten(2).mT


@right("patch-embedding")
class PatchEmbedding(EmbeddingBase):
    """the bias before the matrix, einsum"""

    def __init__(self, patch_size, channels, d_model):
        nn.Module.__init__(self)
        self.patch_size, length = patch_size, patch_size**2 * channels
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.weight = nn.Parameter(torch.randn(length, d_model) * length**-0.5)

    def forward(self, images):
        patches = cut(images, self.patch_size)
        return self.bias + torch.einsum("...l,ld->...d", patches, self.weight)


@right("patch-embedding")
class PatchEmbedding(EmbeddingBase):
    """a convolution of stride P"""

    def forward(self, images):
        p = self.patch_size
        patch_count(*images.shape[2:], p)
        kernel = self.weight.unflatten(0, (p, p, -1)).permute(3, 2, 0, 1)
        return F.conv2d(images, kernel, self.bias, stride=p).flatten(2).mT


@right("patch-embedding")
class PatchEmbedding(nn.Module):
    """uniform numbers in place of normal ones, F.linear"""

    def __init__(self, patch_size, channels, d_model):
        super().__init__()
        self.patch_size = patch_size
        self.weight = nn.Parameter(torch.empty(patch_size**2 * channels, d_model))
        nn.init.xavier_normal_(self.weight, gain=math.sqrt(256 / 384))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, images):
        return F.linear(cut(images, self.patch_size), self.weight.T, self.bias)


# --- the model ------------------------------------------------------------------------


class VisionBase(nn.Module):
    """The parts of the model, built by methods that a mistake can replace."""

    def __init__(
        self,
        image_size,
        patch_size,
        channels,
        classes,
        d_model,
        heads,
        layers,
        d_ff,
        dropout=0.0,
        pooling="class",
    ):
        super().__init__()
        if pooling not in ("class", "mean"):
            raise ValueError(f"pooling must be 'class' or 'mean', not {pooling!r}")
        square = isinstance(image_size, int)
        height, width = (image_size, image_size) if square else image_size
        self.image_size = height, width
        self.by_token, self.classes, self.d_model = pooling == "class", classes, d_model
        self.n = self.count(height, width, patch_size)
        self.sizes = layers, d_model, heads, d_ff
        self.patches = Patches(patch_size, channels, d_model)
        self.class_token = ClassToken(d_model) if self.by_token else None
        self.position = self.build_position(dropout)
        self.encoder = self.build_encoder(dropout)
        self.head = (ClassHead if self.by_token else MeanHead)(d_model, classes)

    def count(self, height, width, patch_size):
        return patch_count(height, width, patch_size)

    def build_position(self, dropout):
        rows = self.n + self.by_token
        return LearnedPositionalEncoding(rows, self.d_model, dropout)

    def build_encoder(self, dropout, **options):
        options = {"norm_first": True, "activation": "gelu"} | options
        return Encoder(*self.sizes, dropout, **options)

    def join(self, x):
        return self.class_token(x) if self.by_token else x

    def read(self, hidden):
        return self.head(hidden)

    def placed(self, images):
        return self.position(self.join(self.patches(images)))

    def expect_size(self, images):
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"{tuple(images.shape)} are not {self.image_size}")

    def forward(self, images):
        self.expect_size(images)
        return self.read(self.encoder(self.placed(images)))


@wrong("vision-transformer", "class token without a position")
class VisionTransformer(VisionBase):
    """the table has its row, which is left alone"""

    def placed(self, images):
        x = self.join(self.patches(images))
        first = self.by_token
        return torch.cat((x[:, :first], self.position(x)[:, first:]), dim=1)


@wrong("vision-transformer", "the class token behind the patches")
class VisionTransformer(VisionBase):
    """and read there"""

    def join(self, x):
        if not self.by_token:
            return x
        token = self.class_token.token.expand(len(x), -1, -1)
        return torch.cat((x, token), dim=1)

    def read(self, hidden):
        return self.head(hidden[:, -1:] if self.by_token else hidden)


@wrong("vision-transformer", "no class token")
class VisionTransformer(VisionBase):
    """a head on position 0, without a token there"""

    def build_position(self, dropout):
        self.class_token = None
        return super().build_position(dropout)

    def join(self, x):
        return x


@wrong("vision-transformer", "mean over the class token")
class VisionTransformer(VisionBase):
    def build_position(self, dropout):
        self.class_token = ClassToken(self.d_model)
        return LearnedPositionalEncoding(self.n + 1, self.d_model, dropout)

    def join(self, x):
        return self.class_token(x)


@wrong("vision-transformer", "a position too many")
class VisionTransformer(VisionBase):
    def build_position(self, dropout):
        return LearnedPositionalEncoding(self.n + 1, self.d_model, dropout)


@wrong("vision-transformer", "no learned positions")
class VisionTransformer(VisionBase):
    """the sinusoids of chapter 3"""

    def build_position(self, dropout):
        return SinusoidalPositionalEncoding(self.d_model, dropout=dropout)


@wrong("vision-transformer", "post-norm in place of pre-norm")
class VisionTransformer(VisionBase):
    def build_encoder(self, dropout):
        return super().build_encoder(dropout, norm_first=False)


@wrong("vision-transformer", "no final norm")
class VisionTransformer(VisionBase):
    def forward(self, images):
        self.expect_size(images)
        x = self.placed(images)
        for layer in self.encoder.layers:
            x = layer(x)
        return self.read(x)


@wrong("vision-transformer", "ReLU in place of GELU")
class VisionTransformer(VisionBase):
    def build_encoder(self, dropout):
        return super().build_encoder(dropout, activation="relu")


@wrong("vision-transformer", "another number of layers")
class VisionTransformer(VisionBase):
    def build_encoder(self, dropout):
        _, *others = self.sizes
        return Encoder(1, *others, dropout, norm_first=True, activation="gelu")


@wrong("vision-transformer", "dropout not passed on")
class VisionTransformer(VisionBase):
    def build_position(self, dropout):
        return super().build_position(0.0)

    def build_encoder(self, dropout):
        return super().build_encoder(0.0)


@wrong("vision-transformer", "dropout not passed to the positions")
class VisionTransformer(VisionBase):
    def build_position(self, dropout):
        return super().build_position(0.0)


@wrong("vision-transformer", "dropout not passed to the encoder")
class VisionTransformer(VisionBase):
    def build_encoder(self, dropout):
        return super().build_encoder(0.0)


@wrong("vision-transformer", "a submodule is missing")
class VisionTransformer(VisionBase):
    """a list is no module"""

    def forward(self, images):
        return self.head[0](self.encoder(self.placed(images)))

    def __setattr__(self, name, value):
        super().__setattr__(name, [value] if name == "head" else value)


@wrong("vision-transformer", "the missing class token is called")
class VisionTransformer(VisionBase):
    def join(self, x):
        return self.class_token(x)


@wrong("vision-transformer", "a pair as image_size is not taken apart")
class VisionTransformer(VisionBase):
    def count(self, height, width, patch_size):
        return (self.image_size // patch_size) ** 2


@wrong("vision-transformer", "no ValueError for a remainder")
class VisionTransformer(VisionBase):
    def count(self, height, width, patch_size):
        return (height // patch_size) * (width // patch_size)


@wrong("vision-transformer", "images of another size are accepted")
class VisionTransformer(VisionBase):
    def expect_size(self, images):
        pass


@wrong("vision-transformer", "an unknown pooling is accepted")
class VisionTransformer(VisionBase):
    def __init__(self, *sizes):
        *sizes, pooling = sizes if isinstance(sizes[-1], str) else (*sizes, "class")
        super().__init__(*sizes, pooling="mean" if pooling == "mean" else "class")


@right("vision-transformer")
class VisionTransformer(VisionBase):
    """no class token with the mean, two branches in forward"""

    def placed(self, images):
        x = self.patches(images)
        if self.by_token:
            token = self.class_token.token.expand(len(images), -1, -1)
            x = torch.cat([token, x], dim=1)
        return self.position(x)


@right("vision-transformer")
class VisionTransformer(VisionBase):
    """nn.Identity, and one chain of modules"""

    def forward(self, images):
        self.expect_size(images)
        token = self.class_token or nn.Identity()
        parts = self.patches, token, self.position, self.encoder, self.head
        return nn.Sequential(*parts)(images)


# --- positions ------------------------------------------------------------------------


def resized(grid, old, new, **options):
    image = grid.reshape(1, *old, grid.shape[1]).permute(0, 3, 1, 2)
    return F.interpolate(image, size=new, **({"mode": "bilinear"} | options))[0]


def with_special(table, class_tokens, image):
    return torch.cat((table[:class_tokens], image.flatten(1).T))


@wrong("interpolate-positions", "the grid is transposed")
def interpolate_positions(table, old_grid, new_grid, class_tokens=1):
    """the new rows in column order"""
    image = resized(table[class_tokens:], old_grid, new_grid)
    return with_special(table, class_tokens, image.mT)


@wrong("interpolate-positions", "features and places mixed up")
def interpolate_positions(table, old_grid, new_grid, class_tokens=1):
    """a reshape in place of the permutation back"""
    image = resized(table[class_tokens:], old_grid, new_grid)
    rows = image.reshape(-1, table.shape[1])
    return torch.cat((table[:class_tokens], rows))


@wrong("interpolate-positions", "class_tokens is ignored")
def interpolate_positions(table, old_grid, new_grid, class_tokens=1):
    image = resized(table[1:], old_grid, new_grid)
    return with_special(table, 1, image)


@wrong("interpolate-positions", "two grids with as many patches are taken for the same")
def interpolate_positions(table, old_grid, new_grid, class_tokens=1):
    """the length of the table compared"""
    if len(table) == class_tokens + new_grid[0] * new_grid[1]:
        return table.clone()
    image = resized(table[class_tokens:], old_grid, new_grid)
    return with_special(table, class_tokens, image)


@wrong("interpolate-positions", "no gradient comes back")
def interpolate_positions(table, old_grid, new_grid, class_tokens=1):
    image = resized(table.detach()[class_tokens:], old_grid, new_grid)
    return with_special(table.detach(), class_tokens, image)


@right("interpolate-positions")
def interpolate_positions(table, old_grid, new_grid, class_tokens=1):
    """rows first, then columns, from the formula"""
    grid = table[class_tokens:].unflatten(0, tuple(old_grid))
    for axis, (old, new) in enumerate(zip(old_grid, new_grid, strict=True)):
        place = ((torch.arange(new) + 0.5) * old / new - 0.5).clamp(0, old - 1)
        low = place.floor().long()
        high = (low + 1).clamp(max=old - 1)
        share = (place - low).unsqueeze(-1)
        share = share.unsqueeze(-1) if axis == 0 else share
        below, above = grid.index_select(axis, low), grid.index_select(axis, high)
        grid = below + share * (above - below)
    return torch.cat((table[:class_tokens], grid.flatten(0, 1)))


@right("interpolate-positions")
def interpolate_positions(table, old_grid, new_grid, class_tokens=1):
    """one picture for each feature"""
    special, rows = table.split([class_tokens, len(table) - class_tokens])
    pictures = [
        F.interpolate(
            column.view(1, 1, *old_grid),
            size=list(new_grid),
            mode="bilinear",
            align_corners=False,
        ).flatten()
        for column in rows.unbind(dim=1)
    ]
    return torch.cat([special, torch.stack(pictures, dim=1)])


# --- a fixed step ---------------------------------------------------------------------


def rows_and_columns(height, width):
    n = torch.arange(height * width)
    return n // width, n % width


@wrong("shift-weights", "looks the other way")
def shift_weights(height, width, row_offset, column_offset):
    """rows and columns of the matrix exchanged"""
    return shift(height, width, row_offset, column_offset).T


@wrong("shift-weights", "height and width exchanged")
def shift_weights(height, width, row_offset, column_offset):
    """counted by columns: r + c times the height"""
    weights = torch.zeros(height * width, height * width)
    for r in range(height):
        for c in range(width):
            row, column = r + row_offset, c + column_offset
            if 0 <= row < height and 0 <= column < width:
                weights[c * height + r, column * height + row] = 1.0
    return weights


@wrong("shift-weights", "height and width exchanged")
def shift_weights(height, width, row_offset, column_offset):
    """the place of a token read with the height"""
    weights = torch.zeros(height * width, height * width)
    for n in range(height * width):
        row, column = n // height + row_offset, n % height + column_offset
        if 0 <= row < height and 0 <= column < width:
            weights[n, row * width + column] = 1.0
    return weights


@wrong("shift-weights", "row 0 and column 0 are left out")
def shift_weights(height, width, row_offset, column_offset):
    weights = torch.zeros(height * width, height * width)
    for n in range(height * width):
        row, column = n // width + row_offset, n % width + column_offset
        if 0 < row < height and 0 < column < width:
            weights[n, row * width + column] = 1.0
    return weights


@wrong("shift-weights", "a softmax over a row with nothing left")
def shift_weights(height, width, row_offset, column_offset):
    """scores of 0 and -inf, as a mask makes them"""
    weights = shift(height, width, row_offset, column_offset)
    return torch.where(weights > 0, 0.0, -torch.inf).softmax(-1)


@wrong("shift-weights", "negative places wrap around")
def shift_weights(height, width, row_offset, column_offset):
    weights = torch.zeros(height * width, height * width)
    for r in range(height):
        for c in range(width):
            row, column = r + row_offset, c + column_offset
            if row < height and column < width:
                weights[r * width + c, row * width + column] = 1.0
    return weights


@wrong("shift-weights", "places outside the grid are not sorted out")
def shift_weights(height, width, row_offset, column_offset):
    weights = torch.zeros(height * width, height * width)
    for n in range(height * width):
        weights[n, n + row_offset * width + column_offset] = 1.0
    return weights


@wrong("shift-weights", "a token at the border looks everywhere")
def shift_weights(height, width, row_offset, column_offset):
    """a softmax of -inf and 0 that guards against empty rows"""
    weights = shift(height, width, row_offset, column_offset)
    empty = 1 - weights.sum(-1, keepdim=True)
    return weights + empty / (height * width)


@right("shift-weights")
def shift_weights(height, width, row_offset, column_offset):
    """compares all pairs"""
    r, c = rows_and_columns(height, width)
    down = (r - r.unsqueeze(1)) == row_offset
    return (down & ((c - c.unsqueeze(1)) == column_offset)).float()


@right("shift-weights")
def shift_weights(height, width, row_offset, column_offset):
    """a Kronecker product of two diagonals"""
    down = torch.zeros(height, height)
    across = torch.zeros(width, width)
    for i, j in itertools.product(range(height), repeat=2):
        down[i, j] = float(j == i + row_offset)
    for i, j in itertools.product(range(width), repeat=2):
        across[i, j] = float(j == i + column_offset)
    return torch.kron(down, across)


# --- a convolution --------------------------------------------------------------------


def heads_of(tokens, kernel, height, width, step=shift, middle=None):
    k = kernel.shape[-1]
    middle = k // 2 if middle is None else middle
    return [
        step(height, width, i - middle, j - middle) @ tokens @ kernel[:, :, i, j].T
        for i in range(k)
        for j in range(k)
    ]


@wrong("convolution-by-heads", "the kernel is flipped")
def convolution_by_heads(tokens, kernel, height, width):
    """the offsets with the wrong sign"""

    def step(height, width, down, to_right):
        return shift(height, width, -down, -to_right)

    return sum(heads_of(tokens, kernel, height, width, step))


@wrong("convolution-by-heads", "the middle of a 3 × 3 kernel")
def convolution_by_heads(tokens, kernel, height, width):
    """steps of i - 1 and j - 1, whatever the kernel"""
    return sum(heads_of(tokens, kernel, height, width, middle=1))


@wrong("convolution-by-heads", "the kernel's matrix is not transposed")
def convolution_by_heads(tokens, kernel, height, width):
    k, result = kernel.shape[-1], 0
    for i in range(k):
        for j in range(k):
            weights = shift(height, width, i - k // 2, j - k // 2)
            result = result + weights @ tokens @ kernel[:, :, i, j]
    return result


@wrong("convolution-by-heads", "channels and places mixed up")
def convolution_by_heads(tokens, kernel, height, width):
    """a matrix for each head, from a reshape"""
    k, matrices = kernel.shape[-1], kernel.reshape(len(kernel), -1, kernel.shape[1])
    steps = itertools.product(range(-(k // 2), k // 2 + 1), repeat=2)
    return sum(
        shift(height, width, *step) @ tokens @ matrices[:, head].T
        for head, step in enumerate(steps)
    )


@wrong("convolution-by-heads", "only works with one batch axis")
def convolution_by_heads(tokens, kernel, height, width):
    k = kernel.shape[-1]
    steps = itertools.product(range(-(k // 2), k // 2 + 1), repeat=2)
    looks = torch.stack([shift(height, width, *step) for step in steps])
    return torch.einsum("hqn,bnc,och->bqo", looks, tokens, kernel.flatten(2))


@wrong("convolution-by-heads", "only the last head")
def convolution_by_heads(tokens, kernel, height, width):
    """the sum is overwritten in the loop"""
    return heads_of(tokens, kernel, height, width)[-1]


@wrong("convolution-by-heads", "no gradient comes back")
def convolution_by_heads(tokens, kernel, height, width):
    return sum(heads_of(tokens, kernel.detach(), height, width))


@right("convolution-by-heads")
def convolution_by_heads(tokens, kernel, height, width):
    """the heads side by side, then one output matrix"""
    k = kernel.shape[-1]
    steps = itertools.product(range(-(k // 2), k // 2 + 1), repeat=2)
    heads = [shift(height, width, *step) @ tokens for step in steps]
    together = torch.cat(heads, dim=-1)  # (..., N, k·k·C_in)
    w_o = kernel.permute(2, 3, 1, 0).flatten(0, 2)  # (k·k·C_in, C_out)
    return together @ w_o


@right("convolution-by-heads")
def convolution_by_heads(tokens, kernel, height, width):
    """one einsum over all heads"""
    k = kernel.shape[-1]
    steps = itertools.product(range(k), repeat=2)
    weights = [shift(height, width, i - k // 2, j - k // 2) for i, j in steps]
    return torch.einsum(
        "hnm,...mc,dch->...nd", torch.stack(weights), tokens, kernel.flatten(2)
    )


@right("convolution-by-heads")
def convolution_by_heads(tokens, kernel, height, width):
    """PyTorch's conv2d"""
    image = tokens.mT.reshape(-1, tokens.shape[-1], height, width)
    image = F.conv2d(image, kernel, padding="same")
    return image.flatten(2).mT.reshape(*tokens.shape[:-1], -1)


# --- receptive field ------------------------------------------------------------------


@wrong("receptive-field", "one too few")
def receptive_field(gradient):
    places = (gradient != 0).any(0).nonzero()
    return tuple((places.amax(0) - places.amin(0)).tolist()) if len(places) else (0, 0)


@wrong("receptive-field", "rows and columns counted, not the box")
def receptive_field(gradient):
    seen = (gradient != 0).any(0)
    return int(seen.any(1).sum()), int(seen.any(0).sum())


@wrong("receptive-field", "fails when nothing is seen")
def receptive_field(gradient):
    _, rows, columns = gradient.nonzero(as_tuple=True)
    extents = rows.max() - rows.min(), columns.max() - columns.min()
    return int(extents[0]) + 1, int(extents[1]) + 1


@wrong("receptive-field", "fails when nothing is seen")
def receptive_field(gradient):
    """a list in place of a tensor"""
    seen = (gradient != 0).any(0)
    rows = [r for r in range(len(seen)) if seen[r].any()]
    columns = [c for c in range(seen.shape[1]) if seen[:, c].any()]
    return rows[-1] - rows[0] + 1, columns[-1] - columns[0] + 1


@wrong("receptive-field", "a tensor in place of a number")
def receptive_field(gradient):
    _, rows, columns = gradient.nonzero(as_tuple=True)
    return rows.max() - rows.min() + 1, columns.max() - columns.min() + 1


@right("receptive-field")
def receptive_field(gradient):
    """two lists of places"""
    seen = gradient.abs().amax(dim=0) > 0
    extents = []
    for axis in (1, 0):
        places = [i for i, any_seen in enumerate(seen.any(dim=axis)) if any_seen]
        extents.append(places[-1] - places[0] + 1 if places else 0)
    return tuple(extents)


@right("receptive-field")
def receptive_field(gradient):
    """NumPy"""
    rows, columns = np.nonzero((gradient.numpy() != 0).any(axis=0))
    if rows.size == 0:
        return (0, 0)
    return int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1


# --- filters --------------------------------------------------------------------------


def centred_filters(weight):
    return weight.T - weight.T.mean(dim=0)


@wrong("principal-filters", "smallest first")
def principal_filters(weight, count, patch_size, channels):
    """eigh sorts upwards"""
    filters = centred_filters(weight)
    values, vectors = torch.linalg.eigh(filters.T @ filters)
    rank = min(weight.shape)
    values, vectors = values[-rank:], vectors[:, -rank:]
    shape = count, patch_size, patch_size, channels
    return vectors.T[:count].reshape(shape), (values / values.sum())[:count]


@wrong("principal-filters", "a NumPy array in place of a tensor")
def principal_filters(weight, count, patch_size, channels):
    pca = PCA(count).fit(weight.T.numpy())
    shape = count, patch_size, patch_size, channels
    return pca.components_.reshape(shape), pca.explained_variance_ratio_


@right("principal-filters")
def principal_filters(weight, count, patch_size, channels):
    """scikit-learn's PCA"""
    pca = PCA(count, svd_solver="full").fit(weight.T.numpy())
    found = torch.from_numpy(pca.components_.astype(np.float32))
    share = torch.from_numpy(pca.explained_variance_ratio_.astype(np.float32))
    return found.reshape(count, patch_size, patch_size, channels), share


@right("principal-filters")
def principal_filters(weight, count, patch_size, channels):
    """eigenvectors of the covariance"""
    values, vectors = torch.linalg.eigh(torch.cov(weight))
    order = values.argsort(descending=True)[:count]
    shape = count, patch_size, patch_size, channels
    return vectors[:, order].T.reshape(shape), values[order] / values.sum()


@right("principal-filters")
def principal_filters(weight, count, patch_size, channels):
    """left singular vectors of the matrix as it stands, signs turned"""
    u, s, _ = torch.linalg.svd(weight - weight.mean(1, keepdim=True))
    share = (s**2 / (s**2).sum())[:count]
    return -u.T[:count].reshape(count, patch_size, patch_size, channels), share


# --- rollout --------------------------------------------------------------------------


def eye_of(weights):
    return torch.eye(weights[0].shape[-1])


def mixtures(weights):
    identity = eye_of(weights)
    return [0.5 * layer.mean(0) + 0.5 * identity for layer in weights]


def product(matrices):
    """The last leftmost."""
    result = matrices[0]
    for matrix in matrices[1:]:
        result = matrix @ result
    return result


@wrong("attention-rollout", "no residual connection")
def attention_rollout(weights):
    """As source 3 describes it."""
    return product([layer.mean(0) for layer in weights])


@wrong("attention-rollout", "one layer without the residual connection")
def attention_rollout(weights):
    rollout = weights[0].mean(0)
    for mixed in mixtures(weights)[1:]:
        rollout = mixed @ rollout
    return rollout


@wrong("attention-rollout", "fails for a single layer")
def attention_rollout(weights):
    mixed = [(each.mean(0) + torch.eye(each.shape[-1])) / 2 for each in weights]
    return torch.linalg.multi_dot(mixed[::-1])


@wrong("attention-rollout", "multiplied in the wrong order")
def attention_rollout(weights):
    rollout = eye_of(weights)
    for mixed in mixtures(weights):
        rollout = rollout @ mixed
    return rollout


@right("attention-rollout")
def attention_rollout(weights):
    """A + I, rows divided by their sums"""
    identity = eye_of(weights)
    matrices = [layer.mean(0) + identity for layer in weights]
    return product([matrix / matrix.sum(-1, keepdim=True) for matrix in matrices])


@right("attention-rollout")
def attention_rollout(weights):
    """torch.linalg.multi_dot of a stack"""
    mixed = (torch.stack(weights).mean(1) + eye_of(weights)) / 2
    layers = list(mixed.flip(0))
    return torch.linalg.multi_dot(layers) if len(layers) > 1 else layers[0]


@right("attention-rollout")
def attention_rollout(weights):
    """from the output backwards"""
    rollout = eye_of(weights)
    for layer in reversed(weights):
        rollout = 0.5 * (rollout @ layer.mean(0) + rollout)
    return rollout


# --- mixed images ---------------------------------------------------------------------


@wrong("mixup", "labels not mixed")
def mixup(images, targets, share, permutation):
    """the label of the larger share"""
    mixed, soft = reference.mixup(images, targets, share, permutation)
    return mixed, F.one_hot(soft.argmax(-1), targets.shape[1]).float()


@wrong("mixup", "partners by the inverse permutation")
def mixup(images, targets, share, permutation):
    """the inverse permutation"""
    return reference.mixup(images, targets, share, permutation.argsort())


@wrong("mixup", "another partner")
def mixup(images, targets, share, permutation):
    """images in reverse order"""
    backwards = torch.arange(len(images)).flip(0)
    return reference.mixup(images, targets, share, backwards)


@wrong("mixup", "only one of two results")
def mixup(images, targets, share, permutation):
    return share * images + (1 - share) * images[permutation]


@wrong("mixup", "changes its argument in place")
def mixup(images, targets, share, permutation):
    partners = images[permutation]
    images *= share
    images += (1 - share) * partners
    return images, share * targets + (1 - share) * targets[permutation]


@wrong("mixup", "no gradient comes back")
def mixup(images, targets, share, permutation):
    mixed = reference.mixup(images.detach(), targets, share, permutation)
    return mixed


@wrong("mixup", "the caller's own images are returned")
def mixup(images, targets, share, permutation):
    """nothing to mix"""
    if share == 1:
        return images, targets
    return reference.mixup(images, targets, share, permutation)


@wrong("mixup", "the caller's own targets are returned")
def mixup(images, targets, share, permutation):
    """a view of them"""
    mixed, soft = reference.mixup(images, targets, share, permutation)
    return mixed, targets[:] if share == 1 else soft


@right("mixup")
def mixup(images, targets, share, permutation):
    """one matrix for images and targets"""
    identity = torch.eye(len(images))
    matrix = share * identity + (1 - share) * identity[permutation]
    return torch.einsum("ij,jchw->ichw", matrix, images), matrix @ targets


@right("mixup")
def mixup(images, targets, share, permutation):
    """torch.lerp"""
    return tuple(torch.lerp(x[permutation], x, share) for x in (images, targets))


@right("mixup")
def mixup(images, targets, share, permutation):
    """a loop, into new tensors"""
    mixed, soft = images.clone(), targets.clone()
    for i, partner in enumerate(permutation.tolist()):
        mixed[i] = share * images[i] + (1 - share) * images[partner]
        soft[i] = share * targets[i] + (1 - share) * targets[partner]
    return mixed, soft


def with_box(images, partners, top, left, height, width):
    mixed = images.clone()
    rows, columns = slice(top, top + height), slice(left, left + width)
    mixed[..., rows, columns] = partners[..., rows, columns]
    return mixed


def by_area(images, targets, box, permutation):
    _, _, height, width = box
    area = height * width / (images.shape[2] * images.shape[3])
    return (1 - area) * targets + area * targets[permutation]


@wrong("mixup", "divided by n in place of n − 1")
def seed_interval(changed, usual, quantile):
    differences = changed - usual
    error = differences.std(correction=0) / math.sqrt(len(usual))
    return differences.mean() - quantile * error, differences.mean() + quantile * error


@wrong("mixup", "the seeds are not paired")
def seed_interval(changed, usual, quantile):
    middle = changed.mean() - usual.mean()
    variance = torch.stack([changed, usual]).var(1).sum() / len(usual)
    width = quantile * variance**0.5
    return middle - width, middle + width


@wrong("mixup", "the difference the wrong way round")
def seed_interval(changed, usual, quantile):
    differences = usual - changed
    error = differences.std() / len(usual) ** 0.5
    ends = differences.mean() + torch.tensor([-1.0, 1.0]) * quantile * error
    return ends[0], ends[1]


@wrong("mixup", "only one of two results")
def seed_interval(changed, usual, quantile):
    return quantile * (changed - usual).std() / len(usual) ** 0.5


@right("mixup")
def seed_interval(changed, usual, quantile):
    """from the sums, as numbers of Python"""
    n, pairs = len(usual), zip(changed.tolist(), usual.tolist(), strict=True)
    differences = [one - other for one, other in pairs]
    mean = math.fsum(differences) / n
    squares = math.fsum((each - mean) ** 2 for each in differences)
    width = quantile * math.sqrt(squares / (n - 1) / n)
    return mean - width, mean + width


@right("mixup")
def seed_interval(changed, usual, quantile):
    """both ends in a list"""
    differences = changed - usual
    error = differences.var().div(differences.numel()).sqrt()
    return list(differences.mean() + quantile * error * torch.tensor([-1.0, 1.0]))


@wrong("cutmix", "the area is wrong")
def cutmix(images, targets, box, permutation):
    """a share that was drawn, not measured"""
    mixed = with_box(images, images[permutation], *box)
    return mixed, 0.5 * targets + 0.5 * targets[permutation]


@wrong("cutmix", "the area is wrong")
def cutmix(images, targets, box, permutation):
    """the channels counted as pixels"""
    area = box[2] * box[3] / images[0].numel()
    if images.shape[1] == 1:
        area = box[2] * box[3] / images.shape[3] ** 2
    mixed = with_box(images, images[permutation], *box)
    return mixed, (1 - area) * targets + area * targets[permutation]


@wrong("cutmix", "the area is wrong")
def cutmix(images, targets, box, permutation):
    """lengths in place of areas"""
    area = (box[2] + box[3]) / (images.shape[2] + images.shape[3])
    mixed = with_box(images, images[permutation], *box)
    return mixed, (1 - area) * targets + area * targets[permutation]


@wrong("cutmix", "equal pixels counted as kept")
def cutmix(images, targets, box, permutation):
    """what has changed, counted in the whole batch"""
    mixed = with_box(images, images[permutation], *box)
    area = (mixed != images).float().mean()
    return mixed, torch.lerp(targets, targets[permutation], area)


@wrong("cutmix", "the box read as two corners")
def cutmix(images, targets, box, permutation):
    """and its area measured between them"""
    top, left, bottom, right_of = box
    mixed = images.clone()
    partners = images[permutation]
    mixed[..., top:bottom, left:right_of] = partners[..., top:bottom, left:right_of]
    area = max(0, bottom - top) * max(0, right_of - left)
    area = area / (images.shape[2] * images.shape[3])
    return mixed, (1 - area) * targets + area * targets[permutation]


@wrong("cutmix", "rows and columns of the box exchanged")
def cutmix(images, targets, box, permutation):
    """the place only"""
    left, top, height, width = box
    mixed = with_box(images, images[permutation], top, left, height, width)
    return mixed, by_area(images, targets, box, permutation)


@wrong("cutmix", "the box is empty")
def cutmix(images, targets, box, permutation):
    """Cutout, with CutMix's labels"""
    mixed = with_box(images, torch.zeros_like(images), *box)
    return mixed, by_area(images, targets, box, permutation)


@wrong("cutmix", "partners that are mixed already")
def cutmix(images, targets, box, permutation):
    mixed = images.clone()
    for i, partner in enumerate(permutation.tolist()):
        mixed[i] = with_box(mixed[i], mixed[partner], *box)
    return mixed, by_area(images, targets, box, permutation)


@wrong("cutmix", "changes its argument in place")
def cutmix(images, targets, box, permutation):
    top, left, height, width = box
    rows, columns = slice(top, top + height), slice(left, left + width)
    images[..., rows, columns] = images[permutation][..., rows, columns]
    return images, by_area(images, targets, box, permutation)


@wrong("cutmix", "only one of two results")
def cutmix(images, targets, box, permutation):
    return with_box(images, images[permutation], *box)


@wrong("cutmix", "the caller's own images are returned")
def cutmix(images, targets, box, permutation):
    """nothing to paste"""
    mixed, soft = reference.cutmix(images, targets, box, permutation)
    return (mixed, soft) if box[2] * box[3] else (images, targets)


@right("cutmix")
def cutmix(images, targets, box, permutation):
    """targets that are handed back where nothing is pasted"""
    mixed, soft = reference.cutmix(images, targets, box, permutation)
    return (mixed, soft) if box[2] * box[3] else (mixed, targets)


@right("cutmix")
def cutmix(images, targets, box, permutation):
    """a mask and torch.where"""
    top, left, height, width = box
    inside = torch.zeros(images.shape[2:], dtype=torch.bool)
    inside[top : top + height, left : left + width] = True
    mixed = torch.where(inside, images[permutation], images)
    area = inside.double().mean().item()
    return mixed, targets + area * (targets[permutation] - targets)


@right("cutmix")
def cutmix(images, targets, box, permutation):
    """a mask of zeros and ones that multiplies"""
    top, left, height, width = box
    keep = torch.ones_like(images[:1, :1])
    keep[..., top : top + height, left : left + width] = 0.0
    mixed = keep * images + (1 - keep) * images[permutation]
    share = keep.mean()
    return mixed, share * targets + (1 - share) * targets[permutation]
