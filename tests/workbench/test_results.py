"""What results/ holds fits together, and pages show no other figures.

Records, shipped models and pages are checked by functions that return a list of
problems; they are tried on provisional records in a temporary folder first, so that
they are known to find what is wrong.
"""

from __future__ import annotations

import ast
import datetime
import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from pages import results_tables
from tests.conftest import ROOT
from workbench.data.images import load_images, packed_arrays
from workbench.data.texts import load_corpus
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.training import presets, records
from workbench.training.budgets import disagreements
from workbench.training.plan import REHEARSAL
from workbench.training.recording import (
    LARGEST,
    LARGEST_OUTPUTS,
    TABLE,
    VERIFIED,
    read_runs,
)
from workbench.use import results
from workbench.use.classifier import Classifier
from workbench.use.evaluation import Answers
from workbench.use.translator import Translator

TASKS = ("translator", "vit", "cnn", "lm")
GENERATED = ("phrasebook", "everyday", "digits")  # data that need no download
SENTENCES = 100  # translated here, of the test set
PAGES = ("09_translator", "10_vision", "results")
ALLOWED = ROOT / "results" / "figures.yml"


# --- Records --------------------------------------------------------------------------


def problems_of(record: dict[str, Any]) -> list[str]:
    """List what is wrong with a record."""
    found = [f"{key} is missing" for key in records.KEYS if key not in record]
    if found:
        return found
    seeds = record["seeds"]
    whole = all(type(seed) is int for seed in seeds)
    if REHEARSAL in record:
        found.append(f"it is a {REHEARSAL}")
    if not seeds or len(set(seeds)) < len(seeds) or not whole:
        found.append(f"seeds {seeds}")
    if record["task"] not in TASKS:
        found.append(f"task {record['task']!r}")
    if type(record["parameters"]) is not int or record["parameters"] < 1:
        found.append(f"parameters {record['parameters']!r}")
    for key in ("name", "test"):
        if not isinstance(record["data"].get(key), str):
            found.append(f"data has no {key}")
    if not isinstance(record["device"], str) or not record["device"]:
        found.append("device is not named")
    for package in ("python", "torch", "numpy"):
        if not isinstance(record["versions"].get(package), str):
            found.append(f"versions lack {package}")
    if not re.fullmatch(r"[0-9a-f]{40}\+?", record["commit"] or ""):
        found.append(f"commit {record['commit']!r}")
    try:
        if datetime.datetime.fromisoformat(record["date"]).tzinfo is None:
            found.append("date has no time zone")
    except ValueError:
        found.append(f"date {record['date']!r}")
    return found + lengths_of(record) + problems_of_verification(record)


def problems_of_verification(record: dict[str, Any]) -> list[str]:
    """List where a record and what it says of a second time do not agree."""
    again = record.get("verified")
    if again is None:
        return []
    if set(again) != set(VERIFIED):
        return [f"verified has {', '.join(again)}"]
    return [f"verified: {each}" for each in disagreements(record, {**record, **again})]


def lengths_of(record: dict[str, Any]) -> list[str]:
    """List the lists that have no plausible number for each seed."""
    count, found = len(record["seeds"]), []
    a_seed = [
        (key, record[key], math.inf) for key in records.A_VALUE_A_SEED if key in record
    ]
    for test, metrics in record["scores"].items():
        a_seed += [(f"{test} {metric}", v, 100.0) for metric, v in metrics.items()]
    for name, values, most in a_seed:
        if not isinstance(values, list) or len(values) != count:
            found.append(f"{name} has not one value a seed")
            continue
        for value in values:
            number = type(value) in (int, float) and math.isfinite(value)
            if not number or not 0 <= value <= most:
                found.append(f"{name} has the value {value!r}")
    if not record["scores"] or not all(record["scores"].values()):
        found.append("there is no score")
    if not all(record["train_seconds"]):
        found.append("training took no time")
    commands = record["command"]
    commands = [commands] if isinstance(commands, str) else commands
    if len(commands) != count or not all(" train " in each for each in commands):
        found.append("there is not one command a seed")
    return found


def provisional(seed: int, **changed: Any) -> dict[str, Any]:
    """Make the record of a run that never was."""
    history = {"train_seconds": [10.0 + seed], "compile_seconds": [0.0]}
    record = records.make_record(
        "vit",
        {"name": "digits", "test": "test"},
        seed=seed,
        device=torch.device("cpu"),
        parameters=123,
        history=history | {"examples": [500]},
        scores={"test": {"accuracy": 97.5 + seed}},
    )
    fixed = {"command": "python -m workbench train vit", "commit": "0" * 40}
    return record | fixed | changed


def write_runs(folder: Path) -> Path:
    """Write a table of two runs."""
    runs = {
        name: {"about": f"about {name}", "train": "vit --data digits", "seeds": [0, 1]}
        for name in ("made", "waiting")
    }
    path = folder / "runs.yml"
    path.write_text(yaml.safe_dump(runs), encoding="utf-8")
    return path


def test_records_are_complete_and_plausible() -> None:
    runs = read_runs(TABLE)
    for name in results.names():
        record = results.read_record(name)
        assert problems_of(record) == [], name
        assert name in runs, f"{name} is not listed in results/runs.yml"
        assert record["seeds"] == runs[name]["seeds"], name


def test_what_was_tried_is_of_our_runs_and_is_shown() -> None:
    trials = yaml.safe_load(results_tables.TRIALS.read_text(encoding="utf-8"))
    assert set(trials) <= set(read_runs(TABLE))
    shown = results_tables.tried()
    for name, about in trials.items():
        assert sum(each.get("kept", False) for each in about["trials"]) == 1, name
        assert all(each["change"] in shown for each in about["trials"])


def test_problems_of_a_record_are_found() -> None:
    good = records.combine([provisional(0), provisional(1)])
    assert problems_of(good) == []
    again = {key: good[key] for key in VERIFIED}
    assert problems_of(good | {"verified": again}) == []
    for key, value, problem in (
        ("seeds", [0, 0], "seeds"),
        ("seeds", [0], "one value a seed"),
        ("train_seconds", [1.0, math.nan], "train_seconds has the value nan"),
        ("train_seconds", [1.0, 0.0], "no time"),
        ("scores", {"test": {"accuracy": [97.5, 101.0]}}, "101"),
        ("scores", {"test": {"accuracy": 97.5}}, "one value a seed"),
        ("scores", {}, "no score"),
        ("commit", None, "commit"),
        ("date", "yesterday", "date"),
        ("parameters", 1.5, "parameters"),
        (REHEARSAL, 2, "it is a rehearsal"),
        ("command", "python -m workbench train vit", "command"),
        ("verified", {"date": "today"}, "verified has date"),
        ("verified", again | {"scores": {"test": {"accuracy": [9.0]}}}, "9.00 now"),
    ):
        assert problem in "; ".join(problems_of(good | {key: value})), key


# --- Shipped models -------------------------------------------------------------------


def problems_of_model(folder: Path, record: dict[str, Any]) -> list[str]:
    """List where a model's folder and the record of its run differ."""
    wanted, found = record.get("model_files", {}), []
    there = {path.name: path for path in folder.iterdir()}
    for name in set(there) ^ {*wanted, records.FILE}:
        found.append(f"{name} is in the folder or the record alone")
    for name, digest in wanted.items():
        if name in there:
            actual = hashlib.sha256(there[name].read_bytes()).hexdigest()
            if actual != digest:
                found.append(f"{name} is not the file of the record")
    if sum(path.stat().st_size for path in there.values()) > LARGEST:
        found.append(f"more than {LARGEST} bytes")
    try:
        model, config = models.load(folder)
    except WorkbenchError as error:
        return [*found, str(error)]
    own = records.read(folder / records.FILE)
    if models.parameters(model) != record["parameters"]:
        found.append("another number of parameters")
    if json.loads(models.to_json(config)) != {
        "kind": models.kind_of(config),
        **json.loads(json.dumps(own["model"])),
    }:
        found.append("config.json is not the configuration of the run")
    seed = record.get("kept_seed")
    if own["seeds"] != [seed] or seed not in record["seeds"]:
        return [*found, f"seed {own['seeds']} is kept, and the record says {seed}"]
    place = record["seeds"].index(seed)
    for test, metrics in record["scores"].items():
        for metric, values in metrics.items():
            if own["scores"][test][metric] != [values[place]]:
                found.append(f"{metric} is not that of the record")
    return found


def kept() -> list[str]:
    """Name the models that are shipped."""
    return sorted(path.name for path in (results.FOLDER / results.MODELS).glob("*/"))


def test_shipped_models_are_those_of_their_records() -> None:
    for name in kept():
        folder = results.model_folder(name)
        assert problems_of_model(folder, results.read_record(name)) == [], name


def test_shipped_models_score_what_their_records_say() -> None:
    """All of a small test set: the recorded score, but for one example.

    A processor that rounds otherwise may turn the answer that was closest. Of a larger
    set the first hundred: four standard deviations of drawing them by chance.
    """
    for name in kept():
        folder = results.model_folder(name)
        record = records.read(folder / records.FILE)
        if record["data"]["name"] in GENERATED:
            assert fits(*scored(folder, record)), name


def test_the_translator_that_visitors_type_into_is_nearly_always_right() -> None:
    """Chapter 9 and *Look inside* let readers trust it where no doubt is said.

    The rules for doubts find words and forms that it has never read. What it gets wrong
    of the others is said nowhere, so it must be little. A model that is trained anew,
    and is worse, is not to take its place unnoticed.
    """
    record = results.read_record("everyday")
    assert results.mean(record, "test", "exact_match") >= 97.0


def fits(score: float, count: int, total: int, expected: float) -> bool:
    """Tell whether a share of `count` examples agrees with that of all `total`."""
    slack = 1 / count
    if count < total:
        slack += 4 * math.sqrt(expected * (1 - expected) / count)
    return abs(score - expected) <= slack + 1e-6


def test_a_score_that_is_too_far_off_is_found() -> None:
    assert fits(0.95, 100, 2000, 0.98) and not fits(0.90, 100, 2000, 0.98)
    assert fits(0.98, 100, 100, 0.99) and not fits(0.97, 100, 100, 0.99)


def scored(folder: Path, record: dict[str, Any]) -> tuple[float, int, int, float]:
    """Evaluate a model: share right, of how many, of how many there are, expected."""
    data, place = record["data"], torch.device("cpu")
    if record["task"] == "vit":
        preset = presets.preset_for(presets.VISION, data["name"])
        images = load_images(data["name"], None, preset.held_out)
        count = len(images.test[1])
        share = Classifier.load(folder, "vit", place).accuracy(images)
        expected = results.values(record, data["test"], "accuracy")[0] / 100
        return share, count, count, expected
    corpus = load_corpus(data["name"], None, data["source"], data["target"])
    pairs = corpus.test[:SENTENCES]
    search = record["decoding"]["beam"], record["decoding"]["alpha"]
    translator = Translator.load(folder, place)
    written = translator.translate([source for source, _ in pairs], *search)
    right = sum(w == target for w, (_, target) in zip(written, pairs, strict=True))
    expected = results.values(record, data["test"], "exact_match")[0] / 100
    return right / len(pairs), len(pairs), len(corpus.test), expected


# --- What models said of their test sets ----------------------------------------------

DATA = ROOT.parent / "shared" / "data"
FOLDERS = {"multi30k": DATA / "multi30k", "cifar10": DATA / "cifar10_jpeg"}


def problems_of_outputs(name: str, folder: Path = results.FOLDER) -> list[str]:
    """List where the kept answers of a model and the record of its run differ.

    What is recorded was scored by the run itself. A processor that rounds otherwise
    may turn an answer that was close: one example, or a tenth of a point.
    """
    record = results.read_record(name, folder)
    try:
        said = results.read_outputs(name, folder)
    except WorkbenchError as error:
        return [str(error)]
    if (seed := record["outputs"]["seed"]) not in record["seeds"]:
        return [f"{name}: has no seed {seed}"]
    if sum(len(each.encode()) + 1 for each in said) > LARGEST_OUTPUTS:
        return [f"{name}: more than {LARGEST_OUTPUTS} bytes"]
    expected = right_answers(record["data"])
    if len(said) != len(expected):
        return [f"{name}: {len(said)} answers to {len(expected)} examples"]
    found, slack = [], max(0.1, 100 / len(expected))
    for metric, score in Answers(record["data"], said, expected).scores().items():
        recorded = results.values(record, record["data"]["test"], metric)
        there = recorded[record["seeds"].index(seed)]
        if abs(score - there) > slack + 1e-6:
            found.append(f"{name}: {metric} {score:.2f}, and {there:.2f} in the record")
    return found


def right_answers(data: dict[str, Any]) -> list[str]:
    """Read what is right in a test set."""
    place = FOLDERS.get(data["name"].partition(":")[0])
    if "target" in data:
        languages = data["source"], data["target"]
        corpus = load_corpus(data["name"], place, *languages, data["form"])
        return [target for _, target in corpus.test]
    if place:  # all of its images would take seconds
        _, _, labels, classes = packed_arrays(place / "test.npz")
        return [classes[each] for each in labels.tolist()]
    images = load_images(data["name"])
    return [images.classes[each] for each in images.test[1].tolist()]


def test_what_models_said_scores_what_their_records_say() -> None:
    said = {path.stem for path in (results.FOLDER / results.OUTPUTS).glob("*.txt")}
    for name in results.names():
        record = results.read_record(name)
        assert (name in said) == ("outputs" in record), name
        place = FOLDERS.get(record["data"]["name"].partition(":")[0])
        if name in said and (place is None or place.is_dir()):
            assert problems_of_outputs(name) == []
    assert said <= set(results.names())


def test_answers_that_are_not_those_of_the_record_are_found(tmp_path: Path) -> None:
    right = right_answers({"name": "digits"})
    wrong = [*right[:-4], *("none",) * 4]
    score = 100 * (1 - 4 / len(right))
    record = provisional(1, scores={"test": {"accuracy": [score]}})
    path = tmp_path / results.OUTPUTS / "made.txt"
    path.parent.mkdir()

    def problems(said: list[str], **changed: Any) -> str:
        path.write_bytes("".join(f"{each}\n" for each in said).encode())
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        outputs = {"seed": 1, "sha256": digest} | changed
        records.write(tmp_path / "made.json", record | {"outputs": outputs})
        return "; ".join(problems_of_outputs("made", tmp_path))

    assert problems(wrong) == ""
    assert "accuracy 100.00, and" in problems(right)
    assert "answers to" in problems(wrong[1:])
    assert "no seed 0" in problems(wrong, seed=0)
    assert "not the file of made.json" in problems(wrong, sha256="0")
    path.unlink()
    assert "comes with made.json" in "; ".join(problems_of_outputs("made", tmp_path))


@pytest.fixture
def shipped(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """Make a folder of results with one record and its model, never trained."""
    torch.manual_seed(0)
    config = models.VisionConfig(8, 4, 1, 10, 8, 2, 1, 16)
    folder = tmp_path / results.MODELS / "made"
    model = models.build(config)
    models.save(folder, model, config)
    more = {"model": vars(config).copy(), "parameters": models.parameters(model)}
    records.write(folder / records.FILE, provisional(1, **more))
    record = records.combine([provisional(0, **more), provisional(1, **more)])
    record["kept_seed"] = 1
    record["model_files"] = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("model.safetensors", "config.json")
    }
    records.write(tmp_path / "made.json", record)
    return folder, record


def test_problems_of_a_shipped_model_are_found(shipped) -> None:
    folder, record = shipped
    assert problems_of_model(folder, record) == []
    changes = {"kept_seed": 0, "parameters": 5, "model_files": {}}
    for key, value in changes.items():
        assert problems_of_model(folder, record | {key: value}), key
    other = record | {"scores": {"test": {"accuracy": [97.5, 99.5]}}}
    assert problems_of_model(folder, other) == ["accuracy is not that of the record"]
    weights = folder / models.WEIGHTS_FILE
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    assert "not the file of the record" in problems_of_model(folder, record)[0]
    weights.unlink()
    assert len(problems_of_model(folder, record)) == 2


# --- Tables ---------------------------------------------------------------------------


def test_tables_show_what_is_recorded_and_what_is_not(shipped, tmp_path: Path) -> None:
    table, folder = write_runs(tmp_path), tmp_path
    shown = results_tables.ours("digits", ["accuracy"], folder, table)
    made, waiting, _, place = shown.splitlines()[2:]
    assert f"98.00 (97.50–{results_tables.JOINED}98.50)" in made and "| 2 |" in made
    assert "still to be run" in waiting
    assert place.startswith("- `made`: ") and "data: digits" in place
    rows = shown.splitlines()[:4]
    assert len({row.count("|") for row in rows}) == 1, "rows of different length"
    runs = yaml.safe_load(table.read_text(encoding="utf-8"))
    runs["waiting"]["needs"], runs["made"]["budget"] = "gpu", "short"
    table.write_text(yaml.safe_dump(runs), encoding="utf-8")
    shown = results_tables.ours("digits", ["accuracy"], folder, table)
    assert "- `waiting`: not recorded: no time was left on a GPU" in shown
    shown = results_tables.records_of("short", folder, table)
    command = "`python -m workbench record --verify made`"
    assert "98.00" in shown and f"| not verified yet: {command} |" in shown
    record = shipped[1] | {"verified": {"date": "2027-01-31T09:08:07+00:00"}}
    records.write(folder / "made.json", record)
    shown = results_tables.records_of("short", folder, table)
    assert f"| verified 2027-01-31: {command} |" in shown
    assert "Nothing" in results_tables.records_of("long", folder, table)
    listed = results_tables.shipped(folder)
    size = sum(path.stat().st_size for path in shipped[0].iterdir())
    assert (
        results_tables.thousands(size) in listed
        and "98.50" in listed
        and "seed 1" in listed
    )


def test_thousands_stand_apart_on_one_line_and_one_thread_is_one() -> None:
    space = "\N{NARROW NO-BREAK SPACE}"
    assert results_tables.thousands(1152000.4) == f"1{space}152{space}000"
    assert results_tables.thousands(9999.4) == "9999"
    assert results_tables.thousands(9999.6) == f"10{space}000"
    assert results_tables.device({"device": "A CPU, 1 threads"}) == "A CPU, 1 thread"
    assert results_tables.device({"device": "A CPU, 11 threads"}).endswith("11 threads")


def test_what_was_not_scored_so_is_a_dash() -> None:
    assert results_tables.score(provisional(0), "test", "bleu_cased") == "–"


def test_one_seed_has_no_range() -> None:
    assert results_tables.score(provisional(0), "test", "accuracy") == "97.50"


def test_several_ways_to_count_bleu_are_kept_apart(tmp_path: Path) -> None:
    assert "No run" in results_tables.signatures(tmp_path)
    for name, text in (("a", "lc"), ("b", "lc"), ("c", "mixed")):
        record = provisional(0, signatures={"bleu_cased": text})
        records.write(tmp_path / f"{name}.json", record)
    first, second = results_tables.signatures(tmp_path).splitlines()
    assert "`lc` (runs: `a`, `b`)" in first and "`mixed` (run: `c`)" in second


def test_counting_stands_beside_what_others_published(tmp_path: Path) -> None:
    shown = results_tables.rivals()
    counts = results_tables.read_counts()
    for nats in (*counts["counted"].values(), counts["packed"]):
        assert f"| {nats:.2f} |" in shown
    for each in results_tables.read_published()[counts["data"]]:
        assert f"| {each['score']} |" in shown
    with pytest.raises(WorkbenchError, match=r"tools\.measure\.counts --record"):
        results_tables.read_counts(tmp_path / "counts.json")


def test_a_family_of_runs_is_listed_alone() -> None:
    """The rungs of the ladder, in the order in which the chapter climbs them."""
    found = results_tables.runs_of("shakespeare", family="ladder")
    assert list(found) == list(results_tables.LADDER)
    assert "shakespeare" not in found
    assert set(found) < set(results_tables.runs_of("shakespeare"))


def test_published_figures_have_a_source(tmp_path: Path) -> None:
    keys = set(re.findall(r"@\w+\{(\w+),", (ROOT / "book/references.bib").read_text()))
    for data, systems in results_tables.read_published().items():
        assert {each["cite"] for each in systems if "cite" in each} <= keys
        shown = results_tables.published(data)
        for each in systems:
            assert f"{each['score']} *published*" in shown
    path = tmp_path / "published.yml"
    path.write_text("multi30k:\n  - {system: x, score: 1}\n", encoding="utf-8")
    with pytest.raises(WorkbenchError, match="lacks score or source"):
        results_tables.read_published(path)


# --- Pages ----------------------------------------------------------------------------

CELL = re.compile(r"^```\{code-cell\}.*?\n(.*?)^```$", re.M | re.S)
HEADER = re.compile(r"\A\s*---\n(.*?)^---\n", re.M | re.S)
HIDDEN = re.compile(  # what is no statement of the page
    r"^```(?:\w+|\{code-block\}.*?)$.*?^```$|^[ \t]*(?:`{3,}|:{3,}).*?$"
    r"|\$\$.*?\$\$|\$[^$]{1,200}\$|`[^`]{1,200}`|<!--.*?-->"
    r"|\]\([^)]{1,200}\)|\{[^{}\n]*:[^{}\n]*\}"
    r"|^:[\w-]+:.*?$|^[ \t]*(?:width|name|align):.*?$"
    r"|\b(?:exercises?|chapters?|sections?|equations?)\s+\d+(?:\.\d+)?"
    r"|\b(?:10|\d)\.\d{1,2}(?=,\s[A-Z])",
    re.M | re.S | re.I,
)
FIGURE = re.compile(
    r"(?<![\w.])(?:\d+(?:,\d{3})*|(?=\.\d))(?:\.\d+)?"
    r"(?:(?:\s|-)?(?:%|per\scent\b|percent\b|m?s\b|seconds?\b|minutes?\b|hours?\b))"
    r"|(?<![\w.])\d*\.\d+"
)


def figures(source: str) -> list[str]:
    """Return the figures typed into a page, each with what stands around it."""
    source = HEADER.sub("", source)
    texts = [CELL.sub("", source)]
    for match in CELL.finditer(source):
        texts += texts_of_cell(match[1])
    found = []
    for text in texts:
        text = " ".join(HIDDEN.sub(" ", text).split())
        for match in FIGURE.finditer(text):
            found.append(text[max(0, match.start() - 40) : match.end() + 40])
    return found


def texts_of_cell(cell: str) -> list[str]:
    """Return what a code cell says in words: its header, its strings, what it glues."""
    header = HEADER.match(cell)
    texts = [header[1]] if header else []
    code = HEADER.sub("", cell)
    code = "\n".join(
        line for line in code.splitlines() if not line.startswith((":", "%"))
    )
    quiet = set()  # formats, and strings by themselves, which are comments
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Expr):
            quiet.add(id(node.value))
        if isinstance(node, ast.FormattedValue) and node.format_spec:
            quiet |= {id(each) for each in ast.walk(node.format_spec)}
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "glue":
            texts += [
                str(v.value) for v in node.args[1:] if isinstance(v, ast.Constant)
            ]
        literal = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if literal and id(node) not in quiet:
            texts.append(node.value)
    return texts


@pytest.mark.parametrize("page", PAGES)
def test_no_measured_figure_is_typed_into_a_page(page: str) -> None:
    """What a page says was measured comes from a record, when the page is built.

    A figure, in the sense of this test, is a number with a decimal point, or one that
    is followed by a unit that measurements have: %, per cent, s, ms, seconds, minutes,
    hours. It may stand in a formula, in code, in a link or in the number of an
    exercise. Anywhere else (prose, tables, captions, alternative texts, the strings of
    code cells, what is glued) it must be computed and inserted, unless
    results/figures.yml lists the words around it for this page, with the reason: a
    definition, such as a threshold, or a published figure, which results/published.yml
    must have. An entry that fits nothing any more is an error, too. Whole numbers
    without such a unit (examples, layers, seeds) are not looked at.
    """
    source = (ROOT / "book" / f"{page}.md").read_text(encoding="utf-8")
    found = figures(source)
    allowed = yaml.safe_load(ALLOWED.read_text(encoding="utf-8")).get(page) or []
    typed = [
        each for each in found if not any(entry["text"] in each for entry in allowed)
    ]
    assert not typed, f"typed into {page}.md, and from no record: {typed}"
    for entry in allowed:
        assert entry["why"], entry
        assert any(entry["text"] in each for each in found), f"not needed: {entry}"


def test_an_allowed_published_figure_is_published() -> None:
    published = results_tables.PUBLISHED.read_text(encoding="utf-8")
    for entries in yaml.safe_load(ALLOWED.read_text(encoding="utf-8")).values():
        for entry in entries or []:
            if entry["why"].startswith("published"):
                number = re.search(r"[\d.]+ ?%?", entry["text"])[0].strip()
                assert number in published, entry


def test_figures_on_a_page_are_found() -> None:
    cell = "```{code-cell} ipython3\n:tags: [remove-input]\n\n%s\n```\n"
    for text in (
        "It is right in 97.3 of 100.",
        "It is right in 98 % of them.",
        "| ours | .98 |",
        "That took 41 seconds.",
        "in 3 min\n\nand 41 s",
        "```{note}\nIt `often` reaches 98 %.\n```\n",
        cell % 'Markdown("The score is 97.3.")',
        cell % 'print(f"{x:.2f} of 99.5")',
        cell % 'glue("score", 97.3)',
        "```{code-cell} ipython3\n---\ncaption: It reaches 98 %.\n---\ndraw()\n```\n",
    ):
        assert figures(text), text
    for text in (
        "Exercise 9.3 and chapter 7.",
        "Now: exercise 9.1, Your model, and 9.8, Explain.",
        "A formula $p = 0.5$ and code `--rate 3e-3 0.1`.",
        "Two layers, 128 features, 3 seeds.",
        "```python\nclip(parameters, 1.0)\n```\n",
        "[a link](https://example.org/1.5)",
        "{glue:text}`score` of them",
        cell % 'print(f"{x:.2f}")',
        cell % "near(x, 0.25)",
        cell % 'glue("score", f"{x:.1f} %")',
    ):
        assert not [each for each in figures(text) if each.strip() != "%"], text


def test_every_command_for_a_record_is_listed() -> None:
    """README, guide and pages name runs that results/runs.yml has."""
    runs = read_runs(TABLE)
    paths = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "book").glob("*.md"),
    ]
    for path in paths:
        text = path.read_text(encoding="utf-8")
        for names in re.findall(r"workbench record ([a-z][\w ]*)", text):
            assert set(names.split()) <= set(runs), f"{path.name}: {names}"
