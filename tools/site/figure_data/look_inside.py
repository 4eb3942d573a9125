"""The models that a reader opens on the page *Look inside*."""

from tools.site import live_models

MODELS = ("everyday_folder", "tales_folder")


def data() -> dict:
    """Say what can be loaded."""
    return {"files": [live_models.facts(name) for name in MODELS]}


def files() -> dict[str, bytes]:
    """Give the models, and what takes them apart: path below _static/ -> content."""
    unpack = {"live/unpack.js": live_models.UNPACK.read_bytes()}
    return unpack | live_models.files(MODELS)
