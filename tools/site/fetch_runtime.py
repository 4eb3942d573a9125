"""Renew tools/site/onnxruntime_web/: the library that runs trained models in a browser.

    npm pack onnxruntime-web@1.30.0
    python -m tools.site.fetch_runtime PACKAGE.tgz LICENSE ThirdPartyNotices.txt

The first command, of Node's package manager, downloads the package; nothing in it is
run or installed. The licence and the notices are those that lie in the folder of the
Python package onnxruntime of the same version. The smallest build of the package is
taken: the processor only, with SIMD. (It can use several threads; it is told to use
one.)

Building the site needs none of this: it unpacks what the repository holds. For another
version, change VERSION and PACKAGE, and look at tests/site/test_live_models.py.
"""

import hashlib
import lzma
import sys
import tarfile
from pathlib import Path

VERSION = "1.30.0"
PACKAGE = "d2228df7e4616bc3348bf504ee888f3bec43789a273f0a63f3e68d203ce3bf71"  # SHA-256
FILES = (
    "ort.wasm.min.js",  # what a page calls
    "ort-wasm-simd-threaded.mjs",  # what starts the next
    "ort-wasm-simd-threaded.wasm",  # the library itself
)
LICENCE, NOTICES = "LICENSE", "ThirdPartyNotices.txt"
FOLDER = Path(__file__).resolve().parent / "onnxruntime_web"
SUMS = FOLDER / "SHA256SUMS"  # of the files as they are unpacked


def unpacked(name: str, folder: Path | None = None) -> bytes:
    """Give a file of the runtime; refuse it if it is not what was fetched.

    Args:
        name: of the file.
        folder: where it is kept, if not with the runtime.

    Raises:
        ValueError: if it differs from its checksum.
    """
    listed = folder / SUMS.name if folder else SUMS
    folder = folder or FOLDER
    content = lzma.decompress((folder / f"{name}.xz").read_bytes())
    sums = dict(line.split()[::-1] for line in listed.read_text().splitlines())
    if hashlib.sha256(content).hexdigest() != sums[name]:
        raise ValueError(f"{folder / name}.xz is damaged: take a copy of the original")
    return content


def keep(contents: dict[str, bytes], folder: Path) -> None:
    """Write files into a folder, compressed, with their checksums."""
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        packed = lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)
        (folder / f"{name}.xz").write_bytes(packed)
    sums = (
        f"{hashlib.sha256(content).hexdigest()}  {name}\n"
        for name, content in sorted(contents.items())
    )
    (folder / SUMS.name).write_text("".join(sums))


def main() -> None:
    """Check the package, and keep what is needed of it, compressed."""
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    package, *texts = map(Path, sys.argv[1:])
    if hashlib.sha256(package.read_bytes()).hexdigest() != PACKAGE:
        sys.exit(f"{package} is not the package of version {VERSION}")
    licence, notices = texts
    contents = {NOTICES: notices.read_bytes()}
    with tarfile.open(package) as archive:
        for name in FILES:
            contents[name] = archive.extractfile(f"package/dist/{name}").read()
    keep(contents, FOLDER)
    (FOLDER / LICENCE).write_bytes(licence.read_bytes())


if __name__ == "__main__":
    main()
