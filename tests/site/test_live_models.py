"""The trained models as graphs: they compute what the reference's modules compute."""

import gzip
import json
import random
from dataclasses import replace

import numpy
import pytest
import torch
from onnx import checker
from onnx.reference import ReferenceEvaluator

from tools.site import fetch_runtime, live_models
from workbench.data import everyday
from workbench.data.tokenizer import TOKENIZER_FILE, Tokenizer
from workbench.model import models
from workbench.use import results

TOLERANCE = 1e-4
LARGEST = 6e6  # bytes that the runtime and both models have together, compressed
LARGEST_FOLDER = 1.5e6  # of a model alone: a phone's reader waits for it


def opened(files: dict, folder) -> dict:
    """Give the graphs of a model, checked, in ONNX's own slow interpreter."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    graphs = {}
    for name in set(files) - {live_models.WEIGHTS}:
        checker.check_model(str(folder / name), full_check=True)
        graphs[name] = ReferenceEvaluator(str(folder / name))
    return graphs


def outputs(graph, given: dict) -> dict:
    return dict(zip(graph.output_names, graph.run(None, given), strict=True))


def whole(*values) -> numpy.ndarray:
    return numpy.array(values, dtype=numpy.int32)


def test_translators_graphs_write_what_the_reference_writes(tmp_path):
    folder = results.model_folder("everyday")
    model, config = models.load(folder)
    tokenizer = Tokenizer.load(folder / TOKENIZER_FILE)
    graphs = opened(live_models.translator(model, config, small=True), tmp_path)
    model = live_models.rounded(model)
    for english, german in everyday.draw(random.Random(1), "train", 3):
        source = tokenizer.encode(english)
        target = [Tokenizer.SOS, *tokenizer.encode(german)]
        given = outputs(graphs["encoder"], {"ids": whole(*source)})
        empty = numpy.zeros((config.heads, 0, config.d_model // config.heads))
        kept = [name for name in graphs["decoder"].input_names if "back_" in name]
        given |= dict.fromkeys(kept, empty.astype(numpy.float32))
        logits = []
        for place, token in enumerate(target):
            newest = {"id": whole(token), "place": whole(place)}
            made = outputs(graphs["decoder"], given | newest)
            given |= {name: made[f"next_{name}"] for name in kept}
            logits.append(made["logits"])
        with torch.no_grad():
            expected = model(torch.tensor([source]), torch.tensor([target]))[0]
        torch.testing.assert_close(
            torch.tensor(numpy.stack(logits)), expected, atol=TOLERANCE, rtol=0
        )


def test_vision_graph_reads_what_the_reference_reads(tmp_path):
    model, config = models.load(results.model_folder("digits"))
    graph = opened(live_models.vision(model, config), tmp_path)["vision"]
    image = torch.randn(1, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = model(image[None])[0]
        tokens = model.position(model.patches(image[None]))[:, [0, 3]]
        of_two = model.head(model.encoder(tokens))[0]
    for patches, reference in ((range(4), expected), ((0, 3), of_two)):
        made = outputs(graph, {"image": image.numpy(), "patches": whole(*patches)})
        torch.testing.assert_close(
            torch.tensor(made["logits"]), reference, atol=TOLERANCE, rtol=0
        )
        assert made["attention"].sum(-1) == pytest.approx(1, abs=1e-5)


def test_everything_together_is_small():
    sizes = {name: live_models.facts(name)["bytes"] for name in live_models.MADE}
    folders = [sizes.pop(name) for name in sorted(sizes) if name.endswith("_folder")]
    assert folders and max(folders) <= LARGEST_FOLDER, folders
    assert sum(sizes.values()) <= LARGEST, sizes


def test_files_are_put_together_so_that_they_can_be_taken_apart():
    made = live_models.together({"a": b"12", "b": b"", "c": b"345"})
    length = int.from_bytes(made[:4], "little")
    assert json.loads(made[4 : 4 + length]) == {"a": 2, "b": 0, "c": 3}
    assert made[4 + length :] == b"12345"
    assert gzip.decompress(gzip.compress(made, 9, mtime=0)) == made


def test_weights_are_rounded_to_a_byte_by_a_unit_for_each_row():
    matrix = torch.tensor([[1.27, -0.004, 0.02], [0.0, 0.0, 0.0], [-50.0, 25.0, 0.1]])
    whole, units = live_models.as_bytes(matrix)
    assert whole.tolist() == [[127, 0, 2], [0, 0, 0], [-127, 64, 0]]
    torch.testing.assert_close(units[[0, 2], 0], torch.tensor([0.01, 50 / 127]))
    assert ((whole * units - matrix).abs() <= units / 2 + 1e-7).all()


def test_other_shapes_are_refused():
    model, config = models.load(results.model_folder("everyday"))
    with pytest.raises(ValueError, match="pre-norm"):
        live_models.translator(model, replace(config, norm_first=False))


def test_a_damaged_runtime_is_refused(tmp_path, monkeypatch):
    name = "ort-wasm-simd-threaded.mjs"
    good = fetch_runtime.unpacked(name)
    packed = fetch_runtime.lzma.compress(good + b" ")
    (tmp_path / f"{name}.xz").write_bytes(packed)
    monkeypatch.setattr(fetch_runtime, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match="damaged"):
        fetch_runtime.unpacked(name)
