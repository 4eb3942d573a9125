"""A folder of git repositories, one a student, such as GitHub Classroom's.

Only what was committed counts, on the branch that the clone is at, and the time is that
of the last commit that changed it. Whoever commits can write another time into it.

git is never let read a repository's own settings, hooks or attributes, any of which may
name a program to be run: it reads the objects alone, from an empty repository of ours.
"""

import contextlib
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from autograder.collecting.notebooks import assignments
from autograder.collecting.people import LOGIN, People
from autograder.collecting.sources import (
    LIMITS,
    CollectError,
    File,
    HandedIn,
    Limits,
    Line,
    NotUnderstood,
    Person,
    checked_path,
    is_junk,
    too_large,
)
from autograder.files import read_regular
from autograder.grading.deadlines import YEARS

SECONDS = 60  # that git may take for a question
HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
REFERENCE = re.compile(r"ref: (refs/[\w./@+-]+)")
LARGEST_REFERENCES = 10_000_000  # bytes
REGULAR = ("100644", "100755")
LARGE_FILE = b"version https://git-lfs"
SUBMISSIONS = "-submissions"  # GitHub Classroom's ending of the folder's name
FEW = 3  # repositories; a beginning that so many share is no name of theirs


# --- who ------------------------------------------------------------------------------


def people_of(names: list[str], folder: str, people: People) -> dict[str, Person]:
    """Return whose each repository is: they are named USER or ASSIGNMENT-USER."""
    bare = {name: name.removesuffix(".git") for name in names}
    beginning = _beginning(list(bare.values()), folder, people)
    found = {}
    for name, whole in bare.items():
        user = whole.removeprefix(beginning) or whole
        keys = tuple((LOGIN, each) for each in dict.fromkeys((user, whole)))
        found[name] = Person(keys, user, user)
    return found


def _beginning(names: list[str], folder: str, people: People) -> str:
    """Find the assignment's name before the users', with the sign between.

    It is the same for all: of one name alone nobody can tell where the user begins.
    """
    if folder.endswith(SUBMISSIONS):
        return folder.removesuffix(SUBMISSIONS) + "-"
    for chapter in assignments():
        for written in (chapter, chapter.replace("_", "-")):
            if all(name.startswith((f"{written}-", f"{written}_")) for name in names):
                return names[0][: len(written) + 1]
    if people.is_listed:
        return _beginning_before(names, people)
    first, last = min(names), max(names)  # all others lie between the two
    same = [a == b for a, b in zip(first, last, strict=False)]
    common = first[: same.index(False)] if False in same else ""
    return common[: common.rfind("-") + 1] if len(names) >= FEW else ""


def _beginning_before(names: list[str], people: People) -> str:
    """Find the beginning behind which most names are known; "" if none is shared."""
    signs = {n[: at + 1] for n in names for at, sign in enumerate(n) if sign in "-_"}
    shared = [
        each
        for each in sorted(signs, key=len)
        if 2 * sum(name.startswith(each) for name in names) > len(names)
    ]

    def known(beginning: str) -> int:
        rests = (n.removeprefix(beginning) for n in names if n.startswith(beginning))
        return sum(map(people.knows, rests))

    return max(("", *shared), key=known)


# --- what -----------------------------------------------------------------------------


def handed_in(
    root: Path, people: People, download: str, limits: Limits = LIMITS
) -> Iterator[HandedIn | Line]:
    """Give what each student has committed, or why it is not read, one by one."""
    folders = [each for each in sorted(root.iterdir()) if not each.name.startswith(".")]
    repositories = [each for each in folders if _git_folder(each)]
    if not repositories:
        raise CollectError(f"{root}: holds no git repository; expected one a student")
    for each in folders:
        if each not in repositories:
            yield Line(download, each.name, "", "is no git repository, passed over")
    whose = people_of([each.name for each in repositories], root.name, people)
    for each in repositories:
        try:
            repository = Repository.of(_git_folder(each))
            yield _one(repository, each.name, whose[each.name], download, limits)
        except NotUnderstood as why:
            yield Line(download, each.name, whose[each.name].name, str(why))


def _git_folder(folder: Path) -> Path | None:
    """Return where git keeps a repository; None if the folder is none."""
    if folder.is_symlink():
        return None
    for place in (folder / ".git", folder):
        if os.path.isdir(place / "objects") and (place / "HEAD").exists():
            return place
    return folder / ".git" if os.path.lexists(folder / ".git") else None


def _one(
    repository: "Repository", name: str, person: Person, download: str, limits: Limits
) -> HandedIn:
    files, wrong = repository.files(limits)
    made = HandedIn(
        person=person,
        files=files,
        download=download,
        where=name,
        is_whole=False,
        dated=repository.dated,
    )
    made.notes = [f"{path}: {why}" for path, why in wrong[:5]]
    return made


@dataclass(frozen=True)
class Repository:
    """A repository's objects, at one commit."""

    objects: Path
    commit: str
    shallow: bytes = b""  # where a clone that is not whole ends

    @classmethod
    def of(cls, place: Path) -> "Repository":
        """Find a repository's commit, without git.

        Raises:
            NotUnderstood: there is none, or it lies elsewhere.
        """
        if not os.path.isdir(place) or place.is_symlink():
            raise NotUnderstood("its .git leads elsewhere: clone it anew")
        objects = place / "objects"
        elsewhere = objects / "info" / "alternates"
        if objects.is_symlink() or os.path.lexists(elsewhere):
            raise NotUnderstood("its objects lie elsewhere: clone it anew, whole")
        shallow = b""
        with contextlib.suppress(OSError):
            shallow = read_regular(place / "shallow", 100_000, follow=False)
        return cls(objects.absolute(), _head(place), shallow)

    def ask(self, *words: str, most: int) -> bytes:
        """Ask git about the objects; return at most so many bytes.

        Raises:
            NotUnderstood: git cannot answer, or answers without an end.
        """
        with tempfile.TemporaryDirectory(prefix="collect-") as folder:
            return self._ask(_empty(Path(folder), self), words, most)

    def _ask(self, empty: Path, words: tuple[str, ...], most: int) -> bytes:
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(empty),
            "LC_ALL": "C.UTF-8",
            "GIT_DIR": str(empty),
            "GIT_OBJECT_DIRECTORY": str(self.objects),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
        }
        command = ["git", "--literal-pathspecs", "--no-pager", *words]
        with (
            tempfile.TemporaryFile() as told,
            _started(command, environment, empty, told) as process,
        ):
            data = process.stdout.read(most + 1)
            if len(data) > most:
                process.kill()
                raise NotUnderstood("holds too much for git's answer")
            if process.wait() == 0:
                return data
            told.seek(0)
            reason = told.read(300).decode(errors="replace").strip()
        raise NotUnderstood(f"git cannot read it ({reason or 'it takes too long'})")

    def files(self, limits: Limits) -> tuple[list[File], list[tuple[str, str]]]:
        """List the files of the commit, and what of it is not read."""
        most = limits.entries * 20
        words = ("ls-tree", "-r", "-z", "-l", "--full-tree", self.commit)
        files, wrong = [], []
        for entry in self.ask(*words, most=most).split(b"\0"):
            if not entry:
                continue
            facts, _, raw = entry.partition(b"\t")
            mode, _, blob, size = facts.decode().split()
            name = os.fsdecode(raw)
            if is_junk(name):
                continue
            try:
                path = checked_path(name, limits)
                files.append(self._file(path, mode, blob, size, limits))
            except NotUnderstood as why:
                wrong.append((name, str(why)))
        return files, wrong

    def _file(self, path: str, mode: str, blob: str, size: str, limits: Limits) -> File:
        if mode not in REGULAR:
            raise NotUnderstood("is a link or another repository, not followed")
        number = int(size)
        if number > limits.file_bytes:
            raise NotUnderstood(too_large(number, limits))

        def read() -> bytes:
            data = self.ask("cat-file", "blob", blob, most=number)
            if data.startswith(LARGE_FILE):
                raise NotUnderstood("lies in git's large file storage: fetch it there")
            return data

        return File(path, number, read, mark=blob)

    def dated(self, paths: list[str]) -> tuple[datetime, str]:
        """Return when files were last changed, and by which commit."""
        words = ("rev-list", "--max-count=1", "--timestamp", self.commit, "--", *paths)
        found = self.ask(*words, most=1_000).decode().split()
        try:
            seconds, commit = found
            when = datetime.fromtimestamp(int(seconds), UTC)
        except (ValueError, OverflowError, OSError):
            raise NotUnderstood("its commit has no date") from None
        if when.year not in YEARS:
            raise NotUnderstood("its commit has no date of our time")
        return when, f"git {commit}"


@contextlib.contextmanager
def _started(
    command: list[str], environment: dict[str, str], folder: Path, told: object
) -> Iterator[subprocess.Popen]:
    """Start git; it is ended when whoever asked has done."""
    try:
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=told,
        )
    except FileNotFoundError:
        raise CollectError("git is not installed, and reads the repositories") from None
    alarm = threading.Timer(SECONDS, process.kill)
    alarm.start()
    try:
        yield process
    finally:
        alarm.cancel()
        process.kill()
        process.wait()
        process.stdout.close()


def _empty(folder: Path, of: Repository) -> Path:
    """Make an empty repository, with settings of ours."""
    version, extension = 0, ""
    if len(of.commit) == 64:
        version, extension = 1, "[extensions]\n\tobjectFormat = sha256\n"
    settings = f"[core]\n\trepositoryformatversion = {version}\n\tbare = true\n"
    (folder / "refs").mkdir()
    (folder / "objects").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text(settings + extension)
    if of.shallow:
        (folder / "shallow").write_bytes(of.shallow)
    return folder


def _head(place: Path) -> str:
    """Return the commit that a clone is at."""
    text = _read(place / "HEAD", 1_000).strip()
    if HASH.fullmatch(text):
        return text
    match = REFERENCE.fullmatch(text)
    if not match or ".." in match[1]:
        raise NotUnderstood("its HEAD names no branch")
    with contextlib.suppress(NotUnderstood):
        loose = _read(place / match[1], 1_000).strip()
        if HASH.fullmatch(loose):
            return loose
    with contextlib.suppress(NotUnderstood):
        for line in _read(place / "packed-refs", LARGEST_REFERENCES).splitlines():
            commit, _, name = line.partition(" ")
            if name == match[1] and HASH.fullmatch(commit):
                return commit
    raise NotUnderstood("nothing was committed to it")


def _read(path: Path, most: int) -> str:
    try:
        return read_regular(path, most, follow=False).decode("utf-8", "replace")
    except OSError as error:
        raise NotUnderstood(f"cannot be read ({error.strerror})") from None
