# ruff: noqa
# fmt: off

# === exercise: standardise | function: standardise | kind: plain | what is wrong: train is reshaped to (C, -1) without moving the axis of the channels to the front, so with several images and several channels each "channel" is a mixture of pixels of all channels
# told: told
# now: named
# says: reshaped in place of transposed
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    channels = train.shape[1]
    flat = train.reshape(channels, -1)
    mean = flat.mean(dim=1)
    std = flat.std(dim=1, correction=0)
    std = torch.where(std < 1e-6, torch.ones_like(std), std)
    return (images - mean[:, None, None]) / std[:, None, None]


# === exercise: standardise | function: standardise | kind: plain | what is wrong: divides by the variance and not by its root, the standard deviation
# told: named
# now: named
# says: divided by the variance
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    axes = (0, 2, 3)
    mu = train.mean(dim=axes, keepdim=True)
    sigma = ((train - mu) ** 2).mean(dim=axes, keepdim=True)
    flat = sigma.sqrt() < 1e-6
    sigma = sigma.masked_fill(flat, 1.0)
    return (images - mu) / sigma


# === exercise: standardise | function: standardise | kind: subtle | what is wrong: 1e-6 is added to every spread in place of counting a spread below 1e-6 as 1, so a channel without contrast is divided by about a millionth and not only shifted (a pixel of 0.9 in a channel of 0.1 becomes about 800 000)
# told: named
# now: named
# says: a small spread does not count as 1
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    eps = 1e-6
    mean = train.mean(dim=(0, 2, 3), keepdim=True)
    std = train.std(dim=(0, 2, 3), correction=0, keepdim=True)
    return (images - mean) / (std + eps)


# === exercise: standardise | function: standardise | kind: subtle | what is wrong: the variance and not the spread is compared with 1e-6, so a channel with a spread between 1e-6 and 1e-3 counts as without contrast and is only shifted
# told: named
# now: named
# says: the limit for contrast is too large
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    var, mean = torch.var_mean(train, dim=(0, 2, 3), correction=0, keepdim=True)
    std = torch.where(var < 1e-6, torch.ones_like(var), var.sqrt())
    return (images - mean) / std


# === exercise: standardise | function: standardise | kind: double | what is wrong: mean and spread are measured on the images that are normalised and not on train; only a spread of exactly 0 counts as 1, so a channel of 0.1 everywhere, whose spread is about 1e-8 by rounding, is divided by that
# told: named
# now: named
# says: statistics of the images themselves
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    def numbers(x):
        m = x.mean(dim=(0, 2, 3), keepdim=True)
        s = (x - m).pow(2).mean(dim=(0, 2, 3), keepdim=True).sqrt()
        return m, s

    mean, std = numbers(images)
    std[std == 0] = 1.0  # never divide by zero
    return (images - mean) / std


# === exercise: standardise | function: standardise | kind: double | what is wrong: std is left at its default, the sample standard deviation that divides by the count less one; a channel without contrast is set to 0 everywhere in place of only shifted
# told: named
# now: named
# says: the sample standard deviation, and a channel without contrast becomes 0
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    mean = train.mean(dim=(0, 2, 3))[None, :, None, None]
    std = train.std(dim=(0, 2, 3))[None, :, None, None]
    usable = std >= 1e-6
    safe = torch.where(usable, std, torch.ones_like(std))
    normal = (images - mean) / safe
    return torch.where(usable, normal, torch.zeros_like(normal))


# === exercise: shift-images | function: shift_images | kind: plain | what is wrong: the two shifts are exchanged: rows are moved by `right` and columns by `down`
# told: named
# now: named
# says: rows and columns exchanged
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    B, C, H, W = images.shape
    y = torch.arange(H) - right[:, None]  # (B, H)
    x = torch.arange(W) - down[:, None]  # (B, W)
    inside = ((y >= 0) & (y < H))[:, :, None] & ((x >= 0) & (x < W))[:, None, :]
    b = torch.arange(B)[:, None, None]
    found = images[b, :, y.clamp(0, H - 1)[:, :, None], x.clamp(0, W - 1)[:, None, :]]
    found = found.permute(0, 3, 1, 2)
    return found.masked_fill(~inside[:, None], 0)


# === exercise: shift-images | function: shift_images | kind: plain | what is wrong: places outside are clamped to the edge and never set to 0, so the edge's pixels are repeated where zeros should come in
# told: named
# now: named
# says: the edge is repeated
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    batch, _, height, width = images.shape
    rows = (torch.arange(height) - down[:, None]).clamp(min=0, max=height - 1)
    columns = (torch.arange(width) - right[:, None]).clamp(min=0, max=width - 1)
    which = torch.arange(batch).view(-1, 1, 1)
    found = images[which, :, rows.unsqueeze(2), columns.unsqueeze(1)]
    return found.movedim(-1, 1)


# === exercise: shift-images | function: shift_images | kind: subtle | what is wrong: "inside" tests only for places that are not negative and not for those past the last row or column, so with negative shifts (up or left) the last row or column is repeated where zeros should come in
# told: named
# now: named
# says: the edge is repeated
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    B, C, H, W = images.shape
    rows = torch.arange(H)[None, :] - down[:, None]
    cols = torch.arange(W)[None, :] - right[:, None]
    inside = (rows >= 0)[:, None, :, None] & (cols >= 0)[:, None, None, :]
    row_index = rows.clamp(0, H - 1)[:, None, :, None].expand(B, C, H, W)
    col_index = cols.clamp(0, W - 1)[:, None, None, :].expand(B, C, H, W)
    moved = images.gather(2, row_index).gather(3, col_index)
    return torch.where(inside, moved, torch.zeros_like(moved))


# === exercise: shift-images | function: shift_images | kind: subtle | what is wrong: if all shifts are 0 it returns the argument itself, although a new tensor is asked for, so changing the result changes the images
# told: named
# now: named
# says: the caller's own images are returned
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    if not down.any() and not right.any():
        return images  # nothing moves

    def source(size, shift):
        place = torch.arange(size) - shift[:, None]
        return place.clamp(0, size - 1), (place >= 0) & (place < size)

    count, _, height, width = images.shape
    rows, rows_inside = source(height, down)
    columns, columns_inside = source(width, right)
    first = torch.arange(count)[:, None, None]
    found = images[first, :, rows[:, :, None], columns[:, None, :]]
    inside = rows_inside[:, :, None] & columns_inside[:, None, :]
    found[~inside] = 0
    return found.permute(0, 3, 1, 2)


# === exercise: shift-images | function: shift_images | kind: double | what is wrong: the shift is added in place of subtracted, so images move up and left where they should move down and right; the columns are bounded by the height and not by the width, so images that are not square lose columns or are indexed out of bounds
# told: named
# now: named
# says: the wrong way, in both directions, and height and width exchanged
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    n, c, size = images.shape[:3]
    rows = torch.arange(size) + down.unsqueeze(1)
    cols = torch.arange(images.shape[3]) + right.unsqueeze(1)
    good_rows = (rows >= 0) & (rows < size)
    good_cols = (cols >= 0) & (cols < size)
    rows, cols = rows.clamp(0, size - 1), cols.clamp(0, size - 1)
    i = torch.arange(n).reshape(n, 1, 1)
    out = images[i, :, rows[:, :, None], cols[:, None, :]].permute(0, 3, 1, 2)
    good = good_rows[:, None, :, None] & good_cols[:, None, None, :]
    return out.masked_fill(good.logical_not(), 0)


# === exercise: shift-images | function: shift_images | kind: double | what is wrong: places are taken modulo the size, so what moves out comes in on the other side and no zeros come in; the columns are moved by `down` as well, and `right` is never used
# told: shown
# now: named
# says: one number for both directions, and what leaves comes in on the other side
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    B, C, H, W = images.shape
    rows = (torch.arange(H)[None] - down[:, None]) % H
    columns = (torch.arange(W)[None] - down[:, None]) % W
    batch = torch.arange(B)[:, None, None]
    shifted = images[batch, :, rows[:, :, None], columns[:, None, :]]  # (B, H, W, C)
    return shifted.permute(0, 3, 1, 2)


# === exercise: confusion | function: confusion | kind: plain | what is wrong: the matrix is transposed: rows are the predictions and columns the labels
# told: named
# now: named
# says: rows and columns exchanged
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    places = predictions * classes + labels
    matrix = torch.bincount(places, minlength=classes**2).reshape(classes, classes)
    both = (matrix + matrix.T).triu(diagonal=1)
    return matrix, divmod(int(both.argmax()), classes)


# === exercise: confusion | function: confusion | kind: plain | what is wrong: fill_diagonal_ works in place, so the matrix that is returned has lost its diagonal, the counts of the images that are right
# told: named
# now: named
# says: right answers are left out
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    matrix = torch.zeros(classes, classes, dtype=torch.int64)
    for label, prediction in zip(labels.tolist(), predictions.tolist()):
        matrix[label, prediction] += 1
    mistakes = matrix.fill_diagonal_(0)  # right ones are no exchange
    both = torch.triu(mistakes + mistakes.T)
    a, b = divmod(both.argmax().item(), classes)
    return matrix, (a, b)


# === exercise: confusion | function: confusion | kind: subtle | what is wrong: the pair is that of the largest single entry off the diagonal, one direction only, so it is wrong where another pair has the larger sum of both directions (3 + 0 is preferred to 2 + 2)
# told: named
# now: named
# says: one direction only
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    matrix = torch.bincount(labels * classes + predictions, minlength=classes * classes)
    matrix = matrix.view(classes, classes)
    wrong = matrix.clone()
    wrong.fill_diagonal_(0)
    i, j = divmod(int(wrong.argmax()), classes)
    return matrix, (min(i, j), max(i, j))


# === exercise: confusion | function: confusion | kind: subtle | what is wrong: the search keeps a pair if it is at least as good as the best so far (>=), so of equal sums the last in reading order wins and not the first
# told: named
# now: named
# says: of equal pairs the last
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    matrix = torch.zeros(classes, classes, dtype=torch.long)
    ones = torch.ones_like(labels, dtype=torch.long)
    matrix.index_put_((labels, predictions), ones, accumulate=True)
    best, pair = 0, (0, 1)
    for a in range(classes):
        for b in range(a + 1, classes):
            together = int(matrix[a, b] + matrix[b, a])
            if together >= best:
                best, pair = together, (a, b)
    return matrix, pair


# === exercise: confusion | function: confusion | kind: double | what is wrong: matrix[labels, predictions] += 1 counts several images with the same label and prediction only once; the pair holds tensors and not Python integers
# told: named
# now: named
# says: equal pairs count once, and tensors in place of integers
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    matrix = torch.zeros((classes, classes), dtype=torch.long)
    matrix[labels, predictions] += 1
    symmetric = matrix + matrix.T
    above = symmetric.triu(diagonal=1)
    place = above.flatten().argmax()
    pair = (place // classes, place % classes)
    return matrix, pair


# === exercise: confusion | function: confusion | kind: double | what is wrong: the matrix that is returned is divided by the sum of each row, shares (floats) and not counts; the pair is the row and column of the largest single entry off the diagonal, one direction only and without a < b
# told: named
# now: named
# says: shares in place of counts, and one direction only
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    index = labels * classes + predictions
    counts = torch.bincount(index, minlength=classes**2).reshape(classes, classes)
    off_diagonal = counts - torch.diag(counts.diagonal())
    place = off_diagonal.argmax().item()
    pair = (place // classes, place % classes)
    per_class = counts.sum(dim=1, keepdim=True).clamp(min=1)
    return counts / per_class, pair


# === exercise: calibration-error | function: calibration_error | kind: plain | what is wrong: the confidence is the probability of the right class and not the largest probability, so every image that is classified wrongly gets another confidence and mostly another bin
# told: named
# now: named
# says: the probability of the right class
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    confidence = probabilities.gather(1, labels[:, None]).squeeze(1)
    right = (probabilities.argmax(dim=-1) == labels).to(probabilities.dtype)
    place = (confidence * bins).long().clamp(max=bins - 1)
    sums = torch.zeros(bins, dtype=probabilities.dtype)
    sums = sums.index_add(0, place, right - confidence)
    return sums.abs().sum() / len(labels)


# === exercise: calibration-error | function: calibration_error | kind: plain | what is wrong: the gaps of the bins are averaged with equal weight and not weighted by n_m / N, so a bin with one image counts as much as one with a hundred
# told: named
# now: named
# says: every bin counts alike
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    confidence, prediction = probabilities.max(dim=-1)
    right = (prediction == labels).to(confidence.dtype)
    place = (confidence * bins).floor().long().clamp(max=bins - 1)
    gaps = []
    for m in range(bins):
        chosen = place == m
        if chosen.any():  # an empty bin adds nothing
            gaps.append((right[chosen].mean() - confidence[chosen].mean()).abs())
    return torch.stack(gaps).mean()


# === exercise: calibration-error | function: calibration_error | kind: subtle | what is wrong: a confidence of exactly 1 falls into bin M, which the loop never visits, so such images are left out where they belong to the last bin
# told: named
# now: named
# says: a confidence of 1 has no bin
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    confidence = probabilities.amax(dim=-1)
    correct = (probabilities.argmax(dim=-1) == labels).to(probabilities.dtype)
    bin_of = torch.floor(confidence * bins).long()
    total = probabilities.new_zeros(())
    for m in range(bins):
        members = bin_of == m
        n = members.sum()
        if n > 0:
            gap = correct[members].mean() - confidence[members].mean()
            total = total + gap.abs() * n / len(labels)
    return total


# === exercise: calibration-error | function: calibration_error | kind: subtle | what is wrong: bins are open below and closed above (ceil minus 1), so a confidence on an inner edge goes into the bin below and not above: 0.5 with two bins lies in bin 0 in place of bin 1
# told: named
# now: named
# says: an edge belongs to the bin below
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    top = probabilities.max(dim=1)
    hits = top.indices.eq(labels).to(probabilities.dtype)
    # bin m holds m/M < c <= (m + 1)/M
    index = (top.values * bins).ceil().long().sub(1).clamp(min=0)
    gap = hits - top.values
    per_bin = torch.zeros(bins, dtype=gap.dtype).index_add(0, index, gap)
    return per_bin.abs().sum() / gap.numel()


# === exercise: calibration-error | function: calibration_error | kind: double | what is wrong: the bin is found by rounding to the nearest number in place of rounding down, so with two bins a confidence of 0.4 (0.8, rounded to 1) lies in bin 1 in place of bin 0; a Python float is returned and not a tensor of shape ()
# told: named
# now: named
# says: a number in place of a tensor
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    sure, guess = probabilities.max(dim=-1)
    ok = (guess == labels).to(sure.dtype)
    which = torch.round(sure * bins).long().clamp(0, bins - 1)
    error = 0.0
    for m in which.unique():
        here = which == m
        error += (ok[here] - sure[here]).sum().abs().item() / len(labels)
    return error


# === exercise: calibration-error | function: calibration_error | kind: double | what is wrong: a bin's accuracy is compared with the middle of the bin and not with the mean confidence of its images; no absolute value is taken, so bins that are too sure and bins that are not sure enough cancel and the result may be negative
# told: named
# now: named
# says: the middle of the bin in place of the mean confidence, and differences of opposite signs cancel
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    confidence, prediction = probabilities.max(dim=-1)
    right = (prediction == labels).to(confidence.dtype)
    place = (confidence * bins).long().clamp(max=bins - 1)
    total = torch.zeros((), dtype=confidence.dtype)
    for m in range(bins):
        chosen = place == m
        if not chosen.any():
            continue
        middle = (m + 0.5) / bins
        share = chosen.to(confidence.dtype).mean()
        total = total + share * (right[chosen].mean() - middle)
    return total


# === exercise: position-similarity | function: position_similarity | kind: plain | what is wrong: the norm is taken without an axis, one number for the whole table, so the rows do not have length 1 and no position has similarity 1 with itself
# told: named
# now: named
# says: one length for the whole table
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    count = rows * columns
    if table.shape[0] not in (count, count + 1):
        raise ValueError(f"{table.shape[0]} rows for {count} patches")
    patches = table[-count:]
    unit = patches / torch.linalg.norm(patches)
    return (unit @ unit.T).reshape(rows, columns, rows, columns)


# === exercise: position-similarity | function: position_similarity | kind: subtle | what is wrong: of N + 1 rows the first N are kept, so the class token's row stays and the last patch is dropped (right for a table without class token)
# told: named
# now: named
# says: the last position left out in place of the first
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    n = rows * columns
    if len(table) != n and len(table) != n + 1:
        raise ValueError(f"expected {n} or {n + 1} positions, got {len(table)}")
    table = table[:n]
    lengths = table.norm(dim=-1)
    cosines = (table @ table.T) / (lengths[:, None] * lengths[None, :])
    return cosines.view(rows, columns, rows, columns)


# === exercise: position-similarity | function: position_similarity | kind: subtle | what is wrong: only tables with too few rows are refused, so a table with N + 2 or more rows gives no ValueError and its last N rows are used
# told: named
# now: named
# says: no ValueError for a table of another grid
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    patches = rows * columns
    if table.size(0) < patches:
        raise ValueError("the table has too few positions for this grid")
    special = table.size(0) - patches  # tokens in front of the patches
    grid = table[special:]
    grid = torch.nn.functional.normalize(grid, dim=-1)
    similar = torch.einsum("id,jd->ij", grid, grid)
    return similar.unflatten(1, (rows, columns)).unflatten(0, (rows, columns))


# === exercise: position-similarity | function: position_similarity | kind: double | what is wrong: torch.corrcoef subtracts each row's mean first, so correlations and not cosines come out ((3, 4) and (4, 3) give -1 and not 0.96); a table of the wrong length gives an AssertionError and not a ValueError
# told: named
# now: named
# says: correlations in place of cosines
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    total = rows * columns
    assert table.shape[0] in (total, total + 1), "table and grid do not fit"
    if table.shape[0] == total + 1:
        table = table[1:]  # without the class token
    similarity = torch.corrcoef(table)
    return similarity.reshape(rows, columns, rows, columns)


# === exercise: position-similarity | function: position_similarity | kind: double | what is wrong: each product is divided by the square of the length of its first row and not by both lengths, so it is wrong and not symmetric where lengths differ; the result is laid out as (columns, rows, columns, rows), which is wrong for grids that are not square
# told: named
# now: named
# says: only one of two lengths, and rows and columns of the grid exchanged
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    n = rows * columns
    extra = table.shape[0] - n
    if extra not in (0, 1):
        raise ValueError(f"{table.shape[0]} rows are neither {n} nor {n + 1}")
    e = table[extra:]
    squared = (e * e).sum(dim=-1, keepdim=True)
    s = e @ e.T / squared
    return s.reshape(columns, rows, columns, rows)


# === exercise: read-by-the-head | function: read_by_the_head | kind: plain | what is wrong: each picture is divided by its largest share and not by its sum, so its largest number and not its sum is 1
# told: named
# now: named
# says: divided by the largest
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    if pooling == "class":
        shares = rollouts[:, 0, 1:]
    else:
        shares = rollouts.mean(dim=1)
    shares = shares / shares.amax(dim=-1, keepdim=True)
    return shares.reshape(-1, rows, columns)


# === exercise: read-by-the-head | function: read_by_the_head | kind: subtle | what is wrong: with a class token the shares are divided by the sum over the whole batch, so each picture sums to 1 only for a batch of one
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
        shares = rollouts.mean(dim=-2)
    return shares.unflatten(-1, (rows, columns))


# === exercise: read-by-the-head | function: read_by_the_head | kind: subtle | what is wrong: squeeze() at the end removes every axis of length 1, so a batch of one or a grid with one row or column does not come back as (B, rows, columns)
# told: told
# now: named
# says: squeeze takes the axis of the batch away
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    batch = rollouts.shape[0]
    if pooling == "class":
        read = rollouts[:, :1, 1:]  # (B, 1, N)
        read = read / read.sum(dim=-1, keepdim=True)
    else:
        read = rollouts.mean(dim=1, keepdim=True)  # (B, 1, N)
    return read.reshape(batch, 1, rows, columns).squeeze()


# === exercise: read-by-the-head | function: read_by_the_head | kind: double | what is wrong: with a class token the shares of the patches are not divided by what is left, so the picture sums to less than 1; with the mean the average is taken over the inputs (last axis) and not over the outputs, so every patch has the same share
# told: named
# now: named
# says: the mean over the inputs
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    batch = len(rollouts)
    if pooling == "class":
        heat = rollouts[:, 0, 1:]  # rows sum to 1 already
    elif pooling == "mean":
        heat = rollouts.mean(dim=-1)
    return heat.reshape(batch, rows, columns)


# === exercise: read-by-the-head | function: read_by_the_head | kind: double | what is wrong: with a class token column 0 is taken, who has read the class token, and not row 0, what it has read; the patches are laid out column by column and not in reading order, wrong for grids with more than one row and column
# told: named
# now: named
# says: the column in place of the row, and rows and columns of the grid exchanged
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    if pooling == "class":
        shares = rollouts[:, 1:, 0]
        shares = shares / shares.sum(dim=1, keepdim=True)
    else:
        shares = rollouts.mean(dim=1)
    return shares.reshape(-1, columns, rows).transpose(1, 2)


# === exercise: own-vit | function: my_model | kind: plain | what is wrong: returns the path that was given to --out, counted from the course's folder, and not the name of the folder beside the notebook ("vit"), so there is no such folder there
# told: named
# now: named
# says: a path in place of the folder's name
def my_model() -> str:
    # as in: python -m workbench train vit --parts mine --out exercises/10_vision/vit
    return "exercises/10_vision/vit"


# === exercise: own-vit | function: my_model | kind: plain | what is wrong: hands in the folder of the trained model that comes with the course, which is for looking at only, and not the name of a folder beside the notebook with a model of one's own
# told: named
# now: named
# says: a folder that is not beside the notebook
def my_model() -> str:
    folder = results.model_folder("digits")  # 98 % on the held-out digits
    return str(folder)
