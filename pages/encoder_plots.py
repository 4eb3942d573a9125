"""The larger drawings of the chapter on the encoder: diagrams, groups, streams, masks.

Each function draws one figure from what the page computed and shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from workbench.plots import COLORS, as_array, matrix_heatmap, set_gaps

GREY = "#D8D8D8"
STREAM = "#555555"


def arrow(ax: Axes, start: Any, end: Any, color: str = STREAM, lw: float = 1.6) -> None:
    """Draw an arrow from one point to another."""
    style = {"arrowstyle": "-|>", "color": color, "lw": lw, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=end, xytext=start, arrowprops=style, zorder=1)


def line(ax: Axes, *points: tuple[float, float], color: str = STREAM) -> None:
    """Draw a line through points."""
    ax.plot(*zip(*points, strict=True), color=color, lw=1.6, zorder=1)


def box(
    ax: Axes, x: float, y: float, text: str, color: str, width: float = 1.7
) -> None:
    """Draw a box of fixed width with a text in it."""
    size = (width, 0.56)
    corner = (x - width / 2, y - size[1] / 2)
    style: dict[str, Any] = {"fc": "white", "ec": color, "lw": 1.8, "zorder": 3}
    ax.add_patch(plt.Rectangle(corner, *size, **style))
    ax.text(x, y, text, ha="center", va="center", color=color, fontsize=10, zorder=4)


def plus(ax: Axes, x: float, y: float) -> None:
    """Draw the sign of an addition in a circle."""
    ax.plot(x, y, "o", ms=15, mfc="white", mec=STREAM, mew=1.6, zorder=3)
    ax.text(x, y, "+", ha="center", va="center_baseline", color=STREAM, zorder=4)


def whole_way() -> None:
    """Draw the five stations of a Transformer, the encoder filled."""
    names = ["before the\nencoder", "encoder", "before the\ndecoder", "decoder"]
    names.append("after the\ndecoder")
    notes = ["embedding,\nposition", "this\nchapter", "embedding,\nposition"]
    notes += ["masked and\ncross", "scores for\nwords"]
    _, ax = plt.subplots(figsize=(6.8, 1.6))
    for x, (name, note) in enumerate(zip(names, notes, strict=True)):
        here = name == "encoder"
        color = COLORS["query"] if here else "#777777"
        face = color if here else "white"
        corner = (1.5 * x - 0.58, 0.35)
        ax.add_patch(plt.Rectangle(corner, 1.16, 0.8, fc=face, ec=color, lw=1.8))
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 10}
        ax.text(1.5 * x, 0.75, name, color="white" if here else color, **style)
        ax.text(1.5 * x, -0.02, note, color=color, **{**style, "fontsize": 9})
    for left in (0, 3, 4.5):
        arrow(ax, (left + 0.6, 0.75), (left + 0.9, 0.75), "#777777")
    line(ax, (1.5, 1.17), (1.5, 1.5), (4.5, 1.5), color=COLORS["query"])
    arrow(ax, (4.5, 1.5), (4.5, 1.18), COLORS["query"])
    style = {"color": COLORS["query"], "ha": "center", "va": "bottom", "fontsize": 10}
    ax.text(3, 1.6, "keys and values", **style)
    ax.set(xlim=(-0.7, 6.7), ylim=(-0.35, 1.95))
    ax.axis("off")
    plt.show()


def two_layers() -> None:
    """Draw an encoder layer with its norms after and before its sub-layers."""
    _, axes = plt.subplots(1, 2, figsize=(6.4, 5.8))
    for ax, first in zip(axes, (False, True), strict=True):
        title = (
            "norm_first=True (pre-norm)" if first else "norm_first=False (post-norm)"
        )
        ax.set_title(title, fontsize=11)
        kinds = [("MultiHeadAttention", "query"), ("FeedForward", "output")]
        for which, (name, role) in enumerate(kinds):
            low = 0.3 + 3.3 * which
            norm, part = (0.85, 1.75) if first else (2.85, 1.15)
            ax.text(-0.15, low + 0.08, ["Z", "N"][which], color=STREAM, ha="right")
            line(ax, (0, low - 0.3), (0, low + 3.3))
            line(ax, (0, low + 0.2), (1.6, low + 0.2))
            end = low + 2.25 if first else low + 2.0
            arrow(ax, (1.6, low + 0.2), (1.6, low + (norm if first else part) - 0.28))
            box(ax, 1.6, low + part, name, COLORS[role], 2.15)
            if first:
                box(ax, 1.6, low + norm, "LayerNorm", COLORS["weight"], 2.15)
                line(ax, (1.6, low + norm + 0.28), (1.6, low + part - 0.28))
            else:
                box(ax, 0, low + norm, "LayerNorm", COLORS["weight"], 1.7)
            line(ax, (1.6, low + part + 0.28), (1.6, end + 0.15))
            arrow(ax, (1.6, end + 0.15), (0.2, end + 0.15))
            plus(ax, 0, end + 0.15)
            style = {"color": COLORS[role], "ha": "center"}
            ax.text(0.95, end + 0.24, ["A", "O"][which], **style)
        arrow(ax, (0, 6.9), (0, 7.5))
        ax.text(0, 7.6, "Z′", ha="center", color=STREAM)
        ax.set(xlim=(-1.05, 2.8), ylim=(-0.1, 8))
        ax.axis("off")
    plt.show()


def norm_groups() -> None:
    """Draw which numbers share a mean: a token's, a feature's, or all of a sequence."""
    _, axes = plt.subplots(1, 3, figsize=(6.8, 3.4))
    titles = [
        "layer norm:\none token",
        "batch norm:\none feature",
        "whole tensor:\nall",
    ]
    for ax, title in zip(axes, titles, strict=True):
        for sequence in range(2):
            for t in range(4):
                for c in range(5):
                    kind = title.split(":")[0]
                    group = {
                        "layer norm": (sequence, t) == (0, 1),
                        "batch norm": c == 2,
                        "whole tensor": sequence == 0,
                    }[kind]
                    face = COLORS["query"] if group else "#EEEEEE"
                    corner = (c, 9.6 - 5.1 * sequence - t)
                    style: dict[str, Any] = {"fc": face, "ec": "white", "lw": 1.5}
                    ax.add_patch(plt.Rectangle(corner, 1, 1, **style))
        ax.set_title(title, fontsize=10.5)
        ax.set(xlim=(-0.9, 5.1), ylim=(0.7, 10.7), aspect="equal")
        ax.axis("off")
    for sequence in range(2):
        style = {"rotation": 90, "va": "center", "ha": "center", "fontsize": 10}
        name = f"sequence {sequence}"
        axes[0].text(-0.5, 8.6 - 5.1 * sequence, name, color=STREAM, **style)
    for ax in axes:
        ax.text(2.5, 0.75, "features", ha="center", va="top", color=STREAM, fontsize=10)
    plt.show()


def stream(names: Sequence[str], norms: dict[str, Any]) -> None:
    """Draw the stream of two pre-norm layers, and how long its vectors are measured.

    Args:
        names: of the parts that add to the stream, in order.
        norms: name of a curve -> mean length of a token's vector after each layer.
    """
    _, axes = plt.subplots(2, 1, figsize=(7.2, 5.2), height_ratios=[1, 1.7])
    ax, width = axes[0], 1.85
    arrow(ax, (-0.85, 0), (width * len(names) + 0.1, 0), STREAM, 3)
    ax.text(-0.95, 0, "$x_0$", ha="right", va="center")
    ax.text(width * len(names) + 0.2, 0, "final\nnorm", va="center", fontsize=10)
    for index, name in enumerate(names):
        x = width * index
        color = COLORS["query" if index % 2 == 0 else "output"]
        line(ax, (x - 0.5, 0), (x - 0.5, 1.1), color=color)
        arrow(ax, (x - 0.5, 1.1), (x - 0.26, 1.1), color)
        box(ax, x + 0.22, 1.1, name, color, 0.96)
        ax.texts[-1].set_fontsize(9)
        line(ax, (x + 0.7, 1.1), (x + 0.9, 1.1), color=color)
        arrow(ax, (x + 0.9, 1.1), (x + 0.9, 0.2), color)
        plus(ax, x + 0.9, 0)
    ax.set(xlim=(-1.2, width * len(names) + 1), ylim=(-0.45, 1.6))
    ax.axis("off")
    for (name, values), role in zip(norms.items(), ("right", "wrong"), strict=True):
        axes[1].plot(as_array(values), "o-", ms=3.5, color=COLORS[role], label=name)
    axes[1].set(xlabel="layers passed", ylabel="length of a token's vector", ylim=0)
    axes[1].legend()
    plt.show()


def jacobians(blocks: dict[str, Any]) -> None:
    """Draw, for several maps, how much output token i depends on input token j."""
    figure, axes = plt.subplots(1, len(blocks), figsize=(6.8, 2.9))
    set_gaps(figure, w_pad=0.08)
    for ax, (name, sizes) in zip(axes, blocks.items(), strict=True):
        tokens = [str(t) for t in range(len(as_array(sizes)))]
        rows = tokens if ax is axes[0] else None
        matrix_heatmap(
            ax, sizes, rows, tokens, title=name, column_title="input token", digits=1
        )
        for text in ax.texts:
            text.set_fontsize(8.5)
        ax.title.set_fontsize(11)
    axes[0].set_ylabel("output token")
    plt.show()


def activations(x: Any, curves: dict[str, Any], slopes: dict[str, Any]) -> None:
    """Draw activation functions at the left and their slopes at the right."""
    _, axes = plt.subplots(1, 2, figsize=(6.8, 3))
    panels = [("value", curves), ("slope", slopes)]
    for ax, (title, lines) in zip(axes, panels, strict=True):
        roles = ("wrong", "right", "value")
        styles = ("-", "-", "--")
        for (name, values), role, style in zip(
            lines.items(), roles, styles, strict=True
        ):
            ax.plot(x, as_array(values), style, color=COLORS[role], label=name)
        ax.axhline(0, color="#BBBBBB", lw=0.8, zorder=0)
        ax.axvline(0, color="#BBBBBB", lw=0.8, zorder=0)
        ax.set(title=title, xlabel="x")
    axes[0].legend()
    plt.show()


def layer_steps(steps: dict[str, Any], words: Sequence[str]) -> None:
    """Draw the tensors of one layer as heat-maps of tokens and features, in two rows.

    Args:
        steps: name -> (T, d), six of them.
        words: the tokens.
    """
    figure, axes = plt.subplots(3, 2, figsize=(7.4, 6.6))
    set_gaps(figure, h_pad=0.1)
    for index, (ax, (name, matrix)) in enumerate(
        zip(axes.flat, steps.items(), strict=True)
    ):
        rows = words if index % 2 == 0 else [""] * len(words)
        limits = (-3.2, 3.2)
        matrix_heatmap(ax, matrix, rows, title=name, digits=1, limits=limits)
        ax.set_aspect("auto")
        for text in ax.texts:
            text.set_fontsize(8)
        ax.title.set_fontsize(11)
    plt.show()


def depth_panels(depths: Sequence[int], last: Any, layers: Any) -> None:
    """Draw gradients: of the last layer against depth, of each layer in the deepest.

    Args:
        depths: numbers of layers.
        last: (2, depths, seeds), post-norm first.
        layers: (2, deepest), means over the seeds.
    """
    figure, axes = plt.subplots(1, 2, figsize=(6.8, 3.3))
    set_gaps(figure, w_pad=0.1)
    last, layers = as_array(last), as_array(layers)
    for which, (name, role) in enumerate(
        [("post-norm", "wrong"), ("pre-norm", "right")]
    ):
        color = COLORS[role]
        for seed in range(last.shape[2]):
            axes[0].plot(depths, last[which, :, seed], ".", color=color, alpha=0.45)
        axes[0].plot(depths, last[which].mean(-1), "-", color=color, label=name)
        axes[1].plot(np.arange(layers.shape[1]), layers[which], color=color, lw=1.6)
    axes[0].set(title="last layer", xlabel="layers", ylabel="length of the gradient")
    axes[0].set(xscale="log", ylim=0)
    axes[0].set_xticks(depths, [str(depth) for depth in depths])
    axes[0].minorticks_off()
    axes[0].legend(loc="upper left")
    axes[0].set_ylim(top=1.35 * last.max())
    axes[1].set(title=f"each of {layers.shape[1]} layers", xlabel="layer", ylim=0)
    plt.show()


def work_shares(
    lengths: Any, shares: dict[str, Any], crossings: dict[str, int]
) -> None:
    """Draw the shares of a layer's work as stripes that fill 0 to 1, against T."""
    _, ax = plt.subplots(figsize=(6.2, 3.3))
    colors = [COLORS["output"], COLORS["query"], COLORS["key"]]
    values = [as_array(share) for share in shares.values()]
    ax.stackplot(as_array(lengths), *values, colors=colors, alpha=0.85)
    for name, share, place in zip(shares, values, (0.14, 0.14, 0.78), strict=True):
        index = int(place * len(share))
        height = low_at(values, name, list(shares), index) + share[index] / 2
        style: dict[str, Any] = {
            "ha": "center",
            "va": "center",
            "color": "white",
            "fontweight": "bold",
        }
        ax.text(as_array(lengths)[index], height, name, **style)
    for text, length in crossings.items():
        ax.axvline(length, color="#111111", lw=1.2, ls="--")
        ax.annotate(
            text, (length, 1.0), (0, 4), textcoords="offset points", ha="center"
        )
    ax.set(xscale="log", xlabel="T", ylabel="share of the work", ylim=(0, 1))
    ax.set(xlim=(as_array(lengths)[0], as_array(lengths)[-1]))
    ticks = [128, 512, 2048, 8192, 32768]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    plt.show()


def low_at(values: list[Any], name: str, names: list[str], index: int) -> float:
    """Return where a stripe begins at one place."""
    return float(sum(value[index] for value in values[: names.index(name)]))


def family_masks(masks: dict[str, tuple[Any, Sequence[str], Sequence[str]]]) -> None:
    """Draw masks with the words that ask and the words that are asked, at one scale."""
    sizes = [len(columns) + 2 for _, _, columns in masks.values()]  # and their names
    _, axes = plt.subplots(1, len(masks), figsize=(7.2, 3.2), width_ratios=sizes)
    for ax, (title, (mask, rows, columns)) in zip(axes, masks.items(), strict=True):
        visible = as_array(mask)
        matrix_heatmap(
            ax, visible, rows, columns, visible=visible, annotate=False, limits=(0, 1.6)
        )
        ax.set_title(title, fontsize=11)
        ax.set_anchor("N")
        ax.tick_params(axis="x", rotation=60)
        for tick in (*ax.get_xticklabels(), *ax.get_yticklabels()):
            tick.set_fontsize(9)
    plt.show()


def learning(steps: Any, curves: dict[str, Any], chance: float) -> None:
    """Draw accuracies against training steps, with a line for what guessing gives."""
    _, ax = plt.subplots(figsize=(5.8, 3))
    for (name, values), role in zip(curves.items(), ("right", "wrong"), strict=True):
        ax.plot(steps, as_array(values), "o-", ms=4, color=COLORS[role], label=name)
    ax.axhline(chance, color=COLORS["muted"], lw=1.2, ls=":", label="guessing")
    ax.set(xlabel="training steps", ylabel="right, new sentences", ylim=(0.4, 1.03))
    ax.legend(loc="center right")
    plt.show()


def guesses(
    sentences: Sequence[str], tables: Sequence[list[tuple[str, float]]]
) -> None:
    """Draw the best guesses for the masked word of each sentence as bars."""
    size = (6.2, 1.25 * len(sentences) + 0.4)
    figure, axes = plt.subplots(len(sentences), 1, figsize=size)
    set_gaps(figure, h_pad=0.12)
    for ax, sentence, table in zip(axes, sentences, tables, strict=True):
        words, chances = zip(*table, strict=True)
        ax.barh(words, chances, color=COLORS["query"], height=0.7)
        for row, chance in enumerate(chances):
            ax.text(chance + 0.01, row, f"{chance:.2f}", va="center", fontsize=9.5)
        ax.invert_yaxis()
        ax.set(xlim=(0, 1.12), xticks=[])
        ax.set_title(sentence, loc="left", fontsize=11)
        ax.spines["bottom"].set_visible(False)
        ax.tick_params(axis="y", length=0)
    plt.show()
