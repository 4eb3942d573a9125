"""A real browser for tests: Debian's Chromium, and visitors kept to one place."""

import contextlib

import pytest

from tools import browser

PHONE = {"width": 360, "height": 740}
DESK = {"width": 1440, "height": 900}


@contextlib.contextmanager
def chromium():
    """One headless Chromium, or a skipped test."""
    pytest.importorskip(
        "playwright.sync_api", reason="pip install -r requirements-dev.txt"
    )
    if browser.find() is None:
        pytest.skip("Chromium is missing: apt-get install chromium")
    with browser.launched() as found:
        yield found


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
        if request.failure != "net::ERR_ABORTED":  # as when another page is opened
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
