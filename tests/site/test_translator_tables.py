"""The tables of the translator's page: what is recorded, and what is not."""

from pages.results_tables import JOINED, TO_RUN
from pages.translator_tables import (
    ablations,
    failures,
    multi30k,
    scores,
    verdicts,
)

RUNS = {
    "phrasebook": {"about": "the long one", "train": "translator --data phrasebook"},
    "phrasebook_short": {"about": "the default", "train": "translator --steps 600"},
    "phrasebook_heads_1": {"about": "one head", "train": "translator --heads 1"},
    "phrasebook_heads_8": {"about": "eight heads", "train": "translator --heads 8"},
    "multi30k_cpu": {"about": "a CPU", "train": "translator --data multi30k"},
    "multi30k_back": {
        "about": "back",
        "train": "translator --data multi30k --source de --target en",
    },
    "digits": {"about": "digits", "train": "vit --data digits"},
}


OTHERS = [
    {
        "system": "theirs",
        "cite": "key",
        "direction": "en→de",
        "score": 12.34,
        "counted": "so",
        "size": "1 M",
    }
]


def record(test, **metrics):
    """A record with these scores, a value a seed."""
    count = len(next(iter(metrics.values())))
    return {
        "seeds": list(range(count)),
        "parameters": 2_600_000,
        "train_seconds": [60.0 + number for number in range(count)],
        "scores": {test: {name: list(found) for name, found in metrics.items()}},
    }


def translation_record(*exact):
    return record("test", exact_match=exact)


RECORDED = {
    "phrasebook": translation_record(99.9),
    "phrasebook_short": translation_record(98.0, 99.0, 98.5),
    "phrasebook_heads_1": translation_record(90.0, 91.0),
}


def rows(table):
    """Rows of a Markdown table without the two of its head, as lists of cells."""
    lines = table.replace(JOINED, "").splitlines()
    assert len({line.count("|") for line in lines}) == 1
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]


def test_a_run_without_a_record_says_how_it_is_made_and_has_no_number():
    *_, cpu, back = rows(multi30k(RUNS, {}, OTHERS))
    assert cpu[1:] == [
        "en→de",
        TO_RUN,
        "",
        "`python -m workbench record multi30k_cpu`",
    ]
    assert back[1] == "de→en" and back[2] == TO_RUN


def test_a_recorded_run_stands_below_the_published_ones_with_mean_and_range():
    scored = record(
        "test_2016_flickr",
        bleu_lowercased_tokenised=(40.0, 42.0),
        bleu_cased=(38.0, 39.0),
    )
    found = rows(multi30k(RUNS, {"multi30k_cpu": scored}, OTHERS))
    assert found[0] == [
        "theirs, {cite}`key`",
        "en→de",
        "12.34 *published*",
        "–",
        "1 M; so",
    ]
    assert found[len(OTHERS)][2:] == [
        "41.00 (40.00–42.00)",
        "38.50 (38.00–39.00)",
        "2.6 M; 61 s; 2 seeds",
    ]


def test_one_seed_has_no_range():
    scored = record(
        "test_2016_flickr", bleu_lowercased_tokenised=(40.0,), bleu_cased=(38.0,)
    )
    row = rows(multi30k(RUNS, {"multi30k_cpu": scored}, OTHERS))[len(OTHERS)]
    assert row[2:] == ["40.00", "38.00", "2.6 M; 60 s; 1 seed"]


def test_ablations_are_compared_with_the_default():
    default, one, eight = rows(ablations(RUNS, RECORDED, "phrasebook_short"))
    assert default[2:] == ["3", "98.5 (98.0–99.0)", ""]
    assert one[2:] == ["2", "90.5 (90.0–91.0)", "−8.0"]
    assert eight[3] == TO_RUN and eight[4] == ""


def test_scores_are_of_what_is_recorded():
    found = scores(RUNS, RECORDED, "phrasebook_short")
    assert found == {"the default": [98.0, 99.0, 98.5], "one head": [90.0, 91.0]}


def test_without_a_default_nothing_is_compared():
    only = {"phrasebook_heads_1": translation_record(90.0, 91.0)}
    _, one, _ = rows(ablations(RUNS, only, "phrasebook_short"))
    assert one[3:] == ["90.5 (90.0–91.0)", ""]
    assert scores(RUNS, only, "phrasebook_short") == {}
    assert not any(verdicts({}).values())


def test_only_what_lies_clear_of_the_default_is_told_apart():
    found = {
        "default": (97.0, 98.0),
        "far below": (90.0, 95.9),
        "one seed near": (90.0, 96.1),
        "within": (97.5, 97.6),
        "above": (99.1, 99.5),
    }
    assert verdicts(found) == {
        "worse": ["far below"],
        "better": ["above"],
        "not told apart": ["one seed near", "within"],
    }


def test_failures_are_listed_by_kind_and_not_all_of_them():
    english, german, written = (["E"] * 3, ["R1", "R2", "R3"], ["W1", "W2", "W3"])
    text = failures(english, german, written, ["agreement", "right", "agreement"], 1)
    assert "**agreement** (1 of 2)" in text and "**negation** (none)" in text
    assert "W1" in text and "R1" in text
    assert "W2" not in text and "W3" not in text
