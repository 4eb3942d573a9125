"""Attacks: none gains a point, leaves a trace, carries anything away, or disturbs.

Each file of ``tests/attacks/`` is a submission that tries one thing. All are graded by
the same grader, and after those that could disturb it, and every few others, an honest
one. What it could steal has been planted: a
secret in the gradebook, in the hidden tests, in another student's notebook, in the
environment and in the home folder. Whoever attacks knows where everything is.
"""

import contextlib
import importlib.util
import json
import os
import pwd
import re
import secrets
import socket
import sqlite3
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from autograder import generator
from autograder.grading import fork_server, grader, reference, sandbox
from autograder.grading.fork_server import ForkServer
from autograder.grading.grader import Grader
from autograder.grading.job import GRADED, UNGRADED, Outcome, flag_text
from tests import strangers

ATTACKS = strangers.read_all(Path(__file__).parents[1] / "attacks")
GROUPS = ("damage", "forging", "leaking", "starving", "stealing")
HEADERS = {
    "chapter",
    "exercise",
    "where",
    "status",
    "reason",
    "limited",
    "flagged",
    "without-walls",
    "hidden",
    "wrong",
}
DISTURBING = ("damage", "starving")
EVERY = 6  # of the others, an honest submission follows
MARK = re.compile(rb"attack.was.here")  # in all that an attack leaves or sends
LEAKED = "LEAKED"  # printed by an attack that got where it should not
OUR_OWN = {each.MODULE for each in (fork_server, grader, reference)}
KEY = 0xA77AC  # of an attack's shared memory
LARGEST = 2_000_000  # characters of what comes back, beside the student's own text
GIVEN = '''
class ask:
    """Ask past the stand-in; false as long as there is nobody to answer."""

    def __call__(self, question):
        from autograder.boundary import given

        return given._Line.ask(question) if given._Line.ask else {}

    def __bool__(self):
        from autograder.boundary import given

        return given._Line.ask is not None


def call(name, *args):
    """Call a right answer by any name, with gradients."""
    from autograder.boundary import given

    return given._call({"name": name, "seed": 0}, args, {}, {})


ask = ask()
CALL = dict(do="call", seed=0, args=(), kwargs={}, state={}, wanted=[])
'''
WRONG = "def {}(*args):\n    return args[0]\n"

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem() or "works"),
]


def label(attack: strangers.Entry) -> str:
    return attack.label


# --- what there is to attack ----------------------------------------------------------


@dataclass
class Range:
    """A class with secrets, a grader, and ears for what is sent."""

    folder: Path  # of the class
    home: Path
    secrets: dict[str, str]
    ears: "Ears"
    graders: dict = field(default_factory=dict)  # by the limits that they apply
    honest: dict = field(default_factory=dict)  # what an honest submission gets

    def grade(self, job) -> Outcome:
        """Grade a submission."""
        return self.graders[job.limits].grade(job)

    def names(self, limits) -> str:
        """Lines of code: whoever attacks knows where everything is."""
        known = {
            "CLASS": str(self.folder),
            "HOME": str(self.home),
            "GRADER": self.graders[limits].process,
            "TCP_PORT": self.ears.ports[0],
            "UDP_PORT": self.ears.ports[1],
            "UNIX_SOCKET": self.ears.path,
            "ABSTRACT_SOCKET": self.ears.name,
        }
        return "".join(f"{key} = {value!r}\n" for key, value in known.items()) + TELL


TELL = '''

def tell(*values):
    """Show which of the planted secrets are in some values."""
    import re

    found = re.findall("canary-[a-z]+-[0-9a-f]{16}", str(values))
    print(sorted(set(found)))
    return str(found)


'''


class Ears:
    """Listens wherever an attack might send something; remembers what it heard."""

    def __init__(self, folder: Path) -> None:
        self.heard: list[bytes] = []
        self.path, self.name = f"{folder}/ears", f"ears-{os.getpid()}"
        self._sockets = [
            self._listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            self._listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            self._listen(socket.AF_UNIX, socket.SOCK_STREAM, self.path),
            self._listen(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.name}"),
        ]
        self.ports = [each.getsockname()[1] for each in self._sockets[:2]]

    def _listen(self, family: int, kind: int, address: object) -> socket.socket:
        ear = socket.socket(family, kind)
        ear.bind(address)
        if kind == socket.SOCK_STREAM:
            ear.listen()
        threading.Thread(target=self._hear, args=(ear, kind), daemon=True).start()
        return ear

    def _hear(self, ear: socket.socket, kind: int) -> None:
        with contextlib.suppress(OSError):  # closed at the end
            while True:
                if kind == socket.SOCK_DGRAM:
                    self.heard.append(ear.recv(1000))
                else:
                    connection, _ = ear.accept()
                    self.heard.append(b"a connection")
                    connection.close()

    def close(self) -> None:
        for ear in self._sockets:
            ear.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A class with secrets in it, and two graders that start with them around."""
    planted = {
        name: f"canary-{name}-{secrets.token_hex(8)}"
        for name in ("gradebook", "hidden", "student", "environment", "home")
    }
    folder, home = tmp_path_factory.mktemp("class"), tmp_path_factory.mktemp("home")
    _plant(folder, home, planted)
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        patch.setenv("COURSE_DATABASE_PASSWORD", planted["environment"])
        patch.setenv("HOME", str(home))
        ears = stack.enter_context(contextlib.closing(Ears(home)))
        found = Range(folder, home, planted, ears)
        for limits in (strangers.LIMITS, strangers.QUICK):
            server = ForkServer()  # as the command has one
            stack.callback(server.close)
            server.prepare(limits, None)
            found.graders[limits] = stack.enter_context(Grader(None, server))
            found.honest = strangers.lasting(found.grade(honest(found, limits)))
        yield found


def _plant(folder: Path, home: Path, planted: dict[str, str]) -> None:
    (folder / "course" / "source").mkdir(parents=True)
    with sqlite3.connect(folder / "course" / "gradebook.db") as gradebook:
        gradebook.execute("create table grade (note text, auto_score real)")
        gradebook.execute("insert into grade values (?, 0)", (planted["gradebook"],))
    gradebook.close()
    source = strangers.paper(strangers.CHAPTER, planted["hidden"]).source
    (folder / "course" / "source" / "04_attention.ipynb").write_text(source)
    handed_in = folder / "submitted" / "ada"
    (handed_in / "04_attention").mkdir(parents=True)
    text = json.dumps(_honest_notebook(planted))
    (handed_in / "04_attention" / "04_attention.ipynb").write_text(text)
    model = handed_in / "09_translator" / "translator"
    model.mkdir(parents=True)
    for name, content in strangers.right_model().items():
        (model / name).write_bytes(content)
    (home / ".ssh").mkdir()
    for name in ("notes.txt", ".netrc", ".ssh/id_ed25519", ".bashrc"):
        (home / name).write_text(planted["home"])


def _honest_notebook(planted: dict[str, str]) -> dict:
    notebook = strangers.solved(only=strangers.FEW)
    cell = notebook["cells"][strangers.find(notebook, "softmax")]
    cell["source"] += f"\n# {planted['student']}\n"
    return notebook


def honest(place: Range, limits=strangers.LIMITS):
    """A submission with every answer right, and a secret of its author's in it."""
    paper = strangers.paper(strangers.CHAPTER, place.secrets["hidden"], strangers.FEW)
    notebook = _honest_notebook(place.secrets)
    return strangers.job(notebook, paper=paper, limits=limits)


# --- the attack -----------------------------------------------------------------------


def submission(attack: strangers.Entry, place: Range):
    """What an attack hands in."""
    chapter = attack.get("chapter", strangers.CHAPTER)
    exercise, where = attack.get("exercise"), attack.get("where")
    paper = strangers.paper(chapter, place.secrets["hidden"])
    name = _defined(strangers.solved(chapter), exercise)
    models, limits = {}, limits_of(attack)
    if attack.get("hidden"):
        paper = strangers.asking(strangers.ASKED[0])
    if where in ("notebook", "models"):
        known = {
            "MODEL_FILES": tuple(strangers.right_model()),
            "RIGHT_MODEL": strangers.right_model(),
            "SHIPPED_MODEL": strangers.shipped_model(),
            "SHIPPED_DIGITS": strangers.shipped_model("digits"),
            "listen": strangers.listen,
            "recall": strangers.recall,
        }
        exec(compile(attack.code, str(attack.path), "exec"), known)
    if where == "models":
        models, notebook = known["models"](), strangers.solved(chapter)
    elif where == "given":
        notebook = given_to(attack, chapter, exercise)
    elif where == "notebook":
        only = strangers.FEW if attack.get("hidden") else ()
        notebook = strangers.solved(chapter, only)
        notebook = strangers.put(notebook, exercise, "answer", WRONG.format(name))
        known["change"](notebook)
    else:
        notebook = strangers.blank(chapter)
        notebook = strangers.put(notebook, exercise, "answer", WRONG.format(name))
        code = place.names(limits) + attack.code
        notebook = strangers.put(notebook, exercise, where, code)
    return strangers.job(notebook, chapter, paper=paper, models=models, limits=limits)


def given_to(attack: strangers.Entry, chapter: str, exercise: str) -> dict:
    """A notebook where an early answer is wrong, and a later one is the attack."""
    notebook, wrong = strangers.solved(chapter), attack.get("wrong", "softmax")
    name = _defined(notebook, wrong)
    notebook = strangers.put(notebook, wrong, "answer", WRONG.format(name))
    notebook = strangers.put(notebook, exercise, "answer", attack.code)
    return strangers.put(notebook, exercise, "before", GIVEN)


def limits_of(attack: strangers.Entry):
    """What never ends is stopped soon."""
    soon = attack.label.startswith("starving") and not attack.get("chapter")
    return strangers.QUICK if soon else strangers.LIMITS


def _defined(notebook: dict, exercise: str) -> str:
    text = notebook["cells"][strangers.find(notebook, exercise)]["source"]
    return re.search(r"^(?:def|class) (\w+)", text, re.MULTILINE)[1]


def came_back(outcome: Outcome) -> str:
    """All that crossed from the student's side: outputs, messages, notes."""
    parts = outcome.to_dict() | {"notebook": ""}
    if outcome.notebook:
        cells = json.loads(outcome.notebook)["cells"]
        parts["outputs"] = [cell.get("outputs") for cell in cells]
        parts["metadata"] = [cell["metadata"] for cell in cells]
    return json.dumps(parts, ensure_ascii=False)


def traces(place: Range) -> dict[str, object]:
    """All that an attack could have changed outside of its walls."""
    return {
        "files": {each: _tree(each) for each in (place.folder, place.home)},
        "marks": sorted(_marked()),
        "kernel": _system_v(),
        "processes": sorted(_processes()),
        "heard": list(place.ears.heard),
        "folder": os.getcwd(),
        "host": socket.gethostname(),
    }


def _processes() -> Iterator[int]:
    """Give all that run below, but for the grader's own, some with right answers."""
    for each in psutil.Process().children(True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if not OUR_OWN.intersection(each.cmdline()):
                yield each.pid


def _tree(folder: Path) -> dict[str, object]:
    found = {}
    for path in sorted(folder.rglob("*")):
        content = path.read_bytes() if path.is_file() else path.is_symlink()
        found[str(path.relative_to(folder))] = (path.lstat().st_mode, content)
    return found


def _marked() -> set[str]:
    """Files with an attack's mark in name or text, wherever one could be left."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    site = Path(sysconfig.get_path("purelib"))
    root = generator.ROOT
    folders = [Path(p) for p in ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run")]
    folders += [Path("/run/lock"), Path("/etc/cron.d"), Path("/etc/profile.d"), Path()]
    folders += [root, root / "autograder", root / "autograder" / "__pycache__"]
    folders += [home, home / ".ipython" / "profile_default" / "startup", site]
    folders += [Path(tempfile.gettempdir()), *map(Path, sys.path)]
    found = set()
    for folder in {each for each in folders if each.is_dir()}:
        found |= {str(p) for p in folder.iterdir() if MARK.search(p.name.encode())}
        own = [
            *folder.glob("*customize.py"),
            *folder.glob(".bash*"),
            folder / ".profile",
        ]
        found |= {str(p) for p in own if p.is_file() and MARK.search(p.read_bytes())}
    for name in ("autograder.expect", "torch", "workbench"):
        file = Path(importlib.util.find_spec(name).origin)
        if MARK.search(file.read_bytes()[-1000:]):
            found.add(str(file))
    return found


def _system_v() -> list[str]:
    lines = []
    for kind in ("shm", "sem", "msg"):
        with contextlib.suppress(OSError):
            lines += Path(f"/proc/sysvipc/{kind}").read_text().splitlines()
    return [line for line in lines if line.split()[0] == str(KEY)]


def after(place: Range, before: dict) -> dict[str, object]:
    """The traces; a process that is being ended may take a moment."""
    end = time.monotonic() + 5
    while (found := traces(place)) != before and time.monotonic() < end:
        time.sleep(0.05)
    return found


# --- tests ----------------------------------------------------------------------------


def test_there_are_enough_attacks_of_each_kind() -> None:
    assert len(ATTACKS) >= 60
    for group in GROUPS:
        assert sum(each.label.startswith(group) for each in ATTACKS) >= 10
    assert {each.label.partition("/")[0] for each in ATTACKS} == set(GROUPS)
    assert len({each.says for each in ATTACKS}) == len(ATTACKS)
    assert set().union(*(each.headers for each in ATTACKS)) <= HEADERS


def test_an_honest_submission_earns_full_points(place) -> None:
    assert place.honest["status"] == GRADED
    outcome = Outcome.from_dict(place.honest)
    assert strangers.scores(outcome) == strangers.full(honest(place).paper)
    assert place.honest["limited"] == place.honest["repairs"] == []


@pytest.mark.parametrize("attack", ATTACKS, ids=label)
def test_an_attack_gains_nothing(attack, place) -> None:
    before = traces(place)
    outcome = place.grade(submission(attack, place))
    assert after(place, before) == before

    wanted = attack.get("status", GRADED)
    assert outcome.status in (GRADED, UNGRADED)
    assert outcome.status == wanted or wanted == "any", outcome.reason
    assert attack.get("reason") in outcome.reason
    assert outcome.reason or outcome.status == GRADED
    assert not outcome.again  # nothing that it can cause is worth another try
    assert outcome.seconds <= 1.2 * limits_of(attack).wall_seconds
    assert "in the grader" not in outcome.reason, outcome.reason
    noted = " | ".join(outcome.limited)
    assert attack.get("limited") in noted
    assert "could not be run" not in noted

    flags = " | ".join(map(flag_text, outcome.flags))
    assert attack.get("flagged") in flags
    if attack.get("flagged"):
        assert f"{attack.get('exercise')}: " in flags  # its points wait for a person
    else:
        assert strangers.scores(outcome).get(attack.get("exercise"), 0) == 0
    if not attack.get("flagged") and attack.get("where") in (
        "answer",
        "before",
        "after",
    ):
        assert outcome.score == 0

    back = came_back(outcome)
    assert [name for name, text in place.secrets.items() if text in back] == []
    assert LEAKED not in back, back[max(0, back.find(LEAKED) - 200) :][:400]
    assert len(back) < LARGEST

    if attack.label.startswith(DISTURBING) or ATTACKS.index(attack) % EVERY == 0:
        following = strangers.lasting(place.grade(honest(place, limits_of(attack))))
        assert following == place.honest
