# ruff: noqa
# fmt: off

# === exercise: standardise | function: standardise | kind: subtle | what is wrong: unbiased spread (divided by n - 1)
# told: named
# now: named
# says: the sample standard deviation
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    mean = train.mean(dim=(0, 2, 3))[None, :, None, None]
    std = train.std(dim=(0, 2, 3))[None, :, None, None]
    std = torch.where(std < 1e-6, torch.ones_like(std), std)
    return (images - mean) / std


# === exercise: standardise | function: standardise | kind: double | what is wrong: a small epsilon is added to every spread in place of 1 for a channel without contrast AND mean and spread of every pixel by itself, over the images only (dim=0)
# told: named
# now: named
# says: each pixel by its own statistics, and a small spread does not count as 1
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    mu = train.mean(dim=0, keepdim=True)
    sigma = train.std(dim=0, keepdim=True, unbiased=False)
    return (images - mu) / (sigma + 1e-6)


# === exercise: shift-images | function: shift_images | kind: plain | what is wrong: what moves out comes in on the other side (torch.roll for each image)
# told: named
# now: named
# says: what leaves comes in on the other side
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    shifted = [
        torch.roll(image, (int(d), int(r)), dims=(-2, -1))
        for image, d, r in zip(images, down, right, strict=True)
    ]
    return torch.stack(shifted)


# === exercise: shift-images | function: shift_images | kind: double | what is wrong: + in place of -, it moves up and to the left AND outside pixels are multiplied by 0 on the rows only, columns from outside repeat the border
# told: shown
# now: named
# says: the wrong way, in both directions, and the edge is repeated
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    B, C, H, W = images.shape
    rows = torch.arange(H)[None, :] + down[:, None]
    columns = torch.arange(W)[None, :] + right[:, None]
    inside = (rows >= 0) & (rows < H)
    rows = rows.clamp(0, H - 1)
    columns = columns.clamp(0, W - 1)
    batch = torch.arange(B)[:, None, None]
    moved = images.permute(0, 2, 3, 1)[batch, rows[:, :, None], columns[:, None, :]]
    return moved.permute(0, 3, 1, 2) * inside[:, None, :, None]


# === exercise: confusion | function: confusion | kind: subtle | what is wrong: matrix[labels, predictions] += 1 counts repeated pairs once
# told: named
# now: named
# says: equal pairs count once
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    matrix = torch.zeros(classes, classes, dtype=torch.long)
    matrix[labels, predictions] += 1
    both = torch.triu(matrix + matrix.T, diagonal=1)
    best = None
    for a in range(classes):
        for b in range(a + 1, classes):
            if best is None or both[a, b] > both[best]:
                best = (a, b)
    return matrix, best


# === exercise: confusion | function: confusion | kind: double | what is wrong: rows are the predictions, columns the labels AND the pair is the largest single entry off the diagonal, not both directions together
# told: named
# now: named
# says: rows and columns exchanged, and one direction only
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    flat = predictions * classes + labels
    matrix = torch.bincount(flat, minlength=classes**2).reshape(classes, classes)
    errors = matrix.clone()
    errors.fill_diagonal_(-1)
    a, b = divmod(errors.argmax().item(), classes)
    return matrix, (min(a, b), max(a, b))


# === exercise: calibration-error | function: calibration_error | kind: subtle | what is wrong: bins closed above (c > low and c <= high, as in the paper), so an edge belongs to the bin below
# told: named
# now: named
# says: an edge belongs to the bin below
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    confidence, prediction = probabilities.max(dim=1)
    right = (prediction == labels).float()
    error = torch.zeros(())
    edges = torch.linspace(0, 1, bins + 1)
    for low, high in zip(edges[:-1], edges[1:]):
        inside = (confidence > low) & (confidence <= high)
        if inside.any():
            gap = (right[inside].mean() - confidence[inside].mean()).abs()
            error = error + inside.float().mean() * gap
    return error


# === exercise: position-similarity | function: position_similarity | kind: subtle | what is wrong: the class token is dropped at the end (table[:N]), as if it stood last
# told: named
# now: named
# says: the last position left out in place of the first
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    n = rows * columns
    if table.shape[0] not in (n, n + 1):
        raise ValueError(f"{table.shape[0]} rows for {n} patches")
    table = table[:n]
    unit = table / table.norm(dim=1, keepdim=True)
    return (unit @ unit.T).view(rows, columns, rows, columns)


# === exercise: read-by-the-head | function: read_by_the_head | kind: double | what is wrong: mean over the inputs (last axis) in place of the outputs AND with a class token the row is not divided by what is left
# told: named
# now: named
# says: the mean over the inputs
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    if pooling == "mean":
        shares = rollouts.mean(dim=2)
    else:
        shares = rollouts[:, 0, 1:]
    return shares.reshape(len(rollouts), rows, columns)
