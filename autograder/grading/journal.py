"""What has been graded, a line each, safely on the disk before it counts as done.

A grading that is stopped at any moment goes on from here: what has a line is done, and
what has none is graded again. A line that a kill or a full disk has cut is dropped.
"""

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

Key = tuple[str, str]  # student, chapter


class Journal:
    """A file of entries, the last one of a student and chapter counts.

    Only where the entries lie is kept in memory, not the entries.

    Args:
        path: of the file; it is made if it is not there.
        read_only: leave the file as it is, or missing.
    """

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self._places: dict[Key, tuple[int, int]] = {}  # offset and length
        self._file: BinaryIO
        if read_only:
            self._file = path.open("rb") if path.exists() else io.BytesIO()
            self._read()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b")
        self._file.truncate(self._read())

    def _read(self) -> int:
        """Find the entries; return where the last whole line ends."""
        offset = 0
        self._file.seek(0)
        for line in self._file:
            if line.endswith(b"\n"):
                entry = _parse(line)
                if entry:
                    self._places[_key(entry)] = offset, len(line)
                offset += len(line)
        return offset

    def add(self, *entries: dict) -> None:
        """Write entries; all are on the disk when this returns, by one wait for it.

        Args:
            entries: what JSON can hold, with ``student`` and ``chapter``.
        """
        lines = [
            json.dumps(each, ensure_ascii=True).encode() + b"\n" for each in entries
        ]
        offset = self._file.seek(0, os.SEEK_END)
        self._file.write(b"".join(lines))
        self._file.flush()
        os.fsync(self._file.fileno())
        for entry, line in zip(entries, lines, strict=True):
            self._places[_key(entry)] = offset, len(line)
            offset += len(line)

    def find(self, student: str, chapter: str) -> dict | None:
        """Return the last entry of a student and chapter, if there is one."""
        place = self._places.get((student, chapter))
        if place is None:
            return None
        self._file.seek(place[0])
        return _parse(self._file.read(place[1]))

    def entries(self) -> Iterator[dict]:
        """Give the last entry of each student and chapter, by chapter."""
        for student, chapter in sorted(self._places, key=lambda key: key[::-1]):
            if entry := self.find(student, chapter):
                yield entry

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _key(entry: dict) -> Key:
    return entry["student"], entry["chapter"]


def _parse(line: bytes) -> dict | None:
    """Read a line; nothing for one that a disk has damaged."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    is_entry = isinstance(entry, dict) and {"student", "chapter"} <= entry.keys()
    return entry if is_entry else None
