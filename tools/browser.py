"""Debian's Chromium, and a folder shown by this machine: for tools and tests alike."""

import contextlib
import functools
import http.server
import shutil
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlunsplit

# The first has no windows: it shows the same pages for a third of the work.
SHELL = "chromium-headless-shell"
WINDOWED = ("chromium", "chromium-browser", "google-chrome")
PROGRAMS = (SHELL, *WINDOWED)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find(programs: Sequence[str] = PROGRAMS) -> str | None:
    """Find Chromium under one of its names."""
    return next(filter(None, map(shutil.which, programs)), None)


def require(programs: Sequence[str] = PROGRAMS) -> str:
    """Find Chromium, or say how to get it and stop."""
    found = find(programs)
    if found is None:
        sys.exit(f"Chromium is missing. On Debian: apt-get install {programs[0]}")
    return found


@contextlib.contextmanager
def launched():
    """One headless Chromium."""
    require()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver, launched_by(driver) as browser:
        yield browser


@contextlib.contextmanager
def launched_by(driver):
    """One headless Chromium of a driver that runs: a process can have one driver."""
    browser = driver.chromium.launch(executable_path=require(), args=FLAGS)
    yield browser
    browser.close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Shows the files of a folder and tells nobody."""

    def log_message(self, *arguments):
        """Write nothing."""


@contextlib.contextmanager
def served(folder: Path, handler: type[Quiet] = Quiet):
    """A folder on a server of this machine; gives its address."""
    answer = functools.partial(handler, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield urlunsplit(("http", f"127.0.0.1:{server.server_port}", "/", "", ""))
    finally:
        server.shutdown()
        server.server_close()
