"""Write files so that a reader, or a kill, never meets half of one."""

import os
from pathlib import Path


def write_beside(path: Path, text: str, mode: int | None = None) -> None:
    """Write a file beside its place and rename it; ``mode`` sets its permissions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    # a submission's folder may have a name that is no valid text
    beside.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
    if mode is not None:
        beside.chmod(mode)
    os.replace(beside, path)
