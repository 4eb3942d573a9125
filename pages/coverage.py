"""Where the course teaches what: the tables of the page "What is covered".

The data are the files of book/coverage. `concepts.yml` and `errata.yml` name every idea
and every mistake of the sources; each other file says where one page takes them up, as
`page:<label>` for a section, a box or a line of a page, and `exercise:<id>`. An idea
with `planned` is taken up (again) in a chapter that is still to be written.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "book" / "coverage"
CATALOGUES = ("concepts", "errata")
LABEL = re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE)
HEADING = re.compile(r"^(#{1,4}) (.+)$")
BOX = re.compile(r"^`{3,}\{admonition\} (.+)$")
KINDS = {
    "E": "error",
    "I": "imprecise",
    "O": "left out",
    "T": "slip",
    "ok": "right after all",
}
TOLD = (
    "E",
    "I",
)  # the kinds that the page "Where the sources disagree" tells one by one


@dataclass(frozen=True)
class Place:
    """Somewhere that a row of the tables can point to."""

    title: str  # as the reader sees it, in Markdown
    link: str  # as a page in book/ writes it
    page: str  # name of the page or of the chapter whose exercises it is in


def load(name: str) -> dict:
    """Read a file of book/coverage; numbers in quotes stay text."""
    text = (FOLDER / f"{name}.yml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def listed() -> list[str]:
    """The pages of the site, in its order."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    entries = [each for part in contents["parts"] for each in part["chapters"]]
    for entry in entries:
        entries.extend(entry.get("sections", []))
    return [contents["root"], *(entry["file"] for entry in entries)]


def labels(page: Path) -> dict[str, str]:
    """The labels of a page, each with the heading of its section."""
    found: dict[str, str] = {}
    waiting: list[str] = []
    heading = page.stem
    fence = ""
    for line in page.read_text(encoding="utf-8").splitlines():
        label, title, box = LABEL.match(line), HEADING.match(line), BOX.match(line)
        ticks = re.match(r"`{3,}|:{3,}", line)
        if label and not fence:
            waiting.append(label[1])
        elif waiting and line.strip():
            if title:
                found |= dict.fromkeys(waiting, title[2])
            elif box:
                found |= dict.fromkeys(waiting, f"box in *{heading}*")
            else:
                found |= dict.fromkeys(waiting, heading)
            waiting = []
        if title and not fence:
            heading = title[2]
        if ticks:  # what stands inside a fence is no heading
            if not fence:
                fence = ticks[0]
            elif line.strip() == fence:
                fence = ""
    return found


def slug(title: str) -> str:
    """The anchor that the site gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower().replace(" ", "-"))


def exercises(notebook: Path) -> dict[str, str]:
    """The exercises of a notebook by name, each with its heading."""
    found, heading = {}, ""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        title = re.match(r"(?:<!--.*?-->\s*)?## (Exercise .+)", "".join(cell["source"]))
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if title:
            heading = title[1]
        elif name and heading:
            found[name.removeprefix("test-")] = heading
            heading = ""
    return found


@functools.cache
def places() -> dict[str, Place]:
    """Everything that a target can name, on the pages that the site lists."""
    found = {}
    pages = listed()
    for name in pages:
        path = ROOT / f"{name}.md"
        if name.startswith("book/") and path.is_file():
            number = re.match(r"\d\d", path.stem)
            chapter = f"{int(number[0])}\u00a0·\u00a0" if number else ""
            if path.stem == "introduction":
                chapter = "introduction: "
            for label, title in labels(path).items():
                title = chapter + title
                own = label == path.stem  # a page and a label of one name
                link = path.name if own else f"#{label}"
                found[f"page:{label}"] = Place(title, link, path.stem)
        path = ROOT / f"{name}.ipynb"
        if name.startswith("exercises/") and path.is_file():
            for exercise, title in exercises(path).items():
                link = f"../{name}.ipynb#{slug(title)}"
                short = title.replace("Exercise", "exercise").replace(" · ", ", ")
                found[f"exercise:{exercise}"] = Place(short, link, path.stem)
    return found


@functools.cache
def targets() -> dict[str, list[str]]:
    """Each row with all its targets, in the order of the pages."""
    rows: dict[str, list[str]] = {}
    for path in sorted(FOLDER.glob("*.yml")):
        if path.stem in CATALOGUES:
            continue
        for group in CATALOGUES:
            for row, named in (load(path.stem).get(group) or {}).items():
                rows.setdefault(str(row), []).extend(named)
    return rows


def links(row: str) -> list[str]:
    """A row's places as Markdown links; what the site does not list is left out."""
    known = places()
    there = [known[each] for each in targets().get(row, []) if each in known]
    texts = [f"[{each.title}]({each.link})" for each in there]
    return list(dict.fromkeys(texts))


def homes(entry: dict) -> list[int]:
    """The chapters of an entry, its home first."""
    chapters = entry["chapter"]
    return chapters if isinstance(chapters, list) else [chapters]


def concept_places(row: str, entry: dict) -> str:
    """A row's links; where it waits for a chapter to be written, that is said."""
    waits = f"*comes with chapter {entry['planned']}*" if "planned" in entry else ""
    return "; ".join(filter(None, [*links(row), waits])) or "*not on the site yet*"


def concept_table(number: int) -> str:
    """The table of the ideas whose home is a chapter."""
    lines = ["| idea, and a question that the place answers | where |", "|---|---|"]
    for row, entry in load("concepts").items():
        if homes(entry)[0] == number:
            where = concept_places(row, entry)
            lines.append(f"| {row} {entry['title']}. *{entry['ask']}* | {where} |")
    return "\n".join(lines)


def overview() -> str:
    """Say how much there is, and how much of it has a place on the site."""
    ideas, errata = load("concepts"), load("errata")
    placed = sum(bool(links(row)) for row in ideas)
    told = sum(entry["kind"] in TOLD for entry in errata.values())
    return (
        f"Of {len(ideas)} ideas, {placed} have a place on the site. Of {len(errata)} "
        f"remarks on the sources, {told} are errors or imprecise statements, the "
        "others slips and omissions."
    )


def anchor(row: str) -> str:
    """The label of an erratum on the page "Where the sources disagree"."""
    return f"error-{row.replace('.', '-').lower()}"


def numbered(row: str, entry: dict) -> str:
    """A remark's number: a link where it has an entry, bold where it is an error."""
    number = f"[{row}](#{anchor(row)})" if entry["kind"] in TOLD else row
    return f"**{number}**" if entry["kind"] == "E" else number


def summary_table() -> str:
    """All errors and imprecise statements in one table, each a link to its entry."""
    lines = ["| it says | what is right |", "|---|---|"]
    for row, entry in load("errata").items():
        if entry["kind"] in TOLD:
            lines.append(
                f"| {numbered(row, entry)} {entry['says']} | {entry['right']} |"
            )
    return "\n".join(lines)


def errata_table() -> str:
    """Everything that the sources have wrong, and where the course takes it up."""
    lines = ["| it says | where |", "|---|---|"]
    for row, entry in load("errata").items():
        says = f"{numbered(row, entry)} {entry['says']} ({KINDS[entry['kind']]})"
        lines.append(f"| {says} | {'; '.join(links(row)) or '*its entry*'} |")
    return "\n".join(lines)


def rest_table() -> str:
    """What is left out, misspelt or right after all, and where more is said."""
    lines = ["| it says | what is right |", "|---|---|"]
    for row, entry in load("errata").items():
        if entry["kind"] not in TOLD:
            says = f"{row} {entry['says']} ({KINDS[entry['kind']]})"
            more = [each for each in links(row) if "(#disagreements-rest)" not in each]
            right = "; see ".join(filter(None, [entry["right"], ", ".join(more)]))
            lines.append(f"| {says} | {right} |")
    return "\n".join(lines)


def where_list(*rows: str) -> str:
    """Say for some mistakes of the sources where the chapters take them up."""
    kinds = {row: entry["kind"] for row, entry in load("errata").items()}
    names = {row: f"**{row}**" if kinds[row] == "E" else row for row in rows}
    items = [f"- {names[row]}: {'; '.join(links(row)) or 'here only'}" for row in rows]
    return "\n".join(["*In the course:*", "", *items])


def tutor_table() -> str:
    """What strangers' wrong answers were told at first, and are told now."""
    chapters = _tutored()["chapters"]
    lines = [
        "| chapter | wrong answers | coverage at first | precision at first "
        "| coverage now | precision now |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, row in (*chapters.items(), ("", _sum(chapters.values()))):
        title = f"{int(name[:2])} · {_title(name)}" if name else "all"
        shares = (f(row[when]) for when in ("first", "now") for f in (_share, _right))
        lines.append(f"| {title} | {row['answers']} | {' | '.join(shares)} |")
    return "\n".join(lines)


def _title(chapter: str) -> str:
    """The first heading of a chapter's page."""
    text = (ROOT / "book" / f"{chapter}.md").read_text(encoding="utf-8")
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"book/{chapter}.md has no heading")
    return found[1]


ROUNDS = {  # of the answers, in the order in which they were written
    "1": "all chapters but the eleventh; the checks were first mended from these",
    "2": "written after that",
    "3": "chapter 11, and exercises that came later",
    "4": "all chapters",
    "5": "all chapters",
    "6": "all chapters, more of them wrong at an edge only",
    "8": "chapters 2, 4, 6, 9 and 10, by somebody who had worked on the checks",
    "9": "chapters 3 and 4",
    "10": "chapters 1, 5, 7, 8 and 11",
    "11": "chapters 2, 3, 6, 9 and 10",
    "12": "chapters 4, 7, 9, 10 and 11, looking for what nobody had thought of",
    "13": "chapters 1, 4, 5, 9 and 10, likewise, when most of these were mended",
    "14": "all chapters, a third each plain, subtle, and with two slips",
    "15": "all chapters, likewise, none of them the first slip that comes to mind",
}


def tutor_rounds() -> str:
    """What answers were told for which no check had been mended."""
    lines = [
        "| answers to | wrong answers | coverage at first | precision at first |",
        "|---|---:|---:|---:|",
    ]
    for number, row in _tutored()["rounds"].items():
        shares = f"{_share(row['first'])} | {_right(row['first'])}"
        lines.append(f"| {ROUNDS[number]} | {row['answers']} | {shares} |")
    return "\n".join(lines)


def tutor_waits() -> str:
    """How long a student waits for what a wrong answer is told."""
    seconds = _tutored()["seconds"]
    return (
        "A check that is run for the first time in a notebook takes "
        f"{seconds['median']:.2f} seconds of processor time to refuse half of these "
        f"answers, {seconds['99 of 100']:.1f} seconds at most for 99 of 100, and "
        f"{seconds['longest']:.1f} for the slowest."
    )


def _tutored() -> dict:
    path = ROOT / "results" / "tutor" / "strangers.json"
    return json.loads(path.read_text(encoding="utf-8"))


def _sum(rows: Iterable[dict]) -> dict:
    whole: dict = {"answers": 0, "first": Counter(), "now": Counter()}
    for row in rows:
        whole["answers"] += row["answers"]
        whole["first"].update(row["first"])
        whole["now"].update(row["now"])
    return whole


def _share(told: Mapping[str, int]) -> str:
    """Write how many are named."""
    return _percent(told.get("named", 0), sum(told.values()))


def _right(told: Mapping[str, int]) -> str:
    """Write how many of the names that are given are right."""
    named = told.get("named", 0)
    return _percent(named, named + told.get("wrong", 0))


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.0%}".replace("%", " %") if whole else ""
