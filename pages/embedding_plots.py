"""The larger drawings of the chapter on embeddings: tokens, tables, words on a map.

Each function draws one figure from what the page computed and shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch, Rectangle
from matplotlib.transforms import Bbox

from workbench.plots import COLORS, PALETTE, as_array, matrix_heatmap, parts_of

SPACE = "␣"  # a space that can be seen
TINTS = ["#CFE3F2", "#FBE0CC", "#CDEBDF", "#E8D9E8", "#F4E7C3", "#DCEFFA", "#E4E4E4"]


def draw_tokens(
    ax: Axes, x: float, y: float, tokens: Sequence[str], size: float = 11
) -> float:
    """Draw tokens as boxes in a row; return where the next one would start.

    A character is one unit wide. A box keeps its colour as long as its text stays. An
    empty token is a gap.
    """
    for token in tokens:
        if not token:
            x += 0.8
            continue
        shown = token.replace(" ", SPACE)
        width = len(shown) + 0.5
        tint = TINTS[sum(map(ord, token)) % len(TINTS)]
        box = FancyBboxPatch(
            (x + 0.1, y - 0.36),
            width - 0.2,
            0.72,
            boxstyle="round,pad=0,rounding_size=0.25",
            fc=tint,
            ec="#555555",
            lw=1,
        )
        ax.add_patch(box)
        ax.text(
            x + width / 2,
            y,
            shown,
            ha="center",
            va="center",
            family="DejaVu Sans Mono",
            fontsize=size,
        )
        x += width
    return x


def token_rows(
    rows: Sequence[tuple[str, Sequence[str]]], width: float = 6.8, size: float = 11
) -> None:
    """Draw rows of tokens, one below the other, each with a remark at its left."""
    longest = max(sum(len(t) + 0.5 for t in tokens) for _, tokens in rows) + 0.2
    margin = max(len(remark) for remark, _ in rows) * 0.95 + 1
    _, ax = plt.subplots(figsize=(width, 0.42 * len(rows) + 0.2))
    for line, (remark, tokens) in enumerate(rows):
        ax.text(-0.6, -line, remark, ha="right", va="center", fontsize=size)
        draw_tokens(ax, 0, -line, tokens, size)
    ax.set(xlim=(-margin, longest + 0.2), ylim=(-len(rows) + 0.4, 0.6))
    ax.axis("off")
    plt.show()


def pipeline(
    text: str, tokens: Sequence[str], ids: Sequence[int], vectors: Any
) -> None:
    """Draw the way of this chapter: a text, its tokens, their ids, their vectors."""
    _, ax = plt.subplots(figsize=(6.3, 3.9))
    values = as_array(vectors)
    reach = 1.25 * np.abs(values).max()
    widths = [max(len(token), 4) + 0.9 for token in tokens]
    starts = np.concatenate([[0], np.cumsum(widths)])
    middle = starts[-1] / 2
    ax.text(middle, 6.7, f"“{text}”", ha="center", va="center", fontsize=13)
    for start, width, token, number, row in zip(
        starts, widths, tokens, ids, values, strict=False
    ):
        center = start + width / 2
        shift = (len(token) + 0.5) / 2
        draw_tokens(ax, center - shift, 5.2, [token], 10.5)
        number_style: dict[str, Any] = {
            "ha": "center",
            "va": "center",
            "color": COLORS["key"],
        }
        ax.text(center, 3.9, str(number), fontweight="bold", **number_style)
        for place, value in enumerate(row):
            color = plt.get_cmap("RdBu_r")(0.5 + value / (2 * reach))
            corner = (center - 0.9, 2.7 - 0.5 * place)
            ax.add_patch(Rectangle(corner, 1.8, 0.5, fc=color, ec="white", lw=1))
    for height, name in [
        (6.7, "text"),
        (5.2, "tokens"),
        (3.9, "ids"),
        (1.6, "vectors"),
    ]:
        ax.text(-0.8, height, name, ha="right", va="center", color="#555555")
    style = {"arrowstyle": "-|>", "color": "#777777", "lw": 1.6}
    for top, bottom in [(6.3, 5.75), (4.75, 4.25), (3.6, 3.3)]:
        ax.annotate("", xy=(middle, bottom), xytext=(middle, top), arrowprops=style)
    bottom = 2.7 - 0.5 * values.shape[1]
    ax.set(xlim=(-6.5, starts[-1] + 0.2), ylim=(bottom, 7.2))
    ax.axis("off")
    plt.show()


def sizes(curve: Any, named: dict[str, tuple[int, int]]) -> None:
    """Draw vocabulary size against length: a curve of merges, and named points on it.

    Args:
        curve: (n, 2) of (vocabulary, tokens), one for each number of merges.
        named: what to write at which point.
    """
    _, ax = plt.subplots(figsize=(6.2, 3.6))
    points = as_array(curve)
    ax.plot(points[:, 0], points[:, 1], color=COLORS["query"], zorder=1)
    shades = [COLORS["key"], COLORS["query"], COLORS["value"]]
    for (name, (across, up)), shade in zip(named.items(), shades, strict=True):
        ax.plot(across, up, "o", ms=9, color=shade)
        ax.annotate(
            f"{name}\n{across} tokens known,\n{up} used",
            (across, up),
            (10, 6),
            textcoords="offset points",
            color=shade,
            fontsize=10,
            va="bottom",
        )
    low, high = points[:, 0].min(), points[:, 0].max()
    ax.set(xlim=(low - 30, high * 1.35), ylim=(0, points[:, 1].max() * 1.3))
    ax.set(xlabel="tokens in the vocabulary", ylabel="tokens in the text")
    plt.show()


def gradients(parts: dict[str, Any], names: Sequence[str]) -> None:
    """Draw gradients of one table side by side; rows that stay untouched are marked."""
    _, axes = plt.subplots(1, len(parts), figsize=(2.35 * len(parts) + 1.1, 3.9))
    reach = 1.25 * max(float(np.abs(as_array(part)).max()) for part in parts.values())
    for index, (ax, (title, part)) in enumerate(
        zip(np.atleast_1d(axes), parts.items(), strict=True)
    ):
        values = as_array(part)
        shown = np.repeat(np.abs(values).max(1, keepdims=True) > 0, values.shape[1], 1)
        rows = list(names) if index == 0 else None
        style: dict[str, Any] = {
            "annotate": False,
            "limits": (-reach, reach),
            "visible": shown,
        }
        matrix_heatmap(ax, values, rows, title=title, **style)
        ax.set_aspect("auto")
        for line in np.flatnonzero(~shown[:, 0]):
            center = ((values.shape[1] - 1) / 2, line)
            ax.text(*center, "0", ha="center", va="center", color="#777777")
    plt.show()


def word_maps(maps: dict[str, Any], groups: dict[str, Sequence[str]]) -> None:
    """Draw words in the plane, one panel for each map, a colour for each group."""
    figure, axes = plt.subplots(len(maps), 1, figsize=(6.1, 4.3 * len(maps)))
    for ax, (title, points) in zip(np.atleast_1d(axes), maps.items(), strict=True):
        start = 0
        for color, (group, words) in zip(PALETTE, groups.items(), strict=True):
            block = as_array(points)[start : start + len(words)]
            ax.plot(block[:, 0], block[:, 1], "o", ms=7, color=color, label=group)
            start += len(words)
        ax.set_title(title, loc="left")
        ax.set_xticks([])
        ax.set_yticks([])
        ax.margins(0.14, 0.12)
    np.atleast_1d(axes)[-1].legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=4, columnspacing=1
    )
    figure.draw_without_rendering()  # from here on every point has its place
    figure.set_layout_engine("none")
    for ax, points in zip(np.atleast_1d(axes), maps.values(), strict=True):
        _name_points(ax, as_array(points), groups)
    plt.show()


def _name_points(ax: Axes, points: Any, groups: dict[str, Sequence[str]]) -> None:
    """Write each word beside its point, and those of a dense group together.

    Each name goes where it covers the least: of points, and of the names before it.
    """
    spread = np.ptp(points, axis=0).max()
    places = ax.transData.transform(points)
    taken = [Bbox.from_bounds(x - 5, y - 5, 10, 10) for x, y in places]
    start = 0
    for color, words in zip(PALETTE, groups.values(), strict=False):
        block = points[start : start + len(words)]
        names = list(zip(words, block, strict=True))
        if np.ptp(block, axis=0).max() < 0.2 * spread:
            half = (len(words) + 1) // 2
            text = ", ".join(words[:half]) + ",\n" + ", ".join(words[half:])
            names = [(text, block)]
        for text, spots in names:
            _name_apart(ax, text, np.atleast_2d(spots), color, taken)
        start += len(words)


def _name_apart(ax: Axes, text: str, spots: Any, color: str, taken: list[Bbox]) -> None:
    """Write a name beside one point or several, where it covers the least."""
    low, high = spots.min(axis=0), spots.max(axis=0)
    around = [
        (high[0], spots[:, 1].mean(), 8, 0, "left", "center"),
        (low[0], spots[:, 1].mean(), -8, 0, "right", "center"),
        (spots[:, 0].mean(), high[1], 0, 7, "center", "bottom"),
        (spots[:, 0].mean(), low[1], 0, -7, "center", "top"),
        (high[0], high[1], 5, 4, "left", "bottom"),
        (low[0], high[1], -5, 4, "right", "bottom"),
        (high[0], low[1], 5, -4, "left", "top"),
        (low[0], low[1], -5, -4, "right", "top"),
    ]
    best = None
    for x, y, right, up, across, upright in around:
        name = ax.annotate(
            text,
            (x, y),
            (right, up),
            textcoords="offset points",
            color=color,
            fontsize=10,
            ha=across,
            va=upright,
        )
        box = name.get_window_extent()
        covered = sum(_shared_area(box, other) for other in taken)
        covered += 5 * (box.width * box.height - _shared_area(box, ax.bbox))
        if best is None or covered < best[0]:
            if best is not None:
                best[1].remove()
            best = covered, name, box
        else:
            name.remove()
    if best is not None:
        taken.append(best[2])


def _shared_area(one: Bbox, other: Bbox) -> float:
    """Say how much two boxes overlap."""
    shared = Bbox.intersection(one, other)
    return shared.width * shared.height if shared is not None else 0.0


def patches(image: Any, pieces: Any, size: int) -> None:
    """Draw an image with its grid of patches, and the patches in their order.

    Args:
        image: (height, width, 3), values from 0 to 1.
        pieces: (n, size * size * 3), one patch a row, row by row of the image.
        size: pixels along one side of a patch.
    """
    picture = as_array(image)
    rows, columns = picture.shape[0] // size, picture.shape[1] // size
    figure = plt.figure(figsize=(6.8, 3.0), layout="constrained")
    left, right = parts_of(figure, 1, 2, width_ratios=[1.25, 1.5])
    ax = left.subplots()
    ax.imshow(picture)
    for row in range(1, rows):
        ax.axhline(row * size - 0.5, color="white", lw=2)
    for column in range(1, columns):
        ax.axvline(column * size - 0.5, color="white", lw=2)
    ax.set_title("the image")
    ax.axis("off")
    for number, small in enumerate(right.subplots(rows, columns).flat):
        small.imshow(as_array(pieces)[number].reshape(size, size, 3), vmin=0, vmax=1)
        small.set_title(str(number), fontsize=10, pad=2, fontweight="normal")
        small.axis("off")
    plt.show()


__all__ = [
    "draw_tokens",
    "gradients",
    "patches",
    "pipeline",
    "sizes",
    "token_rows",
    "word_maps",
]
