"""The larger drawings of the chapter on several heads: splits, stages, groups.

Each function draws one figure from what the page computed and shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from workbench.plots import COLORS, as_array, matrix_heatmap, parts_of

HEADS = ["#56B4E9", "#E69F00", "#5FBF9F", "#D9A0C1"]  # one colour a head, all light
DARKER = ["#2F93CC", "#C08400"]  # the first two, for lines on white


def arrow(
    ax: Axes, start: Any, end: Any, color: str = "#777777", lw: float = 1.8
) -> None:
    """Draw an arrow from one point to another."""
    style = {"arrowstyle": "-|>", "color": color, "lw": lw, "shrinkA": 0, "shrinkB": 0}
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
            style: dict[str, Any] = {"color": COLORS[role], "ms": 8}
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
                ax.text(left + width / 2, top + 0.2, f"head {which + 1}", ha="center")
        ax.set_title(title, color=COLORS[color], pad=14)
        ax.set(xlim=(-0.9, 2 * width + 0.3), ylim=(-2 * length - 1.4, 0.7))
        ax.set_aspect("equal")
        ax.axis("off")
    axes[0].text(width, -length - 0.4, "columns 0, 1: head 1", ha="center", va="top")
    axes[0].text(width, -length - 1.2, "columns 2, 3: head 2", ha="center", va="top")
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
    middle, half = 3.6, 0.32  # of the picture; from a matrix to the middle of a half
    _, ax = plt.subplots(figsize=(6.8, 8.2))
    _block(ax, middle, 10.4, length, heads * width, COLORS["input"])
    whole = [(1.4, "Q", "query"), (middle, "K", "key"), (5.8, "V", "value")]
    for x, name, role in whole:
        _bands(ax, x, 8.6, length, width, heads)
        label: dict[str, Any] = {
            "color": COLORS[role],
            "fontweight": "bold",
            "ha": "right",
        }
        ax.text(x - 0.75, 8.6, f"${name}$", fontsize=13, va="center", **label)
        arrow(ax, (middle + (x - middle) * 0.3, 9.9), (x, 9.1))
    for head, x in enumerate([1.4, 5.6]):
        for shift, (source, name, _) in zip((-0.9, 0, 0.9), whole, strict=True):
            place = source + (half if head else -half)
            arrow(ax, (place, 8.12), (x + shift, 6.88), DARKER[head], 1.5)
            _block(ax, x + shift, 6.4, length, width, HEADS[head])
            _name(ax, x + shift, 6.4, f"${name}_{head + 1}$")
        _block(ax, x - 0.45, 4.5, length, length, HEADS[head])
        _name(ax, x - 0.45, 4.5, f"$P_{head + 1}$")
        _block(ax, x + 0.9, 4.5, length, width, HEADS[head])
        _name(ax, x + 0.9, 4.5, f"$Z_{head + 1}$")
        arrow(ax, (x - 0.9, 5.92), (x - 0.6, 4.98))
        arrow(ax, (x, 5.92), (x - 0.3, 4.98))
        arrow(ax, (x + 0.9, 5.92), (x + 0.9, 4.98))
        arrow(ax, (x + 0.02, 4.5), (x + 0.52, 4.5))
        place = middle + (half if head else -half)
        arrow(ax, (x + 0.9, 4.02), (place, 3.08), DARKER[head], 1.5)
        _name(ax, place, 2.6, f"$Z_{head + 1}$", zorder=4)
    _bands(ax, middle, 2.6, length, width, heads)
    arrow(ax, (middle, 2.12), (middle, 1.18))
    ax.text(middle + 0.18, 1.65, "times $W_O$", va="center")
    _block(ax, middle, 0.7, length, heads * width, COLORS["output"])
    _name(ax, middle, 0.7, "$Y\\ (T, d)$", color="white")
    _name(ax, middle, 10.4, "$X\\ (T, d)$", color="white")
    for y, text in [
        (10.4, "input"),
        (8.6, "1  project"),
        (6.4, "2  split"),
        (4.5, "3  attend,\n    each head\n    for itself"),
        (2.6, "4  merge"),
        (0.7, "    and mix"),
    ]:
        ax.text(-1.75, y, text, va="center", fontweight="bold", color="#444444")
    ax.set(xlim=(-1.8, 6.9), ylim=(0.2, 10.9), aspect="equal")
    ax.axis("off")
    plt.show()


def _name(ax: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Write a name in the middle of a block."""
    ax.text(x, y, text, ha="center", va="center", fontsize=12, **style)


def masks_seen(right: Any, wrong: Any) -> None:
    """Draw which keys every head of every sequence may see, rightly and wrongly.

    Args:
        right: boolean, (sequences, heads, T, T).
        wrong: the same, after the mask went to the wrong axis.
    """
    figure = plt.figure(figsize=(6.8, 4.0))
    halves = parts_of(figure, 1, 2, wspace=0.06)
    sides = [(right, "(B, 1, 1, T)", "right"), (wrong, "(B, 1, T)", "wrong")]
    for half, (seen, shape, role) in zip(halves, sides, strict=True):
        half.suptitle(f"mask {shape}", color=COLORS[role], fontweight="bold")
        axes = half.subplots(2, 2)
        for (sequence, head), ax in np.ndenumerate(axes):
            allowed = as_array(seen)[sequence, head]
            names = list("0123") if head == 0 else None
            matrix_heatmap(
                ax, allowed, names, annotate=False, visible=allowed, limits=(0, 1.6)
            )
            if sequence == 0:
                ax.set_title(f"head {head + 1}", fontsize=11, fontweight="normal")
            if not (allowed == as_array(right)[sequence, head]).all():
                mark: dict[str, Any] = {
                    "ha": "center",
                    "va": "center",
                    "fontweight": "bold",
                }
                color = COLORS["wrong"]
                mark["bbox"] = {"boxstyle": "round", "fc": "white", "ec": color}
                ax.text(1.5, 1.5, "wrong", color=color, fontsize=11, **mark)
            if head == 0:
                ax.set_ylabel(f"sequence {sequence}")
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
            ax.text(head, 0.98, head + 1, **text)
            ax.text(middle, -0.02, group + 1, **text)
        ax.text(-1.0, 1, "queries", ha="right", va="center", color=COLORS["query"])
        ax.text(-1.0, 0, "keys, values", ha="right", va="center", color=COLORS["key"])
        ax.set_title(name, loc="left", fontsize=11)
        ax.set(xlim=(-3.2, heads - 0.5), ylim=(-0.4, 1.4))
        ax.axis("off")
    plt.show()
