"""A model of one's own: what is the course's in disguise, and what is not.

The record says how alike models are that were trained for minutes;
tools/measure/own_models.py makes it. Here it is held to what it must show, and what is
cheap is computed again.
"""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load as load_tensors

from autograder.chapters import own_model, results
from autograder.chapters.own_model import DISGUISE, OWN, TRAINED_ON, Likeness
from autograder.chapters.translator import own
from autograder.expect import CheckFailure
from tests import disguises, strangers
from workbench.errors import WorkbenchError
from workbench.model import models

RECORD = json.loads(own_model.RECORD.read_text("utf-8"))
KINDS = {"phrasebook": "translator", "digits": "vit", "tales": "lm"}
HONEST = {"phrasebook": 16, "digits": 20, "tales": 1}  # seeds of the recipe as it is
SAME = {  # disguises that change nothing that is computed
    "reordered units": (disguises.reordered_units, {}),
    "doubled units": (disguises.doubled_units, {"d_ff": 512}),
    "idle units": (disguises.idle_units, {"d_ff": 384}),
    "a loud idle unit": (disguises.loud_idle_unit, {"d_ff": 257}),
    "turned heads": (disguises.turned_heads, {}),
    "reordered heads": (disguises.reordered_heads, {}),
    "signs": (disguises.exchanged_queries, {}),
    "folded gains": (disguises.folded_gains, {}),
    "float16": (disguises.as_float16, {}),
    "int8": (disguises.as_int8, {}),
    "one weight": (disguises.one_weight, {}),
    "little noise": (disguises.noise(0.05), {}),
    "small weights cut": (disguises.small_weights_cut, {}),
}
GATED = {  # of a model with neither biases nor the two matrices of 2017
    "reordered gated units": (disguises.reordered_gated_units, {}),
    "float16": SAME["float16"],
    "little noise": SAME["little noise"],
}
DISGUISED = [
    *((name, disguise) for name in ("phrasebook", "digits") for disguise in SAME),
    *(("tales", disguise) for disguise in GATED),
]


def load(folder: Path, files: dict[str, bytes]):
    """Load a model from its files, with its tokenizer."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    model, config = models.load(folder)
    there = (folder / disguises.TOKENIZER).is_file()
    return model, config, own_model.load_tokenizer(folder, config) if there else None


def likeness(name: str, folder: Path, files: dict[str, bytes]) -> Likeness | None:
    """Compare files with a model that is shipped."""
    return own_model.likeness(*load(folder, files), own_model.shipped(name))


def judged(name: str, folder: Path, files: dict[str, bytes]) -> str:
    """Say what files are taken for."""
    found = likeness(name, folder, files)
    return own_model.judge(found, own_model.limits(name))


# --- the record -----------------------------------------------------------------------


def test_the_record_says_where_it_comes_from() -> None:
    for fact in ("command", "date", "commit", "hardware", "python", "load"):
        assert RECORD[fact], fact
    assert RECORD["models"].keys() == KINDS.keys()


@pytest.mark.parametrize("name", KINDS)
def test_no_honest_run_is_flagged(name) -> None:
    runs = RECORD["models"][name]["judged"]
    assert len({run["seed"] for run in runs}) >= HONEST[name]
    limits = own_model.limits(name)
    for run in runs:
        assert own_model.judge(Likeness(**run["likeness"]), limits) == OWN, run
    apart = RECORD["models"][name]["apart"]
    assert not {run["seed"] for run in runs} & {run["seed"] for run in apart}


@pytest.mark.parametrize("name", KINDS)
def test_no_model_that_began_with_the_shipped_one_passes(name) -> None:
    runs, limits = RECORD["models"][name]["trained_on"], own_model.limits(name)
    assert runs
    for run in runs:
        assert own_model.judge(Likeness(**run["likeness"]), limits) != OWN, run


@pytest.mark.parametrize("name", KINDS)
def test_limits_keep_away_from_what_was_trained_apart(name) -> None:
    apart = [Likeness(**run["likeness"]) for run in RECORD["models"][name]["apart"]]
    assert len(apart) >= 5
    for kind, limits in own_model.limits(name).items():
        most = max(getattr(each, kind) for each in apart)
        assert most + 0.1 < limits["trained on"] < limits["disguise"] < 1


# --- computed again -------------------------------------------------------------------


@pytest.mark.parametrize(("name", "disguise"), DISGUISED)
def test_a_disguise_is_seen_through(name, disguise, tmp_path) -> None:
    change, config = (SAME | GATED)[disguise]
    files = disguises.of(strangers.shipped_model(name), change, **config)
    assert judged(name, tmp_path, files) == DISGUISE


def test_units_of_another_scale_are_found_again(tmp_path) -> None:
    files = disguises.of(strangers.shipped_model(), disguises.scaled_units)
    found = likeness("phrasebook", tmp_path, files)
    assert min(found.outputs, found.hidden) > 0.999


def test_tokens_in_another_order_are_found_again(tmp_path) -> None:
    files = disguises.reordered_tokens(strangers.shipped_model())
    assert likeness("phrasebook", tmp_path, files).outputs > 0.999


def test_turned_features_are_found_again(tmp_path) -> None:
    """No weight and no feature is as it was, and all is computed as before."""
    files = disguises.of(strangers.shipped_model("digits"), disguises.turned_stream)
    found = likeness("digits", tmp_path, files)
    assert found.weights < 0.3
    assert min(found.outputs, found.hidden) > 0.999


@pytest.mark.parametrize("name", KINDS)
def test_much_noise_is_flagged(name, tmp_path) -> None:
    files = disguises.of(strangers.shipped_model(name), disguises.noise(0.3))
    assert judged(name, tmp_path, files) == TRAINED_ON


@pytest.mark.parametrize("name", KINDS)
def test_a_model_that_was_trained_is_ones_own(name, tmp_path) -> None:
    assert judged(name, tmp_path, strangers.right_model(KINDS[name])) == OWN


@pytest.mark.parametrize("name", KINDS)
def test_a_new_model_of_the_same_shape_is_ones_own(name, tmp_path) -> None:
    shipped = own_model.shipped(name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        model = models.build(shipped.config)
    found = own_model.likeness(model.eval(), shipped.config, shipped.tokenizer, shipped)
    assert own_model.judge(found, own_model.limits(name)) == OWN


def test_a_part_of_the_shipped_model_is_flagged(tmp_path) -> None:
    """The encoder is the course's, the decoder somebody's own."""
    own, shipped = strangers.right_model(), strangers.shipped_model()
    others = load_tensors(shipped[disguises.WEIGHTS])

    def borrow(state: disguises.State) -> None:
        for name in state:
            if name.startswith("encoder."):
                state[name] = others[name]

    files = disguises.of(own, borrow, disguises.reordered_units)
    assert judged("phrasebook", tmp_path, files) == TRAINED_ON


def test_what_gives_no_numbers_is_flagged(tmp_path) -> None:
    def overflow(state: disguises.State) -> None:
        state["decoder.norm.gamma"] = torch.full((128,), 3e38)

    files = disguises.of(strangers.right_model(), overflow)
    assert judged("phrasebook", tmp_path, files) == TRAINED_ON


def test_other_inputs_are_not_compared(tmp_path) -> None:
    config = models.VisionConfig(16, 4, 3, 7, 8, 2, 1, 8)
    model = models.build(config)
    assert own_model.likeness(model, config, None, own_model.shipped("digits")) is None


# --- in a check -----------------------------------------------------------------------


class Mine:
    """A student's function that names the folder."""

    name = "my_model"

    def __call__(self) -> str:
        return "mine"


def submitted(folder: Path, files: dict[str, bytes], monkeypatch) -> results.Submission:
    """Hand a model in, as a notebook does."""
    load(folder / "mine", files)
    monkeypatch.setattr(results, "PLACE", folder)
    results.forget()
    demand = results.Demand("vit", budget=200_000, shipped="digits")
    return results.submitted(Mine(), demand)


def test_a_flag_waits_for_whoever_grades(tmp_path, monkeypatch) -> None:
    files = disguises.of(strangers.shipped_model("digits"), disguises.noise(0.3))
    submitted(tmp_path, files, monkeypatch)
    (flag,) = results.flags
    assert "may have been trained on from results/models/digits" in flag
    results.forget()
    assert results.flags == []


def test_a_refusal_names_the_mistake(tmp_path, monkeypatch) -> None:
    files = disguises.of(strangers.shipped_model("digits"), disguises.one_weight)
    with pytest.raises(CheckFailure) as failure:
        submitted(tmp_path, files, monkeypatch)
    assert failure.value.mistake == "the course's own model"
    assert results.flags == []


def test_the_other_translator_of_the_course_is_nobodys_own(
    tmp_path, monkeypatch
) -> None:
    """It has learned the phrasebook's words, too; an honest model is far from it."""
    monkeypatch.setattr(results, "PLACE", tmp_path)
    for files, refused in (
        (strangers.right_model(), False),
        (strangers.shipped_model("everyday"), True),
    ):
        load(tmp_path / "mine", files)
        results.forget()
        if refused:
            with pytest.raises(CheckFailure, match="results/models/everyday"):
                results.submitted(Mine(), own.DEMAND)
        else:
            results.submitted(Mine(), own.DEMAND)
        assert results.flags == []


def test_without_the_shipped_model_a_person_is_asked(tmp_path, monkeypatch) -> None:
    def missing(name: str):
        raise WorkbenchError("there is no such file")

    monkeypatch.setattr(own_model, "shipped", missing)
    submitted(tmp_path, strangers.right_model("vit"), monkeypatch)
    (flag,) = results.flags
    assert "could not be compared" in flag
