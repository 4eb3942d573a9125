"""Measure how alike models are that were trained apart, for the limits of a grade.

``python -m tools.measure.own_models`` trains, in ``_build/own_models``, what is not
there yet, compares each model with the one that the course ships, and writes
``results/grader/own_models.json`` (similarities alone, no weights). Of each recipe of
``results/models/`` there are

- apart: trained from other seeds, some in another shape or for longer; the limits
  follow from these, see ``autograder/chapters/own_model.py``;
- judged: the recipe as it is, twenty further seeds (one of the tales), of which none
  may be flagged;
- trained_on: the recipe again, begun with the shipped weights in place of new ones.

One after the other on one core all takes some four hours; what is there is kept.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from autograder.chapters import own_model
from autograder.chapters.own_model import Likeness
from autograder.files import write_beside
from tools import provenance
from tools.steps import ROOT
from workbench.__main__ import main as workbench
from workbench.data.tokenizer import TOKENIZER_FILE
from workbench.model import models
from workbench.training import records

FOLDER = ROOT / "_build" / "own_models"
JUDGED = {
    "digits": {"": range(101, 121)},
    "phrasebook": {"": range(101, 121)},
    "tales": {"": [41]},
}
RECIPES = {
    "digits": "vit --data digits",
    "phrasebook": "translator --data phrasebook",
    "tales": "lm --data tales",
}
APART = {  # options beside the recipe's, and seeds
    "digits": {
        "": range(121, 126),
        "--epochs 120": [131],
        "--pooling class": [132],
        "--d-ff 512 --layers 2": [133],
        "--d-model 48 --heads 6": [134],
        "--patch-size 2": [135],
        "--layers 4 --d-ff 128": [136],
    },
    "phrasebook": {
        "--steps 300": range(121, 124),
        "--steps 300 --vocab-size 1000": [131],
        "--steps 300 --norm post": [132],
        "--steps 300 --untied --unscaled": [133],
        "--steps 300 --d-model 96 --d-ff 512 --layers 3": [134],
    },
    "tales": {
        "": [42],
        "--steps 800": [0],
        "--steps 800 --score validation": [5],
        "--steps 40 --score validation": [121, 122],
    },
}
TRAINED_ON = {
    "digits": {
        "--epochs 1": [141],
        "--epochs 5": [141],
        "--epochs 20": [141],
        "": [141, 142, 143],
        "--epochs 120": [141],
    },
    "phrasebook": {
        "--steps 50": [141],
        "--steps 300": [141],
    },
    "tales": {
        "--steps 20 --score validation": [141],
    },
}


@dataclass(frozen=True)
class Run:
    """One training of a recipe."""

    recipe: str  # by the name of the model that is shipped
    group: str  # "apart", "judged" or "trained_on"
    options: str
    seed: int

    @property
    def folder(self) -> Path:
        """Where its model is."""
        words = [self.recipe, *self.options.replace("--", "").split()]
        if self.group == "trained_on":
            words.insert(1, "on")
        return FOLDER / "_".join(words) / f"seed_{self.seed}"

    @property
    def command(self) -> list[str]:
        """The words after ``python -m workbench train``."""
        words = shlex.split(f"{RECIPES[self.recipe]} {self.options}")
        return [*words, "--seed", str(self.seed), "--out", str(self.folder)]


def runs() -> Iterator[Run]:
    """List all runs."""
    for recipe in RECIPES:
        tables = {"apart": APART, "trained_on": TRAINED_ON, "judged": JUDGED}
        for group, table in tables.items():
            for options, seeds in table[recipe].items():
                for seed in seeds:
                    yield Run(recipe, group, options, seed)


def train(run: Run) -> None:
    """Train a model in a process of its own, unless it is there."""
    if (run.folder / "metrics.json").is_file():
        return
    begin = ["--begin-with", run.recipe] if run.group == "trained_on" else []
    command = [
        sys.executable,
        "-m",
        "tools.measure.own_models",
        *begin,
        "--train",
        *run.command,
    ]
    print(shlex.join(run.command), flush=True)
    run.folder.parent.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with run.folder.with_suffix(".log").open("w") as log:
        subprocess.run(command, check=True, stdout=log, stderr=log, env=environment)


def begin_with(name: str) -> None:
    """Let every model that this process builds begin with the shipped weights."""
    build, shipped = models.build, own_model.shipped(name)

    def begun(*arguments: object) -> torch.nn.Module:
        model = build(*arguments)
        if not any(each.is_meta for each in model.parameters()):
            model.load_state_dict(shipped.model.state_dict())
        return model

    models.build = begun


def compare(run: Run) -> dict:
    """Compare a trained model with the shipped one."""
    model, config = models.load(run.folder)
    there = (run.folder / TOKENIZER_FILE).is_file()
    tokenizer = own_model.load_tokenizer(run.folder, config) if there else None
    shipped = own_model.shipped(run.recipe)
    found = own_model.likeness(model, config, tokenizer, shipped)
    (scores,) = records.read(run.folder / "metrics.json")["scores"].values()
    return {
        "command": f"train {RECIPES[run.recipe]} {run.options}".strip(),
        "seed": run.seed,
        "scores": {name: values[0] for name, values in scores.items()},
        "likeness": {name: round(value, 4) for name, value in asdict(found).items()},
    }


def measure(recipe: str, done: list[Run]) -> dict:
    """Compare all runs of a recipe, and say what each is taken for."""
    found = {"apart": [], "judged": [], "trained_on": []}
    for run in done:
        if run.recipe == recipe:
            found[run.group].append(compare(run))
    limits = own_model.limits_of(
        [Likeness(**each["likeness"]) for each in found["apart"]]
    )
    for each in (*found["judged"], *found["trained_on"]):
        each["taken_for"] = own_model.judge(Likeness(**each["likeness"]), limits)
    return found


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.measure.own_models",
        description=__doc__.partition("\n")[0],
    )
    parser.add_argument(
        "--only", choices=RECIPES, help="one recipe; what is recorded of others stays"
    )
    parser.add_argument(
        "--as-it-is", action="store_true", help="record what is there, train nothing"
    )
    parser.add_argument("--begin-with", choices=RECIPES, help=argparse.SUPPRESS)
    parser.add_argument("--train", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """Train, compare, record."""
    arguments = read_arguments()
    if arguments.train:
        if arguments.begin_with:
            begin_with(arguments.begin_with)
        sys.argv[1:] = ["train", *arguments.train]
        return workbench()
    made = provenance.made_by(
        shlex.join(["python", "-m", "tools.measure.own_models", *sys.argv[1:]])
    )
    wanted = [run for run in runs() if arguments.only in (None, run.recipe)]
    if not arguments.as_it_is:
        for run in wanted:
            train(run)
    done = [run for run in wanted if (run.folder / "metrics.json").is_file()]
    torch.set_num_threads(1)
    if arguments.only:
        record = json.loads(own_model.RECORD.read_text("utf-8"))
        record["models"][arguments.only] = made | measure(arguments.only, done)
    else:
        record = made | {"models": {each: measure(each, done) for each in RECIPES}}
    write_beside(own_model.RECORD, json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
