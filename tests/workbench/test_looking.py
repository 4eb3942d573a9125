"""What is read out of a language model, what it is shown on, and runs for a law."""

import json
import math

import pytest
import torch
import torch.nn.functional as F

from tests.workbench.test_language_model import CHOICES, PARTS, built
from tools.measure import scaling as tool
from workbench.data import corpora, repeats
from workbench.errors import WorkbenchError
from workbench.model.blocks import rotate
from workbench.training import records
from workbench.use import looking, results, scaling, scoring

# --- weights and residual stream ------------------------------------------------------


@CHOICES
def test_weights_and_stream_are_those_of_the_model(config):
    model, ids = built(config), torch.randint(11, (9,))
    weights = looking.attention_weights(model, ids)
    stream = looking.residual_stream(model, ids)
    assert stream.shape == (config.layers + 1, 9, config.d_model)
    logits = PARTS.tied_logits(model.norm(stream[-1]), model.embedding.weight)
    torch.testing.assert_close(logits, model(ids[None])[0])
    turns = None if model.turns is None else model.turns[:9]
    for block, x, found in zip(model.blocks, stream, weights, strict=False):
        q, k, _ = block.project(x[None])
        if turns is not None:
            q, k = rotate(q, turns), rotate(k, turns)
        mixed = F.scaled_dot_product_attention(
            q,
            k,
            torch.eye(9).expand(*k.shape[:2], 9, 9),
            is_causal=True,
            enable_gqa=True,
        )  # of values that are unit vectors the weights are left
        torch.testing.assert_close(found, mixed[0], atol=1e-5, rtol=1e-4)
    assert not any(block._forward_hooks for block in model.blocks)


# --- lines to copy --------------------------------------------------------------------


def test_a_line_is_said_twice_and_has_no_character_twice_before():
    lengths = set()
    for line in repeats.told("validation").splitlines():
        half = len(line) // 2
        assert line[:half] == line[half:] and len(set(line[:half])) == half
        lengths.add(half)
    assert lengths == set(range(repeats.SHORTEST, repeats.LONGEST + 1))
    texts = corpora.load_texts("repeats")
    assert texts.validation == repeats.told("validation") != texts.test[: 10**4]


@pytest.mark.parametrize("name", ["induction_1", "induction_2"])
def test_the_head_that_copies_is_in_the_model_with_two_layers_alone(name):
    model, tokenizer = looking.load(name)
    scores = scoring.copying_scores(model, tokenizer, PARTS)
    own = records.read(results.model_folder(name) / records.FILE)["scores"]["test"]
    for key, value in scores.items():
        assert value == pytest.approx(own[key][0], rel=0.02, abs=0.02)
    found = results.read_record(name)["scores"]["test"]
    heads = [score > 0.5 for score in found["induction"]]
    assert heads == [name == "induction_2"] * 5
    assert all(
        (share > 90) == has for share, has in zip(found["copied"], heads, strict=True)
    )


# --- runs for a law -------------------------------------------------------------------

RUN = {"parameters": 5000, "embedding": 900, "tokens": 10**6}
RUN |= {"nats_per_character": 2.0, "held_out": False}


def write(folder, runs) -> None:
    path = folder / scaling.FILE
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"runs": runs}), encoding="utf-8")


def test_runs_come_by_their_budget(tmp_path):
    assert scaling.recorded(tmp_path) == []
    write(tmp_path, [RUN | {"tokens": tokens} for tokens in (9, 4, 7, 1, 8, 2)])
    found = scaling.recorded(tmp_path)
    assert [run["tokens"] for run in found] == [1, 2, 4, 7, 8, 9]
    assert found[0]["nats_per_token"] == 2.0
    assert found[0]["bits_per_byte"] == pytest.approx(2 / math.log(2))
    assert scaling.budget(RUN) == 6 * 5900 * 10**6


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ({"runs": []}, "no list of at least 6"),
        ([RUN] * 5, "no list of at least 6"),
        ([RUN] * 6 + [3], "run 6 is 3"),
        ([RUN] * 6 + [{"parameters": 1}], "run 6 has no embedding"),
        ([RUN] * 6 + [RUN | {"tokens": 0}], "tokens 0, .* whole number from 1"),
        ([RUN] * 6 + [RUN | {"tokens": True}], "tokens True, .* whole number"),
        ([RUN] * 6 + [RUN | {"nats_per_character": float("nan")}], "character nan"),
        ([RUN] * 6 + [RUN | {"nats_per_character": "2"}], "character '2'"),
    ],
)
def test_a_bad_file_of_runs_is_refused(runs, message, tmp_path):
    write(tmp_path, runs)
    with pytest.raises(WorkbenchError, match=message):
        scaling.recorded(tmp_path)


def test_a_file_of_runs_that_was_cut_is_refused(tmp_path):
    write(tmp_path, [RUN] * 6)
    path = tmp_path / scaling.FILE
    path.write_text(path.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    with pytest.raises(WorkbenchError, match="not JSON"):
        scaling.read(path)


def test_the_runs_are_those_that_the_tool_writes(tmp_path):
    """A row of tools/measure/scaling.py, which trains them, is read."""
    scores = {"text": {"nats_per_character": [1.5]}}
    record = {"scores": scores, "model": {"vocab_size": 65}, "batch": 4096}
    row = tool.row_of((32, 2, 60), record | {"parameters": 20_000})
    write(tmp_path, [row] * scaling.FEWEST)
    run = scaling.recorded(tmp_path)[0]
    assert run["parameters"] + run["embedding"] == 20_000
    assert run["tokens"] == 60 * 4096 and run["nats_per_token"] == 1.5
