"""What is measured against ours computes the same, and the tables are complete."""

import dataclasses
import json
import sys

import pytest
import torch

from autograder.grading.job import GRADED, Job, Outcome
from autograder.grading.paper import Paper
from tools.measure import (
    bench,
    bench_coordinator,
    bench_grading,
    bench_language_model,
    bench_models,
    bench_peers,
)
from transformer.decoder import decoder_layer_from_torch
from transformer.encoder import encoder_layer_from_torch
from workbench.model import models

CPU = torch.device("cpu")
TINY = bench_models.Sizes(
    translator=models.TranslatorConfig(31, 8, 2, 2, 12, max_length=24),
    pairs=3,
    width=7,
    vision=models.VisionConfig(8, 4, 1, 3, 8, 2, 2, 12),
    images=5,
    sentences=2,
    lengths=(3, 9),
    repeats=2,
    decodings=1,
)


def norm(prefix: str, state: dict, name: str) -> dict:
    """Rename the weights of a layer norm."""
    return {
        f"{prefix}.gamma": state[f"{name}.weight"],
        f"{prefix}.beta": state[f"{name}.bias"],
    }


def stack(theirs: torch.nn.Module, translate, prefix: str) -> dict:
    """Translate the layers of a stack, and the norm at its end."""
    state = norm(f"{prefix}.norm", theirs.state_dict(), "norm")
    for number, layer in enumerate(theirs.layers):
        found = translate(layer.state_dict())
        state |= {f"{prefix}.layers.{number}.{n}": v for n, v in found.items()}
    return state


def test_the_translators_compute_the_same() -> None:
    torch.manual_seed(0)
    config, parts = TINY.translator, models.load_parts()
    theirs = bench_peers.TorchTranslator(config, parts).eval()
    ours = models.build(config, parts).eval()
    layers = theirs.layers
    state = stack(layers.encoder, encoder_layer_from_torch, "encoder")
    state |= stack(layers.decoder, decoder_layer_from_torch, "decoder")
    state["embedding.weight"] = theirs.embedding.weight
    ours.load_state_dict(state, strict=True)
    source, inputs, labels = bench_models.pair_batch(TINY, CPU)
    assert (labels == 0).any()
    real = inputs != 0
    torch.testing.assert_close(
        theirs(source, inputs)[real], ours(source, inputs)[real], atol=2e-5, rtol=0
    )


def test_the_vision_transformers_compute_the_same() -> None:
    torch.manual_seed(0)
    config = TINY.vision
    theirs, ours = bench_peers.TorchVision(config).eval(), models.build(config).eval()
    state = stack(theirs.encoder, encoder_layer_from_torch, "encoder")
    weight = theirs.patches.weight  # (d, C, P, P)
    state |= {
        "patches.weight": weight.permute(2, 3, 1, 0).reshape(-1, len(weight)),
        "patches.bias": theirs.patches.bias,
        "position.table": theirs.positions,
        "class_token.token": theirs.class_token.flatten(),
        "head.weight": theirs.head.weight.T,
        "head.bias": theirs.head.bias,
    }
    own = ours.state_dict()
    shaped = {name: value.reshape(own[name].shape) for name, value in state.items()}
    ours.load_state_dict(shaped, strict=True)
    images, _ = bench_models.image_batch(TINY, CPU)
    torch.testing.assert_close(theirs(images), ours(images), atol=2e-5, rtol=0)


def test_the_language_models_compute_the_same() -> None:
    torch.manual_seed(0)
    config = models.LanguageModelConfig(
        11, 8, 2, 2, 2, 12, 9, 0.0, "layer", "relu", "learned", qk_norm=False
    )
    theirs, ours = bench_peers.TorchLanguageModel(config), models.build(config).eval()
    state = stack(theirs.encoder, encoder_layer_from_torch, "")
    state = {
        name.replace(".layers", "blocks").lstrip("."): x for name, x in state.items()
    }
    biases = [name for name in state if ".attention.b_" in name]
    assert not any(state.pop(name).any() for name in biases)  # ours has none
    state["embedding.weight"] = theirs.embedding.weight
    state["position.table"] = theirs.positions
    ours.load_state_dict(state, strict=True)
    ids = torch.randint(11, (3, 9))
    torch.testing.assert_close(theirs.eval()(ids), ours(ids), atol=2e-5, rtol=0)


def test_alike_drops_where_ours_does() -> None:
    config = dataclasses.replace(TINY.translator, dropout=0.5)
    model = bench_peers.TorchTranslator(config, models.load_parts(), alike=True)
    for layer in (*model.layers.encoder.layers, *model.layers.decoder.layers):
        assert layer.self_attn.dropout == 0
        assert isinstance(layer.dropout, torch.nn.Identity)
        assert layer.dropout1.p == layer.dropout2.p == 0.5


def test_every_case_is_measured_and_printed(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(bench_models, "QUICK", TINY)
    monkeypatch.setattr(bench_models, "compiler_fails", lambda device: "no compiler")
    monkeypatch.setattr(bench_models, "peak_in_child", lambda *_: 3 * 2**20)
    path = tmp_path / "new" / "bench.json"
    words = ["models", "--quick", "--device", "cpu", "--json", str(path)]
    threads = torch.get_num_threads()
    monkeypatch.setattr(sys, "argv", ["bench.py", *words])
    try:
        bench.main()
    finally:
        torch.set_num_threads(threads)
    shown, result = capsys.readouterr().out, json.loads(path.read_text())
    assert "torch.compile is left out, for it does not work here: no compiler" in shown
    assert len(result["groups"]) == 2 + len(TINY.lengths)
    for name, group in result["groups"].items():
        first, *others = group["cases"].values()
        assert name in shown and first["ratio"] == 1
        for case in others:
            assert case["ratio"] == pytest.approx(case["seconds"] / first["seconds"])
            assert case["peak_bytes"] == 3 * 2**20
    assert set(group["cases"]) == {"with cache", "without cache"}


def test_compiled_cases_are_there_where_a_compiler_is() -> None:
    without, with_it = (bench_models.groups(TINY, CPU, flag) for flag in (False, True))
    added = {
        name
        for before, after in zip(without, with_it, strict=True)
        for name in set(after.cases) - set(before.cases)
    }
    assert added == {
        "ours, attention written, compiled",
        "ours, attention fused, compiled",
    }


def test_memory_is_measured_in_a_process_of_its_own() -> None:
    words = ["models", "--quick", "--device", "cpu"]
    group = bench_models.decoding_group(16, TINY, CPU, models.load_parts())
    peak = bench_models.peak_in_child(group, "with cache", bench.read_arguments(words))
    assert 2**20 < peak < 2**30


# --- the coordinator ------------------------------------------------------------------


def test_a_stand_in_gives_every_job_the_outcome_of_one_like_it(tmp_path) -> None:
    mark = str(bench_coordinator.MARK)
    for name in ("a", "b"):
        outcome = Outcome(name, "c", status=GRADED, notebook=f'"{mark} by {name}"')
        (tmp_path / f"{name}.json").write_text(json.dumps(outcome.to_dict()))
    paper = Paper("c", "", "", {}, {}, {})
    jobs = [
        (number, Job(bench_coordinator.student(number), "c", b"", paper))
        for number in range(150)
    ]
    stand_in = bench_coordinator.StandIn(tmp_path, every=50)
    groups = list(stand_in.grade_in_groups(iter(jobs)))
    assert max(map(len, groups)) < 150
    given = [each for group in groups for each in group]
    assert [label for label, _ in given] == list(range(150))
    assert given[7][1].student == "student-00007"
    assert given[7][1].notebook == f'"{bench_coordinator.MARK + 8} by b"'
    assert [done for done, *_ in stand_in.notes] == [0, 64, 128, 150]


def test_what_a_coordinator_takes_is_told_by_tenths() -> None:
    notes = [[0, 1.0, 50], [10, 2.0, 60], [20, 4.0, 70], [None, 5.0, 80]]
    found = bench_coordinator.figures(notes)
    assert found["milliseconds_of_tenths"] == [100, 200]
    assert found["milliseconds"] == 150
    assert found["milliseconds_with_tables"] == 200
    assert found["memory_of_tenths"] == [60, 70]
    assert found["memory_with_tables"] == 80


# --- the language model ---------------------------------------------------------------


def test_the_language_model_s_cases_are_measured_and_printed(monkeypatch, capsys):
    config = models.LanguageModelConfig(65, 8, 2, 1, 1, 12, 6)
    tiny = bench_language_model.Sizes(config, (config,), 18, 2, 5, 1)
    monkeypatch.setattr(bench_language_model, "sizes_of", lambda quick: tiny)
    monkeypatch.setattr(bench_models, "compiler_fails", lambda device: "no compiler")
    threads = torch.get_num_threads()
    try:
        arguments = bench.read_arguments(["language-model", "--device", "cpu"])
        found = bench_language_model.main(arguments)
    finally:
        torch.set_num_threads(threads)
    assert list(found) == [
        "training step, language model",
        "writing, 5 tokens, d_model 8",
    ]
    assert [len(cases) for cases in found.values()] == [4, 2]
    printed = capsys.readouterr().out
    assert all(case in printed for cases in found.values() for case in cases)


def test_a_class_has_each_mistake_that_is_written_out(tmp_path) -> None:
    count = 5 * (len(bench_grading._mistakes()) + 1) // 2
    bench_grading.write_class(tmp_path, count)
    written = {path.read_bytes() for path in tmp_path.rglob("*.ipynb")}
    assert len(written) > count // 3
