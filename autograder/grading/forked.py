"""A process that another process has forked, held as ``subprocess`` holds its own."""

import contextlib
import os
import select
import signal
import subprocess
import threading
import weakref
from collections.abc import Callable


class Forked:
    """A process that is not this one's child, with what ``Popen`` has for one.

    Args:
        number: its number, as seen from here.
        ask: gives its exit code once it has ended; without it that is 0.
    """

    def __init__(self, number: int, ask: Callable[[int], int] | None = None) -> None:
        self.pid, self._ask = number, ask
        self.returncode: int | None = None
        self._lock = threading.Lock()  # another thread may end it and wait
        self._pidfd = os.pidfd_open(number)
        weakref.finalize(self, os.close, self._pidfd).atexit = False

    def poll(self) -> int | None:
        """Return its exit code if it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; return its exit code.

        Raises:
            subprocess.TimeoutExpired: it has not, after so many seconds.
        """
        if self.returncode is None:
            waiting = select.poll()
            waiting.register(self._pidfd, select.POLLIN)
            if not waiting.poll(None if timeout is None else 1000 * timeout):
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        with self._lock:
            if self.returncode is None:
                self.returncode = self._ask(self.pid) if self._ask else 0
        return self.returncode

    def kill(self) -> None:
        """End it."""
        with self._lock, contextlib.suppress(ProcessLookupError):
            if self.returncode is None:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
