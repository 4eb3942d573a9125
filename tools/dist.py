"""Build the wheel and the source archive that anybody may have: no answer is in them.

``python -m tools.dist`` copies what ``PACKAGES`` and ``FILES`` list into
``_build/dist/source``, adds the recorded runs that chapters 9 to 11 show, and builds
from there, so that nothing else of this folder can come along.
"""

import argparse
import shutil
import sys
import tomllib
from pathlib import Path

from tools.steps import ROOT, run_step

OUT = ROOT / "_build" / "dist"
PACKAGES = ("autograder", "workbench")
FILES = ("CHANGELOG.md", "LICENSE", "LICENSE-TEXT", "README.md", "pyproject.toml")
RESULTS = ROOT / "results"
RECORDED = (
    *(
        "*.json",
        "*.yml",
        "models/*/*",
        "outputs/*.txt",
        "tutor/*.json",
        "language_model/*.json",
    ),
    "language_model/scaling.json",
)
KINDS = (".py", ".json", ".html", ".css", ".md", ".safetensors")  # of a package


def main() -> None:
    """Build both and say where they are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=OUT, help=f"default: {OUT.relative_to(ROOT)}"
    )
    parser.add_argument(
        "--tag", metavar="vVERSION", help="refuse another version, or one not released"
    )
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    _expect_an_entry(version())
    if arguments.tag:
        _expect_a_release(arguments.tag)
    source = stage(out / "source")
    for old in (*out.glob("*.whl"), *out.glob("*.tar.gz")):
        old.unlink()
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out)]
    run_step("wheel and source archive", [*build, str(source)], out / "build.log")
    for made in sorted((*out.glob("*.whl"), *out.glob("*.tar.gz"))):
        print(f"{made}  {made.stat().st_size / 2**20:.1f} MiB")


def stage(folder: Path) -> Path:
    """Copy what is listed, and nothing else, into a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for path in listed():
        to = folder / path
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, to)
    for path in recorded():
        to = folder / "workbench" / "recorded" / path.relative_to(RESULTS)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to)
    return folder


def listed() -> list[Path]:
    """Name the files of the packages, from the root."""
    found = [
        path.relative_to(ROOT)
        for package in PACKAGES
        for folder in (ROOT / package, *_packages(ROOT / package))
        for path in folder.iterdir()
        if path.suffix in KINDS
    ]
    return [*map(Path, FILES), *sorted(set(found))]


def _packages(folder: Path) -> list[Path]:
    """Find the packages inside of one; nbgrader's working folders are none."""
    inside = {path.parent for path in folder.rglob("__init__.py")}
    return sorted(inside | set(folder.glob("grading/templates")))


def recorded() -> list[Path]:
    """Find the recorded runs and the models that come with the course."""
    return sorted({path for each in RECORDED for path in RESULTS.glob(each)})


def version() -> str:
    """Read the version that is built."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def _expect_an_entry(number: str) -> None:
    """Refuse to build what CHANGELOG.md does not tell of."""
    if number not in _entries():
        sys.exit(f"CHANGELOG.md has no section {number}, the version of pyproject.toml")


def _expect_a_release(tag: str) -> None:
    """Refuse a tag of another version, and a version without its date."""
    number = version()
    if tag != f"v{number}":
        sys.exit(f"the tag is {tag}, the version of pyproject.toml {number}")
    if "unreleased" in _entries()[number]:
        sys.exit(f"CHANGELOG.md calls {number} unreleased: write the date there")


def _entries() -> dict[str, str]:
    """Read what CHANGELOG.md says behind each version, such as its date."""
    lines = (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
    heads = [line.split(maxsplit=2)[1:] for line in lines if line.startswith("## ")]
    return {head[0].strip("[]"): " ".join(head[1:]) for head in heads}


if __name__ == "__main__":
    main()
