"""How good the checks are as a tutor: what strangers' wrong answers are told.

``python -m tools.measure.tutor`` hands in every answer of ``tests/tutor/strangers``,
prints how many of each chapter are told their cause, and with ``--record`` writes it to
results/tutor/strangers.json, which the page "What is covered" shows. The verdicts are
those that people gave to the messages; an answer that is told another name than when it
was judged is listed, and nothing is recorded.
"""

import argparse
import datetime
import json
import sys
from collections import Counter

from tqdm import tqdm

from tests.tutor import bank
from tools.steps import ROOT
from workbench.training import records

RECORD = ROOT / "results" / "tutor" / "strangers.json"


def main() -> None:
    """Hand all of them in; print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.name}")
    arguments = parser.parse_args()
    everybody = list(bank.all_strangers())
    changed = [
        f"{chapter} {entry.exercise}: {entry.truth}\n    judged as {entry.says!r}, "
        f"now {now!r}"
        for chapter, entry in tqdm(everybody, unit="answer")
        if (now := bank.name_of(entry.message(chapter))) != entry.says
    ]
    counts = counted(everybody)
    for chapter, row in counts.items():
        print(f"{chapter:26} {row['answers']:4} answers, {said(row)}")
    if changed:
        sys.exit("Judge these again:\n" + "\n".join(changed))
    if arguments.record:
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(
            json.dumps(record(counts, in_rounds(everybody)), indent=1) + "\n", "utf-8"
        )
        print(f"written: {RECORD.relative_to(ROOT)}")


def counted(everybody: list[tuple[str, bank.Stranger]]) -> dict[str, dict]:
    """Count kinds and verdicts, for each chapter."""
    found = {}
    for chapter in sorted({chapter for chapter, _ in everybody}):
        entries = [entry for name, entry in everybody if name == chapter]
        found[chapter] = {
            "answers": len(entries),
            "kinds": dict(Counter(entry.kind for entry in entries)),
            "first": dict(Counter(entry.first for entry in entries)),
            "now": dict(Counter(entry.verdict for entry in entries)),
        }
    return found


def in_rounds(everybody: list[tuple[str, bank.Stranger]]) -> dict[int, dict]:
    """Count what answers were told at first, of each round."""
    found = {}
    for number in sorted({entry.round for _, entry in everybody}):
        first = [entry.first for _, entry in everybody if entry.round == number]
        found[number] = {"answers": len(first), "first": dict(Counter(first))}
    return found


def said(row: dict) -> str:
    """Write what the answers of a chapter are told."""
    now = row["now"]
    return ", ".join(f"{now[each]} {each}" for each in bank.VERDICTS if each in now)


def record(counts: dict[str, dict], rounds: dict[int, dict]) -> dict:
    """Put the counts together with where they come from."""
    return {
        "command": "python -m tools.measure.tutor --record",
        "date": datetime.date.today().isoformat(),
        "commit": records.commit(),
        "versions": records.versions(),
        "rounds": rounds,
        "chapters": counts,
    }


if __name__ == "__main__":
    main()
