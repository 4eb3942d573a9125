"""Trained models as students hand them in: a right one, and damaged ones.

They lie in one folder for the whole test session, made when first asked for.
"""

import atexit
import functools
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from workbench.data import phrasebook
from workbench.data.tokenizer import TOKENIZER_FILE, Tokenizer
from workbench.model import models
from workbench.use import results

VARIABLE = "COURSE_TESTS_HANDED_IN"  # so that processes which are started find it
if VARIABLE not in os.environ:
    os.environ[VARIABLE] = tempfile.mkdtemp(prefix="handed-in-")
    atexit.register(shutil.rmtree, os.environ[VARIABLE], ignore_errors=True)
PLACE = Path(os.environ[VARIABLE])
# Trained by the recipes of the course's own, from seeds 103, 107 and 5; as float16
MODELS = Path(__file__).with_name("models")
FILES = (models.WEIGHTS_FILE, models.CONFIG_FILE, TOKENIZER_FILE)
CHAPTERS = {
    "09_translator": "translator",
    "10_vision": "vit",
    "11_language_model": "lm",
}


def right(name: str) -> str:
    """Copy a model that somebody trained; return its folder's name."""
    return _made(name, MODELS / name, lambda folder: None)


def damaged(name: str, label: str, damage: Callable[[Path], object]) -> str:
    """Copy the right model and damage it; return the folder's name."""
    right(name)
    return _made(f"{name}-{label}", PLACE / name, damage)


def changed(name: str, label: str, **changes: object) -> str:
    """Copy the right model and change values in its config.json."""

    def edit(folder: Path) -> None:
        path = folder / models.CONFIG_FILE
        config = models.load_config(folder)
        text = models.to_json(config)
        for key, value in changes.items():
            old = getattr(config, key)
            text = text.replace(f'"{key}": {_json(old)}', f'"{key}": {_json(value)}')
        path.write_text(text, encoding="utf-8")

    return damaged(name, label, edit)


def reweighed(name: str, label: str, change: Callable[[dict], object]) -> str:
    """Copy the right model and change its tensors, in place in a dict."""

    def edit(folder: Path) -> None:
        state = load_file(folder / models.WEIGHTS_FILE)
        change(state)
        save_file(state, folder / models.WEIGHTS_FILE)

    return damaged(name, label, edit)


# --- damage, the same for each kind of model ------------------------------------------


def writing(name: str, content: bytes) -> Callable[[Path], object]:
    """Damage: a file of the folder holds this."""
    return lambda folder: (folder / name).write_bytes(content)


def cut(folder: Path) -> None:
    """Leave the first half of the weights, or less."""
    path = folder / models.WEIGHTS_FILE
    path.write_bytes(path.read_bytes()[:50_000])


def pickle(folder: Path) -> None:
    """Write weights as `torch.save` does."""
    torch.save({"a": torch.ones(3)}, folder / models.WEIGHTS_FILE)


def start_again(folder: Path) -> None:
    """Write weights that nothing was learned into."""
    config = models.load_config(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        models.save(folder, models.build(config), config)


def copy_the_course_s(name: str) -> Callable[[Path], None]:
    """Damage: the model that the course trained under this name."""

    def copy(folder: Path) -> None:
        for file in FILES:
            if (results.model_folder(name) / file).is_file():
                shutil.copy(results.model_folder(name) / file, folder)

    return copy


def change_tokenizer(change: Callable[[dict], object]) -> Callable[[Path], None]:
    """Damage: a change in place of what tokenizer.json holds."""

    def edit(folder: Path) -> None:
        path = folder / TOKENIZER_FILE
        content = json.loads(path.read_text("utf-8"))
        change(content)
        path.write_text(json.dumps(content), "utf-8")

    return edit


# --- beside a notebook ----------------------------------------------------------------


def put(chapter: str, folder: Path) -> None:
    """Put the right model beside a notebook, if its chapter asks for one."""
    if chapter in CHAPTERS:
        name = right(CHAPTERS[chapter])
        shutil.copytree(PLACE / name, folder / name, dirs_exist_ok=True)


def _json(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def _made(name: str, source: Path, change: Callable[[Path], object]) -> str:
    """Copy a folder under a name, once, and change it before anybody sees it."""
    folder = PLACE / name
    if not folder.is_dir():
        beside = Path(tempfile.mkdtemp(dir=PLACE, prefix="."))
        for file in FILES:
            if (source / file).is_file():
                shutil.copy(source / file, beside)
        change(beside)
        try:
            beside.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(beside)
    return name


# --- translators that were trained wrongly --------------------------------------------


@functools.cache
def _rows() -> tuple[Path, list[list[int]]]:
    """The ids of German training sentences, and where their tokenizer is."""
    folder = results.model_folder("phrasebook")
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    pairs = phrasebook.draw(random.Random(1), "train", 800, set())
    return folder, tokenizer.encode_all(german for _, german in pairs)


def mistrained(label: str, steps: int, *, shifted: bool, causal: bool) -> str:
    """Train a small decoder on German alone, with a mistake; some seconds."""
    return _made(
        f"translator-{label}",
        results.model_folder("phrasebook"),
        lambda folder: _train(folder, steps, shifted=shifted, causal=causal),
    )


def _train(folder: Path, steps: int, *, shifted: bool, causal: bool) -> None:
    _, targets = _rows()
    size = models.load_config(folder).vocab_size
    config = models.TranslatorConfig(
        vocab_size=size, d_model=64, heads=4, layers=1, d_ff=64, dropout=0.0
    )
    source = torch.full((48, 1), Tokenizer.EOS)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        model = models.build(config)
        optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
        for step in range(steps):
            rows = random.Random(step).sample(targets, 48)
            inputs = _padded([[Tokenizer.SOS, *row] for row in rows])
            labels = _padded([[*row, Tokenizer.EOS] for row in rows])
            labels = labels if shifted else inputs
            logits = _logits(model, source, inputs, causal=causal)
            real = labels != Tokenizer.PAD
            optimiser.zero_grad()
            F.cross_entropy(logits[real], labels[real]).backward()
            optimiser.step()
    models.save(folder, model, config)


def _logits(model, source, inputs, *, causal: bool) -> torch.Tensor:
    if causal:
        return model(source, inputs)
    seen = (inputs != Tokenizer.PAD).unsqueeze(1)
    x = model.position(model.embedding(inputs))
    hidden = model.decoder(x, model.encode(source), seen, None)
    return hidden @ model.embedding.weight.T


def _padded(rows: list[list[int]]) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [Tokenizer.PAD] * (width - len(row)) for row in rows])
