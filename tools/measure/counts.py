"""What counting and a file packer make of tiny Shakespeare, to set models beside.

    python -m tools.measure.counts [--data-dir DIR] [--record]

The counts are taken from what a model is trained on, and the test text is that of the
models. With --record, results/language_model/counts.json is written.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from autograder.files import write_beside
from tools import provenance
from tools.steps import ROOT
from workbench.data.corpora import load_texts
from workbench.use import counting

RECORD = ROOT / "results" / "language_model" / "counts.json"
DATA = "shakespeare"


def measured(data_dir: Path | None) -> dict[str, Any]:
    """Return nats a character: of each order of counting, and of the packer."""
    texts = load_texts(DATA, data_dir)
    train, test = texts.train, texts.test
    counts = counting.counted(train, test, texts.alphabet)
    return {
        "data": DATA,
        "characters": len(test),
        "counted": {str(order): nats / len(test) for order, nats in counts},
        "packed": counting.packed(train, test) / len(test),
    }


def main() -> None:
    """Count, print, and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, metavar="DIR")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    made = provenance.made_by("python -m tools.measure.counts --record")
    found = measured(asked.data_dir)
    for order, nats in found["counted"].items():
        print(f"counting {order} characters: {nats:.4f} nats a character")
    print(f"xz: {found['packed']:.4f} nats a character")
    if asked.record:
        write_beside(RECORD, json.dumps(made | found, indent=1) + "\n")


if __name__ == "__main__":
    main()
