"""Wrong answers to chapter 8, written from its notebook alone."""

# ruff: noqa: E501, F811, F821, RUF059

import math

import torch
from torch import nn

from tests.tutor.bank import stranger


@stranger(
    "patchify",
    "patches down each column first",
    kind="subtle",
    first="named",
    verdict="named",
    says="patches in column order",
)
def patchify(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    count = patch_count(h, w, p)
    x = images.reshape(b, c, h // p, p, w // p, p)
    x = x.permute(0, 4, 2, 3, 5, 1)
    return x.reshape(b, count, p * p * c)


@stranger(
    "patchify",
    "the rest is cut off and not refused",
    kind="subtle",
    first="named",
    verdict="named",
    says="no ValueError for a remainder",
)
def patchify(images, patch_size):
    p = patch_size
    b, c, h, w = images.shape
    rows, columns = h // p, w // p
    images = images[:, :, : rows * p, : columns * p]
    x = images.reshape(b, c, rows, p, columns, p).permute(0, 2, 4, 3, 5, 1)
    return x.reshape(b, rows * columns, -1)


@stranger(
    "patchify",
    "split in the wrong order (p before h/p) AND channels first in a patch",
    kind="double",
    first="named",
    verdict="named",
    says="strided slices in place of patches",
)
def patchify(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    n = patch_count(h, w, p)
    x = images.reshape(b, c, p, h // p, p, w // p)
    x = x.permute(0, 3, 5, 1, 2, 4)
    return x.reshape(b, n, c * p * p)


@stranger(
    "patchify",
    "pixels in a patch column by column",
    kind="subtle",
    first="named",
    verdict="named",
    says="rows and columns of pixels exchanged",
)
def patchify(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    n = patch_count(h, w, p)
    patches = []
    for top in range(0, h, p):
        for left in range(0, w, p):
            patch = images[:, :, top : top + p, left : left + p]
            patches.append(patch.permute(0, 3, 2, 1).reshape(b, -1))
    return torch.stack(patches, dim=1).reshape(b, n, -1)


@stranger(
    "unpatchify",
    "a wrong number of patches is not refused",
    kind="subtle",
    first="named",
    verdict="named",
    says="no ValueError for another number of patches",
)
def unpatchify(patches, patch_size, height, width):
    p = patch_size
    b = patches.shape[0]
    patch_count(height, width, p)
    x = patches.reshape(b, height // p, width // p, p, p, -1)
    x = x.permute(0, 5, 1, 3, 2, 4)
    return x.reshape(b, -1, height, width)


@stranger(
    "unpatchify",
    "rows and columns of the grid exchanged",
    kind="subtle",
    first="named",
    verdict="named",
    says="patches in column order",
)
def unpatchify(patches, patch_size, height, width):
    p = patch_size
    b, n, length = patches.shape
    if n != patch_count(height, width, p):
        raise ValueError("wrong number of patches")
    c = length // (p * p)
    x = patches.reshape(b, width // p, height // p, p, p, c)
    x = x.permute(0, 5, 2, 3, 1, 4)
    return x.reshape(b, c, height, width)


@stranger(
    "unpatchify",
    "channels read first in a patch AND an assert in place of ValueError",
    kind="double",
    first="named",
    verdict="named",
    says="channels first inside a patch",
)
def unpatchify(patches, patch_size, height, width):
    p = patch_size
    b, n, length = patches.shape
    assert n == (height // p) * (width // p), "wrong number of patches"
    c = length // (p * p)
    x = patches.reshape(b, height // p, width // p, c, p, p)
    return x.permute(0, 3, 1, 4, 2, 5).reshape(b, c, height, width)


@stranger(
    "patch-embedding",
    "divided by the root of P² without channels",
    kind="subtle",
    first="told",
    verdict="told",
    says="the weights start too large",
)
class PatchEmbedding(nn.Module):
    def __init__(self, patch_size, channels, d_model):
        super().__init__()
        self.patch_size = patch_size
        size = patch_size * patch_size * channels
        self.weight = nn.Parameter(torch.randn(size, d_model) / patch_size)
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, images):
        return patchify(images, self.patch_size) @ self.weight + self.bias


@stranger(
    "patch-embedding",
    "divided by P²C and not by its root",
    kind="subtle",
    first="told",
    verdict="told",
    says="the weights start too small",
)
class PatchEmbedding(nn.Module):
    def __init__(self, patch_size, channels, d_model):
        super().__init__()
        self.patch_size = patch_size
        size = patch_size * patch_size * channels
        self.weight = nn.Parameter(torch.randn(size, d_model) / size)
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, images):
        x = patchify(images, self.patch_size)
        return torch.matmul(x, self.weight) + self.bias


@stranger(
    "patch-embedding",
    "a ReLU after the projection AND the bias starts at ones",
    kind="double",
    first="named",
    verdict="named",
    says="an activation after the embedding",
)
class PatchEmbedding(nn.Module):
    def __init__(self, patch_size, channels, d_model):
        super().__init__()
        self.patch_size = patch_size
        size = patch_size**2 * channels
        self.weight = nn.Parameter(torch.randn(size, d_model) / math.sqrt(size))
        self.bias = nn.Parameter(torch.ones(d_model))

    def forward(self, images):
        x = patchify(images, self.patch_size)
        return torch.relu(x @ self.weight + self.bias)


@stranger(
    "patch-embedding",
    "a convolution of its own that does not refuse sizes",
    kind="subtle",
    first="named",
    verdict="named",
    says="no ValueError for a remainder",
)
class PatchEmbedding(nn.Module):
    def __init__(self, patch_size, channels, d_model):
        super().__init__()
        self.patch_size = patch_size
        self.channels = channels
        size = patch_size**2 * channels
        self.weight = nn.Parameter(torch.randn(size, d_model) / size**0.5)
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, images):
        p = self.patch_size
        kernel = self.weight.T.reshape(-1, p, p, self.channels).permute(0, 3, 1, 2)
        x = nn.functional.conv2d(images, kernel, self.bias, stride=p)
        return x.flatten(2).transpose(1, 2)


@stranger(
    "vision-transformer",
    "class token joined after the positions",
    kind="plain",
    first="named",
    verdict="named",
    says="positions before the class token",
)
class VisionTransformer(nn.Module):
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
        count = patch_count(height, width, patch_size)
        mean = pooling == "mean"
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        self.class_token = nn.Identity() if mean else ClassToken(d_model)
        self.position = LearnedPositionalEncoding(
            count if mean else count + 1, d_model, dropout
        )
        self.encoder = Encoder(
            layers, d_model, heads, d_ff, dropout, norm_first=True, activation="gelu"
        )
        head = MeanHead if mean else ClassHead
        self.head = head(d_model, classes)

    def forward(self, images):
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"images {tuple(images.shape)} are not {self.image_size}")
        x = self.patches(images)
        x = self.position(x)
        x = self.class_token(x)
        x = self.encoder(x)
        return self.head(x)


@stranger(
    "vision-transformer",
    "with the mean the table still has N + 1 rows",
    kind="subtle",
    first="named",
    verdict="named",
    says="a position too many",
)
class VisionTransformer(nn.Module):
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
        n = patch_count(height, width, patch_size)
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        self.position = LearnedPositionalEncoding(n + 1, d_model, dropout)
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout, True, "gelu")
        if pooling == "class":
            self.class_token = ClassToken(d_model)
            self.head = ClassHead(d_model, classes)
        else:
            self.class_token = nn.Identity()
            self.head = MeanHead(d_model, classes)

    def forward(self, images):
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"images {tuple(images.shape)} are not {self.image_size}")
        x = self.class_token(self.patches(images))
        return self.head(self.encoder(self.position(x)))


@stranger(
    "vision-transformer",
    "dropout is not handed to the positions AND the mean includes a class token",
    kind="double",
    first="named",
    verdict="named",
    says="dropout not passed to the positions",
)
class VisionTransformer(nn.Module):
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
        n = patch_count(height, width, patch_size) + 1
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        self.class_token = ClassToken(d_model)
        self.position = LearnedPositionalEncoding(n, d_model)
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout, True, "gelu")
        self.head = (
            ClassHead(d_model, classes)
            if pooling == "class"
            else MeanHead(d_model, classes)
        )

    def forward(self, images):
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"images {tuple(images.shape)} are not {self.image_size}")
        x = self.class_token(self.patches(images))
        return self.head(self.encoder(self.position(x)))


@stranger(
    "vision-transformer",
    "the height is taken for the width",
    kind="subtle",
    first="told",
    verdict="named",
    says="the grid taken for a square",
)
class VisionTransformer(nn.Module):
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
        n = patch_count(height, height, patch_size) + (pooling == "class")
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        self.class_token = ClassToken(d_model) if pooling == "class" else nn.Identity()
        self.position = LearnedPositionalEncoding(n, d_model, dropout)
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout, True, "gelu")
        self.head = (ClassHead if pooling == "class" else MeanHead)(d_model, classes)

    def forward(self, images):
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"images {tuple(images.shape)} are not {self.image_size}")
        x = self.class_token(self.patches(images))
        return self.head(self.encoder(self.position(x)))


@stranger(
    "interpolate-positions",
    "old grid read with rows and columns exchanged",
    kind="subtle",
    first="shown",
    verdict="named",
    says="the grid is transposed",
)
def interpolate_positions(table, old_grid, new_grid, class_tokens=1):
    special, rest = table[:class_tokens], table[class_tokens:]
    h, w = old_grid
    grid = rest.reshape(w, h, -1).permute(2, 1, 0)[None]
    grid = nn.functional.interpolate(
        grid, size=new_grid, mode="bilinear", align_corners=False
    )
    rows = grid[0].permute(1, 2, 0).reshape(new_grid[0] * new_grid[1], -1)
    return torch.cat((special, rows))


@stranger(
    "interpolate-positions",
    "antialias: other numbers when it shrinks",
    kind="subtle",
    first="named",
    verdict="named",
    says="smoothed before it is made smaller",
)
def interpolate_positions(table, old_grid, new_grid, class_tokens=1):
    special, rest = table[:class_tokens], table[class_tokens:]
    h, w = old_grid
    grid = rest.reshape(1, h, w, -1).permute(0, 3, 1, 2)
    grid = nn.functional.interpolate(
        grid, size=new_grid, mode="bilinear", align_corners=False, antialias=True
    )
    rows = grid.permute(0, 2, 3, 1).flatten(1, 2)[0]
    return torch.cat((special, rows))


@stranger(
    "interpolate-positions",
    "always one class token",
    kind="subtle",
    first="told",
    verdict="named",
    says="class_tokens is ignored",
)
def interpolate_positions(table, old_grid, new_grid, class_tokens=1):
    h, w = old_grid
    special, rest = table[:1], table[-h * w :]
    grid = rest.view(h, w, -1).permute(2, 0, 1).unsqueeze(0)
    grid = nn.functional.interpolate(
        grid, size=new_grid, mode="bilinear", align_corners=False
    )
    rows = grid.squeeze(0).permute(1, 2, 0).reshape(-1, table.shape[1])
    return torch.cat((special, rows))


@stranger(
    "interpolate-positions",
    "bicubic AND the class tokens stand at the end",
    kind="double",
    first="shown",
    verdict="named",
    says="another interpolation, and the class token's row at the end",
)
def interpolate_positions(table, old_grid, new_grid, class_tokens=1):
    special, rest = table[:class_tokens], table[class_tokens:]
    grid = rest.reshape(*old_grid, -1).permute(2, 0, 1)[None]
    grid = nn.functional.interpolate(
        grid, size=new_grid, mode="bicubic", align_corners=False
    )
    rows = grid[0].flatten(1).T
    return torch.cat((rows, special))


@stranger(
    "shift-weights",
    "only the lower border is tested (negative wraps)",
    kind="subtle",
    first="named",
    verdict="named",
    says="negative places wrap around",
)
def shift_weights(height, width, row_offset, column_offset):
    n = height * width
    weights = torch.zeros(n, n)
    for r in range(height):
        for c in range(width):
            row, column = r + row_offset, c + column_offset
            if row < height and column < width:
                weights[r * width + c, row * width + column] = 1
    return weights


@stranger(
    "shift-weights",
    "transposed AND outside the token looks at itself",
    kind="double",
    first="shown",
    verdict="named",
    says="looks the other way",
)
def shift_weights(height, width, row_offset, column_offset):
    n = height * width
    weights = torch.zeros(n, n)
    for r in range(height):
        for c in range(width):
            row, column = r + row_offset, c + column_offset
            here = r * width + c
            if 0 <= row < height and 0 <= column < width:
                weights[row * width + column, here] = 1
            else:
                weights[here, here] = 1
    return weights


@stranger(
    "shift-weights",
    "row times height in place of width",
    kind="subtle",
    first="useless",
    verdict="named",
    says="height and width exchanged",
)
def shift_weights(height, width, row_offset, column_offset):
    n = height * width
    weights = torch.zeros(n, n)
    for r in range(height):
        for c in range(width):
            row, column = r + row_offset, c + column_offset
            if 0 <= row < height and 0 <= column < width:
                weights[(r * height + c) % n, (row * height + column) % n] = 1
    return weights


@stranger(
    "shift-weights",
    "the place is clamped to the border",
    kind="plain",
    first="named",
    verdict="named",
    says="the border is repeated",
)
def shift_weights(height, width, row_offset, column_offset):
    weights = torch.zeros(height * width, height * width)
    for r in range(height):
        for c in range(width):
            row = min(max(r + row_offset, 0), height - 1)
            column = min(max(c + column_offset, 0), width - 1)
            weights[r * width + c, row * width + column] = 1.0
    return weights


@stranger(
    "convolution-by-heads",
    "the kernel is flipped",
    kind="plain",
    first="named",
    verdict="named",
    says="the kernel is flipped",
)
def convolution_by_heads(tokens, kernel, height, width):
    k = kernel.shape[-1]
    result = 0
    for i in range(k):
        for j in range(k):
            weights = shift_weights(height, width, k // 2 - i, k // 2 - j)
            result = result + weights @ tokens @ kernel[:, :, i, j].T
    return result


@stranger(
    "convolution-by-heads",
    "the step is always minus 1 (for k = 3)",
    kind="subtle",
    first="named",
    verdict="named",
    says="the middle of a 3 × 3 kernel",
)
def convolution_by_heads(tokens, kernel, height, width):
    k = kernel.shape[-1]
    result = torch.zeros(*tokens.shape[:-1], kernel.shape[0])
    for i in range(k):
        for j in range(k):
            weights = shift_weights(height, width, i - 1, j - 1)
            result = result + weights @ tokens @ kernel[:, :, i, j].T
    return result


@stranger(
    "convolution-by-heads",
    "i and j of the kernel exchanged AND the mean over heads",
    kind="double",
    first="named",
    verdict="named",
    says="rows and columns of the kernel exchanged",
)
def convolution_by_heads(tokens, kernel, height, width):
    k = kernel.shape[-1]
    heads = []
    for i in range(k):
        for j in range(k):
            weights = shift_weights(height, width, i - k // 2, j - k // 2)
            heads.append(weights @ tokens @ kernel[:, :, j, i].T)
    return torch.stack(heads).mean(dim=0)


@stranger(
    "receptive-field",
    "the number of rows seen, gaps not counted",
    kind="subtle",
    first="named",
    verdict="named",
    says="rows and columns counted, not the box",
)
def receptive_field(gradient):
    seen = (gradient != 0).any(dim=0)
    rows = seen.any(dim=1).sum()
    columns = seen.any(dim=0).sum()
    return int(rows), int(columns)


@stranger(
    "receptive-field",
    "tiny ones are left out (allclose-like threshold)",
    kind="subtle",
    first="named",
    verdict="named",
    says="small entries left out",
)
def receptive_field(gradient):
    seen = (gradient.abs() > 1e-6).any(dim=0)
    if not seen.any():
        return 0, 0
    rows = seen.any(dim=1).nonzero().flatten()
    columns = seen.any(dim=0).nonzero().flatten()
    return (rows[-1] - rows[0] + 1).item(), (columns[-1] - columns[0] + 1).item()


@stranger(
    "receptive-field",
    "rows and columns exchanged AND channels added up",
    kind="double",
    first="shown",
    verdict="named",
    says="rows and columns exchanged, and channels added up before the test",
)
def receptive_field(gradient):
    seen = gradient.sum(dim=0) != 0
    extents = []
    for axis in (0, 1):
        places = seen.any(dim=axis).nonzero()
        if len(places) == 0:
            return 0, 0
        extents.append(int(places.max() - places.min() + 1))
    return tuple(extents)


@stranger(
    "receptive-field",
    "only the first channel is looked at",
    kind="subtle",
    first="named",
    verdict="named",
    says="only the first channel",
)
def receptive_field(gradient):
    rows, columns = torch.nonzero(gradient[0], as_tuple=True)
    if rows.numel() == 0:
        return 0, 0
    height = (rows.max() - rows.min()).item() + 1
    width = (columns.max() - columns.min()).item() + 1
    return height, width


@stranger(
    "principal-filters",
    "the mean of each filter is subtracted",
    kind="subtle",
    first="named",
    verdict="named",
    says="centred along the wrong axis",
)
def principal_filters(weight, count, patch_size, channels):
    filters = weight.T
    centred = filters - filters.mean(dim=1, keepdim=True)
    _, s, vt = torch.linalg.svd(centred, full_matrices=False)
    ratio = s**2 / (s**2).sum()
    components = vt[:count].reshape(count, patch_size, patch_size, channels)
    return components, ratio[:count]


@stranger(
    "principal-filters",
    "the share is of the first count values only",
    kind="subtle",
    first="named",
    verdict="named",
    says="shares of the first components only",
)
def principal_filters(weight, count, patch_size, channels):
    filters = weight.T
    centred = filters - filters.mean(dim=0)
    _, s, vt = torch.linalg.svd(centred, full_matrices=False)
    s = s[:count]
    components = vt[:count].reshape(count, patch_size, patch_size, channels)
    return components, s**2 / (s**2).sum()


@stranger(
    "principal-filters",
    "not centred AND the columns of V^T taken",
    kind="double",
    first="named",
    verdict="named",
    says="not centred",
)
def principal_filters(weight, count, patch_size, channels):
    _, s, vt = torch.linalg.svd(weight.T)
    ratio = s.square() / s.square().sum()
    components = vt[:, :count].T.reshape(count, patch_size, patch_size, channels)
    return components, ratio[:count]


@stranger(
    "principal-filters",
    "channels first, then permuted to the end",
    kind="subtle",
    first="named",
    verdict="named",
    says="channels first inside a patch",
)
def principal_filters(weight, count, patch_size, channels):
    filters = weight.T - weight.T.mean(dim=0)
    _, s, vt = torch.linalg.svd(filters, full_matrices=False)
    ratio = s**2 / torch.sum(s**2)
    p = patch_size
    components = vt[:count].reshape(count, channels, p, p).permute(0, 2, 3, 1)
    return components, ratio[:count]


@stranger(
    "attention-rollout",
    "the first layer stands leftmost",
    kind="subtle",
    first="named",
    verdict="named",
    says="multiplied in the wrong order",
)
def attention_rollout(weights):
    t = weights[0].shape[-1]
    rollout = torch.eye(t)
    for layer in weights:
        mixed = 0.5 * layer.mean(dim=0) + 0.5 * torch.eye(t)
        rollout = rollout @ mixed
    return rollout


@stranger(
    "attention-rollout",
    "elementwise product",
    kind="plain",
    first="useless",
    verdict="named",
    says="multiplied entry by entry",
)
def attention_rollout(weights):
    t = weights[0].shape[-1]
    rollout = torch.ones(t, t)
    for layer in weights:
        mixed = (layer.mean(dim=0) + torch.eye(t)) / 2
        rollout = mixed * rollout
    return rollout / rollout.sum(dim=-1, keepdim=True)


@stranger(
    "attention-rollout",
    "the maximum over the heads AND the identity is only added once at the end",
    kind="double",
    first="useless",
    verdict="named",
    says="the identity only once, and the maximum over the heads in place of the mean",
)
def attention_rollout(weights):
    t = weights[0].shape[-1]
    rollout = torch.eye(t)
    for layer in weights:
        rollout = layer.max(dim=0).values @ rollout
    return 0.5 * rollout + 0.5 * torch.eye(t)


@stranger(
    "attention-rollout",
    "the last layer is left out (range to L - 1)",
    kind="subtle",
    first="named",
    verdict="named",
    says="a layer is left out",
)
def attention_rollout(weights):
    identity = torch.eye(weights[0].shape[-1])
    rollout = identity
    for i in range(len(weights) - 1):
        rollout = (0.5 * weights[i].mean(0) + 0.5 * identity) @ rollout
    return rollout


@stranger(
    "mixup",
    "targets get the share turned round",
    kind="plain",
    first="named",
    verdict="named",
    says="labels mixed by the wrong share",
)
def mixup(images, targets, share, permutation):
    mixed = share * images + (1 - share) * images[permutation]
    labels = (1 - share) * targets + share * targets[permutation]
    return mixed, labels


@stranger(
    "mixup",
    "the partner by the inverse permutation",
    kind="subtle",
    first="named",
    verdict="named",
    says="partners by the inverse permutation",
)
def mixup(images, targets, share, permutation):
    partner = permutation.argsort()
    mixed = share * images + (1 - share) * images[partner]
    labels = share * targets + (1 - share) * targets[partner]
    return mixed, labels


@stranger(
    "mixup",
    "targets not permuted (flip) AND the shares are rounded to one hot",
    kind="double",
    first="told",
    verdict="named",
    says="labels not mixed, and labels of another partner",
)
def mixup(images, targets, share, permutation):
    mixed = images * share + images[permutation] * (1 - share)
    labels = share * targets + (1 - share) * targets.flip(0)
    return mixed, labels.round()


@stranger(
    "cutmix",
    "left and top exchanged in the slices",
    kind="subtle",
    first="named",
    verdict="named",
    says="rows and columns of the box exchanged",
)
def cutmix(images, targets, box, permutation):
    top, left, height, width = box
    rows, columns = slice(left, left + height), slice(top, top + width)
    mixed = images.clone()
    mixed[..., rows, columns] = images[permutation][..., rows, columns]
    share = 1 - height * width / (images.shape[-1] * images.shape[-2])
    return mixed, share * targets + (1 - share) * targets[permutation]


@stranger(
    "cutmix",
    "the area is divided by C·H·W",
    kind="subtle",
    first="named",
    verdict="named",
    says="the area is wrong",
)
def cutmix(images, targets, box, permutation):
    top, left, height, width = box
    mixed = images.clone()
    bottom, right = top + height, left + width
    mixed[:, :, top:bottom, left:right] = images[permutation, :, top:bottom, left:right]
    share = 1 - height * width / images[0].numel()
    return mixed, share * targets + (1 - share) * targets[permutation]


@stranger(
    "cutmix",
    "written into the batch AND the share belongs to the partner",
    kind="double",
    first="named",
    verdict="named",
    says="changes its argument in place",
)
def cutmix(images, targets, box, permutation):
    top, left, height, width = box
    rows, columns = slice(top, top + height), slice(left, left + width)
    images[..., rows, columns] = images[permutation][..., rows, columns]
    share = height * width / (images.shape[-1] * images.shape[-2])
    return images, share * targets + (1 - share) * targets[permutation]


@stranger(
    "cutmix",
    "one pixel too many at the right and below",
    kind="subtle",
    first="named",
    verdict="named",
    says="the box is one too large",
)
def cutmix(images, targets, box, permutation):
    top, left, height, width = box
    rows = slice(top, top + height + 1)
    columns = slice(left, left + width + 1)
    mixed = images.clone()
    mixed[:, :, rows, columns] = images[permutation][:, :, rows, columns]
    share = 1 - (height * width) / (images.shape[2] * images.shape[3])
    return mixed, share * targets + (1 - share) * targets[permutation]


# --- a second round, after the checks were mended from the first ---


@stranger(
    "patchify",
    "the patches come column by column",
    kind="subtle",
    first="named",
    verdict="named",
    says="patches in column order",
    round=2,
)
def patchify(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    count = patch_count(h, w, p)
    x = images.reshape(b, c, h // p, p, w // p, p)
    x = x.permute(0, 4, 2, 3, 5, 1)
    return x.reshape(b, count, p * p * c)


@stranger(
    "unpatchify",
    "the number of patches is compared with the area by itself, so a size that P"
    " does not divide is not refused",
    kind="subtle",
    first="passed",
    verdict="named",
    says="no ValueError for a remainder",
    round=2,
)
def unpatchify(patches, patch_size, height, width):
    p = patch_size
    b, n, length = patches.shape
    if n != height * width // (p * p):
        raise ValueError(f"{n} patches do not make {height} x {width} pixels")
    c = length // (p * p)
    x = patches.reshape(b, height // p, width // p, p, p, c)
    return x.permute(0, 5, 1, 3, 2, 4).reshape(b, c, height, width)


@stranger(
    "patch-embedding",
    "weight is divided by the root of d_model AND the bias is drawn at random",
    kind="double",
    first="named",
    verdict="named",
    says="the biases do not start at zero",
    round=2,
)
class PatchEmbedding(nn.Module):
    def __init__(self, patch_size, channels, d_model):
        super().__init__()
        self.patch_size = patch_size
        rows = patch_size * patch_size * channels
        self.weight = nn.Parameter(torch.randn(rows, d_model) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.randn(d_model) / math.sqrt(d_model))

    def forward(self, images):
        return patchify(images, self.patch_size) @ self.weight + self.bias


@stranger(
    "vision-transformer",
    "with the mean the head still reads position 0 only",
    kind="subtle",
    first="named",
    verdict="named",
    says="the first patch in place of the mean",
    round=2,
)
class VisionTransformer(nn.Module):
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
        n = patch_count(height, width, patch_size)
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        if pooling == "class":
            n += 1
            self.class_token = ClassToken(d_model)
        else:
            self.class_token = nn.Identity()
        self.position = LearnedPositionalEncoding(n, d_model, dropout)
        self.encoder = Encoder(
            layers, d_model, heads, d_ff, dropout, norm_first=True, activation="gelu"
        )
        self.head = ClassHead(d_model, classes)

    def forward(self, images):
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"images {tuple(images.shape)} are not {self.image_size}")
        x = self.class_token(self.patches(images))
        return self.head(self.encoder(self.position(x)))


@stranger(
    "vision-transformer",
    "the patches are counted from the height alone AND the encoder is post-norm",
    kind="double",
    first="named",
    verdict="named",
    says="the grid taken for a square",
    round=2,
)
class VisionTransformer(nn.Module):
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
        self.pooling = pooling
        count = patch_count(height, height, patch_size)
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        if pooling == "class":
            self.class_token = ClassToken(d_model)
            self.position = LearnedPositionalEncoding(count + 1, d_model, dropout)
            self.head = ClassHead(d_model, classes)
        else:
            self.position = LearnedPositionalEncoding(count, d_model, dropout)
            self.head = MeanHead(d_model, classes)
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout, activation="gelu")

    def forward(self, images):
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"images {tuple(images.shape)} are not {self.image_size}")
        x = self.patches(images)
        if self.pooling == "class":
            x = self.class_token(x)
        x = self.encoder(self.position(x))
        return self.head(x)


@stranger(
    "interpolate-positions",
    "one row is put aside, however many class tokens there are",
    kind="subtle",
    first="named",
    verdict="named",
    says="class_tokens is ignored",
    round=2,
)
def interpolate_positions(table, old_grid, new_grid, class_tokens=1):
    special, rest = table[:1], table[1:]
    h, w = old_grid
    grid = rest.reshape(h, w, -1).permute(2, 0, 1).unsqueeze(0)
    grid = nn.functional.interpolate(
        grid, size=new_grid, mode="bilinear", align_corners=False
    )
    rows = grid[0].permute(1, 2, 0).reshape(new_grid[0] * new_grid[1], -1)
    return torch.cat((special, rows))


@stranger(
    "interpolate-positions",
    "the rows are reshaped to (1, d, h, w) and back without a permutation",
    first="named",
    verdict="named",
    says="features and places mixed up",
    round=2,
)
def interpolate_positions(table, old_grid, new_grid, class_tokens=1):
    d = table.shape[-1]
    special, rest = table[:class_tokens], table[class_tokens:]
    grid = rest.reshape(1, d, *old_grid)
    grid = nn.functional.interpolate(
        grid, size=tuple(new_grid), mode="bilinear", align_corners=False
    )
    return torch.cat((special, grid.reshape(-1, d)), dim=0)


@stranger(
    "shift-weights",
    "row 0 and column 0 count as outside, 0 < row in place of 0 <= row",
    kind="subtle",
    first="named",
    verdict="named",
    says="row 0 and column 0 are left out",
    round=2,
)
def shift_weights(height, width, row_offset, column_offset):
    weights = torch.zeros(height * width, height * width)
    for r in range(height):
        for c in range(width):
            row = r + row_offset
            column = c + column_offset
            if 0 < row < height and 0 < column < width:
                weights[r * width + c, row * width + column] = 1
    return weights


@stranger(
    "convolution-by-heads",
    "the kernel's rows and columns are exchanged, [j, i] in place of [i, j]",
    kind="subtle",
    first="named",
    verdict="named",
    says="rows and columns of the kernel exchanged",
    round=2,
)
def convolution_by_heads(tokens, kernel, height, width):
    k = kernel.shape[-1]
    half = k // 2
    result = 0
    for i in range(k):
        for j in range(k):
            weights = shift_weights(height, width, i - half, j - half)
            result = result + weights @ tokens @ kernel[:, :, j, i].T
    return result


@stranger(
    "receptive-field",
    "the rows and columns that are seen are counted, gaps left out",
    kind="subtle",
    first="named",
    verdict="named",
    says="rows and columns counted, not the box",
    round=2,
)
def receptive_field(gradient):
    seen = (gradient != 0).any(dim=0)
    rows = seen.any(dim=1).sum()
    columns = seen.any(dim=0).sum()
    return int(rows), int(columns)


@stranger(
    "principal-filters",
    "the shares are taken of the variance of the first count components only",
    kind="subtle",
    first="named",
    verdict="named",
    says="shares of the first components only",
    round=2,
)
def principal_filters(weight, count, patch_size, channels):
    filters = weight.T
    centred = filters - filters.mean(dim=0)
    _, s, vt = torch.linalg.svd(centred, full_matrices=False)
    components = vt[:count].reshape(count, patch_size, patch_size, channels)
    s = s[:count]
    return components, s**2 / (s**2).sum()


@stranger(
    "principal-filters",
    "each filter loses its own mean, not the mean filter"
    " AND the shares are computed without squares",
    kind="double",
    first="named",
    verdict="named",
    says="centred along the wrong axis",
    round=2,
)
def principal_filters(weight, count, patch_size, channels):
    filters = weight.T
    centred = filters - filters.mean(dim=1, keepdim=True)
    u, s, vt = torch.linalg.svd(centred, full_matrices=False)
    components = vt[:count].reshape(count, patch_size, patch_size, channels)
    ratio = s / s.sum()
    return components, ratio[:count]


@stranger(
    "attention-rollout",
    "the identity is mixed in once, at the end, not in every layer",
    kind="subtle",
    first="named",
    verdict="named",
    says="the identity only once",
    round=2,
)
def attention_rollout(weights):
    size = weights[0].shape[-1]
    rollout = torch.eye(size)
    for layer in weights:
        rollout = layer.mean(dim=0) @ rollout
    return 0.5 * rollout + 0.5 * torch.eye(size)


@stranger(
    "mixup",
    "the partners are found by the inverse permutation",
    kind="subtle",
    first="told",
    verdict="named",
    says="partners by the inverse permutation",
    round=2,
)
def mixup(images, targets, share, permutation):
    partners = torch.empty_like(images)
    partners[permutation] = images
    partner_targets = torch.empty_like(targets)
    partner_targets[permutation] = targets
    mixed = share * images + (1 - share) * partners
    mixed_targets = share * targets + (1 - share) * partner_targets
    return mixed, mixed_targets


@stranger(
    "cutmix",
    "the box is as wide as it is high"
    " AND the area is divided without a remainder, so the share is 1",
    kind="double",
    first="wrong",
    verdict="named",
    round=2,
    says="the area divided without a remainder, and the box is a square",
)
def cutmix(images, targets, box, permutation):
    top, left, box_height, box_width = box
    height, width = images.shape[-2:]
    rows = slice(top, top + box_height)
    columns = slice(left, left + box_height)
    mixed = images.clone()
    mixed[:, :, rows, columns] = images[permutation][:, :, rows, columns]
    share = 1 - (box_height * box_width) // (height * width)
    return mixed, share * targets + (1 - share) * targets[permutation]


# --- a third round, of what came later ---


@stranger(
    "cutmix",
    "the box is read as (left, top, width, height): rows and columns exchanged",
    kind="subtle",
    first="named",
    verdict="named",
    says="rows and columns of the box exchanged",
    round=3,
)
def cutmix(images, targets, box, permutation):
    x, y, w, h = box
    result = images.clone()
    result[:, :, y : y + h, x : x + w] = images[permutation][:, :, y : y + h, x : x + w]
    lam = 1 - (w * h) / (images.shape[-1] * images.shape[-2])
    return result, lam * targets + (1 - lam) * targets[permutation]


@stranger(
    "cutmix",
    "the share is that of the box in place of what is left: the targets are mixed the other "
    "way round",
    kind="plain",
    first="named",
    verdict="named",
    says="labels mixed by the wrong share",
    round=3,
)
def cutmix(images, targets, box, permutation):
    top, left, height, width = box
    rows, columns = slice(top, top + height), slice(left, left + width)
    mixed = images.clone()
    mixed[..., rows, columns] = images[permutation][..., rows, columns]
    share = height * width / images[0, 0].numel()
    return mixed, share * targets + (1 - share) * targets[permutation]


@stranger(
    "cutmix",
    "the batch of the caller is changed in place, image by image, so that a partner may "
    "already have a box in it AND the area is divided by the square of the height (right "
    "for square images only)",
    kind="double",
    first="named",
    verdict="named",
    says="changes its argument in place",
    round=3,
)
def cutmix(images, targets, box, permutation):
    top, left, height, width = box
    for b in range(images.shape[0]):
        partner = images[permutation[b]]
        images[b, :, top : top + height, left : left + width] = partner[
            :, top : top + height, left : left + width
        ]
    keep = 1 - height * width / images.shape[2] ** 2
    return images, keep * targets + (1 - keep) * targets[permutation]


@stranger(
    "cutmix",
    "the box is taken from the partner's upper left corner in place of the same place",
    kind="subtle",
    first="named",
    verdict="named",
    says="the partner's upper left corner",
    round=3,
)
def cutmix(images, targets, box, permutation):
    top, left, height, width = box
    out = images.clone()
    patch = images[permutation, :, :height, :width]
    out[:, :, top : top + height, left : left + width] = patch
    H, W = images.shape[-2:]
    share = 1.0 - (height * width) / (H * W)
    return out, share * targets + (1.0 - share) * targets[permutation]
