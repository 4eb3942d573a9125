# ruff: noqa
# fmt: off

# === exercise: standardise | function: standardise | kind: plain | what is wrong: mean and spread are measured on the images that are normalised, not on the training images
# told: named
# now: named
# says: statistics of the images themselves
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    axes = (0, 2, 3)
    mean = images.mean(dim=axes, keepdim=True)
    std = images.std(dim=axes, keepdim=True, correction=0)
    std = torch.where(std < 1e-6, torch.ones_like(std), std)
    return (images - mean) / std


# === exercise: standardise | function: standardise | kind: plain | what is wrong: the sample standard deviation, divided by the count less one
# told: named
# now: named
# says: the sample standard deviation
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    channels = train.transpose(0, 1).flatten(1)  # (C, N * H * W)
    mu, sigma = channels.mean(1), channels.std(1)
    sigma = sigma.masked_fill(sigma < 1e-6, 1.0)
    return (images - mu[:, None, None]) / sigma[:, None, None]


# === exercise: standardise | function: standardise | kind: subtle | what is wrong: the variance, not the spread, is compared with 1e-6, so a channel with a spread between 1e-6 and 1e-3 is not divided
# told: named
# now: named
# says: the limit for contrast is too large
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    mean = train.mean(dim=(0, 2, 3), keepdim=True)
    variance = ((train - mean) ** 2).mean(dim=(0, 2, 3), keepdim=True)
    variance[variance < 1e-6] = 1.0
    return (images - mean) / variance.sqrt()


# === exercise: standardise | function: standardise | kind: double | what is wrong: (1) one mean and one spread for all channels together; (2) a spread below 1e-6 becomes 1e-6, not 1
# told: named
# now: named
# says: one mean for all channels
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    mean = train.mean()
    std = train.std(correction=0).clamp(min=1e-6)
    return (images - mean) / std


# === exercise: standardise | function: standardise | kind: double | what is wrong: (1) the spread is the mean of the spreads inside of each image, not that over all of train; (2) only a spread of exactly 0 counts as none
# told: named
# now: named
# says: the mean of the spreads of single images
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    result = torch.empty_like(images)
    for c in range(images.shape[1]):
        channel = train[:, c]  # (N, H, W)
        mean = channel.mean()
        spread = channel.std(dim=(1, 2), correction=0).mean()
        if spread == 0:
            spread = 1.0
        result[:, c] = (images[:, c] - mean) / spread
    return result


# === exercise: shift-images | function: shift_images | kind: plain | what is wrong: row i comes from i plus the shift: up and down, left and right are exchanged
# told: named
# now: named
# says: the wrong way, in both directions
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    B, C, H, W = images.shape
    rows = torch.arange(H) + down[:, None]
    columns = torch.arange(W) + right[:, None]
    inside_rows = (rows >= 0) & (rows < H)
    inside_columns = (columns >= 0) & (columns < W)
    inside = inside_rows[:, :, None] & inside_columns[:, None, :]
    batch = torch.arange(B)[:, None, None]
    found = images[
        batch, :, rows.clamp(0, H - 1)[:, :, None], columns.clamp(0, W - 1)[:, None, :]
    ]
    found = found.permute(0, 3, 1, 2)
    return found.masked_fill(~inside[:, None], 0)


# === exercise: shift-images | function: shift_images | kind: subtle | what is wrong: a shift of 0 falls into the branch for negative ones, where [0:] is the whole axis: an image that is not moved becomes black
# told: named
# now: named
# says: images that are not moved are lost
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    moved = []
    for image, d, r in zip(images, down.tolist(), right.tolist(), strict=True):
        turned = torch.roll(image, shifts=(d, r), dims=(1, 2))
        # what came in from the other side has to go
        if d > 0:
            turned[:, :d] = 0
        else:
            turned[:, d:] = 0
        if r > 0:
            turned[:, :, :r] = 0
        else:
            turned[:, :, r:] = 0
        moved.append(turned)
    return torch.stack(moved)


# === exercise: shift-images | function: shift_images | kind: subtle | what is wrong: if no image of the batch is moved the argument itself is returned, not a new tensor
# told: named
# now: named
# says: the caller's own images are returned
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    if not down.any() and not right.any():
        return images  # nothing to do
    count, _, height, width = images.shape
    rows = torch.arange(height).unsqueeze(0) - down.unsqueeze(1)
    columns = torch.arange(width).unsqueeze(0) - right.unsqueeze(1)
    visible = ((rows >= 0) & (rows < height)).unsqueeze(2) & (
        (columns >= 0) & (columns < width)
    ).unsqueeze(1)
    which = torch.arange(count).view(-1, 1, 1)
    fetched = images[
        which,
        :,
        rows.clamp(0, height - 1).unsqueeze(2),
        columns.clamp(0, width - 1).unsqueeze(1),
    ].movedim(-1, 1)
    return torch.where(visible.unsqueeze(1), fetched, torch.zeros_like(fetched))


# === exercise: shift-images | function: shift_images | kind: double | what is wrong: (1) down moves the columns and right the rows; (2) places beyond the last row or column count as inside, so the edge is repeated there
# told: named
# now: named
# says: rows and columns exchanged, and the edge is repeated
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    b, _, h, w = images.shape
    ys = torch.arange(h)[None, :] - right[:, None]
    xs = torch.arange(w)[None, :] - down[:, None]
    inside = (ys >= 0)[:, :, None] & (xs >= 0)[:, None, :]
    ys = ys.clamp(0, h - 1)[:, :, None]
    xs = xs.clamp(0, w - 1)[:, None, :]
    out = images[torch.arange(b)[:, None, None], :, ys, xs].permute(0, 3, 1, 2).clone()
    out[~inside[:, None].expand_as(out)] = 0
    return out


# === exercise: shift-images | function: shift_images | kind: double | what is wrong: (1) torch.roll: what moves out comes in on the other side; (2) the result is written into the argument
# told: named
# now: named
# says: changes its argument in place
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    for b in range(len(images)):
        images[b] = images[b].roll((int(down[b]), int(right[b])), dims=(-2, -1))
    return images


# === exercise: confusion | function: confusion | kind: plain | what is wrong: matrix[labels, predictions] += 1 counts several equal pairs once
# told: named
# now: named
# says: equal pairs count once
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    matrix = torch.zeros(classes, classes, dtype=torch.int64)
    matrix[labels, predictions] += 1
    both = (matrix + matrix.T).triu(diagonal=1)
    a, b = divmod(both.argmax().item(), classes)
    return matrix, (a, b)


# === exercise: confusion | function: confusion | kind: subtle | what is wrong: fill_diagonal_ works in place on the matrix that is returned, whose diagonal is 0
# told: named
# now: named
# says: right answers are left out
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    places = labels * classes + predictions
    matrix = torch.bincount(places, minlength=classes**2).reshape(classes, classes)
    wrong = matrix.fill_diagonal_(0)
    sums = wrong + wrong.T
    place = int(sums.argmax())  # symmetric: the first one is above the diagonal
    return matrix, (place // classes, place % classes)


# === exercise: confusion | function: confusion | kind: subtle | what is wrong: of equal pairs the first column by column, not in reading order: (1, 2) wins against (0, 3)
# told: named
# now: named
# says: of equal pairs the one with the smaller second class
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    matrix = torch.zeros((classes, classes), dtype=torch.long)
    for guess, truth in zip(predictions.tolist(), labels.tolist(), strict=True):
        matrix[truth, guess] += 1
    most, pair = 0, None
    for b in range(classes):
        for a in range(b):
            exchanged = int(matrix[a, b] + matrix[b, a])
            if exchanged > most:
                most, pair = exchanged, (a, b)
    return matrix, pair


# === exercise: confusion | function: confusion | kind: double | what is wrong: (1) rows are the predictions and columns the labels; (2) the pair has the largest count in one direction, the directions are not added
# told: named
# now: named
# says: rows and columns exchanged, and one direction only
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    matrix = torch.zeros(classes, classes, dtype=torch.int64)
    ones = torch.ones_like(labels, dtype=torch.int64)
    matrix.index_put_((predictions, labels), ones, accumulate=True)
    off = matrix - torch.diag(matrix.diag())
    i, j = divmod(int(off.flatten().argmax()), classes)
    return matrix, (min(i, j), max(i, j))


# === exercise: calibration-error | function: calibration_error | kind: plain | what is wrong: absolute values image by image, before right and wrong images of a bin have met
# told: named
# now: named
# says: absolute values image by image
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    confidence, prediction = probabilities.max(dim=-1)
    gap = ((prediction == labels).to(confidence.dtype) - confidence).abs()
    index = (confidence * bins).long().clamp(max=bins - 1)
    sums = torch.zeros(bins, dtype=gap.dtype).index_add(0, index, gap)
    return sums.sum() / len(labels)


# === exercise: calibration-error | function: calibration_error | kind: plain | what is wrong: all bins that are not empty weigh the same, however many images they hold
# told: named
# now: named
# says: every bin counts alike
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    conf = probabilities.amax(dim=1)
    hit = probabilities.argmax(dim=1).eq(labels).to(conf.dtype)
    where = torch.floor(conf * bins).long()
    where[where == bins] = bins - 1
    errors = []
    for m in where.unique():
        inside = where == m
        errors.append((hit[inside].mean() - conf[inside].mean()).abs())
    return torch.stack(errors).mean()


# === exercise: calibration-error | function: calibration_error | kind: subtle | what is wrong: a confidence of exactly 1 goes into bin 0 (remainder) and not into the last one
# told: named
# now: named
# says: a confidence of 1 falls into the first bin
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    c, guess = torch.max(probabilities, dim=-1)
    r = (guess == labels).to(c)
    m = (c * bins).long() % bins  # stays below bins
    table = torch.nn.functional.one_hot(m, bins).to(c)  # (N, bins)
    return ((r - c) @ table).abs().sum() / c.numel()


# === exercise: calibration-error | function: calibration_error | kind: double | what is wrong: (1) the confidence is the probability of the right class, not the largest one; (2) an edge belongs to the bin below it
# told: named
# now: named
# says: the probability of the right class
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    n = len(labels)
    sure = probabilities[torch.arange(n), labels]
    right = (probabilities.argmax(dim=-1) == labels).to(sure.dtype)
    error = sure.new_zeros(())
    for m in range(bins):
        low, high = m / bins, (m + 1) / bins
        chosen = (sure > low) & (sure <= high)
        if chosen.any():
            difference = right[chosen].mean() - sure[chosen].mean()
            error = error + chosen.sum() / n * difference.abs()
    return error


# === exercise: calibration-error | function: calibration_error | kind: double | what is wrong: (1) the difference is squared in place of its absolute value; (2) an empty bin gives 0 / 0, and the result is NaN
# told: named
# now: named
# says: an empty bin gives NaN
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    confidence = probabilities.max(-1).values
    correct = (probabilities.argmax(-1) == labels).to(confidence.dtype)
    number = (confidence * bins).floor().clamp(0, bins - 1).long()
    total = 0.0
    for b in range(bins):
        mask = number == b
        acc = correct[mask].mean()
        conf = confidence[mask].mean()
        total = total + mask.sum() / len(mask) * (acc - conf) ** 2
    return total


# === exercise: position-similarity | function: position_similarity | kind: plain | what is wrong: divides by one of the two lengths only
# told: named
# now: named
# says: only one of two lengths
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    count = rows * columns
    if len(table) not in (count, count + 1):
        raise ValueError(f"{len(table)} rows for {count} patches")
    patches = table[-count:]
    unit = patches / patches.norm(dim=-1, keepdim=True)
    return (unit @ patches.T).reshape(rows, columns, rows, columns)


# === exercise: position-similarity | function: position_similarity | kind: subtle | what is wrong: norms * norms without a transpose: each row is divided by its own length squared (right only if all lengths are equal, as by hand)
# told: named
# now: named
# says: only one of two lengths
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    n = rows * columns
    if table.shape[0] == n + 1:
        table = table[1:]
    elif table.shape[0] != n:
        raise ValueError("the table does not fit the grid")
    products = torch.einsum("id,jd->ij", table, table)
    norms = (table**2).sum(dim=1, keepdim=True).sqrt()
    cosine = products / (norms * norms)
    return cosine.view(rows, columns, rows, columns)


# === exercise: position-similarity | function: position_similarity | kind: subtle | what is wrong: with a class token the last row is left out in place of the first
# told: named
# now: named
# says: the last position left out in place of the first
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    count = rows * columns
    if not count <= table.shape[0] <= count + 1:
        raise ValueError(f"expected {count} or {count + 1} rows, got {table.shape[0]}")
    unit = torch.nn.functional.normalize(table[:count], dim=-1)
    return (unit @ unit.mT).unflatten(1, (rows, columns)).unflatten(0, (rows, columns))


# === exercise: position-similarity | function: position_similarity | kind: double | what is wrong: (1) the lengths are those of the columns (dim=0); (2) a table with more than N + 1 or fewer than N rows raises no ValueError
# told: named
# now: named
# says: lengths of the columns
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    E = table[-rows * columns :]  # without the class token
    E = E / torch.linalg.vector_norm(E, dim=0)
    S = E @ E.transpose(0, 1)
    return S.reshape(rows, columns, rows, columns)


# === exercise: read-by-the-head | function: read_by_the_head | kind: plain | what is wrong: pooling by the mean averages over the inputs (last axis), so every patch has the same share
# told: named
# now: named
# says: the mean over the inputs
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    if pooling == "class":
        shares = rollouts[:, 0, 1:]
        shares = shares / shares.sum(dim=-1, keepdim=True)
    else:
        shares = rollouts.mean(dim=-1)
        shares = shares / shares.sum(dim=-1, keepdim=True)
    return shares.reshape(-1, rows, columns)


# === exercise: read-by-the-head | function: read_by_the_head | kind: plain | what is wrong: with a class token the shares of the patches are not divided by what is left, the pictures do not sum to 1
# told: named
# now: named
# says: the sum is not 1
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    pictures = []
    for rollout in rollouts:
        row = rollout[0][1:] if pooling == "class" else rollout.mean(dim=0)
        pictures.append(row.reshape(rows, columns))
    return torch.stack(pictures)


# === exercise: read-by-the-head | function: read_by_the_head | kind: subtle | what is wrong: divides by the sum over the whole batch: right for one image, else each picture does not sum to 1
# told: named
# now: named
# says: one sum for the whole batch
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    if pooling == "mean":
        return rollouts.mean(1).unflatten(-1, (rows, columns))
    patches = rollouts[:, 0, 1:]
    return (patches / patches.sum()).unflatten(-1, (rows, columns))


# === exercise: read-by-the-head | function: read_by_the_head | kind: double | what is wrong: (1) with a class token column 0 is read in place of row 0; (2) the patches are laid out column by column (reshape to (columns, rows), then transposed)
# told: named
# now: named
# says: the column in place of the row, and rows and columns of the grid exchanged
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    batch = rollouts.shape[0]
    if pooling == "class":
        kept = rollouts[:, 1:, 0]
        kept = kept / kept.sum(dim=1, keepdim=True)
    elif pooling == "mean":
        kept = rollouts.sum(dim=1) / rollouts.shape[1]
    else:
        raise ValueError(pooling)
    return kept.reshape(batch, columns, rows).transpose(1, 2)


# === exercise: confusion | function: confusion | kind: plain | what is wrong: matrix[labels, predictions] += 1 counts equal pairs only once
# told: named
# now: named
# says: equal pairs count once
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    matrix = torch.zeros(classes, classes, dtype=torch.long)
    matrix[labels, predictions] += 1
    best, pair = -1, (0, 1)
    for a in range(classes):
        for b in range(a + 1, classes):
            exchanged = int(matrix[a, b] + matrix[b, a])
            if exchanged > best:
                best, pair = exchanged, (a, b)
    return matrix, pair


# === exercise: read-by-the-head | function: read_by_the_head | kind: plain | what is wrong: for pooling "mean" the average is taken over the inputs (last axis), so every patch has the same share
# told: named
# now: named
# says: the mean over the inputs
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    if pooling == "class":
        shares = rollouts[:, 0, 1:]
        shares = shares / shares.sum(-1, keepdim=True)
    else:
        shares = rollouts.mean(-1)
    return shares.unflatten(-1, (rows, columns))


# === exercise: standardise | function: standardise | kind: subtle | what is wrong: a channel with hardly any contrast is divided by 1e-6 instead of 1
# told: named
# now: named
# says: a small spread does not count as 1
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    per_channel = train.transpose(0, 1).flatten(1)
    mean = per_channel.mean(dim=1).view(1, -1, 1, 1)
    spread = per_channel.std(dim=1, correction=0).clamp(min=1e-6).view(1, -1, 1, 1)
    return (images - mean) / spread


# === exercise: calibration-error | function: calibration_error | kind: subtle | what is wrong: an edge belongs to the bin below it (low < c <= high) instead of the bin above it
# told: named
# now: named
# says: an edge belongs to the bin below
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    confidence, answer = probabilities.max(dim=-1)
    right = (answer == labels).to(probabilities.dtype)
    error = torch.zeros((), dtype=probabilities.dtype)
    for m in range(bins):
        low, high = m / bins, (m + 1) / bins
        here = (confidence > low) & (confidence <= high)
        if here.any():
            gap = right[here].mean() - confidence[here].mean()
            error = error + here.sum() / len(labels) * gap.abs()
    return error


# === exercise: shift-images | function: shift_images | kind: double | what is wrong: (1) the result's rows and columns come from i + shift instead of i - shift; (2) row 0 and column 0 of the image count as outside
# told: named
# now: named
# says: the wrong way, in both directions, and place 0 counts as outside
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    B, _, H, W = images.shape
    rows = torch.arange(H)[None, :] + down[:, None]
    cols = torch.arange(W)[None, :] + right[:, None]
    row_ok = (rows > 0) & (rows < H)
    col_ok = (cols > 0) & (cols < W)
    inside = row_ok[:, :, None] & col_ok[:, None, :]
    b = torch.arange(B)[:, None, None]
    fetched = images[b, :, rows.clamp(0, H - 1)[:, :, None], cols.clamp(0, W - 1)[:, None, :]]
    fetched = fetched.permute(0, 3, 1, 2)
    return fetched * inside[:, None]


# === exercise: position-similarity | function: position_similarity | kind: double | what is wrong: (1) leaves out the last row instead of the class token's row 0; (2) divides by the lengths of the columns instead of the rows
# told: named
# now: named
# says: lengths of the columns, and the last position left out in place of the first
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    n = rows * columns
    if len(table) not in (n, n + 1):
        raise ValueError(f"{len(table)} positions do not fit {rows} x {columns} patches")
    table = table[:n]
    unit = torch.nn.functional.normalize(table, dim=0)
    cosines = torch.einsum("id,jd->ij", unit, unit)
    return cosines.view(rows, columns, rows, columns)
