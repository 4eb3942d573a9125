"""Preview moving figures, and take the pictures that stand for them without scripts.

    python -m tools.site.figure_pictures [NAME …]

writes _build/figures/NAME.html, a page with that figure alone, to open in a browser;
takes book/_static/figures/pictures/NAME.png of it as it begins, and notes in sizes.json
beside it how high it is. Run it when a figure has changed.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

from tools.steps import ROOT

sys.path.insert(0, str(ROOT / "book" / "_extensions"))

# The directive knows how a figure stands on a page.
import moving_figures

from tools import browser
from tools.site import figure_data

STATIC = ROOT / "book" / "_static"
BUILD = ROOT / "_build" / "figures"
WIDE, NARROW = 720, 328  # how wide the text is on a desk, and on a phone of 360 px

PAGE = """<!doctype html>
<html lang="en" data-theme="{theme}">
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{name}</title>
<link rel="stylesheet" href="_static/course.css">
<link rel="stylesheet" href="_static/figures.css">
<style>
  body {{ background: var(--pst-color-background, #fff); font: 16px/1.65 sans-serif;
    margin: 0 auto; max-width: {width}px; padding: 0 16px; }}
  * {{ box-sizing: border-box }}
  .visually-hidden {{ clip-path: inset(50%); height: 1px; overflow: hidden;
    position: absolute; width: 1px }}
  img {{ height: auto; max-width: 100% }}
</style>
{scripts}
{before}<p>Caption.</p>{after}
</html>
"""


def preview(name: str, folder: Path = BUILD, theme: str = "light") -> Path:
    """Write a page with one figure alone; give its path."""
    known = moving_figures.names()
    if name not in known:
        sys.exit(f"no figure {name!r}; there are {', '.join(known)}")
    shutil.copytree(STATIC, folder / "_static", dirs_exist_ok=True)
    source = moving_figures.DRAWN_BY.get(name, name)
    if source in figure_data.names():
        figure_data.write(folder / "_static", [source])
    before, after = moving_figures.frame(name, f"The figure {name}", "_static/")
    scripts = "\n".join(
        f'<script defer src="_static/{script}"></script>'
        for script in moving_figures.scripts(name)
    )
    page = folder / f"{name}.html"
    page.write_text(
        PAGE.format(
            name=name,
            theme=theme,
            width=WIDE,
            scripts=scripts,
            before=before,
            after=after,
        ),
        "utf-8",
    )
    return page


def take(chromium, name: str, sizes: dict) -> None:
    """Take a figure's picture and its heights."""
    address = preview(name).as_uri()
    heights = {}
    for kind, width in (("wide", WIDE + 32), ("narrow", NARROW + 32)):
        page = chromium.new_page(viewport={"width": width, "height": 900})
        page.on("pageerror", lambda error: sys.exit(f"{name}: {error}"))
        page.goto(address)
        page.locator("figure[data-state]").wait_for()
        figure = page.locator("figure[data-state=ready]")
        if not figure.count():
            sys.exit(f"{name}: {page.locator('.moving-figure-stage').inner_text()}")
        page.add_style_tag(content=".moving-figure-stage { min-height: 0 !important }")
        stage = page.locator(".moving-figure-stage")
        box = stage.bounding_box()
        heights[kind] = round(box["height"])
        if kind == "wide":
            picture = STATIC / "figures" / "pictures" / f"{name}.png"
            picture.parent.mkdir(exist_ok=True)
            stage.screenshot(path=picture)
            heights["picture"] = [round(box["width"]), round(box["height"])]
        page.close()
    sizes[name] = heights


def main() -> None:
    """Take the pictures of the named figures, or of all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="all, if none is given"
    )
    known, noted = moving_figures.names(), moving_figures.SIZES
    wanted = parser.parse_args().names or known
    sizes = json.loads(noted.read_text()) if noted.is_file() else {}
    with browser.launched() as chromium:
        for name in wanted:
            take(chromium, name, sizes)
            print(f"{BUILD / name}.html")
    kept = {name: sizes[name] for name in known if name in sizes}
    noted.write_text(json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    main()
