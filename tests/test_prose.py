"""The rules for prose: what each objects to, and where it says that it stands."""

import re

import pytest

from tools import prose

RULES = prose.Rules.of_the_course()
LONG = "One word and " + "another word and " * 13 + "the last."
PAGE = f"""---
kernelspec: {{name: python3}}
---

# A page

By lot, says the text, and `by lot` says the code.

```{{code-cell}} ipython3
---
mystnb:
  figure:
    caption: |
      Drawn by lot.
---
print("by lot")
```

```{{admonition}} A box
:class: tip

- a point

  {LONG}
```

| a | b |
|---|---|
| 1 | by lot |
"""


def alerts(text: str, tmp_path) -> list[prose.Alert]:
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    return prose.alerts_of(path, RULES)


def test_prose_is_found_with_its_line_and_code_is_left_out(tmp_path):
    found = [(each.line, each.rule) for each in alerts(PAGE, tmp_path)]
    wanted = {7: "by lot", 13: "by lot", 24: "long sentence", 29: "by lot"}
    assert sorted(found) == sorted(wanted.items())


@pytest.mark.parametrize(
    ("rule", "objected", "mended"),
    [
        ("of which no", "A word of which no list knows.", "A word in no list."),
        ("by lot", "It is drawn by lot.", "It is drawn at random."),
        ("per", "It has a row a token.", "It has one row per token."),
        ("near", "Look how near it is.", "Look how close it is."),
        ("stands", "It stands before the norm.", "It comes before the norm."),
        (
            "passive chain",
            "It is read, is cut and is kept.",
            "We read it and cut it, and it is kept.",
        ),
        ("double negative", "It is not uncommon.", "It is common."),
        ("spelling", "Two optimizers.", "Two optimisers."),
        ("spelling", "A cross attention.", "A cross-attention."),
    ],
)
def test_a_rule_objects_to_what_it_is_for_and_not_to_what_it_proposes(
    rule, objected, mended, tmp_path
):
    assert [each.rule for each in alerts(objected, tmp_path)] == [rule]
    assert alerts(mended, tmp_path) == []


def test_time_takes_an_article_and_a_verb_of_two_words_no_hyphen(tmp_path):
    assert alerts("It costs 2 points a day, so warm up.", tmp_path) == []


def test_a_sentence_ends_where_the_next_begins(tmp_path):
    short = "One word and another, e.g. Adam, says $x$. `run` is code. "
    assert alerts(short * 12, tmp_path) == []
    assert len(alerts(short.replace(".", ",") * 12, tmp_path)) == 1


def test_the_texts_of_a_quiz_are_read_and_its_proofs_are_not(tmp_path):
    path = tmp_path / "quiz.yml"
    path.write_text('questions:\n- question: By lot?\n  proof: "by lot"\n')
    assert [each.line for each in prose.alerts_of(path, RULES)] == [2]


def test_the_messages_of_a_check_are_read_and_its_docstrings_are_not(tmp_path):
    path = tmp_path / "check.py"
    path.write_text(
        '"""Drawn by lot."""\nLOT = "by lot"\nWHY = (\n "Drawn "\n "by lot.")\n'
    )
    assert [each.line for each in prose.alerts_of(path, RULES)] == [4]


def test_known_numbers_only_fall():
    found = [prose.Alert("a", 1, "per", ""), prose.Alert("b", 1, "per", "")]
    assert prose.too_many(found, {"a": 1}) == found[1:]
    assert prose.too_many(found, {"a": 1, "b": 3}) == []
    assert prose.lowered(found, {"a": 1, "b": 3, "gone": 2}) == {"a": 1, "b": 1}


def test_no_word_is_misspelt_by_the_glossary_itself():
    """The spelling that a rule asks for is none that a rule refuses."""
    refused = {re.sub(r"\s+", " ", word) for word in RULES.spelling}
    assert refused & set(RULES.spelling.values()) == set()
