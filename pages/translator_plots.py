"""The larger drawings of the chapter on the translator: data, runs, alignments.

Each function draws one figure from what the page computed and shows it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from pages.encoder_plots import STREAM, arrow, box
from workbench.plots import COLORS, as_array, matrix_heatmap

SPLITS = {"train": "#CFE3F1", "validation": "#8A8A8A", "test": COLORS["key"]}
TOKEN, PADDING = "#4C93C4", "#E4E4E4"
SMALL = 9.5


def slant(ax: Axes, degrees: float) -> None:
    """Turn the names above the columns, each ending where its column begins."""
    for tick in ax.get_xticklabels():
        tick.set(rotation=degrees, ha="left", va="center", rotation_mode="anchor")


def combinations(
    verbs: Sequence[str],
    nouns: Sequence[str],
    splits: dict[tuple[str, str], str],
    marked: tuple[str, str],
) -> None:
    """Draw which pairs of a verb and a noun are for training, validation and test.

    Args:
        verbs: one a row.
        nouns: one a column.
        splits: (verb, noun) -> train, validation or test.
        marked: the pair that gets a frame.
    """
    names = list(SPLITS)
    cells = [[names.index(splits[verb, noun]) for noun in nouns] for verb in verbs]
    _, ax = plt.subplots(figsize=(6.6, 3.5))
    ax.imshow(cells, ListedColormap(list(SPLITS.values())), vmin=0, vmax=2)
    ax.set_xticks(range(len(nouns)), nouns, fontsize=SMALL)
    ax.set_yticks(range(len(verbs)), verbs, fontsize=SMALL)
    ax.set_xticks(np.arange(0.5, len(nouns) - 1), minor=True)
    ax.set_yticks(np.arange(0.5, len(verbs) - 1), minor=True)
    ax.grid(which="minor", color="white", lw=1.5)
    ax.tick_params(which="both", length=0, top=True, labeltop=True, labelbottom=False)
    slant(ax, 50)
    for row, line_of_cells in enumerate(cells):
        for column, cell in enumerate(line_of_cells):
            if cell:  # to be read in grey, too
                letter = names[cell][0]
                style: dict[str, Any] = {
                    "ha": "center",
                    "va": "center",
                    "color": "white",
                }
                ax.text(column, row, letter, fontweight="bold", fontsize=10, **style)
    column, row = nouns.index(marked[1]), verbs.index(marked[0])
    corner = (column - 0.5, row - 0.5)
    frame = plt.Rectangle(corner, 1, 1, fill=False, ec="#111111", lw=2.5, zorder=5)
    ax.add_patch(frame)
    for side in ax.spines.values():
        side.set_visible(False)
    ax.set_xlabel(
        "t: kept for the test · v: kept for validation · all others: training"
    )
    plt.show()


def paddings(panels: dict[str, Any]) -> None:
    """Draw batches as rectangles, a cell a token, padding grey.

    Args:
        panels: title -> boolean (rows, width), True for a real token.
    """
    widths = [as_array(real).shape[1] for real in panels.values()]
    figure, axes = plt.subplots(
        1, len(panels), figsize=(6.8, 2.9), width_ratios=widths, sharey=True
    )
    for ax, (title, real) in zip(axes, panels.items(), strict=True):
        real = as_array(real)
        ax.pcolormesh(
            real,
            cmap=ListedColormap([PADDING, TOKEN]),
            vmin=0,
            vmax=1,
            edgecolors="white",
            linewidth=0.8,
        )
        ax.invert_yaxis()
        ax.set(xticks=[], yticks=[])
        ax.set_title(title, fontsize=10.5)
        for side in ax.spines.values():
            side.set_visible(False)
    axes[0].set_ylabel("sentences")
    figure.supxlabel("positions: blue a token, grey padding", fontsize=10.5)
    plt.show()


def training_step() -> None:
    """Draw what happens in a step of training, as a loop."""
    _, ax = plt.subplots(figsize=(6.8, 2.5))
    upper = [("batch", "input"), ("model", "query"), ("loss", "key")]
    upper += [("gradient", "value")]
    for x, (name, role) in enumerate(upper):
        box(ax, 2.3 * x, 2.1, name, COLORS[role], 1.5)
        if x:
            arrow(ax, (2.3 * x - 1.5, 2.1), (2.3 * x - 0.8, 2.1))
    lower = [("average", "weight"), ("weights", "query"), ("Adam", "output")]
    lower += [("clip", "value")]
    for x, (name, role) in enumerate(lower):
        box(ax, 2.3 * x, 0.6, name, COLORS[role], 1.5)
        if x:
            arrow(ax, (2.3 * x - 0.8, 0.6), (2.3 * x - 1.5, 0.6))
    arrow(ax, (6.9, 1.8), (6.9, 0.92))
    arrow(ax, (2.3, 0.9), (2.3, 1.78))
    style: dict[str, Any] = {"ha": "center", "fontsize": SMALL, "color": STREAM}
    notes = ["ids, padded", "with dropout", "smoothed, real\ntokens only"]
    notes += ["backward"]
    for x, note in enumerate(notes):
        ax.text(2.3 * x, 2.5, note, va="bottom", **style)
    notes = ["what is kept\nat the end", "changed a little", "rate from\nthe schedule"]
    notes += ["norm at most 1"]
    for x, note in enumerate(notes):
        ax.text(2.3 * x, 0.2, note, va="top", **style)
    ax.set(xlim=(-0.95, 7.85), ylim=(-0.75, 3.3))
    ax.axis("off")
    plt.show()


def curves(history: dict[str, list], at_first: float) -> None:
    """Draw the losses of a run at the left, its learning rate at the right.

    Args:
        history: lists of numbers: step, loss, rate, validation_step, validation_loss.
        at_first: the loss of somebody who finds all tokens equally likely.
    """
    _, axes = plt.subplots(1, 2, figsize=(6.8, 3.0), width_ratios=[1.6, 1])
    ax, steps = axes[0], history["step"]
    ax.axhline(at_first, color=STREAM, lw=1, ls=":")
    style = {"ha": "right", "va": "bottom", "color": STREAM, "fontsize": SMALL}
    ax.text(steps[-1], at_first * 1.03, "log N: knows nothing", **style)
    ax.plot(steps, history["loss"], color=COLORS["query"], lw=1.5, label="training")
    validation = history["validation_step"], history["validation_loss"]
    style = {"color": COLORS["key"], "ms": 5, "lw": 1.2}
    ax.plot(*validation, "o--", label="validation, unseen pairs", **style)
    ax.set(yscale="log", xlabel="step", title="loss, nats a token", xlim=0)
    ax.set_ylim(top=at_first * 1.9)
    ax.legend(loc="lower left", fontsize=SMALL)
    rates = 1e3 * np.array(history["rate"])
    axes[1].plot(steps, rates, color=COLORS["output"])
    axes[1].set(xlabel="step", title="learning rate · 10³", xlim=0, ylim=0)
    for each in axes:
        each.locator_params(axis="x", nbins=4)
    plt.show()


def dots(
    ax: Axes, rows: dict[str, Sequence[float]], reference: float | None = None
) -> None:
    """Draw values of several seeds, a row for each kind: dots, and a line at the mean.

    Args:
        ax: where to draw.
        rows: name -> values; a name without values keeps its row.
        reference: a mean to compare with, as a dotted line.
    """
    if reference is not None:
        ax.axvline(reference, color=STREAM, lw=1.2, ls=":")
    for row, values in enumerate(rows.values()):
        if not len(values):
            continue
        color = COLORS["query"] if row == 0 else COLORS["key"]
        ax.plot([min(values), max(values)], [row, row], color=color, lw=1.5, alpha=0.5)
        ax.plot(values, [row] * len(values), "o", ms=6, color=color, alpha=0.7)
        mean = float(np.mean(values))
        ax.plot([mean, mean], [row - 0.3, row + 0.3], color=color, lw=2.5)
    names = [textwrap.fill(name, 32, break_on_hyphens=False) for name in rows]
    ax.set_yticks(range(len(rows)), names, fontsize=10)
    ax.set_ylim(len(rows) - 0.5, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def ablations(rows: dict[str, Sequence[float]], label: str, far: float = 20.0) -> None:
    """Draw the scores of runs that differ in one thing each from the first.

    A run whose seeds all lie far below the first one's mean is not drawn to scale, or
    nothing could be seen of the others: an arrow and its mean stand at the left.

    Args:
        rows: name -> a score for each seed.
        label: what is on the axis.
        far: so many points below count as far.
    """
    if not rows:
        return
    _, ax = plt.subplots(figsize=(6.8, 0.46 * len(rows) + 1.0))
    reference = float(np.mean(next(iter(rows.values()))))
    shown = {
        name: values if max(values) > reference - far else []
        for name, values in rows.items()
    }
    dots(ax, shown, reference)
    low, high = ax.get_xlim()
    for row, (name, values) in enumerate(rows.items()):
        if shown[name]:
            continue
        style = {"arrowstyle": "->", "color": COLORS["key"], "lw": 2}
        near = low + 0.09 * (high - low)
        ax.annotate("", (low, row), (near, row), arrowprops=style)
        text = f" {np.mean(values):.1f}, far below"
        ax.text(near, row, text, va="center", fontsize=SMALL, color="#111111")
    ax.set_xlim(low, high)
    ax.set_xlabel(label)
    plt.show()


def intervals(rows: dict[str, tuple[float, float, float]], label: str) -> None:
    """Draw scores with the interval that each could as well have been.

    Args:
        rows: name -> (score, lower end, upper end).
        label: what is on the axis.
    """
    _, ax = plt.subplots(figsize=(6.2, 0.5 * len(rows) + 1.0))
    ax.grid(axis="x", color="#DDDDDD", lw=0.8)
    ax.set_axisbelow(True)
    for row, (score, low, high) in enumerate(rows.values()):
        ax.plot([low, high], [row, row], color=COLORS["query"], lw=3, alpha=0.45)
        ax.plot(score, row, "o", ms=7, color=COLORS["query"])
        style: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": SMALL}
        ax.text(score, row - 0.16, f"{score:.1f}", **style)
    ax.set_yticks(range(len(rows)), list(rows), fontsize=10)
    ax.set_ylim(len(rows) - 0.5, -0.7)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(label)
    plt.show()


def attention_maps(
    panels: dict[str, Any], rows: Sequence[str], columns: Sequence[str]
) -> None:
    """Draw cross-attention, the largest weight of each row framed.

    Args:
        panels: title -> (len(rows), len(columns)) weights.
        rows: tokens about to be written.
        columns: tokens that are read.
    """
    count = len(panels)
    _, axes = plt.subplots(1, count, figsize=(6.8, 0.32 * len(rows) + 1.3))
    for ax, (title, weights) in zip(np.atleast_1d(axes), panels.items(), strict=True):
        weights = as_array(weights)
        best = [(row, int(weights[row].argmax())) for row in range(len(weights))]
        names = rows if ax is np.atleast_1d(axes)[0] else None
        matrix_heatmap(
            ax, weights, names, columns, annotate=False, limits=(0, 1), highlight=best
        )
        for frame in ax.patches:
            frame.set(lw=1.4, ec=COLORS["key"])
        ax.set_title(title, fontsize=11)
        slant(ax, 60)
        for tick in (*ax.get_xticklabels(), *ax.get_yticklabels()):
            tick.set_fontsize(SMALL)
    np.atleast_1d(axes)[0].set_ylabel("about to write")
    plt.show()


def crossings(
    examples: Sequence[tuple[Sequence[str], Sequence[str], Any]], least: float = 0.2
) -> None:
    """Draw sentences above their translations, joined where one looks at the other.

    Args:
        examples: (source tokens, written tokens, weights (written, source)).
        least: lines of a smaller weight are left out.
    """
    _, axes = plt.subplots(
        len(examples), 1, figsize=(6.8, 1.45 * len(examples)), squeeze=False
    )
    for ax, (source, written, weights) in zip(axes[:, 0], examples, strict=True):
        weights = as_array(weights)
        above, below = places(source), places(written)
        for row, column in np.argwhere(weights >= least):
            ax.plot(
                [above[column], below[row]],
                [0.8, 0.2],
                color=COLORS["query"],
                lw=2.6 * weights[row, column],
                alpha=0.35 + 0.6 * float(weights[row, column]),
            )
        for at, names, y, base in (
            (above, source, 0.84, "bottom"),
            (below, written, 0.16, "top"),
        ):
            for x, name in zip(at, names, strict=True):
                ax.text(x, y, name, ha="center", va=base, fontsize=10)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.12, 1.12))
        ax.axis("off")
    plt.show()


def places(names: Sequence[str]) -> np.ndarray:
    """Say where the middle of each word stands on a line from 0 to 1."""
    sizes = np.array([len(name) + 2.0 for name in names])
    return (np.cumsum(sizes) - sizes / 2) / sizes.sum()


def two_measures(rows: dict[str, tuple[float, float]]) -> None:
    """Draw two shares for each model: next tokens given the labels, whole sentences.

    Args:
        rows: name of a model -> (share of next tokens, share of sentences), 0 to 1.
    """
    _, ax = plt.subplots(figsize=(6.4, 0.75 * len(rows) + 0.9))
    names = ("next token right, given the labels", "whole sentence right, on its own")
    for place, (name, role) in enumerate(zip(names, ("muted", "key"), strict=True)):
        values = [100 * shares[place] for shares in rows.values()]
        at = np.arange(len(rows)) + 0.36 * place - 0.18
        ax.barh(at, values, height=0.34, color=COLORS[role], label=name)
        for y, value in zip(at, values, strict=True):
            ax.text(value + 1, y, f"{value:.0f}", va="center", fontsize=SMALL)
    ax.set_yticks(range(len(rows)), list(rows), fontsize=10)
    ax.set(xlim=(0, 112), xlabel="%")
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=2, fontsize=SMALL)
    plt.show()
