# ruff: noqa
# fmt: off

# === exercise: patchify | function: patchify | kind: plain | what is wrong: patches come down the columns of the grid first, then to the right, instead of in reading order; shows on every image with more than one row and more than one column of patches
# told: named
# now: named
# says: patches in column order
def patchify(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    b, _, h, w = images.shape
    n = patch_count(h, w, patch_size)
    tiles = images.unfold(2, patch_size, patch_size).unfold(3, patch_size, patch_size)
    tiles = tiles.permute(0, 3, 2, 4, 5, 1)
    return tiles.reshape(b, n, -1)


# === exercise: patchify | function: patchify | kind: subtle | what is wrong: sizes are refused only if P divides neither side (and in place of or); if it divides one side only, as 4 x 6 pixels with P = 4, unfold silently drops the rest of the image and no ValueError is raised
# told: named
# now: named
# says: no ValueError for a remainder
def patchify(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    height, width = images.shape[-2:]
    if height % patch_size and width % patch_size:
        raise ValueError(f"{height} x {width} cannot be cut by {patch_size}")
    x = images.permute(0, 2, 3, 1)
    x = x.unfold(1, patch_size, patch_size).unfold(2, patch_size, patch_size)
    x = x.permute(0, 1, 2, 4, 5, 3)
    return x.flatten(3).flatten(1, 2)


# === exercise: unpatchify | function: unpatchify | kind: subtle | what is wrong: only the number of pixels is compared, N * P * P with H * W, so a size that P does not divide passes: 6 patches of P = 2 as an image of 3 x 8 give garbage (even number of channels) or a RuntimeError (odd), not a ValueError
# told: named
# now: named
# says: no ValueError for a remainder
def unpatchify(
    patches: torch.Tensor, patch_size: int, height: int, width: int
) -> torch.Tensor:
    b, n, _ = patches.shape
    if n * patch_size**2 != height * width:
        raise ValueError(f"{n} patches do not fill {height} x {width} pixels")
    x = patches.reshape(
        b, height // patch_size, width // patch_size, patch_size, patch_size, -1
    )
    x = x.permute(0, 5, 1, 3, 2, 4)
    return x.reshape(b, -1, height, width)


# === exercise: unpatchify | function: unpatchify | kind: double | what is wrong: nothing is refused: too few patches leave zeros in the image, too many give a RuntimeError, never a ValueError AND each patch is laid down transposed, its rows of pixels as columns
# told: named
# now: named
# says: rows and columns of pixels exchanged
def unpatchify(
    patches: torch.Tensor, patch_size: int, height: int, width: int
) -> torch.Tensor:
    p = patch_size
    b, n, numbers = patches.shape
    channels = numbers // (p * p)
    image = patches.new_zeros(b, channels, height, width)
    for index in range(n):
        row, column = divmod(index, width // p)
        square = patches[:, index].view(b, p, p, channels).permute(0, 3, 2, 1)
        image[:, :, row * p : (row + 1) * p, column * p : (column + 1) * p] = square
    return image


# === exercise: patch-embedding | function: PatchEmbedding | kind: plain | what is wrong: the weight is drawn by kaiming_normal_, which takes the second axis of (P*P*C, d) for the fan-in, so the spread is 1/sqrt(d_model) and not 1/sqrt(P*P*C); shows whenever d_model is not P*P*C
# told: named
# now: named
# says: the weights start too large
class PatchEmbedding(nn.Module):
    def __init__(self, patch_size: int, channels: int, d_model: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        self.weight = nn.Parameter(torch.empty(patch_size * patch_size * channels, d_model))
        nn.init.kaiming_normal_(self.weight, nonlinearity="linear")
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bnp,pd->bnd", patchify(images, self.patch_size), self.weight) + self.bias


# === exercise: vision-transformer | function: VisionTransformer | kind: plain | what is wrong: positions are added to the patches first and the class token is joined afterwards, so it has no position, and the table has N rows with pooling "class" too
# told: named
# now: named
# says: class token without a position
class VisionTransformer(nn.Module):
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
        super().__init__()
        if pooling not in ("class", "mean"):
            raise ValueError(f"pooling must be 'class' or 'mean', not {pooling!r}")
        square = isinstance(image_size, int)
        height, width = (image_size, image_size) if square else image_size
        self.image_size = height, width
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        self.position = LearnedPositionalEncoding(
            patch_count(height, width, patch_size), d_model, dropout
        )
        self.encoder = Encoder(
            layers, d_model, heads, d_ff, dropout, norm_first=True, activation="gelu"
        )
        if pooling == "class":
            self.class_token = ClassToken(d_model)
            self.head = ClassHead(d_model, classes)
        else:
            self.class_token = nn.Identity()
            self.head = MeanHead(d_model, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"images {tuple(images.shape)} are not {self.image_size}")
        x = self.position(self.patches(images))
        x = self.class_token(x)
        return self.head(self.encoder(x))


# === exercise: vision-transformer | function: VisionTransformer | kind: subtle | what is wrong: dropout is given to the positions only, the encoder is built with dropout 0; shows only with dropout > 0 in training
# told: named
# now: named
# says: dropout not passed to the encoder
class VisionTransformer(nn.Module):
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
        super().__init__()
        if pooling not in ("class", "mean"):
            raise ValueError(f"pooling must be 'class' or 'mean', not {pooling!r}")
        square = isinstance(image_size, int)
        height, width = (image_size, image_size) if square else image_size
        self.image_size = height, width
        with_class = pooling == "class"
        tokens = patch_count(height, width, patch_size) + int(with_class)
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        self.class_token = ClassToken(d_model) if with_class else nn.Identity()
        self.position = LearnedPositionalEncoding(tokens, d_model, dropout)
        self.encoder = Encoder(
            layers, d_model, heads, d_ff, norm_first=True, activation="gelu"
        )
        self.head = (ClassHead if with_class else MeanHead)(d_model, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"images {tuple(images.shape)} are not {self.image_size}")
        x = images
        for part in (self.patches, self.class_token, self.position, self.encoder):
            x = part(x)
        return self.head(x)


# === exercise: interpolate-positions | function: interpolate_positions | kind: plain | what is wrong: the table is interpolated linearly along its rows, from h*w to h'*w' positions in a line, not on the grid; right only for grids of a single row or a single column (old and new alike)
# told: named
# now: named
# says: interpolated along the list
def interpolate_positions(
    table: torch.Tensor,
    old_grid: tuple[int, int],
    new_grid: tuple[int, int],
    class_tokens: int = 1,
) -> torch.Tensor:
    special, places = table[:class_tokens], table[class_tokens:]
    line = places.T.unsqueeze(0)
    line = nn.functional.interpolate(
        line, size=new_grid[0] * new_grid[1], mode="linear", align_corners=False
    )
    return torch.cat([special, line.squeeze(0).T])


# === exercise: interpolate-positions | function: interpolate_positions | kind: subtle | what is wrong: the table is returned unchanged if the new grid has as many patches as the old one, though the grids may differ: (2, 6) to (3, 4)
# told: passed
# now: named
# says: two grids with as many patches are taken for the same
def interpolate_positions(
    table: torch.Tensor,
    old_grid: tuple[int, int],
    new_grid: tuple[int, int],
    class_tokens: int = 1,
) -> torch.Tensor:
    if math.prod(old_grid) == math.prod(new_grid):
        return table.clone()
    special, places = table.split((class_tokens, len(table) - class_tokens))
    plane = places.unflatten(0, old_grid).movedim(-1, 0)[None]
    plane = nn.functional.interpolate(
        plane, size=tuple(new_grid), mode="bilinear", align_corners=False
    )
    return torch.cat((special, plane[0].flatten(1).T), dim=0)


# === exercise: shift-weights | function: shift_weights | kind: double | what is wrong: query minus key is compared with the offset, so each token looks the opposite way (the transposed matrix) AND the result is int32, not float32
# told: named
# now: named
# says: looks the other way
def shift_weights(
    height: int, width: int, row_offset: int, column_offset: int
) -> torch.Tensor:
    places = torch.arange(height * width)
    r = torch.div(places, width, rounding_mode="floor")
    c = places.remainder(width)
    down = r.unsqueeze(1) - r.unsqueeze(0)
    right = c.unsqueeze(1) - c.unsqueeze(0)
    return ((down == row_offset) & (right == column_offset)).int()


# === exercise: convolution-by-heads | function: convolution_by_heads | kind: subtle | what is wrong: the heads are concatenated with the place outside and the channel inside, but kernel.flatten(1).T has its rows in the order channel, row, column; shows only with C_in > 1 and k > 1
# told: shown
# now: named
# says: channels and places mixed up
def convolution_by_heads(
    tokens: torch.Tensor, kernel: torch.Tensor, height: int, width: int
) -> torch.Tensor:
    k = kernel.shape[-1]
    steps = range(-(k // 2), k // 2 + 1)
    found = [
        shift_weights(height, width, down, right).to(tokens) @ tokens
        for down in steps
        for right in steps
    ]
    w_o = kernel.flatten(1).T
    return torch.cat(found, dim=-1) @ w_o


# === exercise: receptive-field | function: receptive_field | kind: plain | what is wrong: the rows and columns that hold an entry are counted instead of measuring from the first to the last; shows when rows or columns between are all zero
# told: named
# now: named
# says: rows and columns counted, not the box
def receptive_field(gradient: torch.Tensor) -> tuple[int, int]:
    seen = gradient.ne(0).any(dim=0)
    rows, columns = seen.any(dim=1), seen.any(dim=0)
    return int(rows.sum()), int(columns.sum())


# === exercise: receptive-field | function: receptive_field | kind: double | what is wrong: entries below a thousandth of the largest are taken for zero, though tiny ones count AND the extent is last minus first without plus 1, one too small in both directions
# told: named
# now: named
# says: small entries left out, and one too few
def receptive_field(gradient: torch.Tensor) -> tuple[int, int]:
    size = gradient.abs()
    seen = (size > 1e-3 * size.max()).any(0)
    if not seen.any():
        return 0, 0
    ys, xs = torch.where(seen)
    return (ys.max() - ys.min()).item(), (xs.max() - xs.min()).item()


# === exercise: principal-filters | function: principal_filters | kind: double | what is wrong: each filter is centred by the mean of its own entries, not by the mean filter AND the share is computed with s and not with its square
# told: named
# now: named
# says: centred along the wrong axis
def principal_filters(
    weight: torch.Tensor, count: int, patch_size: int, channels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    filters = weight.T
    centred = filters - filters.mean(dim=1, keepdim=True)
    _, s, vh = torch.linalg.svd(centred, full_matrices=False)
    share = s / s.sum()
    pictures = vh[:count].reshape(count, patch_size, patch_size, channels)
    return pictures, share[:count]


# === exercise: attention-rollout | function: attention_rollout | kind: subtle | what is wrong: each head is rolled out through all layers by itself and the heads are averaged at the end, so head i of one layer never meets head j of the next; right with one head or one layer, and rows sum to 1 in any case
# told: named
# now: named
# says: the heads averaged at the end
def attention_rollout(weights: list[torch.Tensor]) -> torch.Tensor:
    stacked = torch.stack(list(weights))
    eye = torch.eye(stacked.shape[-1], dtype=stacked.dtype)
    mixed = (stacked + eye) / 2
    flow = mixed[0]
    for layer in mixed[1:]:
        flow = torch.bmm(layer, flow)
    return flow.mean(dim=0)


# === exercise: mixup | functions: mixup, seed_interval | kind: double | what is wrong: mixup adds image i to place permutation[i], so the partners are those of the inverse permutation; shows for permutations that are not their own inverse, as (1, 2, 0) AND seed_interval takes the spread of two independent groups, sqrt((var(changed) + var(usual)) / n), not that of the paired differences
# told: named
# now: named
# says: partners by the inverse permutation
def mixup(
    images: torch.Tensor,
    targets: torch.Tensor,
    share: float,
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    rest = 1 - share
    mixed = (share * images).index_add(0, permutation, rest * images)
    labels = (share * targets).index_add(0, permutation, rest * targets)
    return mixed, labels


def seed_interval(
    changed: torch.Tensor, usual: torch.Tensor, quantile: float
) -> tuple[torch.Tensor, torch.Tensor]:
    middle = changed.mean() - usual.mean()
    error = torch.sqrt((changed.var() + usual.var()) / len(changed))
    return middle - quantile * error, middle + quantile * error


# === exercise: cutmix | function: cutmix | kind: subtle | what is wrong: the share of an image is the part of its numbers that stayed equal, not one minus the area of the box; shows when image and partner have equal pixels in the box (a black background)
# told: passed
# now: named
# says: equal pixels counted as kept
def cutmix(
    images: torch.Tensor,
    targets: torch.Tensor,
    box: tuple[int, int, int, int],
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    top, left, height, width = box
    rows, columns = slice(top, top + height), slice(left, left + width)
    pasted = images.clone()
    pasted[..., rows, columns] = images[permutation][..., rows, columns]
    kept = (pasted == images).flatten(1).to(targets.dtype).mean(dim=1, keepdim=True)
    return pasted, kept * targets + (1 - kept) * targets[permutation]
