# ruff: noqa
# fmt: off

# === exercise: patchify | function: patchify | kind: plain | what is wrong: the patches come down each column first, not in reading order
# told: named
# now: named
# says: patches in column order
def patchify(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    b, c, h, w = images.shape
    patch_count(h, w, patch_size)
    pieces = []
    for left in range(0, w, patch_size):
        for top in range(0, h, patch_size):
            piece = images[:, :, top : top + patch_size, left : left + patch_size]
            pieces.append(piece.permute(0, 2, 3, 1).reshape(b, -1))
    return torch.stack(pieces, dim=1)


# === exercise: patchify | function: patchify | kind: subtle | what is wrong: unfold puts the channels first inside a patch; the same only for one channel
# told: named
# now: named
# says: channels first inside a patch
def patchify(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    patch_count(*images.shape[-2:], patch_size)  # raises the ValueError
    columns = nn.functional.unfold(images, kernel_size=patch_size, stride=patch_size)
    return columns.transpose(1, 2)


# === exercise: unpatchify | function: unpatchify | kind: subtle | what is wrong: the grid is split as (width/P, height/P) instead of (height/P, width/P); right for square images
# told: named
# now: named
# says: height and width exchanged
def unpatchify(
    patches: torch.Tensor, patch_size: int, height: int, width: int
) -> torch.Tensor:
    b, n, length = patches.shape
    if n != patch_count(height, width, patch_size):
        raise ValueError(f"{n} patches do not make {height} x {width} pixels")
    p = patch_size
    c = length // (p * p)
    x = patches.reshape(b, width // p, height // p, p, p, c)
    x = x.permute(0, 5, 1, 3, 2, 4)
    return x.reshape(b, c, height, width)


# === exercise: unpatchify | function: unpatchify | kind: double | what is wrong: (1) rows and columns of pixels inside a patch are exchanged; (2) a wrong number of patches is not refused (the -1 hides it in the channels)
# told: named
# now: named
# says: rows and columns of pixels exchanged
def unpatchify(
    patches: torch.Tensor, patch_size: int, height: int, width: int
) -> torch.Tensor:
    rows, columns = height // patch_size, width // patch_size
    x = patches.reshape(len(patches), rows, columns, patch_size, patch_size, -1)
    #    b  c  rows  pixel rows  columns  pixel columns
    x = x.permute(0, 5, 1, 4, 2, 3)
    return x.flatten(4, 5).flatten(2, 3)


# === exercise: patch-embedding | function: PatchEmbedding | kind: plain | what is wrong: the weight is divided by P*P*C itself, not by its root
# told: named
# now: named
# says: the weights start too small
class PatchEmbedding(nn.Module):
    """Map every patch of an image to a vector."""

    def __init__(self, patch_size: int, channels: int, d_model: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        size = patch_size * patch_size * channels
        self.weight = nn.Parameter(torch.randn(size, d_model) / size)
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return patchify(images, self.patch_size) @ self.weight + self.bias


# === exercise: patch-embedding | function: PatchEmbedding | kind: double | what is wrong: (1) divides the weight by P only and forgets the channels under the root; (2) the bias is drawn at random instead of starting at zero
# told: named
# now: named
# says: the biases do not start at zero
class PatchEmbedding(nn.Module):
    """Map every patch of an image to a vector."""

    def __init__(self, patch_size: int, channels: int, d_model: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        spread = 1 / math.sqrt(patch_size**2)
        self.weight = nn.Parameter(torch.empty(patch_size**2 * channels, d_model))
        self.bias = nn.Parameter(torch.empty(d_model))
        nn.init.normal_(self.weight, std=spread)
        nn.init.normal_(self.bias, std=spread)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        rows = patchify(images, self.patch_size)
        return torch.einsum("bnk,kd->bnd", rows, self.weight) + self.bias


# === exercise: vision-transformer | function: VisionTransformer | kind: plain | what is wrong: the table of positions has N + 1 rows with pooling="mean", too
# told: named
# now: named
# says: a position too many
class VisionTransformer(nn.Module):
    """Classify images by an encoder that reads their patches."""

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
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        self.position = LearnedPositionalEncoding(n + 1, d_model, dropout)
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
        x = self.patches(images)
        x = self.class_token(x)
        x = self.position(x)
        x = self.encoder(x)
        return self.head(x)


# === exercise: vision-transformer | function: VisionTransformer | kind: subtle | what is wrong: dropout is not handed to the encoder, which keeps its default of 0; the same in eval mode
# told: named
# now: named
# says: dropout not passed to the encoder
class VisionTransformer(nn.Module):
    """Classify images by an encoder that reads their patches."""

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
        with_token = pooling == "class"
        positions = patch_count(height, width, patch_size) + with_token
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        self.class_token = ClassToken(d_model) if with_token else nn.Identity()
        self.position = LearnedPositionalEncoding(positions, d_model, dropout)
        self.encoder = Encoder(
            layers, d_model, heads, d_ff, norm_first=True, activation="gelu"
        )
        self.head = (ClassHead if with_token else MeanHead)(d_model, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"images {tuple(images.shape)} are not {self.image_size}")
        tokens = self.class_token(self.patches(images))
        return self.head(self.encoder(self.position(tokens)))


# === exercise: vision-transformer | function: VisionTransformer | kind: double | what is wrong: (1) the class token is joined after the positions (whose table has N rows); (2) the encoder's activation is ReLU instead of GELU
# told: named
# now: named
# says: class token without a position
class VisionTransformer(nn.Module):
    """Classify images by an encoder that reads their patches."""

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
        self.pooling = pooling
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        self.position = LearnedPositionalEncoding(
            patch_count(height, width, patch_size), d_model, dropout
        )
        self.encoder = Encoder(
            layers, d_model, heads, d_ff, dropout, norm_first=True, activation="relu"
        )
        if pooling == "class":
            self.class_token = ClassToken(d_model)
            self.head = ClassHead(d_model, classes)
        else:
            self.head = MeanHead(d_model, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"images {tuple(images.shape)} are not {self.image_size}")
        x = self.position(self.patches(images))
        if self.pooling == "class":
            x = self.class_token(x)
        return self.head(self.encoder(x))


# === exercise: interpolate-positions | function: interpolate_positions | kind: subtle | what is wrong: antialias=True, the same for a larger grid, but a smaller one is smoothed over more than the neighbouring middles
# told: named
# now: named
# says: smoothed before it is made smaller
def interpolate_positions(
    table: torch.Tensor,
    old_grid: tuple[int, int],
    new_grid: tuple[int, int],
    class_tokens: int = 1,
) -> torch.Tensor:
    special, places = table[:class_tokens], table[class_tokens:]
    picture = places.T.reshape(1, -1, *old_grid)
    picture = nn.functional.interpolate(
        picture, size=new_grid, mode="bilinear", align_corners=False, antialias=True
    )
    return torch.cat((special, picture[0].flatten(1).T))


# === exercise: interpolate-positions | function: interpolate_positions | kind: double | what is wrong: (1) always one class token, the argument class_tokens is ignored; (2) the new rows come column by column instead of in reading order
# told: named
# now: named
# says: the grid is transposed
def interpolate_positions(
    table: torch.Tensor,
    old_grid: tuple[int, int],
    new_grid: tuple[int, int],
    class_tokens: int = 1,
) -> torch.Tensor:
    h, w = old_grid
    d = table.shape[1]
    cls = table[:1]
    grid = table[1:].reshape(h, w, d)
    grid = grid.permute(2, 0, 1).unsqueeze(0)  # (1, d, h, w)
    grid = nn.functional.interpolate(
        grid, size=tuple(new_grid), mode="bilinear", align_corners=False
    )
    rows = grid.squeeze(0).permute(2, 1, 0).reshape(new_grid[0] * new_grid[1], d)
    return torch.cat([cls, rows], dim=0)


# === exercise: shift-weights | function: shift_weights | kind: plain | what is wrong: places outside the grid come in again on the other side (modulo), instead of a row of zeros
# told: named
# now: named
# says: wraps around the border
def shift_weights(
    height: int, width: int, row_offset: int, column_offset: int
) -> torch.Tensor:
    n = height * width
    weights = torch.zeros(n, n)
    for r in range(height):
        for c in range(width):
            to_r = (r + row_offset) % height
            to_c = (c + column_offset) % width
            weights[r * width + c, to_r * width + to_c] = 1.0
    return weights


# === exercise: shift-weights | function: shift_weights | kind: subtle | what is wrong: a step longer than the side of the grid makes a matrix of the wrong shape, where (N, N) zeros are wanted
# told: shown
# now: named
# says: a step beyond the grid makes the matrix grow
def shift_weights(
    height: int, width: int, row_offset: int, column_offset: int
) -> torch.Tensor:
    def along_one_side(size, offset):
        # ones on the diagonal that is `offset` above the main one
        ones = torch.ones(max(size - abs(offset), 0))
        return torch.diag(ones, offset)

    down = along_one_side(height, row_offset)
    right = along_one_side(width, column_offset)
    return torch.kron(down, right)


# === exercise: convolution-by-heads | function: convolution_by_heads | kind: plain | what is wrong: flips the kernel: the step is (k//2 - i, k//2 - j), a convolution as in mathematics
# told: named
# now: named
# says: the kernel is flipped
def convolution_by_heads(
    tokens: torch.Tensor, kernel: torch.Tensor, height: int, width: int
) -> torch.Tensor:
    k = kernel.shape[-1]
    half = k // 2
    total = 0
    for i in range(k):
        for j in range(k):
            attention = shift_weights(height, width, half - i, half - j)
            total = total + attention @ tokens @ kernel[:, :, i, j].T
    return total


# === exercise: convolution-by-heads | function: convolution_by_heads | kind: double | what is wrong: (1) steps of rows and of columns exchanged (j down, i to the right); (2) the kernel's matrix is not transposed
# told: named
# now: named
# says: rows and columns of the kernel exchanged
def convolution_by_heads(
    tokens: torch.Tensor, kernel: torch.Tensor, height: int, width: int
) -> torch.Tensor:
    size = kernel.size(2)
    middle = size // 2
    heads = []
    for place in range(size * size):
        i, j = divmod(place, size)
        neighbours = shift_weights(height, width, j - middle, i - middle) @ tokens
        heads.append(torch.matmul(neighbours, kernel[:, :, i, j]))
    return torch.stack(heads).sum(dim=0)


# === exercise: receptive-field | function: receptive_field | kind: plain | what is wrong: counts the rows and columns that are seen, without those in the gaps of the box
# told: named
# now: named
# says: rows and columns counted, not the box
def receptive_field(gradient: torch.Tensor) -> tuple[int, int]:
    seen = (gradient != 0).any(dim=0)
    rows = seen.any(dim=1).sum()
    columns = seen.any(dim=0).sum()
    return int(rows), int(columns)


# === exercise: receptive-field | function: receptive_field | kind: subtle | what is wrong: squares the gradient, so that tiny entries (1e-30 in float32) become 0 and are not seen
# told: passed
# now: named
# says: small entries left out
def receptive_field(gradient: torch.Tensor) -> tuple[int, int]:
    energy = gradient.square().sum(dim=0)  # (H, W), nothing can cancel

    def extent(profile):
        places = profile.nonzero().flatten().tolist()
        return places[-1] - places[0] + 1 if places else 0

    return extent(energy.sum(dim=1)), extent(energy.sum(dim=0))


# === exercise: principal-filters | function: principal_filters | kind: plain | what is wrong: the mean of the filters is not subtracted
# told: named
# now: named
# says: not centred
def principal_filters(
    weight: torch.Tensor, count: int, patch_size: int, channels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    filters = weight.T
    _, s, vt = torch.linalg.svd(filters, full_matrices=False)
    components = vt[:count].reshape(count, patch_size, patch_size, channels)
    variances = s**2
    return components, (variances / variances.sum())[:count]


# === exercise: principal-filters | function: principal_filters | kind: subtle | what is wrong: takes the numbers of a filter as (channel, row, column), not in the order of patchify; the same for one channel or for P = 1
# told: named
# now: named
# says: channels first inside a patch
def principal_filters(
    weight: torch.Tensor, count: int, patch_size: int, channels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    samples = weight.T - weight.mean(dim=1)
    _, s, vt = torch.linalg.svd(samples, full_matrices=False)
    pictures = vt[:count].unflatten(1, (channels, patch_size, patch_size))
    pictures = pictures.permute(0, 2, 3, 1)
    share = s.square() / s.square().sum()
    return pictures, share[:count]


# === exercise: principal-filters | function: principal_filters | kind: double | what is wrong: (1) subtracts from each filter its own mean instead of the mean filter; (2) the share is computed from the singular values without squares
# told: named
# now: named
# says: centred along the wrong axis
def principal_filters(
    weight: torch.Tensor, count: int, patch_size: int, channels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    filters = weight.transpose(0, 1)  # (d, P*P*C)
    centred = filters - filters.mean(dim=1, keepdim=True)
    u, s, vt = torch.linalg.svd(centred, full_matrices=False)
    components = vt[:count].view(count, patch_size, patch_size, channels)
    ratio = s[:count] / s.sum()
    return components, ratio


# === exercise: attention-rollout | function: attention_rollout | kind: plain | what is wrong: multiplies from the wrong side, the first layer stands leftmost
# told: named
# now: named
# says: multiplied in the wrong order
def attention_rollout(weights: list[torch.Tensor]) -> torch.Tensor:
    size = weights[0].shape[-1]
    identity = torch.eye(size)
    rollout = identity
    for layer in weights:
        mixed = 0.5 * layer.mean(dim=0) + 0.5 * identity
        rollout = rollout @ mixed
    return rollout


# === exercise: attention-rollout | function: attention_rollout | kind: double | what is wrong: (1) the largest of the heads instead of their mean; (2) the identity is mixed in once, with the finished product, instead of in every layer
# told: named
# now: named
# says: the identity only once, and the maximum over the heads in place of the mean
def attention_rollout(weights: list[torch.Tensor]) -> torch.Tensor:
    flow = None
    for layer in weights:
        attention = layer.amax(dim=0)
        attention = attention / attention.sum(dim=-1, keepdim=True)
        flow = attention if flow is None else attention @ flow
    return (flow + torch.eye(len(flow))) / 2


# === exercise: mixup | functions: mixup, seed_interval | kind: subtle | what is wrong: seed_interval divides by the root of n - 1 although std has already used n - 1 (mixup is right)
# told: shown
# now: named
# says: divided by √(n − 1) in place of √n
def mixup(
    images: torch.Tensor,
    targets: torch.Tensor,
    share: float,
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    mixed = share * images + (1 - share) * images[permutation]
    labels = share * targets + (1 - share) * targets[permutation]
    return mixed, labels


def seed_interval(
    changed: torch.Tensor, usual: torch.Tensor, quantile: float
) -> tuple[torch.Tensor, torch.Tensor]:
    difference = changed - usual
    degrees = len(difference) - 1
    margin = quantile * difference.std() / math.sqrt(degrees)
    centre = difference.mean()
    return centre - margin, centre + margin


# === exercise: mixup | functions: mixup, seed_interval | kind: double | what is wrong: (1) mixup overwrites the caller's images and targets; (2) seed_interval takes the spread of two independent samples, not of the paired differences
# told: named
# now: named
# says: changes its argument in place
def mixup(
    images: torch.Tensor,
    targets: torch.Tensor,
    share: float,
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    for batch in (images, targets):
        partners = batch[permutation]
        batch *= share
        batch += (1 - share) * partners
    return images, targets


def seed_interval(
    changed: torch.Tensor, usual: torch.Tensor, quantile: float
) -> tuple[torch.Tensor, torch.Tensor]:
    n = changed.numel()
    mean = changed.mean() - usual.mean()
    spread = torch.sqrt(changed.var() + usual.var())
    half = quantile * spread / n**0.5
    return mean - half, mean + half


# === exercise: cutmix | function: cutmix | kind: plain | what is wrong: the shares of the targets are exchanged: the image itself gets the box's share
# told: named
# now: named
# says: labels mixed by the wrong share
def cutmix(
    images: torch.Tensor,
    targets: torch.Tensor,
    box: tuple[int, int, int, int],
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    top, left, height, width = box
    rows, columns = slice(top, top + height), slice(left, left + width)
    mixed = images.clone()
    mixed[:, :, rows, columns] = images[permutation][:, :, rows, columns]
    share = height * width / (images.shape[-2] * images.shape[-1])
    return mixed, share * targets + (1 - share) * targets[permutation]


# === exercise: cutmix | function: cutmix | kind: subtle | what is wrong: the area of the box is divided by all numbers of an image, channels included; the same for one channel
# told: named
# now: named
# says: the area is wrong
def cutmix(
    images: torch.Tensor,
    targets: torch.Tensor,
    box: tuple[int, int, int, int],
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    top, left, height, width = box
    inside = torch.zeros(images.shape[-2:], dtype=torch.bool)
    inside[top : top + height, left : left + width] = True
    pasted = torch.where(inside, images[permutation], images)
    keep = 1 - inside.sum().item() / images[0].numel()
    return pasted, torch.lerp(targets[permutation], targets, keep)


# === exercise: cutmix | function: cutmix | kind: double | what is wrong: (1) height and width of the box exchanged in the slices; (2) partners are read from the copy that is being written, so boxes are pasted on
# told: named
# now: named
# says: rows and columns of the box exchanged, and partners that are mixed already
def cutmix(
    images: torch.Tensor,
    targets: torch.Tensor,
    box: tuple[int, int, int, int],
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    y, x, h, w = box
    result = images.clone()
    for i, partner in enumerate(permutation.tolist()):
        result[i, :, y : y + w, x : x + h] = result[partner, :, y : y + w, x : x + h]
    keep = 1 - (h * w) / (images.size(2) * images.size(3))
    mixed_targets = keep * targets + (1 - keep) * targets[permutation]
    return result, mixed_targets


# === exercise: attention-rollout | function: attention_rollout | kind: plain | what is wrong: the product is taken in the wrong order (first layer leftmost)
# told: named
# now: named
# says: multiplied in the wrong order
def attention_rollout(weights: list[torch.Tensor]) -> torch.Tensor:
    tokens = weights[0].shape[-1]
    rollout = torch.eye(tokens, dtype=weights[0].dtype)
    for layer in weights:
        mixed = 0.5 * layer.mean(dim=0) + 0.5 * torch.eye(tokens, dtype=layer.dtype)
        rollout = rollout @ mixed
    return rollout


# === exercise: shift-weights | function: shift_weights | kind: plain | what is wrong: tests only the joined number of the place, so a step over the right or left border wraps into the next row
# told: named
# now: named
# says: runs on into the next row
def shift_weights(
    height: int, width: int, row_offset: int, column_offset: int
) -> torch.Tensor:
    n = height * width
    weights = torch.zeros(n, n)
    step = row_offset * width + column_offset
    for query in range(n):
        key = query + step
        if 0 <= key < n:
            weights[query, key] = 1.0
    return weights


# === exercise: principal-filters | function: principal_filters | kind: subtle | what is wrong: the shares are divided by the sum over the first count components instead of all singular values (equal when count is the largest possible)
# told: named
# now: named
# says: shares of the first components only
def principal_filters(
    weight: torch.Tensor, count: int, patch_size: int, channels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    filters = weight.T
    centred = filters - filters.mean(dim=0, keepdim=True)
    _, s, vt = torch.linalg.svd(centred, full_matrices=False)
    s, vt = s[:count], vt[:count]
    variance = s**2
    ratio = variance / variance.sum()
    components = vt.reshape(count, patch_size, patch_size, channels)
    return components, ratio


# === exercise: interpolate-positions | function: interpolate_positions | kind: subtle | what is wrong: height and width of the old grid are exchanged when the rows are laid out (nothing to see on square grids)
# told: named
# now: named
# says: the grid is transposed
def interpolate_positions(
    table: torch.Tensor,
    old_grid: tuple[int, int],
    new_grid: tuple[int, int],
    class_tokens: int = 1,
) -> torch.Tensor:
    special, places = table[:class_tokens], table[class_tokens:]
    h, w = old_grid
    picture = places.T.reshape(1, -1, w, h)
    picture = nn.functional.interpolate(
        picture, size=tuple(new_grid), mode="bilinear", align_corners=False
    )
    places = picture.flatten(2).squeeze(0).T
    return torch.cat([special, places], dim=0)


# === exercise: mixup | functions: mixup, seed_interval | kind: double | what is wrong: (1) mixup writes into the caller's images and targets; (2) the spread divides by n instead of n - 1
# told: named
# now: named
# says: changes its argument in place
def mixup(
    images: torch.Tensor,
    targets: torch.Tensor,
    share: float,
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    other_images = images[permutation]
    other_targets = targets[permutation]
    images *= share
    images += (1 - share) * other_images
    targets *= share
    targets += (1 - share) * other_targets
    return images, targets


def seed_interval(
    changed: torch.Tensor, usual: torch.Tensor, quantile: float
) -> tuple[torch.Tensor, torch.Tensor]:
    delta = changed - usual
    n = delta.numel()
    mean = delta.sum() / n
    spread = ((delta - mean) ** 2).mean().sqrt()
    half = quantile * spread / math.sqrt(n)
    return mean - half, mean + half


# === exercise: cutmix | function: cutmix | kind: double | what is wrong: (1) rows and columns of the box are exchanged; (2) the image's own target gets the share of the box instead of what is left
# told: named
# now: named
# says: labels mixed by the wrong share, and rows and columns of the box exchanged
def cutmix(
    images: torch.Tensor,
    targets: torch.Tensor,
    box: tuple[int, int, int, int],
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    top, left, height, width = box
    x, y = slice(left, left + width), slice(top, top + height)
    new = images.clone()
    new[:, :, x, y] = images[permutation][:, :, x, y]
    lam = (height * width) / (images.size(-1) * images.size(-2))
    mixed = lam * targets + (1 - lam) * targets[permutation]
    return new, mixed
