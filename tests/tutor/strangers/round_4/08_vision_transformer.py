# ruff: noqa
# fmt: off

# === exercise: patchify | function: patchify | kind: plain | what is wrong: one reshape of the image to (B, N, P·P·C)
# told: named
# now: named
# says: a reshape without a permutation
def patchify(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    B, C, H, W = images.shape
    n = patch_count(H, W, patch_size)
    return images.reshape(B, n, patch_size * patch_size * C)


# === exercise: patchify | function: patchify | kind: subtle | what is wrong: inside a patch the order is (channel, row, column), as nn.Unfold has it; equal for one channel
# told: named
# now: named
# says: channels first inside a patch
def patchify(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    patch_count(images.shape[2], images.shape[3], patch_size)
    columns = nn.functional.unfold(images, patch_size, stride=patch_size)
    return columns.transpose(1, 2)


# === exercise: unpatchify | function: unpatchify | kind: subtle | what is wrong: height and width of the grid are exchanged: the patches are laid out down the columns
# told: named
# now: named
# says: patches in column order
def unpatchify(
    patches: torch.Tensor, patch_size: int, height: int, width: int
) -> torch.Tensor:
    B, N, length = patches.shape
    if N != patch_count(height, width, patch_size):
        raise ValueError(f"{N} patches do not make {height} x {width} pixels")
    P = patch_size
    C = length // (P * P)
    x = patches.reshape(B, width // P, height // P, P, P, C)
    x = x.permute(0, 5, 2, 3, 1, 4)
    return x.reshape(B, C, height, width)


# === exercise: unpatchify | function: unpatchify | kind: double | what is wrong: rows and columns of pixels inside a patch are exchanged AND a wrong number of patches is not refused (the channels are -1)
# told: named
# now: named
# says: rows and columns of pixels exchanged
def unpatchify(
    patches: torch.Tensor, patch_size: int, height: int, width: int
) -> torch.Tensor:
    patch_count(height, width, patch_size)
    P, h, w = patch_size, height // patch_size, width // patch_size
    grid = patches.reshape(patches.shape[0], h, w, P, P, -1)
    images = torch.einsum("bhwpqc->bchqwp", grid)
    return images.reshape(patches.shape[0], -1, height, width)


# === exercise: patch-embedding | function: PatchEmbedding | kind: subtle | what is wrong: spread 1/√d_model in place of 1/√(P²C)
# told: named
# now: named
# says: the weights start too large
class PatchEmbedding(nn.Module):
    def __init__(self, patch_size: int, channels: int, d_model: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        rows = patch_size * patch_size * channels
        self.weight = nn.Parameter(torch.randn(rows, d_model) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return patchify(images, self.patch_size) @ self.weight + self.bias


# === exercise: vision-transformer | function: VisionTransformer | kind: subtle | what is wrong: with pooling "mean" the table of positions has N + 1 rows all the same
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
        positions = patch_count(height, width, patch_size) + 1
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        self.position = LearnedPositionalEncoding(positions, d_model, dropout)
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
        x = self.class_token(self.patches(images))
        return self.head(self.encoder(self.position(x)))


# === exercise: vision-transformer | function: VisionTransformer | kind: double | what is wrong: class token is joined after the positions AND encoder is post-norm (norm_first forgotten)
# told: named
# now: named
# says: post-norm in place of pre-norm
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
        n = patch_count(height, width, patch_size)
        self.pooling = pooling
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        self.class_token = ClassToken(d_model) if pooling == "class" else nn.Identity()
        n = n + 1 if pooling == "class" else n
        self.position = LearnedPositionalEncoding(n, d_model, dropout)
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout, activation="gelu")
        head = ClassHead if pooling == "class" else MeanHead
        self.head = head(d_model, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"images {tuple(images.shape)} are not {self.image_size}")
        x = self.position(self.patches(images))
        x = self.class_token(x)
        return self.head(self.encoder(x))


# === exercise: interpolate-positions | function: interpolate_positions | kind: plain | what is wrong: align_corners=True
# told: named
# now: named
# says: the corners are aligned
def interpolate_positions(
    table: torch.Tensor,
    old_grid: tuple[int, int],
    new_grid: tuple[int, int],
    class_tokens: int = 1,
) -> torch.Tensor:
    front, rest = table[:class_tokens], table[class_tokens:]
    h, w = old_grid
    d = table.shape[-1]
    image = rest.reshape(1, h, w, d).permute(0, 3, 1, 2)
    image = nn.functional.interpolate(
        image, size=new_grid, mode="bilinear", align_corners=True
    )
    rows = image.permute(0, 2, 3, 1).reshape(-1, d)
    return torch.cat([front, rows], dim=0)


# === exercise: interpolate-positions | function: interpolate_positions | kind: double | what is wrong: one class token is always cut off, class_tokens is ignored AND the table is laid out by a reshape to (1, d, h, w) without permuting
# told: named
# now: named
# says: features and places mixed up
def interpolate_positions(
    table: torch.Tensor,
    old_grid: tuple[int, int],
    new_grid: tuple[int, int],
    class_tokens: int = 1,
) -> torch.Tensor:
    cls, patches = table[:1], table[1:]
    d = table.shape[1]
    image = patches.reshape(1, d, *old_grid)
    image = nn.functional.interpolate(image, size=new_grid, mode="bilinear")
    return torch.cat((cls, image.reshape(-1, d)))


# === exercise: shift-weights | function: shift_weights | kind: subtle | what is wrong: tests only whether the target index lies in 0..N-1, so a step to the right goes on in the next row
# told: named
# now: named
# says: runs on into the next row
def shift_weights(
    height: int, width: int, row_offset: int, column_offset: int
) -> torch.Tensor:
    n = height * width
    weights = torch.zeros(n, n)
    step = row_offset * width + column_offset
    for i in range(n):
        j = i + step
        if 0 <= j < n:
            weights[i, j] = 1.0
    return weights


# === exercise: convolution-by-heads | function: convolution_by_heads | kind: plain | what is wrong: flips the kernel (a mathematician's convolution)
# told: named
# now: named
# says: the kernel is flipped
def convolution_by_heads(
    tokens: torch.Tensor, kernel: torch.Tensor, height: int, width: int
) -> torch.Tensor:
    k = kernel.shape[-1]
    middle = k // 2
    kernel = kernel.flip(-1, -2)
    result = 0
    for i in range(k):
        for j in range(k):
            a = shift_weights(height, width, i - middle, j - middle)
            result = result + a @ tokens @ kernel[:, :, i, j].T
    return result


# === exercise: receptive-field | function: receptive_field | kind: double | what is wrong: channels are summed before the test AND the size is last minus first, without + 1
# told: shown
# now: named
# says: channels added up before the test, and one too few
def receptive_field(gradient: torch.Tensor) -> tuple[int, int]:
    total = gradient.sum(dim=0)
    rows, columns = torch.nonzero(total, as_tuple=True)
    if len(rows) == 0:
        return 0, 0
    return (
        int(rows.max() - rows.min()),
        int(columns.max() - columns.min()),
    )


# === exercise: principal-filters | function: principal_filters | kind: subtle | what is wrong: the share divides by the sum over the first count squares only
# told: named
# now: named
# says: shares of the first components only
def principal_filters(
    weight: torch.Tensor, count: int, patch_size: int, channels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    filters = weight.T - weight.T.mean(dim=0, keepdim=True)
    _, s, vt = torch.linalg.svd(filters, full_matrices=False)
    variance = s[:count] ** 2
    components = vt[:count].reshape(count, patch_size, patch_size, channels)
    return components, variance / variance.sum()


# === exercise: attention-rollout | function: attention_rollout | kind: subtle | what is wrong: the product in the order of the layers, first layer leftmost; equal for one layer
# told: named
# now: named
# says: multiplied in the wrong order
def attention_rollout(weights: list[torch.Tensor]) -> torch.Tensor:
    T = weights[0].shape[-1]
    result = torch.eye(T)
    for layer in weights:
        mixed = 0.5 * layer.mean(dim=0) + 0.5 * torch.eye(T)
        result = result @ mixed
    return result


# === exercise: mixup | function: mixup, seed_interval | kind: double | what is wrong: the targets are mixed with the shares exchanged AND the spread of the differences is the biased one (divided by n)
# told: named
# now: named
# says: labels mixed by the wrong share
def mixup(
    images: torch.Tensor,
    targets: torch.Tensor,
    share: float,
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    mixed = torch.lerp(images[permutation], images, share)
    labels = torch.lerp(targets, targets[permutation], share)
    return mixed, labels


def seed_interval(
    changed: torch.Tensor, usual: torch.Tensor, quantile: float
) -> tuple[torch.Tensor, torch.Tensor]:
    delta = changed - usual
    half = quantile * delta.std(correction=0) / math.sqrt(delta.numel())
    return delta.mean() - half, delta.mean() + half


# === exercise: cutmix | function: cutmix | kind: subtle | what is wrong: pastes image by image and fetches from the changed batch (partner's box may already be overwritten)
# told: named
# now: named
# says: partners that are mixed already
def cutmix(
    images: torch.Tensor,
    targets: torch.Tensor,
    box: tuple[int, int, int, int],
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    top, left, height, width = box
    mixed = images.clone()
    for i, partner in enumerate(permutation.tolist()):
        patch = mixed[partner, :, top : top + height, left : left + width]
        mixed[i, :, top : top + height, left : left + width] = patch
    H, W = images.shape[-2:]
    share = 1 - height * width / (H * W)
    return mixed, share * targets + (1 - share) * targets[permutation]
