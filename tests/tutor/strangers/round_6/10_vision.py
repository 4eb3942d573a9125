# ruff: noqa
# fmt: off

# === exercise: standardise | function: standardise | kind: subtle | what is wrong: a spread below 1e-6 is raised to 1e-6 and does not count as 1: in a channel without contrast a pixel that differs from training's is divided by a millionth
# told: named
# now: named
# says: a small spread does not count as 1
def standardise(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    by_channel = train.transpose(0, 1).flatten(1)
    mean = by_channel.mean(dim=1).view(1, -1, 1, 1)
    spread = by_channel.std(dim=1, correction=0).view(1, -1, 1, 1)
    return (images - mean) / spread.clamp(min=1e-6)


# === exercise: shift-images | function: shift_images | kind: double | what is wrong: a source place of 0 counts as outside (> 0 and not >= 0), so the first row and the first column of every image are lost, even without a shift AND the channels are brought back by exchanging axes 1 and 3, (B, C, W, H): every picture is mirrored at its diagonal
# told: told
# now: named
# says: place 0 counts as outside, and mirrored at the diagonal
def shift_images(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    b, c, h, w = images.shape
    rows = torch.arange(h)[None, :] - down[:, None]
    columns = torch.arange(w)[None, :] - right[:, None]
    row_inside = (rows > 0) & (rows < h)
    column_inside = (columns > 0) & (columns < w)
    inside = row_inside[:, :, None] & column_inside[:, None, :]
    batch = torch.arange(b)[:, None, None]
    found = images[
        batch, :, rows.clamp(0, h - 1)[:, :, None], columns.clamp(0, w - 1)[:, None, :]
    ]
    found = found.masked_fill(~inside[..., None], 0)
    return found.transpose(1, 3)


# === exercise: confusion | function: confusion | kind: subtle | what is wrong: of several pairs with the same sum the last in reading order is returned (>=), not the first; with no mistakes at all, too
# told: named
# now: named
# says: of equal pairs the last
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    matrix = torch.zeros(classes, classes, dtype=torch.long)
    for truth, guess in zip(labels.tolist(), predictions.tolist()):
        matrix[truth, guess] += 1
    most, pair = 0, (0, 1)
    for a in range(classes):
        for b in range(a + 1, classes):
            exchanged = int(matrix[a, b] + matrix[b, a])
            if exchanged >= most:
                most, pair = exchanged, (a, b)
    return matrix, pair


# === exercise: confusion | function: confusion | kind: double | what is wrong: the matrix is transposed, its rows are the predictions AND the pair comes from the largest single number beside the diagonal, so only one direction counts
# told: named
# now: named
# says: rows and columns exchanged, and one direction only
def confusion(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    places = predictions * classes + labels
    matrix = torch.bincount(places, minlength=classes**2).reshape(classes, classes)
    mistakes = matrix - torch.diag(matrix.diagonal())
    mistakes = torch.maximum(mistakes, mistakes.T).triu(diagonal=1)
    a, b = divmod(int(mistakes.argmax()), classes)
    return matrix, (a, b) if a < b else (0, 1)


# === exercise: calibration-error | function: calibration_error | kind: plain | what is wrong: the confidence is taken to be the probability of the right class (the label's), not the largest one; shows wherever an image is classified wrongly
# told: named
# now: named
# says: the probability of the right class
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    confidence = probabilities.gather(1, labels[:, None])[:, 0]
    right = (probabilities.argmax(dim=1) == labels).to(probabilities.dtype)
    which = (confidence * bins).long().clamp(max=bins - 1)
    gaps = torch.zeros(bins, dtype=probabilities.dtype)
    gaps = gaps.index_add(0, which, right - confidence)
    return gaps.abs().sum() / len(labels)


# === exercise: calibration-error | function: calibration_error | kind: subtle | what is wrong: bucketize puts a confidence that lies exactly on an edge into the bin below it (0.5 with two bins into bin 0), not above
# told: named
# now: named
# says: an edge belongs to the bin below
def calibration_error(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    confidence, answer = probabilities.max(dim=-1)
    edges = torch.arange(1, bins, dtype=confidence.dtype) / bins
    bin_of = torch.bucketize(confidence, edges)
    error = torch.zeros((), dtype=confidence.dtype)
    for m in range(bins):
        here = bin_of == m
        if here.any():
            accuracy = (answer[here] == labels[here]).to(confidence.dtype).mean()
            share = here.sum() / len(labels)
            error = error + share * (accuracy - confidence[here].mean()).abs()
    return error


# === exercise: position-similarity | function: position_similarity | kind: plain | what is wrong: the table is divided by the length of the whole table, one number, and not each row by its own: the results are products in other units, not cosines (the similarity of a position with itself is not 1)
# told: shown
# now: named
# says: one length for the whole table
def position_similarity(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    n = rows * columns
    if len(table) == n + 1:
        table = table[1:]
    elif len(table) != n:
        raise ValueError(f"{len(table)} rows do not fit {n} patches")
    unit = table / torch.linalg.vector_norm(table)
    return torch.einsum("id,jd->ij", unit, unit).view(rows, columns, rows, columns)


# === exercise: read-by-the-head | function: read_by_the_head | kind: plain | what is wrong: with a class token its own share is given to all patches in equal parts instead of dividing by what is left: (0.4, 0.45, 0.15) becomes (0.65, 0.35), not (0.75, 0.25); each picture still sums to 1
# told: named
# now: named
# says: the class token's own share given out in equal parts
def read_by_the_head(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> torch.Tensor:
    if pooling == "mean":
        shares = rollouts.mean(dim=1)
    else:
        token, patches = rollouts[:, 0, :1], rollouts[:, 0, 1:]
        shares = patches + token / patches.shape[-1]
    return shares.unflatten(-1, (rows, columns))
