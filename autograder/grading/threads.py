"""Threads of this process that wait for its graders, held as Dask holds its workers.

>>> with Threads(2, graders) as client:
...     future = client.submit(job)
"""

import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from autograder.grading.job import Job, Outcome


class Graders(Protocol):
    """What grades in these threads."""

    def setup(self, threads: int) -> None:
        """Start, for so many threads."""

    def teardown(self) -> None:
        """End."""

    def grade(self, job: Job) -> Outcome:
        """Grade a submission."""


class Graded:
    """A submission that is graded, or is going to be, with what Dask's futures have."""

    def __init__(self, key: str, future: "Future[Outcome]") -> None:
        self.key, self._future = key, future

    @property
    def status(self) -> str:
        """Tell how it stands."""
        if self._future.cancelled():
            return "cancelled"
        if not self._future.done():
            return "pending"
        return "error" if self._future.exception() else "finished"

    def result(self) -> Outcome:
        """Wait for the outcome; raise what was raised."""
        return self._future.result()

    def add_done_callback(self, call: Callable[["Graded"], None]) -> None:
        """Call it with this one once it is done."""
        self._future.add_done_callback(lambda _: call(self))

    def cancel(self) -> None:
        """Drop it, unless it has begun."""
        self._future.cancel()

    def release(self) -> None:
        """Let Dask forget it; here nobody else remembers it."""


class Threads:
    """What of Dask's client is needed, for the cores of this machine.

    Args:
        number: of submissions at a time.
        graders: what each thread asks.
    """

    status = "running"

    def __init__(self, number: int, graders: Graders) -> None:
        self.number, self._graders = number, graders
        self._keys = map(str, itertools.count())
        self._threads = ThreadPoolExecutor(number, thread_name_prefix="grading")

    def __enter__(self) -> "Threads":
        self._graders.setup(self.number)
        return self

    def __exit__(self, *exception: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._graders.teardown()
        self._threads.shutdown()

    def submit(self, job: Job) -> Graded:
        """Have a submission graded."""
        return Graded(next(self._keys), self._threads.submit(self._graders.grade, job))

    def cancel(self, waiting: Iterable[Graded], *, force: bool = False) -> None:
        """Drop what has not begun."""
        del force
        for each in waiting:
            each.cancel()
