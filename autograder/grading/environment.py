"""What trusted processes get of the environment: where things are, and no secret."""

import os
from pathlib import Path

import autograder

KEPT = (  # where programs and libraries are
    "PATH",
    "LD_LIBRARY_PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "VIRTUAL_ENV",
    "COURSE_TESTS_HANDED_IN",
)
SET = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
}


def trusted_environment() -> dict[str, str]:
    """Say where programs and this package are; pass nothing on that could be secret."""
    root = Path(autograder.__file__).parents[1]
    folders = [str(root), str(root / "solutions")]  # the reference modules, if there
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders += [os.path.abspath(folder) for folder in given if folder]
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return kept | SET | {"PYTHONPATH": os.pathsep.join(folders)}
