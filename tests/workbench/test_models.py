"""Models: configurations, parts, interchangeable attention, files."""

import json
import shutil
import struct
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import transformer.multi_head_attention
from transformer.attention import scaled_dot_product_attention
from workbench.errors import WorkbenchError
from workbench.model.attention import fused_attention
from workbench.model.models import (
    BaselineConfig,
    TranslatorConfig,
    VisionConfig,
    build,
    from_json,
    load,
    load_parts,
    parameters,
    parameters_of,
    save,
    to_json,
    unwrap,
    use_attention,
)

REFERENCE = Path(transformer.multi_head_attention.__file__).parent
TRANSLATOR = TranslatorConfig(11, 16, 4, 2, 24, 20, dropout=0.0)
VISION = VisionConfig((8, 12), 4, 3, 5, 16, 2, 2, 24, pooling="mean")
BASELINE = BaselineConfig((8, 12), 3, 5, 8, 2, dropout=0.1)
CONFIGS = pytest.mark.parametrize(
    "config", [TRANSLATOR, VISION, BASELINE], ids=["text", "vit", "cnn"]
)
SOURCE = torch.tensor([[5, 9, 4, 7, 3], [8, 4, 3, 0, 0]])
TARGET = torch.tensor([[2, 4, 7, 1], [2, 6, 0, 0]])


def output_of(model: nn.Module, config) -> torch.Tensor:
    if config is TRANSLATOR:
        return model(SOURCE, TARGET)
    images = torch.rand(2, 3, 8, 12, generator=torch.Generator().manual_seed(3))
    return model(images)


# --- configurations -------------------------------------------------------------------


@CONFIGS
def test_a_configuration_survives_json(config) -> None:
    assert from_json(to_json(config)) == config


def test_the_kind_is_the_command_lines_word() -> None:
    assert json.loads(to_json(TRANSLATOR))["kind"] == "translator"
    assert json.loads(to_json(VISION))["kind"] == "vit"
    assert json.loads(to_json(BASELINE))["kind"] == "cnn"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 3}, "unknown key depth"),
        ({"layers": None}, "layers must be a whole number, not None"),
        ({"layers": True}, "layers must be a whole number, not True"),
        ({"layers": "4"}, "layers must be a whole number, not '4'"),
        ({"layers": 0}, "layers must be from 1 to 256, not 0"),
        ({"layers": 10**9}, "layers must be from 1 to 256"),
        ({"max_length": 10**9}, "max_length must be from 1 to 100000"),
        ({"heads": 3}, "heads: 3 do not divide d_model 16"),
        ({"d_model": 15, "heads": 3}, "d_model: 15 is odd"),
        ({"dropout": 1.0}, "dropout must be a number from 0 to below 1"),
        ({"dropout": float("nan")}, "dropout must be a number from 0 to below 1"),
        ({"norm_first": 1}, "norm_first must be true or false, not 1"),
        ({"activation": "tanh"}, "activation must be relu or gelu, not 'tanh'"),
        ({"target": ""}, "target must be a text"),
        ({"kind": "rnn"}, "kind is 'rnn', and must be one of translator, vit, cnn"),
        ({"kind": ["vit"]}, "kind is"),
    ],
    ids=str,
)
def test_a_wrong_key_is_named(change, message) -> None:
    values = {"kind": "translator", **asdict(TRANSLATOR), **change}
    with pytest.raises(WorkbenchError) as caught:
        from_json(json.dumps(values), "my.json")
    assert str(caught.value).startswith("my.json: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_size": [8, 12, 3]}, "image_size must be"),
        ({"image_size": "8"}, "image_size must be"),
        ({"image_size": [8, 0]}, "image_size must be from 1"),
        ({"patch_size": 3}, "patch_size: 3 pixels do not divide"),
        ({"pooling": "max"}, "pooling must be class or mean, not 'max'"),
    ],
    ids=str,
)
def test_a_wrong_key_of_a_vision_model_is_named(change, message) -> None:
    values = {"kind": "vit", **asdict(VISION), **change}
    with pytest.raises(WorkbenchError, match=message):
        from_json(json.dumps(values))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_size": [8, 0]}, "image_size must be from 1"),
        ({"width": 12}, "width: 12 is no multiple of 8"),
        ({"stages": 5}, "cannot be halved 4 times; choose fewer stages"),
        ({"stages": 10**6}, "stages must be from 1 to 12"),
        ({"heads": 2}, "unknown key heads"),
    ],
    ids=str,
)
def test_a_wrong_key_of_the_baseline_is_named(change, message) -> None:
    values = {"kind": "cnn", **asdict(BASELINE), **change}
    with pytest.raises(WorkbenchError, match=message):
        from_json(json.dumps(values))


def test_a_missing_key_is_named() -> None:
    values = json.loads(to_json(TRANSLATOR))
    del values["d_ff"], values["heads"]
    with pytest.raises(WorkbenchError, match="no key d_ff, heads"):
        from_json(json.dumps(values))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '"vit"'])
def test_what_is_no_configuration_is_refused(text) -> None:
    with pytest.raises(WorkbenchError, match=r"config\.json"):
        from_json(text)


# --- parts and models -----------------------------------------------------------------


@CONFIGS
def test_the_number_of_parameters_is_known_before_it_is_built(config) -> None:
    expected = sum(each.numel() for each in build(config).parameters())
    assert parameters(build(config)) == parameters_of(config) == expected


def test_a_model_too_large_for_any_memory_can_be_counted() -> None:
    config = TranslatorConfig(10_000_000, 1_000_000, max_length=10)
    assert parameters_of(config) > 10**13


def copy_of_the_reference(folder: Path) -> Path:
    shutil.copytree(REFERENCE, folder / "transformer")
    return folder


def test_somebodys_own_parts_stand_beside_the_reference(tmp_path) -> None:
    """Both models work at the same time, and the reference stays what it was."""
    folder = copy_of_the_reference(tmp_path)
    attention = folder / "transformer/attention.py"
    text = attention.read_text(encoding="utf-8")
    assert "output = weights @ v" in text
    doubled = text.replace("output = weights @ v", "output = 2 * weights @ v")
    attention.write_text(doubled, encoding="utf-8")
    own, reference = load_parts(folder), load_parts()
    assert sys.modules["transformer.attention"] is reference.attention
    q = torch.randn(2, 3, 4)
    one, _ = reference.scaled_dot_product_attention(q, q, q)
    two, _ = own.scaled_dot_product_attention(q, q, q)
    torch.testing.assert_close(two, 2 * one)
    models = build(TRANSLATOR, own), build(TRANSLATOR, reference)
    models[0].load_state_dict(models[1].state_dict())
    first, second = (output_of(model, TRANSLATOR) for model in models)
    assert not torch.allclose(first, second)
    folder_itself = load_parts(folder / "transformer")
    assert folder_itself.Transformer is not reference.Transformer


def test_somebodys_own_parts_can_be_compiled(tmp_path) -> None:
    """The compiler finds the globals of their modules, not of the reference's."""
    folder = copy_of_the_reference(tmp_path)
    attention = folder / "transformer/attention.py"
    text = attention.read_text(encoding="utf-8")
    text = text.replace("math.sqrt(d_k)", "SHARPNESS").replace(
        "def softmax(", "SHARPNESS = 0.5\n\n\ndef softmax("
    )
    attention.write_text(text, encoding="utf-8")
    model = build(TRANSLATOR, load_parts(folder)).eval()
    compiled = torch.compile(model, backend="eager")
    expected = output_of(model, TRANSLATOR)
    torch.testing.assert_close(output_of(compiled, TRANSLATOR), expected)


def test_the_exchange_reaches_a_compiled_model() -> None:
    """It is compiled anew when the attention is another one."""
    model = build(TRANSLATOR).eval()
    graphs = []

    def backend(graph, inputs):
        graphs.append({str(node.target) for node in graph.graph.nodes})
        return graph

    compiled = torch.compile(model, backend=backend)
    for kind in ("written", "fused", "written"):
        with use_attention(kind):
            output_of(compiled, TRANSLATOR)
    is_fused = [
        any("scaled_dot_product" in target for target in graph) for graph in graphs
    ]
    assert is_fused == [False, True]


def test_parts_that_are_missing_are_named_when_they_are_needed(tmp_path) -> None:
    folder = copy_of_the_reference(tmp_path)
    (folder / "transformer/decoder.py").write_text("def broken(:\n")
    (folder / "transformer/vision_transformer.py").unlink()
    parts = load_parts(folder)
    assert isinstance(parts.Encoder(1, 8, 2, 8), nn.Module)
    with pytest.raises(WorkbenchError, match=r"no Transformer.*decoder\.py cannot be"):
        build(TRANSLATOR, parts)
    with pytest.raises(WorkbenchError, match=r"vision_transformer\.py is missing"):
        build(VISION, parts)


def test_a_folder_without_parts_is_refused(tmp_path) -> None:
    with pytest.raises(WorkbenchError, match="python -m workbench assemble"):
        load_parts(tmp_path)


# --- attention ------------------------------------------------------------------------

B, HEADS, T_Q, T_K, D_K, D_V = 2, 3, 5, 7, 4, 6
MASKS = {
    "none": None,
    "causal": torch.ones(T_Q, T_K, dtype=torch.bool).tril(2),
    "padding": (torch.arange(T_K) < torch.tensor([[7], [3]]))[:, None, None],
    "a row without keys": torch.ones(T_Q, T_K, dtype=torch.bool).tril(-2),
    "a sentence without keys": (torch.arange(T_K) < torch.tensor([[7], [0]]))[
        :, None, None
    ],
}


@pytest.mark.parametrize("name", MASKS)
def test_fused_attention_equals_the_written_one(name) -> None:
    """Values and all gradients; where nothing may be attended both are zero."""
    torch.manual_seed(1)
    shapes = ((T_Q, D_K), (T_K, D_K), (T_K, D_V))
    inputs = [3 * torch.randn(B, HEADS, *shape) for shape in shapes]
    cotangent = torch.randn(B, HEADS, T_Q, D_V)
    found = []
    for attend in (scaled_dot_product_attention, fused_attention):
        leaves = [each.clone().requires_grad_() for each in inputs]
        output, _ = attend(*leaves, MASKS[name])
        gradients = torch.autograd.grad((output * cotangent).sum(), leaves)
        found.append((output, *gradients))
    for written, fused in zip(*found, strict=True):
        torch.testing.assert_close(fused, written, atol=1e-5, rtol=1e-5)


def test_mixed_precision_leaves_a_cpus_kernel_in_float32() -> None:
    """What comes in is rounded, what the kernel makes of it is not."""
    torch.manual_seed(3)
    rounded = [torch.randn(B, HEADS, 5, D_K).bfloat16() for _ in range(3)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, _ = fused_attention(*rounded)
    exact, _ = scaled_dot_product_attention(*(each.float() for each in rounded))
    torch.testing.assert_close(output, exact, atol=1e-5, rtol=1e-5)


@CONFIGS
def test_a_model_with_fused_attention_computes_the_same(config) -> None:
    """Outputs and the gradient of every parameter, with a sentence of padding."""
    torch.manual_seed(2)
    model = build(config).eval()
    found = []
    for kind in ("written", "fused"):
        model.zero_grad()
        with use_attention(kind):
            output = output_of(model, config)
            output.square().mean().backward()
        gradients = [parameter.grad.clone() for parameter in model.parameters()]
        found.append((output, *gradients))
    for written, fused in zip(*found, strict=True):
        torch.testing.assert_close(fused, written, atol=1e-5, rtol=1e-4)


def test_the_exchange_ends_with_the_block_even_by_an_error() -> None:
    module = transformer.multi_head_attention
    with pytest.raises(KeyError), use_attention("fused"):
        assert module.scaled_dot_product_attention is fused_attention
        with use_attention("written"):
            assert module.scaled_dot_product_attention is scaled_dot_product_attention
        assert module.scaled_dot_product_attention is fused_attention
        raise KeyError
    assert module.scaled_dot_product_attention is scaled_dot_product_attention


def test_another_kind_of_attention_is_refused() -> None:
    with pytest.raises(WorkbenchError, match="'flash'"), use_attention("flash"):
        pass


def test_the_exchange_reaches_somebodys_own_parts_and_no_others(tmp_path) -> None:
    own = load_parts(copy_of_the_reference(tmp_path))
    with use_attention("fused", own):
        assert own.multi_head_attention.scaled_dot_product_attention is fused_attention
        module = transformer.multi_head_attention
        assert module.scaled_dot_product_attention is scaled_dot_product_attention


# --- files ----------------------------------------------------------------------------


@CONFIGS
def test_what_was_saved_is_loaded(config, tmp_path) -> None:
    torch.manual_seed(3)
    model = build(config).eval()
    save(tmp_path / "new", model, config, {"tokenizer.json": "{}"})
    names = {each.name for each in (tmp_path / "new").iterdir()}
    assert names == {"model.safetensors", "config.json", "tokenizer.json"}
    random = torch.get_rng_state()
    loaded, its_config = load(tmp_path / "new")
    assert torch.equal(torch.get_rng_state(), random)
    assert its_config == config
    assert not loaded.training
    assert torch.equal(output_of(loaded, config), output_of(model, config))


def test_a_compiled_model_is_saved_under_its_own_names(tmp_path) -> None:
    model = build(TRANSLATOR)
    compiled = torch.compile(model, backend="eager")
    assert unwrap(compiled) is model
    save(tmp_path, compiled, TRANSLATOR)
    assert load_file(tmp_path / "model.safetensors").keys() == model.state_dict().keys()


@pytest.fixture
def saved(tmp_path) -> Path:
    save(tmp_path, build(TRANSLATOR), TRANSLATOR)
    return tmp_path


def change_weights(folder: Path, change) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


NAME = "decoder.layers.1.feed_forward.w_1"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop(NAME), f"lacks {NAME}"),
        (lambda t: t.update(extra=torch.ones(2)), "unknown to the model, extra"),
        (
            lambda t: t.update({NAME: t[NAME].T.contiguous()}),
            r"has the shape \(24, 16\)",
        ),
        (lambda t: t.update({NAME: t[NAME].long()}), f"{NAME} holds I64"),
        (lambda t: t[NAME].fill_(float("nan")), f"{NAME} holds NaN"),
    ],
    ids=["missing", "unknown", "shape", "type", "NaN"],
)
def test_weights_that_do_not_fit_are_refused_by_name(saved, change, message) -> None:
    change_weights(saved, change)
    with pytest.raises(WorkbenchError, match=message) as caught:
        load(saved)
    assert "model.safetensors" in str(caught.value)


def test_half_precision_weights_are_read(saved) -> None:
    change_weights(saved, lambda t: t.update({k: v.bfloat16() for k, v in t.items()}))
    model, _ = load(saved)
    assert {each.dtype for each in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("length", [0, 4, 100, 5_000, -1])
def test_a_file_cut_short_is_refused(saved, length) -> None:
    path = saved / "model.safetensors"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(WorkbenchError, match="not a whole safetensors file"):
        load(saved)


def test_a_header_that_lies_about_its_length_is_refused(saved) -> None:
    path = saved / "model.safetensors"
    path.write_bytes(struct.pack("<Q", 2**62) + path.read_bytes()[8:])
    with pytest.raises(WorkbenchError, match="not a whole safetensors file"):
        load(saved)


class Evil:
    """Runs code when a pickle of it is read."""

    def __reduce__(self):
        return (exec, ("import sys; sys.modules['was_run'] = sys",))


def test_a_pickle_is_refused_and_not_run(saved) -> None:
    torch.save({"weights": Evil()}, saved / "model.safetensors")
    with pytest.raises(WorkbenchError, match="of another format"):
        load(saved)
    assert "was_run" not in sys.modules


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_missing_file_is_named(saved, name) -> None:
    (saved / name).unlink()
    with pytest.raises(WorkbenchError, match=name):
        load(saved)


def test_a_configuration_of_another_size_is_refused_before_it_is_built(saved) -> None:
    """These weights would need 40 TB."""
    values = {"kind": "translator", **asdict(TRANSLATOR)}
    values |= {"vocab_size": 10_000_000, "d_model": 1_000_000, "heads": 1}
    (saved / "config.json").write_text(json.dumps(values))
    with pytest.raises(WorkbenchError, match="has the shape"):
        load(saved)


def test_a_save_that_fails_leaves_the_last_model(saved, monkeypatch) -> None:
    before = (saved / "model.safetensors").read_bytes()

    def full_disk(tensors, path, metadata):
        Path(path).write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr("workbench.model.models.save_file", full_disk)
    with pytest.raises(OSError, match="no space"):
        save(saved, build(TRANSLATOR), TRANSLATOR)
    assert (saved / "model.safetensors").read_bytes() == before
    load(saved)


# --- what an ablation changes


def test_an_output_of_its_own_begins_as_the_embedding_and_is_trained_apart() -> None:
    torch.manual_seed(0)
    tied = build(TRANSLATOR).eval()
    untied = build(replace(TRANSLATOR, tied=False)).eval()
    state = tied.state_dict()
    untied.load_state_dict({**state, "output": state["embedding.weight"]})
    assert torch.equal(tied(SOURCE, TARGET), untied(SOURCE, TARGET))
    with torch.no_grad():
        untied.output.mul_(2)
    assert torch.allclose(2 * tied(SOURCE, TARGET), untied(SOURCE, TARGET))
    assert parameters(untied) == parameters(tied) + TRANSLATOR.vocab_size * 16


def test_without_the_scale_a_smaller_table_is_looked_up() -> None:
    torch.manual_seed(0)
    unscaled = build(replace(TRANSLATOR, scaled=False)).eval()
    table = unscaled.embedding.weight
    assert torch.allclose(unscaled.embedding(SOURCE), table[SOURCE])
