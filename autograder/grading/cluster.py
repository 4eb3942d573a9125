"""Grade submissions side by side, on this machine's cores or on a Dask cluster.

Both are used alike: here there are threads of this process, which only wait for the
processes that do the work; a worker of a cluster has such threads as well. Each of them
has a ``Grader``. A job carries all that it needs, so that workers need the installed
package and no shared folder.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from autograder.grading import fork_server, sandbox
from autograder.grading.grader import Grader
from autograder.grading.guard import Fault
from autograder.grading.job import Job, Outcome
from autograder.grading.limits import Limits
from autograder.grading.threads import Graded, Threads
from autograder.grading.version import code_version, versions

if TYPE_CHECKING:  # Dask is slow to import, and only needed for a cluster
    from distributed import Client, Future

SCHEDULER_TIMEOUT = 20  # seconds to find it
PATIENCE = 30  # seconds without any worker, or without the scheduler
ATTEMPTS = 3  # at a submission whose grading was ended from outside
AHEAD = 2  # jobs a thread of a worker, so that none waits for the next one
TOGETHER = 64  # outcomes that are given at a time, at most
# Dask keeps the last 1000 messages for its developers; ours carry notebooks.
FEW_MESSAGES = {"distributed.admin.low-level-log-length": 10}


class ClusterError(Exception):
    """The cluster cannot be used, or is gone; says what to do."""


# --- what grades ----------------------------------------------------------------------


class Graders:
    """A grader for each of some threads.

    They start at once, as it takes them a while, and the course is built meanwhile.

    Args:
        limits: of the jobs to come.
        unsafe: whether these are to run without a sandbox.
        imports: the modules that they are going to import; None for all.
    """

    def __init__(
        self, limits: Limits, unsafe: bool, imports: tuple[str, ...] | None
    ) -> None:
        self._limits, self._unsafe, self._imports = limits, unsafe, imports

    def setup(self, threads: int) -> None:
        """Start the graders, and do not wait for them."""
        server = fork_server.begun()
        if server and not self._unsafe:
            server.prepare(self._limits, self._imports)
        self._graders = [Grader(self._imports, server) for _ in range(threads)]
        self._idle: queue.SimpleQueue[Grader] = queue.SimpleQueue()
        self._starting = threading.Thread(target=self._start)
        self._starting.start()

    def _start(self) -> None:
        """Start one after the other; a server forks them when it has imported all."""
        for grader in self._graders:
            grader.start(self._limits, self._unsafe)
            self._idle.put(grader)

    def teardown(self) -> None:
        """Close them."""
        self._starting.join()
        for grader in self._graders:
            grader.close()

    def grade(self, job: Job) -> Outcome:
        """Grade a submission with a grader that has nothing to do."""
        grader = self._idle.get()
        try:
            return grader.grade(job)
        finally:
            self._idle.put(grader)


# --- here -----------------------------------------------------------------------------


class Cluster:
    """A Dask cluster that grades; use it in a ``with`` statement.

    Args:
        workers: how many submissions at a time, if this machine grades.
        scheduler: the address of a cluster's scheduler; this machine without one.
        unsafe: whether workers may lack a sandbox.
        limits: of the jobs to come.
        imports: the modules that they are going to import; None for all.

    Raises:
        ClusterError: on entering, if there is no scheduler, no worker, or one that
            has another version or no sandbox.
    """

    def __init__(
        self,
        workers: int,
        scheduler: str | None,
        unsafe: bool,
        limits: Limits = Limits(),  # noqa: B008 it never changes
        imports: tuple[str, ...] | None = None,
    ) -> None:
        self._workers, self._scheduler, self._unsafe = workers, scheduler, unsafe
        self._graders = Graders(limits, unsafe, imports)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "Cluster":
        with self._stack:
            self._client = self._connect(self._scheduler)
            versions()  # slow to find out; the graders start meanwhile
            self._stack = self._stack.pop_all()  # all is well: keep it open
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _here(self) -> Threads:
        """Grade on the cores of this machine."""
        if not self._unsafe and sandbox.problem():
            raise ClusterError(sandbox.problem())
        return self._stack.enter_context(Threads(self._workers, self._graders))

    def _connect(self, scheduler: str | None) -> "Client | Threads":
        """Grade here, or on a cluster, all of whose workers can grade."""
        if scheduler is None:
            return self._here()
        import dask
        from distributed import Client

        from autograder.grading.workers import OnWorkers

        self._stack.enter_context(dask.config.set(FEW_MESSAGES))
        try:
            client = Client(scheduler, timeout=SCHEDULER_TIMEOUT, set_as_default=False)
        # RuntimeError, TypeError: there is no TLS in Dask's configuration, or only TLS
        except (OSError, ValueError, RuntimeError, TypeError) as error:
            raise ClusterError(
                f"{scheduler}: no Dask scheduler answers ({error}). For tls://, "
                "name the certificates in Dask's configuration, here as there"
            ) from None
        self._stack.enter_context(client)
        self._survey(client, scheduler)
        self._stack.callback(_forget_graders, client)
        client.register_plugin(OnWorkers(self._graders))
        return client

    def _survey(self, client: "Client", scheduler: str) -> None:
        """Ask every worker whether it can grade."""
        from autograder.grading.workers import fitness

        if not _threads_of(client):
            raise ClusterError(
                f"{scheduler}: the scheduler has no workers; start some with: "
                f"dask worker {scheduler}"
            )
        found = client.run(fitness, code_version(), self._unsafe, on_error="return")
        for address, problem in found.items():
            if isinstance(problem, Exception):  # such as no package there at all
                problem = f"cannot grade ({type(problem).__name__}: {problem})"
            if problem:
                raise ClusterError(f"the worker {address}: {problem}")

    def _threads(self) -> int:
        return _threads_of(self._client)

    def grade(self, jobs: Iterable[tuple[Any, Job]]) -> Iterator[tuple[Any, Outcome]]:
        """Grade submissions; give each outcome as soon as it is there.

        See ``grade_in_groups``.
        """
        for group in self.grade_in_groups(jobs):
            yield from group

    def grade_in_groups(
        self, jobs: Iterable[tuple[Any, Job]]
    ) -> Iterator[list[tuple[Any, Outcome]]]:
        """Grade submissions; give what is done together, and wait only for the first.

        Args:
            jobs: with a label each. They are asked for as they are needed: a few more
                than there are workers are in memory at any one time.

        Raises:
            ClusterError: all workers, or the scheduler, are gone and stay away.
        """
        run = _Run(self._client, self._is_alive)
        waiting = iter(jobs)
        try:
            while True:
                room = AHEAD * max(self._threads(), 1) - len(run.pending)
                for label, job in _first(waiting, room):
                    run.submit(label, job)
                if not run.pending:
                    return
                group = run.next_group()
                if group:
                    yield group
        finally:
            run.cancel()

    def _is_alive(self) -> bool:
        return self._client.status == "running" and self._threads() > 0


def _threads_of(client: "Client | Threads") -> int:
    """Count the threads that grade."""
    if isinstance(client, Threads):
        return client.number
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return sum(worker["nthreads"] for worker in workers.values())


def _forget_graders(client: "Client") -> None:
    """Let workers that go on living close their graders."""
    from autograder.grading.workers import NAME

    with contextlib.suppress(Exception):  # whatever a cluster that is gone says
        client.unregister_worker_plugin(NAME)


def _first(items: Iterator, number: int) -> Iterator:
    """Give the next few items, and leave the others."""
    for _ in range(number):
        try:
            yield next(items)
        except StopIteration:
            return


class _Run:
    """The jobs that are under way."""

    def __init__(
        self, client: "Client | Threads", is_alive: Callable[[], bool]
    ) -> None:
        self._client, self._is_alive = client, is_alive
        self._done: queue.SimpleQueue[Future | Graded] = queue.SimpleQueue()
        # by the future's key; the texts say how earlier tries were ended
        self.pending: dict[str, tuple[Any, Job, list[str]]] = {}
        self._futures: dict[str, Future | Graded] = {}  # Dask drops what nobody holds
        # not asked for yet; if its worker has ended since, the result is lost
        self._ended: list[Future | Graded] = []

    def submit(self, label: Any, job: Job, tried: Iterable[str] = ()) -> None:
        """Hand a job to the cluster; ``tried``: how earlier tries were ended."""
        future = self._submit(job)
        self.pending[str(future.key)] = label, job, list(tried)
        self._futures[str(future.key)] = future
        future.add_done_callback(self._done.put)

    def _submit(self, job: Job) -> "Future | Graded":
        if isinstance(self._client, Threads):
            return self._client.submit(job)
        from autograder.grading.workers import work

        return self._client.submit(work, job, pure=False)

    def next(self) -> tuple[Any, Outcome] | None:
        """Wait for a job to end; None if it has to be done again."""
        future = self._wait()
        label, job, tried = self.pending.pop(str(future.key))
        del self._futures[str(future.key)]
        outcome = _outcome(future, job)
        future.release()
        earlier = [*tried, outcome.reason]
        if outcome.again and len(earlier) < ATTEMPTS:
            self.submit(label, job, earlier)
            return None
        outcome.tried = tried
        return label, outcome

    def next_group(self) -> list[tuple[Any, Outcome]]:
        """Wait for a job to end; give it with those that have ended meanwhile."""
        found = [self.next()]
        while len(found) < TOGETHER and self.pending and not self._done.empty():
            found.append(self.next())
        return [each for each in found if each is not None]

    def _wait(self) -> "Future | Graded":
        alive = time.monotonic()
        while True:
            with contextlib.suppress(queue.Empty):
                self._ended.append(self._done.get(timeout=1))
            for future in self._ended:  # the scheduler has another worker do them again
                if future.status in ("finished", "error"):
                    self._ended.remove(future)
                    return future
            if any(future.status == "cancelled" for future in self._ended):
                alive = -PATIENCE  # a scheduler that is gone cancels everything
            if alive >= 0 and self._is_alive():
                alive = time.monotonic()
            elif time.monotonic() - alive > PATIENCE:
                raise ClusterError(
                    "the cluster is gone: no scheduler, or no workers. What was graded "
                    "is kept; the same command goes on from there"
                )

    def cancel(self) -> None:
        """Drop what is not done yet."""
        waiting: Any = list(self._futures.values())
        with contextlib.suppress(Exception):  # whatever a cluster that is gone says
            self._client.cancel(waiting, force=True)


def _outcome(future: "Future | Graded", job: Job) -> Outcome:
    try:
        return future.result()
    except Exception as error:  # such as workers that were killed one after another
        if not _is_from_outside(error):
            fault = Fault(error)
            return replace(job.ungraded(str(fault)), log=fault.log)
        lost = job.ungraded(f"the worker was lost ({type(error).__name__}: {error})")
        lost.again = True
        return lost


def _is_from_outside(error: Exception) -> bool:
    """Tell an error of the cluster or the machine from one of our own code."""
    of_dask = type(error).__module__.partition(".")[0] in ("dask", "distributed")
    return of_dask or isinstance(error, (OSError, EOFError, CancelledError))
