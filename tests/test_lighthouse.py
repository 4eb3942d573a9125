"""The record of Lighthouse: every page is in it, and as good as it must be.

Lighthouse itself needs Node, and a machine that does nothing else: CONTRIBUTING.md,
"Keep the site fast", says how the record is made.
"""

import json

import pytest
from sphinx_external_toc.parsing import parse_toc_yaml

from tools import lighthouse

RECORD = json.loads(lighthouse.RECORD.read_text("utf-8"))
PAGES = sorted(f"{name}.html" for name in parse_toc_yaml(lighthouse.ROOT / "_toc.yml"))


def test_every_page_is_in_the_record():
    assert sorted(RECORD["pages"]) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_page_is_as_good_as_it_must_be(page):
    scores = RECORD["pages"][page]
    assert {
        name: scores[name]
        for name in lighthouse.MUST
        if scores[name] < lighthouse.MUST[name]
    } == {}
    assert scores["lcp_ms"] <= lighthouse.MUST_LCP
