"""Make .venv and install what is pinned; install the system packages named.

Run by the Makefile with a Python from find_python.sh:

    python -m tools.environment [SYSTEM_PACKAGE ...]

The environment is left alone while its Python, its place, the files that
describe it and the packages of the project are the same as when it was made.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time

from tools.browser import PROGRAMS, SHELL
from tools.steps import ROOT, Step, begin_step, run_step

VENV = ROOT / ".venv"
ANSWERS = "solutions"  # not there in what students get
STAMP = VENV / "made_from.txt"
PAUSE = 20  # seconds before a second try
LOGS = ROOT / "_build" / "logs"
DESCRIBED_BY = (
    "pyproject.toml",
    "requirements.txt",
    "requirements-dev.txt",
    "constraints.txt",
)
# package: (programs that show it is there, what is not done without it)
SYSTEM_PACKAGES = {
    "bubblewrap": (["bwrap"], "the tests of the sandbox"),
    SHELL: (PROGRAMS, "the tests of the site in a browser"),
    "firefox-esr": (
        ["firefox-esr", "firefox"],
        "the tests of the site in a second browser",
    ),
    "webkit2gtk-driver": (["WebKitWebDriver"], "the tests of key pages in WebKit"),
    "xvfb": (["Xvfb"], "the tests of key pages in WebKit"),
    "postgresql": (["pg_ctlcluster"], "the test of a gradebook in PostgreSQL"),
}
IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}


def main(packages: list[str]) -> None:
    """Make the environment; install the system packages at the same time."""
    missing = [name for name in packages if not is_installed(name)]
    installing = begin_system_packages(missing) if can_install(missing) else None
    try:
        make_environment()
    except BaseException:
        if installing:
            installing.process.terminate()
        raise
    if installing:
        installing.finish()
    tell_missing([name for name in missing if not is_installed(name)])


def make_environment() -> None:
    """Create .venv or bring it up to date, if anything it is made from has changed."""
    python = f"Python {sys.version.split()[0]} at {sys.base_prefix}, {ROOT}"
    contents = b"".join((ROOT / name).read_bytes() for name in DESCRIBED_BY)
    answers = (
        ["-e", f"./{ANSWERS}"] if (ROOT / ANSWERS / "transformer").is_dir() else []
    )
    wanted = f"{python}\n{hashlib.sha256(contents).hexdigest()} {answers}\n"
    found = STAMP.read_text() if STAMP.is_file() else ""
    if found == wanted:
        return
    if not found.startswith(python + "\n"):
        refuse_link()
        note_on_cuda()
        run_step(
            f"environment: .venv with Python {sys.version.split()[0]}",
            [sys.executable, "-m", "venv", "--clear", str(VENV)],
            LOGS / "venv.log",
        )
    STAMP.write_text(python + "\n")  # made, but not yet complete
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    install_packages([*pip, "install", "-r", "requirements-dev.txt", *answers])
    STAMP.write_text(wanted)


def refuse_link() -> None:
    """Stop where .venv is a link: to make it anew would empty what it leads to."""
    if VENV.is_symlink():
        sys.exit(
            f"environment: {VENV} is a link to {VENV.resolve()}, which would be "
            "emptied. Remove the link, and run make again."
        )


def install_packages(command: list[str]) -> None:
    """Install what is pinned; once more if that fails, as a registry's page may."""
    label = "environment: packages of requirements-dev.txt"
    try:
        run_step(label, command, LOGS / "packages.log")
    except SystemExit as failure:
        print(f"{failure}\n\nOnce more in {PAUSE} seconds.")
        time.sleep(PAUSE)
        run_step(f"{label}, once more", command, LOGS / "packages_again.log")


def note_on_cuda() -> None:
    """On Linux, say beforehand when torch may come with gigabytes of CUDA."""
    settings = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True
    ).stdout + " ".join(name for name in os.environ if name.startswith("PIP_"))
    settings = settings.lower().replace("_", "-")
    redirected = "index-url" in settings or "find-links" in settings
    if sys.platform == "linux" and not redirected:
        print(
            "Note: torch for Linux comes with CUDA, about 3 GB. README.md, section\n"
            "'The CPU build of torch', says how to get the one of 0.2 GB."
        )


def is_installed(package: str) -> bool:
    """Whether one of the programs that a system package brings can be run."""
    return any(shutil.which(program) for program in SYSTEM_PACKAGES[package][0])


def can_install(missing: list[str]) -> bool:
    """Whether something is missing that apt-get, as root, may install."""
    return bool(missing and shutil.which("apt-get") and os.geteuid() == 0)


def begin_system_packages(missing: list[str]) -> Step:
    """Begin to install with apt-get."""
    install = f"apt-get install -y --no-install-recommends {' '.join(missing)}"
    return begin_step(
        f"system packages: {', '.join(missing)}",
        ["sh", "-c", f"apt-get update && DEBIAN_FRONTEND=noninteractive {install}"],
        LOGS / "system_packages.log",
    )


def tell_missing(missing: list[str]) -> None:
    """Say what is skipped and what to type."""
    for name in missing:
        without = SYSTEM_PACKAGES[name][1]
        print(f"SKIPPED: {without}, because {name} is not installed. To install it:")
        print(f"    sudo apt-get install {name}     (or your system's own command)")
    if missing and IN_CI:
        sys.exit("In CI nothing may be skipped.")


if __name__ == "__main__":
    os.chdir(ROOT)
    main(sys.argv[1:])
