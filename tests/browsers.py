"""Debian's Chromium and Firefox for tests, and visitors that are kept to one place."""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

import pytest

from tests import firefox_relay
from tools import browser

PHONE = {"width": 360, "height": 740}
DESK = {"width": 1440, "height": 900}
ABORTED = ("net::ERR_ABORTED", "NS_BINDING_ABORTED")


@contextlib.contextmanager
def driver():
    """What drives all browsers of a test file, or a skipped test."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="pip install -r requirements-dev.txt"
    )
    with playwright.sync_playwright() as found:
        yield found


@contextlib.contextmanager
def chromium(drive):
    """One headless Chromium, or a skipped test."""
    if browser.find() is None:
        pytest.skip(f"Chromium is missing: apt-get install {browser.SHELL}")
    with browser.launched_by(drive) as found:
        yield found


@contextlib.contextmanager
def firefox(drive):
    """One headless Firefox, or a skipped test."""
    if firefox_relay.find() is None:
        pytest.skip("Firefox is missing: apt-get install firefox-esr")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "firefox"
        relay = Path(firefox_relay.__file__)
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{relay}" "$@"\n')
        program.chmod(0o700)
        environment = {**os.environ, "HOME": folder}  # where it may write
        found = drive.firefox.launch(
            executable_path=program, channel="moz-firefox", env=environment
        )
        yield found
        found.close()


@contextlib.contextmanager
def visits(opened):
    """Make visitors of a browser; every one has a browser profile of its own."""
    contexts = []

    def make(base, viewport=DESK, theme="light", **options):
        context = opened.new_context(viewport=viewport, color_scheme=theme, **options)
        contexts.append(context)
        return Visitor(context, base)

    yield make
    for context in contexts:
        context.close()


class Visitor:
    """A browser's page that reaches one place only and writes down all complaints."""

    def __init__(self, context, base: str):
        self.base = base
        self.complaints: list[str] = []
        context.route("**/*", self._allow_or_refuse)
        self.page = context.new_page()
        self.page.set_default_timeout(20_000)
        self.page.on("console", self._note_console)
        self.page.on("pageerror", lambda error: self._note(f"script error: {error}"))
        self.page.on("response", self._note_response)
        self.page.on("requestfailed", self._note_failure)

    def open(self, path: str):
        """Open a page of the site."""
        self.complaints.clear()
        self.page.goto(self.base + path, wait_until="load")
        return self.page

    def _note(self, complaint: str) -> None:
        self.complaints.append(complaint)

    def _note_failure(self, request) -> None:
        if request.failure not in ABORTED:  # as when another page is opened
            self._note(f"{request.failure}: {request.url}")

    def _note_console(self, message) -> None:
        if message.type in {"error", "warning"}:
            self._note(f"console {message.type}: {message.text}")

    def _note_response(self, response) -> None:
        if response.status >= 400:
            self._note(f"{response.status}: {response.url}")

    def _allow_or_refuse(self, route) -> None:
        url = route.request.url
        if url.startswith((self.base, "data:", "blob:")):
            route.continue_()
        else:
            self._note(f"asked another host: {url}")
            route.abort()
