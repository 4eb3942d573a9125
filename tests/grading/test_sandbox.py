"""Each wall of the sandbox holds, one attack after another, and nothing is left behind.

The attacks run as a student's cells do: in a child of the zygote, through the socket.
"""

import errno
import os
import platform
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyseccomp
import pytest

from autograder.boundary import stubs, walls
from autograder.boundary.channel import Channel
from autograder.boundary.zygote import LIBRARIES, OWN
from autograder.grading import sandbox as module
from autograder.grading.limits import MIB, Limits
from autograder.grading.sandbox import Cage, Sandbox, SandboxError, problem

ROOT = Path(__file__).resolve().parents[2]
LIMITS = Limits(cpu_seconds=3, memory_bytes=600 * MIB)
SECRET = "a-secret-of-the-grader"
NATIVE = 0  # libseccomp's name of this processor
MUST_BE_REFUSED = (
    "fork vfork execve execveat ptrace process_vm_readv process_vm_writev "
    "process_madvise process_mrelease kcmp pidfd_open pidfd_getfd pidfd_send_signal "
    "socket unshare setns chroot pivot_root mount umount2 mount_setattr open_tree "
    "move_mount fsopen fsconfig fsmount fspick name_to_handle_at open_by_handle_at "
    "mknod mknodat fanotify_init inotify_init inotify_init1 quotactl shmget shmat "
    "shmctl msgget msgsnd semget mq_open memfd_create memfd_secret keyctl add_key "
    "request_key vmsplice splice tee bpf perf_event_open userfaultfd seccomp "
    "io_uring_setup io_uring_enter io_uring_register io_setup io_submit personality "
    "modify_ldt syslog acct swapon swapoff reboot kexec_load kexec_file_load "
    "init_module finit_module delete_module iopl ioperm clock_settime clock_adjtime "
    "settimeofday adjtimex sethostname setdomainname setuid setgid setreuid setregid "
    "setresuid setresgid setgroups capset migrate_pages move_pages mbind set_mempolicy"
)

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(bool(problem()), reason=problem()),
]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    os.environ["SECRET_OF_THE_GRADER"] = SECRET
    with Sandbox(LIMITS) as opened:
        yield opened
    del os.environ["SECRET_OF_THE_GRADER"]


@pytest.fixture
def cage(sandbox) -> Iterator[Cage]:
    cage = sandbox.open()
    yield cage
    cage.end()


@pytest.fixture(scope="module")
def bare() -> Iterator[Sandbox]:
    """A sandbox without the filter of system calls: the other walls hold alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walls, "filter_of_calls", lambda: b"")
        opened = Sandbox(LIMITS)
        opened.start()
    yield opened
    opened.close()


def run(cage: Cage, code: str, seconds: float = 30) -> str:
    """Run a cell; return what it printed, or its error."""
    channel = Channel(cage.socket)
    request = {"do": "cell", "code": textwrap.dedent(code), "output_bytes": 10**6}
    channel.send(request | {"number": 1})
    reply = channel.receive(time.monotonic() + seconds)["value"]
    text = "".join(each.get("text", "") for each in reply["outputs"])
    return reply["error"] or text.strip()


def start(cage: Cage, code: str) -> None:
    """Run a cell without waiting for its end."""
    request = {"do": "cell", "code": textwrap.dedent(code), "output_bytes": 10**6}
    Channel(cage.socket).send(request | {"number": 1})


def wait_until(condition, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def zygote_of(sandbox: Sandbox) -> psutil.Process:
    """Find it: the one process that bubblewrap has started."""
    return psutil.Process(sandbox._zygote._process.pid).children()[0]


def gone(cage: Cage) -> bool:
    return wait_until(lambda: not cage.alive())


# --- what works -----------------------------------------------------------------------


def test_notebook_works_inside(sandbox):
    cage = sandbox.open({"transformer/attention.py": b"SCALE = 3"})
    code = """
        import asyncio, threading, torch, numpy
        import matplotlib.pyplot as plt
        from sklearn.datasets import load_digits
        from autograder.chapters import attention as check
        from transformer.attention import SCALE
        from workbench import plots
        check.softmax(plots.as_array)
        worker = threading.Thread(target=torch.ones(9, 9).matmul, args=(torch.ones(9),))
        worker.start(); worker.join()
        plt.plot([1, 2]); plt.savefig("figure.png"); open("/tmp/x", "w").write("x")
        async def five(): return 5
        print(SCALE, len(load_digits().images), asyncio.new_event_loop() and 5)
    """
    assert run(cage, code).splitlines() == [
        f"attention.softmax: {stubs.CHECKED_LATER}",
        "3 1797 5",
    ]
    assert cage.end() == ""


def test_what_most_notebooks_import_is_there_before(cage):
    """So that no submission pays for it; a module that fails to import is missing."""
    wanted = [*LIBRARIES, OWN]
    missing = run(
        cage, f"import sys; print([n for n in {wanted} if n not in sys.modules])"
    )
    assert missing == "[]"


def test_interrupt_stops_a_cell(cage):
    start(cage, "print('begun', flush=True)\nwhile True: pass")
    time.sleep(0.3)
    cage.interrupt()
    reply = Channel(cage.socket).receive(time.monotonic() + 20)
    assert "KeyboardInterrupt" in reply["value"]["error"]
    assert run(cage, "print(1)") == "1"


def test_each_child_begins_anew(sandbox):
    first = sandbox.open()
    run(first, "import torch, os; torch.softmax = None; open('/tmp/left', 'w'); x = 1")
    second = sandbox.open()  # at the same time
    assert "NameError" in run(second, "print(x)")
    print_all = "import torch, os; print(torch.softmax is None, os.listdir('.'))"
    assert run(second, print_all) == "False []"
    assert (first.end(), second.end()) == ("", "")


def test_files_outside_the_folder_are_refused(sandbox):
    for name in ("../x", "/tmp/x", "a/../../x", ""):
        with pytest.raises(ValueError):
            sandbox.open({name: b""})


# --- what is seen ---------------------------------------------------------------------

WALK = """
    import os, stat
    found, unread, count = [], 0, 0
    for folder, folders, names in os.walk("/", followlinks=False):
        for name in names:
            path = os.path.join(folder, name)
            count += 1
            if name in {names} or name.endswith((".ipynb", ".db", ".sqlite")):
                if not path.startswith(("/usr", {base})):
                    found.append(path)
            if path.startswith({searched}) and stat.S_ISREG(os.lstat(path).st_mode):
                content = open(path, "rb").read()
                found += [path for secret in {secrets} if secret in content]
    print(found, count > 1000, {seen})
"""


def test_nothing_hidden_is_readable(cage):
    """The text of hidden tests, gradebooks, notebooks, sources: none is in any file."""
    code = WALK.format(
        names={"gradebook.db", ".bashrc", "id_rsa", ".env", "known_hosts"},
        base=repr(sys.base_prefix),
        searched=("/course", "/tmp", "/root", "/home", "/etc", "/work"),
        secrets=[b"HIDDEN " + b"TESTS", SECRET.encode()],
        seen="sorted(os.listdir('/course/autograder'))",
    )
    # the packages of the environment may be in /tmp, and hold nbgrader with its tests
    code = code.replace(
        "for name in names:",
        "if '/lib/python' in folder: continue\n        for name in names:",
    )
    public = [
        "__init__.py",
        "boundary",
        "files.py",
        "forbidden.py",
        "held.py",
        "interface.py",
        "time_limit.py",
    ]
    assert run(cage, code, 60) == f"[] True {public}"


def test_answers_installed_beside_the_packages_are_hidden(cage):
    code = """
        import sys
        sys.path.append("/course/solutions")
        for name in ("transformer", "mistakes", "autograder.grading", "tests"):
            try: __import__(name); print(name, sys.modules[name].__path__)
            except ImportError: pass
    """
    assert run(cage, code) == ""


def test_environment_and_home_are_empty(cage):
    assert SECRET not in run(cage, "import os; print(dict(os.environ))")
    names = run(cage, "import os; print(sorted(os.environ))")
    allowed = {*module.ENVIRONMENT, "PYTHONPATH", "PWD", "LC_CTYPE"}
    added = {"KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"}  # by libraries
    assert set(eval(names)) <= allowed | added | {"CLICOLOR", "PAGER", "GIT_PAGER"}
    home = str(Path.home())
    listed = f"import os; print(os.path.exists({home!r}) and os.listdir({home!r}))"
    assert run(cage, listed) in ("False", "[]", "['.pyenv']")


def test_proc_is_empty_and_no_device_but_five(cage):
    listed = "import os; print(os.listdir('/proc'), sorted(os.listdir('/dev')))"
    assert run(cage, listed) == f"[] {sorted(module.DEVICES)}"


def test_no_descriptor_but_its_socket(cage):
    code = """
        import os
        kinds = {}
        for number in range(64):
            try: kinds[number] = os.readlink(f"/dev/fd/{number}")
            except OSError: pass
            try: kinds[number] = oct(os.fstat(number).st_mode)[:4]
            except OSError: pass
        print(sorted(kinds.values()))
    """
    open_files = eval(run(cage, code))
    sockets = [kind for kind in open_files if kind == "0o14"]
    assert len(sockets) == 1  # the others: /dev/null
    assert len(open_files) <= 5


@pytest.mark.parametrize("path", ["/", "/course/x", "/usr/lib/x", "/dev/x", "/etc/x"])
def test_system_is_read_only(cage, path):
    code = f"open({path!r} if {path!r} != '/' else '/x', 'w')"
    assert "OSError" in run(cage, code) or "Read-only" in run(cage, code)


# --- network --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "socket.create_connection(('127.0.0.1', {port}), 2)",
        "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('9.9.9.9', 53))",
        "socket.socket(socket.AF_UNIX).connect('\\0{name}')",
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "import urllib.request; urllib.request.urlopen('http://127.0.0.1:{port}')",
        "socket.getaddrinfo('example.org', 80)",
    ],
)
def test_no_network(cage, code):
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        name = f"sandbox-test-{os.getpid()}"
        unix.bind(f"\0{name}")
        unix.listen()
        code = code.format(port=tcp.getsockname()[1], name=name)
        said = run(cage, f"import socket\n{code}")
    assert "Error" in said or "gaierror" in said


# --- other processes ------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "os.fork()",
        "os.posix_spawn('/usr/bin/true', ['true'], {})",
        "subprocess.run(['true'])",
        "os.execv(sys.executable, ['python'])",
        "multiprocessing.Process(target=print).start()",
        "os.setsid() or c('ptrace', 16, 1, 0, 0)",
        "c('unshare', 0x10000000)",
        "c('mount', b'tmpfs', b'/tmp', b'tmpfs', 0, None)",
        "c('umount2', b'/proc', 2)",
        "c('chroot', b'/tmp')",
        "c('setns', 0, 0)",
        "c('memfd_create', b'x', 0)",
        "c('shmget', 0, 4096, 0o1600)",
        "c('prctl', 1, 0)",
        "c('syscall', 321, 0, 0, 0)",
        "c('syscall', 425, 1, 0)",
        "c('syscall', 56, 0x11, 0, 0, 0, 0)",
        "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    ],
)
def test_call_is_refused(cage, code):
    said = run(
        cage,
        f"""
        import ctypes, multiprocessing, os, resource, subprocess, sys
        from multiprocessing import Process
        def c(name, *args):
            if getattr(ctypes.CDLL(None, use_errno=True), name)(*args) == -1:
                raise OSError(ctypes.get_errno(), name)
        {code}
        """,
    )
    assert "PermissionError" in said or "ValueError" in said, said
    assert run(cage, "print(1)") == "1"


def decide(program: bytes, number: int, arguments: tuple[int, ...] = ()) -> int:
    """Run the filter as the kernel does; return the error of a call, 0 if allowed."""
    steps = list(struct.iter_unpack("=HBBI", program))
    arch = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[platform.machine()]
    padded = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("=IIQ6Q", number, arch, 0, *padded)
    at, value = 0, 0
    while True:
        code, then, other, constant = steps[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, constant)
            case 0x54:
                value &= constant
            case 0x05:
                at += constant
            case 0x15 | 0x25 | 0x35 | 0x45:
                holds = {
                    0x15: value == constant,
                    0x25: value > constant,
                    0x35: value >= constant,
                    0x45: value & constant,
                }[code]
                at += then if holds else other
            case 0x06:
                return 0 if constant == 0x7FFF0000 else constant & 0xFFFF
            case _:
                raise AssertionError(f"an instruction of no known kind: {code:#x}")


def numbers(names: str) -> dict[str, int]:
    """The numbers of system calls on this processor, of those that it has."""
    found = {name: pyseccomp.resolve_syscall(NATIVE, name) for name in names.split()}
    return {name: number for name, number in found.items() if number >= 0}


def test_calls_are_allowed_by_a_list() -> None:
    program = walls.filter_of_calls()
    allowed = numbers(" ".join(walls.ALLOWED.values()))
    assert len(allowed) > 100
    every = {number for number in range(1024) if decide(program, number) == 0}
    assert every == set(allowed.values())


def test_what_attacks_are_made_of_is_not_permitted() -> None:
    program = walls.filter_of_calls()
    refused = numbers(" ".join(walls.REFUSED.values()))
    assert set(MUST_BE_REFUSED.split()) <= set(" ".join(walls.REFUSED.values()).split())
    wrong = [n for n, each in refused.items() if decide(program, each) != errno.EPERM]
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("clone", (0x3D0F00,), 0),  # what the C library makes a thread with
        ("clone", (0x11,), errno.EPERM),  # and a process
        ("clone", (0x4111,), errno.EPERM),
        ("clone", (0x3D0F00 | 0x10000000,), errno.ENOSYS),  # a user namespace
        ("clone", (0x3D0F00 | 0x00020000,), errno.ENOSYS),
        ("clone3", (), errno.ENOSYS),
        ("prctl", (15,), 0),
        ("prctl", (1,), errno.EPERM),
        ("prctl", (22,), errno.ENOSYS),
        ("prctl", (4,), errno.ENOSYS),
        ("ioctl", (0, 0x5401), 0),
        ("ioctl", (0, 0x541B), 0),
        ("ioctl", (0, 0x5412), errno.ENOSYS),  # types into a terminal
        ("ioctl", (0, 0xAE00), errno.ENOSYS),
    ],
)
def test_arguments_of_calls_that_do_many_things(name, arguments, error) -> None:
    (number,) = numbers(name).values()
    assert decide(walls.filter_of_calls(), number, arguments) == error


def test_signals_reach_nobody_else(sandbox, cage):
    code = """
        import os, signal
        for number in range(1, 400):
            for each in (signal.SIGKILL, signal.SIGSTOP):
                try: os.kill(number, each)
                except ProcessLookupError: pass
        os.kill(-1, signal.SIGKILL) if os.getpid() != 1 else None
        print(os.getpid(), os.getppid())
    """
    assert run(cage, code) == "1 0"
    assert run(sandbox.open(), "print(2)") == "2"


def test_no_process_can_be_traced_even_without_the_filter(bare):
    """The namespaces hide them all, and there are no privileges to leave these."""
    code = """
        import ctypes, os
        c = ctypes.CDLL(None, use_errno=True)
        print([c.ptrace(16, number, 0, 0) for number in range(400)].count(0))
        print(os.path.exists("/proc/1/mem"), c.unshare(0x20000))
        print(c.mount(b"proc", b"/proc", b"proc", 0, None), os.getppid())
    """
    cage = bare.open()
    assert run(cage, code).split() == ["0", "False", "-1", "-1", "0"]
    cage.end()


def test_zygote_cannot_be_traced_by_one_that_sees_it(sandbox, cage):
    """Another user namespace is enough: its memory is closed to a child's credentials.

    From here it can be seen, so this side enters the child's user namespace only.
    """
    zygote = zygote_of(sandbox).pid
    code = f"""
import ctypes, os
c = ctypes.CDLL(None, use_errno=True)
inside = os.open("/proc/{cage.process}/ns/user", os.O_RDONLY)
assert c.setns(inside, 0x10000000) == 0
print(c.ptrace(16, {zygote}, 0, 0))
try: open("/proc/{zygote}/mem", "rb+")
except OSError as error: print(type(error).__name__)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said.stdout.split() == ["-1", "PermissionError"], said.stderr


# --- limits ---------------------------------------------------------------------------


def test_threads_are_counted(cage):
    start(
        cage,
        """
        import threading, time
        while True: threading.Thread(target=time.sleep, args=(60,)).start()
        """,
    )
    assert gone(cage)
    assert cage.end() == "threads"


@pytest.mark.parametrize(
    "code",
    [
        "kept = [bytearray(2**24) for _ in range(1000)]",
        "import torch; torch.empty(2**34)",
        "import numpy; numpy.ones(2**31)",
        "import mmap; mmap.mmap(-1, 2**31)",
    ],
)
def test_memory_is_limited(cage, code):
    said = run(cage, code)
    assert "Memory" in said or "memory" in said
    assert run(cage, "print(1)") == "1"


def test_files_are_limited_in_size_and_number(cage):
    code = """
        import os
        def tell(path, size):
            try:
                with open(path, "wb") as file:
                    for _ in range(size): file.write(bytes(2**20))
            except OSError as error: return error.errno
        print(tell("a", 40), tell("b", 30), tell("c", 30))
        os.remove("a"), os.remove("b"), os.remove("c")
        try:
            for number in range(5000): open(str(number), "w").close()
        except OSError as error: print(number < 1000, error.errno)
        for each in range(number): os.remove(str(each))
        try: kept = [open("x", "w") for _ in range(500)]
        except OSError as error: print(error.errno)
        kept = None
    """
    assert run(cage, code) == "27 None 28\nTrue 28\n24"
    assert run(cage, "print(1)") == "1"


def test_processor_time_is_limited(cage):
    start(
        cage,
        """
        import signal
        for number in range(1, 65):
            try: signal.signal(number, lambda *_: None)
            except (OSError, ValueError): pass
        while True: pass
        """,
    )
    assert gone(cage)
    assert cage.end() == "cpu time"


def test_exit_and_crash_are_told_apart(sandbox):
    for code, reason in (
        ("import os; os._exit(3)", "exit code 3"),
        ("import ctypes; ctypes.string_at(0)", "crashed (SIGSEGV)"),
    ):
        cage = sandbox.open()
        start(cage, code)
        assert gone(cage)
        assert cage.end() == reason
        assert not cage.lost


def test_killed_from_outside_is_worth_another_try(sandbox):
    cage = sandbox.open()
    os.kill(cage.process, signal.SIGKILL)
    assert gone(cage)
    assert (cage.end(), cage.lost) == ("killed (SIGKILL)", True)


# --- nothing is left ------------------------------------------------------------------


def test_nothing_is_left_of_the_worst(bare):
    """Threads, ignored signals, detached grandchildren, full disks; without the filter.

    The namespaces alone take care of it.
    """
    cage = bare.open()
    zygote = zygote_of(bare)
    code = """
        import os, signal, threading, time
        for number in range(1, 65):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        for _ in range(20): threading.Thread(target=time.sleep, args=(99,)).start()
        for _ in range(5):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0: time.sleep(999)
                time.sleep(999)
        try: open("/tmp/full", "wb").write(bytes(2**26))
        except OSError: pass
        print("done")
    """
    mounts = Path(f"/proc/{zygote.pid}/mounts").read_text()
    assert run(cage, code) == "done"
    assert wait_until(lambda: len(zygote.children(recursive=True)) > 10)
    assert cage.end() == ""
    assert zygote.children(recursive=True) == []
    assert Path(f"/proc/{zygote.pid}/mounts").read_text() == mounts
    assert run(bare.open(), "import os; print(os.listdir('.'))") == "[]"


def test_descriptors_do_not_pile_up(sandbox):
    sandbox.open().end()
    zygote = zygote_of(sandbox)
    before = psutil.Process().num_fds(), len(os.listdir(f"/proc/{zygote.pid}/fd"))
    for _ in range(5):
        sandbox.open().end()
    after = psutil.Process().num_fds(), len(os.listdir(f"/proc/{zygote.pid}/fd"))
    assert after == before


GRADER = """
import sys, time
from autograder.grading.limits import Limits
from autograder.grading.sandbox import Sandbox
sandbox = Sandbox(Limits(), unsafe={unsafe})
cage = sandbox.open()
print(cage.process, sandbox._zygote._process.pid, flush=True)
time.sleep(99)
"""


@pytest.mark.parametrize("unsafe", [False, True])
def test_all_die_with_the_grader(unsafe):
    with subprocess.Popen(
        [sys.executable, "-c", GRADER.format(unsafe=unsafe)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as grader:
        below = [psutil.Process(int(n)) for n in grader.stdout.readline().split()]
        below += below[1].children(recursive=True)
        grader.kill()
    assert wait_until(lambda: not any(each.is_running() for each in below))


def test_a_killed_zygote_is_replaced(sandbox):
    cage = sandbox.open()
    sandbox._zygote._process.kill()
    assert gone(cage)
    cage.end()
    assert cage.lost
    again = sandbox.open()
    assert run(again, "print(1)") == "1"
    assert again.end() == ""


# --- where it is otherwise ------------------------------------------------------------


def test_without_nested_namespaces_each_gets_its_own_sandbox(monkeypatch):
    """As where a system's rules forbid them to what runs in bubblewrap."""
    options = module._walls

    def forbidding(*arguments):
        yield from ("--unshare-user", "--disable-userns")
        yield from options(*arguments)

    monkeypatch.setattr(module, "_walls", forbidding)
    with Sandbox(LIMITS) as sandbox:
        cage = sandbox.open({"a.py": b"A = 4"})
        assert "slower" in sandbox.notice
        code = "import a, os; print(a.A, os.getpid(), os.listdir('/proc'))"
        assert run(cage, code) == "4 1 []"
        assert "PermissionError" in run(cage, "import os; os.fork()")
        process = psutil.Process(cage.process)
        assert cage.end() == ""
        assert not process.is_running()


def test_unsafe_needs_no_bubblewrap(monkeypatch):
    monkeypatch.setattr(module, "PROGRAM", "no-such-program")
    with Sandbox(LIMITS, unsafe=True) as sandbox:
        cage = sandbox.open({"a.py": b"A = 4"})
        folder = run(cage, "import a, os; print(os.getcwd())")
        code = """
            import os, time
            if os.fork() == 0:
                os.setsid()
                time.sleep(999)
            print(1)
        """
        run(cage, code)
        started = psutil.Process(cage.process).children()
        assert cage.end() == ""
        assert len(started) == 1
        assert not started[0].is_running()
        assert not Path(folder).exists()


def test_problem_says_what_to_do(monkeypatch):
    problem.cache_clear()
    monkeypatch.setattr(module, "PROGRAM", "no-such-program")
    assert "apt-get install bubblewrap" in problem()
    with pytest.raises(SandboxError, match="apt-get install bubblewrap"):
        Sandbox(LIMITS).open()
    problem.cache_clear()
    monkeypatch.setattr(module, "PROGRAM", "false")
    assert "bubblewrap" in problem()
    problem.cache_clear()


def test_how_long_it_takes(sandbox, capsys):
    times = []
    for _ in range(10):
        begun = time.perf_counter()
        cage = sandbox.open()
        opened = time.perf_counter()
        cage.end()
        times.append((opened - begun, time.perf_counter() - opened))
    zygote = zygote_of(sandbox)
    assert zygote.num_threads() == 1  # a fork copies no other
    memory = zygote.memory_full_info().pss / MIB
    opening, ending = (sorted(each)[5] * 1000 for each in zip(*times, strict=True))
    with capsys.disabled():
        print(f" open {opening:.0f} ms, end {ending:.0f} ms, zygote {memory:.0f} MiB")
