# ruff: noqa
# fmt: off

# === exercise: patchify | function: patchify | kind: plain | what is wrong: the outer loop goes over the columns and the inner one over the rows, so the patches come column by column (down, then right) instead of in reading order; shows as soon as the grid has at least two rows and two columns of patches
# told: named
# now: named
# says: patches in column order
def patchify(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    B, C, H, W = images.shape
    patch_count(H, W, patch_size)  # raises the ValueError
    rows = []
    for x in range(0, W, patch_size):
        for y in range(0, H, patch_size):
            patch = images[:, :, y : y + patch_size, x : x + patch_size]
            # (B, C, P, P) -> (B, P, P, C) -> one line
            rows.append(patch.permute(0, 2, 3, 1).reshape(B, -1))
    return torch.stack(rows, dim=1)


# === exercise: patchify | function: patchify | kind: subtle | what is wrong: after the two unfolds the axes are (B, C, H/P, W/P, P, P) and are reshaped without a permute that brings the channel to the end, so with more than one channel a row does not hold all channels of each pixel side by side but C whole one-channel patches that follow each other (as a rule other patches of the same channel); right only for one channel
# told: told
# now: named
# says: whole channels one after the other
def patchify(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    batch, channels, height, width = images.shape
    n = patch_count(height, width, patch_size)
    # sliding windows without overlap, first down and then to the right
    windows = images.unfold(2, patch_size, patch_size).unfold(3, patch_size, patch_size)
    return windows.reshape(batch, n, patch_size * patch_size * channels)


# === exercise: patchify | function: patchify | kind: double | what is wrong: nn.functional.unfold lays the numbers of a patch out as (channel, row, column) instead of (row, column, channel), which shows with more than one channel; patch_count is never asked, so for sizes that P does not divide the remainder of the image is dropped silently instead of a ValueError
# told: named
# now: named
# says: channels first inside a patch
def patchify(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    columns = nn.functional.unfold(images, kernel_size=patch_size, stride=patch_size)
    return columns.transpose(1, 2)  # (B, P*P*C, N) -> (B, N, P*P*C)


# === exercise: unpatchify | function: unpatchify | kind: plain | what is wrong: the permutation moves only the channel to the front and leaves the axes as (rows of patches, columns of patches, rows of pixels, columns of pixels), so the numbers are joined without each axis of patches standing before its own axis of pixels and the image is scrambled whenever there is more than one column of patches and P > 1
# told: named
# now: named
# says: a reshape without a permutation
def unpatchify(
    patches: torch.Tensor, patch_size: int, height: int, width: int
) -> torch.Tensor:
    b, n, length = patches.shape
    if n != patch_count(height, width, patch_size):
        raise ValueError(f"{n} patches do not make an image of {height} x {width}")
    c = length // patch_size**2
    grid = patches.reshape(
        b, height // patch_size, width // patch_size, patch_size, patch_size, c
    )
    grid = torch.movedim(grid, -1, 1)  # channels first, as images have them
    return grid.reshape(b, c, height, width)


# === exercise: unpatchify | function: unpatchify | kind: subtle | what is wrong: only too few patches are refused (n < count); a sequence with more patches than the image has room for is cut off silently instead of raising the ValueError
# told: named
# now: named
# says: no ValueError for another number of patches
def unpatchify(
    patches: torch.Tensor, patch_size: int, height: int, width: int
) -> torch.Tensor:
    b, n, length = patches.shape
    needed = patch_count(height, width, patch_size)
    if n < needed:
        raise ValueError(f"an image of {height} x {width} needs {needed} patches, not {n}")
    channels = length // (patch_size * patch_size)
    columns = width // patch_size
    canvas = patches.new_zeros(b, channels, height, width)
    for number in range(needed):
        top = number // columns * patch_size
        left = number % columns * patch_size
        tile = patches[:, number].reshape(b, patch_size, patch_size, channels)
        canvas[:, :, top : top + patch_size, left : left + patch_size] = tile.permute(
            0, 3, 1, 2
        )
    return canvas


# === exercise: unpatchify | function: unpatchify | kind: double | what is wrong: the number of patches is never compared with the result of patch_count, so a wrong N that the reshape with -1 can absorb (6 patches for room of 3) gives an image with more channels instead of a ValueError; the permutation puts the columns of pixels behind the rows of patches and the rows of pixels behind the columns of patches, so every patch is transposed when P > 1
# told: named
# now: named
# says: rows and columns of pixels exchanged
def unpatchify(
    patches: torch.Tensor, patch_size: int, height: int, width: int
) -> torch.Tensor:
    p = patch_size
    patch_count(height, width, p)  # complains if it does not fit
    x = patches.reshape(len(patches), height // p, width // p, p, p, -1)
    x = x.permute(0, 5, 1, 4, 2, 3)
    return x.reshape(x.shape[0], x.shape[1], height, width)


# === exercise: patch-embedding | function: PatchEmbedding | kind: plain | what is wrong: the parameter is divided after it has been wrapped, nn.Parameter(...) / sqrt(...), which gives an ordinary tensor, so weight is not a parameter of the module (missing from parameters() and state_dict())
# told: named
# now: named
# says: parameters are missing
class PatchEmbedding(nn.Module):
    """Map every patch of an image to a vector."""

    def __init__(self, patch_size: int, channels: int, d_model: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        numbers = patch_size * patch_size * channels
        self.weight = nn.Parameter(torch.randn(numbers, d_model)) / math.sqrt(numbers)
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        rows = patchify(images, self.patch_size)
        return rows @ self.weight + self.bias


# === exercise: patch-embedding | function: PatchEmbedding | kind: subtle | what is wrong: forward computes the right thing with conv2d of stride P but does not check the sizes, so for images that P does not divide the last rows or columns are ignored silently instead of raising the ValueError
# told: named
# now: named
# says: no ValueError for a remainder
class PatchEmbedding(nn.Module):
    """A convolution with kernel P and stride P, its numbers kept as a matrix."""

    def __init__(self, patch_size: int, channels: int, d_model: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        self.channels = channels
        fan_in = patch_size**2 * channels
        self.weight = nn.Parameter(torch.randn(fan_in, d_model) * fan_in**-0.5)
        self.bias = nn.Parameter(torch.zeros(d_model))

    def kernel(self) -> torch.Tensor:
        p = self.patch_size
        # rows of weight are (row, column, channel); conv2d wants (out, in, row, column)
        return self.weight.reshape(p, p, self.channels, -1).permute(3, 2, 0, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = nn.functional.conv2d(
            images, self.kernel(), self.bias, stride=self.patch_size
        )
        return features.flatten(2).transpose(1, 2)


# === exercise: patch-embedding | function: PatchEmbedding | kind: double | what is wrong: weight is drawn uniformly between plus and minus 1/sqrt(P*P*C), as nn.Linear does, instead of from a normal distribution with that spread (its spread is smaller by the factor sqrt(3)); the bias exists as a parameter but is never added in forward, which shows as soon as it is not zero, and it gets no gradient
# told: named
# now: named
# says: the bias is not added
class PatchEmbedding(nn.Module):
    """Map every patch of an image to a vector."""

    def __init__(self, patch_size: int, channels: int, d_model: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        terms = patch_size * patch_size * channels
        bound = 1 / math.sqrt(terms)
        self.weight = nn.Parameter(torch.empty(terms, d_model).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bnx,xd->bnd", patchify(images, self.patch_size), self.weight)


# === exercise: vision-transformer | function: VisionTransformer | kind: plain | what is wrong: forward adds the positions before the class token is joined, so the class token gets no position and the patches get rows 0 to N-1 of the table instead of 1 to N (with pooling="class")
# told: named
# now: named
# says: positions before the class token
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
        positions = patch_count(height, width, patch_size)
        if pooling == "class":
            positions += 1
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        self.class_token = ClassToken(d_model) if pooling == "class" else nn.Identity()
        self.position = LearnedPositionalEncoding(positions, d_model, dropout)
        self.encoder = Encoder(
            layers, d_model, heads, d_ff, dropout, norm_first=True, activation="gelu"
        )
        head = ClassHead if pooling == "class" else MeanHead
        self.head = head(d_model, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"images {tuple(images.shape)} are not {self.image_size}")
        x = self.patches(images)
        x = self.position(x)  # say where each patch was ...
        x = self.class_token(x)  # ... and put the class token in front
        x = self.encoder(x)
        return self.head(x)


# === exercise: vision-transformer | function: VisionTransformer | kind: subtle | what is wrong: the positions are built with dropout 0.0 instead of the model's dropout, so the embedded sequence is never dropped out; shows only in training mode with dropout > 0
# told: named
# now: named
# says: dropout not passed to the positions
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
        n = patch_count(height, width, patch_size) + int(with_token)
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        if with_token:
            self.class_token = ClassToken(d_model)
            self.head = ClassHead(d_model, classes)
        else:
            self.class_token = nn.Identity()
            self.head = MeanHead(d_model, classes)
        self.position = LearnedPositionalEncoding(n, d_model, 0.0)
        # the dropout belongs to the sublayers of the encoder
        self.encoder = Encoder(
            layers, d_model, heads, d_ff, dropout, norm_first=True, activation="gelu"
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"images {tuple(images.shape)} are not {self.image_size}")
        x = images
        for step in (self.patches, self.class_token, self.position, self.encoder):
            x = step(x)
        return self.head(x)


# === exercise: vision-transformer | function: VisionTransformer | kind: double | what is wrong: the encoder is built with activation="relu" instead of "gelu"; the table of positions has N + 1 rows also with pooling="mean", where it must have N, so one row is left over
# told: named
# now: named
# says: ReLU in place of GELU
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
        num_patches = patch_count(height, width, patch_size)
        self.patches = PatchEmbedding(patch_size, channels, d_model)
        if pooling == "class":
            self.class_token = ClassToken(d_model)
        self.position = LearnedPositionalEncoding(num_patches + 1, d_model, dropout)
        self.encoder = Encoder(
            layers, d_model, heads, d_ff, dropout, norm_first=True, activation="relu"
        )
        if pooling == "class":
            self.head = ClassHead(d_model, classes)
        else:
            self.head = MeanHead(d_model, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if images.shape[-2:] != self.image_size:
            raise ValueError(f"images {tuple(images.shape)} are not {self.image_size}")
        tokens = self.patches(images)
        if self.pooling == "class":
            tokens = self.class_token(tokens)
        return self.head(self.encoder(self.position(tokens)))


# === exercise: interpolate-positions | function: interpolate_positions | kind: plain | what is wrong: interpolates with mode="bicubic" instead of "bilinear", so the values are other ones (by hand 0, 4 does not become 0, 1, 3, 4)
# told: named
# now: named
# says: another interpolation
def interpolate_positions(
    table: torch.Tensor,
    old_grid: tuple[int, int],
    new_grid: tuple[int, int],
    class_tokens: int = 1,
) -> torch.Tensor:
    h, w = old_grid
    d = table.shape[-1]
    cls_pos, patch_pos = table[:class_tokens], table[class_tokens:]
    patch_pos = patch_pos.reshape(1, h, w, d).permute(0, 3, 1, 2)
    patch_pos = nn.functional.interpolate(
        patch_pos, size=tuple(new_grid), mode="bicubic", align_corners=False
    )
    patch_pos = patch_pos.permute(0, 2, 3, 1).reshape(-1, d)
    return torch.cat((cls_pos, patch_pos), dim=0)


# === exercise: interpolate-positions | function: interpolate_positions | kind: subtle | what is wrong: antialias=True widens the filter when the grid is made smaller, so the new rows are averages over more patches than bilinear interpolation between the two nearest middles takes; shows only when the new grid is smaller than the old one along an axis
# told: named
# now: named
# says: smoothed before it is made smaller
def interpolate_positions(
    table: torch.Tensor,
    old_grid: tuple[int, int],
    new_grid: tuple[int, int],
    class_tokens: int = 1,
) -> torch.Tensor:
    special = table[:class_tokens]
    plane = table[class_tokens:].unflatten(0, old_grid)  # (h, w, d)
    plane = plane.permute(2, 0, 1).unsqueeze(0)
    resized = nn.functional.interpolate(
        plane, size=new_grid, mode="bilinear", align_corners=False, antialias=True
    )
    return torch.cat((special, resized.squeeze(0).flatten(1).T))


# === exercise: interpolate-positions | function: interpolate_positions | kind: double | what is wrong: align_corners=True puts the outermost middles upon each other (0, 1.33, 2.67, 4 instead of 0, 1, 3, 4); exactly one row is put aside whatever class_tokens says, so class_tokens of 0 or 2 fails in the reshape
# told: named
# now: named
# says: the corners are aligned
def interpolate_positions(
    table: torch.Tensor,
    old_grid: tuple[int, int],
    new_grid: tuple[int, int],
    class_tokens: int = 1,
) -> torch.Tensor:
    first, others = table[:1], table[1:]
    height, width = old_grid
    image = others.reshape(height, width, -1).permute(2, 0, 1)[None]
    image = nn.functional.interpolate(
        image, size=new_grid, mode="bilinear", align_corners=True
    )
    others = image[0].permute(1, 2, 0).reshape(new_grid[0] * new_grid[1], -1)
    return torch.cat([first, others])


# === exercise: shift-weights | function: shift_weights | kind: plain | what is wrong: the one is written at [place looked at, token that looks], so the matrix is transposed and each token attends to the one the step in the opposite direction; shows for every step other than (0, 0) that stays inside the grid
# told: named
# now: named
# says: looks the other way
def shift_weights(
    height: int, width: int, row_offset: int, column_offset: int
) -> torch.Tensor:
    weights = torch.zeros(height * width, height * width)
    for r in range(height):
        for c in range(width):
            to_r, to_c = r + row_offset, c + column_offset
            if 0 <= to_r < height and 0 <= to_c < width:
                here = r * width + c
                there = to_r * width + to_c
                weights[there, here] = 1.0
    return weights


# === exercise: shift-weights | function: shift_weights | kind: subtle | what is wrong: only the lower and the right border are tested; with a negative offset the place is above or left of the grid and a one lands on another token (end of the row above, or counted from the end by a negative index; an IndexError for a large step) instead of leaving the row zero
# told: named
# now: named
# says: negative places wrap around
def shift_weights(
    height: int, width: int, row_offset: int, column_offset: int
) -> torch.Tensor:
    n = height * width
    attention = torch.zeros((n, n), dtype=torch.float32)
    for query in range(n):
        row, column = divmod(query, width)
        row += row_offset
        column += column_offset
        if row >= height or column >= width:
            continue  # past the border of the image
        attention[query, row * width + column] = 1
    return attention


# === exercise: shift-weights | function: shift_weights | kind: double | what is wrong: the step is taken on the joined number only, so a step past the end of a row goes on in the next (or the one before) instead of giving a row of zeros; the result is int64 instead of float32
# told: named
# now: named
# says: runs on into the next row
def shift_weights(
    height: int, width: int, row_offset: int, column_offset: int
) -> torch.Tensor:
    token = torch.arange(height * width)
    target = token + row_offset * width + column_offset
    # numbers below 0 or from N on match no key: their rows are zeros
    return (target[:, None] == token[None, :]).long()


# === exercise: convolution-by-heads | function: convolution_by_heads | kind: plain | what is wrong: the einsum sums over the first axis of the attention weights (the queries) instead of the second (the keys), so each head applies the transposed shift and fetches the neighbour in the opposite direction: the result is the convolution with the flipped kernel
# told: named
# now: named
# says: the kernel is flipped
def convolution_by_heads(
    tokens: torch.Tensor, kernel: torch.Tensor, height: int, width: int
) -> torch.Tensor:
    k = kernel.shape[-1]
    half = k // 2
    out = 0
    for i in range(k):
        for j in range(k):
            a = shift_weights(height, width, i - half, j - half)
            out = out + torch.einsum("mn,...mc,oc->...no", a, tokens, kernel[:, :, i, j])
    return out


# === exercise: convolution-by-heads | function: convolution_by_heads | kind: subtle | what is wrong: the einsum demands exactly one batch axis ("bnc"), so tokens without a batch, (N, C_in), or with two leading axes raise an error although (..., N, C_in) is allowed
# told: shown
# now: named
# says: only works with one batch axis
def convolution_by_heads(
    tokens: torch.Tensor, kernel: torch.Tensor, height: int, width: int
) -> torch.Tensor:
    size = kernel.shape[-1]
    steps = [(i, j) for i in range(size) for j in range(size)]
    shifts = torch.stack(
        [shift_weights(height, width, i - size // 2, j - size // 2) for i, j in steps]
    )  # (heads, N, N)
    values = kernel.flatten(2)  # (C_out, C_in, heads)
    return torch.einsum("hqn,bnc,och->bqo", shifts, tokens, values)


# === exercise: convolution-by-heads | function: convolution_by_heads | kind: double | what is wrong: the two offsets are exchanged (j steps down and i steps to the right), so the kernel acts transposed; the heads are averaged (divided by k*k) instead of added up
# told: named
# now: named
# says: rows and columns of the kernel exchanged
def convolution_by_heads(
    tokens: torch.Tensor, kernel: torch.Tensor, height: int, width: int
) -> torch.Tensor:
    k = kernel.shape[2]
    middle = k // 2
    heads = []
    for i in range(k):
        for j in range(k):
            # x runs along i, y along j
            weights = shift_weights(height, width, j - middle, i - middle)
            value_matrix = kernel[:, :, i, j].T
            heads.append(weights @ tokens @ value_matrix)
    return torch.stack(heads).mean(dim=0)


# === exercise: receptive-field | function: receptive_field | kind: plain | what is wrong: counts the rows and columns that have a nonzero entry instead of measuring from the first to the last, so rows and columns of zeros in between are left out (by hand (2, 2) instead of (2, 3))
# told: named
# now: named
# says: rows and columns counted, not the box
def receptive_field(gradient: torch.Tensor) -> tuple[int, int]:
    seen = (gradient != 0).any(dim=0)
    rows = seen.any(dim=1).sum()
    columns = seen.any(dim=0).sum()
    return int(rows), int(columns)


# === exercise: receptive-field | function: receptive_field | kind: double | what is wrong: the channels are added up before the test, so a pixel whose channels cancel (1 and -1) does not count; the extent is last minus first without the plus 1, so every box is one row and one column too small
# told: named
# now: named
# says: channels added up before the test, and one too few
def receptive_field(gradient: torch.Tensor) -> tuple[int, int]:
    total = gradient.sum(dim=0)
    places = torch.nonzero(total)  # (how many, 2): row and column of each
    if len(places) == 0:
        return 0, 0
    top, left = places.amin(0).tolist()
    bottom, right = places.amax(0).tolist()
    return bottom - top, right - left


# === exercise: principal-filters | function: principal_filters | kind: plain | what is wrong: treats the third result of torch.linalg.svd as V (as the old torch.svd returned it) and takes its columns; it is V transposed, so the components are wrong, or have d entries and do not fit the reshape when d < P*P*C
# told: named
# now: named
# says: columns in place of rows of Vᵀ
def principal_filters(
    weight: torch.Tensor, count: int, patch_size: int, channels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    filters = weight.T
    filters = filters - filters.mean(dim=0, keepdim=True)
    u, s, v = torch.linalg.svd(filters, full_matrices=False)
    directions = v[:, :count].T  # the right singular vectors are the columns of V
    explained = s.square() / s.square().sum()
    return (
        directions.reshape(count, patch_size, patch_size, channels),
        explained[:count],
    )


# === exercise: principal-filters | function: principal_filters | kind: subtle | what is wrong: the singular values are cut to the first count before the sum is taken, so the shares are relative to the kept components and always sum to 1; shows only when count is smaller than the number of singular values (and those left out are not zero)
# told: named
# now: named
# says: shares of the first components only
def principal_filters(
    weight: torch.Tensor, count: int, patch_size: int, channels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    samples = weight.t()
    centred = samples - samples.mean(0)
    _, s, vt = torch.linalg.svd(centred, full_matrices=False)
    s, vt = s[:count], vt[:count]
    variance = s**2
    ratio = variance / variance.sum()
    return vt.reshape(-1, patch_size, patch_size, channels), ratio


# === exercise: principal-filters | function: principal_filters | kind: double | what is wrong: the mean filter is not subtracted before the decomposition, so the first component points towards the mean; the shares are s over the sum of s, without the squares
# told: named
# now: named
# says: not centred
def principal_filters(
    weight: torch.Tensor, count: int, patch_size: int, channels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    filters = weight.transpose(0, 1)  # each row is a filter
    _, singular, directions = torch.linalg.svd(filters, full_matrices=False)
    pictures = directions[:count].reshape(count, patch_size, patch_size, channels)
    share = singular / singular.sum()
    return pictures, share[:count]


# === exercise: attention-rollout | function: attention_rollout | kind: plain | what is wrong: every head is followed through all layers by itself and the heads are averaged only at the end; the mean over the heads belongs into each layer before the product (shows with two or more heads and two or more layers)
# told: named
# now: named
# says: the heads averaged at the end
def attention_rollout(weights: list[torch.Tensor]) -> torch.Tensor:
    heads, size, _ = weights[0].shape
    identity = torch.eye(size, dtype=weights[0].dtype, device=weights[0].device)
    rollout = identity.expand(heads, size, size)
    for layer in weights:
        rollout = (0.5 * layer + 0.5 * identity) @ rollout
    return rollout.mean(dim=0)


# === exercise: attention-rollout | function: attention_rollout | kind: subtle | what is wrong: torch.linalg.multi_dot needs at least two matrices, so a model with a single layer raises an error instead of giving half its mean attention plus half the identity
# told: shown
# now: named
# says: fails for a single layer
def attention_rollout(weights: list[torch.Tensor]) -> torch.Tensor:
    def with_residual(layer):
        mean = layer.mean(0)
        return (mean + torch.eye(len(mean)).to(mean)) / 2

    matrices = [with_residual(layer) for layer in reversed(weights)]
    return torch.linalg.multi_dot(matrices)  # the last layer leftmost


# === exercise: attention-rollout | function: attention_rollout | kind: double | what is wrong: the heads are combined by their maximum instead of their mean, so with more than one head rows do not sum to 1; the first layer is taken as the start without its half of the identity, its residual connection is missing
# told: named
# now: named
# says: one layer without the residual connection, and the maximum over the heads in place of the mean
def attention_rollout(weights: list[torch.Tensor]) -> torch.Tensor:
    fused = [layer.max(dim=0).values for layer in weights]
    result = fused[0]
    eye = torch.eye(result.shape[-1]).to(result)
    for attention in fused[1:]:
        result = (0.5 * attention + 0.5 * eye) @ result
    return result


# === exercise: mixup | function: seed_interval | kind: plain | what is wrong: the runs are compared as two independent samples, with the spread sqrt(var(changed)/n + var(usual)/n), instead of in pairs with the spread of the differences; the middle is right, the width is not (by hand about 7.3 instead of 2.484 to each side)
# told: named
# now: named
# says: the seeds are not paired
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
    n = changed.shape[0]
    difference = changed.mean() - usual.mean()
    standard_error = (changed.var() / n + usual.var() / n).sqrt()
    margin = quantile * standard_error
    return difference - margin, difference + margin


# === exercise: mixup | function: mixup | kind: subtle | what is wrong: share is replaced by max(share, 1 - share), as some libraries do for drawn shares, so for a share below 0.5 the image itself gets 1 - share instead of share
# told: named
# now: named
# says: the larger of both shares
def mixup(
    images: torch.Tensor,
    targets: torch.Tensor,
    share: float,
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    share = max(share, 1 - share)  # the image itself stays the main one

    def blend(batch):
        return share * batch + (1 - share) * batch[permutation]

    return blend(images), blend(targets)


def seed_interval(
    changed: torch.Tensor, usual: torch.Tensor, quantile: float
) -> tuple[torch.Tensor, torch.Tensor]:
    deltas = changed - usual
    half = quantile * deltas.std() / math.sqrt(len(deltas))
    return deltas.mean() - half, deltas.mean() + half


# === exercise: mixup | function: seed_interval | kind: subtle | what is wrong: for 30 seeds or more the given quantile is thrown away and 1.96 taken in its place; shows only for n >= 30 with another quantile than 1.96
# told: passed
# now: named
# says: 1.96 in place of the quantile
def mixup(
    images: torch.Tensor,
    targets: torch.Tensor,
    share: float,
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    rest = 1.0 - share
    partner_images, partner_targets = images[permutation], targets[permutation]
    return (
        share * images + rest * partner_images,
        share * targets + rest * partner_targets,
    )


def seed_interval(
    changed: torch.Tensor, usual: torch.Tensor, quantile: float
) -> tuple[torch.Tensor, torch.Tensor]:
    diff = changed - usual
    n = diff.numel()
    mean = diff.mean()
    s = ((diff - mean).pow(2).sum() / (n - 1)).sqrt()
    if n >= 30:  # very many seeds: the normal distribution is good enough
        quantile = 1.96
    width = quantile * s / n**0.5
    return mean - width, mean + width


# === exercise: mixup | function: mixup | kind: double | what is wrong: the images are mixed in place (mul_ and add_), so the caller's batch is changed and no new tensor is returned; the targets are mixed with the shares exchanged, 1 - share for the image itself and share for its partner
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
    images.mul_(share).add_((1 - share) * other_images)
    mixed_targets = share * other_targets + (1 - share) * targets
    return images, mixed_targets


def seed_interval(
    changed: torch.Tensor, usual: torch.Tensor, quantile: float
) -> tuple[torch.Tensor, torch.Tensor]:
    delta = changed - usual
    center = delta.mean()
    radius = quantile * delta.std(unbiased=True) / math.sqrt(delta.shape[0])
    return center - radius, center + radius


# === exercise: cutmix | function: cutmix | kind: plain | what is wrong: the mask is used the wrong way round: the image keeps its own pixels inside the box and gets the partner's everywhere outside it
# told: named
# now: named
# says: inside and outside exchanged
def cutmix(
    images: torch.Tensor,
    targets: torch.Tensor,
    box: tuple[int, int, int, int],
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    top, left, box_height, box_width = box
    height, width = images.shape[-2:]
    mask = torch.zeros(height, width, dtype=torch.bool, device=images.device)
    mask[top : top + box_height, left : left + box_width] = True
    mixed = torch.where(mask, images, images[permutation])
    share = 1 - box_height * box_width / (height * width)
    return mixed, share * targets + (1 - share) * targets[permutation]


# === exercise: cutmix | function: cutmix | kind: subtle | what is wrong: the loop takes the box from the copy that is being written instead of from the original images, so an image whose partner comes earlier in the batch gets a box that has already been pasted over (with the swap (1, 0) image 1 gets its own pixels back)
# told: named
# now: named
# says: partners that are mixed already
def cutmix(
    images: torch.Tensor,
    targets: torch.Tensor,
    box: tuple[int, int, int, int],
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    top, left, h, w = box
    rows, columns = slice(top, top + h), slice(left, left + w)
    mixed = images.clone()
    for image, partner in enumerate(permutation.tolist()):
        mixed[image, :, rows, columns] = mixed[partner, :, rows, columns]
    covered = (h * w) / (images.shape[2] * images.shape[3])
    new_targets = (1 - covered) * targets + covered * targets[permutation]
    return mixed, new_targets


# === exercise: cutmix | function: cutmix | kind: double | what is wrong: the last two numbers of the box are taken as its lower right corner instead of its height and width, so another box is pasted and its area is another one; in the targets the image itself gets the share of the box and the partner the rest, the wrong way round
# told: named
# now: named
# says: labels mixed by the wrong share, and the box read as two corners
def cutmix(
    images: torch.Tensor,
    targets: torch.Tensor,
    box: tuple[int, int, int, int],
    permutation: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    y1, x1, y2, x2 = box
    result = images.clone()
    result[:, :, y1:y2, x1:x2] = images[permutation, :, y1:y2, x1:x2]
    lam = (y2 - y1) * (x2 - x1) / (images.size(-1) * images.size(-2))
    return result, lam * targets + (1 - lam) * targets[permutation]
