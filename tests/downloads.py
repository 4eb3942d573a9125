"""What an instructor downloads, as Canvas, Moodle, nbgrader and git make it."""

import os
import re
import subprocess
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

CHAPTER = "04_attention"


@dataclass(frozen=True)
class Student:
    """A student, as the systems know them, and what was handed in.

    Attributes:
        id: the class's own.
        first, last: the name.
        number: Canvas's for the user, Moodle's for the participant.
        login: of the hub and of GitHub.
        notebook: the content of the file.
        handed_in: when; with a zone.
        name: of the file.
    """

    id: str
    first: str
    last: str
    number: int
    login: str
    notebook: bytes
    handed_in: datetime
    name: str = f"{CHAPTER}.ipynb"


def write_zip(path: Path, files: Iterable[tuple[str, bytes]]) -> Path:
    """Write a zip archive."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return path


def canvas_name(student: Student, attachment: int = 0, late: bool = False) -> str:
    """Name a file as Canvas does."""
    name = re.sub(r"\W", "", f"{student.last}, {student.first}").lower()
    middle = "_LATE" if late else ""
    number = attachment or 70_000 + student.number
    return f"{name}{middle}_{student.number}_{number}_{student.name}"


def canvas(
    path: Path, students: Iterable[Student], due: datetime | None = None
) -> Path:
    """Write what *Download Submissions* gives."""
    return write_zip(
        path,
        [
            (canvas_name(s, late=bool(due and s.handed_in > due)), s.notebook)
            for s in students
        ],
    )


def moodle_name(student: Student, in_folders: bool = True) -> str:
    """Name a file as Moodle does, which makes spaces of underlines in names."""
    person = f"{student.first} {student.last}".replace("_", " ")
    between = "/" if in_folders else ""
    number = student.number
    return f"{person}_{number}_assignsubmission_file_{between}{student.name}"


def moodle(path: Path, students: Iterable[Student], in_folders: bool = True) -> Path:
    """Write what *Download all submissions* gives."""
    return write_zip(
        path, [(moodle_name(each, in_folders), each.notebook) for each in students]
    )


def worksheet(path: Path, students: Iterable[Student]) -> Path:
    """Write Moodle's grading worksheet; its times name no zone."""
    lines = [
        "Identifier,Full name,Email address,Status,Grade,Maximum Grade,"
        "Last modified (submission)"
    ]
    for each in students:
        when = each.handed_in
        half = "AM" if when.hour < 12 else "PM"
        time = f"{when:%A}, {when.day} {when:%B} {when.year}, "
        time += f"{(when.hour - 1) % 12 + 1}:{when:%M} {half}"
        lines.append(
            f"Participant {each.number},{each.first} {each.last},"
            f'{each.login}@example.org,Submitted,,30,"{time}"'
        )
    path.write_text("\n".join(lines), "utf-8-sig")
    return path


def exchange(root: Path, students: Iterable[Student]) -> Path:
    """Write an exchange; return its root."""
    for each in students:
        stamp = f"{each.handed_in:%Y-%m-%d %H:%M:%S.%f} UTC"
        secret = "aB-_" + f"{each.number:08d}"
        name = f"{each.login}+{CHAPTER}+{stamp}+{secret}"
        folder = root / "transformers" / "inbound" / name
        folder.mkdir(parents=True)
        (folder / each.name).write_bytes(each.notebook)
        (folder / "timestamp.txt").write_text(stamp)
    return root


def git(folder: Path, *words: str, when: datetime | None = None) -> None:
    """Run git, with nobody's settings."""
    names = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "S"), ("EMAIL", "s@example.org"))
    }
    dates = {}
    if when:
        stamp = when.isoformat()
        dates = {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp}
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **names, **dates}
    environment["GIT_CONFIG_NOSYSTEM"] = "1"
    subprocess.run(
        ["git", "-c", "init.defaultBranch=main", *words],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
    )


def commit(folder: Path, files: dict[str, bytes], when: datetime) -> None:
    """Commit files to a repository, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".git").exists():
        git(folder, "init")
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-m", "work", when=when)


def repositories(root: Path, students: Iterable[Student]) -> Path:
    """Write clones as GitHub Classroom names them."""
    for each in students:
        files = {f"{CHAPTER}/{each.name}": each.notebook, "README.md": b"# Mine\n"}
        commit(root / f"chapter-4-{each.login}", files, each.handed_in)
    return root


def ids(path: Path, students: Iterable[Student], prefix: str = "") -> Path:
    """Write the class's list of ids."""
    lines = ["student,canvas,login,name"]
    lines += [
        f"{prefix}{s.id},{s.number},{s.login},{s.first} {s.last}" for s in students
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def times(path: Path, students: Iterable[Student]) -> Path:
    """Write a list of times of one's own."""
    lines = [f"{s.id},{s.handed_in.isoformat()}" for s in students]
    path.write_text("\n".join(["student,time", *lines]) + "\n", "utf-8")
    return path
