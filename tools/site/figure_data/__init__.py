"""The numbers that moving figures show and cannot compute in the page.

tools/site/figure_data/NAME.py has a function `data() -> dict`, whose result is what
`Figures.data.NAME` is on the page. Numbers are rounded: they travel over networks.
Where it has a function `files() -> dict[str, bytes]`, these are written, too: path
below _static/ -> content.
"""

import importlib
import json
import pkgutil
from pathlib import Path

DIGITS = 5


def names() -> list[str]:
    """Give the names of the figures that need data."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def write(folder: Path, wanted: list[str] | None = None) -> list[Path]:
    """Write NAME.js into folder/figures/data/ for the wanted figures, or for all."""
    target = folder / "figures" / "data"
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for name in names() if wanted is None else wanted:
        module = importlib.import_module(f"{__name__}.{name}")
        text = json.dumps(rounded(module.data()), separators=(",", ":"))
        path = target / f"{name}.js"
        path.write_text(f"Figures.data.{name} = {text};\n", "utf-8")
        written.append(path)
        made = module.files() if hasattr(module, "files") else {}
        for place, content in made.items():
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            written.append(path)
    return written


def rounded(value):
    """Round every float in nested lists and dicts."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    return value
