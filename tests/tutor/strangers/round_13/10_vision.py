# ruff: noqa
# fmt: off

# === exercise: standardise | function: standardise | kind: plain | what is wrong: the spread is one single number over all channels of train instead of one for each channel, so every input whose channels differ in mean or spread is scaled wrongly (right with one channel only)
# told: named
# now: named
# says: one spread for all channels
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    mean = train.mean(dim=(0, 2, 3), keepdim=True)
    spread = train.std(correction=0)
    if spread < 1e-6:
        spread = torch.ones_like(spread)
    return (images - mean) / spread


# === exercise: standardise | function: standardise | kind: subtle | what is wrong: the variance and not its root is compared with 1e-6, so a channel of train whose spread lies between 1e-6 and 1e-3 is taken for one without contrast and only shifted
# told: named
# now: named
# says: the limit for contrast is too large
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    channels = train.shape[1]
    flat = train.transpose(0, 1).reshape(channels, -1)
    mu = flat.mean(dim=1)
    variance = ((flat - mu[:, None]) ** 2).mean(dim=1)
    variance = torch.where(variance < 1e-6, torch.ones_like(variance), variance)
    sigma = variance.sqrt()
    return (images - mu.view(1, -1, 1, 1)) / sigma.view(1, -1, 1, 1)


# === exercise: standardise | function: standardise | kind: double | what is wrong: first the spread of a channel is the mean of the spreads of the single images, which leaves out how the images differ from one another (too small whenever their means differ); second a channel without contrast is divided by 1e-6 (the spread is clamped) instead of by 1
# told: named
# now: named
# says: the mean of the spreads of single images, and a small spread does not count as 1
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    per_image_mean = train.mean(dim=(2, 3))  # (N, C)
    per_image_std = train.std(dim=(2, 3), correction=0)  # (N, C)
    m = per_image_mean.mean(dim=0)
    s = per_image_std.mean(dim=0).clamp(min=1e-6)
    return (images - m[None, :, None, None]) / s[None, :, None, None]


# === exercise: shift-images | function: shift_images | kind: plain | what is wrong: the two axes are exchanged, down moves the columns and right moves the rows, which shows whenever down and right of an image differ
# told: named
# now: named
# says: rows and columns exchanged
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    B, C, H, W = images.shape
    y = torch.arange(H, device=images.device)[None, :] - right[:, None]
    x = torch.arange(W, device=images.device)[None, :] - down[:, None]
    ok = ((y >= 0) & (y < H))[:, :, None] & ((x >= 0) & (x < W))[:, None, :]
    b = torch.arange(B, device=images.device)[:, None, None]
    got = images[b, :, y.clamp(0, H - 1)[:, :, None], x.clamp(0, W - 1)[:, None, :]]
    got = got.permute(0, 3, 1, 2)
    return got.masked_fill(~ok[:, None], 0)


# === exercise: shift-images | function: shift_images | kind: subtle | what is wrong: the shifts are limited to at most H - 1 rows and W - 1 columns so that the slices stay valid, so an image moved by its whole height or width or farther keeps one row or column at the edge instead of being all 0
# told: wrong
# now: named
# says: the edge is repeated
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    B, C, H, W = images.shape
    # at most one image size of zeros on each side
    down = down.clamp(-(H - 1), H - 1)
    right = right.clamp(-(W - 1), W - 1)
    canvas = images.new_zeros(B, C, 3 * H, 3 * W)
    canvas[:, :, H : 2 * H, W : 2 * W] = images
    rows = torch.arange(H, 2 * H, device=images.device) - down[:, None]
    columns = torch.arange(W, 2 * W, device=images.device) - right[:, None]
    batch = torch.arange(B, device=images.device).view(-1, 1, 1)
    out = canvas[batch, :, rows.unsqueeze(2), columns.unsqueeze(1)]
    return out.movedim(-1, 1)


# === exercise: shift-images | function: shift_images | kind: double | what is wrong: first the test for rows inside is > 0 instead of >= 0, so that the image's first row is lost wherever it should stay in the result (also with a shift of 0); second the columns are tested against the height instead of the width, so in images wider than high the columns from H on are lost, and in images higher than wide the last column is repeated when moving left
# told: named
# now: named
# says: place 0 counts as outside, and height and width exchanged
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    count, _, height, width = images.shape

    def sources(size, shift):
        return torch.arange(size, device=images.device).unsqueeze(0) - shift.unsqueeze(1)

    rows = sources(height, down)
    cols = sources(width, right)
    rows_inside = (rows > 0) & (rows < height)
    cols_inside = (cols >= 0) & (cols < height)
    inside = rows_inside[:, :, None] & cols_inside[:, None, :]
    rows = rows.clamp(0, height - 1)
    cols = cols.clamp(0, width - 1)
    batch = torch.arange(count, device=images.device)[:, None, None]
    found = images[batch, :, rows[:, :, None], cols[:, None, :]].permute(0, 3, 1, 2)
    return torch.where(inside[:, None], found, torch.zeros_like(found))


# === exercise: confusion | function: confusion | kind: plain | what is wrong: the matrix is transposed, rows are the predictions and columns the labels, which shows in every matrix that is not symmetric (the pair is right)
# told: named
# now: named
# says: rows and columns exchanged
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    matrix = torch.zeros(classes, classes, dtype=torch.long)
    for p, l in zip(predictions.tolist(), labels.tolist()):
        matrix[p, l] += 1
    best, pair = -1, (0, 1)
    for a in range(classes):
        for b in range(a + 1, classes):
            both = int(matrix[a, b] + matrix[b, a])
            if both > best:
                best, pair = both, (a, b)
    return matrix, pair


# === exercise: confusion | function: confusion | kind: subtle | what is wrong: argmax runs over the whole line of the upper triangle, so that when nothing was exchanged (all predictions right, or no images) the pair is (0, 0) instead of (0, 1), which breaks a < b
# told: passed
# now: passed
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    place = labels.long() * classes + predictions.long()
    matrix = torch.bincount(place, minlength=classes**2).view(classes, classes)
    both = torch.triu(matrix + matrix.T, diagonal=1)
    a, b = divmod(both.argmax().item(), classes)
    return matrix, (a, b)


# === exercise: confusion | function: confusion | kind: double | what is wrong: first the larger of the two directions is taken instead of their sum, so a pair exchanged 2 + 2 times loses to one exchanged 3 + 0 times; second the diagonal is set to 0 in the matrix itself while looking for the pair, so the returned matrix lacks all right answers
# told: named
# now: named
# says: right answers are left out, and one direction only
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    matrix = torch.zeros((classes, classes), dtype=torch.int64)
    ones = torch.ones(len(labels), dtype=torch.int64)
    matrix.index_put_((labels.long(), predictions.long()), ones, accumulate=True)

    wrong = matrix
    wrong.fill_diagonal_(0)
    exchanged = torch.maximum(wrong, wrong.T)
    above = torch.triu_indices(classes, classes, offset=1)
    k = exchanged[above[0], above[1]].argmax()
    return matrix, (int(above[0, k]), int(above[1, k]))


# === exercise: calibration-error | function: calibration_error | kind: plain | what is wrong: the confidence is the probability of the right class (the label's) instead of the largest probability, which shows on every image that is classified wrongly
# told: named
# now: named
# says: the probability of the right class
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    confidence = probabilities.gather(1, labels.long()[:, None]).squeeze(1)
    right = (probabilities.argmax(dim=1) == labels).to(probabilities.dtype)
    which = (confidence * bins).long().clamp(max=bins - 1)
    gaps = torch.zeros(bins, dtype=probabilities.dtype)
    gaps = gaps.index_add(0, which, right - confidence)
    return gaps.abs().sum() / len(labels)


# === exercise: calibration-error | function: calibration_error | kind: subtle | what is wrong: an image with a confidence of exactly 1 has the number M and is met by no turn of the loop over bins 0 to M-1, so it is left out of its sum (though counted in N), which shows when an image with confidence 1 is wrong
# told: named
# now: named
# says: a confidence of 1 has no bin
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    conf, pred = probabilities.max(dim=-1)
    hit = (pred == labels).to(conf.dtype)
    number = torch.floor(conf * bins).long()
    total = conf.new_zeros(())
    for m in range(bins):
        members = number == m
        n = members.sum()
        if n == 0:
            continue
        gap = hit[members].mean() - conf[members].mean()
        total = total + n / len(labels) * gap.abs()
    return total


# === exercise: calibration-error | function: calibration_error | kind: double | what is wrong: first the bins cut the range from 1/classes (the smallest possible confidence) to 1 instead of 0 to 1, so images are grouped differently; second all bins that are not empty get the same weight instead of n_m / N, which shows when they hold different numbers of images
# told: shown
# now: shown
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    chance = 1 / probabilities.shape[-1]
    sure, guess = probabilities.max(dim=-1)
    correct = (guess == labels).to(sure.dtype)
    index = ((sure - chance) / max(1 - chance, 1e-9) * bins).long().clamp(0, bins - 1)
    n = torch.zeros(bins, dtype=sure.dtype).index_add(0, index, torch.ones_like(sure))
    acc = torch.zeros(bins, dtype=sure.dtype).index_add(0, index, correct)
    conf = torch.zeros(bins, dtype=sure.dtype).index_add(0, index, sure)
    used = n > 0
    return ((acc[used] - conf[used]) / n[used]).abs().mean()


# === exercise: position-similarity | function: position_similarity | kind: plain | what is wrong: torch.corrcoef subtracts each row's mean over its features first, so the result is the correlation and not the cosine, on all tables whose rows do not have mean 0
# told: named
# now: named
# says: correlations in place of cosines
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    n = rows * columns
    if table.shape[0] not in (n, n + 1):
        raise ValueError(f"{table.shape[0]} rows do not fit a grid of {n} patches")
    return torch.corrcoef(table[-n:]).reshape(rows, columns, rows, columns)


# === exercise: position-similarity | function: position_similarity | kind: subtle | what is wrong: of a table with a class token the first N rows are kept instead of the last N, so the class token takes part as patch 0, all patches are shifted by one and the last is lost; right without class token
# told: named
# now: named
# says: the last position left out in place of the first
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    count = rows * columns
    extra = len(table) - count
    if extra < 0 or extra > 1:
        raise ValueError("the table has neither N nor N + 1 rows")
    grid = table[:count].reshape(rows, columns, -1)
    unit = grid / grid.norm(dim=-1, keepdim=True)
    return torch.einsum("abd,xyd->abxy", unit, unit)


# === exercise: position-similarity | function: position_similarity | kind: double | what is wrong: first lengths below 1 are clamped to 1, so short rows (small learned positions) are not brought to length 1 and their cosines come out too small; second the patches are laid out column by column instead of in reading order, which shows on every grid with more than one row and more than one column
# told: named
# now: named
# says: short rows are not brought to length 1, and rows and columns of the grid exchanged
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    N = rows * columns
    if table.size(0) == N + 1:
        table = table[1:]
    elif table.size(0) != N:
        raise ValueError("wrong number of positions")
    length = table.pow(2).sum(dim=-1, keepdim=True).sqrt().clamp(min=1)
    unit = table / length
    cosines = unit @ unit.T
    return cosines.view(columns, rows, columns, rows).permute(1, 0, 3, 2)


# === exercise: read-by-the-head | function: read_by_the_head | kind: subtle | what is wrong: with a class token the shares are divided by their sum over the whole batch instead of by each image's own, so only a batch of one image has pictures of sum 1 (for more, all pictures together sum to 1)
# told: named
# now: named
# says: one sum for the whole batch
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    if pooling == "class":
        shares = rollouts[:, 0, 1:]
        shares = shares / shares.sum()
    else:
        shares = rollouts.mean(dim=1)
    return shares.reshape(-1, rows, columns)


# === exercise: read-by-the-head | function: read_by_the_head | kind: subtle | what is wrong: when pooling by the mean, output 0 is left out of the mean as if it were a class token, so every picture is the mean of T - 1 outputs only (it still sums to 1); pooling "class" is right
# told: told
# now: named
# says: output 0 left out of the mean
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    outputs = {"class": slice(0, 1), "mean": slice(1, None)}[pooling]
    if rollouts.shape[1] == 1:
        outputs = slice(0, 1)
    read = rollouts[:, outputs].mean(dim=1)
    patches = read[:, -rows * columns :]
    patches = patches / patches.sum(dim=-1, keepdim=True)
    return patches.unflatten(1, (rows, columns))


# === exercise: read-by-the-head | function: read_by_the_head | kind: double | what is wrong: first the mean over all outputs is taken for pooling "class", too, instead of output 0 alone; second the patches are laid out column by column instead of in reading order, for both poolings, which shows on every grid with more than one row and more than one column
# told: named
# now: named
# says: the mean over the outputs, with a class token, and rows and columns of the grid exchanged
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    B = rollouts.shape[0]
    shares = torch.einsum("bij->bj", rollouts) / rollouts.shape[1]
    if pooling == "class":
        shares = shares[:, 1:]
        shares = shares / shares.sum(dim=1, keepdim=True)
    return shares.reshape(B, columns, rows).transpose(1, 2)
