"""The tables of the chapter on the translator, as Markdown, from recorded runs.

A run that is listed and not yet recorded has its row, too, with the command that makes
its record: nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pages.results_tables import (
    TO_RUN,
    cited,
    command,
    read_published,
    score,
    table,
)
from pages.translations import KINDS
from workbench.use.results import mean, values

Records = dict[str, dict[str, Any]]  # name of a run -> its record
Runs = dict[str, dict[str, Any]]  # name of a run -> how it is made, as in runs.yml

TEST = "test_2016_flickr"
BLEU = ("bleu_lowercased_tokenised", "bleu_cased")


def multi30k(
    runs: Runs, recorded: Records, others: Sequence[dict[str, Any]] | None = None
) -> str:
    """Set our runs on Multi30k below the published ones.

    Args:
        runs: all that are listed.
        recorded: those that are recorded.
        others: published systems; None: those of results/published.yml.
    """
    head = ["system", "direction", "BLEU, lowercased, tokenised", "BLEU, cased", "how"]
    rows = []
    for each in read_published()["multi30k"] if others is None else others:
        found = f"{each['score']} *published*"
        known = [each[key] for key in ("size", "counted") if each[key] != "–"]
        how = "; ".join(known)
        rows.append([cited(each), each["direction"], found, "–", how])
    for name, run in runs.items():
        waits = run.get("needs") == "gpu" and name not in recorded
        if "--data multi30k" not in run["train"] or waits:
            continue  # what waits for a GPU is named on the page of results
        direction = "de→en" if "--source de" in run["train"] else "en→de"
        cells, how = [TO_RUN, ""], command(name)
        if name in recorded:
            cells = [score(recorded[name], TEST, each) for each in BLEU]
            how = made(recorded[name])
        rows.append([f"ours: {run['about']}", direction, *cells, how])
    return table(head, rows)


def made(record: dict[str, Any]) -> str:
    """Say in a few words how a record was made."""
    seeds, seconds = len(record["seeds"]), max(record["train_seconds"])
    how = f"{record['parameters'] / 1e6:.1f} M; {seconds:.0f} s; {seeds} seed"
    return how + "s" * (seeds > 1)


def ablations(runs: Runs, recorded: Records, default: str) -> str:
    """Set runs that differ from the default in one thing each below it.

    Args:
        runs: all that are listed; those of one family share what is before the first _.
        recorded: those that are recorded.
        default: the name of the run that the others are compared with.
    """
    head = ["run", "what is different", "seeds", "exact match: mean, range"]
    rows = []
    for name in family(runs, default):
        start = [f"`{name}`", runs[name]["about"]]
        if name not in recorded:
            rows.append([*start, "", TO_RUN, ""])
            continue
        record, against = recorded[name], ""
        if name != default and default in recorded:
            less = mean(record, "test", "exact_match")
            less -= mean(recorded[default], "test", "exact_match")
            against = f"{less:+.1f}".replace("-", "−")
        cells = [str(len(record["seeds"])), score(record, "test", "exact_match", 1)]
        rows.append([*start, *cells, against])
    return table([*head, "difference"], rows)


def scores(runs: Runs, recorded: Records, default: str) -> dict[str, list[float]]:
    """Exact match of each seed, by what a run is about; the default first.

    Nothing, if the default is not recorded.
    """
    if default not in recorded:
        return {}
    return {
        runs[name]["about"]: values(recorded[name], "test", "exact_match")
        for name in family(runs, default)
        if name in recorded
    }


def family(runs: Runs, default: str) -> list[str]:
    """Name the runs of the default's family, the default first."""
    start = default.partition("_")[0] + "_"
    others = [each for each in runs if each.startswith(start) and each != default]
    return [default, *others]


def verdicts(found: dict[str, Sequence[float]]) -> dict[str, list[str]]:
    """Sort runs by whether all their seeds lie clear of the default's.

    Args:
        found: name -> a score for each seed; the default first, with several seeds.

    Returns:
        "worse", "better" or "not told apart" -> names. Clear is what lies outside the
        default's range by more than that range is wide.
    """
    sorted_names: dict[str, list[str]] = {"worse": [], "better": []}
    sorted_names["not told apart"] = []
    if not found:
        return sorted_names
    (_, default), *others = found.items()
    reach = max(default) - min(default)
    for name, each in others:
        if max(each) < min(default) - reach:
            sorted_names["worse"].append(name)
        elif min(each) > max(default) + reach:
            sorted_names["better"].append(name)
        else:
            sorted_names["not told apart"].append(name)
    return sorted_names


def failures(
    english: Sequence[str],
    german: Sequence[str],
    written: Sequence[str],
    kinds: Sequence[str],
    most: int = 3,
) -> str:
    """List wrong translations by kind, `most` of each kind."""
    lines = []
    for kind in KINDS:
        wrong = [number for number, each in enumerate(kinds) if each == kind]
        shown = wrong[:most]
        count = f"{len(shown)} of {len(wrong)}" if wrong else "none"
        lines.append(f"**{kind}** ({count})\n")
        for number in shown:
            lines.append(f"- {english[number]}<br>")
            lines.append(f"  wrote: *{written[number]}*<br>")
            lines.append(f"  right: *{german[number]}*")
        lines.append("")
    return "\n".join(lines)
