"""Grade each submission in a process of its own, several at a time.

``grade_apart`` brings back one result whatever happens to that process: an exception,
a dead kernel, an endless loop, a kill. So one submission cannot stop another.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

import psutil

from autograder.grading.tasks import Result, Task, keep_log, read_word

WORKER = "autograder.grading.worker"
SCHEDULER_TIMEOUT = 20  # seconds
ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class SchedulerError(Exception):
    """The Dask scheduler does not answer."""


@contextlib.contextmanager
def pool(workers: int, scheduler: str | None) -> Iterator[Executor]:
    """Give an executor: so many at a time here, or the workers of a Dask cluster.

    Its threads only wait for the processes that do the work.
    """
    if scheduler is None:
        executor = ThreadPoolExecutor(workers)
        try:
            yield executor
        finally:  # also when the user stops it: what waits is not begun
            executor.shutdown(cancel_futures=True)
        return
    from distributed import Client

    try:
        client = Client(scheduler, timeout=SCHEDULER_TIMEOUT)
    except (OSError, ValueError) as error:
        raise SchedulerError(
            f"{scheduler}: no Dask scheduler answers ({error})"
        ) from None
    with client:
        yield client.get_executor(pure=False)


def grade_all(executor: Executor, tasks: list[Task]) -> Iterator[Result]:
    """Grade submissions; give each result as soon as it is there."""
    futures = {executor.submit(grade_apart, task): task for task in tasks}
    for future in as_completed(futures):
        task = futures[future]
        try:
            yield future.result()
        except Exception as error:  # such as a cluster's worker that was lost
            reason = f"the worker was lost ({type(error).__name__}: {error})"
            yield task.result(reason)


def grade_apart(task: Task) -> Result:
    """Grade a submission in a process of its own; always return a result."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(
        prefix="autograder-", ignore_cleanup_errors=True
    ) as folder:
        job = Path(folder)
        (job / "task.json").write_text(json.dumps(asdict(task)), encoding="utf-8")
        ended = _run(job, task.seconds)
        result = _result(job, task, ended)
    result.seconds = round(time.monotonic() - started, 2)
    return result


def _run(job: Path, seconds: int) -> str:
    """Run the worker's process; return what stopped it, or nothing."""
    with (job / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", WORKER, str(job)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(job),
        )
        try:
            code = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return f"stopped after {seconds} seconds"
        finally:
            _kill_family(process)
    if code < 0:
        return f"the grading process was killed ({signal.Signals(-code).name})"
    return f"the grading process ended with code {code}" if code else ""


def _environment(job: Path) -> dict[str, str]:
    """One thread, no pictures drawn, no start-up or settings files of anybody's."""
    folders = {
        "IPYTHONDIR": job / "ipython",
        "JUPYTER_CONFIG_DIR": job / "config",
        "JUPYTER_RUNTIME_DIR": job / "runtime",
    }
    return (
        os.environ
        | dict.fromkeys(ONE_THREAD, "1")
        | {"MPLBACKEND": "agg"}
        | {name: str(path) for name, path in folders.items()}
    )


def _kill_family(process: subprocess.Popen) -> None:
    """End a process that still runs, and the kernel that it started."""
    if process.poll() is None:
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(process.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
        process.kill()
        process.wait()


def _result(job: Path, task: Task, ended: str) -> Result:
    with contextlib.suppress(OSError, ValueError, TypeError):
        return Result(**json.loads((job / "result.json").read_text(encoding="utf-8")))
    where = read_word(job, "where")
    reason = f"{ended or 'the grading process left no result'}"
    if where:
        reason += f", while running {where}"
    log = (job / "output.txt").read_text(encoding="utf-8", errors="replace")
    keep_log(task, log)
    return task.result(reason)
