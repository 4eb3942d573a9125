"""The worst files that a student can hand in cost a trusted process little memory.

Each is read in a process of its own, forked from one that has imported what a grader
imports: so what is measured is what reading the file adds.
"""

import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.generator import ROOT
from autograder.grading import reading
from tests import strangers

MOST = 400 * 2**20  # bytes above the start
SECONDS = 40  # of processor time; nearly all of them take one
SCRIPT = Path(__file__).parents[1] / "read_apart.py"
EMOJI = "\U0001f600".encode()  # lets Python keep a whole text at four bytes a letter
VALUES = reading.MOST_VALUES


# --- notebooks ------------------------------------------------------------------------


def cells(*inside: bytes) -> bytes:
    return b'{"nbformat":4,"metadata":{},"cells":[' + b"".join(inside) + b"]}"


def cell(unit: bytes, counts: int, long: int = 10_000_000) -> bytes:
    """A cell with as many values as just pass the count, and a long text with them."""
    values = unit * (VALUES // counts - 100)
    text = b"x" * min(long, 24_000_000 - len(values)) + EMOJI
    start = b'{"cell_type":"code","source":"' + text + b'","x":['
    return start + values + b"0]}"


def old(*inside: bytes) -> bytes:
    before = b'{"nbformat":3,"metadata":{},"worksheets":[{"cells":['
    return before + b"".join(inside) + b"]}]}"


def keys(number: int) -> bytes:
    return b"".join(b'"%07d":0,' % each for each in range(number))


def notebooks() -> Iterator[tuple[str, bytes]]:
    """The worst notebooks, of up to 25 MB."""
    whole = 24_900_000
    yield "empty lists", cells(b"[]," * (whole // 3), b"0")
    yield "numbers", cells(b"1.5," * (whole // 4), b"0")
    yield "texts", cells(b'"ab",' * (whole // 5), b"0")
    yield "nested", cells(b"[" * whole)
    yield "one number", cells(b"1" * whole)
    yield "one fraction", cells(b"0." + b"1" * whole)
    yield "large numbers", cells((b"9" * 4_000 + b",") * (whole // 4_001), b"0")
    yield (
        "quotes that end nothing",
        cells(b'{"source":"' + b'\\"' * (whole // 2) + b'"}'),
    )
    yield "lists", cells(cell(b"[0],", 2))
    yield "objects", cells(cell(b'{"ab":0.5},', 3))
    yield (
        "keys",
        cells(b'{"cell_type":"code","x":{' + keys(VALUES // 2 - 99) + b'"":0}}'),
    )
    yield "cells", cells(b'{"cell_type":"code"},' * (VALUES // 3 - 99), b"{}")
    pictures = b'"attachments":{' + keys(VALUES // 5).replace(
        b"0,", b'{"image/png":""},'
    )
    yield "pictures", cells(b'{"cell_type":"markdown",' + pictures + b'"":0}}')
    lines = b'{"cell_type":"code","source":[' + b'"ab\\n",' * (VALUES - 99) + b'""]}'
    yield "lines", cells(lines)
    yield "UTF-16", cells(cell(b"[0],", 2, 2_000_000)).decode().encode("utf-16")
    yield (
        "old outputs",
        old(
            b'{"cell_type":"code","language":"python","metadata":{},"input":"","outputs":[',
            b'{"ab":0.5},' * (VALUES // 3 - 99) + b"{}]}",
        ),
    )
    yield "old cells", old(b'{"cell_type":"raw","source":""},' * (VALUES // 6), b"{}")
    yield (
        "old values",
        old(
            b'{"cell_type":"raw","source":"","metadata":{},"x":[',
            b'{"ab":0.5},' * (VALUES // 3 - 99) + b"0]}",
        ),
    )


# --- models ---------------------------------------------------------------------------


def header(text: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<Q", len(text)) + text + data


def models() -> Iterator[tuple[str, str, bytes]]:
    """The worst files of a model, as large as a check still reads them."""
    weights, empty = (
        "model.safetensors",
        b'{"dtype":"F32","shape":[0],"data_offsets":[0,0]}',
    )
    many = b",".join(b'"%d":' % n + empty for n in range(150_000))
    yield "many tensors", weights, header(b"{" + many + b"}")
    yield (
        "a long name",
        weights,
        header(b'{"' + b"x" * 9_000_000 + b'":' + empty + b"}"),
    )
    shape = b"[" + b"1," * 4_000_000 + b"0]"
    long = empty.replace(b"[0]", shape)
    yield "many dimensions", weights, header(b'{"src_embed.weight":' + long + b"}")
    yield "a header that is not there", weights, struct.pack("<Q", 2**62) + b"{}"
    far = empty.replace(b"[0,0]", b"[0,%d]" % 2**62)
    yield "data that is not there", weights, header(b'{"a":' + far + b"}")
    yield "lists", "tokenizer.json", b"[" + b"[]," * 1_300_000 + b"0]"
    yield "nested", "tokenizer.json", b"[" * 3_900_000
    right = json.loads(strangers.right_model()["tokenizer.json"])
    vocabulary = dict(right["model"]["vocab"])
    for number in range(190_000):
        vocabulary[f"{number:06x}"] = len(vocabulary)
    model = right["model"] | {"vocab": vocabulary}
    yield "words", "tokenizer.json", json.dumps(right | {"model": model}).encode()
    yield "nested", "config.json", b"[" * 63_000


# --- tests ----------------------------------------------------------------------------


def measured(what: str, folder: Path) -> dict[str, dict]:
    """Let another process read each file or folder in a folder; return what it took."""
    places = [str(path) for path in sorted(folder.iterdir())]
    path = os.pathsep.join([str(ROOT), str(ROOT / "solutions")])
    line = [sys.executable, str(SCRIPT), what, *places]
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(line, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found = map(json.loads, done.stdout.splitlines())
    return {Path(each.pop("place")).name: each for each in found}


def assert_cheap(found: dict[str, dict]) -> None:
    print(json.dumps(found, indent=1))
    assert {name: each["said"] for name, each in found.items() if each["failed"]} == {}
    assert {n: e["bytes"] >> 20 for n, e in found.items() if e["bytes"] > MOST} == {}
    assert {n: e["seconds"] for n, e in found.items() if e["seconds"] > SECONDS} == {}


def test_notebooks(tmp_path) -> None:
    for name, data in notebooks():
        assert len(data) <= reading.LARGEST_NOTEBOOK, name
        (tmp_path / name).write_bytes(data)
    found = measured("notebook", tmp_path)
    assert len(found) == 18
    assert_cheap(found)


def test_models(tmp_path) -> None:
    for name, file, data in models():
        folder = tmp_path / f"{file}, {name}"
        folder.mkdir()
        for each, content in strangers.right_model().items():
            (folder / each).write_bytes(data if each == file else content)
    found = measured("model", tmp_path)
    assert len(found) == 9
    assert_cheap(found)


@pytest.mark.parametrize("text", ["\x01", "\U0001f600", "x"])
def test_what_comes_back_from_a_grader(text, tmp_path) -> None:
    """The largest notebook that can have run, as the coordinating process reads it."""
    notebook = strangers.blank(only=strangers.FEW)
    at = strangers.find(notebook, "softmax")
    notebook["cells"][at]["source"] = text * reading.LARGEST_CELL
    more = [strangers.code_cell(text * reading.LARGEST_CELL) for _ in range(9)]
    notebook["cells"] += more
    path = tmp_path / "notebook"
    path.write_text(json.dumps(notebook, ensure_ascii=False), encoding="utf-8")
    assert_cheap(measured("executed", tmp_path))
