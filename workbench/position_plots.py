"""Drawings for the chapter on positional encoding.

Like `workbench.plots`, these helpers draw what they are given. None of them computes a
positional encoding.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from IPython.display import HTML
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patches import Circle

from workbench.plots import COLORS, PALETTE, SIGNED, as_array, format_number


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


def clock_hands(
    grid: Any,
    encoding: Any,
    positions: Sequence[int],
    hand_names: Sequence[str],
) -> None:
    """Draw each pair of columns as the hand of a clock, one row of clocks a position.

    The first column of a pair is drawn upwards, the second to the right, so that
    (sin, cos) = (0, 1) points to the right and the hand turns against the clock.

    Args:
        grid: array of axes, (positions, pairs).
        encoding: (T, d), the columns in pairs.
        positions: the rows of `encoding` to draw.
        hand_names: a name for each pair, written above the first row.
    """
    values = as_array(encoding)
    for row, position in enumerate(positions):
        for pair, name in enumerate(hand_names):
            ax = grid[row][pair]
            up, right = values[position, 2 * pair], values[position, 2 * pair + 1]
            color = PALETTE[pair % len(PALETTE)]
            ax.add_patch(Circle((0, 0), 1, fill=False, ec="#BBBBBB", lw=1.2))
            ax.plot([0, right], [0, up], color=color, lw=2.6, solid_capstyle="round")
            ax.plot(right, up, "o", color=color, ms=5)
            ax.set_xlim(-1.2, 1.2)
            ax.set_ylim(-1.2, 1.2)
            ax.set_aspect("equal")
            ax.set_xticks([])
            ax.set_yticks([])
            for side in ax.spines.values():
                side.set_visible(False)
            if row == 0:
                ax.set_title(name, fontsize=10, fontweight="normal")
        grid[row][0].set_ylabel(f"p = {position}", rotation=0, labelpad=22, va="center")


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
        marker = {"marker": "o", "ms": 3.5, "lw": 1.6}
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


SLIDER_SCRIPT = """
(() => {
  const box = document.getElementById("position-clocks");
  const rows = ROWS;
  const show = (p) => {
    box.querySelector("output").textContent = p;
    rows[p].forEach((value, column) => {
      const cell = box.querySelector(`[data-cell="${column}"]`);
      cell.setAttribute("fill", value < 0 ? "#2166AC" : "#B2182B");
      cell.setAttribute("fill-opacity", Math.abs(value));
      const number = Math.abs(value).toFixed(2);
      const text = (value < 0 && number !== "0.00" ? "\u2212" : "") + number;
      box.querySelector(`[data-number="${column}"]`).textContent = text;
    });
    box.querySelectorAll("[data-hand]").forEach((hand, pair) => {
      hand.setAttribute("x2", 50 + 100 * pair + 40 * rows[p][2 * pair + 1]);
      hand.setAttribute("y2", 50 - 40 * rows[p][2 * pair]);
    });
  };
  const slider = box.querySelector("input");
  slider.addEventListener("input", () => show(Number(slider.value)));
  show(Number(slider.value));
})();
"""


def clock_slider(encoding: Any) -> HTML:
    """Return the clocks of an encoding (T, d) with a slider for the position.

    It needs nothing but the page that it stands on: the rows are written into it. The
    drawing takes the page's text colour and so fits the light and the dark theme.
    """
    values = np.round(as_array(encoding).astype(float), 3) + 0.0  # no "-0.0"
    clocks = []
    for pair in range(values.shape[1] // 2):
        x, color = (
            50 + 100 * pair,
            ("#3A8FC7", "#D9762B", "#1FA57F", "#A869A8")[pair % 4],
        )
        clocks.append(
            f'<circle cx="{x}" cy="50" r="40" fill="none" stroke="currentColor"'
            ' stroke-opacity="0.35"/>'
            f'<line data-hand x1="{x}" y1="50" x2="{x + 40}" y2="50" stroke="{color}"'
            ' stroke-width="4" stroke-linecap="round"/>'
        )
        for column, left in ((2 * pair, x - 41), (2 * pair + 1, x + 1)):
            name = ("sin", "cos")[column % 2]
            clocks.append(
                f'<rect data-cell="{column}" x="{left}" y="104" width="40" height="20"'
                ' stroke="currentColor" stroke-opacity="0.35"/>'
                f'<text data-number="{column}" x="{left + 20}" y="141"></text>'
                f'<text x="{left + 20}" y="156" opacity="0.8">{name}</text>'
            )
    last = len(values) - 1
    script = SLIDER_SCRIPT.replace("ROWS", json.dumps(values.tolist()))
    return HTML(
        '<div id="position-clocks"'
        ' style="margin: 1rem 0; padding: 1rem; border-radius: 0.5rem;'
        ' border: 1px solid var(--pst-color-border, #aaa)">'
        '<div style="max-width: 36rem; margin: auto">'
        '<label style="display: flex; gap: 0.7rem; align-items: center">'
        "<span>position p = "
        '<output style="display: inline-block; min-width: 2ch">1</output></span>'
        f'<input type="range" min="0" max="{last}" value="1"'
        ' style="flex: 1; min-width: 0; accent-color: var(--pst-color-primary)">'
        "</label>"
        f'<svg viewBox="0 0 {50 * values.shape[1]} 162" role="img" width="100%"'
        ' aria-label="Clock hands of the position chosen, and their sines and cosines"'
        ' font-size="12.5" text-anchor="middle" fill="currentColor">'
        f"{''.join(clocks)}</svg></div></div><script>{script}</script>"
    )
