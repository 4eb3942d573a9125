"""Images: what is loaded, what is refused, and batches changed on the device."""

import dataclasses
import io
import math
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pooch
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch.utils._python_dispatch import TorchDispatchMode

from autograder.generator import ROOT
from workbench.data import augmentation, images
from workbench.data.augmentation import OPERATIONS, Augmentation
from workbench.data.image_batches import ImageBatches
from workbench.data.images import hold_out, load_images, subset
from workbench.errors import WorkbenchError
from workbench.use import image_metrics

PLAIN = {"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25), "classes": 4}
JPEG_COPY = ROOT.parent / "shared" / "data" / "cifar10_jpeg"


def noise(count: int = 12, height: int = 8, width: int = 8, channels: int = 3):
    generator = torch.Generator().manual_seed(count)
    size = (count, channels, height, width)
    pixels = torch.randint(0, 256, size, generator=generator, dtype=torch.uint8)
    return pixels, torch.arange(count) % 4


def picture(value: int = 0, size: tuple[int, int] = (6, 5), mode: str = "RGB"):
    generator = np.random.default_rng(value)
    shape = (*size, 3) if mode == "RGB" else size
    return Image.fromarray(generator.integers(0, 256, shape, dtype=np.uint8))


def class_folders(root: Path, names: str = "cat dog", count: int = 5, **options):
    for label, name in enumerate(names.split()):
        (root / name).mkdir(parents=True)
        for number in range(count):
            file = root / name / f"{number}.png"
            picture(10 * label + number, **options).save(file)
    return root


def packed(path: Path, count: int = 6, **changes):
    files = []
    for number in range(count):
        buffer = io.BytesIO()
        picture(number).save(buffer, "PNG")
        files.append(buffer.getvalue())
    arrays = {
        "jpeg": np.frombuffer(b"".join(files), dtype=np.uint8),
        "offsets": np.cumsum([0, *map(len, files)]).astype(np.int32),
        "labels": (np.arange(count) % 2).astype(np.uint8),
        "classes": np.array(["cat", "dog"]),
    }
    arrays |= changes
    np.savez(path, **{k: v for k, v in arrays.items() if v is not None})
    return path


# --- loading --------------------------------------------------------------------------


def test_digits_are_scikit_learns_with_a_fifth_of_each_class_held_out() -> None:
    data = load_images("digits")
    assert data.shape == (1, 8, 8)
    assert data.classes == tuple("0123456789")
    assert data.train[0].dtype == torch.uint8
    assert data.train[1].dtype == torch.long
    everything = load_digits()
    counts = np.bincount(everything.target)
    for label in range(10):
        held = int((data.test[1] == label).sum())
        assert abs(held - counts[label] / 5) <= 0.5
    both = torch.cat((data.train[0], data.test[0])).flatten(1).double() * 16 / 255
    found = sorted(map(tuple, both.round().int().tolist()))
    assert found == sorted(map(tuple, everything.data.astype(int).tolist()))
    again = load_images("digits")
    assert torch.equal(data.test[0], again.test[0])
    with_validation = load_images("digits", validation=0.1)
    assert torch.equal(with_validation.test[0], data.test[0])
    assert len(with_validation.train[0]) + len(with_validation.validation[0]) == len(
        data.train[0]
    )


def test_statistics_are_those_of_the_training_images() -> None:
    pixels, _ = noise(20)
    mean, std = images.channel_statistics(pixels)
    values = pixels.double() / 255
    expected = values.transpose(0, 1).flatten(1)
    torch.testing.assert_close(torch.tensor(mean).double(), expected.mean(dim=1))
    torch.testing.assert_close(
        torch.tensor(std).double(), expected.std(dim=1, correction=0)
    )
    _, flat = images.channel_statistics(torch.full((3, 1, 2, 2), 7, dtype=torch.uint8))
    assert flat == (1.0,)


def test_a_subset_has_as_many_of_every_class_and_grows() -> None:
    data = load_images("digits", validation=0.1)
    before: set[bytes] = set()
    for count in (50, 100, 404):
        part = subset(data, count)
        images, labels = part.train
        sizes = torch.bincount(labels, minlength=10)
        assert sizes.sum() == count and sizes.max() - sizes.min() <= 1
        mine = {image.numpy().tobytes() for image in images}
        assert before <= mine  # the smaller one is part of it
        before = mine
        pixels = images.double() / 255
        assert part.mean[0] == pytest.approx(pixels.mean().item())
        assert part.std[0] == pytest.approx(pixels.std(correction=0).item())
        assert part.test is data.test and part.validation is data.validation


def test_a_subset_of_all_is_all() -> None:
    data = load_images("digits", validation=0.1)
    whole = subset(data, len(data.train[1]))
    for ours, theirs in zip(whole.train, data.train, strict=True):
        assert torch.equal(ours, theirs)
    assert (whole.mean, whole.std) == (data.mean, data.std)


@pytest.mark.parametrize("count", [9, 1296])
def test_a_subset_that_cannot_be_is_refused(count: int) -> None:
    with pytest.raises(WorkbenchError, match="1295 images to train on, of 10"):
        subset(load_images("digits", validation=0.1), count)


def test_hold_out_takes_the_share_of_every_class_and_keeps_all() -> None:
    labels = torch.tensor([0] * 10 + [1] * 20 + [2] * 3)
    pixels = torch.arange(33, dtype=torch.uint8).reshape(-1, 1, 1, 1)
    (kept, kept_labels), (held, held_labels) = hold_out((pixels, labels), 0.2, seed=3)
    assert torch.bincount(held_labels).tolist() == [2, 4, 1]
    assert sorted([*kept.flatten().tolist(), *held.flatten().tolist()]) == [*range(33)]
    assert torch.equal(labels[kept.flatten().long()], kept_labels)
    _, (other, _) = hold_out((pixels, labels), 0.2, seed=4)
    assert not torch.equal(held, other)
    with pytest.raises(WorkbenchError, match=r"class 2 has 1 image\(s\)"):
        hold_out((pixels[:31], labels[:31]), 0.2, seed=0)


def test_a_folder_for_each_class(tmp_path) -> None:
    root = class_folders(tmp_path / "pets")
    (root / "cat" / ".DS_Store").write_text("left behind")
    picture(99).save(root / "dog" / "z.JPG", "JPEG")
    data = load_images(f"images:{root}")
    assert data.classes == ("cat", "dog")
    assert data.shape == (3, 6, 5)
    assert (len(data.train[0]), len(data.test[0])) == (9, 2)
    first = torch.from_numpy(np.array(picture(0))).permute(2, 0, 1)
    everything = torch.cat((data.train[0], data.test[0]))
    labels = torch.cat((data.train[1], data.test[1]))
    place = (everything == first).flatten(1).all(dim=1).nonzero().item()
    assert labels[place] == 0


def test_folders_set_apart_for_testing_are_used_so(tmp_path) -> None:
    for part, count in (("train", 4), ("validation", 2), ("test", 3)):
        class_folders(tmp_path / part, count=count, mode="L")
    data = load_images(f"images:{tmp_path}")
    sizes = [len(each[0]) for each in (data.train, data.validation, data.test)]
    assert sizes == [8, 4, 6]
    assert data.shape == (1, 6, 5)
    (tmp_path / "test" / "cat").rename(tmp_path / "test" / "cow")
    with pytest.raises(WorkbenchError, match=r"same folders as .*train: cat, dog"):
        load_images(f"images:{tmp_path}")


def test_grey_among_coloured_images_and_photographs_on_their_side(tmp_path) -> None:
    class_folders(tmp_path, count=3)
    picture(5, mode="L").save(tmp_path / "cat" / "grey.png")
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned by a quarter
    picture(7, size=(5, 6)).save(tmp_path / "dog" / "turned.jpg", exif=exif)
    data = load_images(f"images:{tmp_path}")
    assert data.shape == (3, 6, 5)


@pytest.mark.parametrize("content", [b"", b"no image", b"\x89PNG\r\n\x1a\n broken"])
def test_one_broken_image_is_named(tmp_path, content) -> None:
    class_folders(tmp_path)
    broken = tmp_path / "dog" / "3.png"
    broken.write_bytes(content)
    with pytest.raises(WorkbenchError, match=r"dog/3\.png.*replace or remove"):
        load_images(f"images:{tmp_path}")


@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_an_image_cut_short_is_named(tmp_path, suffix) -> None:
    class_folders(tmp_path, size=(40, 40))
    cut = tmp_path / "cat" / f"cut.{suffix}"
    picture(3, size=(40, 40)).save(cut)
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    with pytest.raises(WorkbenchError, match=rf"cat/cut\.{suffix} is no image"):
        load_images(f"images:{tmp_path}")


def test_other_bad_folders(tmp_path) -> None:
    with pytest.raises(WorkbenchError, match="no folder"):
        load_images(f"images:{tmp_path / 'nowhere'}")
    with pytest.raises(WorkbenchError, match="unknown images 'cifar11'"):
        load_images("cifar11")
    (tmp_path / "cat").mkdir()
    with pytest.raises(WorkbenchError, match="at least two; it holds 1"):
        load_images(f"images:{tmp_path}")
    class_folders(tmp_path / "more")
    odd = tmp_path / "more" / "dog" / "odd.png"
    picture(1, size=(5, 6)).save(odd)
    with pytest.raises(WorkbenchError, match=r"odd\.png is 6 × 5 pixels"):
        load_images(f"images:{tmp_path / 'more'}")
    odd.rename(odd.with_suffix(".webp"))
    with pytest.raises(WorkbenchError, match=r"odd\.webp is no PNG or JPEG"):
        load_images(f"images:{tmp_path / 'more'}")
    odd.with_suffix(".webp").unlink()
    deep = Image.fromarray(np.zeros((6, 5), dtype=np.uint16))
    deep.save(odd)
    with pytest.raises(WorkbenchError, match=r"odd\.png .*8 bits a channel"):
        load_images(f"images:{tmp_path / 'more'}")
    odd.unlink()
    shutil.rmtree(tmp_path / "more" / "dog")
    (tmp_path / "more" / "dog").mkdir()
    with pytest.raises(WorkbenchError, match="dog holds no images"):
        load_images(f"images:{tmp_path / 'more'}")


def test_packed_files(tmp_path) -> None:
    packed(tmp_path / "train.npz", 6)
    packed(tmp_path / "test.npz", 4)
    data = load_images(f"images:{tmp_path}")
    assert data.classes == ("cat", "dog")
    assert (len(data.train[0]), len(data.test[0])) == (6, 4)
    expected = torch.from_numpy(np.array(picture(5))).permute(2, 0, 1)
    assert torch.equal(data.train[0][5], expected)
    assert data.train[1].tolist() == [0, 1, 0, 1, 0, 1]
    alone = load_images(f"images:{packed(tmp_path / 'all.npz', 20)}")
    assert (len(alone.train[0]), len(alone.test[0])) == (16, 4)
    assert load_images("cifar10", tmp_path).copy.startswith("JPEG copy")


def test_bad_packed_files(tmp_path) -> None:
    path = tmp_path / "p.npz"
    for changes, message in (
        ({"jpeg": None}, "no array jpeg"),
        ({"labels": np.array([0, 1, 2, 0, 0, 0])}, "image 2 has the label 2"),
        ({"labels": np.array([0, 1])}, "do not go together"),
        ({"offsets": np.arange(7)}, "do not go together"),
        ({"classes": np.array(["cat", {}], dtype=object)}, "cannot be read"),
    ):
        packed(path, **changes)
        with pytest.raises(WorkbenchError, match=message):
            load_images(f"images:{path}")
    packed(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(WorkbenchError, match="cut short"):
        load_images(f"images:{path}")
    with np.load(packed(path)) as file:
        data, offsets = file["jpeg"].copy(), file["offsets"]
    data[offsets[4] : offsets[4] + 9] = 0
    with pytest.raises(WorkbenchError, match="image 4 is no image"):
        load_images(f"images:{packed(path, jpeg=data)}")


@pytest.fixture
def cifar(tmp_path, monkeypatch):
    """An archive like the official one, with four images in each of the six files."""
    monkeypatch.setattr(images, "CIFAR_IMAGES", 4)
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    generator = np.random.default_rng(1)
    for name in (*images.CIFAR_TRAIN, *images.CIFAR_TEST):
        records = generator.integers(0, 256, (4, 3073), dtype=np.uint8)
        records[:, 0] %= 10
        (folder / name).write_bytes(records.tobytes())
    (folder / "readme.html").write_text("as in the real one")
    archive = tmp_path / "cifar-10-binary.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(folder, folder.name)
    monkeypatch.setattr(images, "CIFAR_SHA256", pooch.file_hash(str(archive)))
    return archive, folder


def test_cifar_from_its_files_and_from_the_archive(cifar) -> None:
    archive, folder = cifar
    from_files = load_images("cifar10", folder)
    assert (len(from_files.train[0]), len(from_files.test[0])) == (20, 4)
    assert from_files.shape == (3, 32, 32)
    assert from_files.copy == "official binary files"
    raw = (folder / "data_batch_2.bin").read_bytes()[3073 : 2 * 3073]
    assert from_files.train[1][5] == raw[0]
    # 1024 bytes red, row by row, then green, then blue
    assert from_files.train[0][5, 1, 2, 3] == raw[1 + 1024 + 2 * 32 + 3]
    beside = load_images("cifar10", folder.parent)
    shutil.rmtree(folder)
    from_archive = load_images("cifar10", archive.parent)
    for data in (beside, from_archive):
        assert torch.equal(data.train[0], from_files.train[0])
        assert torch.equal(data.test[1], from_files.test[1])


def test_bad_cifar_files(cifar) -> None:
    archive, folder = cifar
    cut = folder / "data_batch_3.bin"
    content = cut.read_bytes()
    cut.write_bytes(content[:-1])
    with pytest.raises(
        WorkbenchError, match=r"data_batch_3\.bin has 12,291 bytes, not"
    ):
        load_images("cifar10", folder)
    cut.write_bytes(bytes([10]) + content[1:])
    with pytest.raises(WorkbenchError, match=r"data_batch_3\.bin: image 0 .* label 10"):
        load_images("cifar10", folder)
    cut.unlink()
    with pytest.raises(WorkbenchError, match=r"data_batch_3\.bin cannot be read"):
        load_images("cifar10", folder)
    shutil.rmtree(folder)
    archive.write_bytes(archive.read_bytes()[:-20])
    with pytest.raises(WorkbenchError, match=r"SHA-256 .* download it again"):
        load_images("cifar10", archive.parent)
    archive.unlink()
    with pytest.raises(WorkbenchError, match="holds no CIFAR-10"):
        load_images("cifar10", archive.parent)


def test_a_download_is_checked_and_kept(cifar, tmp_path, monkeypatch) -> None:
    archive, _ = cifar
    calls = []

    def fetch(url, output, _, content=None):
        calls.append(url)
        data = archive.read_bytes() if content is None else content
        Path(output).write_bytes(data)

    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache")
    monkeypatch.setattr(
        pooch,
        "HTTPDownloader",
        lambda **_: (
            lambda *where: fetch(*where, content=b"a page that says: not found")
        ),
    )
    with pytest.raises(WorkbenchError, match=r"could not be downloaded.*--data-dir"):
        load_images("cifar10")
    monkeypatch.setattr(pooch, "HTTPDownloader", lambda **_: fetch)
    assert len(load_images("cifar10").train[0]) == 20
    load_images("cifar10")
    assert calls == [images.CIFAR_URL] * 2  # the second time it was there

    def offline(*_):
        raise ConnectionError("no network")

    shutil.rmtree(tmp_path / "cache")
    monkeypatch.setattr(pooch, "HTTPDownloader", lambda **_: offline)
    with pytest.raises(WorkbenchError, match=r"no network.*--data-dir"):
        load_images("cifar10")


def test_the_jpeg_copy_of_cifar() -> None:
    """The real file: its first images, for all would take seconds."""
    if not JPEG_COPY.is_dir():
        pytest.skip("the JPEG copy of CIFAR-10 is not here")
    data, offsets, labels, names = images.packed_arrays(JPEG_COPY / "test.npz")
    assert (len(labels), len(offsets)) == (10_000, 10_001)
    assert names == images.CIFAR_CLASSES
    assert torch.bincount(labels).tolist() == [1000] * 10
    first = images.decode(io.BytesIO(data[: offsets[1]].tobytes()), "first")
    assert first.shape == (32, 32, 3)


# --- batches --------------------------------------------------------------------------


def test_evaluation_gives_every_image_once_normalised_and_in_order() -> None:
    pixels, labels = noise(10)
    batches = ImageBatches(pixels, labels, 4, "cpu", **PLAIN)
    found = list(batches.epoch(0))
    assert [len(each[0]) for each in found] == [4, 4, 2]
    assert len(batches) == 3
    assert batches.shapes() == [(4, 3, 8, 8), (2, 3, 8, 8)]
    together = torch.cat([each[0] for each in found])
    torch.testing.assert_close(together, (pixels / 255 - 0.5) / 0.25)
    assert torch.equal(torch.cat([each[1] for each in found]), labels)


def test_training_gives_full_batches_in_another_order_each_epoch() -> None:
    pixels, labels = noise(11)
    batches = ImageBatches(
        pixels, labels, 4, "cpu", seed=5, augment=Augmentation(), **PLAIN
    )
    assert (len(batches), batches.shapes()) == (2, [(4, 3, 8, 8)])
    epochs = [list(batches.epoch(number)) for number in (0, 1, 0)]
    assert all(len(each[0]) == 4 for epoch in epochs for each in epoch)
    joined = [torch.cat([each[0] for each in epoch]) for epoch in epochs]
    assert torch.equal(joined[0], joined[2])
    assert not torch.equal(joined[0], joined[1])
    plain = (pixels / 255 - 0.5) / 0.25
    for image, label in zip(
        joined[1], torch.cat([b[1] for b in epochs[1]]), strict=True
    ):
        place = (plain - image).abs().amax(dim=(1, 2, 3)).argmin()
        torch.testing.assert_close(plain[place], image)
        assert labels[place] == label
    other = ImageBatches(
        pixels, labels, 4, "cpu", seed=6, augment=Augmentation(), **PLAIN
    )
    assert not torch.equal(joined[0], torch.cat([b[0] for b in other.epoch(0)]))


EVERYTHING = Augmentation(
    pad=2, flip=0.5, rotate=10, scale=0.1, shear=0.1, shift=1, brightness=0.3,
    contrast=0.3, saturation=0.3, operations=2, erase=0.5, mixup=0.8, cutmix=1.0,
    mix=0.8, repeats=2, fill="mirror",
)  # fmt: skip


def test_everything_at_once_is_finite_repeatable_and_can_be_taken_up() -> None:
    pixels, labels = noise(24)
    batches = ImageBatches(pixels, labels, 8, "cpu", augment=EVERYTHING, **PLAIN)
    assert len(batches) == 6  # every image twice
    first, again = list(batches.epoch(3)), list(batches.epoch(3))
    rest = list(batches.epoch(3, start=4))
    assert len(rest) == 2
    for whole, other in [
        *zip(first, again, strict=True),
        *zip(first[4:], rest, strict=True),
    ]:
        assert torch.equal(whole[0], other[0])
        assert torch.equal(whole[1], other[1])
    for image, target in first:
        assert image.shape == (8, 3, 8, 8)
        assert image.dtype == torch.float32
        assert image.isfinite().all()
        assert target.shape == (8, 4)
        torch.testing.assert_close(target.sum(dim=1), torch.ones(8))


def test_batches_do_not_disturb_what_is_drawn_elsewhere() -> None:
    pixels, labels = noise(8)
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    list(ImageBatches(pixels, labels, 4, "cpu", augment=EVERYTHING, **PLAIN).epoch(0))
    assert torch.equal(torch.rand(3), expected)


class NothingWaits(TorchDispatchMode):
    """Refuse what would make the host wait for a device, on any device.

    These are: asking for a value, a size that depends on values, and a tensor made of
    the host's numbers, which must be sent.
    """

    waiting = (
        "_local_scalar_dense",
        "nonzero",
        "lift_fresh",
        "unique",
        "masked_select",
    )

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = str(function.overloadpacket).removeprefix("aten.")
        assert not name.startswith(self.waiting), f"{name} makes the host wait"
        return function(*args, **(kwargs or {}))


def test_no_batch_waits_for_the_device() -> None:
    pixels, labels = noise(16)
    batches = ImageBatches(pixels, labels, 8, "cpu", augment=EVERYTHING, **PLAIN)
    with NothingWaits():
        assert len(list(batches.epoch(0))) == 4
    with NothingWaits(), pytest.raises(AssertionError, match="wait"):
        torch.tensor([1.0, 2.0]).sum().item()


def test_the_size_of_a_batch_does_not_change_what_happens_to_an_image() -> None:
    pixels, labels = noise(12)
    how = dataclasses.replace(EVERYTHING, mixup=0.0, cutmix=0.0)
    small, large = (
        ImageBatches(pixels, labels, size, "cpu", augment=how, **PLAIN)
        for size in (4, 12)
    )
    one, other = (torch.cat([x for x, _ in each.epoch(0)]) for each in (small, large))
    torch.testing.assert_close(one, other)


def test_a_batch_that_cannot_be_filled_is_refused() -> None:
    pixels, labels = noise(6)
    with pytest.raises(WorkbenchError, match="from 6 images"):
        ImageBatches(pixels, labels, 7, "cpu", augment=Augmentation(), **PLAIN)
    with pytest.raises(WorkbenchError, match="choose a multiple"):
        ImageBatches(pixels, labels, 4, "cpu", augment=Augmentation(repeats=3), **PLAIN)
    data = load_images("digits")
    with pytest.raises(WorkbenchError, match="digits has no validation images"):
        ImageBatches.of(data, "validation", 8, "cpu")


def test_the_students_functions_do_the_mixing() -> None:
    pixels, labels = noise(8)
    seen = []

    class Parts:
        @staticmethod
        def cutmix(x, targets, box, permutation):
            seen.append((box, permutation))
            return x, targets

    how = Augmentation(cutmix=1.0)
    batches = ImageBatches(pixels, labels, 4, "cpu", augment=how, parts=Parts, **PLAIN)
    list(batches.epoch(0))
    assert len(seen) == 2
    for (top, left, height, width), permutation in seen:
        assert 0 <= top <= top + height <= 8
        assert 0 <= left <= left + width <= 8
        assert sorted(permutation.tolist()) == [0, 1, 2, 3]
        assert (permutation != torch.arange(4)).all()


# --- augmentation ---------------------------------------------------------------------


def changed(pixels, how, **columns):
    """Augment with given numbers; what is not given is in the middle: no change."""
    numbers = torch.full((len(pixels), len(how.columns)), 0.5)
    for name, value in columns.items():
        numbers[:, how.columns.index(name.replace("_", "-"))] = value
    return how.apply(pixels, numbers, torch.full((pixels.shape[1],), 0.5))


def test_nothing_is_changed_unless_it_is_asked_for() -> None:
    pixels, _ = noise(4, 6, 9)
    assert torch.equal(changed(pixels, Augmentation()), pixels.float() / 255)
    for how in (
        Augmentation(pad=3),
        Augmentation(rotate=20, scale=0.3, shear=0.2, shift=2),
        Augmentation(brightness=0.5, contrast=0.5, saturation=0.5),
    ):
        torch.testing.assert_close(
            changed(pixels, how), pixels / 255, atol=1e-5, rtol=0
        )


@pytest.mark.parametrize("fill", ["black", "edge", "mirror"])
def test_pad_and_crop_against_numpy(fill) -> None:
    pixels, _ = noise(5, 6, 9)
    how = Augmentation(pad=2, flip=0.5, fill=fill)
    numbers = how.draw(5, torch.Generator().manual_seed(2))
    found = how.apply(pixels, numbers, torch.zeros(3))
    mode = {"black": "constant", "edge": "edge", "mirror": "symmetric"}[fill]
    padded = np.pad(pixels.numpy(), ((0, 0), (0, 0), (2, 2), (2, 2)), mode=mode)
    flips = 0
    for index, row in enumerate(numbers.tolist()):
        top, left = math.floor(row[0] * 5), math.floor(row[1] * 5)
        window = padded[index, :, top : top + 6, left : left + 9]
        if row[2] < 0.5:  # columns of the window, right to left
            window, flips = window[:, :, ::-1], flips + 1
        assert np.array_equal((found[index] * 255).round().numpy(), window)
    assert 0 < flips < 5


def test_turns_and_shifts_against_exact_ones() -> None:
    pixels, _ = noise(3, 7, 7)
    whole = pixels / 255
    quarter = changed(pixels, Augmentation(rotate=90), rotate=1.0)
    torch.testing.assert_close(quarter, whole.rot90(1, (2, 3)), atol=1e-4, rtol=0)
    pixels, _ = noise(3, 6, 9)  # not square: a pixel is a pixel both ways
    whole = pixels / 255
    across = changed(pixels, Augmentation(shift=3), shift_x=1.0)
    torch.testing.assert_close(across[..., :6], whole[..., 3:], atol=1e-4, rtol=0)
    assert across[..., 6:].abs().max() < 1e-4
    down = changed(pixels, Augmentation(shift=2), shift_y=0.0)
    torch.testing.assert_close(down[..., 2:, :], whole[..., :4, :], atol=1e-4, rtol=0)
    half = changed(pixels, Augmentation(rotate=180), rotate=1.0)
    torch.testing.assert_close(half, whole.flip(2, 3), atol=1e-4, rtol=0)


def test_colours_against_their_definition() -> None:
    pixels, _ = noise(3)
    whole = pixels / 255
    dark = changed(pixels, Augmentation(brightness=0.4), brightness=0.0)
    torch.testing.assert_close(dark, 0.6 * whole)
    without = changed(pixels, Augmentation(saturation=1.0), saturation=0.0)
    red, green, blue = whole.unbind(dim=1)
    luminance = 0.299 * red + 0.587 * green + 0.114 * blue
    torch.testing.assert_close(without, luminance[:, None].expand(-1, 3, -1, -1))
    flat = changed(pixels, Augmentation(contrast=1.0), contrast=0.0)
    assert flat.std(dim=(2, 3)).max() < 1e-6
    bright = changed(pixels, Augmentation(brightness=1.0), brightness=0.999)
    assert bright.max() <= 1


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_changes_its_images_alone_and_stays_in_range(name) -> None:
    pixels, _ = noise(4, 6, 9)
    pixels = pixels // 2 + 40  # room for autocontrast
    how = Augmentation(operations=1, magnitude=1.0)
    mine = (OPERATIONS.index(name) + 0.5) / len(OPERATIONS)
    which = torch.tensor([mine, 0.5 / len(OPERATIONS), mine, mine])
    found = changed(pixels, how, **{"operation_0": which, "amount_0": 0.9})
    moved = (found - pixels / 255).abs().amax(dim=(1, 2, 3)) > 1e-3
    assert moved.tolist() == [name != "identity", False, *([name != "identity"] * 2)]
    assert found.min() >= 0
    assert found.max() <= 1


def test_posterize_solarize_and_autocontrast() -> None:
    x = torch.tensor([0.2, 0.4, 0.6]).reshape(1, 1, 1, 3)
    levels = augmentation.posterized(x, torch.ones(1, 1, 1, 1)) * 15
    assert levels.round().flatten().tolist() == [3, 6, 9]
    stretched = augmentation.stretched(x)
    torch.testing.assert_close(stretched.flatten(), torch.tensor([0.0, 0.5, 1.0]))
    flat = torch.full((1, 1, 2, 2), 0.3)
    assert torch.equal(augmentation.stretched(flat), flat)


def test_erasing_covers_the_share_that_was_asked_for() -> None:
    pixels = torch.zeros(400, 3, 32, 32, dtype=torch.uint8)
    how = Augmentation(erase=0.5, erase_area=(0.2, 0.3))
    numbers = how.draw(400, torch.Generator().manual_seed(0))
    found = how.apply(pixels, numbers, torch.tensor([0.25, 0.5, 0.75]))
    covered = (found[:, 1] == 0.5).float().mean(dim=(1, 2))
    hit = covered > 0
    assert 0.4 < hit.float().mean() < 0.6
    assert covered[hit].min() > 0.17
    assert covered[hit].max() < 0.33
    inside = found[hit.nonzero()[0, 0]].flatten(1)
    assert torch.equal(
        inside[:, inside[0] > 0].unique(dim=1), torch.tensor([[0.25], [0.5], [0.75]])
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"flip": 1.5},
        {"rotate": -1},
        {"fill": "pink"},
        {"erase_area": (0.5, 0.2)},
        {"repeats": 0},
        {"mixup": math.nan},
    ],
)
def test_settings_without_a_meaning_are_refused_by_name(wrong) -> None:
    with pytest.raises(WorkbenchError, match=next(iter(wrong))):
        Augmentation(**wrong)


# --- metrics --------------------------------------------------------------------------


def test_accuracy_and_confusion() -> None:
    labels = torch.tensor([0, 1, 2, 2, 1])
    predictions = torch.tensor([0, 2, 2, 2, 1])
    assert image_metrics.accuracy(predictions, labels) == 0.8
    logits = torch.nn.functional.one_hot(predictions, 4).float()
    assert image_metrics.accuracy(logits, labels) == 0.8
    table = image_metrics.confusion(logits, labels, 4)
    expected = [[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 2, 0], [0, 0, 0, 0]]
    assert table.tolist() == expected
    with pytest.raises(WorkbenchError, match=r"\(5,\) predictions .* \(1,\) labels"):
        image_metrics.accuracy(predictions, labels[:1])
    with pytest.raises(WorkbenchError, match="none of the 2 classes"):
        image_metrics.confusion(predictions, labels, 2)


def test_predict_reads_every_image_without_dropout() -> None:
    pixels, labels = noise(10, channels=1)
    model = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Dropout(0.9), torch.nn.Linear(64, 4)
    )
    batches = ImageBatches(pixels, labels, 4, "cpu", mean=(0.5,), std=(0.5,), classes=4)
    predictions, truth = image_metrics.predict(model, batches.epoch(0))
    assert torch.equal(truth, labels)
    expected = model.eval()((pixels / 255 - 0.5) / 0.5).argmax(dim=1)
    assert torch.equal(predictions, expected)
    assert not predictions.requires_grad
    assert not image_metrics.predict(model, batches.epoch(0))[0].requires_grad
    model.train()
    image_metrics.predict(model, batches.epoch(0))
    assert model.training
    with pytest.raises(WorkbenchError, match="no images"):
        image_metrics.predict(model, [])
