"""The picture of a training: what is drawn where."""

import math

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure
from PIL import Image

from workbench.errors import WorkbenchError
from workbench.training import curves

HISTORY = {
    "step": [10, 20, 30, 40],
    "loss": [2.0, 1.0, 0.5, 0.4],
    "rate": [0.1, 0.2, 0.1, 0.0],
    "seconds": [1.0, 2.0, 3.0, 4.0],
    "validation_step": [20, 40],
    "validation_loss": [1.1, 0.6],
    "validation_accuracy": [0.5, 0.984],
    "train_seconds": [4.0],
    "examples": [2560],
}


@pytest.fixture
def figures(monkeypatch) -> list[Figure]:
    """What was drawn, kept when it is saved."""
    kept: list[Figure] = []
    save = curves.save

    def keep(figure, path):
        kept.append(figure)
        save(figure, path)

    monkeypatch.setattr(curves, "save", keep)
    return kept


def test_every_curve_is_drawn_where_it_belongs(tmp_path, figures) -> None:
    curves.draw(HISTORY, tmp_path / "curves.png")
    loss, accuracy, rate = figures[0].axes
    training, validation = loss.get_lines()
    assert training.get_xdata().tolist() == [10, 20, 30, 40]
    assert training.get_ydata().tolist() == HISTORY["loss"]
    assert validation.get_xdata().tolist() == [20, 40]
    labels = [text.get_text() for text in loss.get_legend().get_texts()]
    assert labels == ["training", "validation"]
    assert training.get_color() != validation.get_color()
    assert accuracy.get_title() == "accuracy: 98.4 % at the end"
    assert accuracy.get_lines()[0].get_xdata().tolist() == [20, 40]
    assert rate.get_title() == "rate"
    assert rate.get_xlabel() == "step"


def test_scores_of_the_same_kind_share_a_panel(tmp_path, figures) -> None:
    kinds = {"validation_agreement_verb": [0.5, 99.0]}
    kinds |= {"validation_agreement_quotes": [1.0, 98.0]}
    curves.draw(HISTORY | kinds, tmp_path / "curves.png")
    agreement = figures[0].axes[2]
    assert agreement.get_title() == "agreement"
    labels = [text.get_text() for text in agreement.get_legend().get_texts()]
    assert labels == ["verb", "quotes"]
    assert [x.get_ydata().tolist() for x in agreement.get_lines()] == [*kinds.values()]


def test_the_file_is_a_picture_and_nothing_is_left_beside_it(tmp_path) -> None:
    before = mpl.rcParams["axes.titleweight"]
    for _ in range(2):  # the second replaces the first
        curves.draw(HISTORY, tmp_path / "curves.png")
    with Image.open(tmp_path / "curves.png") as image:
        assert image.format == "PNG"
        assert image.size[0] > 500
        assert len(image.convert("RGB").getcolors(1 << 20)) > 10
    assert [path.name for path in tmp_path.iterdir()] == ["curves.png"]
    assert mpl.rcParams["axes.titleweight"] == before  # the caller's style stays


def test_the_same_history_is_the_same_file(tmp_path) -> None:
    for name in ("a.png", "b.png"):
        curves.draw(HISTORY, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_values_that_are_no_numbers_leave_a_gap(tmp_path, figures) -> None:
    history = {"step": [1, 2, 3], "loss": [1.0, math.nan, math.inf], "bleu": [None] * 3}
    curves.draw(history, tmp_path / "curves.png")
    (loss,) = figures[0].axes
    assert [math.isnan(y) for y in loss.get_lines()[0].get_ydata()] == [0, 1, 1]


def test_readings_without_places_are_spread_over_the_run(tmp_path, figures) -> None:
    history = {
        "epoch": [1, 2, 3, 4],
        "loss": [4, 3, 2, 1],
        "validation_bleu": [5, 9.04],
    }
    curves.draw(history, tmp_path / "curves.png")
    _, bleu = figures[0].axes
    assert list(bleu.get_lines()[0].get_xdata()) == [2, 4]
    assert bleu.get_title() == "bleu: 9.0 at the end"
    assert bleu.get_xlabel() == "epoch"
    curves.draw({"loss": [3.0, 2.0]}, tmp_path / "curves.png")
    assert figures[1].axes[0].get_xlabel() == "reading"


def test_many_readings_are_a_line_alone(tmp_path, figures) -> None:
    values = [float(number) for number in range(300)]
    curves.draw({"step": values, "loss": values}, tmp_path / "curves.png")
    (line,) = figures[0].axes[0].get_lines()
    assert (line.get_marker(), len(line.get_xdata())) == ("", 300)


def test_a_single_reading_is_seen(tmp_path, figures) -> None:
    curves.draw({"step": [1], "loss": [1.0]}, tmp_path / "curves.png")
    assert figures[0].axes[0].get_lines()[0].get_marker() == "o"


@pytest.mark.parametrize("history", [{}, {"step": [1]}, {"step": [1], "loss": [None]}])
def test_nothing_to_draw_is_said(tmp_path, history) -> None:
    with pytest.raises(WorkbenchError, match="there are no curves"):
        curves.draw(history, tmp_path / "curves.png")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_said(tmp_path) -> None:
    with pytest.raises(WorkbenchError, match=r"curves\.png cannot be written"):
        curves.draw(HISTORY, tmp_path / "nowhere" / "curves.png")
