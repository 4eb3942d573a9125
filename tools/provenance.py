"""Say what a record was made by, when, and on what: for every record of a tool."""

import datetime
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from workbench.records import processor  # noqa: E402


def made_by(command: str) -> dict:
    """Give a record's command, date, commit, hardware, Python and the machine's load.

    Ask before measuring: the load is that of other programs then.
    """
    return {
        "command": command,
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "hardware": f"{processor()}, {os.cpu_count()} cores, {platform.machine()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }


def commit() -> str | None:
    """Name the commit, with "+" if tracked files, other than records, differ from it.

    Without git, or in a folder that is no clone, there is none.
    """
    git = ["git", "-C", str(ROOT)]
    others = ["--untracked-files=no", "--", ".", ":!results/site"]
    try:
        name, changed = (
            subprocess.run(
                [*git, *rest], capture_output=True, text=True, check=True
            ).stdout.strip()
            for rest in (["rev-parse", "HEAD"], ["status", "--porcelain", *others])
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return name + "+" * bool(changed)
