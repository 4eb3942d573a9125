"""The larger drawings of the chapter on several heads: splits, stages, groups.

Each function draws one figure from what the page computed and shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from workbench.plots import COLORS, as_array, matrix_heatmap

HEADS = ["#56B4E9", "#E69F00", "#5FBF9F", "#D9A0C1"]  # one colour a head, all light


def arrow(ax: Axes, start: Any, end: Any, color: str = "#777777") -> None:
    """Draw an arrow from one point to another."""
    style = {"arrowstyle": "-|>", "color": color, "lw": 1.8, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=end, xytext=start, arrowprops=style)


def look_up_errors(errors: dict[str, Any], names: Sequence[str]) -> None:
    """Draw one dot for each trained layer, look-up and seed.

    Args:
        errors: name of a layer -> (seeds, 2), the squared errors of its two look-ups.
        names: names of the two look-ups.
    """
    _, ax = plt.subplots(figsize=(6.4, 3.3))
    for place, values in enumerate(errors.values()):
        values = as_array(values)
        for which, (role, mark) in enumerate([("query", "o"), ("key", "s")]):
            middle = place + (-0.17, 0.17)[which]
            places = [middle + 0.06 * (seed - 1) for seed in range(len(values))]
            style = {"color": COLORS[role], "ms": 8}
            style["label"] = names[which] if place == 0 else None
            ax.plot(places, values[:, which], mark, **style)
    ax.axhline(0.5, color="#999999", lw=1, ls="--")
    ax.set_xticks(range(len(errors)), list(errors))
    ax.set(ylabel="mean squared error", ylim=(-0.05, 1.05))
    ax.legend(loc="upper right")
    plt.show()


def _cells(ax: Axes, values: Any, colors: Any, left: float, top: float) -> None:
    """Draw a small matrix of numbers whose cells have given colours."""
    for row, numbers in enumerate(as_array(values)):
        for column, number in enumerate(numbers):
            corner = (left + column, top - row - 1)
            box = {"fc": colors[row][column], "ec": "white", "lw": 2}
            ax.add_patch(plt.Rectangle(corner, 1, 1, **box))
            middle = (corner[0] + 0.5, corner[1] + 0.5)
            ax.text(*middle, f"{number:.0f}", ha="center", va="center", fontsize=12)


def split(x: Any, right: Any, wrong: Any) -> None:
    """Draw a matrix, its heads, and what a reshape alone makes of it.

    Args:
        x: (T, d), all numbers different.
        right: (heads, T, d_k).
        wrong: (heads, T, d_k), the same numbers in the wrong places.
    """
    x, right, wrong = map(as_array, (x, right, wrong))
    length, width = right.shape[1:]
    owner = {
        number: HEADS[column // width]
        for row in x
        for column, number in enumerate(row.tolist())
    }
    _, axes = plt.subplots(1, 3, figsize=(6.8, 3.3), width_ratios=[1, 1, 1])
    blocks = [("one matrix $(T, d)$", [x], "input")]
    blocks += [("split into heads", right, "right"), ("reshape only", wrong, "wrong")]
    for ax, (title, matrices, color) in zip(axes, blocks, strict=True):
        for which, matrix in enumerate(matrices):
            top = -which * (length + 1.2)
            shades = [[owner[number] for number in row] for row in matrix.tolist()]
            left = 0 if len(matrices) == 1 else width / 2
            _cells(ax, matrix, shades, left, top)
            for token in range(length):
                ax.text(left - 0.2, top - token - 0.5, token, ha="right", va="center")
            if len(matrices) > 1:
                ax.text(left + width / 2, top + 0.2, f"head {which}", ha="center")
        ax.set_title(title, color=COLORS[color], pad=14)
        ax.set(xlim=(-0.9, 2 * width + 0.3), ylim=(-2 * length - 1.4, 0.7))
        ax.set_aspect("equal")
        ax.axis("off")
    axes[0].text(width, -length - 0.4, "columns 0, 1: head 0", ha="center", va="top")
    axes[0].text(width, -length - 1.2, "columns 2, 3: head 1", ha="center", va="top")
    plt.show()


def _bands(ax: Axes, x: float, y: float, rows: int, width: int, heads: int) -> None:
    """Draw a (rows, heads · width) matrix around (x, y), one colour a head."""
    unit = 0.16
    left, low = x - heads * width * unit / 2, y - rows * unit / 2
    for head in range(heads):
        corner = (left + head * width * unit, low)
        size = (width * unit, rows * unit)
        ax.add_patch(plt.Rectangle(corner, *size, fc=HEADS[head], ec="white", lw=1.5))


def _block(ax: Axes, x: float, y: float, rows: int, columns: int, color: str) -> None:
    """Draw a (rows, columns) matrix of one colour around (x, y)."""
    unit = 0.16
    corner = (x - columns * unit / 2, y - rows * unit / 2)
    size = (columns * unit, rows * unit)
    ax.add_patch(plt.Rectangle(corner, *size, fc=color, ec="white", lw=1.5))


def stages() -> None:
    """Draw the four stages of a layer of two heads, from top to bottom, to scale."""
    length, width, heads = 5, 4, 2
    _, ax = plt.subplots(figsize=(6.8, 7.0))
    _block(ax, 3.6, 8.6, length, heads * width, COLORS["input"])
    for x, name, role in [(1.6, "Q", "query"), (3.6, "K", "key"), (5.6, "V", "value")]:
        _bands(ax, x, 6.9, length, width, heads)
        label = {"color": COLORS[role], "fontweight": "bold", "ha": "right"}
        ax.text(x - 0.75, 6.82, f"${name}$", fontsize=13, **label)
        arrow(ax, (3.6 + (x - 3.6) * 0.35, 8.15), (x, 7.4))
    for head, x in enumerate([1.6, 5.2]):
        arrow(ax, (3.6 + (x - 3.6) * 0.75, 6.42), (x, 5.75))
        for shift in (-0.8, 0, 0.8):
            _block(ax, x + shift, 5.25, length, width, HEADS[head])
        names = zip((-0.8, 0, 0.8), "QKV", strict=True)
        for shift, name in names:
            ax.text(x + shift, 5.25, f"${name}_{head}$", ha="center", va="center")
        _block(ax, x - 0.55, 3.75, length, length, HEADS[head])
        ax.text(x - 0.55, 3.75, f"$P_{head}$", ha="center", va="center")
        _block(ax, x + 0.6, 3.75, length, width, HEADS[head])
        ax.text(x + 0.6, 3.75, f"$Z_{head}$", ha="center", va="center")
        arrow(ax, (x, 4.8), (x, 4.22))
        arrow(ax, (x + 0.6, 3.3), (3.6 + (x - 3.4) * 0.2, 2.72))
    _bands(ax, 3.6, 2.25, length, width, heads)
    ax.text(3.6, 2.25, "$Z_0$      $Z_1$", ha="center", va="center")
    arrow(ax, (3.6, 1.8), (3.6, 1.12))
    ax.text(3.75, 1.45, "$\\cdot\\ W_O$", va="center")
    _block(ax, 3.6, 0.65, length, heads * width, COLORS["output"])
    ax.text(3.6, 0.65, "$Y\\ (T, d)$", ha="center", va="center", color="white")
    ax.text(3.6, 8.6, "$X\\ (T, d)$", ha="center", va="center", color="white")
    for y, text in [
        (8.6, "input"),
        (6.9, "1  project"),
        (5.25, "2  split"),
        (3.75, "3  attend,\n    each head\n    for itself"),
        (2.25, "4  merge"),
        (0.65, "    and mix"),
    ]:
        ax.text(-1.15, y, text, va="center", fontweight="bold", color="#444444")
    ax.set(xlim=(-1.2, 6.9), ylim=(0.1, 9.1), aspect="equal")
    ax.axis("off")
    plt.show()


def masks_seen(right: Any, wrong: Any) -> None:
    """Draw which keys every head of every sequence may see, rightly and wrongly.

    Args:
        right: boolean, (sequences, heads, T, T).
        wrong: the same, after the mask went to the wrong axis.
    """
    right, wrong = as_array(right), as_array(wrong)
    _, axes = plt.subplots(2, 4, figsize=(6.8, 3.9))
    for sequence in range(2):
        for column in range(4):
            ax, head = axes[sequence, column], column % 2
            allowed = (right if column < 2 else wrong)[sequence, head]
            good = (allowed == right[sequence, head]).all()
            names = list("0123") if column == 0 else None
            matrix_heatmap(
                ax, allowed, names, annotate=False, visible=allowed, limits=(0, 1.6)
            )
            title = f"head {head}" if sequence == 0 else ""
            ax.set_title(title, color=COLORS["right" if column < 2 else "wrong"])
            if not good:
                mark = {"ha": "center", "va": "center", "fontweight": "bold"}
                color = COLORS["wrong"]
                mark["bbox"] = {"boxstyle": "round", "fc": "white", "ec": color}
                ax.text(1.5, 1.5, "wrong", color=color, fontsize=11, **mark)
        axes[sequence, 0].set_ylabel(f"sequence {sequence}")
    axes[1, 0].set_xlabel("(B, 1, 1, T)", loc="left", fontfamily="monospace")
    axes[1, 2].set_xlabel("(B, 1, T)", loc="left", fontfamily="monospace")
    plt.show()


def groups(heads: int, choices: dict[str, int]) -> None:
    """Draw which query head uses which pair of key and value heads.

    Args:
        heads: number of query heads.
        choices: name -> number of key and value heads; one row each.
    """
    _, axes = plt.subplots(len(choices), 1, figsize=(6.0, 1.55 * len(choices)))
    for ax, (name, kv_heads) in zip(axes, choices.items(), strict=True):
        size = heads // kv_heads
        for head in range(heads):
            group = head // size
            middle = group * size + (size - 1) / 2
            ax.plot([head, middle], [1, 0], color="#B5B5B5", lw=1.6, zorder=0)
            ax.plot(head, 1, "o", color=COLORS["query"], ms=15)
            ax.plot(middle, 0, "s", color=COLORS["key"], ms=15)
            text = {"ha": "center", "va": "center", "color": "white", "fontsize": 9}
            ax.text(head, 0.98, head, **text)
            ax.text(middle, -0.02, group, **text)
        ax.text(-1.0, 1, "queries", ha="right", va="center", color=COLORS["query"])
        ax.text(-1.0, 0, "keys, values", ha="right", va="center", color=COLORS["key"])
        ax.set_title(name, loc="left", fontsize=11)
        ax.set(xlim=(-3.2, heads - 0.5), ylim=(-0.4, 1.4))
        ax.axis("off")
    plt.show()
