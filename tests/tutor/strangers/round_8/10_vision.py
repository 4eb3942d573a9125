# ruff: noqa
# fmt: off

# === exercise: shift-images | function: shift_images | kind: subtle | what is wrong: roll brings what moves out back in on the other side; only for shifts by the whole image is nothing zero
# told: named
# now: named
# says: what leaves comes in on the other side
def shift_images(images, down, right):
    return torch.stack(
        [torch.roll(x, (int(d), int(r)), dims=(1, 2)) for x, d, r in zip(images, down, right)]
    )


# === exercise: shift-images | function: shift_images | kind: double | what is wrong: the sign is turned round, so images move up and to the left AND down and right are exchanged
# told: shown
# now: named
# says: rows and columns exchanged, and the wrong way
def shift_images(images, down, right):
    B, C, H, W = images.shape
    rows = torch.arange(H) + right[:, None]
    columns = torch.arange(W) + down[:, None]
    ok = ((rows >= 0) & (rows < H))[:, :, None] & ((columns >= 0) & (columns < W))[:, None, :]
    r, c = rows.clamp(0, H - 1), columns.clamp(0, W - 1)
    out = images[torch.arange(B)[:, None, None], :, r[:, :, None], c[:, None, :]].permute(0, 3, 1, 2)
    return out * ok[:, None]


# === exercise: shift-images | function: shift_images | kind: plain | what is wrong: the edge pixels are repeated into what comes in from outside, no zeros
# told: named
# now: named
# says: the edge is repeated
def shift_images(images, down, right):
    B, C, H, W = images.shape
    rows = (torch.arange(H)[None] - down[:, None]).clamp(0, H - 1)
    columns = (torch.arange(W)[None] - right[:, None]).clamp(0, W - 1)
    b = torch.arange(B).view(B, 1, 1, 1)
    c = torch.arange(C).view(1, C, 1, 1)
    return images[b, c, rows.view(B, 1, H, 1), columns.view(B, 1, 1, W)]


# === exercise: confusion | function: confusion | kind: subtle | what is wrong: index assignment with += counts each pair of label and prediction once
# told: named
# now: named
# says: equal pairs count once
def confusion(predictions, labels, classes):
    m = torch.zeros(classes, classes, dtype=torch.long)
    m[labels, predictions] += 1
    both = (m + m.mT).triu(1)
    a, b = divmod(int(both.argmax()), classes)
    return m, (a, b)


# === exercise: confusion | function: confusion | kind: double | what is wrong: rows are predictions and columns labels AND the pair is the largest entry off the diagonal in one direction only
# told: named
# now: named
# says: rows and columns exchanged, and one direction only
def confusion(predictions, labels, classes):
    m = [[0] * classes for _ in range(classes)]
    for p, l in zip(predictions.tolist(), labels.tolist()):
        m[p][l] += 1
    best = max(
        ((i, j) for i in range(classes) for j in range(classes) if i != j),
        key=lambda ij: m[ij[0]][ij[1]],
    )
    return torch.tensor(m), (min(best), max(best))


# === exercise: confusion | function: confusion | kind: subtle | what is wrong: of equal pairs the last in reading order is returned
# told: named
# now: named
# says: of equal pairs the last
def confusion(predictions, labels, classes):
    m = torch.bincount(labels * classes + predictions, minlength=classes**2).view(classes, classes)
    pair, most = (0, 1), -1
    for a in range(classes):
        for b in range(a + 1, classes):
            total = int(m[a, b] + m[b, a])
            if total >= most:
                pair, most = (a, b), total
    return m, pair


# === exercise: calibration-error | function: calibration_error | kind: subtle | what is wrong: a confidence of exactly 1 falls into a bin of its own that the loop never looks at
# told: named
# now: named
# says: a confidence of 1 has no bin
def calibration_error(probabilities, labels, bins):
    conf, pred = probabilities.max(-1)
    hit = (pred == labels).to(conf.dtype)
    number = (conf * bins).floor().long()
    total = conf.new_zeros(())
    for m in range(bins):
        here = number == m
        if here.any():
            total = total + here.sum() / len(conf) * (hit[here].mean() - conf[here].mean()).abs()
    return total


# === exercise: calibration-error | function: calibration_error | kind: double | what is wrong: the bins are averaged without their weights, over those that are not empty AND the difference has no absolute value
# told: wrong
# now: named
# says: every bin counts alike, and differences of opposite signs cancel
def calibration_error(probabilities, labels, bins):
    conf, pred = probabilities.max(-1)
    which = (conf * bins).long().clamp(max=bins - 1)
    gaps = []
    for m in which.unique():
        s = which == m
        gaps.append((pred[s] == labels[s]).float().mean() - conf[s].mean())
    return torch.stack(gaps).mean()


# === exercise: calibration-error | function: calibration_error | kind: subtle | what is wrong: an edge belongs to the bin below it, (a, b] as in bucketize, not to the bin above
# told: named
# now: named
# says: an edge belongs to the bin below
def calibration_error(probabilities, labels, bins):
    conf, pred = probabilities.max(dim=1)
    edges = torch.linspace(0, 1, bins + 1, dtype=conf.dtype)
    result = 0.0
    for low, high in zip(edges[:-1], edges[1:]):
        inside = (conf > low) & (conf <= high)
        if inside.sum() > 0:
            acc = (pred[inside] == labels[inside]).to(conf.dtype).mean()
            result += inside.to(conf.dtype).mean() * abs(acc - conf[inside].mean())
    return torch.as_tensor(result)


# === exercise: position-similarity | function: position_similarity | kind: plain | what is wrong: only one of the two vectors is divided by its length
# told: named
# now: named
# says: only one of two lengths
def position_similarity(table, rows, columns):
    n = rows * columns
    if len(table) not in (n, n + 1):
        raise ValueError(f"{len(table)} rows")
    t = table[-n:]
    unit = t / t.norm(dim=-1, keepdim=True)
    return (unit @ t.T).view(rows, columns, rows, columns)


# === exercise: position-similarity | function: position_similarity | kind: double | what is wrong: the class token is taken for the last row AND rows and columns of the grid are exchanged
# told: named
# now: named
# says: the last position left out in place of the first, and rows and columns of the grid exchanged
def position_similarity(table, rows, columns):
    n = rows * columns
    if table.shape[0] == n + 1:
        table = table[:-1]
    elif table.shape[0] != n:
        raise ValueError("rows do not fit")
    s = torch.cosine_similarity(table[:, None], table[None], dim=-1)
    return s.reshape(columns, rows, columns, rows)


# === exercise: read-by-the-head | function: read_by_the_head | kind: subtle | what is wrong: column 0 is left out but the rest is not divided by its sum
# told: named
# now: named
# says: the sum is not 1
def read_by_the_head(rollouts, rows, columns, pooling):
    if pooling == "class":
        read = rollouts[:, 0, 1:]
    else:
        read = rollouts.mean(dim=1)
    return read.reshape(-1, rows, columns)


# === exercise: read-by-the-head | function: read_by_the_head | kind: double | what is wrong: the mean is over the inputs and not over the outputs AND with a class token column 0 is read, not row 0
# told: named
# now: named
# says: the mean over the inputs
def read_by_the_head(rollouts, rows, columns, pooling):
    if pooling == "class":
        read = rollouts[:, 1:, 0]
        read = read / read.sum(dim=-1, keepdim=True)
    else:
        read = rollouts.mean(dim=2)
        read = read / read.sum(dim=-1, keepdim=True)
    return read.unflatten(1, (rows, columns))


# === exercise: read-by-the-head | function: read_by_the_head | kind: subtle | what is wrong: divided by the sum of the whole batch and not of each picture
# told: named
# now: named
# says: one sum for the whole batch
def read_by_the_head(rollouts, rows, columns, pooling):
    shares = rollouts[:, 0, 1:] if pooling == "class" else rollouts.mean(1)
    shares = shares / shares.sum() * (1 if pooling == "class" else len(shares))
    return shares.view(len(rollouts), rows, columns)
