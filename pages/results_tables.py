"""Tables of recorded runs, beside what others have published, as Markdown.

Every figure comes from a record of results/ or from results/published.yml. A run that
results/runs.yml lists and nobody has recorded is named, too: nothing is estimated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from workbench.errors import WorkbenchError
from workbench.training import records
from workbench.training.recording import TABLE, read_runs
from workbench.use import results

PUBLISHED = results.FOLDER / "published.yml"
TRIALS = results.FOLDER / "trials.yml"
COUNTS = results.FOLDER / "language_model" / "counts.json"
TO_RUN = "*still to be run*"
NO_GPU = "*no time was left on a GPU*"
NAMES = {
    "bleu_lowercased_tokenised": "BLEU, lowercased, tokenised",
    "bleu_cased": "BLEU, cased",
    "exact_match": "exact match, %",
    "accuracy": "accuracy, %",
    "copied": "copied, %",
    "nats_per_character": "nats a character",
    "bits_per_byte": "bits per byte",
    "agreement_having": "owners kept, %",
    "agreement_pronoun": "pronouns kept, %",
}
MAIN = ("exact_match", "accuracy", "copied", "bits_per_byte")  # one a model has
LADDER = {  # from the block of 2017 to that of today: run -> what it changes
    "ladder_2017": "the parts of 2017",
    "ladder_rotary": "rotary positions",
    "ladder_rms": "RMS norm",
    "ladder_swiglu": "SwiGLU",
    "ladder_grouped": "shared keys and values",
    "ladder_qk_norm": "QK norm",
    "ladder_muon": "Muon",
}
JOINED = "\N{WORD JOINER}"  # after a dash: the range is not broken there
Row = Sequence[str]


def read_published(path: Path = PUBLISHED) -> dict[str, list[dict[str, Any]]]:
    """Read what others have published: data set -> systems.

    Raises:
        WorkbenchError: the file is missing, or a system has no score or no source.
    """
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise WorkbenchError(f"{path} cannot be read: {error}") from None
    for data, systems in found.items():
        for each in systems:
            if "score" not in each or not ("cite" in each or "source" in each):
                raise WorkbenchError(f"{path}: {data}: {each} lacks score or source")
    return found


def table(head: Row, rows: Sequence[Row]) -> str:
    """Set a table in Markdown. A % stays with what is before it."""
    lines = [head, ["---"] * len(head), *rows]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def thousands(value: float) -> str:
    """Write a whole number, from 10 000 on its thousands apart but on one line."""
    space = "\N{NARROW NO-BREAK SPACE}" if round(value) >= 10_000 else ""
    return f"{value:,.0f}".replace(",", space)


def score(record: dict[str, Any], test: str, metric: str, digits: int = 2) -> str:
    """Write the mean over the seeds, and the lowest and highest of several.

    A dash, if it was not scored so: lowercased text has no cased BLEU.
    """
    if metric not in record["scores"].get(test, {}):
        return "–"
    low, high = results.spread(record, test, metric)
    text = f"{results.mean(record, test, metric):.{digits}f}"
    several = len(record["seeds"]) > 1
    return text + f" ({low:.{digits}f}–{JOINED}{high:.{digits}f})" * several


def seconds(record: dict[str, Any]) -> str:
    """Write how long training took, on average; compilation is apart."""
    text = thousands(fmean(record["train_seconds"]))
    compiling = fmean(record["compile_seconds"])
    return text + f" + {compiling:.0f} to compile" * (compiling >= 0.5)


def device(record: dict[str, Any]) -> str:
    """Name the device, and the processes if there were several."""
    count = record.get("processes", 1)
    named = re.sub(r"\b1 threads$", "1 thread", record["device"])
    return named + f", {count} processes" * (count > 1)


def copy_of(record: dict[str, Any]) -> str:
    """Say which copy of the data was used, or which form of Multi30k's text."""
    data = record["data"]
    form = data.get("form", "") if data["name"] == "multi30k" else ""
    return ", ".join(x for x in (data["name"], data.get("copy", ""), form) if x)


def command(name: str) -> str:
    """Say how a record is made."""
    return f"`python -m workbench record {name}`"


def runs_of(
    data: str, path: Path = TABLE, family: str | None = None
) -> dict[str, dict[str, Any]]:
    """Return the runs that are listed for a data set, by name.

    Args:
        data: its name.
        path: runs.yml.
        family: only those with this before the first _ of their names; None: all.
    """
    wanted = f"--data {data}"
    return {
        name: each
        for name, each in read_runs(path).items()
        if wanted in each["train"] and family in (None, name.partition("_")[0])
    }


def cited(system: dict[str, Any]) -> str:
    """Name a published system, and where it was published."""
    source = f"{{cite}}`{system['cite']}`" if "cite" in system else system["source"]
    return f"{system['system']}, {source}"


def published(data: str, path: Path = PUBLISHED) -> str:
    """List what others have published on a data set."""
    systems = read_published(path)[data]
    by_direction = "direction" in systems[0]
    head = ["system (published)", "score", "parameters", "cost"]
    if by_direction:
        head[1:2] = ["direction", "BLEU", "how it was counted"]
    rows = []
    for each in systems:
        middle = [f"{each['score']} *published*"]
        if by_direction:
            middle = [each["direction"], *middle, each["counted"]]
        rows.append([cited(each), *middle, each["size"], each["cost"]])
    return table(head, rows)


def ours(
    data: str,
    metrics: Sequence[str],
    folder: Path = results.FOLDER,
    path: Path = TABLE,
    family: str | None = None,
) -> str:
    """List our runs on a data set; of those that need a GPU what is recorded."""
    head = ["run", "what", *(NAMES[each] for each in metrics), "parameters", "seeds"]
    head += ["training, s"]
    rows, without = [], []
    where: dict[str, list[str]] = {}
    for name, run in runs_of(data, path, family).items():
        start = [f"`{name}`", run["about"]]
        if name not in results.names(folder):
            if run.get("needs") == "gpu":
                without.append(f"`{name}`")
                continue
            rows.append([*start, TO_RUN, *[""] * (len(head) - len(start) - 1)])
            continue
        record = results.read_record(name, folder)
        (test,) = record["scores"]
        cells = [score(record, test, each) for each in metrics]
        cells += [thousands(record["parameters"]), str(len(record["seeds"]))]
        rows.append([*start, *cells, seconds(record)])
        place = f"{device(record)}; data: {copy_of(record)}"
        where.setdefault(place, []).append(f"`{name}`")
    below = [f"- {', '.join(names)}: {place}" for place, names in where.items()]
    if without:
        below.append(f"- {', '.join(without)}: not recorded: no time was left on a GPU")
    return "\n".join([table(head, rows) if rows else "", "", *below])


def read_counts(path: Path = COUNTS) -> dict[str, Any]:
    """Read what counting and a file packer reached, as tools/measure/counts.py says it.

    Raises:
        WorkbenchError: nobody has counted.
    """
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WorkbenchError(
            f"{path} cannot be read ({error}): python -m tools.measure.counts --record"
        ) from None
    return found


def rivals(path: Path = COUNTS, others: Path = PUBLISHED) -> str:
    """Set counting and a file packer beside what others have published."""
    found = read_counts(path)
    rows = [
        [f"{cited(each)} *published*", f"{each['score']}", each["size"], each["cost"]]
        for each in read_published(others)[found["data"]]
    ]
    for order, nats in found["counted"].items():
        name = f"counting {order} character" + "s" * (order != "1")
        rows.append([name, f"{nats:.2f}", "–", "seconds"])
    rows.append(["xz, a file packer", f"{found['packed']:.2f}", "–", "seconds"])
    return table(["", "nats a character", "parameters", "cost"], rows)


def why_not(run: dict[str, Any]) -> str:
    """Say why a run has no record."""
    return NO_GPU if run.get("needs") == "gpu" else TO_RUN


def verified(name: str, record: dict[str, Any]) -> str:
    """Say when a record was made again, or that it was not, and how that is done."""
    again = record.get("verified")
    when = f"verified {again['date'][:10]}" if again else "not verified yet"
    return f"{when}: {command(f'--verify {name}')}"


def records_of(budget: str, folder: Path = results.FOLDER, path: Path = TABLE) -> str:
    """List the records of a budget, by the data set that they were made on."""
    head = [
        "data",
        "score",
        "seeds",
        "training, s",
        "parameters",
        "made again?",
    ]
    rows = []
    for name, run in read_runs(path).items():
        if run.get("budget") != budget or name not in results.names(folder):
            continue
        record = results.read_record(name, folder)
        (test,) = record["scores"]
        metrics = record["scores"][test]
        metric = next(m for m in (*MAIN, *metrics) if m in metrics)
        if record["data"]["name"] == "multi30k":  # where nearly nothing is exact
            metric = "bleu_lowercased_tokenised"
        cells = [f"{NAMES[metric]}: {score(record, test, metric)}"]
        cells += [str(len(record["seeds"])), seconds(record)]
        cells += [thousands(record["parameters"]), verified(name, record)]
        rows.append([copy_of(record), *cells])
    if not rows:
        return "Nothing is recorded under this budget yet."
    return table(head, rows)


def tried(path: Path = TRIALS) -> str:
    """List what was tried for our records, and what of it was kept."""
    parts = []
    for name, about in yaml.safe_load(path.read_text(encoding="utf-8")).items():
        rows = [
            [each["change"], each["score"], "yes" if each.get("kept") else "no"]
            for each in about["trials"]
        ]
        listed = table([f"`{name}`", about["measure"], "kept"], rows)
        parts += [listed, about.get("unknown", "").strip()]
    return "\n\n".join(filter(None, parts))


def signatures(folder: Path = results.FOLDER) -> str:
    """Say how BLEU was counted, in sacreBLEU's own words, for each record with BLEU."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in results.names(folder):
        record = results.read_record(name, folder)
        for metric, text in record.get("signatures", {}).items():
            found.setdefault((NAMES[metric], text), []).append(f"`{name}`")
    if not found:
        return "No run with BLEU is recorded yet."
    return "\n".join(
        f"- {metric}: `{text}` (run{'s' * (len(runs) > 1)}: {', '.join(runs)})"
        for (metric, text), runs in found.items()
    )


def named(metric: str, value: float) -> str:
    """Write a score with its name before it and its unit behind it."""
    name, share, _ = NAMES[metric].partition(", %")
    return f"{name} {value:.2f}" + " %" * bool(share)


def shipped(folder: Path = results.FOLDER) -> str:
    """List the small trained models that come with the course."""
    rows = []
    for place in sorted((folder / results.MODELS).glob("*/")):
        record = records.read(place / records.FILE)
        size = sum(path.stat().st_size for path in place.iterdir())
        (scores,) = record["scores"].values()
        metric = next(m for m in (*MAIN, *scores) if m in scores)
        rows.append(
            [
                f"`results/models/{place.name}`",
                record["task"],
                thousands(record["parameters"]),
                thousands(size),
                named(metric, scores[metric][0]),
                f"seed {record['seeds'][0]} of {command(place.name)}",
            ]
        )
    if not rows:
        return "None is kept yet."
    head = ["folder", "task", "parameters", "bytes", "test score", "made by"]
    return table(head, rows)
