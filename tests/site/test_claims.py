"""What a page says of a training run holds for other seeds than its own, too."""

import json

import yaml

from tools.measure.claims import CLAIMS, RECORD, ROOT

BOOK = ROOT / "book"


def test_recorded_runs_held_as_often_as_the_pages_say():
    """tools/measure/claims.py ran them; its record is compared with the sentences."""
    claims = yaml.safe_load(CLAIMS.read_text(encoding="utf-8"))
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    assert record["held"].keys() == claims.keys()
    for name, claim in claims.items():
        page = (BOOK / f"{claim['page']}.md").read_text(encoding="utf-8")
        first, last = (page.index(f"({label})=") for label in claim["cells"])
        assert claim["says"] in " ".join(page[first:last].split()), name
        held = record["held"][name]
        assert (len(held), sum(held)) == (10, claim["times"]), name
        assert sum(held) >= 8 or "of ten other seeds" in claim["says"], name
