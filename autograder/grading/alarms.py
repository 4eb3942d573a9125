"""Alarms that interrupt this process's own work: by its own time, or by the wall's.

What a submission hands in or answers can make work here: large files to read, odd
values to compare. Only the main thread can be interrupted, and only between two steps
of Python's; whoever waits for this process ends it if it cannot be.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Iterator

REPEAT = 1.0  # seconds until an alarm rings again that was caught


class TookTooLong(BaseException):
    """An alarm has rung; out of reach of a check's ``except Exception``."""


class TimeIsOver(BaseException):
    """The submission's time on the wall is over; likewise out of reach."""


@contextlib.contextmanager
def own_time(seconds: float) -> Iterator[None]:
    """Raise TookTooLong in the block after so much processor time."""
    with _alarm(signal.SIGPROF, signal.ITIMER_PROF, seconds, TookTooLong):
        yield


@contextlib.contextmanager
def until(end: float) -> Iterator[None]:
    """Raise TimeIsOver in the block at a time by ``time.monotonic()``."""
    seconds = max(end - time.monotonic(), 0.001)
    with _alarm(signal.SIGALRM, signal.ITIMER_REAL, seconds, TimeIsOver):
        yield


@contextlib.contextmanager
def _alarm(
    number: int, timer: int, seconds: float, error: type[BaseException]
) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: object) -> None:
        raise error

    before = signal.signal(number, ring)
    signal.setitimer(timer, seconds, REPEAT)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)
