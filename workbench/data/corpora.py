"""Texts to learn from: the tales, lines to copy, tiny Shakespeare, or one's own."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from workbench.data import repeats
from workbench.data.tales.stories import stories
from workbench.data.texts import download, read_text, unpack
from workbench.errors import WorkbenchError

# Karpathy's selection of 2015, in the public domain. The sum is that of the text.
SHAKESPEARE = "input.txt"
SHAKESPEARE_URL = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/"
    + SHAKESPEARE
)
SHAKESPEARE_SUM = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
NAMES = "tales (the default), repeats, shakespeare or text:PATH, a text of your own"
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class Texts:
    """A text in three splits; ``stories``: each of its lines stands for itself."""

    name: str
    train: str
    validation: str
    test: str
    stories: bool = False

    @property
    def alphabet(self) -> list[str]:
        """All characters that occur."""
        return sorted(set(self.train) | set(self.validation) | set(self.test))


def load_texts(name: str, data_dir: Path | None = None) -> Texts:
    """Load a text.

    Args:
        name: "tales"; "repeats"; "shakespeare"; or "text:PATH", a file in UTF-8, packed
            by gzip or not. Of the last two, the last tenth is the test, and a fiftieth
            before it validates.
        data_dir: a folder that holds Shakespeare's file; None: it is downloaded once.

    Raises:
        WorkbenchError: on an unknown name, and on a file that is missing, damaged, not
            in UTF-8 or empty.
    """
    if name == "tales":
        train, validation, test = (
            "".join(story.text for story in stories(split)) for split in SPLITS
        )
        return Texts(name, train, validation, test, stories=True)
    if name == "repeats":
        train, validation, test = map(repeats.told, SPLITS)
        return Texts(name, train, validation, test)
    if name == "shakespeare":
        return Texts(name, *divide(shakespeare(data_dir)))
    if name.startswith("text:"):
        path = Path(name.removeprefix("text:"))
        text = read_text(path)
        if not text.strip():
            raise WorkbenchError(f"{path} is empty: name a file with a text to learn")
        return Texts(name, *divide(text))
    raise WorkbenchError(f"unknown data {name!r}: use {NAMES}")


def divide(text: str) -> tuple[str, str, str]:
    """Cut a text in order: 88 % to train, 2 % to validate, 10 % to test."""
    test = len(text) * 9 // 10
    validation = test - len(text) // 50
    return text[:validation], text[validation:test], text[test:]


def shakespeare(data_dir: Path | None) -> str:
    """Read tiny Shakespeare, and check that it is the published one."""
    if data_dir is None:
        path = download(
            SHAKESPEARE_URL,
            SHAKESPEARE_SUM,
            f"tinyshakespeare_{SHAKESPEARE}",
            "tiny Shakespeare's input.txt",
        )
    else:
        places = [data_dir / f"{SHAKESPEARE}.gz", data_dir / SHAKESPEARE]
        path = next((each for each in places if each.is_file()), places[0])
        if not path.is_file():
            raise WorkbenchError(
                f"{data_dir} has no {SHAKESPEARE}: put tiny Shakespeare there (from "
                "the repository karpathy/char-rnn, folder data/tinyshakespeare), or "
                "leave out the folder to have it downloaded"
            )
    content = unpack(path)
    if hashlib.sha256(content).hexdigest() != SHAKESPEARE_SUM:
        raise WorkbenchError(
            f"{path} is not the published tiny Shakespeare (its SHA-256 differs): "
            "delete it and fetch it again; a text of your own is read with text:PATH"
        )
    return content.decode("utf-8")
