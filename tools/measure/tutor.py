"""How good the checks are as a tutor: what strangers' wrong answers are told.

``python -m tools.measure.tutor`` hands in every answer of ``tests/tutor/strangers``,
prints how many of each chapter are told their cause, and with ``--record`` writes it to
results/tutor/strangers.json, which the page "What is covered" shows. The verdicts are
those that people gave to the messages; an answer that is told another name than when
it was judged is listed, and nothing is recorded.

New answers, a file for each chapter in the form of ``tests/tutor/written.py``, are
read, judged and kept so, by the ids of their exercises in place of numbers::

    python -m tools.measure.tutor --hand-in FOLDER > told.txt
    python -m tools.measure.tutor --hand-in FOLDER --verdicts verdicts.txt --round 5

``told.txt`` has what each is told. A line of ``verdicts.txt`` is "04_attention 3
named", or "04_attention 4 dropped: not wrong by the statement, since …". With
``--again`` verdicts of a kept round are given once more, after the checks were mended.
"""

import argparse
import datetime
import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from tqdm import tqdm

from autograder.exercise import spec
from autograder.exercise.remembered import Remembered
from tests.tutor import bank, written
from tools.steps import ROOT
from workbench.training import records

RECORD = ROOT / "results" / "tutor" / "strangers.json"


def main() -> None:
    """Hand all of them in; print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.name}")
    parser.add_argument("--hand-in", type=Path, metavar="FOLDER", help="of new answers")
    parser.add_argument("--verdicts", type=Path, help="what was judged of them")
    parser.add_argument("--round", type=int, help="under which to keep them")
    parser.add_argument("--again", action="store_true", help="judged once more")
    arguments = parser.parse_args()
    if arguments.hand_in:
        hand_in(arguments)
        return
    everybody = list(bank.all_strangers())
    changed, took = handed_in_again(everybody)
    counts, seconds = counted(everybody), waits(took)
    for chapter, row in counts.items():
        print(f"{chapter:26} {row['answers']:4} answers, {said(row)}")
    said_of = ", ".join(f"{name} {each} s" for name, each in seconds.items())
    print(f"processor time of a check: {said_of}")
    if changed:
        sys.exit("Judge these again:\n" + "\n".join(changed))
    if arguments.record:
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(
            json.dumps(record(counts, in_rounds(everybody), seconds), indent=1) + "\n",
            "utf-8",
        )
        print(f"written: {RECORD.relative_to(ROOT)}")


def handed_in_again(
    everybody: list[tuple[str, bank.Stranger]],
) -> tuple[list[str], list[float]]:
    """Say which answers are told another name now, and how long each check took.

    A check begins as in a new notebook, with nothing remembered, and looks for no line
    unless that is what was judged; then it is not timed.
    """
    changed: list[str] = []
    took: list[float] = []
    for chapter, entry in tqdm(everybody, unit="answer"):
        spec.REMEMBERED = Remembered()
        looking = entry.line > 0
        told = entry.message(chapter, looking=looking, took=None if looking else took)
        if (now := bank.name_of(told)) != entry.says:
            changed.append(
                f"{chapter} {entry.exercise}: {entry.truth}\n"
                f"    judged as {entry.says!r}, now {now!r}"
            )
    return changed, took


def waits(took: list[float]) -> dict[str, float]:
    """Say how long checks take: half of them, 99 of 100, and all."""
    seconds = np.quantile(took, (0.5, 0.99, 1.0), method="lower").round(3).tolist()
    return dict(zip(("median", "99 of 100", "longest"), seconds, strict=True))


def hand_in(arguments: argparse.Namespace) -> None:
    """Print what new answers are told, or keep them with what was judged of them."""
    judged = {}
    if arguments.verdicts:
        lines = arguments.verdicts.read_text("utf-8").splitlines()
        for line in filter(None, map(str.strip, lines)):
            chapter, number, verdict = line.split(maxsplit=2)
            judged[chapter, int(number)] = verdict
    for path in sorted(arguments.hand_in.glob("*.py")):
        answers = bank.read_new(path)
        for number, answer in enumerate(answers, start=1):
            if arguments.verdicts:
                verdict = judged.get((path.stem, number), "")
                if verdict or not arguments.again:
                    judge(answer, verdict, arguments.again)
            elif "dropped" not in answer.notes:
                entry = bank.of_text(answer, 0)
                told = entry.message(path.stem, looking=True)
                print(f"=== {path.stem} {number} {answer.head[6:]}")
                print(f"--- {told or 'PASSED'}\n", flush=True)
        if arguments.verdicts:
            written.write(
                written.FOLDER / f"round_{arguments.round}" / path.name, answers
            )


def judge(answer: written.Written, verdict: str, again: bool) -> None:
    """Note what was judged of an answer, and the name that it is given now."""
    kept = {} if not again else {"told": answer.notes["told"]}
    if verdict.startswith("dropped:"):
        answer.notes = {"dropped": verdict.removeprefix("dropped:").strip()}
        return
    if verdict not in bank.VERDICTS:
        sys.exit(f"{answer.chapter}: {answer.truth}\n    judged as {verdict!r}")
    told = bank.of_text(answer, 0).message(answer.chapter, looking=True)
    says = bank.name_of(told)
    answer.notes = {"told": verdict, **kept, "now": verdict}
    answer.notes |= {"says": says} if says else {}
    if told and told.place:
        answer.notes["line"] = str(told.place.line_number)


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


def record(
    counts: dict[str, dict], rounds: dict[int, dict], seconds: dict[str, float]
) -> dict:
    """Put the counts together with where they come from."""
    return {
        "command": "python -m tools.measure.tutor --record",
        "date": datetime.date.today().isoformat(),
        "commit": records.commit(),
        "versions": records.versions(),
        "seconds": seconds,
        "rounds": rounds,
        "chapters": counts,
    }


if __name__ == "__main__":
    main()
