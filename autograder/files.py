"""Write files so that a reader, or a kill, never meets half of one; read strangers'."""

import os
import stat
from pathlib import Path


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
    flags = os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    with open(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "it is no regular file")
        return file.read(most)
