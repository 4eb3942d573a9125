"""The larger drawings of the chapter on attention: networks, shapes, diagrams.

Each function draws one figure from what the page computed and shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.text import Text

from workbench.plots import COLORS, as_array, matrix_heatmap, set_gaps, vectors

GREY = "#D0D0D0"


def arrow(
    ax: Axes, start: Any, end: Any, color: str = "#777777", lw: float = 1.8
) -> None:
    """Draw an arrow from one point to another."""
    style = {"arrowstyle": "-|>", "color": color, "lw": lw, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=end, xytext=start, arrowprops=style)


def boxed(
    ax: Axes, x: float, y: float, text: str, color: str, filled: bool = False
) -> Text:
    """Write a text in a rounded box; return the text."""
    face, ink = (color, "white") if filled else ("white", color)
    box = {"boxstyle": "round,pad=0.4", "fc": face, "ec": color, "lw": 1.8}
    return ax.text(x, y, text, ha="center", va="center", color=ink, bbox=box)


def join(ax: Axes, start: Text, end: Text, color: str = "#777777") -> None:
    """Draw an arrow from box to box, with the same gap at both ends."""
    style = {"arrowstyle": "-|>", "color": color, "lw": 1.8, "shrinkA": 4, "shrinkB": 4}
    style |= {"patchA": start.get_bbox_patch(), "patchB": end.get_bbox_patch()}
    places: dict[str, Any] = {"xy": end.get_position(), "xytext": start.get_position()}
    ax.annotate("", **places, arrowprops=style)


def three_paths(length: int = 8) -> None:
    """Draw how the first token reaches the last: recurrence, convolution, attention."""
    _, axes = plt.subplots(3, 1, figsize=(5.6, 3.5), height_ratios=[1, 2.2, 1.2])
    titles = ["Recurrent network: 8 steps", "Convolution, kernel 3: 4 layers"]
    titles.append("Attention: 1 step")
    for ax, title, top in zip(axes, titles, [1, 4, 1.3], strict=True):
        ax.set_title(title, loc="left")
        ax.axis("off")
        ax.set(xlim=(-0.4, length - 0.6), ylim=(-0.3, top + 0.3))
        for t in range(length):
            ax.plot(t, 0, "o", color=COLORS["input"], ms=8)
    _recurrence(axes[0], length)
    _convolution(axes[1], length)
    axes[2].plot(length - 1, 1.3, "s", color=COLORS["query"], ms=11)
    for t in reversed(range(length)):
        tip = (length - 1 - 0.03 * (length - 1 - t), 1.12)
        color, width = (COLORS["key"], 2.4) if t == 0 else (GREY, 1.4)
        arrow(axes[2], (t, 0.14), tip, color, width)
    plt.show()


def _recurrence(ax: Axes, length: int) -> None:
    """Draw a chain of cells, with the path from the first token in red."""
    for t in range(length):
        ax.plot(t, 1, "s", color=COLORS["query"], ms=11)
        arrow(ax, (t, 0.15), (t, 0.8), COLORS["key"] if t == 0 else GREY)
        if t:
            arrow(ax, (t - 0.85, 1), (t - 0.18, 1), COLORS["key"])


def _convolution(ax: Axes, length: int) -> None:
    """Draw four layers that look two tokens back, with the shortest path in red."""
    for layer in range(1, 5):
        for t in range(length):
            ax.plot(t, layer, "s", color=COLORS["query"], ms=9)
            for s in range(max(0, t - 2), t + 1):
                heights = [layer - 0.85, layer - 0.15]
                ax.plot([s, t], heights, color=GREY, lw=1, zorder=0)
    for layer, (start, end) in enumerate([(0, 2), (2, 4), (4, 6), (6, 7)]):
        arrow(ax, (start, layer + 0.14), (end, layer + 0.84), COLORS["key"], 2.4)


def soft_dictionary(
    keys: Any, names: Sequence[str], query: Any, temperatures: Any, weights: Any
) -> None:
    """Draw keys and query as arrows, and each key's weight against the temperature."""
    shades = ["#C8321E", "#2E8B40", "#2F5FC4"]
    _, axes = plt.subplots(1, 2, figsize=(6.8, 2.45), width_ratios=[1, 1.25])
    vectors(axes[0], keys, names, color=shades)
    vectors(axes[0], as_array(query)[None], ["teal?"], color="#007C7C", limit=1.75)
    for name, shade, curve in zip(names, shades, as_array(weights).T, strict=True):
        axes[1].plot(temperatures, curve, color=shade, label=name)
    axes[1].set(xscale="log", xlabel="temperature", ylabel="weight")
    axes[1].legend()
    plt.show()


def shapes(matrices: dict[str, Any]) -> None:
    """Draw X, Q, K, V, S, P and Z to scale, one stripe a row, with their shapes.

    Args:
        matrices: the seven tensors by their names.
    """
    unit = 0.2
    places = {
        "X": (0.9, 0, "input"),
        "Q": (2.9, 1.75, "query"),
        "K": (2.9, 0, "key"),
        "V": (2.9, -1.75, "value"),
        "S": (4.6, 0.9, "weight"),
        "P": (6.6, 0.9, "weight"),
        "Z": (8.1, -0.6, "output"),
    }
    _, ax = plt.subplots(figsize=(6.8, 3.0))
    for name, (x, y, role) in places.items():
        rows, columns = matrices[name].shape
        left, low = x - columns * unit / 2, y - rows * unit / 2
        size = (columns * unit, rows * unit)
        ax.add_patch(plt.Rectangle((left, low), *size, color=COLORS[role]))
        for line in range(1, rows):
            height = low + line * unit
            ax.plot([left, left + size[0]], [height] * 2, color="white", lw=1)
        label: dict[str, Any] = {
            "ha": "center",
            "color": COLORS[role],
            "fontweight": "bold",
        }
        ax.text(x, low + size[1] + 0.1, f"{name} ({rows}, {columns})", **label)
    for start, end in [
        ((1.75, 0.3), (2.5, 1.45)),
        ((1.75, 0), (2.5, 0)),
        ((1.75, -0.3), (2.4, -1.45)),
        ((3.3, 1.6), (4.0, 1.1)),
        ((3.3, 0.2), (4.0, 0.7)),
        ((5.15, 0.9), (6.05, 0.9)),
        ((7.15, 0.65), (7.65, -0.3)),
        ((3.4, -1.75), (7.6, -0.8)),
    ]:
        arrow(ax, start, end, "#888888")
    for x, y, text in [
        (1.85, 0.95, "$W_Q$"),
        (2.15, 0.08, "$W_K$"),
        (1.85, -1.3, "$W_V$"),
        (5.6, 0.95, "scale,\nsoftmax"),
        (5.4, -0.95, "average"),
    ]:
        ax.text(x, y, text, ha="center", va="bottom", fontsize=10, color="#555555")
    ax.set(xlim=(0, 8.7), ylim=(-2.4, 2.7), aspect="equal")
    ax.axis("off")
    plt.show()


def two_scores(scores: Any, scaled: Any, weights: Any, values: Any) -> None:
    """Draw how two scores and two values become one output, step by step."""

    def pair(row: Any) -> str:
        return "(" + ", ".join(f"{float(value):.2f}" for value in row) + ")"

    parts = as_array(weights)[:, None] * as_array(values)
    columns = [
        (0, "scores", "query", [f"{float(v):.0f}" for v in scores]),
        (1.1, "÷ √3", "weight", [f"{float(v):.1f}" for v in scaled]),
        (2.25, "softmax", "weight", [f"{float(v):.2f}" for v in weights]),
        (3.7, "value", "value", [pair(v) for v in values]),
        (5.5, "weight × value", "output", [pair(v) for v in parts]),
    ]
    _, ax = plt.subplots(figsize=(6.8, 2.1))
    last = boxed(ax, 7.4, 0.8, pair(parts.sum(0)), COLORS["output"], filled=True)
    ax.text(7.4, 1.85, "sum", ha="center", color="#555555", fontsize=10)
    rows = []
    for x, title, role, texts in columns:
        ax.text(x, 1.85, title, ha="center", color="#555555", fontsize=10)
        pairs = zip((1.3, 0.3), texts, strict=True)
        rows.append([boxed(ax, x, y, text, COLORS[role]) for y, text in pairs])
    for top, (score, scaled_score, weight, _, part) in zip(
        (1.3, 0.3), zip(*rows, strict=True), strict=True
    ):
        join(ax, score, scaled_score)
        join(ax, scaled_score, weight)
        join(ax, part, last)
        for x, sign in [(2.84, "×"), (4.6, "=")]:
            ax.text(x, top, sign, ha="center", va="center", color="#555555")
    ax.set(xlim=(-0.35, 8.1), ylim=(-0.1, 2.1))
    ax.axis("off")
    plt.show()


def averages_in_the_plane(weights: Any, values: Any, outputs: Any) -> None:
    """Draw rows of weights with columns of values, and outputs between value rows."""
    weights, values, outputs = map(as_array, (weights, values, outputs))
    _, axes = plt.subplots(1, 2, figsize=(6.8, 3.0))
    names = ["$V^{(0)}$", "$V^{(1)}$"]
    vectors(axes[0], values.T, names, color=COLORS["value"], limit=1.4)
    vectors(axes[0], weights, color=COLORS["weight"], limit=1.4)
    ink = {"color": COLORS["weight"], "ha": "center", "va": "center"}
    for row, name, shift in [
        (weights[0], "$A_0$", (15, -7)),
        (weights[1], "$A_1$", (-12, 5)),
    ]:
        axes[0].annotate(name, row, shift, textcoords="offset points", **ink)
    axes[0].set_title("rows of A, columns of V")
    names = ["$v_0$ blue", "$v_1$ car"]
    vectors(axes[1], values, names, color=COLORS["value"], limit=1.4)
    axes[1].plot(*values.T, color=COLORS["value"], lw=1.2, ls="--", zorder=1)
    axes[1].plot(*outputs.T, "s", color=COLORS["output"], ms=7, zorder=4)
    box = {"fc": "white", "ec": "none", "pad": 0.8}
    style: dict[str, Any] = {"color": COLORS["output"], "va": "center", "bbox": box}
    for row, name in zip(outputs, ["$z_0$", "$z_1$"], strict=True):
        axes[1].annotate(name, row, (9, 0), textcoords="offset points", **style)
    axes[1].set_title("outputs between rows of V")
    plt.show()


def cross_attention() -> None:
    """Draw which sequence gives queries and which gives keys and values."""
    _, ax = plt.subplots(figsize=(6.8, 2.6))
    asks = boxed(ax, 0.6, 2, "asks: $X_q$\n(decoder)", COLORS["input"])
    asked = boxed(ax, 0.6, 0.5, "is asked: $X_{kv}$\n(encoder)", COLORS["input"])
    queries = boxed(ax, 2.5, 2, "$Q$", COLORS["query"])
    keys = boxed(ax, 2.5, 1.0, "$K$", COLORS["key"])
    values = boxed(ax, 2.5, 0.0, "$V$", COLORS["value"])
    weights = boxed(ax, 4.3, 1.5, "weights $P$\n$(T_q, T_k)$", COLORS["weight"])
    output = boxed(ax, 6.3, 0.75, "output $Z$\n$(T_q, d_v)$", COLORS["output"])
    for start, end in [
        (asks, queries),
        (asked, keys),
        (asked, values),
        (queries, weights),
        (keys, weights),
        (weights, output),
        (values, output),
    ]:
        join(ax, start, end)
    ax.set(xlim=(-0.35, 7.0), ylim=(-0.45, 2.55))
    ax.axis("off")
    plt.show()


def words_on_a_picture(
    picture: Any, words: Sequence[str], weights: Any, outputs: Any
) -> None:
    """Draw a picture of squares, each word's weights on it, and each word's output.

    Args:
        picture: (rows, columns, 3), colours between 0 and 1.
        words: their names.
        weights: (words, rows × columns).
        outputs: (words, 3), colours.
    """
    picture, outputs = as_array(picture), as_array(outputs)
    figure, axes = plt.subplots(2, 3, figsize=(6.8, 3.3))
    set_gaps(figure, w_pad=0.1, h_pad=0.1)
    axes[0, 0].imshow(picture * 0.85 + 0.08)
    axes[0, 0].set_title("the picture", pad=10)
    axes[1, 0].imshow(outputs[:, None] * 0.85 + 0.08)
    axes[1, 0].set_title("outputs", pad=10)
    axes[1, 0].set_yticks(range(len(words)), words)
    axes[1, 0].tick_params(length=0)
    places = [axes[0, 1], axes[0, 2], axes[1, 1], axes[1, 2]]
    for ax, word, row in zip(places, words, as_array(weights), strict=True):
        grid = row.reshape(picture.shape[:2])
        matrix_heatmap(ax, grid, title=f"“{word}”", limits=(0, 0.6))
    axes[0, 0].set(xticks=[], yticks=[])
    axes[1, 0].set_xticks([])
    for ax in (axes[0, 0], axes[1, 0]):
        for side in ax.spines.values():
            side.set_visible(False)
    plt.show()
