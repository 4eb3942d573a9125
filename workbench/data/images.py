"""Images for the Vision Transformer, from three sources.

data = load_images("digits")
images, labels = data.train
"""

import hashlib
import itertools
import math
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import numpy as np
import torch
from PIL import Image, ImageOps

from workbench.data import digits
from workbench.errors import WorkbenchError

Part = tuple[torch.Tensor, torch.Tensor]  # (N, C, H, W) uint8, (N,) long

CIFAR_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
CIFAR_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
CIFAR_TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
CIFAR_TEST = ("test_batch.bin",)
CIFAR_IMAGES = 10_000  # in each of the six files
CIFAR_SHAPE = (3, 32, 32)
CIFAR_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
SUFFIXES = (".png", ".jpg", ".jpeg")
PARTS = ("train", "validation", "test")
HELD_OUT = 0.2


@dataclass(frozen=True)
class ImageData:
    """A set of labelled images, all of one size.

    Attributes:
        name: what `load_images` was asked for.
        classes: their names; a label is an index into them.
        train: images (N, C, H, W), uint8, and labels (N,), long.
        test: the same.
        mean: of each channel over the training images, from 0 to 1.
        std: standard deviation of each channel, likewise.
        validation: images and labels held out for choosing settings, or None.
        copy: which copy of the data this is, for the record of a run.
    """

    name: str
    classes: tuple[str, ...]
    train: Part
    test: Part
    mean: tuple[float, ...]
    std: tuple[float, ...]
    validation: Part | None = None
    copy: str = ""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        channels, height, width = self.train[0].shape[1:]
        return channels, height, width


def load_images(
    name: str, data_dir: Path | None = None, validation: float = 0.0
) -> ImageData:
    """Load a data set.

    Args:
        name: "digits", "cifar10", or "images:PATH". PATH is a folder with a folder of
            PNG or JPEG files for each class, or with such folders in train/ and test/,
            or with train.npz and test.npz; or one .npz file. Where no test images are
            set apart, a fifth of each class becomes the test set.
        data_dir: where the files of "cifar10" are; None: they are downloaded.
        validation: share of each class's training images to hold out.

    Raises:
        WorkbenchError: if the name is unknown or a file cannot be used.
    """
    if name == "digits":
        return assembled(name, *load_digits_parts(), validation)
    if name == "cifar10":
        return assembled(name, *load_cifar(data_dir), validation)
    kind, _, path = name.partition(":")
    if kind != "images" or not path:
        raise WorkbenchError(
            f"unknown images {name!r}: use digits, cifar10 or images:PATH"
        )
    return assembled(name, *load_path(Path(path).expanduser()), validation)


def assembled(
    name: str,
    classes: tuple[str, ...],
    parts: dict[str, Part],
    copy: str,
    validation: float,
) -> ImageData:
    """Make the data set; hold out what is asked for and measure what is trained on."""
    if "test" not in parts:
        parts["train"], parts["test"] = hold_out(parts["train"], HELD_OUT, seed=0)
    if validation:
        parts["train"], parts["validation"] = hold_out(
            parts["train"], validation, seed=1
        )
    mean, std = channel_statistics(parts["train"][0])
    return ImageData(
        name,
        classes,
        parts["train"],
        parts["test"],
        mean,
        std,
        parts.get("validation"),
        copy,
    )


def hold_out(part: Part, share: float, seed: int) -> tuple[Part, Part]:
    """Split at random, the same share of every class; the same seed, the same split.

    Returns:
        What stays and what is held out, both in their old order.

    Raises:
        WorkbenchError: if a class has too few images to be on both sides.
    """
    if not 0 < share < 1:
        raise WorkbenchError(f"the share to hold out must be between 0 and 1: {share}")
    images, labels = part
    generator = torch.Generator().manual_seed(seed)
    held = torch.zeros(len(labels), dtype=torch.bool)
    for label in labels.unique().tolist():
        places = (labels == label).nonzero()[:, 0]
        count = max(1, round(share * len(places)))
        if count == len(places):
            raise WorkbenchError(
                f"class {label} has {len(places)} image(s): too few to hold out "
                f"{share:.0%}; add images of it"
            )
        order = torch.randperm(len(places), generator=generator)
        held[places[order[:count]]] = True
    return (images[~held], labels[~held]), (images[held], labels[held])


def subset(data: ImageData, count: int) -> ImageData:
    """Keep some of the training images, of every class as many (or one more).

    Always the same ones, and a smaller subset is part of a larger one. Mean and
    standard deviation are measured anew: nothing is known of images left out.

    Args:
        data: its validation and test images stay.
        count: how many training images to keep.

    Raises:
        WorkbenchError: if there are not so many, or fewer than classes.
    """
    images, labels = data.train
    if not len(data.classes) <= count <= len(labels):
        raise WorkbenchError(
            f"{data.name} has {len(labels)} images to train on, of "
            f"{len(data.classes)} classes: {count} cannot be taken"
        )
    generator = torch.Generator().manual_seed(2)
    turn = torch.empty(len(labels), dtype=torch.long)  # of an image in its class
    for label in labels.unique().tolist():
        places = (labels == label).nonzero()[:, 0]
        turn[places] = torch.randperm(len(places), generator=generator)
    order = (turn * len(data.classes) + labels).argsort()
    chosen = order[:count].sort().values
    mean, std = channel_statistics(images[chosen])
    train = (images[chosen], labels[chosen])
    return replace(data, train=train, mean=mean, std=std)


def channel_statistics(
    images: torch.Tensor,
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return each channel's mean and standard deviation, of values from 0 to 1.

    Counted by value: exact, and without a copy of all images as floating-point numbers.
    """
    values = torch.arange(256, dtype=torch.float64) / 255
    means, deviations = [], []
    for channel in images.unbind(dim=1):
        counts = torch.bincount(channel.flatten(), minlength=256).double()
        share = counts / counts.sum()
        mean = (share * values).sum()
        variance = (share * (values - mean).square()).sum()
        means.append(mean.item())
        # a channel without contrast is left as it is, not divided by nothing
        deviations.append(math.sqrt(variance.item()) or 1.0)
    return tuple(means), tuple(deviations)


# --- digits ---------------------------------------------------------------------------


def load_digits_parts() -> tuple[tuple[str, ...], dict[str, Part], str]:
    """Load scikit-learn's 1797 digits, 8 × 8; their greys 0 … 16 become 0 … 255."""
    greys, labels = digits.load()
    images = (greys.double() * (255 / digits.LARGEST)).round().to(torch.uint8)
    classes = tuple(map(str, range(10)))
    return classes, {"train": (images, labels)}, "scikit-learn"


# --- CIFAR-10 -------------------------------------------------------------------------


def load_cifar(
    data_dir: Path | None,
) -> tuple[tuple[str, ...], dict[str, Part], str]:
    """Load CIFAR-10 from the official binary files or from the JPEG copy.

    Raises:
        WorkbenchError: if the folder holds neither, or a file cannot be used.
    """
    if data_dir is None:
        return load_cifar_archive(download_cifar())
    data_dir = Path(data_dir).expanduser()
    archive = data_dir / PurePosixPath(CIFAR_URL).name
    for folder in (data_dir, data_dir / "cifar-10-batches-bin"):
        if (folder / CIFAR_TEST[0]).is_file():
            return load_cifar_files(folder.joinpath)
    if archive.is_file():
        check_sha256(archive, CIFAR_SHA256)
        return load_cifar_archive(archive)
    if (data_dir / "train.npz").is_file():
        return load_packed_folder(data_dir)
    raise WorkbenchError(
        f"{data_dir} holds no CIFAR-10: put {archive.name} from {CIFAR_URL} there, or "
        f"its files data_batch_1.bin … test_batch.bin, or train.npz and test.npz"
    )


def download_cifar() -> Path:
    """Download the official archive once, check it, and return where it is.

    Raises:
        WorkbenchError: if it cannot be had, or is not what it should be.
    """
    import pooch  # only who downloads needs it

    folder = pooch.os_cache("transformers-by-hand")
    downloader = pooch.HTTPDownloader(progressbar=sys.stderr.isatty())
    try:
        path = pooch.retrieve(
            CIFAR_URL,
            known_hash=f"sha256:{CIFAR_SHA256}",
            fname=PurePosixPath(CIFAR_URL).name,
            path=folder,
            downloader=downloader,
        )
    except (OSError, ValueError) as error:  # requests' errors are OSErrors
        raise WorkbenchError(
            f"CIFAR-10 could not be downloaded from {CIFAR_URL} ({error}); try again, "
            f"or get the file by other means and name its folder with --data-dir"
        ) from error
    return Path(path)


def check_sha256(path: Path, expected: str) -> None:
    """Refuse a file that is not the one that is meant.

    Raises:
        WorkbenchError: if the checksum is another.
    """
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise WorkbenchError(
            f"{path} is not the official file: its SHA-256 is {found}, not {expected}; "
            f"delete it and download it again"
        )


def load_cifar_archive(
    path: Path,
) -> tuple[tuple[str, ...], dict[str, Part], str]:
    """Read the six files out of the archive; nothing is unpacked on the disk.

    Raises:
        WorkbenchError: if it cannot be read.
    """
    wanted, found = {*CIFAR_TRAIN, *CIFAR_TEST}, {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = PurePosixPath(member.name).name
                if member.isfile() and name in wanted:
                    content = archive.extractfile(member)
                    assert content is not None  # it is a file
                    found[name] = BytesIO(content.read())
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise WorkbenchError(
            f"{path} cannot be read ({error}); delete it and download it again"
        ) from error
    if missing := sorted(wanted - set(found)):
        raise WorkbenchError(f"{path} does not hold {', '.join(missing)}")
    return load_cifar_files(lambda name: found[name])


def load_cifar_files(
    get: Callable[[str], Path | BinaryIO],
) -> tuple[tuple[str, ...], dict[str, Part], str]:
    """Read the official files, each found by its name."""
    parts = {}
    for part, names in (("train", CIFAR_TRAIN), ("test", CIFAR_TEST)):
        pieces = [read_cifar_file(get(name), name) for name in names]
        images, labels = zip(*pieces, strict=True)
        parts[part] = torch.cat(images), torch.cat(labels)
    return CIFAR_CLASSES, parts, "official binary files"


def read_cifar_file(file: Path | BinaryIO, name: str) -> Part:
    """Read one file: for each image a byte with its label, then red, green and blue.

    Raises:
        WorkbenchError: if it is missing, has another length, or a label is no class.
    """
    try:
        data = file.read_bytes() if isinstance(file, Path) else file.read()
    except OSError as error:
        raise WorkbenchError(f"{file} cannot be read: {error.strerror}") from error
    where = file if isinstance(file, Path) else name
    length = 1 + math.prod(CIFAR_SHAPE)
    if len(data) != CIFAR_IMAGES * length:
        raise WorkbenchError(
            f"{where} has {len(data):,} bytes, not {CIFAR_IMAGES * length:,}: it was "
            f"cut short or is another file; download it again from {CIFAR_URL}"
        )
    records = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(-1, length)
    labels = records[:, 0].long()
    check_labels(labels, len(CIFAR_CLASSES), where)
    return records[:, 1:].reshape(-1, *CIFAR_SHAPE).clone(), labels


def check_labels(labels: torch.Tensor, classes: int, where: Path | str) -> None:
    """Refuse labels that are no index into the classes.

    Raises:
        WorkbenchError: naming the first of them.
    """
    wrong = ((labels < 0) | (labels >= classes)).nonzero()[:, 0].tolist()
    if wrong:
        raise WorkbenchError(
            f"{where}: image {wrong[0]} has the label {labels[wrong[0]]}, but there "
            f"are {classes} classes; the file is damaged or is another one"
        )


# --- one's own images -----------------------------------------------------------------


def load_path(path: Path) -> tuple[tuple[str, ...], dict[str, Part], str]:
    """Load a folder of images, or .npz files.

    Raises:
        WorkbenchError: if there are none, or one cannot be used.
    """
    if path.is_file() and path.suffix == ".npz":
        classes, part = read_packed(path)
        return classes, {"train": part}, str(path)
    if not path.is_dir():
        raise WorkbenchError(f"{path} is no folder and no .npz file")
    if (path / "train.npz").is_file():
        return load_packed_folder(path)
    roots = {name: path / name for name in PARTS if (path / name).is_dir()}
    if "train" not in roots:
        roots = {"train": path}
    classes = class_names(roots["train"])
    parts: dict[str, Part] = {}
    for name, root in roots.items():
        if class_names(root) != classes:
            raise WorkbenchError(
                f"{root} must hold the same folders as {roots['train']}: "
                f"{', '.join(classes)}"
            )
        parts[name] = read_folder(root, classes)
    check_same_shape(parts, path)
    return classes, parts, str(path)


def class_names(root: Path) -> tuple[str, ...]:
    """Return the names of the folders in a folder, sorted.

    Raises:
        WorkbenchError: if there are fewer than two.
    """
    folders = (each for each in root.iterdir() if each.is_dir())
    names = sorted(each.name for each in folders if not each.name.startswith("."))
    if len(names) < 2:
        raise WorkbenchError(
            f"{root} must hold a folder of images for each class, at least two; "
            f"it holds {len(names)}"
        )
    return tuple(names)


def read_folder(root: Path, classes: tuple[str, ...]) -> Part:
    """Read the images of every class.

    Raises:
        WorkbenchError: naming the file that is broken, of another size, or no image.
    """
    images, labels, paths = [], [], []
    for label, name in enumerate(classes):
        files = sorted(each for each in (root / name).iterdir() if is_meant(each))
        if not files:
            raise WorkbenchError(f"{root / name} holds no images (PNG or JPEG)")
        images += [decode(path, path) for path in files]
        labels += [label] * len(files)
        paths += files
    return stacked(images, paths), torch.tensor(labels)


def is_meant(path: Path) -> bool:
    """Whether a file in a class's folder should be an image.

    Raises:
        WorkbenchError: if it seems to be one, but of a kind that is not read.
    """
    if path.name.startswith(".") or path.name == "Thumbs.db":
        return False  # what file managers leave behind
    if path.suffix.lower() not in SUFFIXES:
        raise WorkbenchError(f"{path} is no PNG or JPEG file: convert it or remove it")
    return True


def decode(file: Path | BinaryIO, where: Path | str) -> np.ndarray:
    """Decode a PNG or JPEG: (H, W) if it is grey, else (H, W, 3); uint8.

    Raises:
        WorkbenchError: if it is broken; says where it is.
    """
    try:
        with Image.open(file, formats=("PNG", "JPEG")) as opened:
            if opened.mode not in ("1", "L", "P", "RGB", "RGBA", "LA", "CMYK"):
                raise ValueError(f"its mode {opened.mode} is not 8 bits a channel")
            opened.load()
            image: Image.Image = opened
            if "exif" in image.info:  # the camera may have been turned
                image = ImageOps.exif_transpose(image)
            grey = image.mode in ("1", "L", "LA")
            return np.array(image.convert("L" if grey else "RGB"))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise WorkbenchError(
            f"{where} is no image that can be read ({error}); replace or remove it"
        ) from error


def stacked(images: list[np.ndarray], names: Iterable[Any]) -> torch.Tensor:
    """Put images together, (N, C, H, W); grey among coloured ones become coloured.

    Raises:
        WorkbenchError: naming the first that is of another size.
    """
    size = images[0].shape[:2]
    for image, name in zip(images, names, strict=True):
        if image.shape[:2] != size:
            height, width = image.shape[:2]
            raise WorkbenchError(
                f"{name} is {width} × {height} pixels, the first image "
                f"{size[1]} × {size[0]}: all must have one size; resize or remove it"
            )
    channels = max(3 if image.ndim == 3 else 1 for image in images)
    result = np.empty((len(images), *size, channels), dtype=np.uint8)
    for place, image in zip(result, images, strict=True):
        place[...] = image if image.ndim == 3 else image[..., None]
    return torch.from_numpy(result.transpose(0, 3, 1, 2).copy())


def check_same_shape(parts: dict[str, Part], path: Path) -> None:
    """Refuse parts whose images differ in channels or size.

    Raises:
        WorkbenchError: if they do.
    """
    shapes = {name: tuple(images.shape[1:]) for name, (images, _) in parts.items()}
    if len(set(shapes.values())) > 1:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise WorkbenchError(f"{path}: the parts differ in channels or size: {listed}")


def load_packed_folder(
    folder: Path,
) -> tuple[tuple[str, ...], dict[str, Part], str]:
    """Read train.npz and test.npz (and validation.npz, if it is there).

    Raises:
        WorkbenchError: if one cannot be used, or they do not go together.
    """
    classes: tuple[str, ...] | None = None
    parts: dict[str, Part] = {}
    for part in PARTS:
        path = folder / f"{part}.npz"
        if not path.is_file():
            continue
        names, parts[part] = read_packed(path)
        if classes is not None and names != classes:
            raise WorkbenchError(f"{path} has other classes than train.npz beside it")
        classes = names
    check_same_shape(parts, folder)
    return classes or (), parts, f"JPEG copy ({folder.name})"


def read_packed(path: Path) -> tuple[tuple[str, ...], Part]:
    """Read images packed in one file.

    It holds `jpeg`, the bytes of all image files end to end; `offsets` (N + 1,), where
    each begins and the last one ends; `labels` (N,); and `classes`, their names.

    Raises:
        WorkbenchError: if the file or an image in it is broken.
    """
    data, offsets, labels, names = packed_arrays(path)
    images = [
        decode(BytesIO(data[start:end].tobytes()), f"{path}: image {number}")
        for number, (start, end) in enumerate(itertools.pairwise(offsets))
    ]
    where = (f"{path}: image {number}" for number in range(len(images)))
    return names, (stacked(images, where), labels)


def packed_arrays(
    path: Path,
) -> tuple[np.ndarray, np.ndarray, torch.Tensor, tuple[str, ...]]:
    """Read the four arrays of a packed file, and check that they go together.

    Raises:
        WorkbenchError: if they do not, or the file is broken.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            data, offsets = file["jpeg"], file["offsets"].astype(np.int64)
            labels = torch.from_numpy(file["labels"].astype(np.int64))
            names = tuple(str(name) for name in file["classes"])
    except KeyError as error:
        raise WorkbenchError(f"{path} has no array {error.args[0]}") from error
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise WorkbenchError(
            f"{path} cannot be read ({error}); it was cut short or is no .npz file: "
            f"copy it again"
        ) from error
    fits = (
        data.ndim == offsets.ndim == labels.ndim == 1
        and data.dtype == np.uint8
        and 1 <= len(labels) == len(offsets) - 1
        and offsets[0] == 0
        and offsets[-1] == len(data)
        and bool((np.diff(offsets) >= 0).all())
    )
    if not fits:
        raise WorkbenchError(
            f"{path}: jpeg (uint8), offsets (N + 1, from 0 to the length of jpeg) and "
            f"labels (N) do not go together"
        )
    check_labels(labels, len(names), path)
    return data, offsets, labels, names
