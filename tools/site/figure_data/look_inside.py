"""The models that a reader opens in *Look inside*, and chapters that it leads to."""

import json

from tools.site import live_models
from tools.steps import ROOT

CHAPTERS = ROOT / "autograder" / "exercise" / "chapters.json"

MODELS = ("everyday_folder", "tales_folder")


def data() -> dict:
    """Say what can be loaded; number of a chapter -> its page and its title."""
    known = json.loads(CHAPTERS.read_text("utf-8"))["chapters"]
    chapters = {
        each["number"]: [f"{name}.html", each["title"]] for name, each in known.items()
    }
    return {"files": [live_models.facts(name) for name in MODELS], "chapters": chapters}


def files() -> dict[str, bytes]:
    """Give the models, and what takes them apart: path below _static/ -> content."""
    unpack = {"live/unpack.js": live_models.UNPACK.read_bytes()}
    return unpack | live_models.files(MODELS)
