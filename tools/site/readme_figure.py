"""Draw the picture of README.md with the reference modules.

python -m tools.site.readme_figure        writes book/_static/transformers_by_hand.png
"""

import math
from pathlib import Path

import torch

from pages import position_plots
from tools.steps import ROOT
from transformer.attention import scaled_dot_product_attention
from transformer.positional_encoding import sinusoidal_positional_encoding
from workbench import plots
from workbench.plots import COLORS, plt

WORDS = ["blue", "car"]


def rotation(angle: float) -> torch.Tensor:
    """Return the matrix that turns a row by -angle, (2, 2)."""
    cosine, sine = math.cos(angle), math.sin(angle)
    return torch.tensor([[cosine, -sine], [sine, cosine]])


def main(path: Path) -> None:
    """Draw three panels: where words are, how near they are, who attends to whom."""
    plots.use_course_style()
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 4.2))
    T, d_model = 80, 40
    encoding = sinusoidal_positional_encoding(T, d_model)
    position_plots.encoding_heatmap(left, encoding, "Where a word stands")
    left.set_title(left.get_title(), pad=24)  # level with the others
    left.set_box_aspect(1)

    X = torch.eye(2)  # one row a word
    q, k = X @ rotation(-math.pi / 4), X @ rotation(math.pi / 8)
    v = X @ rotation(5 * math.pi / 16)
    for vectors, color, name, x in (
        (q, COLORS["query"], "queries", -1),
        (k, COLORS["key"], "keys", 1),
    ):
        plots.vectors(middle, vectors, WORDS, color=color)
        middle.text(x, -1.4, name, color=color, ha="center", weight="bold")
    middle.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5))
    middle.set_title("What it asks and offers", pad=24)

    _, weights = scaled_dot_product_attention(q, k, v)
    plots.matrix_heatmap(
        right,
        weights,
        WORDS,
        WORDS,
        title="What it attends to",
        row_title="query",
        column_title="key",
    )
    figure.savefig(path, dpi=180, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main(ROOT / "book" / "_static" / "transformers_by_hand.png")
