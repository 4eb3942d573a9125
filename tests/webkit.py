"""WebKit for tests: Debian's MiniBrowser, asked by WebDriver, as W3C has it."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

DRIVER = "WebKitWebDriver"
BROWSERS = "/usr/lib/*/webkit2gtk-*/MiniBrowser"
# It runs as root in a container, where it can make no sandbox of its own: it opens
# pages of this machine, and nothing else.
ALONE = {
    "WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1",
    "WEBKIT_DISABLE_COMPOSITING_MODE": "1",
}
PATIENCE = 120  # seconds


def find() -> Path | None:
    """Find the browser, if its driver and a screen to draw on are there, too."""
    there = shutil.which(DRIVER) and shutil.which("Xvfb")
    return next(Path("/").glob(BROWSERS[1:]), None) if there else None


class WebKit:
    """One window of the browser."""

    def __init__(self, address: str):
        self.address = address
        options = {"binary": str(find()), "args": ["--automation"]}
        wanted = {"alwaysMatch": {"webkitgtk:browserOptions": options}}
        made = self.ask("POST", "", {"capabilities": wanted})
        self.address = f"{address}/{made['sessionId']}"

    def ask(self, method: str, path: str, body: dict | None = None):
        """Send a command; give its value. What the browser refuses is raised."""
        request = urllib.request.Request(
            self.address + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from None

    def open(self, url: str, width: int = 1280, height: int = 900) -> None:
        """Open a page in a window of some size."""
        self.ask("POST", "/window/rect", {"width": width, "height": height})
        self.ask("POST", "/url", {"url": url})

    def run(self, script: str, *values):
        """Run a function's body in the page; give what it returns."""
        return self.ask("POST", "/execute/sync", {"script": script, "args": values})

    def wait(self, condition: str):
        """Wait until an expression is true in the page; give its value."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if value := self.run(f"return {condition};"):
                return value
            time.sleep(0.1)
        raise TimeoutError(condition)


@contextlib.contextmanager
def opened():
    """Start the driver and a window; end both."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (
        _screen() as display,
        _started(
            [DRIVER, f"--port={port}"],
            env={**os.environ, **ALONE, "DISPLAY": display},
            stdout=subprocess.DEVNULL,
        ) as driver,
    ):
        _wait_for(port, driver)
        window = WebKit(f"http://127.0.0.1:{port}/session")
        yield window
        window.ask("DELETE", "")


@contextlib.contextmanager
def _screen():
    """A screen that nobody sees; its name."""
    size = ["-screen", "0", "1600x1200x24", "-nolisten", "tcp"]
    with _started(["Xvfb", "-displayfd", "1", *size], stdout=subprocess.PIPE) as screen:
        yield f":{screen.stdout.readline().decode().strip()}"


@contextlib.contextmanager
def _started(command: list[str], **options):
    """A program, and whatever it starts, until they are not needed any more."""
    process = subprocess.Popen(
        command, stderr=subprocess.DEVNULL, start_new_session=True, **options
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.communicate()


def _wait_for(port: int, driver: subprocess.Popen) -> None:
    """Wait until the driver listens."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and driver.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        time.sleep(0.1)
    raise RuntimeError(f"{DRIVER} did not start")
