"""What a cell shows, as a notebook keeps it: some kinds only, and so many bytes.

The student's side collects with it, so that an endless print costs no memory. The
grader passes what it is sent through another one, because anything may be sent.
"""

import base64
import binascii

from autograder.boundary.data import BoundaryError

IMAGES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
STREAMS = ("stdout", "stderr")
_NAME = 200  # characters of an exception's name
_TEXT = 2_000  # characters of its text
_ITEM = 64  # bytes that an output costs besides what it shows


class Outputs:
    """Collects outputs up to a number of bytes, and says so where it has cut.

    Args:
        limit: of bytes; a line that says it comes on top.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._left = limit, limit
        self._items: list[dict] = []
        self._written: list[str] = []  # of the stream that comes last
        self._said, self._failed = False, False  # after the cut
        self.cut = False

    @property
    def size(self) -> int:
        """The bytes that were used."""
        return self._limit - self._left

    def as_list(self) -> list[dict]:
        """Return the outputs in nbformat's form."""
        self._close_stream()
        return list(self._items)

    def write(self, stream: str, text: str) -> None:
        """Add text to stdout or stderr."""
        if self.cut or not text:
            return
        last = self._items[-1] if self._items else {}
        if last.get("name") != stream:
            self._add({"output_type": "stream", "name": stream, "text": ""})
            if self.cut:
                return self._say_if_cut()
        self._written.append(self._fitting(text))
        self._say_if_cut()

    def show(self, bundle: dict, result: bool = False) -> None:
        """Add what is displayed, or a cell's result; ``bundle``: kind -> content."""
        kept = {}
        for kind in ("text/plain", *IMAGES):
            content = _content(kind, bundle.get(kind))
            if kind in IMAGES and len(content) > self._left:
                self.cut = True  # half an image is none
            elif content:
                kept[kind] = self._fitting(content)
        if kept and result:
            self._add(
                {
                    "output_type": "execute_result",
                    "data": kept,
                    "metadata": {},
                    "execution_count": None,
                }
            )
        elif kept:
            self._add({"output_type": "display_data", "data": kept, "metadata": {}})
        self._say_if_cut()

    def fail(self, name: str, text: str, lines: list[str]) -> None:
        """Add an exception: its name, its text and the lines of its traceback."""
        self._add(
            {
                "output_type": "error",
                "ename": name[:_NAME],
                "evalue": text[:_TEXT],
                "traceback": [self._fitting(line) for line in lines[:_NAME]],
            }
        )
        self._say_if_cut()

    def add(self, output: object) -> None:
        """Add an output that somebody sent.

        Raises:
            BoundaryError: it has not the form that ``as_list`` gives.
        """
        match output:
            case {"output_type": "stream", "name": str(name), "text": str(text)} if (
                name in STREAMS
            ):
                self.write(name, text)
            case {
                "output_type": "display_data" | "execute_result" as kind,
                "data": dict(bundle),
            }:
                self.show(bundle, result=kind == "execute_result")
            case {
                "output_type": "error",
                "ename": str(name),
                "evalue": str(text),
                "traceback": list(lines),
            } if all(type(line) is str for line in lines):
                self.fail(name, text, lines)
            case _:
                raise BoundaryError("an output of no known form")

    def _add(self, item: dict) -> None:
        self._close_stream()
        if self._left >= _ITEM:
            self._left -= _ITEM
            self._items.append(item)
            return
        self.cut = True
        if item["output_type"] == "error" and not self._failed:
            self._failed = True  # how a cell ended is worth its few bytes, once
            self._items.append(item)

    def _close_stream(self) -> None:
        if self._written:
            self._items[-1]["text"] += "".join(self._written)
            self._written.clear()

    def _fitting(self, text: str) -> str:
        """Take from a text what there is still room for."""
        if len(text) <= self._left // 4:  # no character has more than four bytes
            self._left -= len(text.encode("utf-8", "backslashreplace"))
            return text
        content = text[: self._left + 1].encode("utf-8", "backslashreplace")
        if len(content) > self._left:
            self.cut = True
            content = content[: self._left]
        self._left -= len(content)
        return content.decode("utf-8", "ignore")

    def _say_if_cut(self) -> None:
        if self.cut and not self._said:
            self._said = True
            self._close_stream()
            text = f"\n[output cut: more than {self._limit:,} bytes]\n"
            self._items.append(
                {"output_type": "stream", "name": "stderr", "text": text}
            )
            self._limit = -1


def _content(kind: str, content: object) -> str:
    """Return text as it is, and an image in base64 if it is one; else nothing."""
    if kind == "text/plain":
        return content if type(content) is str else ""
    try:
        if isinstance(content, str):
            content = base64.b64decode("".join(content.split()), validate=True)
    except (ValueError, binascii.Error):
        return ""
    if not isinstance(content, bytes) or not content.startswith(IMAGES[kind]):
        return ""
    return base64.b64encode(content).decode("ascii")
