"""Answers as strangers wrote them: a file for each chapter, a header before each.

::

    # === exercise: 4.1 · Softmax | function: softmax | kind: subtle | what is wrong: …
    def softmax(scores):
        …

So an author writes it, who has a notebook and its numbers. An answer that is kept has
the exercise's id, ``# === exercise: softmax | …``, since numbers change when one moves.

Whoever has read what they are told adds the lines ``# told: named`` (at first),
``# now: named``, ``# says: …`` (the name) and ``# line: 3`` below the header, or
``# dropped: …``, why it is not wrong by the notebook's statement.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).with_name("strangers")
HEADER = re.compile(
    r"# === exercise: (?P<exercise>[^|]+) \| functions?: (?P<functions>[^|]+) \| "
    r"kind: (?P<kind>\w+) \| what is wrong: (?P<truth>.*)"
)
NOTES = ("told", "now", "says", "line", "dropped")
NOT_STYLED = "# ruff: noqa\n# fmt: off\n"


@dataclass
class Written:
    """One answer: its header, what was judged of it, and its code.

    ``exercise`` is the id, or as its author named it: "4.1 · Softmax".
    """

    chapter: str
    head: str
    code: str
    notes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found = HEADER.fullmatch(self.head)
        if not found:
            raise ValueError(f"{self.chapter}: no header: {self.head}")
        self.exercise, self.kind = found["exercise"].strip(), found["kind"]
        self.truth = found["truth"].strip()
        self.functions = [each.strip() for each in found["functions"].split(",")]

    def name_exercise(self, names: Mapping[str, str]) -> None:
        """Name the exercise by its id, if the header has its number.

        Args:
            names: the ids of the chapter's exercises, by their numbers.

        Raises:
            ValueError: the chapter has no such exercise.
        """
        name = names.get(self.exercise.partition(" ")[0], self.exercise)
        if name not in names.values():
            raise ValueError(f"{self.chapter}: no such exercise: {self.head}")
        self.head = self.head.replace(self.exercise, name, 1)
        self.exercise = name

    def __str__(self) -> str:
        notes = [f"# {key}: {value}" for key, value in self.notes.items()]
        return "\n".join([self.head, *notes, self.code.strip("\n"), ""])


def read(path: Path) -> list[Written]:
    """Read a chapter's answers; the file has the chapter's name."""
    texts = re.split(r"(?m)^(?=# === )", path.read_text("utf-8"))[1:]
    return [_one(path.stem, text) for text in texts]


def _one(chapter: str, text: str) -> Written:
    head, *lines = text.split("\n")
    notes: dict[str, str] = {}
    while lines and (found := re.fullmatch(rf"# ({'|'.join(NOTES)}): (.*)", lines[0])):
        notes[found[1]] = found[2]
        del lines[0]
    return Written(chapter, head.rstrip(), "\n".join(lines), notes)


def write(path: Path, answers: list[Written]) -> None:
    """Write a chapter's answers with what was judged of them."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(NOT_STYLED + "\n" + "\n\n".join(map(str, answers)), "utf-8")


def rounds() -> Iterator[tuple[int, Path]]:
    """Give the files of all rounds that are kept in this form."""
    for folder in sorted(FOLDER.glob("round_*")):
        for path in sorted(folder.glob("*.py")):
            yield int(folder.name.removeprefix("round_")), path
