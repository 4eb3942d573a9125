"""Run what pages say of trainings with ten other seeds, and record what held.

    python -m tools.measure.claims [--record] [NAME ...]

results/pages/claims.yml lists the claims, and says what its keys mean. A page's cells
before those of a claim run once, as they are; those of the claim, once for each seed.
With --record, results/pages/claims.json is written. All claims take about half an hour.
"""

import argparse
import ast
import contextlib
import datetime
import io
import json
import os
import re
from typing import Any

import matplotlib
import torch
import yaml
from matplotlib import pyplot as plt

from tools.steps import ROOT

CLAIMS = ROOT / "results" / "pages" / "claims.yml"
RECORD = ROOT / "results" / "pages" / "claims.json"
SEEDS = range(1, 11)  # added to the page's own
CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SEED = re.compile(r"(manual_seed\(|\bseed=)(\d+)(?=[),])")


def main() -> None:
    """Run the claims that are asked for, and print and record how often each held."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="claims; all, if none is named")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    claims = yaml.safe_load(CLAIMS.read_text(encoding="utf-8"))
    for page, first, last in dict.fromkeys(map(where, claims.values())):
        together = {
            name: claim
            for name, claim in claims.items()
            if where(claim) == (page, first, last) and name in (asked.names or claims)
        }
        held = run(page, first, last, together) if together else {}
        if asked.record and held:
            record(held, list(claims))


def where(claim: dict[str, Any]) -> tuple[str, str, str]:
    """Return a claim's page, the label of its first cell and that behind its last."""
    return (claim["page"], *claim["cells"])


def run(page: str, first: str, last: str, claims: dict) -> dict[str, list[bool]]:
    """Run a page's cells for each seed; return for each claim whether it held."""
    text = (ROOT / "book" / f"{page}.md").read_text(encoding="utf-8")
    begin, end = (text.index(f"({label})=") for label in (first, last))
    os.chdir(ROOT / "book")
    names: dict[str, Any] = {"__name__": page}
    for cell in CELL.finditer(text, 0, begin):
        execute(cell[1], names)
    held: dict[str, list[bool]] = {name: [] for name in claims}
    for more in SEEDS:
        found = dict(names)
        cells = [cell[1] for cell in CELL.finditer(text, begin, end)]
        kept = [execute(with_seed(cell, more), found) for cell in cells]
        for name, claim in claims.items():
            own = claim["holds"] == "assertions"
            holds = all(kept) if own else bool(eval(claim["holds"], found))
            held[name].append(holds)
    for name, times in held.items():
        print(f"{name}: {sum(times)} of {len(times)}", flush=True)
    return held


def with_seed(cell: str, more: int) -> str:
    """Raise every seed that a cell writes down."""
    return SEED.sub(lambda seed: f"{seed[1]}{int(seed[2]) + more}", cell)


def execute(cell: str, names: dict[str, Any]) -> bool:
    """Run a cell; return whether its assertions hold. Another error ends the cell."""
    kept = True
    for statement in ast.parse(code_of(cell)).body:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(ast.Module([statement], []), "cell", "exec"), names)
        except AssertionError:
            kept = False
        except Exception as error:  # a cell may look for what this seed does not show
            print(f"  {error!r}", flush=True)
            kept = False
            break
    plt.close("all")
    return kept


def code_of(cell: str) -> str:
    """Return a cell without its options."""
    if cell.startswith("---\n"):
        return cell[4:].partition("\n---\n")[2]
    return re.sub(r"\A(?::.*\n)+", "", cell)


def record(held: dict[str, list[bool]], names: list[str]) -> None:
    """Write what held, with what is needed to do it again; keep what did not run."""
    known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    all_held = known.get("held", {}) | held
    entry = {
        "command": "python -m tools.measure.claims --record",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "torch": torch.__version__.partition("+")[0],
        "seeds": f"the page's own, plus {SEEDS[0]} to {SEEDS[-1]}",
        "held": {name: each for name, each in all_held.items() if name in names},
    }
    RECORD.write_text(json.dumps(entry, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    matplotlib.use("agg")
    torch.set_num_threads(1)
    main()
