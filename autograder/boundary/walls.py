"""What a process does to itself before it runs a student's code. Linux only.

The order matters. First namespaces: it sees no process but itself, no network, and
files of its own that vanish with it. Then limits, then no privileges, and last a filter
that allows the system calls that a notebook needs, and no other. Each wall holds alone.

The C library is called directly: Python's `os` knows most of this only from 3.12 on.
"""

import contextlib
import ctypes
import errno
import os
import resource
import signal
import struct
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

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

# System calls that a notebook needs: those that were made while the solved notebooks
# and code as students write it ran, and beside each its older and newer forms, which
# another version of the C library or another processor uses. Names that a processor
# has not are passed over.
ALLOWED = {
    "files that are open": "read readv pread64 preadv preadv2 write writev pwrite64 "
    "pwritev pwritev2 lseek close close_range dup dup2 dup3 fcntl flock fsync "
    "fdatasync sync_file_range ftruncate fallocate fadvise64 readahead sendfile "
    "copy_file_range fstat fstatfs",
    "files by their names": "open openat openat2 creat stat lstat newfstatat statx "
    "statfs access faccessat faccessat2 readlink readlinkat truncate rename "
    "renameat renameat2 link linkat symlink symlinkat unlink unlinkat chmod fchmod "
    "fchmodat fchmodat2 umask utime utimes utimensat futimesat getxattr lgetxattr "
    "fgetxattr listxattr llistxattr flistxattr",
    "folders": "getcwd chdir fchdir mkdir mkdirat rmdir getdents getdents64",
    "memory": "brk mmap munmap mprotect mremap madvise msync mincore mlock mlock2 "
    "munlock membarrier get_mempolicy",
    "threads": "futex set_robust_list get_robust_list set_tid_address rseq arch_prctl "
    "exit exit_group sched_yield sched_getaffinity sched_setaffinity sched_getparam "
    "sched_getscheduler sched_get_priority_max sched_get_priority_min getcpu "
    "getpriority wait4 waitid",
    "waiting": "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl "
    "epoll_wait epoll_pwait epoll_pwait2 pipe pipe2 eventfd eventfd2 timerfd_create "
    "timerfd_settime timerfd_gettime nanosleep clock_nanosleep restart_syscall pause",
    "clocks": "clock_gettime clock_getres gettimeofday time times getitimer setitimer "
    "alarm timer_create timer_settime timer_gettime timer_getoverrun timer_delete",
    "signals, to itself": "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending "
    "rt_sigtimedwait rt_sigsuspend sigaltstack kill tkill tgkill signalfd signalfd4",
    "its two sockets": "socketpair sendto recvfrom sendmsg recvmsg shutdown "
    "getsockname getpeername getsockopt setsockopt",
    "who and where it is": "getpid getppid gettid getuid geteuid getgid getegid "
    "getgroups getresuid getresgid getpgid getpgrp getsid getrlimit setrlimit "
    "prlimit64 getrusage capget uname sysinfo getrandom",
}
# Of calls that do many things, what their argument of this number may be.
ALLOWED_ARGUMENTS = {
    "ioctl": (1, (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),
    #             settings of a terminal, its size, what can be read; whether to wait,
    #             whether to close when another program is started
    "prctl": (0, (15, 16, 3, 0x53564D41)),
    #             the thread's name, whether it may be dumped, the name of memory
}
# System calls that fail with "Operation not permitted": what attacks are made of, and
# the parts of the kernel in which most of its holes were found. Whatever is neither
# here nor allowed fails as on a kernel that does not know it: libraries expect that.
REFUSED = {
    "processes and programs": "fork vfork execve execveat setsid setpgid setpriority "
    "sched_setscheduler sched_setparam sched_setattr",
    "other processes": "ptrace process_vm_readv process_vm_writev process_madvise "
    "process_mrelease kcmp pidfd_open pidfd_getfd pidfd_send_signal",
    "network": "socket connect bind listen accept accept4 sendmmsg recvmmsg",
    "namespaces and mounts": "unshare setns chroot pivot_root mount umount2 "
    "mount_setattr open_tree move_mount fsopen fsconfig fsmount fspick",
    "files by other ways": "name_to_handle_at open_by_handle_at mknod mknodat "
    "fanotify_init inotify_init inotify_init1 quotactl chown fchown lchown fchownat "
    "setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr",
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


def filter_of_calls() -> bytes:
    """Compile the filter of system calls for this machine, as the kernel loads it.

    Raises:
        ImportError, OSError, RuntimeError: libseccomp is missing or too old.
    """
    import pyseccomp

    calls = pyseccomp.SyscallFilter(pyseccomp.ERRNO(errno.ENOSYS))
    refuse, allow = pyseccomp.ERRNO(errno.EPERM), pyseccomp.ALLOW
    for action, names in ((allow, ALLOWED), (refuse, REFUSED)):
        for name in " ".join(names.values()).split():
            _add(calls, action, name)
    for name, (number, values) in ALLOWED_ARGUMENTS.items():
        for value in values:
            _add(calls, allow, name, pyseccomp.Arg(number, pyseccomp.EQ, value))
    # a thread, not in namespaces of its own; what starts no thread is a process.
    # The flags of clone3 are in memory, out of sight; libraries then use clone.
    of_a_thread = pyseccomp.Arg(0, pyseccomp.MASKED_EQ, THREAD | NEW_ANY, THREAD)
    _add(calls, allow, "clone", of_a_thread)
    _add(calls, refuse, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, THREAD, 0))
    # a process that is to end with its parent stays so
    ends = pyseccomp.Arg(0, pyseccomp.EQ, PR_SET_PDEATHSIG)
    _add(calls, refuse, "prctl", ends)
    with tempfile.TemporaryFile() as file:
        calls.export_bpf(file)
        file.seek(0)
        return file.read()


def _add(calls: Any, action: int, name: str, *arguments: object) -> None:
    with contextlib.suppress(OSError):  # unknown on this processor or to this library
        calls.add_rule(action, name, *arguments)


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


def become(user: int) -> None:
    """Go on as another user, who may read and write nothing of root's own."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


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
    """Have the kernel refuse the calls that ``filter_of_calls`` does not allow."""
    held = ctypes.create_string_buffer(program, len(program))
    described = _Program(len(program) // 8, ctypes.addressof(held))
    loaded = _c.prctl(PR_SET_SECCOMP, SECCOMP_FILTER, ctypes.byref(described), 0, 0)
    _checked(loaded, "the filter of system calls")


def inherit_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that none is lost."""
    _checked(_c.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "orphans")


def end_with_parent(parent: int) -> None:
    """Be killed when the parent ends, which has this number; at once if it has."""
    _checked(_c.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "end with parent")
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
