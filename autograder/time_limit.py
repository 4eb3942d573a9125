"""End what never returns: by an alarm, and by a thread where the system has none."""

import _thread
import contextlib
import math
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from autograder import forbidden

CALLED = signal.SIGTERM  # its handler; Windows lets nobody send it
OFTEN = 0.05  # seconds between two calls
AGAIN = 1.0  # seconds; should the student's code catch everything
SOON = 0.001  # seconds; while something is being put back
_until = math.inf  # when the innermost block that is watched has to end


class TookTooLong(BaseException):
    """A call's time is over; out of reach of a student's ``except Exception``."""


def can_end() -> bool:
    """Tell whether what never returns is ended: in the main thread it is.

    In a browser there are neither alarms nor threads: the page ends Python as a whole.
    """
    return (
        sys.platform != "emscripten"
        and threading.current_thread() is threading.main_thread()
    )


@contextlib.contextmanager
def limited_time(seconds: float) -> Iterator[None]:
    """Raise ``TookTooLong`` in the block when it lasts longer; 0 is no limit.

    A limit that holds already holds on: for what is inside of it, and afterwards. On
    Windows, which has no alarms, a step inside of a library comes to its end first.
    """
    if not can_end():
        yield
        return
    limit = _alarm if hasattr(signal, "setitimer") else _watched
    with limit(seconds):
        yield


def _says(seconds: float) -> str:
    return f"it had not returned after {seconds:g} seconds"


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    is_over = False

    def stop(signal_number, frame):
        if is_over:
            return
        if _must_end_first(frame.f_code):
            signal.setitimer(signal.ITIMER_REAL, SOON, AGAIN)
            return
        raise TookTooLong(_says(seconds))

    left, again = signal.getitimer(signal.ITIMER_REAL)
    if not (seconds or left):  # nothing can ring
        yield
        return
    begin = time.monotonic()
    before = signal.signal(signal.SIGALRM, stop)
    first = min(seconds, left) if seconds and left else seconds or left
    signal.setitimer(signal.ITIMER_REAL, first, AGAIN)
    try:
        yield
    finally:
        is_over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:  # 0 would set no alarm
            left = max(left - (time.monotonic() - begin), SOON)
            signal.setitimer(signal.ITIMER_REAL, left, again)


@contextlib.contextmanager
def _watched(seconds: float) -> Iterator[None]:
    """Let a second thread call a signal's handler, without sending the signal."""
    global _until
    if not seconds:
        yield
        return

    def stop(signal_number, frame):
        # a call from the watcher of a block that has ended may come late
        if time.monotonic() >= until and not _must_end_first(frame.f_code):
            raise TookTooLong(_says(seconds))

    outer, until, over = _until, math.inf, threading.Event()
    before = signal.signal(CALLED, stop)
    threading.Thread(target=_call, args=(seconds, over), daemon=True).start()
    _until = until = min(outer, time.monotonic() + seconds)
    try:
        yield
    finally:
        until = math.inf
        over.set()
        signal.signal(CALLED, before)
        _until = outer


def _call(seconds: float, over: threading.Event) -> None:
    while not over.wait(seconds):
        _thread.interrupt_main(CALLED)
        seconds = OFTEN


_HERE = Path(__file__).parent
_FIRST = {contextlib.__file__, warnings.__file__, forbidden.__file__, __file__}
_FIRST.add(str(_HERE / "exercise" / "locate" / "__init__.py"))
_INTERFACE = str(_HERE / "interface.py")
_FIRST_THERE = {"trying", "_students_turn", "_named_exceptions"}


def _must_end_first(code: CodeType) -> bool:
    """Tell whether code is putting something back: it is not stopped halfway."""
    there = code.co_filename == _INTERFACE and code.co_name in _FIRST_THERE
    return there or code.co_filename in _FIRST
