"""The drawings of the translator's chapter: what is drawn, and what is left out."""

import matplotlib
import pytest

matplotlib.use("agg")

import matplotlib.pyplot as plt
import torch

from pages import translator_plots


@pytest.fixture
def figure(monkeypatch):
    """Give the figure that a function has shown, if there is one."""
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.close("all")
    yield lambda: plt.gcf() if plt.get_fignums() else None
    plt.close("all")


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_a_held_out_combination_has_a_letter_and_the_marked_one_a_frame(figure):
    verbs, nouns = ["like", "eat"], ["plum", "pear", "egg"]
    splits = {(verb, noun): "train" for verb in verbs for noun in nouns}
    splits |= {("like", "pear"): "test", ("eat", "egg"): "validation"}
    translator_plots.combinations(verbs, nouns, splits, ("like", "pear"))
    (ax,) = figure().axes
    letters = {text.get_text(): text.get_position() for text in ax.texts}
    assert letters == {"t": (1, 0), "v": (2, 1)}
    assert [frame.get_xy() for frame in ax.patches] == [(0.5, -0.5)]


def test_lines_join_words_from_a_certain_weight_on(figure):
    weights = torch.tensor([[0.9, 0.1], [0.15, 0.85], [0.5, 0.5]])
    example = (["a", "b"], ["x", "y", "z"], weights)
    translator_plots.crossings([example], least=0.2)
    (ax,) = figure().axes
    assert len(ax.lines) == 4
    assert texts(ax) == ["a", "b", "x", "y", "z"]


def test_words_stand_in_order_and_long_ones_have_more_room():
    at = translator_plots.places(["a", "a", "blackberries", "a"])
    gaps = at[1:] - at[:-1]
    assert (gaps > 0).all() and at[0] > 0 and at[-1] < 1
    assert gaps[0] < gaps[1]


def test_the_largest_weight_of_each_row_is_framed(figure):
    weights = torch.tensor([[0.1, 0.9], [0.7, 0.3]])
    translator_plots.attention_maps({"one": weights}, ["x", "y"], ["a", "b"])
    (ax,) = figure().axes
    assert [frame.get_xy() for frame in ax.patches] == [(0.5, -0.5), (-0.5, 0.5)]


def test_nothing_recorded_draws_nothing(figure):
    translator_plots.ablations({}, "exact match")
    assert figure() is None


def test_each_seed_is_a_dot(figure):
    translator_plots.ablations({"default": [97.0, 98.0], "other": [90.0]}, "share")
    (ax,) = figure().axes
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert [list(line.get_xdata()) for line in dots] == [[97.0, 98.0], [90.0]]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["default", "other"]


def test_a_run_far_below_all_others_has_an_arrow_and_its_mean(figure):
    rows = {"default": [97.0, 98.0], "far": [1.0, 2.0], "other": [90.0]}
    translator_plots.ablations(rows, "share")
    (ax,) = figure().axes
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert [list(line.get_xdata()) for line in dots] == [[97.0, 98.0], [90.0]]
    assert [text for text in texts(ax) if text] == [" 1.5, far below"]
    assert ax.get_xlim()[0] > 80
    assert [each.get_text() for each in ax.get_yticklabels()] == list(rows)


def test_scores_and_shares_are_written_beside_what_is_drawn(figure):
    translator_plots.intervals({"a": (98.04, 97.0, 99.0)}, "share")
    assert texts(figure().axes[0]) == ["98.0"]
    plt.close("all")
    translator_plots.two_measures({"a": (0.91, 0.0), "b": (0.7, 0.1)})
    assert texts(figure().axes[0]) == ["91", "70", "0", "10"]


def test_curves_padding_and_the_step_are_drawn(figure):
    history = {"step": [1, 2], "loss": [7.0, 1.0], "rate": [1e-3, 1e-4]}
    history |= {"validation_step": [2], "validation_loss": [1.2]}
    translator_plots.curves(history, 7.5)
    assert len(figure().axes) == 2
    real = torch.tensor([[True, True], [True, False]])
    translator_plots.paddings({"a": real, "b": real})
    assert [ax.get_title() for ax in figure().axes] == ["a", "b"]
    translator_plots.training_step()
    assert {"batch", "model", "loss", "clip", "Adam"} <= {*texts(figure().axes[0])}
