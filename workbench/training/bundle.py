"""Put all that a machine without a network needs for the records into one folder.

The course's code, the data, and the few packages that such a machine may lack. There,
``python3 FOLDER/run.py --minutes 28 --out DIR`` makes the records of results/gpu.yml;
with ``--steps 2`` it is a rehearsal, and names of runs choose among them.
It needs PyTorch (2.11 or later) and what README.txt in the folder lists; no git.
"""

from __future__ import annotations

import importlib.metadata
import shutil
from pathlib import Path

import autograder.files
from workbench.errors import WorkbenchError
from workbench.model.models import PACKAGE, load_parts
from workbench.training import records
from workbench.training.plan import TABLE_OF_PLAN
from workbench.training.recording import TABLE

# Written in Python alone, so that they run on any machine; others are often there.
CARRIED = ("sacremoses", "pooch", "platformdirs")
NEEDED = "torch numpy safetensors tokenizers sacrebleu Pillow matplotlib PyYAML tqdm"
NEEDED += " regex click joblib"
DATA = {"multi30k": "train.en.gz", "cifar10": "train.npz"}  # and a file of each

RUN = '''\
"""Make the records of results/gpu.yml: python3 run.py --minutes 28 --out DIR

With --steps 2 it is a rehearsal, with names of runs only these are made; see --help.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE / "packages")])
os.environ["COURSE_COMMIT"] = (HERE / "COMMIT").read_text().strip()
os.environ["TQDM_DISABLE"] = "1"
words = ["-m", "workbench", "plan", "--data-dir", str(HERE / "data"), *sys.argv[1:]]
os.execv(sys.executable, [sys.executable, *words])
'''


def make(folder: Path, data_dir: Path) -> None:
    """Make the folder.

    Args:
        folder: to be made; empty, if it is there.
        data_dir: holds a folder for each data set.

    Raises:
        WorkbenchError: the folder is not empty, or something is missing here.
    """
    if folder.exists() and any(folder.iterdir()):
        raise WorkbenchError(f"{folder} is not empty: name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    copy_course(folder)
    copy_packages(folder / "packages")
    copy_data(data_dir, folder / "data")
    (folder / "run.py").write_text(RUN, encoding="utf-8")
    (folder / "COMMIT").write_text(f"{records.commit()}\n", encoding="utf-8")
    (folder / "README.txt").write_text(f"{__doc__}\n{NEEDED}\n", encoding="utf-8")


def copy_course(folder: Path) -> None:
    """Copy the workbench, the parts, and what is to be run."""
    own = Path(__file__).parents[1]
    python_only = shutil.ignore_patterns("__pycache__")
    shutil.copytree(own, folder / own.name, ignore=python_only)
    files = Path(autograder.files.__file__)  # the one module of it that training needs
    (folder / autograder.__name__).mkdir()
    for path in (files, Path(autograder.__file__)):
        shutil.copyfile(path, folder / autograder.__name__ / path.name)
    parts = Path(load_parts().place)
    shutil.copytree(parts, folder / PACKAGE, ignore=python_only)
    results = folder / TABLE.parent.name
    results.mkdir()
    for path in (TABLE, TABLE_OF_PLAN):
        shutil.copyfile(path, results / path.name)


def copy_packages(folder: Path) -> None:
    """Copy the packages that such a machine may lack, as they are installed here.

    Raises:
        WorkbenchError: one of them is not installed here.
    """
    for name in CARRIED:
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            raise WorkbenchError(
                f"{name} is not installed here: pip install {name}"
            ) from None
        for file in files:
            if ".." in file.parts or "__pycache__" in file.parts:
                continue  # its programs, and what another Python has compiled
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), target)


def copy_data(source: Path, target: Path) -> None:
    """Copy the data sets that are there; a folder's name says which copy it is.

    Raises:
        WorkbenchError: one is not there.
    """
    for name, file in DATA.items():
        found = sorted(path.parent for path in source.glob(f"{name}*/{file}"))
        if not found:
            raise WorkbenchError(f"{source} holds no folder {name} with {file}")
        shutil.copytree(found[0], target / found[0].name)
