"""Rate pages of the built site with Lighthouse, as on a phone.

    python -m tools.measure.lighthouse [PAGE…] [--record]

Without pages, all of them. Needs Node and Chromium; what it runs is pinned in
tools/measure/lighthouse/ and installed into _build/lighthouse/. The site is served by
this machine and compressed, as servers do. A page below MUST is rated twice more, and
its median counts, since other work of the machine slows a page down; one that is still
below fails. --record writes results/site/lighthouse.json.
"""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools import browser, provenance
from tools.steps import ROOT

SITE = ROOT / "_build" / "html"
PINNED = ROOT / "tools" / "measure" / "lighthouse"
INSTALLED = ROOT / "_build" / "lighthouse"
RECORD = ROOT / "results" / "site" / "lighthouse.json"
MUST = {"performance": 99, "accessibility": 100, "best-practices": 100, "seo": 100}
MUST_LCP = 2000  # milliseconds to the largest contentful paint
PACKED = {".html", ".css", ".js", ".svg", ".json", ".txt"}


def main(words: list[str]) -> None:
    """Rate, show a table, and record it if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*")
    parser.add_argument("--record", action="store_true")
    chosen = parser.parse_args(words)
    pages = chosen.pages or sorted(
        str(path.relative_to(SITE))
        for folder in ("book", "exercises")
        for path in (SITE / folder).rglob("*.html")
    )
    install()
    made_by = provenance.made_by("python -m tools.measure.lighthouse --record")
    print(f"{'page':58}  perf  a11y  best   seo    LCP    CLS")
    rated: dict[str, list[dict]] = {page: [] for page in pages}
    with browser.served(SITE, Packing) as address:
        for turn in range(3):
            for page in pages:
                if turn and not is_low(median(rated[page])):
                    continue
                rated[page].append(rate(address + page))
                show(page, rated[page][-1])
                if chosen.record:
                    done = {page: each for page, each in rated.items() if each}
                    record({page: median(done[page]) for page in done}, made_by)
    rated = {page: median(results) for page, results in rated.items()}
    low = [page for page in rated if is_low(rated[page])]
    if low:
        sys.exit("too low: " + ", ".join(low))


def is_low(scores: dict) -> bool:
    """Whether a page falls short of what every page must reach."""
    low = any(scores[name] < least for name, least in MUST.items())
    return low or scores["lcp_ms"] > MUST_LCP


def show(page: str, scores: dict) -> None:
    """Write a line of the table."""
    numbers = "  ".join(f"{scores[name]:4}" for name in MUST)
    lcp, cls = scores["lcp_ms"], scores["cls"]
    print(f"{page:58}  {numbers}  {lcp / 1000:4.1f} s  {cls:.3f}", flush=True)


def median(results: list[dict]) -> dict:
    """Give the middle one of a page's ratings, and how many there were."""
    ordered = sorted(results, key=lambda scores: scores["performance"])
    return ordered[(len(ordered) - 1) // 2] | {"runs": len(ordered)}


def install() -> None:
    """Put the pinned Lighthouse into _build/, unless it is there."""
    INSTALLED.mkdir(parents=True, exist_ok=True)
    lock = INSTALLED / "package-lock.json"
    wanted = (PINNED / "package-lock.json").read_bytes()
    if lock.is_file() and lock.read_bytes() == wanted:
        return
    shutil.copy(PINNED / "package.json", INSTALLED)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    lock.write_bytes(wanted)
    try:
        subprocess.run(command, cwd=INSTALLED, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        lock.unlink()
        raise


def rate(address: str) -> dict:
    """Run Lighthouse on one page."""
    command = ["node", str(INSTALLED / "node_modules/lighthouse/cli/index.js")]
    command += [address, "--quiet", "--output=json", "--output-path=stdout"]
    command += ["--chrome-flags=--headless=new " + " ".join(browser.FLAGS)]
    environment = os.environ | {"CHROME_PATH": browser.require(browser.WINDOWED)}
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300
    )
    if ran.returncode:
        sys.exit(f"Lighthouse could not rate {address}:\n{ran.stderr[-2000:]}")
    report = json.loads(ran.stdout)
    audits = report["audits"]
    result = {n: round(100 * (report["categories"][n]["score"] or 0)) for n in MUST}
    result["lcp_ms"] = round(audits["largest-contentful-paint"]["numericValue"])
    result["tbt_ms"] = round(audits["total-blocking-time"]["numericValue"])
    result["cls"] = round(audits["cumulative-layout-shift"]["numericValue"], 4)
    result["load"] = round(os.getloadavg()[0], 1)
    result["version"] = report["lighthouseVersion"]
    result["failed"] = sorted(
        name
        for category in ("accessibility", "best-practices", "seo")
        for name in (r["id"] for r in report["categories"][category]["auditRefs"])
        if audits[name]["score"] == 0
    )
    return result


class Packing(browser.Quiet):
    """Compresses the files that it shows, and has them kept for a year."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):  # noqa: N802  the server calls it by this name
        """Give a file; text travels compressed."""
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        content = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Cache-Control", "max-age=31536000")
        if path.suffix in PACKED:
            content = gzip.compress(content, 6)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def record(rated: dict, made_by: dict) -> None:
    """Write what was measured, with what and where; other pages' ratings stay."""
    before = json.loads(RECORD.read_text("utf-8"))["pages"] if RECORD.is_file() else {}
    pages = {page: old for page, old in before.items() if (SITE / page).is_file()}
    for page, scores in rated.items():
        pages[page] = {name: scores[name] for name in scores if name != "version"}
    version = next(iter(rated.values()))["version"]
    chromium = subprocess.run(
        [browser.require(browser.WINDOWED), "--version"], capture_output=True, text=True
    ).stdout.strip()
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    content = made_by | {
        "lighthouse": version,
        "chromium": chromium,
        "served": "gzip, cached for a year, HTTP/1.1, this machine",
        "pages": dict(sorted(pages.items())),
    }
    RECORD.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
