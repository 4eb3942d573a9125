# ruff: noqa
# fmt: off

# === exercise: patchify | function: patchify | kind: plain | what is wrong: inside a patch the numbers come in the order (channel, row, column) instead of (row, column, channel)
# told: named
# now: named
# says: channels first inside a patch
def patchify(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    b, c, h, w = images.shape
    n = patch_count(h, w, patch_size)
    tiles = images.unfold(2, patch_size, patch_size).unfold(3, patch_size, patch_size)
    tiles = tiles.permute(0, 2, 3, 1, 4, 5)
    return tiles.reshape(b, n, c * patch_size * patch_size)


# === exercise: unpatchify | function: unpatchify | kind: subtle | what is wrong: a row is split as (channel, row, column) instead of (row, column, channel); right for one channel only
# told: named
# now: named
# says: channels first inside a patch
def unpatchify(
    patches: torch.Tensor, patch_size: int, height: int, width: int
) -> torch.Tensor:
    if patches.shape[1] != patch_count(height, width, patch_size):
        raise ValueError("this number of patches does not fit the image")
    p = patch_size
    batch, _, numbers = patches.shape
    channels = numbers // (p * p)
    image = torch.zeros(
        batch, channels, height, width, dtype=patches.dtype, device=patches.device
    )
    index = 0
    for top in range(0, height, p):
        for left in range(0, width, p):
            square = patches[:, index].reshape(batch, channels, p, p)
            image[:, :, top : top + p, left : left + p] = square
            index += 1
    return image


# === exercise: patch-embedding | function: PatchEmbedding | kind: plain | what is wrong: the weight is divided by the root of d_model (the number of outputs) instead of the root of P·P·C (the number of terms in each sum)
# told: named
# now: named
# says: the weights start too large
class PatchEmbedding(nn.Module):
    def __init__(self, patch_size: int, channels: int, d_model: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        pixels_in_patch = patch_size * patch_size * channels
        start = torch.randn(pixels_in_patch, d_model) / d_model**0.5
        self.weight = nn.Parameter(start)
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return patchify(images, self.patch_size) @ self.weight + self.bias


# === exercise: vision-transformer | function: VisionTransformer | kind: subtle | what is wrong: the table of positions has N + 1 rows for pooling="mean", too, where there is no class token and it should have N
# told: named
# now: named
# says: a position too many
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
        length = patch_count(height, width, patch_size) + 1
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        self.position = LearnedPositionalEncoding(length, d_model, dropout)
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
        tokens = self.class_token(self.patches(images))
        tokens = self.encoder(self.position(tokens))
        return self.head(tokens)


# === exercise: vision-transformer | function: VisionTransformer | kind: double | what is wrong: positions are added (with N rows) before the class token is joined, so the class token has no position; and the encoder is left at its default post-norm because norm_first=True is not passed
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
        n_patches = patch_count(height, width, patch_size)
        with_token = pooling == "class"
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        self.class_token = ClassToken(d_model) if with_token else nn.Identity()
        self.position = LearnedPositionalEncoding(n_patches, d_model, dropout)
        self.encoder = Encoder(
            layers, d_model, heads, d_ff, dropout, activation="gelu"
        )
        head_type = ClassHead if with_token else MeanHead
        self.head = head_type(d_model, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"images {tuple(images.shape)} are not {self.image_size}")
        z = self.patches(images)
        z = self.position(z)
        z = self.class_token(z)
        z = self.encoder(z)
        return self.head(z)


# === exercise: interpolate-positions | function: interpolate_positions | kind: subtle | what is wrong: the rows (h·w, d) are reshaped straight to (1, d, h, w) without transposing (and back in the same way), so features and places are mixed up; right only for d = 1
# told: named
# now: named
# says: features and places mixed up
def interpolate_positions(
    table: torch.Tensor,
    old_grid: tuple[int, int],
    new_grid: tuple[int, int],
    class_tokens: int = 1,
) -> torch.Tensor:
    d = table.shape[1]
    h, w = old_grid
    front = table[:class_tokens]
    image = table[class_tokens:].reshape(1, d, h, w)
    resized = nn.functional.interpolate(
        image, size=new_grid, mode="bilinear", align_corners=False
    )
    rows = resized.reshape(new_grid[0] * new_grid[1], d)
    return torch.cat([front, rows])


# === exercise: interpolate-positions | function: interpolate_positions | kind: double | what is wrong: align_corners=True puts the outermost middles upon each other instead of treating each place as an area; and if old and new grid have the same number of patches the table is returned unchanged, although the grids may differ in shape
# told: named
# now: named
# says: the corners are aligned, and two grids with as many patches are taken for the same
def interpolate_positions(
    table: torch.Tensor,
    old_grid: tuple[int, int],
    new_grid: tuple[int, int],
    class_tokens: int = 1,
) -> torch.Tensor:
    if math.prod(old_grid) == math.prod(new_grid):
        return table
    special, places = table[:class_tokens], table[class_tokens:]
    grid = places.T.reshape(1, -1, *old_grid)
    grid = nn.functional.interpolate(
        grid, size=tuple(new_grid), mode="bilinear", align_corners=True
    )
    return torch.cat((special, grid[0].flatten(1).T), dim=0)


# === exercise: shift-weights | function: shift_weights | kind: plain | what is wrong: only the flat index is tested for being inside, so a step past the end of a row wraps around to the next row (token 2 attends to token 3)
# told: named
# now: named
# says: runs on into the next row
def shift_weights(
    height: int, width: int, row_offset: int, column_offset: int
) -> torch.Tensor:
    n = height * width
    weights = torch.zeros(n, n)
    step = row_offset * width + column_offset
    for token in range(n):
        goal = token + step
        if 0 <= goal < n:
            weights[token, goal] = 1.0
    return weights


# === exercise: convolution-by-heads | function: convolution_by_heads | kind: subtle | what is wrong: the kernel's matrix (C_out, C_in) is multiplied from the right without being transposed; right for one channel, wrong for C_in = C_out > 1 and an error if they differ
# told: named
# now: named
# says: the kernel's matrix is not transposed
def convolution_by_heads(
    tokens: torch.Tensor, kernel: torch.Tensor, height: int, width: int
) -> torch.Tensor:
    size = kernel.shape[-1]
    half = size // 2
    heads = []
    for i in range(size):
        for j in range(size):
            attention = shift_weights(height, width, i - half, j - half)
            heads.append(attention @ tokens @ kernel[:, :, i, j])
    return torch.stack(heads).sum(dim=0)


# === exercise: receptive-field | function: receptive_field | kind: double | what is wrong: the channels are added up before the test, so gradients of opposite sign cancel; and the rows and columns with a hit are counted, instead of the extent from the first to the last, so gaps are left out
# told: named
# now: named
# says: channels added up before the test, and rows and columns counted, not the box
def receptive_field(gradient: torch.Tensor) -> tuple[int, int]:
    seen = gradient.sum(dim=0) != 0
    n_rows = seen.any(dim=1).sum().item()
    n_columns = seen.any(dim=0).sum().item()
    return n_rows, n_columns


# === exercise: principal-filters | function: principal_filters | kind: subtle | what is wrong: the shares are divided by the sum over the first `count` singular values only, so they always add up to 1; right only if all components are asked for
# told: named
# now: named
# says: shares of the first components only
def principal_filters(
    weight: torch.Tensor, count: int, patch_size: int, channels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    samples = weight.T
    samples = samples - samples.mean(dim=0)
    _, values, directions = torch.linalg.svd(samples, full_matrices=False)
    directions, values = directions[:count], values[:count]
    variance = values.square()
    ratio = variance / variance.sum()
    pictures = directions.reshape(count, patch_size, patch_size, channels)
    return pictures, ratio


# === exercise: principal-filters | function: principal_filters | kind: double | what is wrong: each filter loses the mean of its own entries instead of the mean filter being subtracted from all; and the shares are computed from the singular values without squaring them
# told: named
# now: named
# says: centred along the wrong axis
def principal_filters(
    weight: torch.Tensor, count: int, patch_size: int, channels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    filters = weight.T
    filters = filters - filters.mean(dim=1, keepdim=True)
    u, s, vt = torch.linalg.svd(filters, full_matrices=False)
    parts = vt[:count].reshape(-1, patch_size, patch_size, channels)
    share = (s / s.sum())[:count]
    return parts, share


# === exercise: attention-rollout | function: attention_rollout | kind: plain | what is wrong: the product is taken in the wrong order, with the first layer leftmost instead of the last
# told: named
# now: named
# says: multiplied in the wrong order
def attention_rollout(weights: list[torch.Tensor]) -> torch.Tensor:
    eye = torch.eye(weights[0].shape[-1], device=weights[0].device)
    total = eye
    for layer in weights:
        mixed = (layer.mean(dim=0) + eye) / 2
        total = total @ mixed
    return total


# === exercise: mixup | function: mixup | kind: subtle | what is wrong: the permutation is used the wrong way round: image i is sent to place permutation[i] instead of place i getting image permutation[i]; right when the permutation is its own inverse, such as a swap
# told: named
# now: named
# says: partners by the inverse permutation
def mixup(
    images: torch.Tensor,
    targets: torch.Tensor,
    share: float,
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    other_images = torch.empty_like(images)
    other_targets = torch.empty_like(targets)
    other_images[permutation] = images
    other_targets[permutation] = targets
    rest = 1 - share
    return (
        share * images + rest * other_images,
        share * targets + rest * other_targets,
    )


def seed_interval(
    changed: torch.Tensor, usual: torch.Tensor, quantile: float
) -> tuple[torch.Tensor, torch.Tensor]:
    delta = changed - usual
    half = quantile * delta.std() / math.sqrt(len(delta))
    return delta.mean() - half, delta.mean() + half


# === exercise: mixup | function: seed_interval | kind: double | what is wrong: the runs are treated as two independent groups (the variances of both are added) instead of taking the spread of the paired differences; and the variances divide by n instead of n - 1; mixup is right
# told: shown
# now: named
# says: the seeds are not paired, and divided by n in place of n − 1
def mixup(
    images: torch.Tensor,
    targets: torch.Tensor,
    share: float,
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    mixed = torch.lerp(images[permutation], images, share)
    mixed_targets = torch.lerp(targets[permutation], targets, share)
    return mixed, mixed_targets


def seed_interval(
    changed: torch.Tensor, usual: torch.Tensor, quantile: float
) -> tuple[torch.Tensor, torch.Tensor]:
    n = changed.numel()
    middle = changed.mean() - usual.mean()
    var_changed = ((changed - changed.mean()) ** 2).mean()
    var_usual = ((usual - usual.mean()) ** 2).mean()
    error = torch.sqrt((var_changed + var_usual) / n)
    return middle - quantile * error, middle + quantile * error


# === exercise: cutmix | function: cutmix | kind: plain | what is wrong: the box is read as (top, left, bottom, right), so the pasted region ends at row `height` and column `width` instead of top + height and left + width; the share is right
# told: named
# now: named
# says: the box read as two corners
def cutmix(
    images: torch.Tensor,
    targets: torch.Tensor,
    box: tuple[int, int, int, int],
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    top, left, height, width = box
    pasted = images.clone()
    pasted[:, :, top:height, left:width] = images[permutation][:, :, top:height, left:width]
    keep = 1 - height * width / (images.shape[2] * images.shape[3])
    return pasted, keep * targets + (1 - keep) * targets[permutation]
