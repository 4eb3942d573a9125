"""Who can reach the grading: nobody on this machine's cluster, and over a network TLS.

Dask's scheduler and its workers serve web pages, a worker on every address of the
machine. The cluster of this machine's own cores needs none: its parts are threads of
one process. Whoever grades on a cluster of machines names its scheduler; what Dask's
configuration says of certificates is used for an address that begins with tls://.
"""

import ipaddress
from typing import Any

from distributed import Scheduler, Security, SpecCluster, Worker

ENCRYPTED = ("tls", "wss")
READABLE = (
    "WARNING: {address}: what is sent there can be read on its way, students' work and "
    "the hidden tests among it, and whoever reaches that scheduler can run code on its "
    "workers. Use tls:// (Dask's TLS), unless the network is yours alone.\n"
)


class _WithoutPages:
    """A part of a cluster that opens no port for Dask's web pages."""

    def start_http_server(self, *arguments: Any, **options: Any) -> None:
        """Start none (called by Dask)."""


class _Scheduler(_WithoutPages, Scheduler):
    pass


class _Worker(_WithoutPages, Worker):
    pass


def own_cluster(threads: int) -> SpecCluster:
    """Make a cluster of threads of this process, which nobody else can reach.

    Args:
        threads: of its one worker.
    """
    # whatever Dask's configuration says of other clusters: nothing leaves the process
    common = {
        "protocol": "inproc://",
        "security": Security(require_encryption=False),
        "dashboard": False,
    }
    worker = {"nthreads": threads, "memory_limit": 0, "silence_logs": 50}
    return SpecCluster(
        scheduler={"cls": _Scheduler, "options": common},
        workers={0: {"cls": _Worker, "options": common | worker}},
        security=common["security"],
        silence_logs=50,
    )


def warning(address: str) -> str:
    """Return what to say before grading on the cluster of a scheduler, or nothing.

    >>> warning("tls://grader.example.org:8786"), warning("tcp://127.0.0.1:8786")
    ('', '')
    """
    scheme, _, place = address.rpartition("://")
    if scheme in ENCRYPTED or _is_this_machine(place):
        return ""
    return READABLE.format(address=address)


def _is_this_machine(place: str) -> bool:
    host = place.rpartition(":")[0] or place
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
