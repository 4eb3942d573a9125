"""The larger drawings of the chapter on the Vision Transformer: patches, maps, filters.

Each function draws one figure from what the page computed and shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from workbench.plots import COLORS, SIGNED, WEIGHTS, as_array, parts_of

GREY = "#555555"
INK = "Greys"  # colour map of a digit: dark ink on white paper


def bare(ax: Axes, title: str = "", size: float = 10.5) -> None:
    """Take ticks and frame from a picture and write its title."""
    ax.set(xticks=[], yticks=[])
    for side in ax.spines.values():
        side.set_visible(True)
        side.set_color("#BBBBBB")
    if title:
        ax.set_title(title, fontsize=size)


def grid_lines(ax: Axes, height: int, width: int, patch: int, color: str) -> None:
    """Draw the borders of the patches on an image."""
    for y in range(patch, height, patch):
        ax.axhline(y - 0.5, color=color, lw=1.2)
    for x in range(patch, width, patch):
        ax.axvline(x - 0.5, color=color, lw=1.2)


def arrow(ax: Axes, start: Any, end: Any, color: str = GREY) -> None:
    """Draw an arrow from one point to another."""
    style = {"arrowstyle": "-|>", "color": color, "lw": 1.6, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=end, xytext=start, arrowprops=style)


def pipeline(digit: Any) -> None:
    """Draw the whole way: a digit, its patches as tokens, encoder, head, answer."""
    digit = as_array(digit)
    _, ax = plt.subplots(figsize=(7.2, 3.5))
    extent = (-0.1, 1.7, 0.2, 2.0)
    ax.imshow(digit, INK, extent=extent, zorder=2)
    for at in (0.35, 0.8, 1.25):
        ax.plot([at, at], [0.2, 2.0], color=COLORS["key"], lw=1, zorder=3)
        ax.plot([-0.1, 1.7], [at + 0.3, at + 0.3], color=COLORS["key"], lw=1, zorder=3)
    paper = plt.Rectangle((-0.1, 0.2), 1.8, 1.8, fill=False, ec=COLORS["key"], zorder=3)
    ax.add_patch(paper)
    ax.text(0.8, 2.12, "image", ha="center", color=GREY)
    shown = [("class", None), (0, 0), (1, 1), (2, 2), ("…", None), (15, 15)]
    for place, (name, number) in enumerate(shown):
        x = 2.5 + 0.78 * place
        if number is not None:
            row, column = divmod(number, 4)
            part = digit[2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            box = (x - 0.2, x + 0.2, 0.2, 0.6)
            ax.imshow(part, INK, extent=box, vmin=0, vmax=1, zorder=2)
            frame = plt.Rectangle(
                (x - 0.2, 0.2), 0.4, 0.4, fill=False, ec=COLORS["key"], zorder=3
            )
            ax.add_patch(frame)
            arrow(ax, (x, 0.64), (x, 0.96))
        if name == "…":
            ax.text(x, 1.1, "…", ha="center", fontsize=14, color=GREY)
            continue
        color = COLORS["output"] if name == "class" else COLORS["value"]
        token = plt.Rectangle((x - 0.13, 0.98), 0.26, 0.6, fc=color, ec="white")
        ax.add_patch(token)
        position = str(0 if number is None else number + 1)
        ax.text(x, 1.62, f"+ {position}", ha="center", va="bottom", fontsize=9)
        arrow(ax, (x, 1.85), (x, 2.12))
    ax.text(2.5, 0.5, "class\ntoken", ha="center", va="center", fontsize=9)
    ax.text(7.05, 0.4, "patches", va="center", fontsize=10, color=GREY)
    ax.text(7.05, 1.28, "tokens", va="center", fontsize=10, color=GREY)
    ax.text(7.05, 1.72, "positions", va="center", fontsize=10, color=GREY)
    face = plt.Rectangle((2.2, 2.16), 4.5, 0.6, fc="white", ec=COLORS["query"], lw=2)
    ax.add_patch(face)
    ax.text(
        4.45, 2.45, "encoder", ha="center", va="center", color=COLORS["query"], size=12
    )
    arrow(ax, (2.5, 2.8), (2.5, 3.1))
    head = plt.Rectangle((2.15, 3.14), 0.7, 0.4, fc="white", ec=COLORS["output"], lw=2)
    ax.add_patch(head)
    ax.text(2.5, 3.34, "head", ha="center", va="center", color=COLORS["output"])
    arrow(ax, (2.9, 3.34), (3.3, 3.34))
    ax.text(3.4, 3.34, "a score for each class", va="center")
    ax.set(xlim=(-0.2, 8.05), ylim=(0.05, 3.65), aspect="equal")
    ax.axis("off")
    plt.show()


def patches_and_reshape(image: Any, right: Any, wrong: Any, patch: int) -> None:
    """Draw an image with its grid; some of its patches; what a bare reshape gives.

    Args:
        image: (H, W, 3).
        right: (n, P, P, 3), patches.
        wrong: (n, P, P, 3), rows of the reshaped image, laid out as patches.
        patch: P.
    """
    figure = plt.figure(figsize=(7.2, 3.3))
    left, side = parts_of(figure, 1, 2, width_ratios=[1.15, 1])
    ax = left.subplots()
    ax.imshow(as_array(image))
    height, width, *_ = as_array(image).shape
    grid_lines(ax, height, width, patch, "white")
    bare(ax, "224 × 224 pixels")
    axes = side.subplots(2, len(right))
    for row, (name, parts) in zip(
        axes, (("patchify", right), ("reshape alone", wrong)), strict=True
    ):
        for index, (cell, part) in enumerate(zip(row, parts, strict=True)):
            cell.imshow(as_array(part), interpolation="nearest")
            bare(cell, name if index == 1 else "")
    plt.show()


def data_curves(sizes: Sequence[int], scores: dict[str, Any]) -> None:
    """Draw accuracy against the number of training images, each seed a dot.

    Args:
        sizes: numbers of images.
        scores: name of a model -> (sizes, seeds).
    """
    _, ax = plt.subplots(figsize=(6.2, 3.5))
    for shift, (name, role, values) in enumerate(
        zip(scores, ("query", "key"), scores.values(), strict=True)
    ):
        values = as_array(values)
        x = np.array(sizes) * (1 + 0.04 * (shift - 0.5))
        ax.plot(x, values.mean(1), color=COLORS[role], label=name)
        ax.plot(x, values, "o", ms=5, alpha=0.65, color=COLORS[role])
        at = (x[-1], values.mean(1)[-1])
        shift_up = (12, 7 if shift else -7)
        style: dict[str, Any] = {
            "color": COLORS[role],
            "va": "center",
            "fontweight": "bold",
        }
        ax.annotate(name, at, shift_up, textcoords="offset points", **style)
    ax.set(xscale="log", xlabel="images to learn from", ylabel="right on new images")
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.minorticks_off()
    ax.set_xlim(sizes[0] * 0.8, sizes[-1] * 4.2)
    plt.show()


def receptive_fields(maps: dict[str, Any]) -> None:
    """Draw on which pixels one output depends, for several networks.

    Args:
        maps: name -> (H, W), sizes of the gradient.
    """
    _, axes = plt.subplots(1, len(maps), figsize=(7.2, 2.2))
    for ax, (name, values) in zip(axes, maps.items(), strict=True):
        values = as_array(values)
        seen = values > 0
        shade = np.where(seen, 0.3 + 0.7 * (values / values.max()) ** 0.4, np.nan)
        ax.imshow(shade, WEIGHTS, vmin=0, vmax=1)
        bare(ax, name, 9.5)
        ax.set_xlabel(f"{int(seen.sum())} pixels", fontsize=10)
    plt.show()


def step_heads(weights: Any, names: Sequence[str]) -> None:
    """Draw where the middle token looks in each of nine heads.

    Args:
        weights: (9, h, w).
        names: of the heads.
    """
    _, axes = plt.subplots(3, 3, figsize=(4.4, 4.7))
    for ax, look, name in zip(axes.flat, as_array(weights), names, strict=True):
        ax.imshow(look, WEIGHTS, vmin=0, vmax=1)
        rows, columns = look.shape
        ax.plot(
            columns // 2, rows // 2, "o", ms=6, mfc="none", mec=COLORS["key"], mew=2
        )
        bare(ax, name, 9.5)
    plt.show()


def filters(rows: dict[str, tuple[Any, Any]]) -> None:
    """Draw principal components of filters, a row for each model.

    Args:
        rows: name -> components (n, P, P) and the share that each explains (n,).
    """
    count = len(next(iter(rows.values()))[1])
    figure = plt.figure(figsize=(7.2, 5.0))
    for part, (name, (pictures, shares)) in zip(
        parts_of(figure, len(rows), 1), rows.items(), strict=True
    ):
        part.suptitle(name, fontsize=10.5, fontweight="bold")
        for ax, picture, share in zip(
            part.subplots(1, count), as_array(pictures), as_array(shares), strict=True
        ):
            reach = np.abs(picture).max()
            ax.imshow(picture, SIGNED, vmin=-reach, vmax=reach)
            bare(ax)
            ax.set_xlabel(f"{100 * share:.0f} %", fontsize=10)
    plt.show()


def neurons(groups: Sequence[Any], names: Sequence[str]) -> None:
    """Draw for some neurons the patches that make them most active.

    Args:
        groups: for each neuron (n, P, P).
        names: of the neurons.
    """
    count = len(groups[0])
    _, axes = plt.subplots(len(groups), count, figsize=(6.4, 0.82 * len(groups) + 0.2))
    for row, patches, name in zip(axes, groups, names, strict=True):
        for ax, patch in zip(row, as_array(patches), strict=True):
            ax.imshow(patch, INK, vmin=0, vmax=1)
            bare(ax)
        row[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=10)
    plt.show()


def rollouts(images: Any, rows: dict[str, Any], titles: Sequence[str]) -> None:
    """Draw images, and below each the maps of what its class token has read.

    Args:
        images: (n, H, W).
        rows: name of a kind of map -> (n, h, w).
        titles: of the images.
    """
    count = len(titles)
    _, axes = plt.subplots(
        1 + len(rows), count, figsize=(7.2, 1.13 * (1 + len(rows)) + 0.2)
    )
    for ax, image, title in zip(axes[0], as_array(images), titles, strict=True):
        ax.imshow(image, INK)
        bare(ax, title, 9.5)
        good = "✓" in title
        for side in ax.spines.values():
            side.set(color=COLORS["right" if good else "wrong"], lw=2)
    for line, (name, maps) in zip(axes[1:], rows.items(), strict=True):
        for ax, values in zip(line, as_array(maps), strict=True):
            ax.imshow(values, WEIGHTS, vmin=0)
            bare(ax)
        line[0].set_ylabel(name, fontsize=9.5)
    axes[0][0].set_ylabel("image", fontsize=9.5)
    plt.show()


def grids(maps: dict[str, Any]) -> None:
    """Draw one feature of some position tables, laid out on their grids."""
    _, axes = plt.subplots(1, len(maps), figsize=(6.8, 2.5))
    reach = max(np.abs(as_array(values)).max() for values in maps.values())
    for ax, (name, values) in zip(axes, maps.items(), strict=True):
        ax.imshow(as_array(values), SIGNED, vmin=-reach, vmax=reach)
        bare(ax, name, 10)
    plt.show()


def pictures(images: Any, titles: Sequence[str]) -> None:
    """Draw grey images side by side."""
    _, axes = plt.subplots(1, len(titles), figsize=(6.8, 2.2))
    for ax, image, title in zip(axes, as_array(images), titles, strict=True):
        ax.imshow(image, INK, vmin=0, vmax=1)
        bare(ax, title, 10)
    plt.show()
