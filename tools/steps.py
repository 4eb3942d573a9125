"""Run commands one after the other, with their progress on one line each."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEARTBEAT = 15  # seconds between signs of life
TAIL = 40  # lines of a failed command's output that are shown


def run_step(label: str, command: list[str], log: Path) -> float:
    """Run a command quietly, return its seconds; on failure show its output and exit.

    Args:
        label: what the line begins with, such as "[2/5] exercises".
        command: the program and its arguments, run in the project's root.
        log: the file that receives the command's output.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    print(f"{label} …", end="", flush=True)
    started = time.monotonic()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        while True:
            try:
                code = process.wait(HEARTBEAT)
                break
            except subprocess.TimeoutExpired:
                sign = f"{time.monotonic() - started:.0f} s{progress(log)}"
                print(f" {sign} …", end="", flush=True)
            except BaseException:
                process.terminate()
                raise
    seconds = time.monotonic() - started
    if code != 0:
        print(f" FAILED after {seconds:.0f} s (exit code {code})\n")
        print("\n".join(log.read_text(errors="replace").splitlines()[-TAIL:]))
        sys.exit(f"\n{' '.join(command)}\nfailed; its whole output: {log}")
    print(f" done in {seconds:.0f} s", flush=True)
    return seconds


def progress(log: Path) -> str:
    """How far a command is by its own progress bar, such as " (9 of 21)"."""
    counts = re.findall(r"(\d+)/(\d+) \[", log.read_text(errors="replace"))
    return f" ({counts[-1][0]} of {counts[-1][1]})" if counts else ""
