"""Who can reach the grading: nobody on this machine's cluster, and over a network TLS.

On this machine's own cores nothing listens: threads of one process wait for the
processes that grade. Whoever grades on a cluster of machines names its scheduler; what
Dask's configuration says of certificates is used for an address that begins with tls://.
"""

import ipaddress

ENCRYPTED = ("tls", "wss")
READABLE = (
    "WARNING: {address}: what is sent there can be read on its way, students' work and "
    "the hidden tests among it, and whoever reaches that scheduler can run code on its "
    "workers. Use tls:// (Dask's TLS), unless the network is yours alone.\n"
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
