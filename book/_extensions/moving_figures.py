"""The directive `moving-figure`: a figure of book/_static/figures/ on a page.

    ```{moving-figure} attention
    ---
    alt: What the figure shows, for whoever does not see it.
    ---
    The caption, which may have *markup* and $mathematics$.
    ```

The script NAME.js, its numbers data/NAME.js where tools/site/figure_data/NAME.py makes
some, and what all figures share are loaded on that page only. Where scripts are off, a
picture of the figure as it begins stands in its place. tools/site/figure_pictures.py
takes those pictures, and notes how high the figure is, so that the page does not move
when the script has drawn it.
"""

import html
import json
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "book" / "_static" / "figures"
SIZES = FIGURES / "pictures" / "sizes.json"
SHARED = ("mathematics.js", "figure.js")
# What some figures need besides, below _static/
NEEDED = {
    "draw": ("live/live.js",),
    "look_inside": (
        "live/live.js",
        "live/unpack.js",
        "live/tokenizer.js",
        "live/sentences.js",
        "live/model.js",
        "live/folder.js",
    ),
    "translate": ("live/live.js", "live/tokenizer.js", "live/sentences.js"),
}
# The figure that another one draws, whose scripts it brings when it comes near
DRAWN_BY = {"model_map": "look_inside"}
LATER = "text/figure"  # a type of script that no browser runs


class MovingFigure(SphinxDirective):
    """One figure, its caption below."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Make the figure's nodes: raw HTML around a caption that is parsed."""
        name = self.arguments[0]
        known = names()
        if name not in known:
            raise self.error(f"no figure {name!r}; there are {', '.join(known)}")
        if not self.options.get("alt") or not self.content:
            raise self.error(f"figure {name!r} needs :alt: and a caption")
        self.env.metadata[self.env.docname].setdefault("figures", []).append(name)
        self.env.note_dependency(str(SIZES))
        static = "../" * self.env.docname.count("/") + "_static/"
        before, after = frame(name, self.options["alt"], static)
        caption = nodes.container(classes=["moving-figure-caption"])
        self.state.nested_parse(self.content, self.content_offset, caption)
        return [
            nodes.raw("", before, format="html"),
            caption,
            nodes.raw("", after, format="html"),
        ]


def names() -> list[str]:
    """Give the names of all figures."""
    shared = {Path(name).stem for name in SHARED}
    return sorted({path.stem for path in FIGURES.glob("*.js")} - shared)


def scripts(name: str) -> list[str]:
    """Give the scripts of a figure, in the order in which they are loaded."""
    if name in DRAWN_BY:
        own = [f"figures/{script}" for script in (*SHARED, f"{name}.js")]
        return [*own, *later(name)]
    made = (ROOT / "tools" / "site" / "figure_data" / f"{name}.py").is_file()
    data = [f"data/{name}.js"] if made else []
    own = [f"figures/{script}" for script in (*SHARED, *data, f"{name}.js")]
    return [*NEEDED.get(name, ()), *own]


def later(name: str) -> list[str]:
    """Give the scripts that a figure brings by itself, in their order."""
    shared = {f"figures/{script}" for script in SHARED}
    known = scripts(DRAWN_BY[name]) if name in DRAWN_BY else []
    return [script for script in known if script not in shared]


def frame(name: str, alt: str, static: str) -> tuple[str, str]:
    """Give the HTML before and after a figure's caption.

    `static` leads from the page to the folder _static/, with a slash at its end.
    """
    sizes = json.loads(SIZES.read_text()) if SIZES.is_file() else {}
    size = sizes.get(name, {"wide": 400, "narrow": 600, "picture": [720, 400]})
    width, height = size["picture"]
    alt = html.escape(" ".join(alt.split()))
    before = (
        f'<figure class="moving-figure" id="figure-{name}" data-figure="{name}" '
        f'style="--wide: {size["wide"]}px; --narrow: {size["narrow"]}px">'
        f'<p class="visually-hidden">{alt}</p>'
        '<div class="moving-figure-stage"><noscript>'
        f'<img src="{static}figures/pictures/{name}.png" alt="{alt}" '
        f'width="{width}" height="{height}" loading="lazy">'
        "<p>A picture of this figure: it moves where scripts are switched on.</p>"
        "</noscript></div><figcaption>"
    )
    return before, "</figcaption></figure>"


def add_scripts(app, pagename, _template, _context, _doctree) -> None:
    """Load on a page what its figures need, and nothing on the others."""
    figures = app.env.metadata.get(pagename, {}).get("figures", [])
    by_itself = [script for name in figures for script in later(name)]
    at_once = [
        script
        for name in figures
        for script in scripts(name)
        if script not in later(name)
    ]
    for script in dict.fromkeys(at_once):
        app.add_js_file(script, loading_method="defer")
    for script in dict.fromkeys(by_itself):
        if script not in at_once:
            app.add_js_file(script, type=LATER)
    if figures:
        app.add_css_file("figures.css")


def setup(app) -> dict:
    """Tell Sphinx of the directive."""
    app.add_directive("moving-figure", MovingFigure)
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
