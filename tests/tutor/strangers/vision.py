"""Wrong answers to chapter 10, written from its notebook alone."""

# ruff: noqa: B905, E501, F811, RUF059, SIM108

import torch

from tests.tutor.bank import stranger


@stranger(
    "standardise",
    "one mean and spread for all channels",
    kind="plain",
    first="named",
    verdict="named",
    says="one mean for all channels",
)
def standardise(images, train):
    mean = train.mean()
    std = train.std(correction=0)
    if std < 1e-6:
        std = 1.0
    return (images - mean) / std


@stranger(
    "standardise",
    "1e-6 is added to the spread",
    kind="subtle",
    first="told",
    verdict="named",
    says="a small spread does not count as 1",
)
def standardise(images, train):
    mean = train.mean(dim=(0, 2, 3), keepdim=True)
    std = train.std(dim=(0, 2, 3), keepdim=True, correction=0)
    return (images - mean) / (std + 1e-6)


@stranger(
    "standardise",
    "the spread is clamped at 1e-6",
    kind="subtle",
    first="told",
    verdict="named",
    says="a small spread does not count as 1",
)
def standardise(images, train):
    axes = (0, 2, 3)
    mean = train.mean(dim=axes, keepdim=True)
    std = train.std(dim=axes, keepdim=True, correction=0).clamp(min=1e-6)
    return (images - mean) / std


@stranger(
    "standardise",
    "the variance in place of the spread AND measured on the images",
    kind="double",
    first="told",
    verdict="named",
    says="statistics of the images themselves, and divided by the variance",
)
def standardise(images, train):
    mean = images.mean(dim=(0, 2, 3), keepdim=True)
    var = images.var(dim=(0, 2, 3), keepdim=True, correction=0)
    var = torch.where(var < 1e-6, 1.0, var)
    return (images - mean) / var


@stranger(
    "standardise",
    "mean of each place, not of each channel",
    kind="subtle",
    first="named",
    verdict="named",
    says="each pixel by its own statistics",
)
def standardise(images, train):
    mean = train.mean(dim=0, keepdim=True)
    std = train.std(dim=0, keepdim=True, correction=0)
    std = torch.where(std < 1e-6, torch.ones_like(std), std)
    return (images - mean) / std


@stranger(
    "shift-images",
    "what leaves below comes in at the other side",
    kind="subtle",
    first="shown",
    verdict="named",
    says="what leaves comes in on the other side",
)
def shift_images(images, down, right):
    b, c, h, w = images.shape
    rows = torch.arange(h) - down[:, None]
    columns = torch.arange(w) - right[:, None]
    inside = (rows < h)[:, :, None] & (columns < w)[:, None, :]
    batch = torch.arange(b)[:, None, None]
    found = images[
        batch, :, rows.clamp(-h, h - 1)[:, :, None], columns.clamp(-w, w - 1)[:, None]
    ]
    return found.permute(0, 3, 1, 2) * inside[:, None]


@stranger(
    "shift-images",
    "the border is repeated and not zero",
    kind="subtle",
    first="named",
    verdict="named",
    says="the edge is repeated",
)
def shift_images(images, down, right):
    b, _, h, w = images.shape
    rows = (torch.arange(h) - down[:, None]).clamp(0, h - 1)
    columns = (torch.arange(w) - right[:, None]).clamp(0, w - 1)
    batch = torch.arange(b)[:, None, None]
    found = images[batch, :, rows[:, :, None], columns[:, None, :]]
    return found.movedim(-1, 1)


@stranger(
    "shift-images",
    "a loop that fails for shifts of zero or less: slices of -0",
    kind="subtle",
    first="shown",
    verdict="named",
    says="images that are not moved are lost",
)
def shift_images(images, down, right):
    result = torch.zeros_like(images)
    for i in range(len(images)):
        d, r = int(down[i]), int(right[i])
        if d > 0:
            moved = torch.zeros_like(images[i])
            moved[:, d:] = images[i][:, :-d]
        else:
            moved = torch.zeros_like(images[i])
            moved[:, : images.shape[2] + d] = images[i][:, -d:]
        if r > 0:
            result[i][:, :, r:] = moved[:, :, :-r]
        elif r < 0:
            result[i][:, :, :r] = moved[:, :, -r:]
    return result


@stranger(
    "shift-images",
    "up and down exchanged AND the first image's shift to the right for all",
    kind="double",
    first="shown",
    verdict="named",
    says="up and down exchanged, and one shift for the whole batch",
)
def shift_images(images, down, right):
    b, _, h, w = images.shape
    rows = torch.arange(h) + down[:, None]
    columns = (torch.arange(w) - right[0]).expand(b, w)
    inside = ((rows >= 0) & (rows < h))[:, :, None]
    inside = inside & ((columns >= 0) & (columns < w))[:, None, :]
    batch = torch.arange(b)[:, None, None]
    found = images[
        batch, :, rows.clamp(0, h - 1)[:, :, None], columns.clamp(0, w - 1)[:, None]
    ]
    return found.movedim(-1, 1) * inside[:, None]


@stranger(
    "confusion",
    "rows are predictions",
    kind="plain",
    first="named",
    verdict="named",
    says="rows and columns exchanged",
)
def confusion(predictions, labels, classes):
    places = predictions * classes + labels
    matrix = torch.bincount(places, minlength=classes**2).view(classes, classes)
    both = (matrix + matrix.T).triu(diagonal=1)
    place = int(both.argmax())
    return matrix, (place // classes, place % classes)


@stranger(
    "confusion",
    "the largest entry in one direction only",
    kind="subtle",
    first="named",
    verdict="named",
    says="one direction only",
)
def confusion(predictions, labels, classes):
    places = labels * classes + predictions
    matrix = torch.bincount(places, minlength=classes**2).view(classes, classes)
    wrong = matrix.clone().fill_diagonal_(0)
    place = int(wrong.argmax())
    return matrix, tuple(sorted((place // classes, place % classes)))


@stranger(
    "confusion",
    "of equal pairs the last is taken",
    kind="subtle",
    first="useless",
    verdict="named",
    says="of equal pairs the last",
)
def confusion(predictions, labels, classes):
    matrix = torch.zeros(classes, classes, dtype=torch.long)
    for guess, label in zip(predictions.tolist(), labels.tolist()):
        matrix[label, guess] += 1
    best, pair = -1, (0, 1)
    for a in range(classes):
        for b in range(a + 1, classes):
            both = int(matrix[a, b] + matrix[b, a])
            if both >= best:
                best, pair = both, (a, b)
    return matrix, pair


@stranger(
    "confusion",
    "the largest sum with the diagonal left in AND the matrix in shares",
    kind="double",
    first="named",
    verdict="named",
    says="shares in place of counts, and the diagonal is counted",
)
def confusion(predictions, labels, classes):
    places = labels * classes + predictions
    matrix = torch.bincount(places, minlength=classes**2).view(classes, classes)
    both = (matrix + matrix.T).triu()
    place = int(both.argmax())
    return matrix / matrix.sum(), (place // classes, place % classes)


@stranger(
    "confusion",
    "only a taken for b with a < b is counted",
    kind="subtle",
    first="named",
    verdict="named",
    says="one direction only",
)
def confusion(predictions, labels, classes):
    places = labels * classes + predictions
    matrix = torch.bincount(places, minlength=classes**2).view(classes, classes)
    place = int(matrix.triu(1).argmax())
    return matrix, (place // classes, place % classes)


@stranger(
    "calibration-error",
    "an edge belongs to the bin below (ceil - 1)",
    kind="subtle",
    first="named",
    verdict="named",
    says="an edge belongs to the bin below",
)
def calibration_error(probabilities, labels, bins):
    confidence, prediction = probabilities.max(dim=-1)
    index = ((confidence * bins).ceil().long() - 1).clamp(0, bins - 1)
    gap = (prediction == labels).float() - confidence
    sums = torch.zeros(bins).index_add(0, index, gap)
    return sums.abs().sum() / len(labels)


@stranger(
    "calibration-error",
    "every bin counts alike, not by its images",
    kind="subtle",
    first="named",
    verdict="named",
    says="every bin counts alike",
)
def calibration_error(probabilities, labels, bins):
    confidence, prediction = probabilities.max(dim=-1)
    index = (confidence * bins).long().clamp(max=bins - 1)
    right = (prediction == labels).float()
    gaps = []
    for m in range(bins):
        here = index == m
        if here.any():
            gaps.append((right[here].mean() - confidence[here].mean()).abs())
    return torch.stack(gaps).mean()


@stranger(
    "calibration-error",
    "the sum is not divided by N AND bins between the smallest and largest confidence",
    kind="double",
    first="useless",
    verdict="named",
    says="bins between the smallest and the largest confidence, and not divided by the number of images",
)
def calibration_error(probabilities, labels, bins):
    confidence, prediction = probabilities.max(dim=-1)
    low, high = confidence.min(), confidence.max()
    index = ((confidence - low) / (high - low) * bins).long().clamp(0, bins - 1)
    gap = (prediction == labels).float() - confidence
    sums = torch.zeros(bins).index_add(0, index, gap)
    return sums.abs().sum()


@stranger(
    "calibration-error",
    "the confidence is the probability of the label",
    kind="subtle",
    first="named",
    verdict="named",
    says="the probability of the right class",
)
def calibration_error(probabilities, labels, bins):
    prediction = probabilities.argmax(dim=-1)
    confidence = probabilities[torch.arange(len(labels)), labels]
    index = (confidence * bins).long().clamp(max=bins - 1)
    gap = (prediction == labels).float() - confidence
    sums = torch.zeros(bins).index_add(0, index, gap)
    return sums.abs().sum() / len(labels)


@stranger(
    "position-similarity",
    "the last row is dropped, not the first",
    kind="subtle",
    first="named",
    verdict="named",
    says="the last position left out in place of the first",
)
def position_similarity(table, rows, columns):
    count = rows * columns
    if len(table) not in (count, count + 1):
        raise ValueError("wrong number of rows")
    table = table[:count]
    unit = table / table.norm(dim=-1, keepdim=True)
    return (unit @ unit.T).reshape(rows, columns, rows, columns)


@stranger(
    "position-similarity",
    "the axes split as (columns, rows)",
    kind="subtle",
    first="named",
    verdict="named",
    says="rows and columns of the grid exchanged",
)
def position_similarity(table, rows, columns):
    count = rows * columns
    if table.shape[0] not in (count, count + 1):
        raise ValueError("table has another number of rows")
    table = table[-count:]
    unit = table / table.norm(dim=1, keepdim=True)
    similar = (unit @ unit.T).reshape(columns, rows, columns, rows)
    return similar.permute(1, 0, 3, 2)


@stranger(
    "position-similarity",
    "the table is centred first AND longer tables are not refused",
    kind="double",
    first="named",
    verdict="named",
    says="the mean position subtracted first",
)
def position_similarity(table, rows, columns):
    count = rows * columns
    if len(table) < count:
        raise ValueError("too few rows")
    table = table[-count:]
    table = table - table.mean(dim=0)
    unit = torch.nn.functional.normalize(table, dim=-1)
    return (unit @ unit.T).view(rows, columns, rows, columns)


@stranger(
    "read-by-the-head",
    "not divided by what is left",
    kind="plain",
    first="named",
    verdict="named",
    says="the sum is not 1",
)
def read_by_the_head(rollouts, rows, columns, pooling):
    if pooling == "class":
        shares = rollouts[:, 0, 1:]
    else:
        shares = rollouts.mean(dim=1)
    return shares.reshape(-1, rows, columns)


@stranger(
    "read-by-the-head",
    "divided by the sum over the whole batch",
    kind="subtle",
    first="told",
    verdict="named",
    says="one sum for the whole batch",
)
def read_by_the_head(rollouts, rows, columns, pooling):
    if pooling == "class":
        shares = rollouts[:, 0, 1:]
        shares = shares / shares.sum() * len(rollouts)
    else:
        shares = rollouts.mean(dim=1)
    return shares.reshape(-1, rows, columns)


@stranger(
    "read-by-the-head",
    "with the mean only the diagonal is read",
    kind="subtle",
    first="named",
    verdict="named",
    says="each token's share in itself",
)
def read_by_the_head(rollouts, rows, columns, pooling):
    if pooling == "class":
        shares = rollouts[:, 0, 1:]
    else:
        shares = rollouts.diagonal(dim1=1, dim2=2)
    shares = shares / shares.sum(dim=-1, keepdim=True)
    return shares.reshape(-1, rows, columns)


@stranger(
    "read-by-the-head",
    "a softmax over the patches AND the mean over all rows for the class, too",
    kind="double",
    first="useless",
    verdict="named",
    says="the mean over the outputs, with a class token, and a softmax of what are shares already",
)
def read_by_the_head(rollouts, rows, columns, pooling):
    shares = rollouts.mean(dim=1)
    if pooling == "class":
        shares = shares[:, 1:].softmax(dim=-1)
    return shares.reshape(-1, rows, columns)


# --- a second round, after the checks were mended from the first ---


@stranger(
    "standardise",
    "a spread below 1e-6 becomes 1e-6, not 1",
    kind="subtle",
    first="named",
    verdict="named",
    says="a small spread does not count as 1",
    round=2,
)
def standardise(images, train):
    mean = train.mean(dim=(0, 2, 3), keepdim=True)
    std = train.std(dim=(0, 2, 3), keepdim=True, correction=0)
    return (images - mean) / std.clamp(min=1e-6)


@stranger(
    "standardise",
    "the spread is the mean of the spreads of the single images",
    first="shown",
    verdict="named",
    says="the mean of the spreads of single images",
    round=2,
)
def standardise(images, train):
    mean = train.mean(dim=(0, 2, 3), keepdim=True)
    std = train.std(dim=(2, 3), correction=0, keepdim=True)
    std = std.mean(dim=0, keepdim=True)
    std = torch.where(std < 1e-6, torch.ones_like(std), std)
    return (images - mean) / std


@stranger(
    "shift-images",
    "places beyond the last row or column are not set to 0: the edge is repeated",
    kind="subtle",
    first="told",
    verdict="named",
    says="the edge is repeated",
    round=2,
)
def shift_images(images, down, right):
    b, _, h, w = images.shape
    rows = torch.arange(h) - down.unsqueeze(1)
    columns = torch.arange(w) - right.unsqueeze(1)
    inside = (rows >= 0)[:, :, None] & (columns >= 0)[:, None, :]
    rows, columns = rows.clamp(0, h - 1), columns.clamp(0, w - 1)
    batch = torch.arange(b)[:, None, None]
    found = images[batch, :, rows[:, :, None], columns[:, None, :]]
    found = found.permute(0, 3, 1, 2)
    return found * inside.unsqueeze(1)


@stranger(
    "shift-images",
    "left and right are exchanged"
    " AND a place counts as inside if its row or its column is",
    kind="double",
    first="shown",
    verdict="named",
    says="left and right exchanged, and inside by its row or by its column",
    round=2,
)
def shift_images(images, down, right):
    b, c, h, w = images.shape
    rows = torch.arange(h)[None] - down[:, None]
    columns = torch.arange(w)[None] + right[:, None]
    rows_inside = (rows >= 0) & (rows < h)
    columns_inside = (columns >= 0) & (columns < w)
    inside = rows_inside[:, :, None] | columns_inside[:, None, :]
    batch = torch.arange(b)[:, None, None]
    found = images[
        batch, :, rows.clamp(0, h - 1)[:, :, None], columns.clamp(0, w - 1)[:, None]
    ]
    found = found.permute(0, 3, 1, 2)
    return torch.where(inside[:, None], found, 0.0)


@stranger(
    "confusion",
    "of the two directions the larger one counts, not their sum",
    kind="subtle",
    first="told",
    verdict="told",
    says="one direction only",
    round=2,
)
def confusion(predictions, labels, classes):
    places = labels * classes + predictions
    matrix = torch.bincount(places, minlength=classes**2).view(classes, classes)
    both = torch.maximum(matrix, matrix.T).triu(diagonal=1)
    place = int(both.argmax())
    return matrix, (place // classes, place % classes)


@stranger(
    "confusion",
    "the rows are the predictions AND the pair holds tensors",
    kind="double",
    first="named",
    verdict="named",
    round=2,
    says="rows and columns exchanged, and tensors in place of integers",
)
def confusion(predictions, labels, classes):
    matrix = torch.zeros(classes, classes, dtype=torch.long)
    for prediction, label in zip(predictions, labels):
        matrix[prediction, label] += 1
    both = torch.triu(matrix + matrix.T, diagonal=1)
    place = both.flatten().argmax()
    return matrix, (place // classes, place % classes)


@stranger(
    "calibration-error",
    "an edge belongs to the bin below it",
    kind="subtle",
    first="named",
    verdict="named",
    says="an edge belongs to the bin below",
    round=2,
)
def calibration_error(probabilities, labels, bins):
    confidence, prediction = probabilities.max(dim=-1)
    right = (prediction == labels).to(probabilities.dtype)
    index = (torch.ceil(confidence * bins) - 1).long().clamp(min=0)
    sums = torch.zeros(bins, dtype=probabilities.dtype)
    sums = sums.index_add(0, index, right - confidence)
    return sums.abs().sum() / len(labels)


@stranger(
    "calibration-error",
    "the confidence is the probability of the label"
    " AND every bin that is not empty counts the same",
    kind="double",
    first="useless",
    verdict="named",
    says="the probability of the right class, and every bin counts alike",
    round=2,
)
def calibration_error(probabilities, labels, bins):
    confidence = probabilities.gather(1, labels.unsqueeze(1)).squeeze(1)
    right = (probabilities.argmax(dim=1) == labels).float()
    index = (confidence * bins).long().clamp(max=bins - 1)
    gaps = []
    for m in range(bins):
        here = index == m
        if here.any():
            gaps.append((right[here].mean() - confidence[here].mean()).abs())
    return torch.stack(gaps).mean()


@stranger(
    "position-similarity",
    "a table with too many rows is not refused: its last rows are taken",
    kind="subtle",
    first="named",
    verdict="named",
    says="no ValueError for a table of another grid",
    round=2,
)
def position_similarity(table, rows, columns):
    count = rows * columns
    if table.shape[0] < count:
        raise ValueError(f"{table.shape[0]} rows, but {count} patches")
    table = table[-count:]
    unit = table / table.norm(dim=-1, keepdim=True)
    return (unit @ unit.T).reshape(rows, columns, rows, columns)


@stranger(
    "read-by-the-head",
    "with a class token the shares go through a softmax to sum to 1",
    kind="subtle",
    first="named",
    verdict="named",
    says="a softmax of what are shares already",
    round=2,
)
def read_by_the_head(rollouts, rows, columns, pooling):
    if pooling == "class":
        shares = rollouts[:, 0, 1:].softmax(dim=-1)
    else:
        shares = rollouts.mean(dim=1)
    return shares.reshape(-1, rows, columns)


# --- a third round, of what came later ---


@stranger(
    "read-by-the-head",
    "the patches are not divided by what is left: the picture does not sum to 1 with a "
    "class token",
    kind="plain",
    first="named",
    verdict="named",
    says="the sum is not 1",
    round=3,
)
def read_by_the_head(rollouts, rows, columns, pooling):
    if pooling == "class":
        shares = rollouts[:, 0, 1:]
    else:
        shares = rollouts.mean(dim=1)
    return shares.reshape(-1, rows, columns)


@stranger(
    "read-by-the-head",
    "the sum runs over the whole batch: only right for a single image",
    kind="subtle",
    first="named",
    verdict="named",
    says="one sum for the whole batch",
    round=3,
)
def read_by_the_head(rollouts, rows, columns, pooling):
    B = rollouts.shape[0]
    picture = rollouts[:, 0, 1:] if pooling == "class" else rollouts.mean(1)
    picture = picture / picture.sum() * B
    return picture.view(B, rows, columns)


@stranger(
    "read-by-the-head",
    "the class row is normalised by its softmax in place of its sum AND the grid is read "
    "column by column",
    kind="double",
    first="useless",
    verdict="named",
    says="a softmax of what are shares already, and rows and columns of the grid exchanged",
    round=3,
)
def read_by_the_head(rollouts, rows, columns, pooling):
    if pooling == "class":
        shares = torch.softmax(rollouts[:, 0, 1:], dim=-1)
    elif pooling == "mean":
        shares = rollouts.mean(dim=1)
    return shares.reshape(len(rollouts), columns, rows).transpose(1, 2)


@stranger(
    "read-by-the-head",
    "with a class token the mean of all outputs is read, too, not row 0 alone",
    kind="subtle",
    first="named",
    verdict="named",
    says="the mean over the outputs, with a class token",
    round=3,
)
def read_by_the_head(rollouts, rows, columns, pooling):
    shares = rollouts.mean(dim=-2)
    if pooling == "class":
        shares = shares[:, 1:]
    shares = shares / shares.sum(dim=-1, keepdim=True)
    return shares.unflatten(-1, (rows, columns))
