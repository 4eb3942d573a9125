"""Draw how a training went: the loss, the scores on validation data, the rate."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from autograder.files import replacing
from workbench import plots
from workbench.errors import WorkbenchError

History = dict[str, list]

# Lists that say where the others' values belong: a name that begins with the prefix
# goes with the list that is called prefix + one of these, e.g. validation_step.
PLACES = ("step", "epoch")
ASIDE = {"seconds", "examples", *PLACES}  # measured, but no curve
SCORES_OF_SHARES = ("accuracy", "exact_match")
WIDTH, HEIGHT = 6.0, 2.6  # inches, for one panel


def draw(history: History, path: Path) -> None:
    """Draw the curves of a training into a PNG file.

    Args:
        history: lists of numbers by name, such as `step` with `loss` and `rate`, and
            `validation_step` with `validation_accuracy`. Lists with no places of their
            own size are spread evenly. Values that are no numbers leave a gap.
        path: the file; it is written beside and then renamed.

    Raises:
        WorkbenchError: if there is nothing to draw, or the file cannot be written.
    """
    panels = grouped(history)
    if not panels:
        raise WorkbenchError("the history is empty: there are no curves to draw")
    with mpl.rc_context(plots.STYLE):  # type: ignore[arg-type]  # as in plots.py
        figure = Figure(figsize=(WIDTH, HEIGHT * len(panels)))
        FigureCanvasAgg(figure)  # no window, whatever the machine
        axes = figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0]
        for each, (title, names) in zip(axes, panels.items(), strict=True):
            draw_panel(each, title, names, history)
        axes[-1].set_xlabel(unit(history))
        save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, beside and renamed: nobody sees half a file.

    Raises:
        WorkbenchError: if that is not possible.
    """
    try:
        path.parent.stat()  # a folder that is not there is a slip: none is made
        with replacing(path) as beside:
            figure.savefig(beside, format="png", metadata={"Software": None})
    except OSError as error:
        raise WorkbenchError(f"{path} cannot be written: {error.strerror}") from error


def unit(history: History) -> str:
    """What the horizontal axis counts."""
    names = {name.rpartition("_")[2] for name in history}
    return next((place for place in PLACES if place in names), "reading")


def grouped(history: History) -> dict[str, list[str]]:
    """Say which curves share a panel, by the panel's title."""
    panels: dict[str, list[str]] = {}
    for name, values in history.items():
        last = name.rpartition("_")[2]
        if last in ASIDE or not any(map(is_number, values)):
            continue
        panels.setdefault(kind_of(name), []).append(name)
    panels = together(panels)
    order = {"loss": 0, "rate": 2, "learning rate": 2}  # the scores between these
    return dict(sorted(panels.items(), key=lambda item: order.get(item[0], 1)))


def kind_of(name: str) -> str:
    """What a list measures, whether in training or in validation."""
    kind = name.removeprefix("train_").removeprefix("validation_")
    return kind.replace("_", " ")


def together(panels: dict[str, list[str]]) -> dict[str, list[str]]:
    """Put scores of the same first word, "agreement having", into one panel."""
    first = {title: title.partition(" ")[0] for title in panels}
    count = Counter(first.values())
    joined: dict[str, list[str]] = {}
    for title, names in panels.items():
        key = first[title] if count[first[title]] > 1 else title
        joined.setdefault(key, []).extend(names)
    return joined


def is_number(value: object) -> bool:
    """Whether a value can be drawn."""
    return isinstance(value, (int, float)) and math.isfinite(value)


def places_of(name: str, history: History) -> list[float]:
    """Where the values of a list belong on the horizontal axis."""
    count = len(history[name])
    prefix = name.partition("_")[0] + "_"
    for place in (*(prefix + each for each in PLACES), *PLACES):
        if len(history.get(place, ())) == count:
            return history[place]
    ends = [max(history[each]) for each in PLACES if history.get(each)]
    end = ends[0] if ends else count
    return [end * (index + 1) / count for index in range(count)]


def draw_panel(ax: Axes, title: str, names: list[str], history: History) -> None:
    """Draw the curves of one panel."""
    colours = dict.fromkeys(names, plots.PALETTE[0])
    if len(names) > 1:
        colours = dict(zip(names, plots.PALETTE, strict=False))
    for name in names:
        values = [v if is_number(v) else math.nan for v in history[name]]
        places = places_of(name, history)
        marker = "o" if len(values) < 30 else ""  # a single reading is seen, too
        label = "validation" if name.startswith("validation_") else "training"
        if kind_of(name) != title:  # one of several that share the panel
            label = kind_of(name).removeprefix(title).strip()
        style: dict[str, Any] = {
            "marker": marker,
            "markersize": 3,
            "color": colours[name],
        }
        ax.plot(places, values, label=label, **style)
    ax.set_title(titled(title, names, history))
    if len(names) > 1:
        ax.legend()
    if title == "loss":
        ax.set_ylim(bottom=min(0, ax.get_ylim()[0]))
    ax.grid(axis="y", color="#DDDDDD", linewidth=0.8)


def titled(title: str, names: list[str], history: History) -> str:
    """Add to a panel's title the last value of its score."""
    name = names[-1]
    if kind_of(name) != title:
        return title
    last = [value for value in history[name] if is_number(value)][-1]
    if title.endswith(("rate", "loss")):
        return title
    if title.replace(" ", "_") in SCORES_OF_SHARES:
        return f"{title}: {100 * last:.1f} % at the end"
    return f"{title}: {last:.1f} at the end"
