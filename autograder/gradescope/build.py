"""``python -m autograder gradescope CHAPTER``: a zip that grades it on Gradescope."""

import argparse
import json
import shlex
import zipfile
from dataclasses import asdict
from pathlib import Path

from autograder.boundary.stubs import CHECKS
from autograder.files import replacing
from autograder.generator import ROOT, Missing
from autograder.gradescope import ENVIRONMENT, PAPER, ROOT_VARIABLE, SETTINGS, SOURCE
from autograder.gradescope import ROOT as AUTOGRADER
from autograder.grading import seeds
from autograder.grading.paper import Paper

HEAD = f"""\
#!/usr/bin/env bash
set -eu
root="${{{ROOT_VARIABLE}:-{AUTOGRADER}}}"
"""
SETUP = """\
# Gradescope runs this once, as root, when it makes the image.
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y bubblewrap libseccomp2 python3 python3-venv
python3 -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || {
  echo "Python 3.11, 3.12 or 3.13 is needed: choose another base image." >&2
  exit 1
}
"""
INSTALL = """\
python3 -m venv "$root/{environment}"
pip="$root/{environment}/bin/pip"
"$pip" install --no-cache-dir{options} "$root/{source}/{wheel}[grade]"
# answers, hidden tests and checks are nothing for a submission
packages="$root/{environment}/lib/python*/site-packages"
chmod -R go-rwx "$root/{source}" $packages/{checks}
"""
RUN = """\
# Gradescope runs this for each submission.
exec "$root/{environment}/bin/python" -P -m autograder.gradescope.run "$root"
"""
EXECUTABLE = 0o755 << 16  # where a zip keeps a file's mode
PLAIN = 0o644 << 16
MADE = (1980, 1, 1, 0, 0, 0)  # a zip's earliest time: equal contents, equal zips


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    add = parser.add_argument
    add("chapter", metavar="CHAPTER", help="such as 04_attention, or a sheet")
    add(
        "--wheel",
        type=Path,
        metavar="FILE",
        help="the course's wheel (default: the one in _build/dist, from `make dist`)",
    )
    add(
        "--extra-index-url",
        default="",
        metavar="URL",
        help="where else pip looks there, as for the CPU build of torch",
    )
    add(
        "--carried-forward",
        type=_share,
        default=1.0,
        metavar="SHARE",
        help="of its points that an answer gets which fails only because an earlier "
        "one is wrong (default: 1)",
    )
    add(
        "--out",
        type=Path,
        metavar="FILE",
        help="where to put the zip (default: _build/gradescope/CHAPTER.zip)",
    )


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError("must be from 0 to 1")
    return share


def run(arguments: argparse.Namespace) -> int:
    """Write a Gradescope autograder for one chapter or sheet."""
    paper = Paper.of(arguments.chapter)
    wheel = _wheel(arguments.wheel)
    options = ""
    if arguments.extra_index_url:
        options = f" --extra-index-url {shlex.quote(arguments.extra_index_url)}"
    names = {"environment": ENVIRONMENT, "source": SOURCE, "wheel": wheel.name}
    names["checks"] = CHECKS.replace(".", "/")
    settings = {"carried_forward": arguments.carried_forward}
    files = {
        "setup.sh": HEAD + SETUP + INSTALL.format(options=options, **names),
        "run_autograder": HEAD + RUN.format(**names),
        PAPER: json.dumps(asdict(paper)),
        SETTINGS: json.dumps(settings, indent=1) + "\n",
        seeds.FILE: seeds.secret_of(ROOT / "autograder"),
        wheel.name: wheel.read_bytes(),
    }
    out = arguments.out or ROOT / "_build" / "gradescope" / f"{paper.chapter}.zip"
    _write(out, files)
    points = sum(paper.points.values())
    print(f"{out}: {points:g} points, {out.stat().st_size / 2**20:.1f} MiB")
    print("It holds answers and hidden tests: upload it, and give it to nobody.")
    return 0


def _wheel(given: Path | None) -> Path:
    if given is not None:
        if given.suffix != ".whl" or not given.is_file():
            raise Missing(f"{given}: is no wheel; `make dist` builds one")
        return given
    found = sorted((ROOT / "_build" / "dist").glob("transformers_by_hand-*.whl"))
    if len(found) != 1:
        what = "holds no wheel" if not found else "holds several wheels"
        raise Missing(
            f"{ROOT / '_build' / 'dist'}: {what}; type `make dist`, or give --wheel"
        )
    return found[0]


def _write(out: Path, files: dict[str, str | bytes]) -> None:
    """Write the zip, which nobody else may read; its files lie at the top."""
    with (
        replacing(out, mode=0o600) as beside,
        zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name, content in files.items():
            about = zipfile.ZipInfo(name, MADE)
            is_script = name in ("setup.sh", "run_autograder")
            about.external_attr = EXECUTABLE if is_script else PLAIN
            about.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(about, content)
