"""What lies beside a notebook while it runs: earlier chapters' parts, and models."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePath

from autograder.grading import shown
from autograder.grading.clean import plain
from autograder.grading.job import Job
from autograder.grading.submission import MODEL_FILES


def files_beside(job: Job) -> dict[str, bytes]:
    """Give what lies beside the notebook: earlier chapters' parts, trained models."""
    parts = {name: text.encode() for name, text in job.paper.parts.items()}
    parts |= shown.given_to(job.paper.released)
    models = {
        f"{folder}/{name}": content
        for folder, name, content in _model_files(job.models)
    }
    room = min(job.limits.temporary_bytes // 2, 2 * job.limits.file_bytes)
    fits = sum(map(len, models.values())) <= room
    return parts | models if fits else parts


def _model_files(models: dict) -> Iterator[tuple[str, str, bytes]]:
    """Give the files of models by folder, which is a name and no path, and name."""
    for folder, files in models.items():
        if PurePath(folder).name == folder and "\0" not in folder:
            for name in MODEL_FILES:
                if name in files:
                    yield folder, name, files[name]


@contextlib.contextmanager
def models_beside(models: dict, limited: list[str]) -> Iterator[None]:
    """Make a folder with the models the working directory, as checks expect it."""
    with tempfile.TemporaryDirectory(prefix="models-") as folder:
        for model, name, content in _model_files(models):
            try:
                place = Path(folder, model)
                place.mkdir(exist_ok=True)
                (place / name).write_bytes(content)
            except OSError as error:
                why = error.strerror or "no valid name"
                limited.append(plain(f"{model}/{name} was not used: {why}", 200))
        with contextlib.chdir(folder):
            yield
