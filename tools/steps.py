"""Run commands, with their progress on one line each."""

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEARTBEAT = 15  # seconds between signs of life
TAIL = 40  # lines of a failed command's output that are shown


@dataclass
class Step:
    """A command that has begun.

    Args:
        label: what the line begins with, such as "[2/5] exercises".
        command: the program and its arguments.
        log: the file that receives the command's output.
        process: what runs it.
        started: when it began, on the clock of ``time.monotonic``.
    """

    label: str
    command: list[str]
    log: Path
    process: subprocess.Popen
    started: float

    def finish(self) -> float:
        """Wait, and return its seconds; on failure show its output and exit."""
        print(f"{self.label} …", end="", flush=True)
        while True:
            try:
                code = self.process.wait(HEARTBEAT)
                break
            except subprocess.TimeoutExpired:
                print(f" {self.seconds():.0f} s{progress(self.log)} …", end="")
                sys.stdout.flush()
            except BaseException:
                self.process.terminate()
                raise
        if code != 0:
            print(f" FAILED after {self.seconds():.0f} s (exit code {code})\n")
            print("\n".join(self.log.read_text(errors="replace").splitlines()[-TAIL:]))
            command = " ".join(self.command)
            sys.exit(f"\n{command}\nfailed; its whole output: {self.log}")
        seconds = self.seconds()
        print(f" done in {seconds:.0f} s", flush=True)
        return seconds

    def seconds(self) -> float:
        """How long it has run."""
        return time.monotonic() - self.started


def begin_step(label: str, command: list[str], log: Path) -> Step:
    """Begin a command quietly, in the project's root."""
    log.parent.mkdir(parents=True, exist_ok=True)
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
    return Step(label, command, log, process, time.monotonic())


def run_step(label: str, command: list[str], log: Path) -> float:
    """Run a command quietly, return its seconds; on failure show its output and exit.

    Args:
        label: what the line begins with, such as "[2/5] exercises".
        command: the program and its arguments, run in the project's root.
        log: the file that receives the command's output.
    """
    return begin_step(label, command, log).finish()


def progress(log: Path) -> str:
    """How far a command is by its own progress bar, such as " (9 of 21)"."""
    counts = re.findall(r"(\d+)/(\d+) \[", log.read_text(errors="replace"))
    return f" ({counts[-1][0]} of {counts[-1][1]})" if counts else ""
