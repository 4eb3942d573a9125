"""Draw book/_static/social.png, which other sites show beside a link to the course.

python -m tools.site.social_picture
"""

from pathlib import Path

import torch

from tools.steps import ROOT
from transformer.attention import scaled_dot_product_attention
from transformer.positional_encoding import (
    sinusoidal_positional_encoding,
)
from workbench import plots

PICTURE = ROOT / "book" / "_static" / "social.png"
WIDTH, HEIGHT, DPI = 1200, 630, 100


def main(target: Path = PICTURE) -> None:
    """Draw attention among positions, and the course's name."""
    plots.use_course_style()
    figure = plots.plt.figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI)
    figure.set_layout_engine("none")
    figure.patch.set_facecolor("#15324a")
    axes = figure.add_axes((0.545, 0.09, 0.43, 0.82))
    axes.imshow(weights(), cmap="magma", vmin=0)
    axes.set_axis_off()
    ink = {"color": "white", "ha": "left"}
    figure.text(0.06, 0.62, "Transformers", fontsize=46, weight="bold", **ink)
    figure.text(0.06, 0.50, "by hand", fontsize=46, weight="bold", **ink)
    figure.text(
        0.06,
        0.27,
        "Write every part yourself.\nBe told which mistake it is.",
        fontsize=22,
        linespacing=1.5,
        **ink,
    )
    figure.savefig(
        target, facecolor=figure.get_facecolor(), metadata={"Software": None}
    )
    plots.plt.close(figure)


def weights() -> torch.Tensor:
    """Compute the weights of positions that look for their neighbours."""
    count, width = 24, 64
    rows = sinusoidal_positional_encoding(count + 4, width)
    both = rows[:count] + rows[4 : count + 4]
    return scaled_dot_product_attention(both, rows[2 : count + 2], rows[:count])[1]


if __name__ == "__main__":
    main()
