"""Grading by result: a model that a student trained anywhere, handed in as files.

Beside the notebook lies a folder with what ``python -m workbench train`` wrote:
``model.safetensors``, ``config.json`` and, of what reads a text, ``tokenizer.json``.
They are data. Nothing in them is run; the model is built from the installed parts,
never from the student's, and never before its configuration was found small enough.
Nothing is trained here.

A chapter's check is a few lines::

    DEMAND = results.Demand("translator", budget=1_500_000, shipped="phrasebook")

    @chapter.check(section="translator-yours")
    def exact_match(
        student: StudentFunction, least: float, class_seed: int = 0
    ) -> None:
        model, seed = results.submitted(student, DEMAND), class_seed
        found = results.measured(model, f"test {seed}", lambda: share(model, seed))
        results.reach(found, least, what="exact match", unit="%", on=..., why=...)

with a check cell for each threshold. The student's function takes nothing and returns
the folder's name. What is loaded and what is measured is kept for the process, by the
content of the files, so that several cells cost one evaluation.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import torch
from safetensors import safe_open
from torch import nn

from autograder import expect
from autograder.chapters import own_model
from autograder.exercise.showing import first_few, shortened
from autograder.expect import refuse, refuse_if
from autograder.interface import StudentFunction
from workbench.data.tokenizer import TOKENIZER_FILE
from workbench.errors import WorkbenchError
from workbench.model import models

PLACE = Path()  # where the notebook is: the working directory
TEXT_BYTES = {models.CONFIG_FILE: 64_000, TOKENIZER_FILE: 4_000_000}
PICKLED = (b"PK\x03\x04", b"\x80")  # how torch.save's files begin
FLAGS = {"activation": ("relu", "gelu"), "scaled": (True, False)}
HEADS = (1, 2, 3, 4, 6, 8, 12, 16)


@dataclass(frozen=True)
class Demand:
    """What a model must be, as the exercise states it."""

    kind: str  # "translator", "vit" or "lm"
    budget: int  # parameters, at most
    layers: int = 12  # at most
    shipped: str = ""  # a model of results/models/, which is nobody's own
    likewise: tuple[str, ...] = ()  # others, which honest ones are less alike to

    @property
    def files(self) -> tuple[str, ...]:
        """What has to be in the folder."""
        names = (models.WEIGHTS_FILE, models.CONFIG_FILE)
        return names if self.kind == "vit" else (*names, TOKENIZER_FILE)


@dataclass(frozen=True)
class Submission:
    """A model that was handed in, loaded in evaluation mode."""

    name: str  # of the folder, as the student calls it
    digest: str  # of its files' content
    model: nn.Module
    config: models.Config
    tokenizer: own_model.AnyTokenizer | None = None

    @property
    def on(self) -> str:
        """Say which model a message is about."""
        count = f"{models.parameters(self.model):,}".replace(",", " ")
        return f"the model in the folder {self.name!r}, {count} parameters"


flags: list[str] = []  # what a person has to look at; a grader takes them
_loaded: dict[tuple[Demand, str], Submission] = {}
_measured: dict[tuple[str, Hashable], Any] = {}


def submitted(student: StudentFunction, demand: Demand) -> Submission:
    """Load the model whose folder the student's function names.

    Raises:
        CheckFailure: a folder or a file is missing, cut short, too large or of another
            kind; the files do not fit each other; the model is over the budget, was
            never trained, or is the one that the course ships.
    """
    name, folder = _folder(student)
    digest = _digest(folder, demand, name)
    if (demand, digest) not in _loaded:
        _loaded[demand, digest] = _load(name, folder, digest, demand)
    return replace(_loaded[demand, digest], name=name)


def forget() -> None:
    """Drop what is kept of the models; a grader does so after each submission."""
    flags.clear()
    _loaded.clear()
    _measured.clear()


def measured(model: Submission, key: Hashable, evaluate: Callable[[], Any]) -> Any:
    """Return what ``evaluate`` finds; the second time, what it found."""
    place = (model.digest, key)
    if place not in _measured:
        with torch.inference_mode(), models.use_attention("fused"):
            _measured[place] = evaluate()
    return _measured[place]


def reach(
    got: float, least: float, *, what: str, on: str, why: str, unit: str = "%"
) -> None:
    """Expect a score that reaches a threshold of the exercise."""
    expect.true(
        got >= least,
        f"{what} is below {least:g} {unit}",
        on=on,
        got=f"{got:.1f} {unit}",
        expected=f"at least {least:g} {unit}",
        why=why,
    )


def alike(model: Submission) -> Iterator[tuple[str, nn.Module]]:
    """Build the models that other values in config.json make of the same weights.

    Gives words for what was changed, such as "heads is 8", and the model. A model that
    is right far more often so has the wrong config.json.
    """
    state, config = model.model.state_dict(), model.config
    for name, values in {**FLAGS, "heads": HEADS}.items():
        for value in values if hasattr(config, name) else ():
            if value == getattr(config, name):
                continue
            changes = {name: value}
            if name == "heads" and getattr(config, "kv_heads", None) == config.heads:
                changes["kv_heads"] = value  # a head of keys for each head of queries
            other = _rebuilt(config, changes, state)
            if other is not None:
                yield f"{name} is {value!r}", other


# --- files ----------------------------------------------------------------------------


def _folder(student: StudentFunction) -> tuple[str, Path]:
    """Find the folder, which has to be beside the notebook."""
    name = student()
    on = f"{student.name}()"
    if not isinstance(name, str):
        expect.equal(name, "model", on=on, why="Return the folder's name, a text.")
    parts = PurePath(name.replace("\\", "/")).parts
    say = {"on": on, "got": repr(name), "expected": "the name of a folder"}
    refuse_if(
        not _is_inside(parts),
        "a folder that is not beside the notebook",
        "Only what lies beside the notebook is handed in. Move the folder there, and "
        "return its name alone, such as 'model'.",
        **say,
    )
    folder = PLACE.joinpath(*parts)
    there = sorted(each.name for each in PLACE.glob("*/") if each.name[:1] != ".")
    elsewhere = not folder.is_dir()
    refuse_if(
        elsewhere and parts[-1] in there,
        "a path in place of the folder's name",
        f"It is looked for beside the notebook: return {parts[-1]!r}.",
        **say,
    )
    refuse_if(
        elsewhere or not folder.resolve().is_relative_to(PLACE.resolve()),
        "there is no such folder",
        f"Copy the folder that training wrote beside the notebook, under this name. "
        f"Folders there: {first_few(there, 8) or 'none'}.",
        **say,
    )
    return "/".join(parts), folder


def _is_inside(parts: tuple[str, ...]) -> bool:
    """Tell whether a path leads down only, through names that any system can have."""
    first = parts[0] if parts else "/"
    if first.startswith(("/", "~")) or ":" in first or ".." in parts or len(parts) > 8:
        return False
    return all(each.isprintable() and len(each.encode()) < 256 for each in parts)


def _digest(folder: Path, demand: Demand, name: str) -> str:
    """Identify the content of the files; refuse what is missing or too large."""
    hashed = hashlib.sha256()
    largest = {models.WEIGHTS_FILE: 8 * demand.budget + 1_000_000, **TEXT_BYTES}
    for file in demand.files:
        path, on = folder / file, f"{name}/{file}"
        there = sorted(each.name for each in folder.iterdir())
        refuse_if(
            not path.is_file() or path.is_symlink(),
            "a file is missing",
            f"Hand in {_listed(demand.files)} of one training run, in one folder, as "
            "they were written.",
            on=on,
            got=f"in the folder: {first_few(there, 8) or 'nothing'}",
            expected=file,
        )
        size = path.stat().st_size
        refuse_if(
            size > largest[file],
            "a file is too large",
            "No model within the parameter budget needs so much. Is it the right file?",
            on=on,
            got=f"{size:,} bytes",
            expected=f"at most {largest[file]:,}",
        )
        hashed.update(f"{file} {size} ".encode() + path.read_bytes())
    return hashed.hexdigest()


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


# --- loading --------------------------------------------------------------------------


def _load(name: str, folder: Path, digest: str, demand: Demand) -> Submission:
    config = _config(name, folder, demand)
    _refuse_other_formats(name, folder)
    try:
        model, _ = models.load(folder)
    except WorkbenchError as error:
        _refuse_weights(str(error), name, folder, config)
    _refuse_untrained(name, model)
    tokenizer = None
    if TOKENIZER_FILE in demand.files:
        tokenizer = _tokenizer(name, folder, config)
    submission = Submission(name, digest, model, config, tokenizer)
    _refuse_shipped(submission, demand)
    return submission


def _config(name: str, folder: Path, demand: Demand) -> models.Config:
    """Read the configuration, and refuse a model that is too large to be built."""
    on = f"{name}/{models.CONFIG_FILE}"
    try:
        config = models.load_config(folder)
    except WorkbenchError as error:
        why = "Take the file as training wrote it; it is not to be edited."
        refuse("config.json cannot be used", why, on=on, got=_short(error, folder))
    kind = models.kind_of(config)
    refuse_if(
        kind != demand.kind,
        "another kind of model",
        f"Train one with  python -m workbench train {demand.kind}.",
        on=on,
        got=f"kind {kind!r}",
        expected=f"kind {demand.kind!r}",
    )
    refuse_if(
        config.layers > demand.layers,
        "more layers than allowed",
        "Train a model with fewer --layers.",
        on=on,
        got=f"{config.layers} layers",
        expected=f"at most {demand.layers}",
    )
    count = models.parameters_of(config)
    refuse_if(
        count > demand.budget,
        "over the parameter budget",
        "The table of a vocabulary has vocab_size · d_model parameters, a layer some "
        "4 d_model² for each attention and 2 d_model d_ff. Make one of them smaller "
        "(--vocab-size, --d-model, --d-ff, --layers) and train again.",
        on=on,
        got=f"{count:,} parameters".replace(",", " "),
        expected=f"at most {demand.budget:,}".replace(",", " "),
    )
    return config


def _short(error: WorkbenchError, folder: Path) -> str:
    """Write an error's words without the path before the folder."""
    return str(error).replace(f"{folder}{os.sep}", "")


def _refuse_other_formats(name: str, folder: Path) -> None:
    with (folder / models.WEIGHTS_FILE).open("rb") as file:
        start = file.read(8)
    refuse_if(
        start.startswith(PICKLED),
        "a pickled file",
        "torch.save writes a program that runs when it is loaded, so nobody loads it "
        "from somebody else. python -m workbench train writes model.safetensors; "
        "renaming another file does not change what it is.",
        on=f"{name}/{models.WEIGHTS_FILE}",
        got=f"a file that begins with {start[:4]!r}",
        expected="a safetensors file",
    )


def _refuse_weights(said: str, name: str, folder: Path, config: models.Config) -> None:
    """Name the mistake behind the words with which the weights were not loaded."""
    say = {"on": f"{name}/{models.WEIGHTS_FILE}", "got": said}
    say["got"] = said.replace(f"{folder}{os.sep}", "")
    if "is not a whole safetensors file" in said:
        why = "Not all of it has arrived, or it is of another format. Copy it again."
        refuse("a file was cut short", why, **say)
    if "holds NaN or infinity" in said:
        why = (
            "Training blew up, and every score would be meaningless. Lower --rate, "
            "keep the warm-up, and train again."
        )
        refuse("NaN in the weights", why, **say)
    if hasattr(config, "norm_first") and _fits(
        replace(config, norm_first=not config.norm_first), folder
    ):
        why = (
            "Only a pre-norm model has a norm after its last layer. These weights are "
            f"whole with norm_first {str(not config.norm_first).lower()}: hand in the "
            "config.json that was written with them."
        )
        refuse("pre-norm and post-norm exchanged", why, **say)
    why = (
        "The two files come from different runs, or config.json was edited. Hand in "
        "both as one run wrote them."
    )
    refuse("weights and config.json do not fit", why, **say)


def _fits(config: models.Config, folder: Path) -> bool:
    """Whether the weights have the names and shapes of a model of this shape."""
    with torch.device("meta"):
        expected = models.build(config).state_dict()
    with safe_open(folder / models.WEIGHTS_FILE, framework="pt") as file:
        names = set(file.keys())
        return names == set(expected) and all(
            tuple(file.get_slice(name).get_shape()) == tuple(expected[name].shape)
            for name in names
        )


def _refuse_untrained(name: str, model: nn.Module) -> None:
    """Refuse weights that no step of training has touched, or that are no numbers."""
    matrices = [each for each in model.parameters() if each.dim() > 1]
    vectors = [each for each in model.parameters() if each.dim() == 1]
    say = {"on": f"{name}/{models.WEIGHTS_FILE}"}
    refuse_if(
        any(not each.any() for each in matrices),
        "weights that are all zero",
        "A matrix of zeros passes nothing on. Was the file written before the weights "
        "were copied into the model?",
        got="a matrix of zeros",
        expected="trained weights",
        **say,
    )
    refuse_if(
        all(bool((each == each[0]).all()) for each in vectors),
        "untrained weights",
        "Every gain of a norm is as it was built, and every bias, too: no step of "
        "training has touched this model. Hand in the folder of the finished run.",
        got="all gains and biases as a new model has them",
        expected="trained weights",
        **say,
    )


def _tokenizer(
    name: str, folder: Path, config: models.Config
) -> own_model.AnyTokenizer:
    say = {"on": f"{name}/{TOKENIZER_FILE}"}
    try:
        tokenizer = own_model.load_tokenizer(folder, config)
    except WorkbenchError as error:
        why = "Take the file as training wrote it; it is not to be edited."
        say["got"] = shortened(_short(error, folder), 300)
        refuse("tokenizer.json cannot be used", why, **say)
    refuse_if(
        len(tokenizer) != config.vocab_size,
        "a tokenizer of another size",
        "Weights and tokenizer belong together: each row of the embedding is one token "
        "of it. Hand in the tokenizer.json that was written with the weights.",
        got=f"{len(tokenizer)} tokens",
        expected=f"{config.vocab_size}, as in {models.CONFIG_FILE}",
        **say,
    )
    return tokenizer


def _refuse_shipped(submission: Submission, demand: Demand) -> None:
    """Refuse the course's own model in disguise; flag what began with its weights."""
    if demand.shipped:
        for name in (demand.shipped, *demand.likewise):
            _refuse_one(submission, demand, name)


def _refuse_one(submission: Submission, demand: Demand, name: str) -> None:
    """Compare with one of the course's models, by the limits of the demand's first."""
    place = f"results/models/{name}"
    try:
        shipped = own_model.shipped(name)
        limits = own_model.limits(demand.shipped)
    except (WorkbenchError, OSError):  # a copy of the course without it
        _flag(f"could not be compared with {place}, which is not there", submission)
        return
    found = own_model.likeness(
        submission.model, submission.config, submission.tokenizer, shipped
    )
    if found is None:
        return  # it takes other inputs, which the checks refuse
    verdict = own_model.judge(found, limits)
    refuse_if(
        verdict == own_model.DISGUISE,
        "the course's own model",
        "It computes what the model computes that the course ships, to be looked at. "
        "Train a model with your own parts, and hand in that one. (The same --seed "
        "gives the same weights: choose another.)",
        on=f"{submission.name}/{models.WEIGHTS_FILE}",
        got=f"a model that is alike to {place}: {found.words}",
        expected="weights that you trained",
    )
    if verdict == own_model.TRAINED_ON:
        said = f"may have been trained on from {place}: {found.words}"
        _flag(f"{said}; models that were trained apart are less alike", submission)


def _flag(why: str, submission: Submission) -> None:
    """Leave it to a person whether a model is the student's own."""
    flags.append(f"the model in the folder {submission.name!r} {why}")


def _rebuilt(
    config: models.Config, changes: dict[str, Any], state: dict[str, torch.Tensor]
) -> nn.Module | None:
    """Build a model of a changed configuration, if the weights fit it."""
    try:
        other = replace(config, **changes)
        with torch.random.fork_rng(devices=[]):
            model = models.build(other)
        model.load_state_dict(state)
    except (WorkbenchError, RuntimeError):
        return None
    return model.eval()
