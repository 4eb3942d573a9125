"""Write files so that a reader, or a kill, never meets half of one; read strangers'."""

import errno
import itertools
import os
import stat
from pathlib import Path

MOST_ENTRIES = 10_000  # of a folder of a student's


def write_beside(path: Path, content: str | bytes, mode: int | None = None) -> None:
    """Write a file beside its place and rename it; ``mode`` sets its permissions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    if isinstance(content, str):
        # a submission's folder may have a name that is no valid text
        content = content.encode("utf-8", errors="backslashreplace")
    beside.write_bytes(content)
    if mode is not None:
        beside.chmod(mode)
    os.replace(beside, path)


def read_regular(path: Path, most: int, *, follow: bool = True) -> bytes:
    """Read at most so many bytes of a regular file; never wait for a pipe.

    Raises:
        OSError: it cannot be read, is no regular file, or a link not to be followed.
    """
    wanted = ["O_RDONLY", "O_BINARY", "O_NONBLOCK"] + ["O_NOFOLLOW"] * (not follow)
    flags = [getattr(os, name, 0) for name in wanted]  # Windows has not all of them
    with open(os.open(path, sum(flags)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "it is no regular file")
        return file.read(most)


def entries(folder: Path, most: int = MOST_ENTRIES) -> list[Path]:
    """Return what lies in a folder, sorted; nothing if there is no such folder.

    Raises:
        OSError: it cannot be read, is a link that leads to itself, or holds too much.
    """
    try:
        with os.scandir(folder) as found:
            names = [entry.name for entry in itertools.islice(found, most + 1)]
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return []
        raise
    if len(names) > most:
        raise OSError(0, f"it holds more than {most} files")
    return [folder / name for name in sorted(names)]
