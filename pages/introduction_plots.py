"""The drawings of the introduction: tasks, waiting, the way of a text.

Each function draws one figure and shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from workbench.plots import COLORS, SIGNED, WEIGHTS, as_array

INK, GREY, PALE = "#444444", "#7A7A7A", "#F4F4F4"
# The encoder is blue and the decoder ochre, as in their chapters; others are plain.
CHAPTERS = dict.fromkeys(range(1, 9), INK)
CHAPTERS |= {6: COLORS["query"], 7: COLORS["output"]}
Point = tuple[float, float]


def arrow(
    ax: Axes, start: Point, end: Point, color: str = INK, lw: float = 1.5
) -> None:
    """Draw an arrow from one point to another."""
    style = {"arrowstyle": "-|>", "color": color, "lw": lw, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=end, xytext=start, arrowprops=style, zorder=2)


def badge(ax: Axes, x: float, y: float, chapter: int, size: float = 15) -> None:
    """Draw a chapter's number in a disc of its colour."""
    ax.plot(x, y, "o", ms=size, color=CHAPTERS[chapter], mec="white", zorder=6)
    style: dict[str, Any] = {
        "color": "white",
        "fontweight": "bold",
        "ha": "center",
        "zorder": 7,
    }
    ax.text(x, y, str(chapter), va="center_baseline", fontsize=0.62 * size, **style)


def frame(ax: Axes, corner: Point, width: float, height: float, color: str) -> None:
    """Draw the pale background that holds several parts."""
    style: dict[str, Any] = {
        "boxstyle": "round,pad=0,rounding_size=0.15",
        "fc": PALE,
        "ec": color,
    }
    ax.add_patch(FancyBboxPatch(corner, width, height, lw=1.2, zorder=0, **style))


# Tasks -----------------------------------------------------------------------------


def tasks() -> None:
    """Draw four kinds of tasks by how many vectors go in and how many come out."""
    _, axes = plt.subplots(2, 2, figsize=(6.6, 5.6))
    kinds = [
        ("many to one", "sentiment of a sentence", [0, 1, 2, 3], [1.5]),
        ("many to many, one for each", "a tag for every word", [0, 1, 2, 3], None),
        ("many to many, another length", "translation", [0, 1, 2], [4, 5, 6, 7]),
        ("one to many", "continue one word", [0], [0, 1, 2, 3]),
    ]
    for ax, (title, example, inputs, outputs) in zip(axes.flat, kinds, strict=True):
        outputs = inputs if outputs is None else outputs
        span = inputs + outputs
        left, right = min(span) - 0.5, max(span) + 0.5
        frame(ax, (left, 1.0), right - left, 1.0, GREY)
        ax.text((left + right) / 2, 1.5, "Transformer", ha="center", va="center")
        for spots, role, y in ((inputs, "input", 0.0), (outputs, "query", 3.0)):
            for x in spots:
                box = plt.Rectangle((x - 0.16, y - 0.45), 0.32, 0.9, fc=COLORS[role])
                ax.add_patch(box)
                arrow(
                    ax, *(((x, 0.5), (x, 0.98)) if y == 0 else ((x, 2.02), (x, 2.52)))
                )
        ax.set_title(title, fontsize=11)
        ax.text((left + right) / 2, -0.75, example, ha="center", va="top", color=INK)
        middle = (left + right) / 2
        ax.set(xlim=(middle - 4.2, middle + 4.2), ylim=(-1.3, 3.6))
        ax.axis("off")
    plt.show()


# Waiting ---------------------------------------------------------------------------


def waiting(length: int = 8) -> None:
    """Draw three networks; each unit carries the first moment it can be computed."""
    _, axes = plt.subplots(3, 1, figsize=(6.1, 6.9), height_ratios=[1.25, 2.3, 1.25])
    layers = length // 2  # rounded up: (length - 1) / 2
    titles = [
        f"recurrent: {length} moments, one unit at each",
        f"convolution, kernel 3: {layers} moments, {length} units at each",
        f"attention: 1 moment, {length} units at once",
    ]
    tops = [1, layers, 1]
    for ax, title, top in zip(axes, titles, tops, strict=True):
        ax.set_title(title, loc="left", fontsize=11)
        for t in range(length):
            ax.plot(t, 0, "o", ms=7, color=COLORS["input"])
        ax.set(xlim=(-0.5, length - 0.5), ylim=(-0.3, top + 0.4))
        ax.axis("off")
    for t in range(length):
        arrow(axes[0], (t, 0.12), (t, 0.78))
        if t:
            arrow(axes[0], (t - 0.78, 1), (t - 0.2, 1), COLORS["query"], 2)
        _unit(axes[0], t, 1, t + 1)
        for source in range(length):
            thin = {"color": "#CFCFCF", "lw": 0.9, "zorder": 1}
            axes[2].plot((source, t), (0.1, 0.9), **thin)
        _unit(axes[2], t, 1, 1)
        for layer in range(1, layers + 1):
            for back in (0, 1, 2):
                if t >= back:
                    thin = {"color": "#CFCFCF", "lw": 0.9, "zorder": 1}
                    axes[1].plot((t - back, t), (layer - 1, layer), **thin)
            _unit(axes[1], t, layer, layer)
    plt.show()


def _unit(ax: Axes, x: float, y: float, moment: int) -> None:
    """Draw one unit with the number of its moment."""
    ax.plot(x, y, "s", ms=17, mfc="white", mec=COLORS["query"], mew=1.6, zorder=4)
    style: dict[str, Any] = {
        "ha": "center",
        "va": "center_baseline",
        "fontsize": 10,
        "zorder": 5,
    }
    ax.text(x, y, str(moment), color=COLORS["query"], **style)


def timing(lengths: Sequence[int], times: dict[str, Sequence[float]]) -> None:
    """Draw measured milliseconds, and how many times attention's time they are.

    Args:
        lengths: the lengths of the sequences.
        times: name -> milliseconds for each length; the last one is attention.
    """
    _, axes = plt.subplots(1, 2, figsize=(7.0, 3.5))
    colors = [COLORS["key"], COLORS["output"], COLORS["value"], COLORS["query"]]
    marks = ["o", "s", "^", "D"]
    reference = as_array(list(times.values())[-1])
    for (name, row), color, mark in zip(times.items(), colors, marks, strict=True):
        style = {"color": color, "marker": mark, "ms": 5, "label": name}
        axes[0].plot(lengths, row, **style)
        axes[1].plot(lengths, as_array(row) / reference, **style)
    axes[0].set(title="milliseconds", xlabel="tokens T")
    axes[1].set(title="times the attention layer", xlabel="tokens T")
    for ax in axes:
        ax.set(xscale="log", yscale="log")
        ax.set_xticks(lengths, [str(length) for length in lengths])
        ax.yaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
    axes[0].legend(fontsize=9)
    plt.show()


# Families --------------------------------------------------------------------------


def families(masks: dict[str, Any]) -> None:
    """Draw the three families: which towers they keep, and who may look at whom.

    Args:
        masks: name of a family -> its mask, boolean (T_tgt, T_src).
    """
    _, axes = plt.subplots(2, 3, figsize=(6.2, 3.6), height_ratios=[1, 2.1])
    for column, (name, mask) in enumerate(masks.items()):
        ax = axes[0, column]
        ax.set_title(name, fontsize=11)
        for x, tower, chapter in ((0, "encoder", 6), (2.6, "decoder", 7)):
            kept = tower in name
            color = CHAPTERS[chapter] if kept else "#BBBBBB"
            face = color if kept else "white"
            style: dict[str, Any] = {
                "boxstyle": "round,pad=0,rounding_size=0.15",
                "ec": color,
            }
            style |= {"fc": face, "ls": "-" if kept else "--"}
            ax.add_patch(FancyBboxPatch((x - 1, 0), 2, 1.5, lw=1.5, **style))
            ink = "white" if kept else "#8A8A8A"
            ax.text(x, 0.75, tower, color=ink, ha="center", va="center", fontsize=10)
        if "encoder" in name and "decoder" in name:
            arrow(ax, (1.02, 0.75), (1.58, 0.75), lw=2)
        ax.set(xlim=(-1.3, 3.9), ylim=(-0.1, 1.7), aspect="equal")
        ax.axis("off")
        ax = axes[1, column]
        ax.imshow(as_array(mask).astype(float), WEIGHTS, vmin=0, vmax=1.4)
        rows, columns = as_array(mask).shape
        ax.set_xticks([x - 0.5 for x in range(columns + 1)], [])
        ax.set_yticks([y - 0.5 for y in range(rows + 1)], [])
        ax.grid(color="white", lw=1.5)
        ax.tick_params(length=0)
        crossing = rows != columns
        ax.set_xlabel("source: is asked" if crossing else "is asked", fontsize=10)
        ax.set_ylabel("target: asks" if crossing else "asks", fontsize=10)
        for side in ax.spines.values():
            side.set_visible(False)
    plt.show()


# The way of a sentence -------------------------------------------------------------


def strip(rows: Sequence[tuple[int, str, str, Any]]) -> None:
    """Draw the stations of a sentence, one below the other.

    Args:
        rows: chapter, what happens, the shape in words, and what is shown: a list of
            strings (boxes), a list of matrices side by side, one matrix, or a dict
            from words to probabilities (bars).
    """
    heights = [_height(shown) for *_, shown in rows]
    grid = {"height_ratios": heights, "hspace": 0.08}
    size = (6.8, 0.62 * sum(heights) + 0.2)
    figure = plt.figure(figsize=size, layout="none")
    axes = figure.subplots(len(rows), 1, gridspec_kw=grid)
    figure.subplots_adjust(left=0.40, right=0.99, top=0.995, bottom=0.005)
    for ax, (chapter, text, shape, shown), height in zip(
        axes, rows, heights, strict=True
    ):
        ax.axis("off")
        ax.set(xlim=(0, 10), ylim=(-height / 2, height / 2))
        badge(ax, -6.3, 0.0, chapter, 17)
        ax.texts[-1].set_clip_on(False)
        ax.lines[-1].set_clip_on(False)
        style = {"va": "center", "clip_on": False, "linespacing": 1.3}
        ax.text(-5.85, 0.17, text, color=CHAPTERS[chapter], fontsize=10, **style)
        ax.text(-5.85, -0.27, shape, color=INK, fontsize=9, family="monospace", **style)
        _show(ax, shown, height)
    for above, below in pairwise(axes):
        low, high = below.get_position().y1, above.get_position().y0
        line = plt.Line2D((0.01, 0.99), ((low + high) / 2,) * 2, color="#DDDDDD", lw=1)
        figure.add_artist(line)
    plt.show()


def _height(shown: Any) -> float:
    """Say how tall a station is drawn."""
    if isinstance(shown, dict):
        return 0.42 * len(shown) + 0.35
    if isinstance(shown, list) and isinstance(shown[0], str):
        return 1.15
    first = as_array(shown[0] if isinstance(shown, list) else shown)
    return 0.27 * first.shape[0] + 0.45


def _show(ax: Axes, shown: Any, height: float) -> None:
    """Draw what a station holds: boxes, matrices or bars."""
    if isinstance(shown, dict):
        for row, (word, share) in enumerate(shown.items()):
            y = 0.42 * (len(shown) - 1) / 2 - 0.42 * row
            ax.barh(y, 5.2 * share, left=2.6, height=0.3, color=CHAPTERS[1])
            ax.text(2.45, y, word, ha="right", va="center", fontsize=9.5)
            ax.text(2.75 + 5.2 * share, y, f"{share:.2f}", va="center", fontsize=9.5)
        return
    if isinstance(shown, list) and isinstance(shown[0], str):
        _boxes(ax, shown)
        return
    x = 0.2
    for matrix in shown if isinstance(shown, list) else [shown]:
        values = as_array(matrix)
        signed = values.min() < 0
        tall = 0.27 * values.shape[0]
        wide = min(9.6, 0.46 * values.shape[1])
        reach = max(abs(values.min()), abs(values.max())) if signed else 1.0
        extent = (x, x + wide, -tall / 2, tall / 2)
        style: dict[str, Any] = {
            "vmin": -reach if signed else 0,
            "vmax": reach,
            "aspect": "auto",
        }
        ax.imshow(values, SIGNED if signed else WEIGHTS, extent=extent, **style)
        for row in range(1, values.shape[0]):
            y = tall / 2 - 0.27 * row
            ax.plot((x, x + wide), (y, y), color="white", lw=1.2)
        x += wide + 0.5
    ax.set(xlim=(0, 10), ylim=(-height / 2, height / 2))


def _boxes(ax: Axes, words: Sequence[str]) -> None:
    """Draw strings in boxes, one beside the other; a string may have two lines."""
    x = 0.2
    for word in words:
        longest = max(len(line) for line in word.split("\n"))
        width = 0.24 * longest + 0.35
        style: dict[str, Any] = {
            "boxstyle": "round,pad=0,rounding_size=0.08",
            "fc": PALE,
            "ec": GREY,
        }
        ax.add_patch(FancyBboxPatch((x, -0.4), width, 0.8, lw=1, **style))
        where: dict[str, Any] = {
            "ha": "center",
            "va": "center",
            "fontsize": 9.5,
            "linespacing": 1.35,
        }
        ax.text(x + width / 2, 0, word, **where)
        x += width + 0.18
