"""The models that a reader opens in *Look inside*, and chapters that it leads to."""

from pathlib import Path

from tools.site import live_models
from tools.steps import ROOT

BOOK = ROOT / "book"

MODELS = ("everyday_folder", "tales_folder")


def data() -> dict:
    """Say what can be loaded; number of a chapter -> its page and its title."""
    chapters = {
        int(path.name[:2]): [f"{path.stem}.html", title(path)]
        for path in sorted(BOOK.glob("[0-9][0-9]_*.md"))
    }
    return {"files": [live_models.facts(name) for name in MODELS], "chapters": chapters}


def title(path: Path) -> str:
    """Give a page's heading."""
    lines = path.read_text("utf-8").splitlines()
    return next(line for line in lines if line.startswith("# "))[2:]


def files() -> dict[str, bytes]:
    """Give the models, and what takes them apart: path below _static/ -> content."""
    unpack = {"live/unpack.js": live_models.UNPACK.read_bytes()}
    return unpack | live_models.files(MODELS)
