"""A token at a time from packed weights: the logits of the model as it is written."""

from dataclasses import replace

import pytest
import torch

from tests.workbench.test_language_model import NEW, OLD, PARTS, built
from tests.workbench.test_models import copy_of_the_reference
from workbench.model import models
from workbench.model.next_token import can_be_packed
from workbench.use import writing

WIDER = replace(NEW, d_model=24, heads=6, kv_heads=3, layers=3, d_ff=20)
CONFIGS = {
    "2025": NEW,
    "wider": WIDER,
    "a head each": replace(NEW, kv_heads=4),
    "one head of keys": replace(NEW, kv_heads=1),
    "queries and keys as they are": replace(NEW, qk_norm=False),
    "learned positions": replace(NEW, positions="learned"),
}


def readings(model, parts=PARTS) -> tuple[writing.Reading, writing.Reading]:
    """One with packed weights if they can be, and one that computes all anew."""
    return writing.Reading(model, parts), writing.Reading(model, parts, use_cache=False)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_logits_are_those_of_the_model(config) -> None:
    """Also after the context was full and half of it was read anew, some times."""
    model = built(config)
    with torch.no_grad():  # so that what is small beside ε does not hide it
        model.blocks[0].attention.w_q.mul_(1e-3)
    model.fused = True
    packed, written = readings(model)
    assert packed.next_token
    for ids in ([1, 2, 3], *([number % 11] for number in range(30)), [4, 5], [6]):
        torch.testing.assert_close(
            packed.read(ids), written.read(ids), atol=2e-5, rtol=1e-4
        )


def test_weights_that_change_are_packed_anew_for_the_next_text() -> None:
    model = built(NEW)
    model.fused = True
    before = list(writing.write(model, [1], 8, PARTS, 0.0))
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight))
    after, plain = (
        list(writing.write(model, [1], 8, PARTS, 0.0, use_cache=cache))
        for cache in (True, False)
    )
    assert before != after == plain


@pytest.mark.parametrize(
    "change",
    [{"norm": "layer"}, {"feed_forward": "relu"}, {"feed_forward": "gelu"}],
)
def test_other_blocks_than_todays_are_not_packed(change) -> None:
    assert not can_be_packed(built(replace(NEW, **change)), PARTS)
    assert not can_be_packed(built(OLD), PARTS)
    assert can_be_packed(built(NEW), PARTS)


def test_what_somebody_wrote_otherwise_is_not_packed_and_writes_the_same(
    tmp_path,
) -> None:
    folder = copy_of_the_reference(tmp_path)
    path = folder / "transformer/encoder.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("w_gate", "w_door"), encoding="utf-8")
    own = models.load_parts(folder)
    torch.manual_seed(0)
    model = models.build(NEW, own).eval()
    model.fused = True
    with_cache, without = readings(model, own)
    assert with_cache.next_token is None
    for ids in ([1, 2, 3], [4], [5]):
        torch.testing.assert_close(
            with_cache.read(ids), without.read(ids), atol=2e-5, rtol=1e-4
        )


def test_a_model_as_it_is_written_is_not_packed() -> None:
    """Who asks for the written attention gets it, token by token."""
    assert readings(built(NEW))[0].next_token is None
