# ruff: noqa
# fmt: off

# === exercise: standardise | function: standardise | kind: subtle | what is wrong: the variance is computed as mean of squares minus square of the mean in float32, whose cancellation leaves about 1e-9 and so a spread of about 1e-5, above the limit, so a channel that is constant in train (such as 0.1 everywhere) is divided by rounding noise instead of being only shifted
# told: wrong
# now: named
# says: the variance as a difference of two means
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    axes = (0, 2, 3)
    mu = train.mean(dim=axes, keepdim=True)
    second_moment = train.pow(2).mean(dim=axes, keepdim=True)
    variance = (second_moment - mu.pow(2)).abs()
    sigma = variance.sqrt()
    sigma = torch.where(sigma < 1e-6, torch.ones_like(sigma), sigma)
    return (images - mu) / sigma


# === exercise: standardise | function: standardise | kind: subtle | what is wrong: the test for contrast is made once for all channels (smallest spread), so that one flat channel makes the function leave the spread of every other channel undivided too; shows only with several channels of which some, but not all, are flat
# told: named
# now: named
# says: one channel without contrast decides for all
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    mean = train.mean(dim=(0, 2, 3), keepdim=True)
    std = train.std(dim=(0, 2, 3), correction=0, keepdim=True)
    if std.min() < 1e-6:
        std = torch.ones_like(std)
    return (images - mean) / std


# === exercise: standardise | function: standardise | kind: double | what is wrong: first: the spread is the average of the spreads of the single training images (average of averages), which is too small whenever the images differ in mean or contrast; second: a channel flat in train is set to 0 instead of being shifted, which shows when images differ from train's constant there
# told: shown
# now: named
# says: the mean of the spreads of single images, and a channel without contrast becomes 0
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    flat = train.flatten(2)  # (N, C, H*W)
    mu = flat.mean(-1).mean(0)
    sigma = flat.std(-1, correction=0).mean(0)
    out = torch.zeros_like(images)
    for c in range(images.shape[1]):
        if sigma[c] >= 1e-6:
            out[:, c] = (images[:, c] - mu[c]) / sigma[c]
    return out


# === exercise: shift-images | function: shift_images | kind: plain | what is wrong: down is subtracted from the column numbers and right from the row numbers, so the two directions are exchanged for every image with down different from right
# told: named
# now: named
# says: rows and columns exchanged
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    B, C, H, W = images.shape
    x = torch.arange(H) - right[:, None]
    y = torch.arange(W) - down[:, None]
    ok = ((x >= 0) & (x < H))[:, :, None] & ((y >= 0) & (y < W))[:, None, :]
    batch = torch.arange(B)[:, None, None]
    found = images[batch, :, x.clamp(0, H - 1)[:, :, None], y.clamp(0, W - 1)[:, None, :]]
    return found.permute(0, 3, 1, 2).masked_fill(~ok[:, None], 0)


# === exercise: shift-images | function: shift_images | kind: subtle | what is wrong: if no image of the batch is shifted, the given tensor itself is returned and not a new one, so that changing the result changes the images; shows only when all of down and right are 0
# told: passed
# now: named
# says: the caller's own images are returned
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    if not down.any() and not right.any():
        return images  # nothing to do

    batch, channels, height, width = images.shape
    source_row = torch.arange(height)[None, :] - down[:, None]
    source_col = torch.arange(width)[None, :] - right[:, None]
    row_ok = (source_row >= 0) & (source_row < height)
    col_ok = (source_col >= 0) & (source_col < width)
    place = (
        source_row.clamp(0, height - 1)[:, :, None] * width
        + source_col.clamp(0, width - 1)[:, None, :]
    )
    place = place.reshape(batch, 1, -1).expand(-1, channels, -1)
    moved = images.flatten(2).gather(2, place).view(batch, channels, height, width)
    inside = (row_ok[:, :, None] & col_ok[:, None, :])[:, None]
    return torch.where(inside, moved, torch.zeros_like(moved))


# === exercise: shift-images | function: shift_images | kind: double | what is wrong: first: whether a column is inside is compared with the height instead of the width, which loses columns of wide images and smears the last column of tall ones; second: rows must be greater than 0 instead of at least 0, so the image's first row is always lost
# told: shown
# now: named
# says: place 0 counts as outside, and height and width exchanged
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    h, w = images.shape[-2:]
    r = (torch.arange(h) - down.unsqueeze(1)).unsqueeze(2)  # (B, H, 1)
    c = (torch.arange(w) - right.unsqueeze(1)).unsqueeze(1)  # (B, 1, W)
    inside = (r > 0) & (r < h) & (c >= 0) & (c < h)
    b = torch.arange(len(images)).view(-1, 1, 1)
    result = images[b, :, r.clamp(0, h - 1), c.clamp(0, w - 1)]
    result[~inside] = 0
    return result.movedim(-1, 1)


# === exercise: confusion | function: confusion | kind: plain | what is wrong: the pair consists of the two classes that have the most mistakes altogether (row and column sums off the diagonal), not of the two most often exchanged with one another; differs when a class is confused a little with many others
# told: shown
# now: named
# says: the two classes with the most mistakes altogether
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    matrix = torch.bincount(labels * classes + predictions, minlength=classes**2)
    matrix = matrix.view(classes, classes)
    off = matrix - torch.diag(matrix.diagonal())
    mistakes = off.sum(dim=0) + off.sum(dim=1)
    worst = mistakes.topk(2).indices.tolist()
    a, b = sorted(worst)
    return matrix, (a, b)


# === exercise: confusion | function: confusion | kind: subtle | what is wrong: the places on and below the diagonal are 0 and stay candidates, so if nothing at all is exchanged (all predictions right, or no images) argmax finds place 0 and the pair is (0, 0) instead of (0, 1), against a < b
# told: passed
# now: passed
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    counts = torch.bincount(classes * labels + predictions, minlength=classes * classes)
    matrix = counts.reshape(classes, classes)
    both = torch.triu(matrix + matrix.T, diagonal=1)
    a, b = divmod(int(both.argmax()), classes)
    return matrix, (a, b)


# === exercise: confusion | function: confusion | kind: double | what is wrong: first: the diagonal is cleared in place in the matrix that is also returned, so the right answers are missing from it; second: the search takes a later pair with an equal sum (>= in place of >), so of equal pairs the last wins
# told: named
# now: named
# says: right answers are left out, and of equal pairs the last
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    matrix = torch.zeros(classes, classes, dtype=torch.long)
    for p, t in zip(predictions.tolist(), labels.tolist()):
        matrix[t, p] += 1
    errors = matrix.fill_diagonal_(0)
    best, pair = 0, (0, 1)
    for a in range(classes):
        for b in range(a + 1, classes):
            total = int(errors[a, b] + errors[b, a])
            if total >= best:
                best, pair = total, (a, b)
    return matrix, pair


# === exercise: calibration-error | function: calibration_error | kind: plain | what is wrong: the gaps of the bins that are not empty are averaged with equal weight instead of with n_m / N, which differs whenever these bins hold different numbers of images
# told: named
# now: named
# says: every bin counts alike
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    conf, pred = probabilities.max(dim=1)
    correct = (pred == labels).to(conf.dtype)
    where = (conf * bins).long().clamp(max=bins - 1)
    gaps = []
    for m in range(bins):
        chosen = where == m
        if chosen.any():
            gaps.append((correct[chosen].mean() - conf[chosen].mean()).abs())
    return torch.stack(gaps).mean()


# === exercise: calibration-error | function: calibration_error | kind: subtle | what is wrong: images of confidence exactly 1 get a bin M of their own (M + 1 sums) instead of joining the last bin; shows only when one of them is wrong and the others in the last bin are less sure than right, since only then the gaps of both signs should have met
# told: shown
# now: named
# says: a confidence of 1 has a bin of its own
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    confidence, guess = probabilities.max(dim=-1)
    gap = (guess == labels).to(confidence.dtype) - confidence
    index = torch.floor(confidence * bins).long()
    # one more place, so that a confidence of 1 has somewhere to go
    sums = torch.zeros(bins + 1, dtype=gap.dtype).index_add(0, index, gap)
    return sums.abs().sum() / len(labels)


# === exercise: calibration-error | function: calibration_error | kind: double | what is wrong: first: the middle of the bin stands in for the mean confidence of its images, which differs unless they happen to be spread evenly; second: every bin is open above, the last one too, so images of confidence exactly 1 lie in no bin and are dropped
# told: shown
# now: named
# says: a confidence of 1 has no bin, and the middle of the bin in place of the mean confidence
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    c = probabilities.amax(dim=-1)
    r = probabilities.argmax(dim=-1).eq(labels).to(c.dtype)
    total = c.new_zeros(())
    for m in range(bins):
        low, high = m / bins, (m + 1) / bins
        members = (c >= low) & (c < high)
        n = members.sum()
        if n > 0:
            acc = r[members].sum() / n
            total = total + n / len(c) * abs(acc - (low + high) / 2)
    return total


# === exercise: position-similarity | function: position_similarity | kind: plain | what is wrong: the mean of its features is subtracted from every position first, so the result is the correlation and not the cosine; differs whenever a row's features do not have mean 0
# told: named
# now: named
# says: correlations in place of cosines
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    n = rows * columns
    if len(table) not in (n, n + 1):
        raise ValueError(f"{len(table)} rows do not fit {rows} x {columns} patches")
    patches = table[-n:]
    patches = patches - patches.mean(dim=-1, keepdim=True)
    unit = patches / patches.norm(dim=-1, keepdim=True)
    return (unit @ unit.T).reshape(rows, columns, rows, columns)


# === exercise: position-similarity | function: position_similarity | kind: subtle | what is wrong: the rows are divided by their lengths in place on a view of the argument, so the caller's table (the model's positions) is changed; the returned cosines are right, and the harm shows on every table whose rows do not have length 1 already
# told: named
# now: named
# says: changes its argument in place
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    N = rows * columns
    if table.shape[0] == N + 1:
        table = table[1:]
    elif table.shape[0] != N:
        raise ValueError("the table must have N or N + 1 rows")
    table = table.detach()
    table /= table.norm(dim=1, keepdim=True)
    return torch.einsum("id,jd->ij", table, table).view(rows, columns, rows, columns)


# === exercise: position-similarity | function: position_similarity | kind: double | what is wrong: first: the first N rows are taken instead of the last, so with a class token its position is kept and the last patch's is lost; second: a ValueError is only raised for too few rows, so a table with N + 2 rows or more is accepted
# told: named
# now: named
# says: the last position left out in place of the first
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    if table.size(0) < rows * columns:
        raise ValueError("not enough positions for this grid")
    e = table[: rows * columns].unflatten(0, (rows, columns))
    e = e / e.square().sum(-1, keepdim=True).sqrt()
    return torch.einsum("abd,rcd->abrc", e, e)


# === exercise: read-by-the-head | function: read_by_the_head | kind: plain | what is wrong: with a class token the patches' shares are brought to sum 1 by a softmax instead of by dividing by their sum, which makes every picture nearly even; wrong for pooling "class" unless all shares are equal
# told: named
# now: named
# says: a softmax of what are shares already
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    if pooling == "class":
        picture = rollouts[:, 0, 1:].softmax(dim=-1)
    else:
        picture = rollouts.mean(dim=1)
    return picture.reshape(-1, rows, columns)


# === exercise: read-by-the-head | function: read_by_the_head | kind: subtle | what is wrong: with a class token all pictures are divided by the batch's mean of what is left instead of each by its own, so that the pictures sum to 1 only on average; wrong for pooling "class" when the token kept different shares in different images, right for a single image
# told: named
# now: named
# says: one sum for the whole batch
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    if pooling == "mean":
        return rollouts.mean(dim=-2).unflatten(-1, (rows, columns))
    first = rollouts[:, 0]
    left = (1 - first[:, 0]).mean()
    return (first[:, 1:] / left).unflatten(-1, (rows, columns))


# === exercise: read-by-the-head | function: read_by_the_head | kind: double | what is wrong: first: with a class token the share that it kept of itself is given to all patches equally instead of dividing by what is left; second: the patches are laid out column by column instead of in reading order, for both poolings, which shows on grids with more than one row and column
# told: told
# now: named
# says: the class token's own share given out in equal parts, and rows and columns of the grid exchanged
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    n = rows * columns
    pictures = []
    for rollout in rollouts:
        if pooling == "class":
            kept, shares = rollout[0, 0], rollout[0, 1:]
            shares = shares + kept / n
        else:
            shares = rollout.sum(dim=0) / n
        pictures.append(shares.reshape(columns, rows).T)
    return torch.stack(pictures)
