"""What workers of a Dask cluster do: each has a grader for each of its threads."""

from typing import Any

from distributed import get_worker
from distributed.diagnostics.plugin import WorkerPlugin

from autograder.grading import sandbox
from autograder.grading.cluster import Graders
from autograder.grading.job import Job, Outcome
from autograder.grading.version import code_version

NAME = "autograder"


class OnWorkers(WorkerPlugin):
    """Graders on every worker, closed with it.

    Args:
        graders: to start there.
    """

    name = NAME

    def __init__(self, graders: Graders) -> None:
        self.graders = graders

    def setup(self, worker: Any) -> None:
        """Start the graders (called by Dask)."""
        self.graders.setup(worker.state.nthreads)

    def teardown(self, worker: Any) -> None:
        """Close them (called by Dask)."""
        del worker
        self.graders.teardown()


def work(job: Job) -> Outcome:
    """Grade a submission (runs on a worker)."""
    plugin = get_worker().plugins[NAME]
    assert isinstance(plugin, OnWorkers)  # `Cluster` has registered it
    return plugin.graders.grade(job)


def fitness(version: str, unsafe: bool) -> str:
    """Say why a worker cannot grade, or nothing (runs on a worker)."""
    if code_version() != version:
        return f"has autograder {code_version()}, not {version}: install that one there"
    return "" if unsafe else sandbox.problem()
