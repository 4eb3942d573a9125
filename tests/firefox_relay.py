"""Firefox for Playwright: a program that starts it and passes on what both say.

Playwright drives Firefox from a distribution by WebDriver BiDi, and at once asks for
settings of a page's colours, which the Firefox ESR of Debian does not know yet. Here
such a request is answered as if it were granted; tests of colours run in Chromium.
A download that no navigation has begun has no name there, which Playwright wants: its
address is its name.
Playwright starts this module in place of Firefox, and reads on its standard error where
to connect, as Firefox itself says it.
"""

import asyncio
import json
import re
import shutil
import signal
import sys

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application
from tornado.websocket import WebSocketHandler, websocket_connect

PROGRAMS = ("firefox-esr", "firefox")
HEARD = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
LARGEST = 256 * 1024 * 1024  # bytes of a message, which may hold a file


def find() -> str | None:
    """Find Firefox under one of its names."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Relay(WebSocketHandler):
    """Passes messages between Playwright and Firefox, in order."""

    target = ""  # where Firefox listens

    async def open(self, *_words: str) -> None:
        """Connect to Firefox; what comes before that waits."""
        self.asked: dict[int, str] = {}
        self.ready = asyncio.get_running_loop().create_future()
        firefox = await websocket_connect(
            f"{self.target}/session",
            on_message_callback=self._from_firefox,
            max_message_size=LARGEST,
        )
        self.ready.set_result(firefox)

    async def on_message(self, message: str) -> None:
        """Pass on a request."""
        request = json.loads(message)
        if request["method"].startswith("emulation."):
            self.asked[request["id"]] = request["method"]
        (await self.ready).write_message(message)

    def _from_firefox(self, message: str | None) -> None:
        """Pass on an answer or an event; None says that Firefox has gone."""
        if message is None:
            self.close()
            return
        if '"unknown command"' in message[:1000]:
            answer = json.loads(message)
            if self.asked.pop(answer.get("id"), ""):
                granted = {"type": "success", "id": answer["id"], "result": {}}
                message = json.dumps(granted)
        elif '"browsingContext.download' in message[:1000]:
            event = json.loads(message)
            event["params"].setdefault("download", event["params"]["url"])
            message = json.dumps(event)
        self.write_message(message)

    def check_origin(self, origin: str) -> bool:
        """Let Playwright in, which comes from no page."""
        return True


async def main(words: list[str]) -> int:
    """Start Firefox and the relay; end with Firefox."""
    process = await asyncio.create_subprocess_exec(
        find() or PROGRAMS[0], *words, stderr=asyncio.subprocess.PIPE
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, process.terminate)
    (socket,) = bind_sockets(0, "127.0.0.1")
    application = Application(
        [(r"/(.*)", Relay)],
        websocket_max_message_size=LARGEST,
        websocket_ping_interval=0,
    )
    HTTPServer(application).add_sockets([socket])
    async for line in process.stderr:
        text = line.decode(errors="replace")
        found = HEARD.search(text)
        if found:
            Relay.target = found[1]
            text = f"WebDriver BiDi listening on ws://127.0.0.1:{socket.getsockname()[1]}\n"
        sys.stderr.write(text)
        sys.stderr.flush()
    return await process.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
