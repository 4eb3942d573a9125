"""Records of how good and how quick the site is: complete, and as good as they must be.

Lighthouse needs Node, and both need a machine that does nothing else: CONTRIBUTING.md,
"Keep the site fast", says how the records are made.
"""

import datetime
import json

import pytest
from sphinx_external_toc.parsing import parse_toc_yaml

from tools.measure import bench_site, lighthouse

RATED = json.loads(lighthouse.RECORD.read_text("utf-8"))
TIMED = json.loads(bench_site.RECORD.read_text("utf-8"))
PAGES = sorted(f"{name}.html" for name in parse_toc_yaml(lighthouse.ROOT / "_toc.yml"))
FIGURES = bench_site.pages_of_figures()


# --- Lighthouse -----------------------------------------------------------------------


def test_every_page_is_rated():
    assert sorted(RATED["pages"]) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_page_is_as_good_as_it_must_be(page):
    scores = RATED["pages"][page]
    assert {
        name: scores[name]
        for name in lighthouse.MUST
        if scores[name] < lighthouse.MUST[name]
    } == {}
    assert scores["lcp_ms"] <= lighthouse.MUST_LCP


# --- the bench ------------------------------------------------------------------------


def test_bench_says_what_made_it():
    assert TIMED["command"].endswith("site --record")
    assert datetime.date.fromisoformat(TIMED["date"])
    assert TIMED["commit"] and TIMED["hardware"]
    assert TIMED["must"] == bench_site.MUST


def test_every_figure_is_timed():
    timed = {name: each["page"] for name, each in TIMED["figures"].items()}
    assert timed == FIGURES


@pytest.mark.parametrize("name", FIGURES)
def test_figure_answers_as_soon_as_it_must(name):
    times = TIMED["figures"][name]
    assert times["moves"] >= bench_site.LEAST_MOVES
    assert times["median_ms"] <= times["worst_ms"] <= bench_site.MUST["figure_ms"]


def test_translation_is_as_quick_as_it_must_be():
    times = TIMED["translation"]
    assert times["times"] >= 10 and len(times["sentence"].split()) == 12
    for kind in ("first_ms", "median_ms", "worst_ms"):
        assert 0 < times[kind] <= bench_site.MUST["translation_ms"]


def test_verdict_on_an_edit_comes_as_soon_as_it_must():
    times = TIMED["verdict"]
    assert 0 < times["first_s"] <= bench_site.MUST["verdict_first_s"]
    assert 0 < times["median_s"] <= times["worst_s"] <= bench_site.MUST["verdict_s"]
    assert times["times"] >= 5
    assert {"python.js", "editor.js"} <= set(times["bytes"])
    assert sum(times["bytes"].values()) <= bench_site.MUST["runtime_bytes"]


def test_edited_page_is_built_as_soon_as_it_must_be():
    assert TIMED["rebuild"], "record it with the build: without --no-rebuild"
    assert TIMED["rebuild"]["seconds"] <= bench_site.MUST["rebuild_s"]


def test_what_is_too_slow_is_named():
    slow = json.loads(json.dumps(TIMED))
    slow["figures"]["softmax"]["worst_ms"] = 51
    slow["translation"]["first_ms"] = 501
    slow["rebuild"] = {"seconds": 21}
    slow["verdict"] |= {"first_s": 10.1, "bytes": {"python.js": 8_000_001}}
    found = set(bench_site.too_slow(slow)) - set(bench_site.too_slow(TIMED))
    assert found >= {"softmax: worst_ms 51", "translation: first_ms 501"}
    assert found >= {"verdict: first_s 10.1", "verdict: 8000001 bytes"}
    assert "rebuild: 21 s" in found
