"""The larger drawings of the chapter on the language model.

Each function draws one figure from what the page computed and shows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from workbench.plots import COLORS, HIDDEN, PALETTE, WEIGHTS, as_array

FULL = 5.0  # nats from which a token is drawn in the darkest shade
DARK = 0.62  # of the colour map, from which letters on it are white
LINE = 62  # characters
MONOSPACE: dict[str, Any] = {"family": "DejaVu Sans Mono", "fontsize": 9.5}
ACROSS = 0.6  # width of a character in these letters, in em
POINTS = 72  # an inch


def surprise(words: Sequence[str], losses: Sequence[float]) -> None:
    """Write a text, each token on a shade for how little it was expected.

    Args:
        words: the tokens' texts, spaces included.
        losses: in nats, one for each.
    """
    lines = wrapped(words, LINE)
    width = ACROSS * MONOSPACE["fontsize"] / POINTS * LINE
    _, ax = plt.subplots(figsize=(width, 0.26 * len(lines) + 0.45))
    ax.set(xlim=(0, LINE), ylim=(len(lines) + 1.1, 0))
    ax.axis("off")
    number = 0
    for row, line in enumerate(lines):
        column = 0
        for word in line:
            shade = min(1.0, losses[number] / FULL)
            block(ax, column, row, len(word), shade)
            color = "white" if shade > DARK else "#111111"
            for place, letter in enumerate(word):
                spot = (column + place + 0.5, row + 0.5)
                ax.text(
                    *spot, letter, ha="center", va="center", color=color, **MONOSPACE
                )
            column += len(word)
            number += 1
    legend(ax, len(lines) + 0.25)
    plt.show()


def wrapped(words: Sequence[str], width: int) -> list[list[str]]:
    """Break tokens into lines of at most so many characters, before spaces alone."""
    lines: list[list[str]] = [[]]
    for word in whole_words(words):
        length = sum(map(len, word))
        if lines[-1] and sum(map(len, lines[-1])) + length > width:
            lines.append([])
        if not lines[-1]:
            word = [word[0].lstrip(), *word[1:]]
        lines[-1] += word
    return lines


def whole_words(tokens: Sequence[str]) -> Iterator[list[str]]:
    """Put the tokens together that no space stands between."""
    word: list[str] = []
    for token in tokens:
        if word and token.startswith(" "):
            yield word
            word = []
        word.append(token)
    yield word


def block(ax: Axes, column: float, row: float, width: float, shade: float) -> None:
    """Draw the background of a token."""
    color = mpl.colormaps[WEIGHTS](shade)
    style: dict[str, Any] = {"boxstyle": "square,pad=0", "ec": "none", "fc": color}
    ax.add_patch(FancyBboxPatch((column, row + 0.08), width, 0.84, **style))


def legend(ax: Axes, row: float) -> None:
    """Say what the shades mean."""
    column = 0.0
    for probability in (1.0, 0.5, 0.1, 0.01):
        shade = min(1.0, -math.log(probability) / FULL)
        block(ax, column, row, 9, shade)
        color = "white" if shade > DARK else "#111111"
        text = f"p = {probability:g}"
        spot = (column + 4.5, row + 0.5)
        ax.text(*spot, text, ha="center", va="center", color=color, fontsize=9)
        column += 10


def mask(allowed: Any, names: Sequence[object]) -> None:
    """Draw who may attend to whom.

    Args:
        allowed: boolean (T, T).
        names: of the positions.
    """
    _, ax = plt.subplots(figsize=(2.9, 2.9))
    colors = mpl.colors.ListedColormap(
        [mpl.colors.to_rgba(HIDDEN), mpl.colormaps[WEIGHTS](0.6)]
    )
    ax.imshow(as_array(allowed), colors, vmin=0, vmax=1)
    places, labels = range(len(names)), list(map(str, names))
    ax.set_xticks(places, labels)
    ax.set_yticks(places, labels)
    ax.set_xticks(np.arange(0.5, len(names) - 1), minor=True)
    ax.set_yticks(np.arange(0.5, len(names) - 1), minor=True)
    ax.grid(which="minor", color="white", lw=1.5)
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel="key", ylabel="query")
    plt.show()


def singular_values(before: Any, after: Any) -> None:
    """Draw two rows of singular values, the largest first."""
    _, ax = plt.subplots(figsize=(5.4, 2.7))
    ax.semilogy(as_array(before), color=COLORS["muted"], label="before")
    ax.semilogy(as_array(after), color=COLORS["query"], label="after five rounds")
    ax.axhline(1, color="#BBBBBB", lw=1, zorder=0)
    ax.set(xlabel="singular value, the largest first", ylabel="size")
    ax.legend()
    plt.show()


def training(history: dict[str, list], guessing: float) -> None:
    """Draw the loss of a training.

    Args:
        history: of the record, with ``step`` and ``loss``.
        guessing: the loss of who knows nothing.
    """
    _, ax = plt.subplots(figsize=(6.0, 2.8))
    ax.plot(history["step"], history["loss"], color=COLORS["query"], label="training")
    if history.get("validation_loss"):
        style: dict[str, Any] = {
            "color": COLORS["key"],
            "label": "validation",
            "marker": "o",
            "ms": 3,
        }
        ax.plot(history["validation_step"], history["validation_loss"], **style)
    ax.axhline(guessing, color="#999999", lw=1, ls="--")
    ax.text(
        ax.get_xlim()[1], guessing, "guessing ", ha="right", va="bottom", fontsize=9
    )
    ax.set(xlabel="step", ylabel="nats per token", ylim=(0, 1.12 * guessing))
    ax.legend(loc="center right")
    plt.show()


def agreements(history: dict[str, list], kinds: Sequence[str]) -> None:
    """Draw how many agreements of each kind a model keeps while it is trained.

    Args:
        history: of the record, with ``validation_step`` and ``validation_agreement_…``.
        kinds: of agreements.
    """
    _, ax = plt.subplots(figsize=(6.0, 3.0))
    markers = "osD^v"  # told apart without colours, too
    for kind, marker, color in zip(kinds, markers, PALETTE, strict=False):
        values = history[f"validation_agreement_{kind}"]
        style: dict[str, Any] = {"color": color, "marker": marker, "ms": 4, "lw": 1.5}
        ax.plot(history["validation_step"], values, label=kind, **style)
    ax.set(xlabel="step", ylabel="agreements kept, %", ylim=(0, 104))
    ax.legend(loc="lower right")
    plt.show()


def by_heart(runs: dict[str, dict[str, list]]) -> None:
    """Draw what runs know of the text that they read, and of text that is new.

    Args:
        runs: what each is called -> the history of its record; it was validated after
            every epoch.
    """
    _, ax = plt.subplots(figsize=(6.2, 3.2))
    for (name, history), color in zip(runs.items(), PALETTE, strict=False):
        epoch = history["validation_step"][0]
        read = [step / epoch for step in history["step"]]
        ax.plot(read, history["loss"], color=color, lw=1, ls=":")
        checked = [step / epoch for step in history["validation_step"]]
        ax.plot(
            checked, history["validation_loss"], "o-", color=color, ms=3, label=name
        )
    ax.plot([], [], ":", color=COLORS["muted"], lw=1, label="the text that it reads")
    ax.set(xlabel="times that the text was read", ylabel="nats a letter")
    ax.set(ylim=(1, 2.1), xlim=(0, None))
    ax.legend(loc="upper right")
    plt.show()


def copying(weights: dict[str, Any], text: str) -> None:
    """Draw maps of attention side by side, on a text that is said twice.

    Args:
        weights: title -> (T, T).
        text: its characters name the positions.
    """
    _, axes = plt.subplots(1, len(weights), figsize=(3.5 * len(weights), 3.7))
    for ax, (title, values) in zip(np.atleast_1d(axes), weights.items(), strict=True):
        ax.imshow(as_array(values), WEIGHTS, vmin=0, vmax=1)
        places = range(len(text))
        ax.set_xticks(places, text, fontsize=7)
        ax.set_yticks(places, text, fontsize=7)
        ax.tick_params(length=0)
        half = len(text) / 2 - 0.5
        ax.axhline(half, color="#999999", lw=0.8)
        ax.axvline(half, color="#999999", lw=0.8)
        ax.set(title=title, xlabel="looks at", ylabel="position")
    plt.show()


def ladder(rows: dict[str, Sequence[float]], unit: str) -> None:
    """Draw the score of each seed, one row a change, and the means.

    Args:
        rows: what was changed -> a value for each seed.
        unit: of the values.
    """
    _, ax = plt.subplots(figsize=(6.2, 0.42 * len(rows) + 0.9))
    for place, values in enumerate(rows.values()):
        ax.plot(
            values, [place] * len(values), "o", color=COLORS["query"], ms=5, alpha=0.5
        )
        mean = sum(values) / len(values)
        ax.plot([mean, mean], [place - 0.3, place + 0.3], color=COLORS["key"], lw=2)
    ax.set_yticks(range(len(rows)), rows)
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel=unit)
    ax.grid(axis="x", color="#E5E5E5")
    plt.show()


def scaling(runs: Sequence[dict], told: Sequence[float]) -> None:
    """Draw losses against what a law says of them; what was held out is marked.

    Args:
        runs: of results/language_model/scaling.json, the one held out last.
        told: by the law, in bits per byte.
    """
    found = [run["bits_per_byte"] for run in runs]
    _, ax = plt.subplots(figsize=(4.4, 3.6))
    low, high = min(found + list(told)) - 0.1, max(found + list(told)) + 0.1
    ax.plot([low, high], [low, high], color="#BBBBBB", lw=1)
    ax.plot(told[:-1], found[:-1], "o", color=COLORS["query"], ms=5, label="fitted")
    ax.plot(told[-1:], found[-1:], "D", color=COLORS["key"], ms=7, label="held out")
    ax.set(xlabel="the law says", ylabel="measured", xlim=(low, high), ylim=(low, high))
    ax.set_title("bits per byte", loc="left")
    ax.legend()
    plt.show()


def lens(right: Any, control: Any) -> None:
    """Draw what each layer gains for the right tokens, beside a control.

    Args:
        right: (layers + 1,), in nats.
        control: likewise, read with another output matrix.
    """
    _, ax = plt.subplots(figsize=(5.2, 2.8))
    layers = range(len(as_array(right)))
    ax.plot(
        layers, as_array(right), "o-", color=COLORS["query"], label="the model's matrix"
    )
    style: dict[str, Any] = {"color": COLORS["muted"], "label": "its rows shuffled"}
    ax.plot(layers, as_array(control), "o-", **style)
    ax.axhline(0, color="#BBBBBB", lw=1, zorder=0)
    ax.set_xticks(layers, ["embedding", *(f"block {n}" for n in layers[1:])])
    ax.set(ylabel="gain in nats")
    ax.legend()
    plt.show()


def patching(effect: Any, names: Sequence[str], least: float = 0.05) -> None:
    """Draw how much each activation brings back, where it is any.

    Args:
        effect: (layers, T), shares.
        names: of the T tokens.
        least: tokens that never reach this share are left out.
    """
    values = as_array(effect)
    kept = [
        place for place in range(len(names)) if np.abs(values[:, place]).max() > least
    ]
    _, ax = plt.subplots(figsize=(0.62 * len(kept) + 1.2, 0.5 * len(values) + 1.1))
    ax.imshow(values[:, kept], "RdBu_r", vmin=-1.2, vmax=1.2, aspect="auto")
    for row, column in np.ndindex(len(values), len(kept)):
        value = values[row, kept[column]]
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9}
        style["color"] = "white" if abs(value) > 0.8 else "#111111"
        ax.text(column, row, f"{value:.2f}", **style)
    labels = [names[place].strip() for place in kept]
    ax.set_xticks(range(len(kept)), labels, rotation=40, ha="right")
    ax.set_yticks(range(len(values)), [f"block {n + 1}" for n in range(len(values))])
    ax.tick_params(length=0)
    plt.show()
