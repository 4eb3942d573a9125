"""Read zip archives that anybody may have made: what is in them is data, never a place.

Nothing is unpacked to a disk here. Sizes are limited before and while a file is read. A
name that leads outside is refused, though nothing is ever written under such a name.
Only the two ways of packing are read that Canvas, Moodle and systems' own programs use:
others need memory that an archive's maker chooses.
"""

import io
import stat
import struct
import zipfile
from typing import BinaryIO

from autograder.collecting.sources import (
    LIMITS,
    File,
    Limits,
    Listing,
    NotUnderstood,
    checked_path,
    is_junk,
    same_name,
    too_large,
)

ZIP_BEGINS = (b"PK\x03\x04", b"PK\x05\x06")
UTF_8 = 0x800  # the flag of a name in UTF-8
ENCRYPTED = 0x1
HEAD = struct.Struct("<4s4B4HL2L5H2L")  # of an entry in the list of contents
FLAGS = 5
NAME_BYTES, COMMENT_BYTES = 12, 14  # and between them, EXTRA_BYTES
HEAD_AT = 8  # bytes before the flags
LOCAL = struct.Struct("<4s5H3L2H")  # the head that stands before an entry itself
LOCAL_FLAGS, LOCAL_NAME_BYTES, LOCAL_AT = 2, 9, 6
PIECE = 1_000_000  # bytes that are unpacked at a time


def list_zip(
    file: BinaryIO, limits: Limits = LIMITS, most: int | None = None
) -> Listing:
    """List the files of a zip archive, and what of it is not read.

    Args:
        file: the archive; kept open as long as its files are read.
        limits: what is too large.
        most: how many entries it may have; ``limits.entries`` without it.

    Raises:
        NotUnderstood: it is no zip archive that can be read at all.
    """
    most = most or limits.entries
    guarded = _Guarded(file, limits.directory_bytes)
    try:
        archive = zipfile.ZipFile(guarded)
    except Exception as error:  # zipfile has many, for each kind of odd bytes
        raise NotUnderstood(f"is a damaged zip archive ({error})") from None
    guarded.is_open = True
    if len(archive.infolist()) > most:
        raise NotUnderstood(f"is an archive of more than {most} files")
    listing, seen = Listing(), set()
    for entry in archive.infolist():
        name = _name(entry)
        plain = name.replace("\\", "/")
        if plain.endswith("/") or is_junk(plain):
            continue
        try:
            path = checked_path(name, limits)
            _check(entry, limits)
            if same_name(path) in seen:
                raise NotUnderstood("is a second file of this name, which was not read")
        except NotUnderstood as why:
            listing.wrong.append((name, str(why)))
            continue
        seen.add(same_name(path))
        listing.files.append(_file(archive, entry, path, limits))
    return listing


class _Guarded:
    """An archive's file for ``zipfile``, which reads the list of contents at once.

    A list that is too long is refused before it is in memory. A name that is said to be
    UTF-8 and is not is taken for the older code, in which every byte is a letter: one
    such name would make ``zipfile`` refuse the whole archive.
    """

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file, self._most = file, most
        self.is_open = False  # once it is, what is read are files
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        if self.is_open:
            data = self._file.read(size)
            return self._local(data) if data[:4] == b"PK\x03\x04" else data
        most = self._most + 1
        data = self._file.read(most if size < 0 else min(size, most))
        if len(data) > self._most:
            raise zipfile.BadZipFile("its list of contents is too long")
        return _without_wrong_flags(data) if data[:4] == b"PK\x01\x02" else data

    def _local(self, data: bytes) -> bytes:
        """Change the head that stands before an entry as the list of contents."""
        if len(data) != LOCAL.size:
            return data
        head = LOCAL.unpack(data)
        at = self.tell()
        name = self._file.read(head[LOCAL_NAME_BYTES])
        self.seek(at)
        if not head[LOCAL_FLAGS] & UTF_8 or _is_utf_8(name):
            return data
        changed = bytearray(data)
        struct.pack_into("<H", changed, LOCAL_AT, head[LOCAL_FLAGS] & ~UTF_8)
        return bytes(changed)

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        pass  # whoever opened it closes it


def _without_wrong_flags(data: bytes) -> bytes:
    contents, at = bytearray(data), 0
    while at + HEAD.size <= len(data) and data[at : at + 4] == b"PK\x01\x02":
        head = HEAD.unpack_from(data, at)
        name = data[at + HEAD.size : at + HEAD.size + head[NAME_BYTES]]
        if head[FLAGS] & UTF_8 and not _is_utf_8(name):
            struct.pack_into("<H", contents, at + HEAD_AT, head[FLAGS] & ~UTF_8)
        at += HEAD.size + sum(head[NAME_BYTES : COMMENT_BYTES + 1])
    return bytes(contents)


def _is_utf_8(name: bytes) -> bool:
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _name(entry: zipfile.ZipInfo) -> str:
    """Return an entry's whole name; many programs write UTF-8 without saying so."""
    name = entry.orig_filename
    if not entry.flag_bits & UTF_8:
        try:
            return name.encode("cp437").decode("utf-8")
        except UnicodeError:
            return name
    return name


def _check(entry: zipfile.ZipInfo, limits: Limits) -> None:
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if entry.create_system == 3 and kind not in (0, stat.S_IFREG):
        what = "a link" if kind == stat.S_IFLNK else "no regular file"
        raise NotUnderstood(f"is {what}, not followed")
    if entry.flag_bits & ENCRYPTED:
        raise NotUnderstood("is encrypted with a password")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise NotUnderstood("is packed in a way that is not read; pack it as zip again")
    if entry.file_size > limits.file_bytes:
        raise NotUnderstood(too_large(entry.file_size, limits))
    most = limits.ratio * max(1, entry.compress_size)
    if entry.file_size > max(limits.ratio_from, most):
        raise NotUnderstood(
            f"would be {entry.file_size // max(1, entry.compress_size)} times larger "
            "when it is unpacked, as a bomb is"
        )


def _file(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: str, limits: Limits
) -> File:
    def read() -> bytes:
        try:
            with archive.open(entry) as packed:
                return _read(packed, min(entry.file_size, limits.file_bytes))
        except NotUnderstood:
            raise
        except Exception as error:
            raise NotUnderstood(f"is damaged in the archive ({error})") from None

    return File(path, entry.file_size, read, mark=f"{entry.CRC:08x}")


def _read(packed: BinaryIO, most: int) -> bytes:
    """Read a file to its end; a size that was written into the archive may be a lie."""
    data = io.BytesIO()
    while piece := packed.read(PIECE):
        data.write(piece)
        if data.tell() > most:
            raise NotUnderstood("is larger than its archive says")
    return data.getvalue()


def is_zip(file: File) -> bool:
    """Tell by its name whether a file is a zip archive."""
    return file.name.lower().endswith(".zip")


def unpacked(file: File, limits: Limits = LIMITS) -> Listing:
    """List a zip archive that a student handed in, one level deep.

    Raises:
        NotUnderstood: it is none, or holds too much; says why.
    """
    data = file.read()
    if not data.startswith(ZIP_BEGINS):
        raise NotUnderstood("is named .zip, but is no zip archive")
    listing = list_zip(io.BytesIO(data), limits, limits.person_entries)
    total = sum(each.size for each in listing.files)
    if total > limits.person_bytes:
        most = limits.person_bytes / 10**6
        raise NotUnderstood(
            f"holds {total / 10**6:.0f} MB unpacked, at most {most:g} MB are read"
        )
    return listing
