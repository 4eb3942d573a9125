"""The larger drawings of the chapter on the decoder: diagrams, curves, trees.

Each function draws one figure from what the page computed and shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from pages.encoder_plots import STREAM, arrow, box, line, plus
from workbench.plots import COLORS, as_array, matrix_heatmap

PALE = "#777777"


def exercises(tokens: Sequence[str]) -> None:
    """Draw one sentence as many exercises: all in one run, or one run for each.

    tokens: the sentence from its start token to its end token.
    """
    read, said = tokens[:-1], tokens[1:]
    count = len(read)
    _, axes = plt.subplots(1, 2, figsize=(7.2, 3.4))
    style = {"fontsize": 9.5, "va": "center"}
    for ax, title in zip(
        axes, ("to learn: one run", f"to write: {count} runs"), strict=True
    ):
        writes = ax is axes[1]
        for column, token in enumerate(read):
            ax.text(column + 0.5, 0.25, token, rotation=50, ha="left", fontsize=9.5)
        for row, token in enumerate(said):
            for column in range(row + 1):
                corner = (column + 0.08, -row - 0.86)
                ax.add_patch(
                    plt.Rectangle(corner, 0.84, 0.72, color=COLORS["query"], lw=0)
                )
            ax.text(count + 0.5, -row - 0.5, token, color=COLORS["output"], **style)
            if writes:
                ax.text(
                    -0.35, -row - 0.5, f"run {row + 1}", ha="right", color=PALE, **style
                )
                corner = (-0.12, -row - 0.96)
                frame: dict[str, Any] = {"fill": False, "ec": PALE, "lw": 1.1}
                ax.add_patch(plt.Rectangle(corner, count + 2.6, 0.92, **frame))
            if writes and row + 1 < count:
                start, end = (count + 0.4, -row - 0.55), (row + 2, -row - 1.45)
                arrow(ax, start, end, COLORS["output"])
        if not writes:
            frame = {"fill": False, "ec": PALE, "lw": 1.6}
            ax.add_patch(
                plt.Rectangle((-0.2, -count - 0.1), count + 2.8, count + 0.2, **frame)
            )
        ax.set_title(title, fontsize=11, y=1.02)
        ax.set(xlim=(-1.9, count + 2.8), ylim=(-count - 0.2, 1.9))
        ax.axis("off")
    plt.show()


def masks(panels: dict[str, Any], words: Sequence[str]) -> None:
    """Draw square masks side by side, what may be attended to coloured."""
    _, axes = plt.subplots(1, len(panels), figsize=(6.8, 2.9))
    for ax, (title, mask) in zip(axes, panels.items(), strict=True):
        visible = as_array(mask)
        rows = words if ax is axes[0] else None
        matrix_heatmap(
            ax, visible, rows, words, visible=visible, annotate=False, limits=(0, 1.6)
        )
        ax.set_title(title, fontsize=11)
        ax.tick_params(axis="x", rotation=60)
        for tick in (*ax.get_xticklabels(), *ax.get_yticklabels()):
            tick.set_fontsize(9)
    plt.show()


def layer() -> None:
    """Draw a decoder layer, post-norm, with the memory that comes from the encoder."""
    _, ax = plt.subplots(figsize=(5.2, 6.4))
    parts = [
        ("self_attention", "query", "Z", "A"),
        ("cross_attention", "key", "N", "A′"),
        ("feed_forward", "output", "M", "O"),
    ]
    for index, (name, role, enters, leaves) in enumerate(parts):
        low = 3.0 * index
        color = COLORS[role]
        ax.text(-0.15, low + 0.25, enters, color=STREAM, ha="right")
        line(ax, (0, low - 0.2), (0, low + 3.0))
        line(ax, (0, low + 0.3), (2.0, low + 0.3))
        arrow(ax, (2.0, low + 0.3), (2.0, low + 0.82))
        box(ax, 2.0, low + 1.1, name, color, 2.1)
        line(ax, (2.0, low + 1.38), (2.0, low + 1.8))
        arrow(ax, (2.0, low + 1.8), (0.17, low + 1.8))
        ax.text(2.1, low + 1.62, leaves, color=color, va="center")
        plus(ax, 0, low + 1.8)
        box(ax, 0, low + 2.4, f"norm_{index + 1}", COLORS["weight"], 1.2)
    line(ax, (4.4, -0.2), (4.4, 4.1), color=COLORS["key"])
    arrow(ax, (4.4, 4.1), (3.07, 4.1), COLORS["key"])
    style: dict[str, Any] = {"color": COLORS["key"], "fontsize": 10}
    ax.text(3.75, 4.2, "K, V", ha="center", va="bottom", **style)
    ax.text(4.4, -0.3, "memory\n($T_\\mathrm{src}$)", ha="center", va="top", **style)
    ax.text(2.12, 3.55, "Q", va="center", color=COLORS["query"], fontsize=10)
    ax.text(3.2, 1.1, "causal\nmask", va="center", color=COLORS["query"], fontsize=10)
    ax.text(3.2, 3.5, "padding\nmask", va="center", **style)
    ax.text(0, -0.3, "target\n($T_\\mathrm{tgt}$)", ha="center", va="top", color=STREAM)
    arrow(ax, (0, 8.9), (0, 9.3))
    ax.text(0, 9.4, "Z′", ha="center", color=STREAM)
    ax.set(xlim=(-1, 5), ylim=(-1.1, 9.8))
    ax.axis("off")
    plt.show()


def towers() -> None:
    """Draw the whole model: encoder at the left, decoder at the right."""
    _, ax = plt.subplots(figsize=(6.4, 5.2))
    left = [("Embedding", "input"), ("position", "input"), ("EncoderLayer", "query")]
    left += [("EncoderLayer", "query")]
    right = [("Embedding", "input"), ("position", "input"), ("DecoderLayer", "output")]
    right += [("DecoderLayer", "output"), ("tied_logits", "weight")]
    heights = [0.7, 1.6, 2.7, 3.7, 4.8]
    for x, parts in ((0, left), (4.2, right)):
        arrow(ax, (x, 0), (x, heights[0] - 0.3))
        for (name, role), low, high in zip(
            parts, heights, [*heights[1:], None], strict=False
        ):
            box(ax, x, low, name, COLORS[role], 2.0)
            if high and name != parts[-1][0]:
                arrow(ax, (x, low + 0.28), (x, high - 0.3))
        arrow(ax, (x, 2.98), (x, 3.4))
    arrow(ax, (4.2, 3.98), (4.2, 4.5))
    arrow(ax, (4.2, 5.08), (4.2, 5.5))
    key = COLORS["key"]
    line(ax, (0, 3.98), (0, 4.5), (2.1, 4.5), (2.1, 2.7), color=key)
    for height in (2.7, 3.7):
        arrow(ax, (2.1, height), (3.18, height), key)
    ax.text(0.95, 4.58, "memory", color=key, ha="center", va="bottom", fontsize=10)
    style: dict[str, Any] = {
        "ha": "center",
        "va": "top",
        "fontsize": 9.5,
        "color": STREAM,
    }
    ax.text(0, -0.08, "Bobby likes black|berries.", **style)
    ax.text(4.2, -0.08, "<sos> Bobby mag Brom|beeren.", **style)
    style["va"] = "bottom"
    ax.text(4.2, 5.55, "Bobby mag Brom|beeren. <eos>", **style)
    ax.text(-1.15, 3.2, "2 ×", ha="right", va="center", color=COLORS["query"])
    ax.text(5.35, 3.2, "2 ×", ha="left", va="center", color=COLORS["output"])
    ax.set(xlim=(-2.0, 6.4), ylim=(-0.5, 6.0))
    ax.axis("off")
    plt.show()


def future(blocks: dict[str, Any], words: Sequence[str]) -> None:
    """Draw how much output t depends on input s; what is exactly 0 stays grey."""
    _, axes = plt.subplots(1, len(blocks), figsize=(6.8, 3.3))
    for ax, (name, sizes) in zip(axes, blocks.items(), strict=True):
        sizes = as_array(sizes)
        rows = words if ax is axes[0] else None
        limits = (-0.15 * sizes.max(), 1.1 * sizes.max())
        matrix_heatmap(
            ax, sizes, rows, words, visible=sizes > 0, limits=limits, colormap="Purples"
        )
        for text, size in zip(ax.texts, sizes.flat, strict=True):
            text.set_fontsize(8.5)
            if size == 0:  # not only rounded
                text.set_text("0")
        ax.set_title(name, fontsize=11)
        ax.tick_params(axis="x", rotation=60)
        for tick in (*ax.get_xticklabels(), *ax.get_yticklabels()):
            tick.set_fontsize(9)
        ax.set_xlabel("input")
        ax.xaxis.set_label_position("bottom")
    axes[0].set_ylabel("output")
    plt.show()


def two_ways(
    inputs: Sequence[str],
    labels: Sequence[str],
    forced: Sequence[str],
    own: Sequence[str],
) -> None:
    """Draw teacher forcing above free running, the model as one box for each step.

    Args:
        inputs: what the model reads in teacher forcing, the start token first.
        labels: what it should say at each of these places.
        forced: what it says when it reads the labels.
        own: what it says when it reads its own words.
    """
    _, axes = plt.subplots(2, 1, figsize=(6.8, 4.9))
    right, wrong = COLORS["right"], COLORS["wrong"]
    rows = [("teacher forcing: it reads the labels", inputs, forced)]
    rows += [("free running: it reads what it said", [inputs[0], *own[:-1]], own)]
    for ax, (title, below, above) in zip(axes, rows, strict=True):
        free = ax is axes[1]
        for x, (said, read) in enumerate(zip(above, below, strict=True)):
            box(ax, 1.6 * x, 1.0, "model", STREAM, 0.95)
            ax.texts[-1].set_fontsize(9)
            arrow(ax, (1.6 * x, 0.28), (1.6 * x, 0.7))
            arrow(ax, (1.6 * x, 1.28), (1.6 * x, 1.7))
            good = said == labels[x]
            fed = STREAM if read == inputs[x] else wrong
            style = {"ha": "center", "fontsize": 10}
            ax.text(1.6 * x, 0.2, read.strip(), va="top", color=fed, **style)
            color = right if good else wrong
            ax.text(1.6 * x, 1.75, said.strip(), va="bottom", color=color, **style)
            if free and x + 1 < len(above):
                a, b = 1.6 * x, 1.6 * (x + 1)
                line(ax, (a + 0.12, 1.5), (a + 0.8, 1.5), (a + 0.8, 0.5), color=wrong)
                arrow(ax, (a + 0.8, 0.5), (b - 0.05, 0.5), wrong)
        ax.set_title(title, fontsize=11, loc="left")
        ax.set(xlim=(-0.8, 1.6 * len(above) - 0.8), ylim=(-0.25, 2.15))
        ax.axis("off")
    plt.show()


def learning(losses: Any, moments: Sequence[int], panels: dict[str, Any]) -> None:
    """Draw the training loss at the left, what was measured in between at the right."""
    _, axes = plt.subplots(1, 2, figsize=(6.8, 3.1))
    losses = as_array(losses)
    steps = np.arange(1, len(losses) + 1)
    axes[0].plot(steps, losses, color=COLORS["query"], lw=1.2, label="training")
    axes[0].plot(moments, panels["loss"], "o", color=COLORS["key"], label="held out")
    axes[0].set(xlabel="step", title="loss", yscale="log")
    ticks = [0.1, 0.2, 0.5, 1, 2, 5]
    axes[0].set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes[0].minorticks_off()
    axes[0].legend()
    names = {"next": "next token, given the labels", "whole": "whole sentence, alone"}
    for key, role in (("next", "right"), ("whole", "wrong")):
        values = panels[key]
        axes[1].plot(moments, values, "o-", ms=4, color=COLORS[role], label=names[key])
    axes[1].set(xlabel="step", title="share right, held out", ylim=(-0.03, 1.45))
    axes[1].set_yticks([0, 0.5, 1])
    axes[1].legend(loc="upper left")
    plt.show()


def distributions(words: Sequence[str], panels: dict[str, Any]) -> None:
    """Draw distributions over the same words as bars, two panels a row."""
    rows = (len(panels) + 1) // 2
    _, axes = plt.subplots(rows, 2, figsize=(6.8, 2.0 * rows), sharex=True)
    for ax, (name, values) in zip(axes.flat, panels.items(), strict=True):
        values = as_array(values)
        ax.barh(words, values, color=COLORS["query"], height=0.72)
        for row, value in enumerate(values):
            ink = "#111111" if value > 0 else "#888888"
            text = f"{value:.2f}" if value > 0 else "0"
            ax.text(value + 0.01, row, text, va="center", fontsize=9, color=ink)
        ax.invert_yaxis()
        ax.set_title(name, fontsize=11, loc="left")
        ax.set(xlim=(0, 1.15), xticks=[])
        ax.tick_params(axis="y", length=0)
        ax.spines["bottom"].set_visible(False)
    plt.show()


def beam_tree() -> None:
    """Draw the two-step tree in which greedy search misses the best pair."""
    _, ax = plt.subplots(figsize=(6.2, 3.3))
    first = {"A": (1.6, 1.55, 0.6), "B": (1.6, -1.55, 0.4)}
    ends = [("A", "c", 2.1, 0.5), ("A", "d", 0.95, 0.5)]
    ends += [("B", "c", -1.0, 0.9), ("B", "d", -2.15, 0.1)]
    style: dict[str, Any] = {"fontsize": 10, "va": "center"}
    good, bad = COLORS["right"], COLORS["wrong"]
    for name, (x, y, chance) in first.items():
        color = bad if name == "A" else good
        line(ax, (0, 0), (x, y), color=color)
        text = f"{chance:.1f}"
        ax.text(0.62, y * 0.62, text, color=color, ha="right", **style)
    for parent, name, y, chance in ends:
        x, start, before = first[parent]
        path = {"Ac": bad, "Bc": good}.get(parent + name, PALE)
        line(ax, (x, start), (3.6, y), color=path)
        nudge = 0.28 if y > start else -0.28
        middle = (start + y) / 2 + nudge
        ax.text(2.7, middle, f"{chance:.1f}", color=path, ha="center", **style)
        ax.plot(3.6, y, "o", ms=17, mfc="white", mec=path, mew=1.8, zorder=3)
        ax.text(3.6, y, name, color=path, ha="center", zorder=4, **style)
        text = f"{before:.1f} · {chance:.1f} = {before * chance:.2f}"
        note = {"Ac": "   greedy", "Bc": "   beam of 2"}.get(parent + name, "")
        ax.text(3.95, y, text + note, color=path, ha="left", **style)
    for name, (x, y, _) in first.items():
        color = bad if name == "A" else good
        ax.plot(x, y, "o", ms=17, mfc="white", mec=color, mew=1.8, zorder=3)
        ax.text(x, y, name, color=color, ha="center", zorder=4, **style)
    ax.plot(0, 0, "o", ms=9, color=STREAM, zorder=3)
    ax.set(xlim=(-0.3, 7.0), ylim=(-2.6, 2.6))
    ax.axis("off")
    plt.show()
