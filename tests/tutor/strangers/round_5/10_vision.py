# ruff: noqa
# fmt: off

# === exercise: standardise | function: standardise | kind: subtle | what is wrong: torch.std divides by the number minus one
# told: named
# now: named
# says: the sample standard deviation
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    mean = train.mean(dim=(0, 2, 3), keepdim=True)
    std = train.std(dim=(0, 2, 3), keepdim=True)
    std = torch.where(std < 1e-6, torch.ones_like(std), std)
    return (images - mean) / std


# === exercise: shift-images | function: shift_images | kind: plain | what is wrong: what moves out comes in again on the other side (modulo)
# told: named
# now: named
# says: what leaves comes in on the other side
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    B, C, H, W = images.shape
    rows = (torch.arange(H) - down[:, None]) % H
    columns = (torch.arange(W) - right[:, None]) % W
    batch = torch.arange(B)[:, None, None, None]
    channel = torch.arange(C)[None, :, None, None]
    return images[batch, channel, rows[:, None, :, None], columns[:, None, None, :]]


# === exercise: shift-images | function: shift_images | kind: double | what is wrong: asks where a pixel goes, so the images move the other way AND places outside repeat the border in place of 0
# told: named
# now: named
# says: the wrong way, in both directions, and the edge is repeated
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    _, channels, height, width = images.shape
    rows = (torch.arange(height)[None] + down[:, None]).clamp(0, height - 1)
    columns = (torch.arange(width)[None] + right[:, None]).clamp(0, width - 1)
    index = rows[:, None, :, None].expand(-1, channels, -1, width)
    moved = images.gather(2, index)
    index = columns[:, None, None, :].expand(-1, channels, height, -1)
    return moved.gather(3, index)


# === exercise: confusion | function: confusion | kind: subtle | what is wrong: `matrix[labels, predictions] += 1` adds each cell once, however often it occurs
# told: named
# now: named
# says: equal pairs count once
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    matrix = torch.zeros(classes, classes, dtype=torch.long)
    matrix[labels, predictions] += 1
    both = matrix + matrix.T
    best, pair = -1, (0, 1)
    for a in range(classes):
        for b in range(a + 1, classes):
            if both[a, b] > best:
                best, pair = both[a, b].item(), (a, b)
    return matrix, pair


# === exercise: calibration-error | function: calibration_error | kind: subtle | what is wrong: an edge belongs to the bin below it, (low, high], as in the usual code
# told: named
# now: named
# says: an edge belongs to the bin below
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    confidence, predictions = probabilities.max(dim=1)
    right = (predictions == labels).float()
    edges = torch.linspace(0, 1, bins + 1)
    error = torch.zeros(())
    for low, high in zip(edges[:-1], edges[1:]):
        inside = (confidence > low) & (confidence <= high)
        if inside.any():
            gap = right[inside].mean() - confidence[inside].mean()
            error = error + gap.abs() * inside.float().mean()
    return error


# === exercise: calibration-error | function: calibration_error | kind: plain | what is wrong: averages the bins that hold images, each with the same weight
# told: named
# now: named
# says: every bin counts alike
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    confidence, predictions = probabilities.max(-1)
    right = predictions.eq(labels).to(confidence.dtype)
    place = (confidence * bins).long().clamp(max=bins - 1)
    gaps = []
    for m in place.unique():
        inside = place == m
        gaps.append((right[inside].mean() - confidence[inside].mean()).abs())
    return torch.stack(gaps).mean()


# === exercise: position-similarity | function: position_similarity | kind: plain | what is wrong: drops the last row of the table, not the first, when there is a class token
# told: named
# now: named
# says: the last position left out in place of the first
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    n = rows * columns
    if len(table) not in (n, n + 1):
        raise ValueError(f"{len(table)} rows for {n} patches")
    table = table[:n]
    unit = table / table.norm(dim=1, keepdim=True)
    return (unit @ unit.T).reshape(rows, columns, rows, columns)


# === exercise: read-by-the-head | function: read_by_the_head | kind: double | what is wrong: the mean is taken over the inputs (last axis), not over the outputs AND with a class token the patches are not divided by what is left
# told: named
# now: named
# says: the mean over the inputs
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    if pooling == "mean":
        read = rollouts.mean(dim=-1)
    else:
        read = rollouts[:, 0, 1:]
    return read.reshape(-1, rows, columns)
