"""Data over a socket, a frame at a time: four bytes of length, then ``pack``'s."""

import socket
import struct
import time

from autograder.boundary.data import MAXIMUM_BYTES, BoundaryError, pack, unpack
from autograder.interface import Data

_CHUNK = 2**20  # what is read at a time: a length alone reserves no memory
_SMALL = 2**14


class ChannelError(Exception):
    """Nothing usable has arrived.

    ``kind`` is "closed", "late", "too large" or "not data".
    """

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(f"{kind}: {text}".removesuffix(": "))
        self.kind = kind


class Channel:
    """One end of a connection.

    Args:
        sock: a connected stream socket.
        named: whether what arrives may name objects, as only a check does.
        limit: of the bytes of a frame; may be changed.

    After an error of the kind "late", ``receive`` may be called again: what has come of
    a frame is kept. After any other the connection is of no more use.
    """

    def __init__(
        self, sock: socket.socket, named: bool = False, limit: int = MAXIMUM_BYTES
    ) -> None:
        self._socket, self._named, self.limit = sock, named, limit
        self._come = bytearray()

    def send(self, value: Data, deadline: float | None = None) -> None:
        """Send data.

        Args:
            value: what ``pack`` takes; its ``BoundaryError`` is raised before a byte
                has been sent.
            deadline: by ``time.monotonic()``.
        """
        content = pack(value)
        if len(content) > self.limit:
            raise BoundaryError(f"more than {self.limit:,} bytes")
        content = struct.pack(">I", len(content)) + content
        try:
            self._set_time(deadline)
            self._socket.sendall(content)
        except TimeoutError:
            raise ChannelError("late") from None
        except OSError as error:
            raise ChannelError("closed", str(error)) from None

    def receive(self, deadline: float | None = None) -> Data:
        """Wait for data; ``deadline`` is by ``time.monotonic()``."""
        self._wait_for(4, deadline)
        (size,) = struct.unpack(">I", self._come[:4])
        if size > self.limit:
            raise ChannelError("too large", f"{size:,} bytes")
        self._wait_for(4 + size, deadline)
        try:
            with memoryview(self._come)[4 : 4 + size] as content:  # no copy of it
                return unpack(content, named=self._named)
        except BoundaryError as error:
            raise ChannelError("not data", str(error)) from None
        finally:
            del self._come[: 4 + size]

    def _wait_for(self, size: int, deadline: float | None) -> None:
        while len(self._come) < size:
            try:
                self._set_time(deadline)
                missing = max(size - len(self._come), _SMALL)  # most come in one piece
                part = self._socket.recv(min(missing, _CHUNK))
            except TimeoutError:
                raise ChannelError("late") from None
            except OSError as error:
                raise ChannelError("closed", str(error)) from None
            if not part:
                raise ChannelError("closed")
            self._come += part

    def _set_time(self, deadline: float | None) -> None:
        if deadline is None:
            self._socket.settimeout(None)
            return
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
