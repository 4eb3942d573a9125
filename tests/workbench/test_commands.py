import gzip
import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from workbench import __main__
from workbench.command_line import options
from workbench.command_line.options import training_config
from workbench.data import texts
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.training import presets, recording, records, vision
from workbench.training.checkpoint import CHECKPOINT
from workbench.training.loop import TrainingConfig
from workbench.training.presets import BASELINES, TRANSLATORS, VISION
from workbench.use import results
from workbench.use.evaluation import Evaluation, answer, compare
from workbench.use.translator import Translation, Translator, search_of

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["--device", "cpu", "--layers", "1", "--heads", "2", "--d-model", "16"]
SMALL += ["--d-ff", "16", "--warmup", "5"]
WORDS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf"}


def run(capsys, monkeypatch, *words):
    """Run the command line in this process: exit code, output, errors."""
    monkeypatch.setattr(sys, "argv", ["workbench", *map(str, words)])
    code = __main__.main()
    output = capsys.readouterr()
    return code, output.out, output.err


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    """A file with all sentences of two number words, and their translations."""
    pairs = [(f"{a} {b}", f"{WORDS[b]} {WORDS[a]}") for a in WORDS for b in WORDS]
    path = tmp_path_factory.mktemp("text") / "numbers.tsv"
    lines = [f"{source}\t{target}" for source, target in pairs * 8]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Two classes of 8 × 8 images: the red and the blue ones."""
    root = tmp_path_factory.mktemp("images")
    generator = np.random.default_rng(0)
    for name, channel in (("red", 0), ("blue", 2)):
        (root / name).mkdir()
        for number in range(20):
            image = generator.integers(0, 60, (8, 8, 3)).astype(np.uint8)
            image[..., channel] += 150
            Image.fromarray(image).save(root / name / f"{number}.png")
    return root


def train_translator(sentences, out, *more):
    data = ["--data", f"text:{sentences}", "--vocab-size", "300", "--beam", "1"]
    return ["train", "translator", *data, "--out", out, *SMALL, *more]


def train_vit(pictures, out, *more):
    options = ["--data", f"images:{pictures}", "--patch-size", "4", "--batch", "8"]
    return ["train", "vit", *options, "--out", out, *SMALL, *more]


# --- Whole runs ----------------------------------------------------------------------


def test_a_translator_is_trained_scored_and_used(
    tmp_path, sentences, capsys, monkeypatch
):
    words = train_translator(sentences, tmp_path, "--epochs", "2", "--batch", "256")
    code, output, _ = run(capsys, monkeypatch, *words)
    assert code == 0
    names = {"model.safetensors", "config.json", "tokenizer.json", "metrics.json"}
    assert {path.name for path in tmp_path.iterdir()} == names | {"curves.png"}
    record = records.read(tmp_path / "metrics.json")
    assert record["task"] == "translator" and record["seeds"] == [0]
    model, config = models.load(tmp_path)
    assert record["parameters"] == models.parameters(model)
    assert (config.layers, config.heads, config.d_model) == (1, 2, 16)
    scores = record["scores"]["test"]
    assert set(scores) == {"bleu_cased", "bleu_lowercased_tokenised", "exact_match"}
    assert f"{scores['bleu_cased'][0]:.2f}" in output

    code, output, _ = run(
        capsys, monkeypatch, "evaluate", "translator", tmp_path, "--beam", "1",
        "--device", "cpu",
    )  # fmt: skip
    assert code == 0
    assert f"bleu_cased {scores['bleu_cased'][0]:18.2f}".split() == output.split()[:2]

    words = ["evaluate", "translator", tmp_path, "--beam", "1", "--device", "cpu"]
    code, output, _ = run(capsys, monkeypatch, *words, "--against", tmp_path)
    assert code == 0 and output.count("+0.00   95 % of 1000 draws") == 3

    words = ["translate", tmp_path, "one two", "", "three", "--device", "cpu"]
    code, output, _ = run(capsys, monkeypatch, *words)
    assert code == 0
    assert len(output.split("\n")) == 4 and output.split("\n")[1] == ""


@pytest.fixture(scope="module")
def captions(tmp_path_factory):
    """A folder of small files under Multi30k's names, in both forms, and their sums."""
    folder, sums = tmp_path_factory.mktemp("multi30k"), {}
    pairs = [(f"{a} {b} .", f"{WORDS[b]} {WORDS[a]} .") for a in WORDS for b in WORDS]
    for stem in ("train", "val", *texts.TEST_SETS):
        for side, language in enumerate(texts.LANGUAGES):
            lowered = "".join(f"{pair[side]}\n" for pair in pairs)
            for form, text in (("lowercased", lowered), ("raw", lowered.title())):
                name = Path(texts.FORMS[form].format(stem, language)).stem
                name += f".{language}" * (form == "lowercased")
                (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
                sums[name] = hashlib.sha256(text.encode()).hexdigest()
    return folder, sums


@pytest.fixture(scope="module")
def lowercased(tmp_path_factory, captions):
    """A translator of lowercased text, scored with a length penalty of 1."""
    out = tmp_path_factory.mktemp("lowercased")
    folder, sums = captions
    words = ["--data", "multi30k", "--data-dir", folder, "--form", "lowercased"]
    words += ["--alpha", "1.0", "--beam", "3", "--vocab-size", "300", "--out", out]
    words += [*SMALL, "--epochs", "8", "--batch", "64", "--rate", "0.01"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(texts, "SUMS", sums)
        words = ["workbench", "train", "translator", *words]
        patched.setattr(sys, "argv", [*map(str, words)])
        assert __main__.main() == 0
    return out


def test_a_model_is_scored_again_as_it_was_scored_at_first(
    lowercased, captions, capsys, monkeypatch
):
    """In the form that it has learned, with the search that its record names."""
    folder, sums = captions
    monkeypatch.setattr(texts, "SUMS", sums)
    record = records.read(lowercased / "metrics.json")
    assert record["decoding"] == {"beam": 3, "alpha": 1.0}
    scores = record["scores"]["test_2016_flickr"]
    expected = [f"{name:28} {each[0]:.2f}" for name, each in scores.items()]
    words = ["evaluate", "translator", lowercased, "--data-dir", folder]
    words += ["--device", "cpu"]
    for more in ([], ["--data", "multi30k:test_2016_flickr"]):
        code, output, _ = run(capsys, monkeypatch, *words, *more)
        assert (code, output.splitlines()) == (0, expected)
    _, output, _ = run(capsys, monkeypatch, *words, "--form", "raw")
    assert output.startswith("bleu_cased")
    code, _, errors = run(capsys, monkeypatch, *words, "--data", "phrasebook")
    assert code == 2 and "take --form raw" in errors


def test_translations_that_are_kept_are_compared_with_a_model(
    lowercased, captions, tmp_path, monkeypatch
):
    folder, sums = captions
    monkeypatch.setattr(texts, "SUMS", sums)
    record = records.read(lowercased / "metrics.json")
    path = tmp_path / results.OUTPUTS / "small.txt"
    record |= recording.keep_outputs(lowercased, path, folder)
    records.write(tmp_path / "small.json", record)
    asked = Evaluation(
        kind="translator",
        folder=lowercased,
        device=torch.device("cpu"),
        data_dir=folder,
    )
    answers = answer(asked)
    assert results.read_outputs("small", tmp_path) == answers.found
    for name, found in compare(asked, answers, "small", tmp_path).items():
        assert found == (0, 0, 0, 0), name
    other = replace(asked, form="raw")
    with pytest.raises(WorkbenchError, match="small has another form: 'lowercased'"):
        compare(other, answer(other), "small", tmp_path)
    other = replace(asked, split="validation")
    with pytest.raises(WorkbenchError, match="another test: 'test_2016_flickr'"):
        compare(other, answer(other), "small", tmp_path)


def test_a_translator_searches_as_typed_or_as_it_was_scored(
    lowercased, capsys, monkeypatch
):
    def translations(_, sentences, beam, alpha):
        return [Translation(f"beam {beam}, alpha {alpha}")] * len(sentences)

    monkeypatch.setattr(Translator, "translations", translations)
    words = ["translate", lowercased, "one", "--device", "cpu"]
    for more, expected in (
        ([], "beam 3, alpha 1.0"),
        (["--alpha", "0"], "beam 3, alpha 0.0"),
        (["--beam", "1"], "beam 1, alpha 1.0"),
    ):
        assert run(capsys, monkeypatch, *words, *more)[1] == f"{expected}\n"


def test_a_model_without_a_record_must_be_told_how_to_search(tmp_path):
    assert search_of(tmp_path, 2, 0.5) == (2, 0.5)
    with pytest.raises(WorkbenchError, match=r"metrics.json cannot be read"):
        search_of(tmp_path, 2)
    records.write(tmp_path / "metrics.json", a_record(1))
    with pytest.raises(WorkbenchError, match="type --beam and --alpha"):
        search_of(tmp_path)


def test_what_was_not_trained_on_can_be_scored_before_the_test(
    tmp_path, sentences, pictures, capsys, monkeypatch
):
    """A recipe is chosen on the validation set, in training and afterwards."""
    for task, metric, words in (
        ("translator", "exact_match", train_translator(sentences, tmp_path / "pairs")),
        ("vit", "accuracy", train_vit(pictures, tmp_path / "images")),
    ):
        words += ["--epochs", "1", "--score", "validation"]
        assert run(capsys, monkeypatch, *words)[0] == 0
        folder = tmp_path / ("pairs" if task == "translator" else "images")
        scores = records.read(folder / "metrics.json")["scores"]
        assert set(scores) == {"validation"}
        asked = ["evaluate", task, folder, "--score", "validation", "--device", "cpu"]
        asked += ["--beam", "1"] if task == "translator" else []
        code, output, _ = run(capsys, monkeypatch, *asked)
        assert code == 0
        wanted = f"{metric:28} {scores['validation'][metric][0]:.2f}"
        assert wanted in output.splitlines()


def test_a_vit_learns_what_is_easy(tmp_path, pictures, capsys, monkeypatch):
    words = train_vit(pictures, tmp_path, "--epochs", "12", "--rate", "0.01")
    code, output, _ = run(capsys, monkeypatch, *words, "--pooling", "mean")
    assert code == 0
    record = records.read(tmp_path / "metrics.json")
    assert record["scores"]["test"]["accuracy"] == [100.0]
    assert record["classes"] == ["blue", "red"]
    assert record["throughput"][0] > 0
    assert not (tmp_path / CHECKPOINT).exists()

    words = ["evaluate", "vit", tmp_path, "--device", "cpu"]
    code, output, _ = run(capsys, monkeypatch, *words)
    assert (code, output.split()) == (0, ["accuracy", "100.00"])
    _, output, _ = run(capsys, monkeypatch, *words, "--against", tmp_path)
    assert output.splitlines()[2].startswith("accuracy                     +0.00")


def test_a_baseline_learns_from_a_few_images(tmp_path, pictures, capsys, monkeypatch):
    options = ["--data", f"images:{pictures}", "--width", "8", "--stages", "2"]
    options += ["--device", "cpu", "--images", "6", "--warmup", "5", "--rate", "0.01"]
    words = ["train", "cnn", *options, "--epochs", "20", "--out", tmp_path]
    assert run(capsys, monkeypatch, *words)[0] == 0
    record = records.read(tmp_path / "metrics.json")
    assert (record["task"], record["data"]["images"]) == ("cnn", 6)
    assert (record["batch"], record["scores"]["test"]["accuracy"]) == (6, [100.0])
    model, config = models.load(tmp_path)
    assert models.parameters(model) == record["parameters"]
    assert (config.width, config.stages) == (8, 2)

    code, output, _ = run(capsys, monkeypatch, "evaluate", "cnn", tmp_path)
    assert (code, output.split()) == (0, ["accuracy", "100.00"])
    code, _, errors = run(capsys, monkeypatch, "evaluate", "vit", tmp_path)
    assert code == 2 and "holds a cnn, no vit" in errors


def test_few_images_are_seen_in_as_many_steps_as_all(
    tmp_path, pictures, capsys, monkeypatch
):
    """Of 40 pictures 28 are learnt from: 3 batches of 8, in the preset's 50 epochs."""
    monkeypatch.setattr(vision, "fit", stop_at_the_training)
    for count, batch in (("4", 4), ("20", 8), ("28", 8)):
        words = train_vit(pictures, tmp_path, "--images", count)
        with pytest.raises(StoppedError) as stopped:
            run(capsys, monkeypatch, *words)
        training, batches = stopped.value.args
        assert (training.steps, batches.size) == (3 * 50, batch)
        assert len(batches.images) == int(count)
    words = train_vit(pictures, tmp_path, "--images", "4", "--epochs", "2")
    with pytest.raises(StoppedError) as stopped:
        run(capsys, monkeypatch, *words)
    assert (stopped.value.args[0].steps, stopped.value.args[0].epochs) == (None, 2)


class StoppedError(Exception):
    """Raised in place of a training; holds its configuration and its batches."""


def stop_at_the_training(model, loss_of, batches, validate, training, *_, **__):
    raise StoppedError(training, batches)


def test_a_stopped_run_goes_on_and_ends_the_same(
    tmp_path, pictures, capsys, monkeypatch
):
    whole = train_vit(pictures, tmp_path / "whole", "--epochs", "3")
    assert run(capsys, monkeypatch, *whole)[0] == 0
    words = train_vit(pictures, tmp_path / "cut", "--epochs", "3")
    score = vision.accuracy_of
    calls = []

    def stop(model, batches):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return score(model, batches)

    monkeypatch.setattr(vision, "accuracy_of", stop)
    code, _, errors = run(capsys, monkeypatch, *words)
    assert code == 130 and "--resume" in errors
    monkeypatch.setattr(vision, "accuracy_of", score)

    code, _, errors = run(capsys, monkeypatch, *words)
    assert code == 2 and "--resume" in errors  # the unfinished run is not overwritten
    assert run(capsys, monkeypatch, *words, "--resume")[0] == 0
    whole, cut = (
        (tmp_path / name / "model.safetensors").read_bytes()
        for name in ("whole", "cut")
    )
    assert whole == cut


def test_attention_written_and_fused_train_alike(
    tmp_path, sentences, capsys, monkeypatch
):
    losses = []
    for kind in ("written", "fused"):
        words = train_translator(sentences, tmp_path / kind, "--steps", "4")
        words += ["--attention", kind, "--dropout", "0"]
        assert run(capsys, monkeypatch, *words)[0] == 0
        record = records.read(tmp_path / kind / "metrics.json")
        assert record["training"]["attention"] == kind
        losses.append(record["history_of_training"]["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_a_batch_that_is_read_twice_trains_another_model_the_same_each_time(
    tmp_path, sentences, capsys, monkeypatch
):
    losses = []
    for name, alpha in (("once", 0), ("twice", 5), ("again", 5)):
        words = train_translator(sentences, tmp_path / name, "--steps", "4")
        words += ["--r-drop", str(alpha)]
        assert run(capsys, monkeypatch, *words, "--dropout", "0.3")[0] == 0
        record = records.read(tmp_path / name / "metrics.json")
        losses.append(record["history_of_training"]["loss"])
    assert losses[0] != losses[1] == losses[2]


def test_without_dropout_a_batch_that_is_read_twice_is_read_once(
    tmp_path, sentences, capsys, monkeypatch
):
    losses = []
    for name, alpha in (("once", 0), ("twice", 5)):
        words = train_translator(sentences, tmp_path / name, "--steps", "4")
        words += ["--attention", "fused", "--precision", "bfloat16", "--dropout", "0"]
        assert run(capsys, monkeypatch, *words, "--r-drop", str(alpha))[0] == 0
        record = records.read(tmp_path / name / "metrics.json")
        losses.append(record["history_of_training"]["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=0.01)


# --- Clear errors --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "translator", "--data", "wmt", "--out", "OUT"], "'wmt'.*phrasebook"),
        (["train", "vit", "--data", "mnist", "--out", "OUT"], "'mnist'.*digits"),
        (["train", "vit", "--device", "abacus", "--out", "OUT"], "abacus.*auto"),
        (["train", "vit", "--out", "OUT", "--resume"], "leave out --resume"),
        (["train", "vit", "--out", "OUT", "--heads", "5"], "heads"),
        (["train", "vit", "--out", "OUT", "--images", "9"], "digits has .* 9 cannot"),
        (["train", "cnn", "--data", "mnist", "--out", "OUT"], "'mnist'.*digits"),
        (["train", "cnn", "--out", "OUT", "--width", "9"], "width"),
        (["train", "vit", "--out", "OUT", "--rate", "-1"], "peak_rate"),
        (["train", "vit", "--out", "OUT", "--parts", "OUT"], "assemble"),
        (["train", "vit", "--data", "images:OUT/none", "--out", "OUT"], "none"),
        (["train", "translator", "--data", "text:OUT/x", "--out", "OUT"], "x"),
        (["evaluate", "vit", "OUT/none"], "none.*config.json"),
        (["evaluate", "lm", "OUT/none", "--against", "x"], "compares translators"),
        (["evaluate", "lm", "OUT/none", "--score", "validation"], "for translators"),
        (["translate", "OUT/none", "A man."], "none.*config.json"),
    ],
)
def test_bad_input_is_one_line(tmp_path, capsys, monkeypatch, words, message):
    import re

    words = [word.replace("OUT", str(tmp_path)) for word in words]
    code, output, errors = run(capsys, monkeypatch, *words)
    assert (code, output) == (2, "")
    assert errors.startswith("error: ") and errors.count("\n") == 1
    assert re.search(message, errors)


def test_a_model_of_the_other_kind_is_refused(tmp_path):
    config = models.VisionConfig(8, 4, 1, 2, 8, 2, 1, 8)
    models.save(tmp_path, models.build(config), config)
    arguments = __main__.parser().parse_args(["translate", str(tmp_path), "x"])
    with pytest.raises(WorkbenchError, match="holds a vit and no translator"):
        arguments.run(arguments)


def test_every_command_has_help(capsys):
    for words in (
        ["train", "translator"],
        ["train", "vit"],
        ["train", "cnn"],
        ["train", "lm"],
        ["evaluate"],
        ["translate"],
        ["write"],
    ):
        with pytest.raises(SystemExit) as ended:
            __main__.parser().parse_args([*words, "--help"])
        assert ended.value.code == 0
        assert "DIR" in capsys.readouterr().out


def test_assembling_needs_no_torch():
    program = (
        "import sys; from workbench.__main__ import parser;"
        "parser(capstones=False); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


# --- Presets and records -------------------------------------------------------------


def test_presets_are_models_within_the_published_sizes():
    multi30k, cifar10 = TRANSLATORS["multi30k"], VISION["cifar10"]
    translator = models.TranslatorConfig(
        vocab_size=multi30k.vocab_size,
        d_model=multi30k.d_model,
        heads=multi30k.heads,
        layers=multi30k.layers,
        d_ff=multi30k.d_ff,
    )
    vision = models.VisionConfig(
        image_size=32,
        patch_size=cifar10.patch_size,
        channels=3,
        classes=10,
        d_model=cifar10.d_model,
        heads=cifar10.heads,
        layers=cifar10.layers,
        d_ff=cifar10.d_ff,
    )
    assert 2_000_000 < models.parameters_of(translator) <= 3_000_000
    assert 2_000_000 < models.parameters_of(vision) <= 3_000_000


def test_the_baselines_are_no_larger_than_what_they_are_set_beside():
    for name, side, channels in (("digits", 8, 1), ("cifar10", 32, 3)):
        vision, baseline = VISION[name], BASELINES[name]
        shape = (vision.d_model, vision.heads, vision.layers, vision.d_ff)
        vit = models.VisionConfig(side, vision.patch_size, channels, 10, *shape)
        network = models.BaselineConfig(
            side, channels, 10, baseline.width, baseline.stages
        )
        sizes = [models.parameters_of(config) for config in (network, vit)]
        assert sizes[1] / 4 < sizes[0] <= sizes[1]
        assert baseline.augmentation == vision.augmentation
        assert baseline.training == vision.training


def test_bfloat16_is_chosen_on_cuda_alone():
    words = ["train", "vit", "--out", "x"]
    arguments = __main__.parser().parse_args(words)
    for name, precision in (("cpu", "float32"), ("cuda", "bfloat16")):
        preset = presets.VISION["digits"].training
        config = training_config(preset, arguments, torch.device(name))
        assert config.precision == precision
        assert config.peak_rate == preset.peak_rate


def test_the_loss_is_read_less_often_on_cuda():
    arguments = __main__.parser().parse_args(["train", "vit", "--out", "x"])
    preset = presets.VISION["digits"].training
    for name, steps in (("cpu", preset.read_every), ("mps", 20), ("cuda", 100)):
        config = training_config(preset, arguments, torch.device(name))
        assert config.read_every == steps


@pytest.mark.parametrize("has", [True, False])
def test_a_processor_that_imitates_bfloat16_is_told_of(has, monkeypatch, capsys):
    monkeypatch.setattr(options, "multiplies_bfloat16", lambda device: has)
    preset = presets.VISION["digits"].training
    for precision in ("auto", "bfloat16"):
        words = ["train", "vit", "--out", "x", "--precision", precision]
        arguments = __main__.parser().parse_args(words)
        config = training_config(preset, arguments, torch.device("cpu"))
        told = capsys.readouterr().err
        assert ("float32" in told) == (config.precision == "bfloat16" and not has)


def a_record(seed, **more):
    history = {"train_seconds": [2.0], "compile_seconds": [0.0], "examples": [100]}
    record = records.make_record(
        "vit",
        {"name": "digits"},
        seed=seed,
        device=torch.device("cpu"),
        parameters=7,
        history=history,
        scores={"test": {"accuracy": 90.0 + seed}},
        training={"seed": seed, "epochs": TrainingConfig().epochs},
    )
    return record | more


def test_a_record_is_complete_and_survives_the_file(tmp_path):
    record = a_record(1)
    assert set(records.KEYS) <= set(record)
    assert record["throughput"] == [50.0]
    assert record["versions"]["torch"].split("+")[0] == torch.__version__.split("+")[0]
    records.write(tmp_path / "metrics.json", record)
    assert records.read(tmp_path / "metrics.json") == record


def test_records_of_several_seeds_become_one():
    together = records.combine([a_record(1), a_record(2), a_record(3)])
    assert together["seeds"] == [1, 2, 3]
    assert together["scores"] == {"test": {"accuracy": [91.0, 92.0, 93.0]}}
    assert together["train_seconds"] == [2.0] * 3
    each = records.split(together)
    assert [one["seeds"] for one in each] == [[1], [2], [3]]
    assert records.combine(each) == together
    with pytest.raises(WorkbenchError, match="occurs twice"):
        records.combine([a_record(1), a_record(1)])
    with pytest.raises(WorkbenchError, match="differ in device"):
        records.combine([a_record(1), a_record(2, device="another")])
    with pytest.raises(WorkbenchError, match="no record"):
        records.combine([])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ('{"task": ', "not JSON"),
        ('{"task": "vit"}', "lacks 'data'"),
        ("[1]", "lacks 'task'"),
    ],
)
def test_a_broken_record_is_a_clear_error(tmp_path, text, message):
    path = tmp_path / "metrics.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(WorkbenchError, match=message):
        records.read(path)


def test_the_records_command_can_be_typed_again(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["x", "train", "vit", "--data", "images:my files"])
    expected = "python -m workbench train vit --data 'images:my files'"
    assert records.command() == expected
    assert json.dumps(records.versions())


@pytest.mark.parametrize(
    "given", [["--data-dir", "/home/ada"], ["--data-dir=/home/ada"]]
)
def test_a_record_does_not_say_where_the_data_lie(given, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["x", "train", "vit", *given, "--resume"])
    assert "ada" not in records.command() and "DIR --resume" in records.command()
