"""Renew tools/site/on_page_parts/: Python for the browser, and the editor of code.

    npm pack pyodide@314.0.7
    npm install --prefix EDITOR (the packages that EDITOR_PACKAGES below names)
    python -m tools.site.fetch_on_page PACKAGE.tgz EDITOR LICENCES

Node's package manager downloads. Of what it brings, esbuild is run, which puts the
editor into one file, and Pyodide, which compiles what a page imports at its start.
LICENCES is a folder with the licences of the two projects that their packages do not
bring: MPL-2.0 (Pyodide) and PSF-2.0 (Python).

Of Python's standard library the modules in LEFT_OUT stay away: no exercise imports
them, and they are a fifth of it. The rest is stored without compression, since the
whole is compressed once more.

Building the site needs none of this: it unpacks what the repository holds.
"""

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from autograder.grading.imports import modules_of
from tools.site import fetch_runtime
from tools.steps import ROOT

VERSION = "314.0.7"
PACKAGE = "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0"  # SHA-256
SOURCE = "whose source is pyodide/pyodide on GitHub, under a tag of this name"
FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm")
LOCK = "pyodide-lock.json"
LIBRARY, EDITOR, NOTICES = "python_stdlib.zip", "editor.js", "NOTICES.txt"
FOLDER = ROOT / "tools" / "site" / "on_page_parts"
COMPILE = ROOT / "tools" / "site" / "fetch_on_page_compile.mjs"
ENTRY = ROOT / "tools" / "site" / "on_page_editor.js"
EDITOR_PACKAGES = {
    "@codemirror/commands": "6.11.1",
    "@codemirror/lang-python": "6.2.1",
    "@codemirror/language": "6.13.1",
    "@codemirror/state": "6.7.6",
    "@codemirror/view": "6.43.15",
    "@lezer/highlight": "1.2.5",
    "esbuild": "0.28.2",
}
LEFT_OUT = (
    *("_pyio", "_pyrepl", "cProfile", "ctypes", "curses", "dbm", "doctest"),
    *("ensurepip", "ftplib", "http", "imaplib", "mailbox", "multiprocessing"),
    *("optparse", "pdb", "pickletools", "poplib", "profile", "pstats", "pydoc"),
    *("pydoc_data", "smtplib", "socketserver", "sqlite3", "tarfile", "tkinter"),
    *("turtle", "turtledemo", "unittest", "venv", "wsgiref", "xml", "xmlrpc"),
)
ENCODINGS = (
    "__init__",
    "aliases",
    "ascii",
    "latin_1",
    "utf_8",
    "utf_16",
    "idna",
    "cp437",
)


def unpacked(name: str) -> bytes:
    """Give one of the parts; refuse it if it is not what was fetched.

    Raises:
        ValueError: if it differs from its checksum.
    """
    return fetch_runtime.unpacked(name, FOLDER)


def lighter(library: bytes) -> bytes:
    """Leave out what no exercise imports, and every second compression."""
    made = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(library)) as old,
        zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as new,
    ):
        for entry in sorted(old.infolist(), key=lambda each: each.filename):
            if is_kept(entry.filename):
                same = zipfile.ZipInfo(entry.filename, (1980, 1, 1, 0, 0, 0))
                new.writestr(same, old.read(entry))
    return made.getvalue()


def is_kept(path: str) -> bool:
    """Whether a file of the standard library goes with a page."""
    top, _, rest = path.partition("/")
    if top == "encodings":
        return not rest or rest.removesuffix(".py") in ENCODINGS
    return top.removesuffix(".py") not in LEFT_OUT


def compiled(folder: Path, library: bytes) -> bytes:
    """Compile what a page imports at its start: Python starts in half the time."""
    from tools.site import on_page  # which unpacks what is kept here

    checks = [
        content.decode()
        for name, content in on_page.course_files().items()
        if name.endswith(".py")
    ]
    known = sys.stdlib_module_names
    names = [name for name in modules_of(checks) if name.partition(".")[0] in known]
    before, after = folder / "library.zip", folder / "compiled.zip"
    before.write_bytes(library)
    command = ["node", COMPILE, folder, before, after, *sorted(names)]
    subprocess.run(command, check=True)
    return after.read_bytes()


def without_packages(lock: bytes) -> bytes:
    """Keep what is said of Pyodide itself: the site has none of its packages."""
    return json.dumps(json.loads(lock) | {"packages": {}}).encode()


def bundle(folder: Path) -> bytes:
    """Put the editor into one script."""
    for name, version in EDITOR_PACKAGES.items():
        told = json.loads((folder / "node_modules" / name / "package.json").read_text())
        if told["version"] != version:
            sys.exit(f"{name} {version} is needed, not {told['version']}")
    program = folder / "node_modules" / ".bin" / "esbuild"
    options = ["--bundle", "--minify", "--format=iife", "--legal-comments=none"]
    ran = subprocess.run(
        [program, "--loader=js", *options],
        input=ENTRY.read_bytes(),
        capture_output=True,
        check=True,
        cwd=folder,
    )
    return ran.stdout


def notices(editor: Path, licences: Path) -> bytes:
    """Say whose all of it is, and under which licence."""
    texts = [
        f"Pyodide {VERSION}, {SOURCE}\n\n{(licences / 'MPL-2.0').read_text('utf-8')}",
        f"Python\n\n{(licences / 'PSF-2.0').read_text('utf-8')}",
    ]
    for path in sorted((editor / "node_modules").glob("*/*/package.json")):
        texts += [notice for notice in [notice_of(path.parent)] if notice]
    for path in sorted((editor / "node_modules").glob("*/package.json")):
        texts += [notice for notice in [notice_of(path.parent)] if notice]
    return "\n\n".join(texts).encode()


def notice_of(package: Path) -> str:
    """Give a package's name, version and licence; "" for what is not in the editor."""
    told = json.loads((package / "package.json").read_text("utf-8"))
    licence = next(package.glob("LICENSE*"), None)
    if "esbuild" in told["name"] or licence is None:
        return ""
    return f"{told['name']} {told['version']}\n\n{licence.read_text('utf-8')}"


def main() -> None:
    """Check the package, and keep what is needed of it, compressed."""
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    package, editor, licences = map(Path, sys.argv[1:])
    if hashlib.sha256(package.read_bytes()).hexdigest() != PACKAGE:
        sys.exit(f"{package} is not the package of version {VERSION}")
    with tempfile.TemporaryDirectory() as place, tarfile.open(package) as archive:
        archive.extractall(place, filter="data")
        folder = Path(place) / "package"
        read = {name: (folder / name).read_bytes() for name in (*FILES, LIBRARY, LOCK)}
        read[LIBRARY] = compiled(folder, lighter(read[LIBRARY]))
    read[LOCK] = without_packages(read[LOCK])
    read[EDITOR], read[NOTICES] = bundle(editor), notices(editor, licences)
    fetch_runtime.keep(read, FOLDER)


if __name__ == "__main__":
    main()
