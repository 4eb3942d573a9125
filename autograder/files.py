"""Write files so that a reader, or a kill, never meets half of one; read strangers'."""

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path

MOST_ENTRIES = 10_000  # of a folder of a student's


def said(error: OSError, otherwise: Path) -> str:
    """Which file it was, and why; of a copy, the file that was to be written."""
    where = error.filename2 or error.filename or otherwise
    return f"{where}: {error.strerror or error}"


@contextlib.contextmanager
def replacing(
    path: Path,
    mode: int | None = None,
    *,
    lasting: bool = False,
    shared: bool = False,
) -> Iterator[Path]:
    """Give a place beside a file to write to, which becomes the file after the block.

    If the block fails, the file stays as it was, and nothing is left beside it.

    Args:
        path: of the file; its folder is made.
        mode: its permissions from the first byte on; without it, those of a new file.
        lasting: wait until the disk has it, so that no loss of power takes it.
        shared: whether another process may be writing the same file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    number = f".{os.getpid()}" if shared else ""
    beside = path.with_name(f".{path.name}{number}.new")
    beside.unlink(missing_ok=True)  # of one that was killed
    try:
        if mode is not None:
            os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
            beside.chmod(mode)  # whatever new files are kept from
        yield beside
        if lasting:
            with beside.open("rb+") as file:
                os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):  # of a disk that can only be read by now
            beside.unlink(missing_ok=True)
        raise


def write_beside(
    path: Path,
    content: str | bytes,
    mode: int | None = None,
    *,
    lasting: bool = False,
    shared: bool = False,
) -> None:
    """Write a file by ``replacing``, whose arguments these are."""
    if isinstance(content, str):
        # a submission's folder may have a name that is no valid text
        content = content.encode("utf-8", errors="backslashreplace")
    with replacing(path, mode, lasting=lasting, shared=shared) as beside:
        beside.write_bytes(content)


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
