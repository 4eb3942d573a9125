"""What a process does to itself before it runs a student's code. Linux only.

The order matters. First namespaces: it sees no process but itself, no network, and
files of its own that vanish with it. Then limits, then no privileges, and last a filter
that refuses the system calls that a notebook does not need. Each wall holds alone.

The C library is called directly: Python's `os` knows most of this only from 3.12 on.
"""

import contextlib
import ctypes
import errno
import os
import resource
import struct
import tempfile
from collections.abc import Iterable
from pathlib import Path

HOME = Path("/tmp")  # the only folder that can be written to
WORK = HOME / "work"  # the current folder when a notebook starts
WITHOUT_PROC = 2**30  # what the libraries take, where it cannot be looked up

NEW_NAMESPACES = 0x10000000 | 0x20000000 | 0x00020000 | 0x08000000
#                user         process IDs  mounts       shared memory
# (the network is bubblewrap's: there is none; another would take as long as all these)
THREAD, NEW_ANY = 0x00010000, 0x7E020080  # flags of the call that makes a thread
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_RECURSIVE, MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18
PR_SET_SECCOMP, SECCOMP_FILTER = 22, 2
PR_SET_PDEATHSIG, PR_CAPBSET_DROP = 1, 24
PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 38, 36
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
CAPABILITIES_VERSION = 0x20080522

# System calls that fail with "Operation not permitted": what attacks are made of, and
# the parts of the kernel in which most of its holes were found. No notebook needs them.
REFUSED = {
    "processes and programs": "fork vfork execve execveat",
    "other processes": "ptrace process_vm_readv process_vm_writev process_madvise "
    "process_mrelease kcmp pidfd_open pidfd_getfd pidfd_send_signal",
    "network": "socket",
    "namespaces and mounts": "unshare setns chroot pivot_root mount umount2 "
    "mount_setattr open_tree move_mount fsopen fsconfig fsmount fspick",
    "files by other ways": "name_to_handle_at open_by_handle_at mknod mknodat "
    "fanotify_init inotify_init inotify_init1 quotactl",
    "memory outlasting or shared": "shmget shmat shmctl msgget msgsnd semget mq_open "
    "memfd_create memfd_secret keyctl add_key request_key vmsplice splice tee",
    "engines in the kernel": "bpf perf_event_open userfaultfd seccomp io_uring_setup "
    "io_uring_enter io_uring_register io_setup io_submit personality modify_ldt",
    "the machine": "syslog acct swapon swapoff reboot kexec_load kexec_file_load "
    "init_module finit_module delete_module iopl ioperm clock_settime clock_adjtime "
    "settimeofday adjtimex sethostname setdomainname",
    "identity": "setuid setgid setreuid setregid setresuid setresgid setgroups capset",
    "placement of memory": "migrate_pages move_pages mbind set_mempolicy",
}

_c = ctypes.CDLL(None, use_errno=True)


def forbidden_calls() -> bytes:
    """Compile the filter of system calls: a program for the kernel.

    Done once, on the trusted side, where the library that compiles it is at hand.
    """
    import pyseccomp

    calls = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    refuse = pyseccomp.ERRNO(errno.EPERM)
    for name in " ".join(REFUSED.values()).split():
        try:
            calls.add_rule(refuse, name)
        except OSError:  # unknown on this processor or to this library
            continue
    masked = pyseccomp.Arg(0, pyseccomp.MASKED_EQ, THREAD, 0)  # a process, no thread
    calls.add_rule(refuse, "clone", masked)
    for bit in (1 << position for position in range(32)):
        if bit & NEW_ANY:
            wanted = pyseccomp.Arg(0, pyseccomp.MASKED_EQ, bit, bit)
            calls.add_rule(refuse, "clone", wanted)
    # a process that is to end with its parent stays so
    ends = pyseccomp.Arg(0, pyseccomp.EQ, PR_SET_PDEATHSIG)
    calls.add_rule(refuse, "prctl", ends)
    # its flags are in memory, out of the filter's sight; libraries then use clone
    calls.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "clone3")
    with tempfile.TemporaryFile() as file:
        calls.export_bpf(file)
        file.seek(0)
        return file.read()


def enter_namespaces() -> None:
    """Leave the others' namespaces; the next process forked is alone in new ones.

    Raises:
        OSError: the system does not allow it here.
    """
    user, group = os.geteuid(), os.getegid()
    _checked(_c.unshare(NEW_NAMESPACES), "namespaces")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def own_files(size: int, count: int, kept: Iterable[str]) -> None:
    """Cover /tmp with an empty folder of limited size, /proc with one of no size.

    Args:
        size: bytes of all files together.
        count: how many files and folders there may be.
        kept: folders in /tmp that stay: a checkout there may hold the packages.
    """
    _checked(_c.mount(None, b"/", None, MS_PRIVATE | MS_RECURSIVE, None), "mounts")
    held = {folder: os.open(folder, os.O_PATH) for folder in kept}
    _cover("/tmp", 0, f"mode=700,size={size},nr_inodes={count}")
    for folder, descriptor in held.items():
        os.makedirs(folder)
        source = f"/proc/self/fd/{descriptor}".encode()
        flags = MS_BIND | MS_RECURSIVE
        bound = _c.mount(source, folder.encode(), None, flags, None)
        _checked(bound, f"{folder} inside")
        os.close(descriptor)
    _cover("/proc", MS_RDONLY, "mode=555,size=4k,nr_inodes=1")


def _cover(folder: str, flags: int, options: str) -> None:
    flags |= MS_NOSUID | MS_NODEV | MS_NOEXEC
    made = _c.mount(b"tmpfs", folder.encode(), b"tmpfs", flags, options.encode())
    _checked(made, f"a folder over {folder}")


def work_in(folder: Path, files: dict[str, bytes]) -> None:
    """Make the folder in which a notebook starts, with these files in it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    os.chdir(folder)


def limit(memory: int, cpu_seconds: int, open_files: int, file_bytes: int) -> None:
    """Limit this process; what it has used until now is not counted."""
    taken = _address_space()
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = int(used.ru_utime + used.ru_stime) + cpu_seconds
    for kind, most in (
        (resource.RLIMIT_AS, taken + memory),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_NOFILE, open_files),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(kind, (most, most))


def _address_space() -> int:
    with contextlib.suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return pages * resource.getpagesize()
    return WITHOUT_PROC


def give_up_privileges() -> None:
    """Drop every capability, those of the namespace too, for good."""
    for number in range(64):
        if _c.prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            break  # beyond the last one that this kernel knows
    _c.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = struct.pack("=Ii", CAPABILITIES_VERSION, 0)
    _checked(_c.capset(header, bytes(24)), "capabilities")
    _checked(_c.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def refuse_calls(program: bytes) -> None:
    """Have the kernel refuse the system calls that ``forbidden_calls`` listed."""
    held = ctypes.create_string_buffer(program, len(program))
    described = _Program(len(program) // 8, ctypes.addressof(held))
    loaded = _c.prctl(PR_SET_SECCOMP, SECCOMP_FILTER, ctypes.byref(described), 0, 0)
    _checked(loaded, "the filter of system calls")


def inherit_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that none is lost."""
    _checked(_c.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "orphans")


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
