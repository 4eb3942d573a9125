"""What a page says of a training run holds for other seeds than its own, too."""

import json

import pytest
import torch
import torch.nn.functional as F
import yaml

from tools.claims import CELL, CLAIMS, RECORD, ROOT
from transformer.decoder import DecoderOnly

BOOK = ROOT / "book"


def first_cell(page: str, label: str) -> str:
    """The first code cell of a page's section."""
    text = (BOOK / f"{page}.md").read_text(encoding="utf-8")
    return CELL.search(text, text.index(f"({label})=")).group(1)


# The slowest learners of the seeds 7 to 17: all eleven got there with two layers, none
# with one.
@pytest.mark.parametrize("seed", [9, 16])
def test_two_layers_look_up_what_they_have_just_read_and_one_does_not(seed, capsys):
    cell = first_cell("07_decoder", "decoder-in-context")
    assert cell.count("manual_seed(7)") == 2
    names = {"torch": torch, "F": F, "DecoderOnly": DecoderOnly}
    exec(cell.replace("manual_seed(7)", f"manual_seed({seed})"), names)
    assert names["right"][2][600] > 0.95
    assert max(names["right"][1].values()) < 0.7
    assert f"recall {{0: '{names['right'][1][0]:.2f}'" in capsys.readouterr().out


def test_recorded_runs_held_as_often_as_the_pages_say():
    """tools/claims.py ran them; here its record is compared with the sentences."""
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
