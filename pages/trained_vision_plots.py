"""The drawings of the chapter in which a Vision Transformer is trained for real.

Each function draws one figure from what the page computed or read, and shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from pages.vision_plots import INK, bare
from workbench.plots import COLORS, SIGNED, WEIGHTS, as_array, format_number, parts_of

ROLES = ("query", "key", "value", "weight")  # colours of curves, in this order


def sheet(rows: Mapping[str, Any], height: float = 0.72) -> None:
    """Draw rows of grey images with a name before each.

    Args:
        rows: name -> images (n, H, W), from 0 to 1; all rows have as many.
        height: of a row, in inches.
    """
    count = len(next(iter(rows.values())))
    size = (7.2, height * len(rows) + 0.1)
    _, axes = plt.subplots(len(rows), count, figsize=size, squeeze=False)
    for line, (name, images) in zip(axes, rows.items(), strict=True):
        for ax, image in zip(line, as_array(images), strict=True):
            ax.imshow(image, INK, vmin=0, vmax=1)
            bare(ax)
        line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=10.5)
    plt.show()


def training(history: Mapping[str, list], floor: float) -> None:
    """Draw the loss, with the least that it can be, and the validation accuracy.

    Args:
        history: of a record: step with loss, validation_step with validation_accuracy
            (a share).
        floor: the least loss that the smoothed labels permit.
    """
    _, (loss, score) = plt.subplots(1, 2, figsize=(7.2, 2.9))
    loss.plot(history["step"], history["loss"], color=COLORS["query"])
    loss.axhline(floor, color=COLORS["muted"], ls="--", lw=1.5)
    top = max(history["loss"])
    middle = history["step"][len(history["step"]) // 2]
    loss.text(middle, floor - 0.04 * top, "the least there is", va="top", ha="center")
    loss.set(title="loss", xlabel="step", ylim=(0, 1.05 * top))
    places, shares = history["validation_step"], history["validation_accuracy"]
    score.plot(places, 100 * np.array(shares), "o-", ms=5, color=COLORS["value"])
    score.set(title="right on validation, %", xlabel="step", xlim=(0, None))
    score.set_ylim(top=100.5)
    plt.show()


def confusion(counts: Any, names: Sequence[str]) -> None:
    """Draw what was taken for what; only mistakes have a colour.

    Args:
        counts: (classes, classes), a row for each true class.
        names: of the classes.
    """
    counts = as_array(counts)
    mistakes = np.where(np.eye(len(counts), dtype=bool), 0, counts)
    _, ax = plt.subplots(figsize=(4.3, 4.1))
    shown = np.ma.array(mistakes, mask=mistakes == 0)
    ax.imshow(shown, "Oranges", vmin=0, vmax=max(3, 1.6 * mistakes.max()))
    for (row, column), count in np.ndenumerate(counts):
        if count:
            right = row == column
            style: dict[str, Any] = (
                {"color": "#777777"} if right else {"fontweight": "bold"}
            )
            ax.text(column, row, str(count), ha="center", va="center", **style)
    ax.set_xticks(range(len(names)), names)
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0)
    ax.set(xlabel="the model says", ylabel="it is")
    for side in ax.spines.values():
        side.set(visible=True, color="#BBBBBB")
    plt.show()


def verdicts(images: Any, shares: Any, truths: Any, names: Sequence[str]) -> None:
    """Draw images, and beside each the probability that a model gives to each class.

    Args:
        images: (n, H, W), from 0 to 1.
        shares: (n, classes).
        truths: (n,), the right classes.
        names: of the classes.
    """
    images, shares, truths = map(as_array, (images, shares, truths))
    lines = -(-len(images) // 2)
    figure = plt.figure(figsize=(7.2, 2.1 * lines))
    cells = parts_of(figure, lines, 2)
    for cell, image, row, truth in zip(cells, images, shares, truths, strict=False):
        picture, bars = cell.subplots(1, 2, width_ratios=[1, 1.25])
        picture.imshow(image, INK, vmin=0, vmax=1)
        article = "an" if str(names[truth])[0] in "8aeio" else "a"
        said = names[row.argmax()]
        bare(picture, f"{article} {names[truth]}, says {said}", 10)
        colors = [COLORS["muted"]] * len(row)
        colors[row.argmax()], colors[truth] = COLORS["wrong"], COLORS["right"]
        bars.bar(range(len(row)), row, color=colors)
        bars.set_xticks(range(len(names)), names, fontsize=9)
        bars.set(ylim=(0, 1), yticks=(0, 0.5, 1))
        places = sorted({int(row.argmax()), int(truth)})
        beside = len(places) == 2 and places[1] - places[0] < 3
        for place, side in zip(places, (1, -1), strict=False):
            text, align = f"{row[place]:.2f}", "center"
            x = float(place)
            if beside:  # away from each other, so that neither stands on a bar
                x, align = place + 0.45 * side, "right" if side > 0 else "left"
            bars.text(x, row[place] + 0.02, text, ha=align, fontsize=9)
    plt.show()


def endurance(panels: Mapping[str, tuple[Any, Any, float]]) -> None:
    """Draw how the accuracy falls as images are changed further and further.

    Args:
        panels: name of the change -> how far (n,), accuracy there in percent (n,), and
            how far it went in training.
    """
    _, axes = plt.subplots(1, len(panels), figsize=(7.2, 2.7), sharey=True)
    for ax, (name, (places, values, reach)) in zip(axes, panels.items(), strict=True):
        ax.axvspan(-reach, reach, color=COLORS["value"], alpha=0.15, lw=0)
        ax.plot(places, values, "o-", ms=3.5, color=COLORS["query"])
        ax.text(0, 4, "in training", ha="center", color="#00664B", fontsize=9.5)
        ax.set(xlabel=name, ylim=(0, 103))
    axes[0].set_ylabel("right, %")
    plt.show()


def similarities(tables: Mapping[str, Any], grid: tuple[int, int]) -> None:
    """Draw how like each other the positions are: a small grid for each of them.

    Args:
        tables: name -> (N, N), from −1 to 1; row n is drawn as a grid, at its place.
        grid: rows and columns of patches, N in all.
    """
    figure = plt.figure(figsize=(6.8, 3.4))
    parts = parts_of(figure, 1, len(tables))
    for part, (name, table) in zip(parts, tables.items(), strict=True):
        part.suptitle(name, fontsize=10.5, fontweight="bold")
        axes = part.subplots(*grid, squeeze=False)
        for number, (ax, row) in enumerate(
            zip(axes.flat, as_array(table), strict=True)
        ):
            ax.imshow(row.reshape(grid), SIGNED, vmin=-1.3, vmax=1.3)
            bare(ax)
            if len(row) <= 9:
                write(ax, row.reshape(grid), dark_from=0.85)
            place = divmod(number, grid[1])[::-1]
            ax.plot(*place, "o", ms=25, mfc="none", mec="#333333", mew=1.2)
    plt.show()


def write(ax: Axes, values: np.ndarray, dark_from: float) -> None:
    """Write the numbers into the cells of a small picture."""
    for (row, column), value in np.ndenumerate(values):
        ink = "white" if abs(value) >= dark_from else "#111111"
        text = format_number(value, 1)
        ax.text(column, row, text, ha="center", va="center", fontsize=9, color=ink)


def heads(weights: Any) -> None:
    """Draw the attention of every head of every layer.

    Args:
        weights: (layers, heads, T, T), from 0 to 1.
    """
    weights = as_array(weights)
    layers, count, tokens, _ = weights.shape
    size = (6.8, 1.72 * layers + 0.25)
    _, axes = plt.subplots(layers, count, figsize=size, squeeze=False)
    for (layer, head), ax in np.ndenumerate(axes):
        ax.imshow(weights[layer, head], WEIGHTS, vmin=0, vmax=1)
        bare(ax, f"head {head + 1}" if layer == 0 else "", 10)
        ticks = np.arange(tokens if tokens <= 6 else 0)
        if layer == layers - 1 and len(ticks):
            ax.set_xticks(ticks, ticks + 1, fontsize=9)
        if head == 0 and len(ticks):
            ax.set_yticks(ticks, ticks + 1, fontsize=9)
        ax.tick_params(length=0)
    for layer, line in enumerate(axes):
        line[0].set_ylabel(f"layer {layer + 1}", fontsize=10)
    plt.show()


def by_size(curves: Mapping[str, Mapping[int, Sequence[float]]]) -> None:
    """Draw accuracy against the number of training images, each seed a dot.

    Args:
        curves: name -> number of images -> accuracy of each seed, in percent.
    """
    _, ax = plt.subplots(figsize=(6.4, 3.6))
    sizes = sorted({size for curve in curves.values() for size in curve})
    for role, (name, curve) in zip(ROLES, curves.items(), strict=False):
        places = sorted(curve)
        means = [np.mean(curve[place]) for place in places]
        ax.plot(places, means, color=COLORS[role], label=name)
        for place in places:
            values = curve[place]
            x = [place] * len(values)
            ax.plot(x, values, "o", ms=4.5, alpha=0.55, color=COLORS[role])
    ax.legend(loc="lower right", labelcolor="linecolor")
    ax.set(xscale="log", xlabel="images to learn from", ylabel="right on test, %")
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.minorticks_off()
    plt.show()
