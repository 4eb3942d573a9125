"""Read the course's prose: one line for each sentence that a rule objects to.

    python -m tools.prose [FILE ...] [--lower]

The rules are in tools/prose.yml, the spelling of the field's words is the glossary's.
It reads the README, the pages, the notebooks' sources, the quizzes and the messages of
checks: paragraphs, lists, tables, captions and descriptions of figures, without code
and formulas.

Alerts that were there before a rule are counted by file in tools/prose_known.yml. More
than that fail. The numbers may only fall: --lower writes the ones found now, if they
are smaller.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "tools" / "prose.yml"
KNOWN = ROOT / "tools" / "prose_known.yml"
READ = (
    "README.md",
    "book/*.md",
    "book/quizzes/*.yml",
    "solutions/[0-9]*.md",
    "autograder/chapters/**/*.py",
)
DIRECTIVE = re.compile(r"\{([\w-]+)\}\s*(.*)")
WITHOUT_PROSE = {"code-cell", "math", "quiz", "raw", "toctree", "ways-through"}
DESCRIBED = ("alt", "caption")  # keys of a cell's header that hold sentences
STANDS_FOR = {"code_inline": "Code", "math_inline": "X", "html_inline": ""}
# A full stop, perhaps behind a quotation mark, and a beginning; but "e.g. Adam"
END = re.compile(r"(?<!e\.g\.)(?<!i\.e\.)(?<=[.!?])[\"”)]*\s+(?=[\"“(]*[A-Z0-9])")
SENTENCE = re.compile(r"^[A-Z].* .*[.!?]$", re.DOTALL)  # a whole one, or several
WORD = re.compile(r"[^\W_][\w'’.,/-]*")


@dataclass(frozen=True)
class Passage:
    """A run of sentences, and the line of its file in which it begins (from 1)."""

    line: int
    text: str

    def sentences(self) -> Iterator[tuple[int, str]]:
        """Give each sentence with its line."""
        begin = 0
        for end in [*(match.end() for match in END.finditer(self.text)), None]:
            sentence = self.text[begin:end]
            yield self.line + self.text[:begin].count("\n"), " ".join(sentence.split())
            begin = end or 0


@dataclass(frozen=True)
class Alert:
    """What a rule objects to, and where."""

    path: str
    line: int
    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.what}"


# --- from files to passages -----------------------------------------------------------


def passages(path: Path) -> list[Passage]:
    """Return the prose of a page, a notebook's source, a quiz or a check."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return list(_messages(ast.parse(text)))
    if path.suffix == ".yml":
        return [Passage(*each) for each in _texts(yaml.compose(text))]
    return list(_passages(text, 1))


def _texts(node: yaml.Node, key: str = "") -> Iterator[tuple[int, str]]:
    """Give the texts of a quiz, with their lines; what is under `proof` is code."""
    if isinstance(node, yaml.ScalarNode) and key in ("question", "text", "why"):
        for passage in _passages(node.value, node.start_mark.line + 1):
            yield passage.line, passage.text
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _texts(each, key)
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            yield from _texts(value, name.value)


def _messages(module: ast.Module) -> Iterator[Passage]:
    """Give the sentences among a program's texts that are no docstrings."""
    bare = {node.value for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        text = getattr(node, "value", None) if node not in bare else None
        if isinstance(text, str) and SENTENCE.search(text):
            yield Passage(node.lineno, text)


_PARSER = create_md_parser(
    MdParserConfig(
        enable_extensions={"amsmath", "colon_fence", "deflist", "dollarmath"}
    ),
    RendererHTML,
)


def _passages(text: str, first: int) -> Iterator[Passage]:
    """Give the passages of Markdown whose first line has the number `first`."""
    for token in _PARSER.parse(text):
        line = first + (token.map[0] if token.map else 0)
        if token.type == "inline":
            yield Passage(line, _plain(token))
        elif token.type in ("fence", "colon_fence"):
            yield from _inside(token, line)


def _inside(fence: Token, line: int) -> Iterator[Passage]:
    """Give the passages of a directive; a block of code has none."""
    directive = DIRECTIVE.match(fence.info)
    if not directive:
        return
    name, title = directive.groups()
    header, body = _parts(fence.content)
    yield from _described(header, line + 1)
    if name not in WITHOUT_PROSE:
        yield Passage(line, title)
        yield from _passages(body, line + 1 + header.count("\n"))


def _parts(content: str) -> tuple[str, str]:
    """Split a directive's content into its options and its body."""
    options = re.match(r"---\n.*?^---\n|(?::[\w-]+:[^\n]*\n)+", content, re.S | re.M)
    return (options[0], content[options.end() :]) if options else ("", content)


def _described(header: str, line: int) -> Iterator[Passage]:
    """Give the sentences about a figure that a cell's header holds."""
    if not header.startswith("---"):
        return
    options = yaml.safe_load(header.removeprefix("---").rstrip("-\n"))
    found: list[tuple[str, Any]] = [("", options)]
    for _, value in found:
        found += value.items() if isinstance(value, dict) else ()
    for key, value in found:
        if key in DESCRIBED:
            place = header[: header.index(f"{key}:")].count("\n")
            for passage in _passages(str(value), line + place):
                yield Passage(line + place, passage.text)


def _plain(inline: Token) -> str:
    """Return a passage's text, with a word for each formula and each piece of code."""
    parts = []
    for token in inline.children or ():
        if token.type in ("softbreak", "hardbreak"):
            parts.append("\n")
        elif token.type == "myst_role":
            parts.append(re.sub(r"\s*<[^>]*>$", "", token.content))
        else:
            parts.append(STANDS_FOR.get(token.type, token.content))
    return "".join(parts)


# --- the rules ------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """Something that a sentence should not have."""

    name: str
    find: re.Pattern
    say: str
    least: int = 1

    @classmethod
    def of(cls, name: str, entry: dict[str, Any]) -> Rule:
        """Make a rule of what the file of rules says of it."""
        find = entry["find"]
        joined = "|".join([find] if isinstance(find, str) else find)
        pattern = re.compile(joined, re.IGNORECASE)
        return cls(name, pattern, entry["say"], entry.get("least", 1))

    def objections(self, sentence: str) -> Iterator[str]:
        """Give what the rule says of a sentence, if it says anything."""
        found = [match[0] for match in self.find.finditer(sentence)]
        if len(found) >= self.least:
            yield f"{', '.join(found)!r}; {self.say}"


class Rules:
    """All rules: those of a file, and the spelling of a glossary."""

    def __init__(self, text: str, glossary: str) -> None:
        read = yaml.safe_load(text)
        self.longest = read["longest_sentence"]
        self.rules = [Rule.of(*each) for each in read["rules"].items()]
        self._spelling, self._glossary = read["spelling"], glossary

    @classmethod
    def of_the_course(cls) -> Rules:
        """Read the course's own."""
        glossary = ROOT / "book" / "glossary.md"
        return cls(*(path.read_text(encoding="utf-8") for path in (RULES, glossary)))

    @cached_property
    def spelling(self) -> dict[str, str]:
        """Ways to write a word that are not the glossary's, and its own."""
        inside = self._glossary.partition("```{glossary}\n")[2]
        wrong = dict(self._spelling["also"])
        for term in re.findall(r"^(?! |`)(.+)$", inside, re.MULTILINE):
            others = {re.sub("is(?=e$|er$|ation$)", "iz", term)}
            if "-" in term:
                others |= {term.replace("-", " "), term.replace("-", "")}
            wrong |= dict.fromkeys(others - {term, *self._spelling["allow"]}, term)
        return wrong

    @cached_property
    def _misspelt(self) -> re.Pattern:
        words = "|".join(map(re.escape, self.spelling))
        return re.compile(rf"(?<![\w-])(?:{words})(?=s?(?![\w-]))", re.IGNORECASE)

    def alerts(self, path: str, found: list[Passage]) -> Iterator[Alert]:
        """Give everything that the rules say of a file's passages."""
        for passage in found:
            for line, sentence in passage.sentences():
                for rule, what in self._objections(sentence):
                    yield Alert(path, line, rule, what)

    def _objections(self, sentence: str) -> Iterator[tuple[str, str]]:
        words = len(WORD.findall(sentence))
        if words > self.longest:
            yield "long sentence", f"{words} words: {sentence[:50]!r}"
        for rule in self.rules:
            yield from ((rule.name, what) for what in rule.objections(sentence))
        for word in self._misspelt.findall(sentence):
            yield "spelling", f"{word!r}; the course writes {self.right(word)!r}"

    def right(self, word: str) -> str:
        """Return how the glossary writes a word that is written in another way."""
        return self.spelling.get(word) or self.spelling[word.lower()]


# --- the command ----------------------------------------------------------------------


def files() -> list[Path]:
    """List everything that is read."""
    return sorted(path for pattern in READ for path in ROOT.glob(pattern))


def alerts_of(path: Path, rules: Rules) -> list[Alert]:
    """Return the alerts of a file."""
    path = path.resolve()
    inside = path.is_relative_to(ROOT)
    name = path.relative_to(ROOT).as_posix() if inside else str(path)
    return list(rules.alerts(name, passages(path)))


def too_many(alerts: list[Alert], known: dict[str, int]) -> list[Alert]:
    """Return the alerts of files that have more than are known."""
    counts = Counter(alert.path for alert in alerts)
    return [alert for alert in alerts if counts[alert.path] > known.get(alert.path, 0)]


def lowered(alerts: list[Alert], known: dict[str, int]) -> dict[str, int]:
    """Return the known numbers, each no larger than what is found."""
    counts = Counter(alert.path for alert in alerts)
    fallen = {path: min(number, counts[path]) for path, number in known.items()}
    return {path: number for path, number in fallen.items() if number}


def main() -> int:
    """Print what is wrong; return 1 if that is more than is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="every file, if none")
    parser.add_argument("--lower", action="store_true", help="lower the known numbers")
    asked = parser.parse_args()
    known = yaml.safe_load(KNOWN.read_text(encoding="utf-8")) or {}
    rules = Rules.of_the_course()
    alerts = [a for path in asked.files or files() for a in alerts_of(path, rules)]
    if asked.lower and not asked.files:
        text = KNOWN.read_text(encoding="utf-8")
        comments = "".join(re.findall(r"^#.*\n", text, re.MULTILINE))
        KNOWN.write_text(comments + yaml.safe_dump(lowered(alerts, known)))
    shown = alerts if asked.files else too_many(alerts, known)
    for alert in shown:
        print(alert)
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main())
