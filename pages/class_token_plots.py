"""The drawings of the chapter on the class token: readouts, masks, comparisons.

Each function draws one figure from what the page computed and shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch, Rectangle

from workbench.plots import COLORS, HIDDEN, as_array, matrix_heatmap

CLASS_COLOR = COLORS["key"]
MEAN_COLOR = COLORS["query"]
GREY = "#B5B5B5"


def arrow(
    ax: Axes, start: Any, end: Any, color: str = "#777777", lw: float = 1.8
) -> None:
    """Draw an arrow from one point to another."""
    style = {"arrowstyle": "-|>", "color": color, "lw": lw, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=end, xytext=start, arrowprops=style)


def box(
    ax: Axes, left: float, low: float, wide: float, high: float, color: str
) -> None:
    """Draw a filled box with round corners."""
    style = "round,pad=0,rounding_size=0.09"
    patch = FancyBboxPatch((left, low), wide, high, boxstyle=style, fc=color, ec="none")
    ax.add_patch(patch)


def readouts() -> None:
    """Draw four ways from the encoder's output vectors to logits."""
    _, axes = plt.subplots(2, 2, figsize=(6.2, 5.6))
    titles = ["class token", "mean", "flatten", "per token"]
    for ax, title in zip(axes.flat, titles, strict=True):
        _encoder(ax, has_class=title == "class token")
        ax.set_title(title)
        if title == "per token":
            for x in range(1, 5):
                arrow(ax, (x, 2.0), (x, 2.55), COLORS["output"])
                _head(ax, x, 2.55, 0.74, "")
            ax.text(2.5, 3.38, "one small head, at every token", ha="center")
            continue
        _one_answer(ax, title)
    plt.show()


def _encoder(ax: Axes, has_class: bool) -> None:
    """Draw tokens, the encoder above them and the vectors that come out."""
    for x in range(0 if has_class else 1, 5):
        color = CLASS_COLOR if x == 0 else COLORS["input"]
        box(ax, x - 0.3, 0, 0.6, 0.36, color)
        arrow(ax, (x, 0.36), (x, 0.72), GREY, 1.4)
        box(ax, x - 0.3, 1.64, 0.6, 0.36, CLASS_COLOR if x == 0 else COLORS["value"])
        arrow(ax, (x, 1.2), (x, 1.62), GREY, 1.4)
        name = "class" if x == 0 else f"$x_{x - 1}$"
        ax.text(x, 0.17, name, ha="center", va="center", color="white", fontsize=10)
    left = -0.35 if has_class else 0.65
    box(ax, left, 0.72, 4.35 - left, 0.5, "#DDDDDD")
    middle = (left + 4.35) / 2
    ax.text(middle, 0.96, "encoder", ha="center", va="center")
    ax.set(xlim=(-0.5, 4.6), ylim=(-0.1, 3.75))
    ax.axis("off")


def _head(ax: Axes, x: float, y: float, wide: float, text: str) -> None:
    """Draw a linear head."""
    box(ax, x - wide / 2, y, wide, 0.5, COLORS["output"])
    ax.text(x, y + 0.24, text, ha="center", va="center", color="white")


def _one_answer(ax: Axes, title: str) -> None:
    """Draw the way from the vectors to one row of logits."""
    if title == "class token":
        arrow(ax, (0, 2.0), (0, 2.95), CLASS_COLOR, 2.4)
        _head(ax, 0.35, 2.95, 1.4, "head")
        ax.text(1.25, 3.1, "reads one row", color="#444444")
    elif title == "mean":
        for x in range(1, 5):
            ax.plot([x, 2.5], [2.0, 2.5], color=MEAN_COLOR, lw=1.8)
        arrow(ax, (2.5, 2.5), (2.5, 2.95), MEAN_COLOR, 2.4)
        _head(ax, 2.5, 2.95, 1.4, "head")
        ax.text(2.72, 2.56, "÷ T", color=MEAN_COLOR, fontweight="bold")
    else:
        for x in range(1, 5):
            arrow(ax, (x, 2.0), (x, 2.95), COLORS["output"], 1.8)
        _head(ax, 2.5, 2.95, 4.0, "head, T times as large")


def prepend(x: Any, token: Any, words: Sequence[str]) -> None:
    """Draw X, and X with the class token on top of it."""
    x, token = as_array(x), as_array(token)
    _, axes = plt.subplots(1, 2, figsize=(6.8, 3.1))
    longer = list(token) + list(x)
    limits = (-2.6, 2.6)
    columns = [str(c) for c in range(x.shape[1])]
    style: dict[str, Any] = {"limits": limits, "digits": 1}
    matrix_heatmap(axes[0], x, words, columns, title="X", **style)
    matrix_heatmap(axes[1], longer, ["class", *words], columns, title="[c; X]", **style)
    axes[1].get_yticklabels()[0].set(color=CLASS_COLOR, fontweight="bold")
    frame: dict[str, Any] = {"fill": False, "ec": CLASS_COLOR, "lw": 2.5, "zorder": 7}
    axes[1].add_patch(Rectangle((-0.5, -0.5), x.shape[1], 1, **frame))
    axes[0].set_ylim(x.shape[0] - 0.5, -1.5)
    for ax in axes:
        for text in ax.texts:
            text.set_fontsize(9)
    plt.show()


def influence(gradients: dict[str, Any], words: Sequence[str]) -> None:
    """Draw how far the logits answer to a push of each token, one panel a case."""
    _, axes = plt.subplots(1, len(gradients), figsize=(6.2, 2.9), sharey=True)
    for ax, (title, values) in zip(axes, gradients.items(), strict=True):
        heights = as_array(values)
        ax.bar(range(len(heights)), heights, color=COLORS["weight"], width=0.65)
        for x, height in enumerate(heights):
            text = "0" if height == 0 else f"{height:.2f}"
            ax.text(x, height, text, ha="center", va="bottom", fontsize=9)
        ax.set_xticks(range(len(words)), words, rotation=35, ha="right")
        ax.set_title(title, fontsize=11)
    axes[0].set(ylabel="size of the gradient", ylim=(0, 1.15 * axes[0].get_ylim()[1]))
    plt.show()


def masks(panels: dict[str, tuple[Any, Any]], words: dict[str, Sequence[str]]) -> None:
    """Draw attention weights over a padded sentence, one panel a mask.

    Args:
        panels: title -> (weights, which columns may be seen).
        words: title -> names of rows and columns.
    """
    _, axes = plt.subplots(1, len(panels), figsize=(6.8, 3.7))
    for ax, (title, (weights, allowed)) in zip(axes, panels.items(), strict=True):
        weights = as_array(weights)
        seen = as_array(allowed)[None].repeat(len(weights), 0)
        names = words[title]
        matrix_heatmap(
            ax, weights, names, names, limits=(0, 1), visible=seen, annotate=False
        )
        color = COLORS["right" if title.startswith("right") else "wrong"]
        ax.set_title(title, color=color, fontsize=11)
        ax.set_xticklabels(names, rotation=60, ha="left", rotation_mode="anchor")
        for row, column in zip(*seen.nonzero(), strict=True):
            text = f"{weights[row, column]:.2f}".lstrip("0")
            ax.text(column, row, text, ha="center", va="center", fontsize=8.5)
    plt.show()


def drift(padding: Any, cosines: dict[str, Any]) -> None:
    """Draw how a mean turns away from the true one as padding is added."""
    _, ax = plt.subplots(figsize=(5.6, 3.2))
    colors = [COLORS["right"], COLORS["wrong"]]
    for color, (name, values) in zip(colors, cosines.items(), strict=True):
        ax.plot(as_array(padding), as_array(values), "o-", ms=4, color=color)
        ax.annotate(
            name,
            (as_array(padding)[-1], as_array(values)[-1]),
            (-4, 8 if color == COLORS["wrong"] else -16),
            textcoords="offset points",
            ha="right",
            color=color,
            fontweight="bold",
        )
    ax.set(xlabel="padding added to four real tokens", ylim=(-0.1, 1.08))
    ax.set_ylabel("cosine to the true mean")
    plt.show()


def head_sizes(lengths: Any, flatten: Any, others: float) -> None:
    """Draw the number of a head's weights against the number of tokens."""
    _, ax = plt.subplots(figsize=(5.6, 3.3))
    ax.plot(lengths, flatten, color=COLORS["wrong"])
    ax.axhline(others, color=COLORS["right"], lw=2)
    ax.axvline(197, color=GREY, lw=1.2, linestyle="dashed", zorder=0)
    ax.plot([197], [197 * others], "o", color=COLORS["wrong"])
    ax.plot([197], [others], "o", color=COLORS["right"])
    style = {"fontweight": "bold", "textcoords": "offset points"}
    here: dict[str, Any] = {"ha": "right", **style}
    top = "flatten: 151.3 million"
    ax.annotate(top, (180, 2.2e8), (0, 0), color=COLORS["wrong"], **here)
    below = "class token or mean: 768 000"
    ax.annotate(below, (160, others), (0, -15), color=COLORS["right"], **here)
    ax.text(225, 3.0e6, "T = 197", color="#555555")
    ax.set(xscale="log", yscale="log", xlabel="tokens T", ylim=(2.5e5, 2e9))
    ax.set_ylabel("weights of the head")
    plt.show()


def shuffled(
    before: Any, after: Any, names: Sequence[str], moved: Sequence[str]
) -> None:
    """Draw outputs before and after shuffling the words, the mean as a last row."""
    _, axes = plt.subplots(1, 2, figsize=(6.8, 3.6))
    titles = ["as written", "shuffled"]
    both = zip(axes, [before, after], [names, moved], titles, strict=True)
    for ax, values, words, title in both:
        rows = as_array(values)
        table = [*rows, rows[1:].mean(0)]
        labels = ["class", *words, "mean"]
        matrix_heatmap(ax, table, labels, title=title, digits=1, limits=(-2.6, 2.6))
        frame: dict[str, Any] = {"fill": False, "ec": "#111111", "lw": 2.2, "zorder": 7}
        for row in (0, len(table) - 1):
            ax.add_patch(Rectangle((-0.5, row - 0.5), rows.shape[1], 1, **frame))
            ax.get_yticklabels()[row].set(fontweight="bold")
        for text in ax.texts:
            text.set_fontsize(9)
    plt.show()


def task_weights(
    panels: Sequence[tuple[Any, Sequence[str]]], tasks: Sequence[str]
) -> None:
    """Draw where each task token looks, one panel a sentence.

    Args:
        panels: (weights (tasks, tokens), words) for each sentence.
        tasks: a name for each task token.
    """
    _, axes = plt.subplots(len(panels), 1, figsize=(6.8, 4.6))
    for ax, (weights, words) in zip(axes, panels, strict=True):
        matrix_heatmap(ax, weights, tasks, words, limits=(0, 1.0))
        ax.set_xticklabels(words, rotation=40, ha="left", rotation_mode="anchor")
        for text in ax.texts:
            text.set_fontsize(9)
    plt.show()


def comparison(rates: Sequence[float], results: dict[str, Any]) -> None:
    """Draw accuracies of several seeds against the learning rate, for two poolings.

    Args:
        rates: learning rates.
        results: name -> (rates, seeds) accuracies.
    """
    _, ax = plt.subplots(figsize=(6.4, 3.7))
    colors = {"class token": CLASS_COLOR, "mean": MEAN_COLOR}
    marks = {"class token": "s", "mean": "o"}
    for shift, (name, values) in zip([0.9, 1.11], results.items(), strict=True):
        values = as_array(values)
        places = [rate * shift for rate in rates]
        for place, column in zip(places, values, strict=True):
            dots: dict[str, Any] = {
                "ms": 5,
                "alpha": 0.4,
                "mec": "none",
                "color": colors[name],
            }
            ax.plot([place] * len(column), column, marks[name], **dots)
        style: dict[str, Any] = {
            "color": colors[name],
            "marker": marks[name],
            "ms": 8,
            "label": name,
        }
        ax.plot(places, values.mean(1), **style)
    ax.axhline(0.5, color=GREY, lw=1, linestyle="dashed")
    ax.text(rates[0] * 0.85, 0.51, "guessing", color="#666666", fontsize=10)
    ax.set(xscale="log", xlabel="learning rate", ylabel="accuracy", ylim=(0.42, 1.03))
    ax.set_xticks(rates, [f"{rate:g}" for rate in rates])
    ax.minorticks_off()
    ax.legend(loc="center", bbox_to_anchor=(0.5, 0.4))
    plt.show()


def from_mean_to_one(scales: Any, weights: Any, names: Sequence[str]) -> None:
    """Draw the weights of attention pooling as its query grows from nothing."""
    _, ax = plt.subplots(figsize=(5.8, 3.2))
    scales, weights = as_array(scales), as_array(weights)
    place = abs(scales - 1).argmin()  # where the curves lie well apart
    shifts = [(-8, 12), (-10, -12), (10, 16)]
    for name, curve, shift in zip(names, weights.T, shifts, strict=True):
        (line,) = ax.plot(scales, curve)
        ax.annotate(
            name,
            (scales[place], curve[place]),
            shift,
            textcoords="offset points",
            color=line.get_color(),
            ha="left" if shift[0] > 0 else "right",
            va="center",
            fontweight="bold",
        )
    ax.axhline(1 / len(names), color=GREY, lw=1, linestyle="dashed", zorder=0)
    ax.set(xscale="log", ylim=(-0.03, 1.03))
    ax.set(xlabel="length of the query", ylabel="weight")
    plt.show()


__all__ = [
    "CLASS_COLOR",
    "HIDDEN",
    "MEAN_COLOR",
    "comparison",
    "drift",
    "from_mean_to_one",
    "head_sizes",
    "influence",
    "masks",
    "prepend",
    "readouts",
    "shuffled",
    "task_weights",
]
