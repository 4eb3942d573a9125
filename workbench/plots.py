"""Drawing helpers and the course's palette, for the book's pages and the exercises.

Every helper draws into an axes that it is given and returns None or what it drew; none
of them computes anything that a chapter teaches. A figure is then three or four lines:

    figure, axes = plt.subplots()
    plots.matrix_heatmap(axes, weights, rows=words, columns=words)
    plt.show()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.image import AxesImage
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Circle, Rectangle

# Okabe and Ito's colours, which people with any colour vision can tell apart. A thing
# keeps its colour through the whole course: queries are blue wherever they are drawn.
COLORS = {
    "query": "#0072B2",  # blue
    "key": "#D55E00",  # vermilion
    "value": "#009E73",  # green
    "weight": "#8B4A8B",  # purple
    "output": "#B8860B",  # ochre
    "input": "#333333",  # near black
    "muted": "#7A7A7A",  # grey, for what is only compared with
    "right": "#0072B2",
    "wrong": "#D55E00",
}
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#8B4A8B", "#B8860B", "#56B4E9", "#333333"]
WEIGHTS = "Purples"  # colour map of what lies between 0 and 1
SIGNED = "RdBu_r"  # colour map of what can be negative, white at 0
HIDDEN = "#ECECEC"  # what a mask hides

STYLE: dict[str, Any] = {
    "figure.figsize": (6.0, 3.4),
    "figure.dpi": 110,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "axes.facecolor": "white",
    "axes.edgecolor": "#444444",
    "axes.prop_cycle": cycler(color=PALETTE),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.labelsize": 11,
    "font.size": 11,
    "font.family": ["DejaVu Sans"],
    "lines.linewidth": 2.0,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "svg.hashsalt": "course",  # the same figure is the same file
    "svg.fonttype": "path",
}


def use_course_style(formats: str = "svg") -> None:
    """Set the course's style; in a notebook, also draw figures as `formats`.

    Use "png" in a cell whose figure has many thousands of points or image cells: an SVG
    writes every one of them down. Use "jpeg" for a photograph, a quarter of its PNG.
    """
    mpl.rcParams.update(STYLE)  # type: ignore[arg-type]  # there, each key has a type
    try:
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:  # a plain Python process: nothing is displayed in line
        return
    metadata = {"Date": None} if formats == "svg" else None
    set_matplotlib_formats(formats, metadata=metadata, facecolor="white")


def parts_of(figure: Figure, rows: int, columns: int, **more: Any) -> list[SubFigure]:
    """Divide a figure; return its parts row by row."""
    return list(figure.subfigures(rows, columns, squeeze=False, **more).flat)


def set_gaps(figure: Figure, **gaps: Any) -> None:
    """Set what a figure's layout keeps free, such as ``w_pad``, in inches."""
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(**gaps)


def as_array(values: Any) -> np.ndarray:
    """Return a tensor, list or array as a NumPy array (tensors leave their graph)."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return np.asarray(values)


def matrix_heatmap(
    ax: Axes,
    matrix: Any,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    *,
    title: str | None = None,
    row_title: str | None = None,
    column_title: str | None = None,
    limits: tuple[float, float] | None = None,
    colormap: str | None = None,
    digits: int = 2,
    annotate: bool = True,
    visible: Any = None,
    highlight: Sequence[tuple[int, int]] = (),
) -> AxesImage:
    """Draw a matrix as coloured cells, each with its number written in.

    Args:
        ax: where to draw.
        matrix: (rows, columns); tensor, array or nested list. Cells that are -inf are
            drawn grey with "−∞", NaN with "NaN".
        rows: a name for each row, written at the left.
        columns: a name for each column, written above.
        title: written above the whole.
        row_title: what the rows are, e.g. "queries".
        column_title: what the columns are, e.g. "keys".
        limits: values of the first and last colour. Left out: 0 to 1 when every value
            lies there, else symmetric about 0.
        colormap: name of a colour map. Left out: WEIGHTS or SIGNED, as the limits say.
        digits: decimals of the numbers written in.
        annotate: False draws colours only (for matrices with many cells).
        visible: boolean, as large as `matrix`; cells that are False are drawn grey.
        highlight: (row, column) of cells that get a dark frame.

    Returns:
        The image, for a colour bar.
    """
    values = as_array(matrix).astype(float)
    if values.ndim != 2:
        raise ValueError(f"a heat-map needs 2 axes, got the shape {values.shape}")
    finite = np.isfinite(values)
    if limits is None:
        inside = values[finite] if finite.any() else np.zeros(1)
        limits = (0.0, 1.0)
        if inside.min() < 0 or inside.max() > 1:
            reach = 1.25 * float(np.abs(inside).max())
            limits = (-reach, reach)
    if colormap is None:
        colormap = SIGNED if limits[0] < 0 else WEIGHTS
    shown = finite if visible is None else finite & as_array(visible).astype(bool)
    colors = mpl.colormaps[colormap].with_extremes(bad=HIDDEN)
    image = ax.imshow(
        np.ma.array(values, mask=~shown), colors, vmin=limits[0], vmax=limits[1]
    )
    _label_cells(ax, values.shape, rows, columns)
    if annotate:
        _write_numbers(ax, values, shown, image, digits)
    for row, column in highlight:
        frame = (column - 0.5, row - 0.5)
        ax.add_patch(Rectangle(frame, 1, 1, fill=False, lw=2.5, ec="#111111", zorder=5))
    if title:
        ax.set_title(title, pad=10)
    if row_title:
        ax.set_ylabel(row_title)
    if column_title:
        ax.set_xlabel(column_title)
        ax.xaxis.set_label_position("bottom")
    return image


def attention_map(weights: Any, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Draw cross-attention: written tokens down, read tokens across."""
    _, ax = plt.subplots(figsize=(5.6, 4.6))
    matrix_heatmap(ax, weights, rows, columns, digits=2)
    ax.tick_params(axis="x", rotation=55)
    for text in ax.texts:
        text.set_fontsize(9)
    ax.set_ylabel("about to write")
    plt.show()


def _label_cells(
    ax: Axes,
    shape: tuple[int, ...],
    rows: Sequence[str] | None,
    columns: Sequence[str] | None,
) -> None:
    """Write the names of rows and columns; draw white lines between the cells."""
    ax.set_xticks(range(shape[1]) if columns is not None else [])
    ax.set_yticks(range(shape[0]) if rows is not None else [])
    if columns is not None:
        ax.set_xticklabels(list(columns))
    if rows is not None:
        ax.set_yticklabels(list(rows))
    ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    if max(shape) <= 32:
        ax.set_xticks(np.arange(0.5, shape[1] - 1), minor=True)
        ax.set_yticks(np.arange(0.5, shape[0] - 1), minor=True)
        ax.grid(which="minor", color="white", linewidth=1.5)
        ax.tick_params(which="minor", length=0)
    for side in ax.spines.values():
        side.set_visible(False)


def _write_numbers(
    ax: Axes, values: np.ndarray, shown: np.ndarray, image: AxesImage, digits: int
) -> None:
    """Write each cell's number in black or in white, whichever can be read."""
    for (row, column), value in np.ndenumerate(values):
        text, ink = format_number(value, digits), "#555555"
        if shown[row, column]:
            red, green, blue, _ = image.cmap(image.norm(value))
            bright = 0.299 * red + 0.587 * green + 0.114 * blue > 0.55
            ink = "#111111" if bright else "white"
        ax.text(column, row, text, ha="center", va="center", color=ink, zorder=6)


def format_number(value: float, digits: int = 2) -> str:
    """Write a number for a cell: a real minus sign, −∞, no "-0.00"."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", "−")


def vectors(
    ax: Axes,
    matrix: Any,
    labels: Sequence[str] | None = None,
    *,
    color: str | Sequence[str] = COLORS["input"],
    circle: bool = True,
    axes: bool = True,
    limit: float | None = None,
    linestyle: str = "solid",
) -> None:
    """Draw the rows of a matrix as arrows in the plane, from the origin.

    Args:
        ax: where to draw; its two axes get the same scale.
        matrix: (n, 2), one arrow a row.
        labels: a name for each arrow, written beyond its tip.
        color: one colour for all, or one for each.
        circle: draw the unit circle, too.
        axes: draw the two coordinate axes, too.
        limit: the picture reaches from -limit to limit. Left out: what is needed.
        linestyle: "solid" or "dashed".
    """
    rows = as_array(matrix).astype(float)
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise ValueError(f"arrows in the plane need shape (n, 2), got {rows.shape}")
    colors = [color] * len(rows) if isinstance(color, str) else list(color)
    if axes:
        ax.axhline(0, color="#BBBBBB", lw=0.8, zorder=0)
        ax.axvline(0, color="#BBBBBB", lw=0.8, zorder=0)
    if circle:
        ax.add_patch(Circle((0, 0), 1, fill=False, ec="#CCCCCC", lw=1, zorder=0))
    for index, (x, y) in enumerate(rows):
        ax.annotate(
            "",
            xy=(x, y),
            xytext=(0, 0),
            arrowprops={
                "arrowstyle": "-|>,head_width=0.28,head_length=0.55",
                "color": colors[index],
                "lw": 2.2,
                "linestyle": linestyle,
                "shrinkA": 0,
                "shrinkB": 0,
            },
        )
        if labels is not None:
            _name_tip(ax, x, y, labels[index], colors[index])
    reach = limit or max(1.25, 1.3 * float(np.abs(rows).max()), ax.get_xlim()[1])
    ax.set_xlim(-reach, reach)
    ax.set_ylim(-reach, reach)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    for side in ax.spines.values():
        side.set_visible(False)


def _name_tip(ax: Axes, x: float, y: float, name: str, color: str) -> None:
    """Write a name just beyond the tip of an arrow, on the side it points to."""
    across, up = np.array([x, y]) / max(float(np.hypot(x, y)), 1e-9)
    horizontal = "left" if across > 0.4 else "right" if across < -0.4 else "center"
    vertical = "bottom" if up > 0.4 else "top" if up < -0.4 else "center"
    style: dict[str, Any] = {
        "ha": horizontal,
        "va": vertical,
        "color": color,
        "fontweight": "bold",
    }
    shift = (5 * across, 5 * up)
    ax.annotate(name, (x, y), shift, textcoords="offset points", **style)


def label_lines(
    ax: Axes, *, gap: float = 0.02, rename: dict[str, str] | None = None
) -> None:
    """Write each line's name at its right end, in its colour, in place of a legend."""
    rename = rename or {}
    for line in ax.get_lines():
        name = str(line.get_label())
        if name.startswith("_"):
            continue
        x, y = np.asarray(line.get_xydata())[-1]
        ax.annotate(
            rename.get(name, name),
            xy=(x, y),
            xytext=(6, 0),
            textcoords="offset points",
            color=line.get_color(),
            va="center",
            fontweight="bold",
        )
    ax.margins(x=gap)


__all__ = [
    "COLORS",
    "HIDDEN",
    "PALETTE",
    "SIGNED",
    "STYLE",
    "WEIGHTS",
    "as_array",
    "format_number",
    "label_lines",
    "matrix_heatmap",
    "plt",
    "use_course_style",
    "vectors",
]
