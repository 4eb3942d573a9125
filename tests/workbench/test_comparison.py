"""Two systems on the same examples, and records that are made again."""

import itertools
import json
import shutil
import sys

import numpy as np
import pytest
import torch
import yaml

from tests.workbench.test_metrics import HYPOTHESES, REFERENCES
from tests.workbench.test_results import provisional
from workbench import __main__
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.training import budgets, recording, records
from workbench.use import comparison, results
from workbench.use.evaluation import Evaluation, answer, compare
from workbench.use.metrics import RAW, bleu_scores, judge_bleu


def judged(*right: int) -> comparison.Judged:
    return comparison.judge_right(right, [1] * len(right))


def test_a_difference_by_hand() -> None:
    """Chapter 9's example: right in 1, 0, 0, 1 against 1, 1, 1, 0."""
    first, second = judged(1, 1, 1, 0), judged(1, 0, 0, 1)
    assert comparison.difference(first, second, np.arange(4)) == 25
    draws = [(0, 1, 2, 3), (1, 1, 2, 2), (3, 3, 0, 0)]
    found = [comparison.difference(first, second, np.array(draw)) for draw in draws]
    assert found == [25, 100, -50]


def test_many_draws_are_like_all_draws() -> None:
    """The oracle: every draw of three examples, each as probable as another."""
    first, second = judged(1, 1, 0), judged(0, 1, 0)
    draws = itertools.product(range(3), repeat=3)
    every = [comparison.difference(first, second, np.array(draw)) for draw in draws]
    found = comparison.paired_bootstrap(first, second, times=4000)
    assert found.value == pytest.approx(100 / 3)
    ends = np.percentile(every, [2.5, 97.5], method="inverted_cdf")
    assert (found.low, found.high) == pytest.approx(tuple(ends))
    share = np.mean(np.array(every) > 0)
    assert found.better == pytest.approx(share, abs=4 * (share / 4000) ** 0.5)
    assert found == comparison.paired_bootstrap(first, second, times=4000)


def test_a_system_is_not_better_than_itself() -> None:
    found = comparison.paired_bootstrap(judged(1, 0, 1), judged(1, 0, 1))
    assert found == (0, 0, 0, 0)


def test_other_examples_are_refused() -> None:
    for pair in ((judged(1), judged(1, 0)), (judged(), judged())):
        with pytest.raises(WorkbenchError, match="examples"):
            comparison.paired_bootstrap(*pair)


@pytest.mark.parametrize("form", [RAW, "lowercased"])
def test_rows_add_up_to_corpus_bleu(form) -> None:
    scores = bleu_scores(HYPOTHESES, REFERENCES, "de", form)
    for name, each in judge_bleu(HYPOTHESES, REFERENCES, "de", form).items():
        assert each.rows.shape == (len(REFERENCES), 10)
        assert each.score(each.rows.sum(0)) == pytest.approx(scores[name])
        twice = [1, 1]  # a draw is a corpus, too
        drawn = [[texts[n] for n in twice] for texts in (HYPOTHESES, REFERENCES)]
        expected = bleu_scores(*drawn, "de", form)[name]
        assert each.score(each.rows[twice].sum(0)) == pytest.approx(expected)


# --- Budgets --------------------------------------------------------------------------


def test_records_keep_to_their_budgets() -> None:
    known = budgets.read_budgets()
    for name, run in recording.read_runs(recording.TABLE).items():
        if "budget" in run and name in results.names():
            record = results.read_record(name)
            assert budgets.excesses(record, known[run["budget"]]) == [], name


def test_what_exceeds_a_budget_is_said() -> None:
    small = {"about": "two cores", "minutes": 1, "cores": 2}
    record = provisional(0, device="A CPU, 1 threads")
    assert budgets.excesses(record, small) == []
    assert "minutes" in budgets.excesses(record | {"train_seconds": [61]}, small)[0]
    assert "3 cores" in budgets.excesses(record | {"processes": 3}, small)[0]
    assert "not on" in budgets.excesses(record | {"device": "A GPU"}, small)[0]
    gpu = {"about": "one GPU", "minutes": 1}
    assert "not on one GPU" in budgets.excesses(record, gpu)[0]


def test_a_record_that_comes_out_otherwise_is_said() -> None:
    entry = records.combine([provisional(0), provisional(1)])  # 97.5 and 98.5
    near = entry | {"scores": {"test": {"accuracy": [97.1, 98.1]}}}
    assert budgets.disagreements(entry, near) == []
    far = entry | {"scores": {"test": {"accuracy": [96.0, 97.9]}}}
    assert "98.00 there, 96.95 now" in budgets.disagreements(entry, far)[0]
    other = entry | {"parameters": 124}
    assert budgets.disagreements(entry, other) == ["parameters: 123 there, 124 now"]


@pytest.fixture
def tried(tmp_path, monkeypatch, capsys):
    """Record the table's run `tiny` from stand-ins of training; return the command."""
    runs = {"tiny": {"about": "tiny", "train": "vit --data digits", "seeds": [0, 1]}}
    path = tmp_path / "runs.yml"
    path.write_text(yaml.safe_dump(runs), encoding="utf-8")
    monkeypatch.setattr(recording, "TABLE", path)
    scores, told = {0: 97.5, 1: 98.5, 2: 99.5}, []

    def train(about, seeds, folder, _data):
        for seed in seeds:
            told.append((about["train"], seed))
            place = folder / f"seed_{seed}"
            place.mkdir(parents=True)
            made = provisional(seed, scores={"test": {"accuracy": [scores[seed]]}})
            records.write(place / records.FILE, made)

    monkeypatch.setattr(recording, "train", train)

    def record(*words: str) -> tuple[int, str]:
        places = ["--work", tmp_path / "work", "--out", tmp_path]
        words = ["workbench", "record", "tiny", *words, *places]
        monkeypatch.setattr(sys, "argv", [*map(str, words)])
        code = __main__.main()
        return code, capsys.readouterr().out

    return record, scores, told, tmp_path / "tiny.json"


def test_an_entry_is_made_again_and_compared(tried) -> None:
    record, scores, told, path = tried
    assert record("--verify")[0] == 2  # nothing to compare with yet
    assert record()[0] == 0
    before = path.read_text(encoding="utf-8")
    scores |= {0: 10.0, 1: 11.0}
    code, output = record("--verify", "--steps", "20")
    assert code == 0 and "count for nothing" in output
    assert told[-1] == ("vit --data digits --steps 20", 1)
    code, output = record("--verify")
    assert code == 1 and "does not hold" in output and "10.50 now" in output
    assert told[-1] == ("vit --data digits", 1)
    assert path.read_text(encoding="utf-8") == before


def test_seeds_are_added_to_a_record_of_the_same_commit(tried, monkeypatch) -> None:
    record, _, told, path = tried
    monkeypatch.setattr(records, "commit", lambda: "0" * 40)
    table = yaml.safe_load(recording.TABLE.read_text(encoding="utf-8"))

    def ask(**changes) -> None:
        runs = {"tiny": table["tiny"] | changes}
        recording.TABLE.write_text(yaml.safe_dump(runs), encoding="utf-8")

    ask(seeds=[0])
    record()
    whole = json.loads(path.read_text(encoding="utf-8"))
    whole["command"] = ["python -m workbench train vit --data digits --seed 0"]
    path.write_text(json.dumps(whole), encoding="utf-8")
    shutil.rmtree(path.parent / "work")
    ask(seeds=[0, 1])
    assert record()[0] == 0
    assert [seed for _, seed in told] == [0, 1]  # each was trained once
    whole = json.loads(path.read_text(encoding="utf-8"))
    assert whole["scores"] == {"test": {"accuracy": [97.5, 98.5]}}
    shutil.rmtree(path.parent / "work")
    monkeypatch.setattr(records, "commit", lambda: "1" * 40)
    ask(seeds=[0, 1, 2])
    output = record()[1]
    assert "check out 000" in output
    assert [seed for _, seed in told][2:] == [0, 1, 2]


def test_an_entry_that_comes_out_the_same_holds(tried) -> None:
    record, _, _, path = tried
    record()
    assert "verified" not in records.read(path)
    record("--verify", "--steps", "20")
    assert "verified" not in records.read(path)
    code, output = record("--verify")
    assert code == 0 and "the record holds" in output
    whole = records.read(path)
    again = records.read(path.parent / "work/verify/tiny/seed_1" / records.FILE)
    assert whole["name"] == "tiny"
    assert whole["verified"] == {
        "date": again["date"],
        "commit": again["commit"],
        "scores": {"test": {"accuracy": [97.5, 98.5]}},
        "device": again["device"],
    }
    assert record("--steps", "3")[0] == 2


def test_what_was_verified_stays_with_its_scores(tried) -> None:
    record, scores, _, path = tried
    record()
    record("--verify")
    verified = records.read(path)["verified"]
    record()
    assert records.read(path)["verified"] == verified
    scores[1] = 98.4
    shutil.rmtree(path.parent / "work")
    record()
    assert "verified" not in records.read(path)


# --- What a model said of its test set ------------------------------------------------


@pytest.fixture
def said(tried):
    """Record the run `tiny`, whose first seed has a model; return how to ask it."""
    record, _, _, path = tried
    record()
    folder = path.parent / "work" / "tiny" / "seed_0"
    own = records.read(folder / records.FILE)
    assert "outputs" not in records.read(path)
    torch.manual_seed(0)
    config = models.VisionConfig(8, 4, 1, 10, 8, 2, 1, 16)
    models.save(folder, models.build(config), config)
    data = own["data"] | {"copy": "scikit-learn"}
    for seed in (0, 1):
        place = folder.with_name(f"seed_{seed}") / records.FILE
        records.write(place, records.read(place) | {"data": data})
    asked = Evaluation(kind="vit", folder=folder, device=torch.device("cpu"))
    return record, asked, path


def test_what_the_first_seed_said_is_kept_and_compared_with(said) -> None:
    record, asked, path = said
    record()
    assert records.read(path)["outputs"]["seed"] == 0
    answers = answer(asked)
    assert results.read_outputs("tiny", path.parent) == answers.found
    found = compare(asked, answers, "tiny", path.parent)
    assert found == {"accuracy": (0, 0, 0, 0)}
    whole = records.read(path)
    digest = whole["outputs"] | {"sha256": "0" * 64}
    data = whole["data"] | {"copy": "another"}
    for changed, match in (
        ({"outputs": digest}, "tiny.txt is not the file of tiny.json"),
        ({"data": data}, "tiny has another copy: 'another', not 'scikit-learn'"),
    ):
        records.write(path, whole | changed)
        with pytest.raises(WorkbenchError, match=match):
            compare(asked, answers, "tiny", path.parent)


def test_what_was_not_kept_cannot_be_compared_with(said, monkeypatch) -> None:
    record, asked, path = said
    monkeypatch.setattr(recording, "LARGEST_OUTPUTS", 700)
    assert "tiny.txt: is not kept, 718 bytes" in record()[1]
    assert "outputs" not in records.read(path)
    with pytest.raises(WorkbenchError, match=r"neither the model .* record tiny"):
        compare(asked, answer(asked), "tiny", path.parent)
