"""Decoding: the search of chapter 7 for a batch, with and without a cache."""

import math

import pytest
import torch

from transformer.decoder import Transformer, beam_search, greedy_decode
from workbench.model.models import TranslatorConfig, build, use_attention
from workbench.use.decoding import translate_batch

PAD, SOS, EOS, VOCABULARY = 0, 2, 3, 13
SOURCE = torch.tensor([[5, 9, 4, 7, 3], [8, 4, 3, 0, 0], [6, 3, 0, 0, 0]])


def small_model(norm_first: bool, seed: int, ending: float = 0.0) -> Transformer:
    """A model with large weights, so that its choices are many and clear."""
    torch.manual_seed(seed)
    sizes = (VOCABULARY, 16, 4, 2, 24, 20)
    model = Transformer(*sizes, dropout=0.1, norm_first=norm_first).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        model.embedding.weight[EOS] *= 1 + ending
    return model


def one_sentence(model: Transformer, source: torch.Tensor):
    """The model as chapter 7's searches ask for it; it writes neither PAD nor SOS."""

    def logits(ids: torch.Tensor) -> torch.Tensor:
        found = model(source.unsqueeze(0), ids)
        found[..., [PAD, SOS]] = -math.inf
        return found

    return logits


def stripped(ids: list[int]) -> list[int]:
    return [each for each in ids[1:] if each != EOS]


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-LN", "pre-LN"])
def test_greedy_writes_what_chapter_7_writes(norm_first) -> None:
    lengths = set()
    for seed in range(4):
        model = small_model(norm_first, seed, ending=0.5)
        expected = [
            stripped(greedy_decode(one_sentence(model, source), [SOS], EOS, 20))
            for source in SOURCE
        ]
        for use_cache in (True, False):
            got = translate_batch(model, SOURCE, SOS, EOS, 20, use_cache=use_cache)
            assert got == expected
        lengths |= {len(each) for each in expected}
    assert len(lengths) > 2, "the test has seen sentences of different lengths"


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-LN", "pre-LN"])
@pytest.mark.parametrize(("beam", "alpha"), [(2, 0.0), (4, 0.6), (5, 1.0)])
def test_a_beam_finds_what_chapter_7_finds(norm_first, beam, alpha) -> None:
    lengths = set()
    for seed in range(2):
        model = small_model(norm_first, seed, ending=0.5)
        expected = []
        for source in SOURCE:
            model_of_one = one_sentence(model, source)
            ids, _ = beam_search(model_of_one, [SOS], EOS, beam, 10, alpha)
            expected.append(stripped(ids))
        for use_cache in (True, False):
            got = translate_batch(model, SOURCE, SOS, EOS, 10, beam, alpha, use_cache)
            assert got == expected
        lengths |= {len(each) for each in expected}
    assert len(lengths) > 1, "the test has seen translations of different lengths"


def test_a_beam_wider_than_the_vocabulary_is_allowed() -> None:
    model = small_model(True, 1)
    got = translate_batch(model, SOURCE[:1], SOS, EOS, 4, beam=20)
    alone, _ = beam_search(one_sentence(model, SOURCE[0]), [SOS], EOS, 20, 4, 0.6)
    assert got == [stripped(alone)]


def test_padding_and_neighbours_change_no_translation() -> None:
    model = small_model(True, 4)
    together = translate_batch(model, SOURCE, SOS, EOS, 15, beam=3)
    for source, written in zip(SOURCE, together, strict=True):
        real = source[source != PAD].unsqueeze(0)
        assert translate_batch(model, real, SOS, EOS, 15, beam=3) == [written]


def test_fused_attention_writes_the_same() -> None:
    model = small_model(True, 5)
    expected = translate_batch(model, SOURCE, SOS, EOS, 20, beam=2)
    with use_attention("fused"):
        assert translate_batch(model, SOURCE, SOS, EOS, 20, beam=2) == expected


def test_dropout_is_off_while_it_writes_and_on_again_afterwards() -> None:
    model = small_model(True, 2).train()
    random = torch.get_rng_state()
    first = translate_batch(model, SOURCE, SOS, EOS, 20)
    assert first == translate_batch(model, SOURCE, SOS, EOS, 20)
    assert model.training
    assert torch.equal(torch.get_rng_state(), random)


def test_the_cache_computes_each_position_once() -> None:
    """Counted in rows that the first layer's feed-forward network is given."""
    model = small_model(True, 3)
    rows = {True: 0, False: 0}
    for use_cache in rows:

        def count(module, inputs, output, use_cache=use_cache) -> None:
            rows[use_cache] += inputs[0].shape[1]

        handle = model.decoder.layers[0].feed_forward.register_forward_hook(count)
        written = translate_batch(model, SOURCE, SOS, EOS, 20, use_cache=use_cache)
        handle.remove()
    steps = max(len(each) for each in written) + 1
    steps = min(steps, 19)
    assert rows[True] == steps
    assert rows[False] == steps * (steps + 1) // 2


def test_no_sentences_no_translations() -> None:
    assert translate_batch(small_model(True, 0), SOURCE[:0], SOS, EOS, 5) == []


@pytest.mark.parametrize(
    "options", [{"beam": 0}, {"alpha": -0.1}, {"max_length": 1}], ids=str
)
def test_impossible_options_are_refused(options) -> None:
    options = {"max_length": 5, **options}
    with pytest.raises(ValueError, match="at least"):
        translate_batch(small_model(True, 0), SOURCE, SOS, EOS, **options)


@pytest.mark.parametrize("change", [{"tied": False}, {"scaled": False}])
def test_the_cache_knows_what_an_ablation_changed(change) -> None:
    torch.manual_seed(3)
    model = build(TranslatorConfig(11, 16, 4, 2, 24, 20, dropout=0.0, **change)).eval()
    if "tied" in change:
        with torch.no_grad():
            model.output.copy_(torch.randn_like(model.output))
    source = torch.tensor([[5, 9, 4, 7, 3], [8, 4, 3, 0, 0]])
    found = [
        translate_batch(model, source, 2, 3, 12, beam=2, use_cache=cached)
        for cached in (False, True)
    ]
    assert found[0] == found[1]
