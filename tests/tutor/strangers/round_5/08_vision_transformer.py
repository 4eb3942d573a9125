# ruff: noqa
# fmt: off

# === exercise: patchify | function: patchify | kind: plain | what is wrong: inside a patch the order is (channel, row, column), that of F.unfold
# told: named
# now: named
# says: channels first inside a patch
def patchify(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    patch_count(images.shape[2], images.shape[3], patch_size)
    patches = nn.functional.unfold(images, patch_size, stride=patch_size)
    return patches.transpose(1, 2)


# === exercise: unpatchify | function: unpatchify | kind: subtle | what is wrong: exchanges the numbers of rows and of columns of patches, which shows in images that are not square
# told: named
# now: named
# says: height and width exchanged
def unpatchify(
    patches: torch.Tensor, patch_size: int, height: int, width: int
) -> torch.Tensor:
    B, N, _ = patches.shape
    P = patch_size
    if N != patch_count(height, width, P):
        raise ValueError(f"{N} patches do not make {height} x {width} pixels")
    x = patches.reshape(B, width // P, height // P, P, P, -1)
    x = x.permute(0, 5, 1, 3, 2, 4)
    return x.reshape(B, -1, height, width)


# === exercise: patch-embedding | function: PatchEmbedding | kind: double | what is wrong: the weight is divided by √d_model AND the convolution silently crops an image that cannot be cut without a remainder
# told: named
# now: named
# says: no ValueError for a remainder
class PatchEmbedding(nn.Module):
    def __init__(self, patch_size: int, channels: int, d_model: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        self.channels = channels
        rows = patch_size * patch_size * channels
        self.weight = nn.Parameter(torch.randn(rows, d_model) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        P = self.patch_size
        kernel = self.weight.view(P, P, self.channels, -1).permute(3, 2, 0, 1)
        features = nn.functional.conv2d(images, kernel, self.bias, stride=P)
        return features.flatten(2).transpose(1, 2)


# === exercise: vision-transformer | function: VisionTransformer | kind: double | what is wrong: the encoder has ReLU (the default) AND the positions do not get the dropout
# told: named
# now: named
# says: ReLU in place of GELU
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
        with_token = pooling == "class"
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        self.class_token = ClassToken(d_model) if with_token else nn.Identity()
        self.position = LearnedPositionalEncoding(n + with_token, d_model)
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout, norm_first=True)
        self.head = (ClassHead if with_token else MeanHead)(d_model, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"images {tuple(images.shape)} are not {self.image_size}")
        x = self.position(self.class_token(self.patches(images)))
        return self.head(self.encoder(x))


# === exercise: interpolate-positions | function: interpolate_positions | kind: subtle | what is wrong: align_corners=True puts the outermost middles upon each other
# told: named
# now: named
# says: the corners are aligned
def interpolate_positions(
    table: torch.Tensor,
    old_grid: tuple[int, int],
    new_grid: tuple[int, int],
    class_tokens: int = 1,
) -> torch.Tensor:
    front, grid = table[:class_tokens], table[class_tokens:]
    image = grid.T.reshape(1, -1, *old_grid)
    image = nn.functional.interpolate(
        image, size=new_grid, mode="bilinear", align_corners=True
    )
    return torch.cat((front, image[0].flatten(1).T))


# === exercise: interpolate-positions | function: interpolate_positions | kind: plain | what is wrong: reshapes (h·w, d) to (1, d, h, w) without moving the axis of the features
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
    image = table[class_tokens:].reshape(1, d, h, w)
    image = nn.functional.interpolate(
        image, new_grid, mode="bilinear", align_corners=False
    )
    rows = image.reshape(new_grid[0] * new_grid[1], d)
    return torch.cat((table[:class_tokens], rows), dim=0)


# === exercise: shift-weights | function: shift_weights | kind: subtle | what is wrong: a step in the sequence in place of one on the grid: the last token of a row looks at the first of the next
# told: named
# now: named
# says: runs on into the next row
def shift_weights(
    height: int, width: int, row_offset: int, column_offset: int
) -> torch.Tensor:
    n = height * width
    step = row_offset * width + column_offset
    weights = torch.zeros(n, n)
    for i in range(n):
        if 0 <= i + step < n:
            weights[i, i + step] = 1.0
    return weights


# === exercise: convolution-by-heads | function: convolution_by_heads | kind: plain | what is wrong: flips the kernel, as the mathematicians' convolution does
# told: named
# now: named
# says: the kernel is flipped
def convolution_by_heads(
    tokens: torch.Tensor, kernel: torch.Tensor, height: int, width: int
) -> torch.Tensor:
    k = kernel.shape[-1]
    half = k // 2
    result = 0
    for i in range(k):
        for j in range(k):
            attention = shift_weights(height, width, half - i, half - j)
            result = result + attention @ tokens @ kernel[:, :, i, j].T
    return result


# === exercise: receptive-field | function: receptive_field | kind: double | what is wrong: adds the channels up before the test, so they may cancel AND last minus first, without the one
# told: named
# now: named
# says: channels added up before the test, and one too few
def receptive_field(gradient: torch.Tensor) -> tuple[int, int]:
    counts = gradient.sum(dim=0) != 0
    if not counts.any():
        return 0, 0
    rows = counts.any(dim=1).nonzero()
    columns = counts.any(dim=0).nonzero()
    return int(rows.max() - rows.min()), int(columns.max() - columns.min())


# === exercise: receptive-field | function: receptive_field | kind: subtle | what is wrong: takes what is smaller than 1e-6 for zero
# told: named
# now: named
# says: small entries left out
def receptive_field(gradient: torch.Tensor) -> tuple[int, int]:
    seen = gradient.abs().amax(dim=0) > 1e-6
    if not seen.any():
        return (0, 0)
    y, x = torch.where(seen)
    return ((y.max() - y.min() + 1).item(), (x.max() - x.min() + 1).item())


# === exercise: principal-filters | function: principal_filters | kind: subtle | what is wrong: subtracts from each filter the mean of its own numbers, not the mean filter
# told: named
# now: named
# says: centred along the wrong axis
def principal_filters(
    weight: torch.Tensor, count: int, patch_size: int, channels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    filters = weight.T
    filters = filters - filters.mean(dim=1, keepdim=True)
    _, s, vt = torch.linalg.svd(filters, full_matrices=False)
    ratio = s**2 / (s**2).sum()
    components = vt[:count].reshape(count, patch_size, patch_size, channels)
    return components, ratio[:count]


# === exercise: attention-rollout | function: attention_rollout | kind: plain | what is wrong: multiplies the layers in the wrong order, the first one leftmost
# told: named
# now: named
# says: multiplied in the wrong order
def attention_rollout(weights: list[torch.Tensor]) -> torch.Tensor:
    result = torch.eye(weights[0].shape[-1])
    for layer in weights:
        mixed = 0.5 * layer.mean(dim=0) + 0.5 * torch.eye(layer.shape[-1])
        result = result @ mixed
    return result


# === exercise: mixup | function: mixup, seed_interval | kind: double | what is wrong: the share is given to the partner, not to the image itself AND the spread divides by n, not by n - 1
# told: named
# now: named
# says: the share of image and partner exchanged
def mixup(
    images: torch.Tensor,
    targets: torch.Tensor,
    share: float,
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    mixed = torch.lerp(images, images[permutation], share)
    return mixed, torch.lerp(targets, targets[permutation], share)


def seed_interval(
    changed: torch.Tensor, usual: torch.Tensor, quantile: float
) -> tuple[torch.Tensor, torch.Tensor]:
    d = changed - usual
    mean = d.mean()
    s = ((d - mean) ** 2).mean().sqrt()
    half = quantile * s / math.sqrt(len(d))
    return mean - half, mean + half


# === exercise: mixup | function: mixup, seed_interval | kind: plain | what is wrong: seed_interval compares the two groups as if they were unpaired
# told: named
# now: named
# says: the seeds are not paired
def mixup(
    images: torch.Tensor,
    targets: torch.Tensor,
    share: float,
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    return tuple(share * x + (1 - share) * x[permutation] for x in (images, targets))


def seed_interval(
    changed: torch.Tensor, usual: torch.Tensor, quantile: float
) -> tuple[torch.Tensor, torch.Tensor]:
    n = changed.numel()
    difference = changed.mean() - usual.mean()
    error = torch.sqrt(changed.var() / n + usual.var() / n)  # two samples
    return difference - quantile * error, difference + quantile * error


# === exercise: cutmix | function: cutmix | kind: subtle | what is wrong: reads the box as (left, top, width, height)
# told: named
# now: named
# says: rows and columns of the box exchanged
def cutmix(
    images: torch.Tensor,
    targets: torch.Tensor,
    box: tuple[int, int, int, int],
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    x, y, w, h = box
    mixed = images.clone()
    mixed[:, :, y : y + h, x : x + w] = images[permutation][:, :, y : y + h, x : x + w]
    share = 1 - w * h / (images.shape[2] * images.shape[3])
    return mixed, share * targets + (1 - share) * targets[permutation]


# === exercise: cutmix | function: cutmix | kind: double | what is wrong: pastes into the images that were handed in AND the targets keep the share of the box, not of what is left
# told: named
# now: named
# says: changes its argument in place
def cutmix(
    images: torch.Tensor,
    targets: torch.Tensor,
    box: tuple[int, int, int, int],
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    top, left, height, width = box
    rows, columns = slice(top, top + height), slice(left, left + width)
    images[..., rows, columns] = images[permutation][..., rows, columns]
    lam = height * width / (images.size(-1) * images.size(-2))
    return images, lam * targets + (1 - lam) * targets[permutation]
