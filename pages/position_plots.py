"""Drawings for the chapter on positional encoding.

Like `workbench.plots`, these helpers draw what they are given. None of them computes a
positional encoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from workbench.plots import COLORS, SIGNED, as_array, format_number


def sentence_links(
    ax: Axes,
    first: Sequence[str],
    second: Sequence[str],
    distances: dict[str, float],
    title: str = "",
) -> None:
    """Write two sentences of the same words one below the other, equal words linked.

    Args:
        ax: where to draw.
        first: the words of the upper sentence, each once.
        second: the same words in another order.
        distances: for each word, the number to write between the word and its link,
            where no other link passes. A link whose number rounds to 0.00 is grey and
            dashed, the others are coloured.
        title: written above.
    """
    for column, word in enumerate(first):
        below = second.index(word)
        same = round(distances[word], 2) == 0
        color = COLORS["muted"] if same else COLORS["query"]
        ax.plot([column, below], [0.68, 0.2], color=color, ls="--" if same else "-")
        ax.text(
            *(column, 0.76, format_number(distances[word])),
            ha="center",
            va="center",
            color=color,
            fontweight="bold",
        )
    for y, sentence in ((0.92, first), (0.1, second)):
        for column, word in enumerate(sentence):
            ax.text(column, y, word, ha="center", va="center", fontsize=12)
    ax.set_xlim(-0.5, len(first) - 0.5)
    ax.set_ylim(0, 1)
    ax.axis("off")
    ax.set_title(title, loc="left")


def encoding_heatmap(ax: Axes, encoding: Any, title: str = "") -> AxesImage:
    """Draw an encoding (T, d) as colours: a row is a position, red 1, blue -1."""
    image = ax.imshow(
        as_array(encoding),
        SIGNED,
        vmin=-1,
        vmax=1,
        aspect="auto",
        interpolation="nearest",
    )
    ax.set_xlabel("column")
    ax.set_ylabel("position p")
    ax.set_title(title)
    return image


def accuracy_by_position(
    ax: Axes,
    accuracies: dict[str, Any],
    trained_length: int,
    chance: float,
    colors: dict[str, str] | None = None,
) -> None:
    """Draw the accuracy at each position, one line a model, and where training ended.

    Args:
        ax: where to draw.
        accuracies: name -> (T,) accuracies of positions 1 … T.
        trained_length: the longest sequence seen in training.
        chance: the accuracy of guessing.
        colors: name -> colour; the palette's where left out.
    """
    ax.axvspan(0.5, trained_length - 0.5, color="#EEF3F7", zorder=0)
    ax.axhline(chance, color=COLORS["muted"], lw=1, ls=":")
    width = 0
    for name, values in accuracies.items():
        values = as_array(values)
        width = max(width, len(values))
        color = (colors or {}).get(name)
        marker: dict[str, Any] = {"marker": "o", "ms": 3.5, "lw": 1.6}
        ax.plot(
            np.arange(1, len(values) + 1), values, label=name, color=color, **marker
        )
    ax.text(trained_length / 2, 1.07, "seen in training", ha="center", color="#555555")
    beyond = (trained_length + width) / 2
    ax.text(beyond, 1.07, "never seen", ha="center", color="#555555")
    ax.set_xlim(0.5, width + 0.5)
    ax.set_ylim(0, 1.15)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
    ax.set_xlabel("position in a sequence of length 32")
    ax.set_ylabel("accuracy")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)
