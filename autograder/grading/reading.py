"""Make a notebook of bytes that anybody may have written, or say why it is none."""

import itertools
import json

import nbformat
import numpy as np
from nbformat import NotebookNode

from autograder.grading.clean import plain, writable

LARGEST_NOTEBOOK = 25_000_000  # bytes, nearly all of them outputs
MOST_VALUES = 1_000_000  # each takes up to a hundred bytes of memory when it is read
SEPARATORS = np.frombuffer(b",:[{", dtype=np.uint8)
PIECE = 1_000_000  # bytes of a file that are looked at together
MOST_CELLS = 5_000
LARGEST_CELL = 1_000_000  # characters; nobody types so much
LARGEST_TEXT = 10_000_000  # characters of all cells and their pictures
PICTURE = 1_000  # that a picture counts for, however small it is
MOST_PICTURES = 1_000  # of a cell
MOST_NOTES = 20
GRADING = ("grade_id", "grade", "solution", "locked", "points")  # what repair reads


class Refused(Exception):
    """A submission cannot be graded; the text is the reason a student gets."""


def parse(data: bytes) -> tuple[NotebookNode, tuple[str, ...]]:
    """Make a notebook of the content of a file.

    What comes back is small enough to work with and can be written again: cells with
    their text, nbgrader's metadata and pasted pictures, and no outputs.

    Args:
        data: the content of a notebook file of any format version.

    Returns:
        The notebook in format 4, and notes on what was unusual.

    Raises:
        Refused: it is no notebook, or too large a one.
    """
    if len(data) > LARGEST_NOTEBOOK:
        raise Refused(f"the notebook is larger than {LARGEST_NOTEBOOK // 10**6} MB")
    content, notes = _content(data)
    content, upgraded = _upgraded(content)
    cells = content.get("cells")
    if not isinstance(cells, list) or not all(isinstance(c, dict) for c in cells):
        raise Refused("the file is JSON, but not a notebook: its cells are no list")
    if len(cells) > MOST_CELLS:
        raise Refused(f"the notebook has {len(cells)} cells, at most {MOST_CELLS} run")
    read, cut = _read_cells(cells)
    notebook = NotebookNode(
        nbformat=4, nbformat_minor=5, metadata=_metadata(content), cells=read
    )
    return notebook, (*notes, *upgraded, *cut)


# --- the file -------------------------------------------------------------------------


def _content(data: bytes) -> tuple[dict, tuple[str, ...]]:
    """Read a file's JSON, once it is known how much memory its values can take."""
    text, notes = _decode(data)
    if "utf-8" not in json.detect_encoding(data):
        data = text.encode("utf-8", "surrogatepass")
    if count_values(data) > MOST_VALUES:
        raise Refused("the notebook holds too many values")
    return _json(text), notes


def _decode(data: bytes) -> tuple[str, tuple[str, ...]]:
    if not data.strip():
        raise Refused("the notebook is an empty file")
    encoding = json.detect_encoding(data)
    try:
        return data.decode(encoding), ()
    except UnicodeDecodeError:
        return data.decode("latin-1"), ("read as Latin-1: it was not UTF-8",)


def count_values(data: bytes) -> int:
    """Count what begins or separates values in JSON, without making any of them.

    What stands in strings does not count. The file is looked at in pieces, so that
    counting takes little memory.

    >>> count_values(b'{"a, [b]": [1, 2, {}]}')
    6
    """
    data = data.replace(b"\\\\", b"").replace(b'\\"', b"")  # what quotes do not end
    number, inside = 0, 0
    for start in range(0, len(data), PIECE):
        piece = np.frombuffer(data[start : start + PIECE], dtype=np.uint8)
        strings = np.cumsum(piece == ord('"'), dtype=np.uint8) + np.uint8(inside) & 1
        number += int(np.isin(piece[strings == 0], SEPARATORS).sum())
        inside = int(strings[-1])
    return number


def _json(text: str) -> dict:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Refused(f"the notebook is not valid JSON ({where})") from None
    except RecursionError:
        raise Refused("the notebook is not valid JSON (nested too deeply)") from None
    except ValueError:  # Python reads no number of thousands of digits
        raise Refused("the notebook is not valid JSON (a number too long)") from None
    if not isinstance(content, dict) or not {"cells", "worksheets"} & content.keys():
        raise Refused("the file is JSON, but not a notebook: it has no cells")
    return content


def _upgraded(content: dict) -> tuple[dict, tuple[str, ...]]:
    """Bring a notebook to format 4; what is wrong inside its cells, repair mends."""
    if "cells" in content:
        return content, ()
    version = plain(str(content.get("nbformat")), 20)
    try:
        notebook = nbformat.convert(nbformat.from_dict(_without_outputs(content)), 4)
    except Exception as error:  # whatever an old notebook with odd content gives
        reason = plain(f"{type(error).__name__}: {error}", 200)
        raise Refused(f"the old notebook cannot be converted ({reason})") from None
    return notebook, (f"brought from notebook format {version} to 4",)


def _without_outputs(content: dict) -> dict:
    """Take out of an old notebook what is not read, before copies are made of it."""
    for sheet in content["worksheets"]:
        for cell in sheet["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"] = []
    kept = ("nbformat", "nbformat_minor", "worksheets")
    found = {name: content[name] for name in kept if name in content}
    return found | {"metadata": _metadata(content)}


def _metadata(content: dict) -> NotebookNode:
    """Keep the kernel's name, which repair replaces and reports."""
    metadata = content.get("metadata")
    kernel = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    name = kernel.get("name") if isinstance(kernel, dict) else None
    if not isinstance(name, str):
        return NotebookNode()
    return NotebookNode(kernelspec=NotebookNode(name=plain(name, 60)))


# --- its cells ------------------------------------------------------------------------


def _read_cells(cells: list[dict]) -> tuple[list[NotebookNode], list[str]]:
    """Take what grading needs of each cell; cut what nobody can have typed."""
    read, notes, room = [], [], LARGEST_TEXT
    for number, cell in enumerate(cells, start=1):
        node, most = _read_cell(cell), min(LARGEST_CELL, room)
        if len(node.source) > most:
            size, node.source = len(node.source), node.source[:most]
            notes.append(f"cell number {number}: its text of {size} characters was cut")
        room -= len(node.source)
        if "attachments" in node:
            size = sum(
                PICTURE + len(data)
                for each in node.attachments.values()
                for data in each.values()
            )
            if size > room:
                del node["attachments"]
                notes.append(f"cell number {number}: its pictures were too large")
            else:
                room -= size
        read.append(node)
    return read, notes[:MOST_NOTES]


def _read_cell(cell: dict) -> NotebookNode:
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    node = NotebookNode(
        cell_type=cell.get("cell_type") if _is_text(cell.get("cell_type")) else "raw",
        source=writable(source) if isinstance(source, str) else "",
        metadata=NotebookNode(),
    )
    if _is_text(cell.get("id")):
        node.id = cell["id"]
    metadata = cell.get("metadata")
    grading = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    if isinstance(grading, dict):
        node.metadata.nbgrader = {
            name: grading[name]
            for name in GRADING
            if _is_text(grading.get(name))
            or type(grading.get(name)) in (bool, int, float)
        }
    pictures = _attachments(cell.get("attachments"))
    if pictures:
        node.attachments = pictures
    return node


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) < 200


def _attachments(given: object) -> dict[str, dict[str, str]]:
    """Keep pictures that were pasted into a text: by name, by type, base64."""
    found = {}
    items = given.items() if isinstance(given, dict) else ()
    for name, bundle in itertools.islice(items, MOST_PICTURES):
        pictures = {
            kind: writable("".join(data) if isinstance(data, list) else data)
            for kind, data in (bundle.items() if isinstance(bundle, dict) else ())
            if kind in ("image/png", "image/jpeg")
            and (isinstance(data, str) or _is_lines(data))
        }
        if pictures:
            found[writable(name)] = pictures
    return found


def _is_lines(data: object) -> bool:
    return isinstance(data, list) and all(isinstance(line, str) for line in data)
