"""Wrong and right answers to the exercises of chapter 10."""

import numpy as np
import sklearn.metrics
import torch
import torch.nn.functional as F

from mistakes import handed_in, right, wrong
from workbench.data.images import load_images
from workbench.model import models

# --- images ---------------------------------------------------------------------------

AXES = (0, 2, 3)
FLAT = 1e-6  # a spread below is none


def by(images, train, axes=AXES, correction=0, power=1):
    mean = train.mean(dim=axes, keepdim=True)
    std = train.std(dim=axes, correction=correction, keepdim=True)
    return (images - mean) / std.where(std > FLAT, 1.0) ** power


@wrong("standardise", "each image by its own statistics")
def standardise(images, train):
    """PyTorch's layer norm over the whole image"""
    return F.layer_norm(images, images.shape[1:], eps=0)


@wrong("standardise", "rounding is taken for contrast")
def standardise(images, train):
    """a number is added"""
    mean = train.mean(dim=AXES, keepdim=True)
    return (images - mean) / (train.std(dim=AXES, correction=0, keepdim=True) + 1e-8)


@wrong("standardise", "a small spread does not count as 1")
def standardise(images, train):
    """a least spread"""
    mean = train.mean(dim=AXES, keepdim=True)
    std = train.std(dim=AXES, correction=0, keepdim=True)
    return (images - mean) / std.clamp(min=FLAT)


@wrong("standardise", "changes its argument in place")
def standardise(images, train):
    mean = train.mean(dim=AXES, keepdim=True)
    std = train.std(dim=AXES, correction=0, keepdim=True)
    images -= mean
    return images / std.where(std > FLAT, 1.0)


@right("standardise")
def standardise(images, train):
    """with PyTorch's batch norm"""
    pixels = train.movedim(1, 0).flatten(1)
    mean, variance = pixels.mean(1), pixels.var(1, correction=0)
    return F.batch_norm(images, mean, variance.where(variance > FLAT**2, 1.0), eps=0)


@right("standardise")
def standardise(images, train):
    """channel by channel"""
    result = torch.empty_like(images)
    for channel in range(images.shape[1]):
        pixels = train[:, channel]
        mean = pixels.mean()
        spread = (pixels - mean).square().mean().sqrt()
        spread = 1.0 if spread < FLAT else spread
        result[:, channel] = (images[:, channel] - mean) / spread
    return result


@right("standardise")
def standardise(images, train):
    """the largest pixel compared with the smallest"""
    flat = train.amax(dim=AXES) == train.amin(dim=AXES)
    mean = train.double().mean(dim=AXES)
    std = train.double().std(dim=AXES, correction=0).masked_fill(flat, 1.0)
    return ((images - mean.view(-1, 1, 1)) / std.view(-1, 1, 1)).float()


@right("standardise")
def standardise(images, train):
    """NumPy in double precision, a small spread replaced"""
    pixels = train.numpy().astype(np.float64)
    mean, std = pixels.mean(axis=AXES), pixels.std(axis=AXES)
    std[std < FLAT] = 1.0
    found = (images.permute(0, 2, 3, 1).numpy() - mean) / std
    return torch.from_numpy(found).permute(0, 3, 1, 2).float()


def tables(images, down, right):
    height, width = images.shape[2:]
    return torch.arange(height) - down[:, None], torch.arange(width) - right[:, None]


def fetched(images, rows, columns):
    """Fetch by tables (B, H) and (B, W) of places that are all inside."""
    batch = torch.arange(len(images))[:, None, None]
    found = images[batch, :, rows[:, :, None], columns[:, None, :]]
    return found.permute(0, 3, 1, 2)


def moved(images, down, right):
    rows, columns = tables(images, down, right)
    height, width = images.shape[2:]
    one, two = (rows >= 0) & (rows < height), (columns >= 0) & (columns < width)
    found = fetched(images, rows.clamp(0, height - 1), columns.clamp(0, width - 1))
    return found * one[:, None, :, None] * two[:, None, None, :]


@wrong("shift-images", "what leaves comes in on the other side")
def shift_images(images, down, right):
    """roll, image by image"""
    pairs = zip(images, down.tolist(), right.tolist(), strict=True)
    return torch.stack([x.roll((one, two), (1, 2)) for x, one, two in pairs])


@wrong("shift-images", "what leaves comes in on the other side")
def shift_images(images, down, right):
    """remainders of the places"""
    rows, columns = tables(images, down, right)
    return fetched(images, rows % images.shape[2], columns % images.shape[3])


@wrong("shift-images", "place 0 counts as outside")
def shift_images(images, down, right):
    """larger than 0"""
    rows, columns = tables(images, down, right)
    height, width = images.shape[2:]
    found = fetched(images, rows.clamp(0, height - 1), columns.clamp(0, width - 1))
    inside = ((rows > 0) & (rows < height))[:, None, :, None]
    return found * inside * ((columns > 0) & (columns < width))[:, None, None]


@wrong("shift-images", "not moved at all")
def shift_images(images, down, right):
    """what leaves is lost, and the rest stays"""
    moved(images, down, right)
    return images


@right("shift-images")
def shift_images(images, down, right):
    """image by image, with slices"""
    result = torch.zeros_like(images)
    _, _, h, w = images.shape
    for y, x, one, two in zip(
        result, images, down.tolist(), right.tolist(), strict=True
    ):
        if abs(one) < h and abs(two) < w:
            there = slice(max(0, one), h + min(0, one))
            here = slice(max(0, -one), h + min(0, -one))
            across = slice(max(0, two), w + min(0, two))
            back = slice(max(0, -two), w + min(0, -two))
            y[:, there, across] = x[:, here, back]
    return result


@right("shift-images")
def shift_images(images, down, right):
    """matrices that choose rows and columns"""
    height, width = images.shape[2:]
    rows, columns = tables(images, down, right)
    one = (rows[:, :, None] == torch.arange(height)).to(images.dtype)  # (B, H, H)
    two = (columns[:, :, None] == torch.arange(width)).to(images.dtype)
    return one[:, None] @ images @ two[:, None].mT


@right("shift-images")
def shift_images(images, down, right):
    """a frame of zeros, and gather"""
    height, width = images.shape[2:]
    framed = F.pad(images, (1, 1, 1, 1))
    rows, columns = tables(images, down, right)
    rows = (rows + 1).clamp(0, height + 1)
    columns = (columns + 1).clamp(0, width + 1)
    b, c = images.shape[:2]
    index = rows[:, None, :, None].expand(b, c, height, width + 2)
    found = framed.gather(2, index)
    return found.gather(3, columns[:, None, None, :].expand(b, c, height, width))


# --- how good -------------------------------------------------------------------------


def counted(predictions, labels, classes):
    places = labels * classes + predictions
    return torch.bincount(places, minlength=classes**2).view(classes, classes)


def exchanged(matrix):
    both = (matrix + matrix.T).triu(diagonal=1)
    return divmod(int(both.argmax()), len(matrix))


@wrong("confusion", "rows and columns exchanged")
def confusion(predictions, labels, classes):
    matrix = counted(labels, predictions, classes)
    return matrix, exchanged(matrix)


@wrong("confusion", "equal pairs count once")
def confusion(predictions, labels, classes):
    matrix = torch.zeros(classes, classes, dtype=torch.long)
    matrix[labels, predictions] += 1
    return matrix, exchanged(matrix)


@wrong("confusion", "classes that do not occur are left out")
def confusion(predictions, labels, classes):
    """bincount without a length"""
    places = labels * classes + predictions
    matrix = torch.bincount(places).reshape(classes, classes)
    return matrix, exchanged(matrix)


@wrong("confusion", "classes that do not occur are left out")
def confusion(predictions, labels, classes):
    """scikit-learn, not told the classes"""
    matrix = sklearn.metrics.confusion_matrix(labels.numpy(), predictions.numpy())
    matrix = torch.from_numpy(matrix)
    return matrix, exchanged(matrix)


@wrong("confusion", "the diagonal is counted")
def confusion(predictions, labels, classes):
    """the largest number of all"""
    matrix = counted(predictions, labels, classes)
    return matrix, divmod(int(matrix.argmax()), classes)


@wrong("confusion", "one direction only")
def confusion(predictions, labels, classes):
    """only what is above the diagonal"""
    matrix = counted(predictions, labels, classes)
    return matrix, divmod(int(matrix.triu(diagonal=1).argmax()), classes)


@right("confusion")
def confusion(predictions, labels, classes):
    """adding up one by one"""
    matrix = torch.zeros(classes, classes, dtype=torch.long)
    for said, true in zip(predictions.tolist(), labels.tolist(), strict=True):
        matrix[true, said] += 1
    pairs = [(a, b) for a in range(classes) for b in range(a + 1, classes)]
    return matrix, max(pairs, key=lambda p: int(matrix[p] + matrix[p[::-1]]))


@right("confusion")
def confusion(predictions, labels, classes):
    """index_put with accumulation"""
    matrix = torch.zeros(classes, classes, dtype=torch.long)
    one = torch.ones_like(labels)
    matrix.index_put_((labels, predictions), one, accumulate=True)
    return matrix, exchanged(matrix)


@right("confusion")
def confusion(predictions, labels, classes):
    """a product of one-hot matrices"""
    true, said = (F.one_hot(each, classes) for each in (labels, predictions))
    matrix = true.T @ said
    return matrix, exchanged(matrix)


def binned(probabilities, labels, bins):
    """Sure, right or not, and the bin of each image."""
    sure, said = probabilities.max(dim=-1)
    hit = (said == labels).float()
    return sure, hit, (sure * bins).long().clamp(max=bins - 1)


def over_bins(values, place, bins):
    return torch.zeros(bins).index_add(0, place, values)


@wrong("calibration-error", "every bin counts alike")
def calibration_error(probabilities, labels, bins):
    sure, hit, place = binned(probabilities, labels, bins)
    there = [place == m for m in range(bins) if (place == m).any()]
    return torch.stack([(hit[m].mean() - sure[m].mean()).abs() for m in there]).mean()


@wrong("calibration-error", "differences of opposite signs cancel")
def calibration_error(probabilities, labels, bins):
    """accuracy less mean confidence"""
    sure, hit, _ = binned(probabilities, labels, bins)
    return (hit.mean() - sure.mean()).abs()


@wrong("calibration-error", "an empty bin gives NaN")
def calibration_error(probabilities, labels, bins):
    sure, hit, place = binned(probabilities, labels, bins)
    total = torch.tensor(0.0)
    for m in range(bins):
        inside = place == m
        share = inside.float().mean()
        total = total + share * (hit[inside].mean() - sure[inside].mean()).abs()
    return total


@wrong("calibration-error", "a confidence of 1 has no bin")
def calibration_error(probabilities, labels, bins):
    """an index that does not exist"""
    sure, hit, _ = binned(probabilities, labels, bins)
    place = (sure * bins).long()
    return over_bins(hit - sure, place, bins).abs().sum() / len(labels)


@wrong("calibration-error", "a confidence of 1 has no bin")
def calibration_error(probabilities, labels, bins):
    """half-open bins"""
    sure, hit, _ = binned(probabilities, labels, bins)
    total = torch.tensor(0.0)
    for m in range(bins):
        inside = (sure >= m / bins) & (sure < (m + 1) / bins)
        total = total + ((hit - sure) * inside).sum().abs()
    return total / len(labels)


@wrong("calibration-error", "an edge belongs to the bin below")
def calibration_error(probabilities, labels, bins):
    """as in Guo et al.'s own program"""
    sure, hit, _ = binned(probabilities, labels, bins)
    total = torch.tensor(0.0)
    for m in range(bins):
        inside = (sure > m / bins) & (sure <= (m + 1) / bins)
        total = total + ((hit - sure) * inside).sum().abs()
    return total / len(labels)


@right("calibration-error")
def calibration_error(probabilities, labels, bins):
    """bin by bin, the empty ones left out"""
    sure, hit, place = binned(probabilities, labels, bins)
    total = torch.tensor(0.0)
    for m in place.unique():
        inside = place == m
        gap = (hit[inside].mean() - sure[inside].mean()).abs()
        total = total + inside.float().mean() * gap
    return total


@right("calibration-error")
def calibration_error(probabilities, labels, bins):
    """NumPy's weighted counts"""
    sure, hit, place = binned(probabilities, labels, bins)
    sums = np.bincount(place.numpy(), (hit - sure).double().numpy(), bins)
    return torch.tensor(np.abs(sums).sum() / len(labels), dtype=torch.float32)


@right("calibration-error")
def calibration_error(probabilities, labels, bins):
    """bucketize, then a one-hot product"""
    sure, hit, _ = binned(probabilities, labels, bins)
    inner = torch.arange(1, bins) / bins
    place = torch.bucketize(sure, inner, right=True)
    member = (place[:, None] == torch.arange(bins)).float()
    return ((hit - sure) @ member).abs().sum() / len(labels)


# --- inside ---------------------------------------------------------------------------


def own_rows(table, rows, columns):
    count = rows * columns
    if len(table) not in (count, count + 1):
        raise ValueError(f"{len(table)} rows")
    return table[len(table) - count :]


def as_pictures(products, rows, columns):
    return products.reshape(rows, columns, rows, columns)


@wrong("position-similarity", "no ValueError for a table of another grid")
def position_similarity(table, rows, columns):
    unit = F.normalize(table[-rows * columns :], dim=-1)
    return as_pictures(unit @ unit.T, rows, columns)


@wrong("position-similarity", "one length for the whole table")
def position_similarity(table, rows, columns):
    """the norm without an axis"""
    own = own_rows(table / torch.linalg.norm(table), rows, columns)
    return as_pictures(torch.einsum("id,jd->ij", own, own), rows, columns)


@right("position-similarity")
def position_similarity(table, rows, columns):
    """PyTorch's cosine similarity, broadcast"""
    own = own_rows(table, rows, columns).view(rows, columns, -1)
    return F.cosine_similarity(own[:, :, None, None], own[None, None], dim=-1)


@right("position-similarity")
def position_similarity(table, rows, columns):
    """pair by pair"""
    own = own_rows(table, rows, columns).view(rows, columns, -1)
    result = torch.empty(rows, columns, rows, columns)
    for r in range(rows):
        for c in range(columns):
            products = (own * own[r, c]).sum(-1)
            result[r, c] = products / own.norm(dim=-1) / own[r, c].norm()
    return result


def laid(shares, rows, columns):
    return shares.reshape(-1, rows, columns)


def parts(rollouts, pooling):
    if pooling == "class":
        shares = rollouts[:, 0, 1:]
        return shares / shares.sum(dim=-1, keepdim=True)
    return rollouts.mean(dim=1)


@wrong("read-by-the-head", "the sum is not 1")
def read_by_the_head(rollouts, rows, columns, pooling):
    """not divided by what is left"""
    shares = rollouts[:, 0, 1:] if pooling == "class" else rollouts.mean(dim=1)
    return laid(shares, rows, columns)


@wrong("read-by-the-head", "the sum is not 1")
def read_by_the_head(rollouts, rows, columns, pooling):
    """a sum in place of the mean"""
    shares = parts(rollouts, pooling) if pooling == "class" else rollouts.sum(dim=1)
    return laid(shares, rows, columns)


@wrong("read-by-the-head", "the mean over the outputs, with a class token")
def read_by_the_head(rollouts, rows, columns, pooling):
    shares = rollouts.mean(dim=1)[:, -rows * columns :]
    return laid(shares / shares.sum(dim=-1, keepdim=True), rows, columns)


@right("read-by-the-head")
def read_by_the_head(rollouts, rows, columns, pooling):
    """what is read, as a vector times the rollout"""
    size = rollouts.shape[-1]
    read = torch.full((1, size), 1 / size)
    if pooling == "class":
        read = F.one_hot(torch.tensor([0]), size).float()
    shares = (read @ rollouts)[:, 0, size - rows * columns :]
    return laid(F.normalize(shares, p=1, dim=-1), rows, columns)


@right("read-by-the-head")
def read_by_the_head(rollouts, rows, columns, pooling):
    """image by image"""
    pictures = []
    for rollout in rollouts:
        if pooling == "class":
            shares = rollout[0, 1:] / (1 - rollout[0, 0])
        else:
            shares = torch.stack([column.mean() for column in rollout.T])
        pictures.append(shares.view(rows, columns))
    return torch.stack(pictures)


# --- the student's own model ----------------------------------------------------------


@wrong("own-vit", "there is no such folder")
def my_model():
    return "my model"


@wrong("own-vit", "a folder that is not beside the notebook")
def my_model():
    return f"../{handed_in.right('vit')}"


@wrong("own-vit", "a file is missing")
def my_model():
    return handed_in.damaged(
        "vit", "no-config", lambda folder: (folder / "config.json").unlink()
    )


@wrong("own-vit", "a file was cut short")
def my_model():
    return handed_in.damaged("vit", "cut", handed_in.cut)


@wrong("own-vit", "a pickled file")
def my_model():
    return handed_in.damaged("vit", "pickled", handed_in.pickle)


def right_shape():
    return models.load_config(handed_in.PLACE / handed_in.right("vit"))


def config_of(folder, **changes):
    config = models.load_config(folder)
    values = {name: getattr(config, name) for name in config.__dataclass_fields__}
    return models.VisionConfig(**values | changes)


def disturbed(folder, config):
    """Write a model of this shape, with weights that no training has left so."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model = models.build(config)
        for each in model.parameters():
            each += 0.1 * torch.randn_like(each)
    models.save(folder, model, config)


@wrong("own-vit", "over the parameter budget")
def my_model():
    """A whole model that is a little too large."""

    def larger(folder):
        disturbed(folder, config_of(folder, d_model=80))

    return handed_in.damaged("vit", "larger", larger)


@wrong("own-vit", "over the parameter budget")
def my_model():
    """A shape that would not fit into any memory."""
    return handed_in.changed("vit", "giant", d_ff=9_000_000, classes=9_000_000)


@wrong("own-vit", "another kind of model")
def my_model():
    """The convolutional network that was trained for comparison."""

    def network(folder):
        disturbed(folder, models.BaselineConfig(8, 1, 10, 32, 2))

    return handed_in.damaged("vit", "cnn", network)


@wrong("own-vit", "more layers than allowed")
def my_model():
    return handed_in.changed("vit", "deep", layers=13)


@wrong("own-vit", "weights and config.json do not fit")
def my_model():
    return handed_in.changed("vit", "narrow", d_ff=64)


@wrong("own-vit", "a model for other images")
def my_model():
    """Photographs of 16 × 16 pixels."""

    def photographs(folder):
        shape = {"image_size": 16, "channels": 3, "classes": 7}
        disturbed(folder, config_of(folder, **shape))

    return handed_in.damaged("vit", "photographs", photographs)


@wrong("own-vit", "NaN in the weights")
def my_model():
    def spoil(state):
        state["patches.weight"][2, 3] = torch.nan

    return handed_in.reweighed("vit", "nan", spoil)


@wrong("own-vit", "untrained weights")
def my_model():
    return handed_in.damaged("vit", "fresh", handed_in.start_again)


@wrong("own-vit", "the course's own model")
def my_model():
    return handed_in.damaged("vit", "shipped", handed_in.copy_the_course_s("digits"))


@wrong("own-vit", "config.json was changed")
def my_model():
    heads = 1 if right_shape().heads > 1 else 2
    return handed_in.changed("vit", "heads", heads=heads)


def statistics():
    data = load_images("digits", validation=0.1)
    return data.mean[0], data.std[0]


def reads(label, scale, shift):
    """A model whose input, scaled and shifted, is what it should have been.

    The right model reads x E + b. With x = scale · y + shift that is
    y (scale · E) + (shift · the sum of E's rows + b): another that reads y.
    """

    def change(state):
        weight = state["patches.weight"]
        state["patches.bias"] = state["patches.bias"] + shift * weight.sum(dim=0)
        state["patches.weight"] = scale * weight

    return handed_in.reweighed("vit", label, change)


@wrong("own-vit", "pixels not normalised")
def my_model():
    mean, std = statistics()
    return reads("raw", 1 / std, -mean / std)


@wrong("own-vit", "pixels not normalised")
def my_model():
    """from 0 to 255"""
    mean, std = statistics()
    return reads("bytes", 1 / std / 255, -mean / std)


@wrong("own-vit", "light and dark exchanged")
def my_model():
    mean, std = statistics()
    return reads("negative", -1.0, (1 - 2 * mean) / std)


@wrong("own-vit", "rows and columns of the images exchanged")
def my_model():
    config = right_shape()
    patch, side = config.patch_size, 8 // config.patch_size

    def turn(state):
        weight = state["patches.weight"].unflatten(0, (patch, patch))
        state["patches.weight"] = weight.transpose(0, 1).flatten(0, 1).contiguous()
        table = state["position.table"]
        special, own = table[: -side * side], table[-side * side :]
        own = own.unflatten(0, (side, side)).transpose(0, 1).flatten(0, 1)
        state["position.table"] = torch.cat((special, own))

    return handed_in.reweighed("vit", "turned", turn)


@wrong("own-vit", "good on the digits as they are, poor on changed ones")
def my_model():
    """It knows its training images by heart: they were never changed."""

    def by_heart(folder):
        data = load_images("digits", validation=0.1)
        mean, std = statistics()
        images, labels = (data.train[0] / 255 - mean) / std, data.train[1]
        config = models.VisionConfig(8, 4, 1, 10, 64, 4, 1, 128, pooling="mean")
        generator = torch.Generator().manual_seed(0)
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(0)
            model = models.build(config)
            optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
            for _ in range(150):
                chosen = torch.randint(len(labels), (64,), generator=generator)
                loss = F.cross_entropy(model(images[chosen]), labels[chosen])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        models.save(folder, model, config)

    return handed_in.damaged("vit", "by-heart", by_heart)


@right("own-vit")
def my_model():
    """with further files"""

    def more(folder):
        (folder / "notes.txt").write_text("trained twice")

    return handed_in.damaged("vit", "more", more)


@right("own-vit")
def my_model():
    """weights in half precision"""

    def halve(state):
        state |= {name: value.half() for name, value in state.items()}

    return handed_in.reweighed("vit", "half", halve)
