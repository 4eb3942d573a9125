"""Build the site into _build/html, or say plainly what it lacks."""

import hashlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from sphinx_external_toc.parsing import parse_toc_yaml

from tools.site import figure_data, lighten, quick_start, search_texts
from tools.steps import ROOT

HTML = ROOT / "_build" / "html"
STAGE = ROOT / "_build" / "site"  # Jupyter Book works here, and keeps its cache

# What pages run besides their own code, which alone the cache looks at
RUN_BY_PAGES = (
    "solutions/transformer/*.py",
    "pages/*.py",
    "workbench/**/*.py",
    "exercises/*/*.ipynb",
    "book/coverage/*.yml",
    "results/*.*",
    "results/models/*/*",
    "constraints.txt",
)

# What every page shows something of: the sidebar, the style, where links lead
SHOWN_ON_ALL = (
    "_toc.yml",
    "_config.yml",
    "book/references.bib",
    "book/glossary.md",  # links to its words show what it says
    "book/_static/**/*",
    "book/_templates/*",
)
LINK_TARGET = re.compile(rb"^(?:#+ .*|\(.*\)=|:(?:name|label):.*)$", re.MULTILINE)

# Written by pages that look at other pages: they run each time they are read
RUNS_ALWAYS = re.compile(rb"^  execution_mode: force$", re.MULTILINE)
CODE_CELL = re.compile(rb"^(`{3,})\{code-cell\}.*?^\1[ ]*$", re.DOTALL | re.MULTILINE)

CLOSING_REMARKS = ("The HTML pages are in", "Please also report this")


def main() -> None:
    """Check, build beside, then put in place."""
    modules = sorted((ROOT / "solutions" / "transformer").glob("*.py"))
    if not modules:
        sys.exit(
            "make book: solutions/transformer/ is missing or empty.\n"
            "The site's figures run the reference modules in that folder, so it can "
            "only be built\nin the instructor's full repository. The exercises in "
            "exercises/ and their checks work without it."
        )
    built = STAGE / "_build" / "html"
    quick_start.prepare()
    set_up_kernels()
    forget_what_is_stale()
    make_figure_data()
    make_on_page()
    make_recorded()
    run_pages()
    code = run_jupyter_book()
    if code != 0 or not (built / "index.html").is_file():
        # read every page anew next time, so that no warning is passed over
        shutil.rmtree(STAGE / "_build" / ".doctrees", ignore_errors=True)
        sys.exit("make book: the site was not built; the messages above say why.")
    beside = STAGE / "html"
    shutil.rmtree(beside, ignore_errors=True)
    shutil.copytree(built, beside)
    lighten.lighten(beside, STAGE / "light")
    search_texts.write(beside, STAGE / "light")
    shutil.rmtree(HTML, ignore_errors=True)
    beside.rename(HTML)
    print(f"The site: {HTML / 'index.html'}")


def set_up_kernels() -> None:
    """Give pages one core each, and a profile that is no person's own.

    At its usual level a kernel warns of its own connection at every start.
    """
    profile = STAGE / "ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    config = "get_config().IPKernelApp.log_level = 'ERROR'\n"
    (profile / "ipython_kernel_config.py").write_text(config)
    os.environ |= {"OMP_NUM_THREADS": "1", "IPYTHONDIR": str(STAGE / "ipython")}


def forget_what_is_stale() -> None:
    """Drop what earlier builds have left, where it may no longer be true.

    Sphinx itself looks at the pages' own text only, and leaves pages that are no longer
    listed in place. So all pages run again when something they import has changed, and
    are written again when one has a new heading or label; those that look at the others
    are read again, too.
    """
    build = STAGE / "_build"
    imported = [path for pattern in RUN_BY_PAGES for path in ROOT.glob(pattern)]
    if has_changed("run_by_pages", {path: path.read_bytes() for path in imported}):
        for cache in (".jupyter_cache", ".doctrees", "html"):
            shutil.rmtree(build / cache, ignore_errors=True)
    extensions = list(ROOT.glob("book/_extensions/*.py"))
    if has_changed("extensions", {path: path.read_bytes() for path in extensions}):
        for made in (".doctrees", "html"):
            shutil.rmtree(build / made, ignore_errors=True)
    shown = [path for pattern in SHOWN_ON_ALL for path in ROOT.glob(pattern)]
    parts = {path: path.read_bytes() for path in shown if path.is_file()}
    texts = {page: page.read_bytes() for page in ROOT.glob("book/*.md")}
    parts |= {page: b"\n".join(LINK_TARGET.findall(texts[page])) for page in texts}
    if has_changed("shown_on_all", parts):
        shutil.rmtree(build / "html", ignore_errors=True)
        for page in filter(lambda page: RUNS_ALWAYS.search(texts[page]), texts):
            doctree = build / ".doctrees" / "book" / f"{page.stem}.doctree"
            doctree.unlink(missing_ok=True)


def make_figure_data() -> None:
    """Compute what the figures that move show of trained models."""
    made_by = [
        *RUN_BY_PAGES,
        "tools/site/figure_data/*.py",
        "tools/site/figure_data/models/*/*",
        "autograder/exercise/chapters.json",
    ]
    made_by += [
        "tools/site/live_*",
        "tools/site/fetch_runtime.py",
        "tools/site/onnxruntime_web/*",
    ]
    paths = [path for pattern in made_by for path in ROOT.glob(pattern)]
    target = STAGE / "static"
    changed = has_changed("figure_data", {path: path.read_bytes() for path in paths})
    if changed or not target.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        figure_data.write(target)


def make_on_page() -> None:
    """Pack Python, the editor and the checks for the exercises that a page runs."""
    made_by = [
        "tools/site/on_page*",
        "tools/site/on_page_parts/*",
        "tools/site/live_unpack.js",
    ]
    made_by += [
        "tools/site/fetch_*.py",
        "tools/site/live_models.py",
        "autograder/**/*.py",
    ]
    made_by += ["exercises/*/*.ipynb"]
    paths = [path for pattern in made_by for path in ROOT.glob(pattern)]
    parts = {path: path.read_bytes() for path in paths if path.is_file()}
    added = Path(os.environ.get("PYODIDE") or STAGE / "none") / "SHA256SUMS"
    parts[ROOT / "PYODIDE"] = added.read_bytes() if added.is_file() else b""
    target = STAGE / "static"
    if has_changed("on_page", parts) or not (target / "on_page").is_dir():
        # imports PyTorch: no edited page has to wait for it
        from tools.site import on_page

        on_page.write(target)
        shutil.rmtree(STAGE / "_build" / "html", ignore_errors=True)


def make_recorded() -> None:
    """Put the recorded answers on the site, as far as its publisher shows them."""
    made_by = ["solutions/recorded/*.json", "tools/site/recorded_*.py"]
    made_by += ["autograder/exercise/card.py", "book/_extensions/recorded.py"]
    paths = [path for pattern in made_by for path in ROOT.glob(pattern)]
    parts = {path: path.read_bytes() for path in paths}
    parts[ROOT / "RECORDED"] = os.environ.get("RECORDED", "").encode()
    target = STAGE / "static"
    if has_changed("recorded", parts) or not (target / "recorded").is_dir():
        from tools.site import recorded_pages

        about = STAGE / "recorded.json"
        recorded_pages.write(target, about, recorded_pages.choice())
        shutil.rmtree(STAGE / "_build" / "html", ignore_errors=True)


def has_changed(name: str, parts: dict[Path, bytes]) -> bool:
    """Whether files, or parts of them, differ from those of the build before."""
    digest = hashlib.sha256()
    for path, content in sorted(parts.items()):
        digest.update(str(path.relative_to(ROOT)).encode() + content)
    record = STAGE / f"{name}.sha256"
    if record.is_file() and record.read_text() == digest.hexdigest():
        return False
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(digest.hexdigest())
    return True


def run_pages() -> None:
    """Run the pages whose code is new, a core each; Jupyter Book alone uses one.

    It runs whatever its cache lacks, so a page may be passed over here: only time is
    lost. The record lies in the cache, and goes with it.
    """
    record = STAGE / "_build" / ".jupyter_cache" / "code.json"
    before = json.loads(record.read_text()) if record.is_file() else {}
    pages = [ROOT / f"{name}.md" for name in parse_toc_yaml(ROOT / "_toc.yml")]
    code = {str(page): code_of(page) for page in pages if page.is_file()}
    code = {page: cells for page, cells in code.items() if cells}
    new = [page for page in code if code[page] != before.get(page)]
    if new:
        failed = run_new(new)
        kept = {page: code[page] for page in code if page not in failed}
        record.write_text(json.dumps(kept))


def code_of(page: Path) -> str:
    """Give a digest of a page's code and its marks; "" where Jupyter Book runs it."""
    text = page.read_bytes()
    if RUNS_ALWAYS.search(text):
        return ""
    cells = [match[0] for match in CODE_CELL.finditer(text)]
    return hashlib.sha256(b"\n".join(cells)).hexdigest()


def run_new(pages: list[str]) -> set[str]:
    """Run those pages that the cache lacks; give those that failed.

    A page that fails is not cached: Jupyter Book runs it again and reports it.
    """
    from jupyter_cache import get_cache
    from jupyter_cache.executors import load_executor
    from myst_nb.core.read import is_myst_markdown_notebook

    cache = get_cache(STAGE / "_build" / ".jupyter_cache")
    read_data = {"name": "myst_nb_md", "type": "plugin"}
    for page in pages:
        if is_myst_markdown_notebook(Path(page).read_text("utf-8")):
            cache.add_nb_to_project(page, read_data=read_data)
    logger = logging.getLogger("pages")
    logger.setLevel(logging.INFO)
    executor = load_executor("local-parallel", cache, logger)
    ran = executor.run_and_cache(filter_uris=pages, timeout=120)
    return {*ran.excepted, *ran.errored}


def run_jupyter_book() -> int:
    """Build with warnings as errors; show what it says up to its closing remarks.

    Those say where the pages lie, which is not where they will be, or are its own
    traceback.
    """
    command = [sys.executable, "-P", "tools/site/quick_start.py", "build", "."]
    command += ["--path-output", str(STAGE), "-W", "-n", "--keep-going"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        shown = True
        for line in process.stdout:
            shown = shown and not any(remark in line for remark in CLOSING_REMARKS)
            if shown:
                print(line, end="", flush=True)
    return process.returncode


if __name__ == "__main__":
    main()
