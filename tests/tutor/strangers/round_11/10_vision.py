# ruff: noqa
# fmt: off

# === exercise: standardise | function: standardise | kind: plain | what is wrong: the spread is measured inside each training image and then averaged over the images, instead of over all pixels of the channel in the whole of train
# told: named
# now: named
# says: the mean of the spreads of single images
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    pixels = train.flatten(start_dim=2)  # (N, C, H * W)
    mu = pixels.mean(dim=2).mean(dim=0)
    sigma = pixels.std(dim=2, correction=0).mean(dim=0)
    sigma = torch.where(sigma < 1e-6, torch.ones_like(sigma), sigma)
    return (images - mu[:, None, None]) / sigma[:, None, None]


# === exercise: standardise | function: standardise | kind: subtle | what is wrong: as soon as one channel has no contrast, the spread of all channels is set to 1, not only that of the flat channel
# told: told
# now: named
# says: one channel without contrast decides for all
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    axes = (0, 2, 3)
    mean = train.mean(dim=axes, keepdim=True)
    std = train.std(dim=axes, correction=0, keepdim=True)
    if std.min() < 1e-6:
        std = torch.ones_like(std)
    return (images - mean) / std


# === exercise: standardise | function: standardise | kind: double | what is wrong: the mean that is subtracted is that of the images given and not that of train AND the limit of 1e-6 is applied to the variance, so that every spread below 1e-3 counts as none
# told: told
# now: named
# says: statistics of the images themselves, and the limit for contrast is too large
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    result = torch.empty_like(images)
    for c in range(images.shape[1]):
        centred = images[:, c] - images[:, c].mean()
        variance = ((train[:, c] - train[:, c].mean()) ** 2).mean()
        if variance < 1e-6:
            result[:, c] = centred
        else:
            result[:, c] = centred / variance.sqrt()
    return result


# === exercise: shift-images | function: shift_images | kind: plain | what is wrong: off by one in the test of what is inside: row 0 and column 0 of the image count as outside, so that their pixels become 0
# told: named
# now: named
# says: place 0 counts as outside
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    B, C, H, W = images.shape
    rows = torch.arange(H, device=images.device) - down[:, None]
    cols = torch.arange(W, device=images.device) - right[:, None]
    row_ok = (rows > 0) & (rows < H)
    col_ok = (cols > 0) & (cols < W)
    inside = row_ok[:, :, None] & col_ok[:, None, :]
    batch = torch.arange(B, device=images.device)[:, None, None]
    found = images[
        batch, :, rows.clamp(0, H - 1)[:, :, None], cols.clamp(0, W - 1)[:, None, :]
    ]
    found = found.permute(0, 3, 1, 2)
    return found * inside[:, None]


# === exercise: shift-images | function: shift_images | kind: subtle | what is wrong: the image is padded with only one height and one width of zeros and the places are taken modulo that, so that an image shifted by more than its height or width comes in again from the other side instead of leaving zeros
# told: named
# now: named
# says: what leaves comes in on the other side
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    n, _, height, width = images.shape
    canvas = torch.nn.functional.pad(images, (0, width, 0, height))
    source_row = (torch.arange(height) - down.unsqueeze(1)) % (2 * height)
    source_col = (torch.arange(width) - right.unsqueeze(1)) % (2 * width)
    which = torch.arange(n).view(n, 1, 1)
    fetched = canvas[which, :, source_row.unsqueeze(2), source_col.unsqueeze(1)]
    return fetched.movedim(-1, 1).contiguous()


# === exercise: shift-images | function: shift_images | kind: double | what is wrong: a shift of exactly 0 falls into the else branch, where the slice from -0 on sets the whole image to 0 AND the result is written into the images that were given instead of a new tensor
# told: named
# now: named
# says: changes its argument in place
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    for b in range(images.shape[0]):
        d, r = int(down[b]), int(right[b])
        images[b] = torch.roll(images[b], shifts=(d, r), dims=(1, 2))
        if d > 0:
            images[b, :, :d, :] = 0
        else:
            images[b, :, -abs(d) :, :] = 0
        if r > 0:
            images[b, :, :, :r] = 0
        else:
            images[b, :, :, -abs(r) :] = 0
    return images


# === exercise: confusion | function: confusion | kind: plain | what is wrong: the diagonal is set to 0 in place to find the pair, so the matrix that is returned has lost the counts of the right answers
# told: named
# now: named
# says: right answers are left out
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    matrix = torch.zeros(classes, classes, dtype=torch.long)
    ones = torch.ones(len(labels), dtype=torch.long)
    matrix.index_put_((labels.long(), predictions.long()), ones, accumulate=True)

    mistakes = matrix.fill_diagonal_(0)
    exchanged = mistakes + mistakes.T
    a, b = torch.triu_indices(classes, classes, offset=1)
    best = exchanged[a, b].argmax()
    return matrix, (int(a[best]), int(b[best]))


# === exercise: confusion | function: confusion | kind: subtle | what is wrong: the largest sum is looked for below the diagonal and the pair turned round, so of equal sums the first by the larger class wins, (1, 2) before (0, 3), and not the first pair (a, b) in reading order
# told: passed
# now: named
# says: of equal pairs the one with the smaller second class
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    flat = labels * classes + predictions
    matrix = torch.bincount(flat, minlength=classes**2).view(classes, classes)
    both = matrix + matrix.T
    not_below = torch.ones(classes, classes, dtype=torch.bool).triu()
    place = both.masked_fill(not_below, -1).argmax().item()
    larger, smaller = divmod(place, classes)
    return matrix, (smaller, larger)


# === exercise: confusion | function: confusion | kind: double | what is wrong: rows are the predictions and columns the labels, the matrix is transposed AND the pair is that of the largest single entry off the diagonal, the two directions are not added up
# told: named
# now: named
# says: rows and columns exchanged, and one direction only
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    guessed = torch.nn.functional.one_hot(predictions.long(), classes)
    truth = torch.nn.functional.one_hot(labels.long(), classes)
    matrix = guessed.T @ truth

    most, pair = -1, (0, 1)
    for i in range(classes):
        for j in range(classes):
            if i != j and int(matrix[i, j]) > most:
                most = int(matrix[i, j])
                pair = (min(i, j), max(i, j))
    return matrix, pair


# === exercise: calibration-error | function: calibration_error | kind: plain | what is wrong: the confidence is taken as the probability of the right class (the label's) and not as the largest probability of the image
# told: named
# now: named
# says: the probability of the right class
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    n = len(labels)
    right = (probabilities.argmax(dim=-1) == labels).to(probabilities.dtype)
    sure = probabilities.gather(1, labels.unsqueeze(1)).squeeze(1)
    index = (sure * bins).long().clamp(max=bins - 1)
    total = torch.zeros(bins, dtype=probabilities.dtype)
    total = total.index_add(0, index, right - sure)
    return total.abs().sum() / n


# === exercise: calibration-error | function: calibration_error | kind: subtle | what is wrong: images with a confidence of exactly 1 get the bin number M, which the loop never visits, so they are left out instead of lying in the last bin
# told: named
# now: named
# says: a confidence of 1 has no bin
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    confidence, prediction = probabilities.max(dim=1)
    correct = (prediction == labels).to(confidence.dtype)
    number = torch.floor(confidence * bins)

    error = confidence.new_zeros(())
    for m in range(bins):
        members = number == m
        count = members.sum()
        if count == 0:
            continue
        accuracy = correct[members].mean()
        mean_confidence = confidence[members].mean()
        error = error + count / len(labels) * (accuracy - mean_confidence).abs()
    return error


# === exercise: calibration-error | function: calibration_error | kind: double | what is wrong: the gaps of the bins that hold images are averaged with equal weights and not weighted by n_m / N AND an edge belongs to the bin below it instead of the one above
# told: wrong
# now: named
# says: an edge belongs to the bin below, and every bin counts alike
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    conf, pred = torch.max(probabilities, dim=-1)
    hit = pred.eq(labels).to(conf.dtype)
    edges = torch.linspace(0, 1, bins + 1, dtype=conf.dtype)
    gaps = []
    for low, high in zip(edges[:-1], edges[1:]):
        in_bin = conf.gt(low) & conf.le(high)
        if in_bin.any():
            gaps.append((hit[in_bin].mean() - conf[in_bin].mean()).abs())
    return torch.stack(gaps).mean()


# === exercise: position-similarity | function: position_similarity | kind: plain | what is wrong: the correlation of the rows is computed, which subtracts each position's mean over its features first, and not the cosine
# told: shown
# now: named
# says: correlations in place of cosines
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    N = rows * columns
    if len(table) == N + 1:
        table = table[1:]
    elif len(table) != N:
        raise ValueError(f"{len(table)} positions do not fit {rows} x {columns} patches")
    similarity = torch.corrcoef(table)
    return similarity.reshape(rows, columns, rows, columns)


# === exercise: position-similarity | function: position_similarity | kind: subtle | what is wrong: a table with more than N + 1 rows is accepted, its last N rows are used silently; the ValueError only comes when there are too few
# told: named
# now: named
# says: no ValueError for a table of another grid
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    count = rows * columns
    if table.size(0) < count:
        raise ValueError("the table has too few rows for this grid")
    patches = table[-count:]
    dots = torch.einsum("id,jd->ij", patches, patches)
    lengths = patches.norm(dim=-1)
    cosines = dots / torch.outer(lengths, lengths)
    return cosines.view(rows, columns, rows, columns)


# === exercise: read-by-the-head | function: read_by_the_head | kind: subtle | what is wrong: with a class token the shares are divided by their sum over the whole batch, so that with several images each picture does not sum to 1 (right only for a batch of one)
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
    return shares.reshape(len(rollouts), rows, columns)


# === exercise: read-by-the-head | function: read_by_the_head | kind: double | what is wrong: with a class token the share that the token kept is spread evenly over the patches instead of dividing by what is left AND the patches are laid out column by column instead of in reading order
# told: named
# now: named
# says: the class token's own share given out in equal parts, and rows and columns of the grid exchanged
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    def as_grid(line):
        return line.reshape(line.shape[0], columns, rows).transpose(1, 2)

    if pooling == "mean":
        return as_grid(torch.einsum("bij->bj", rollouts) / rollouts.shape[1])
    kept = rollouts[:, 0, :1]
    patches = rollouts[:, 0, 1:]
    return as_grid(patches + kept / (rows * columns))
