"""Grading on other machines: separate Dask workers, with nothing but the package.

They are started in an empty folder with an installed copy of the package, which lacks
solutions/. One of them is killed while it grades.
"""

import gc
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import dask
import psutil
import pytest

from autograder.generator import ROOT
from autograder.grading import cluster, doors, sandbox
from autograder.grading.job import Job, Outcome
from autograder.grading.paper import Paper
from autograder.grading.version import code_version
from tests import small_class

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem()),
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The package as pip installs it, from its wheel, which has no answers."""
    made, target = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "tools.dist", "--out", str(made)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = made.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
    options = ["--quiet", "--no-deps", "--no-index", "--target", str(target)]
    subprocess.run([*pip, *options, str(wheel)], check=True, capture_output=True)
    assert not (target / "transformer").exists()
    return target


class Machines:
    """A scheduler and workers, each a process of its own."""

    def __init__(
        self, folder: Path, installed: Path, options: tuple[str, ...] = ()
    ) -> None:
        self.folder, self.processes = folder, []
        self.environment = os.environ | {"PYTHONPATH": str(installed)}
        place = folder / "scheduler.json"
        where = ("--port", "0", "--scheduler-file", str(place))
        self._start("dask_scheduler", *where, *options)
        while not place.exists():
            assert self.processes[0].poll() is None
            time.sleep(0.1)
        self.address = json.loads(place.read_text())["address"]

    def _start(self, program: str, *arguments: str) -> subprocess.Popen:
        line = [sys.executable, "-m", f"distributed.cli.{program}", *arguments]
        empty = self.folder / f"empty-{len(self.processes)}"
        empty.mkdir()
        with (self.folder / "log.txt").open("ab") as log:
            started = subprocess.Popen(
                [*line, "--host", "127.0.0.1", "--no-dashboard"],
                cwd=empty,
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        self.processes.append(started)
        return started

    def worker(self) -> subprocess.Popen:
        """Start a worker."""
        options = ("--nthreads", "1", "--no-nanny", "--memory-limit", "0")
        return self._start("dask_worker", self.address, *options)

    def wait(self, number: int) -> None:
        """Wait until so many workers are there."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(number, timeout=120)

    def stop(self) -> None:
        """Stop everything."""
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def machines(tmp_path, installed):
    started = Machines(tmp_path, installed)
    yield started
    started.stop()


@pytest.fixture
def certificates(tmp_path, monkeypatch) -> dict[str, str]:
    """Dask's configuration for TLS, with a key and a certificate made for the test."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    make += ["-subj", "/CN=grading", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(make, check=True, capture_output=True)
    configuration = {
        "distributed.comm.require-encryption": True,
        "distributed.comm.tls.ca-file": str(certificate),
    }
    for role in ("scheduler", "worker", "client"):
        configuration[f"distributed.comm.tls.{role}.key"] = str(key)
        configuration[f"distributed.comm.tls.{role}.cert"] = str(certificate)
    for name, value in configuration.items():
        variable = name.upper().replace(".", "__").replace("-", "_")
        monkeypatch.setenv(f"DASK_{variable}", str(value))
    return configuration


@pytest.fixture(scope="module")
def submissions(tmp_path_factory) -> Path:
    return small_class.build(tmp_path_factory.mktemp("class") / "submissions")


@pytest.mark.slow
class _Idle(cluster.Graders):
    """Graders that say at once that they did nothing."""

    def setup(self, threads) -> None:
        """Start none."""

    def teardown(self) -> None:
        """Close none."""

    def grade(self, job: Job) -> Outcome:
        """Give an outcome."""
        return job.ungraded("")


def test_submissions_that_are_done_are_not_kept_in_memory(monkeypatch) -> None:
    monkeypatch.setattr(cluster, "Graders", _Idle)
    paper = Paper.of("02_class_token")
    jobs = ((n, Job(f"s{n}", paper.chapter, b"", paper)) for n in range(100))
    with cluster.Cluster(2, None, unsafe=True) as two:
        assert len(list(two.grade(jobs))) == 100
        gc.collect()
        kept = sum(isinstance(each, Job) for each in gc.get_objects())
    assert kept < 50


def test_a_worker_that_is_killed_costs_nothing(machines, submissions, tmp_path) -> None:
    machines.worker()
    victim = machines.worker()
    machines.wait(2)
    out = tmp_path / "out"
    line = small_class.command(submissions, out, "--scheduler", machines.address)
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as grading:
        small_class.wait_for_line(out / "course" / "journal.jsonl", grading)
        victim.kill()
        _, said = grading.communicate()
    assert grading.returncode == 0, said
    assert small_class.is_as_written(out)
    local = tmp_path / "local"
    done = small_class.grade(submissions, local)
    assert done.returncode == 0, done.stderr
    assert small_class.results(local) == small_class.results(out)


def test_what_a_worker_had_done_before_it_was_killed_is_done_again(machines) -> None:
    victim = machines.worker()
    machines.wait(1)
    with cluster.Cluster(1, machines.address, unsafe=False) as two:
        run = cluster._Run(two._client, two._is_alive)
        run.submit("a", _endless_job())
        done = run._done.get(timeout=120)  # and nobody has asked for the result
        run._done.put(done)
        machines.worker()
        machines.wait(2)
        victim.kill()
        while done.status == "finished" and two._threads() > 1:
            time.sleep(0.05)
        label, outcome = run.next()
    assert label == "a"
    assert outcome.status != "graded"


def test_when_all_workers_are_gone_it_says_so(monkeypatch, machines) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 2)
    worker = machines.worker()
    machines.wait(1)
    with cluster.Cluster(1, machines.address, unsafe=False) as three:
        jobs = ((number, _endless_job()) for number in range(3))
        worker.kill()
        with pytest.raises(cluster.ClusterError, match="What was graded is kept"):
            list(three.grade(jobs))


def test_when_the_scheduler_is_gone_it_says_so(monkeypatch, machines) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 2)
    machines.worker()
    machines.wait(1)
    with cluster.Cluster(1, machines.address, unsafe=False) as gone:
        machines.processes[0].kill()
        machines.processes[0].wait()
        with pytest.raises(cluster.ClusterError, match="What was graded is kept"):
            list(gone.grade([(0, _endless_job())]))


def _endless_job():
    from autograder.grading.job import Job
    from autograder.grading.paper import Paper

    return Job("a", "c", b"{}", Paper("c", "{}", "{}", {}, {}, {}))


def test_a_scheduler_without_workers(machines) -> None:
    with (
        pytest.raises(cluster.ClusterError, match=r"has no workers.*dask worker tcp"),
        cluster.Cluster(1, machines.address, unsafe=False),
    ):
        pass


def test_a_worker_of_another_version_is_named(machines, installed, tmp_path) -> None:
    other = tmp_path / "other"
    shutil.copytree(installed, other)
    (other / "autograder" / "chapters" / "extra.py").write_text("")
    machines.environment["PYTHONPATH"] = str(other)
    machines.worker()
    machines.wait(1)
    wanted = rf"the worker tcp\S*: has autograder .*, not {re.escape(code_version())}"
    with (
        pytest.raises(cluster.ClusterError, match=wanted),
        cluster.Cluster(1, machines.address, unsafe=False),
    ):
        pass


def test_a_worker_without_bubblewrap_is_named(machines) -> None:
    machines.environment["PATH"] = "/nowhere"
    machines.worker()
    machines.wait(1)
    with (
        pytest.raises(cluster.ClusterError, match=r"the worker tcp.*needs bubblewrap"),
        cluster.Cluster(1, machines.address, unsafe=False),
    ):
        pass


def test_a_scheduler_that_is_not_there(monkeypatch) -> None:
    monkeypatch.setattr(cluster, "SCHEDULER_TIMEOUT", 1)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{one.getsockname()[1]}"
        with (
            pytest.raises(cluster.ClusterError, match="no Dask scheduler answers"),
            cluster.Cluster(1, address, unsafe=False),
        ):
            pass


# --- over a network, and not over one -------------------------------------------------

without_openssl = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl is needed for certificates"
)


@without_openssl
def test_a_cluster_over_tls(certificates, tmp_path, installed, monkeypatch) -> None:
    monkeypatch.setattr(cluster, "SCHEDULER_TIMEOUT", 5)
    machines = Machines(tmp_path, installed, ("--protocol", "tls"))
    paper = Paper.of("02_class_token")
    jobs = [(0, Job("ada", paper.chapter, paper.released.encode(), paper))]
    try:
        assert machines.address.startswith("tls://127.0.0.1:")
        with dask.config.set(certificates):
            machines.worker()
            machines.wait(1)
            with cluster.Cluster(1, machines.address, unsafe=False) as safe:
                ((_, outcome),) = safe.grade(jobs)
        assert outcome.status == "graded", outcome.reason
        plain = machines.address.replace("tls://", "tcp://")
        for address in (machines.address, plain):  # without a certificate
            with (
                pytest.raises(cluster.ClusterError, match="no Dask scheduler answers"),
                cluster.Cluster(1, address, unsafe=False),
            ):
                pass
    finally:
        machines.stop()


def test_this_machine_s_own_cluster_listens_nowhere() -> None:
    # also where Dask's configuration is that of a cluster with TLS
    with (
        dask.config.set({"distributed.comm.require-encryption": True}),
        cluster.Cluster(2, None, unsafe=False, imports=()) as own,
    ):
        paper = Paper.of("02_class_token")
        job = Job("ada", paper.chapter, paper.released.encode(), paper)
        ((_, outcome),) = own.grade([(0, job)])
        this = psutil.Process()
        listening = [
            door
            for process in (this, *this.children(recursive=True))
            for door in process.net_connections("inet")
            if door.status == psutil.CONN_LISTEN
        ]
    assert outcome.status == "graded", outcome.reason
    assert listening == []


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        ("tcp://192.0.2.7:8786", True),
        ("192.0.2.7:8786", True),
        ("grader.example.org:8786", True),
        ("ws://grader.example.org:8786", True),
        ("tcp://[2001:db8::7]:8786", True),
        ("tls://grader.example.org:8786", False),
        ("wss://grader.example.org:8786", False),
        ("tcp://127.0.0.1:8786", False),
        ("localhost:8786", False),
        ("tcp://[::1]:8786", False),
    ],
)
def test_what_can_be_read_on_its_way_is_warned_of(address, warned) -> None:
    said = doors.warning(address)
    assert (address in said and "tls://" in said) == warned
    assert warned or not said
