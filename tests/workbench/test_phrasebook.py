"""The phrasebook: German as it is spoken, one translation, unseen combinations."""

import random
from collections import Counter, defaultdict

import pytest

from workbench.data import phrasebook
from workbench.data.phrasebook import (
    ADJECTIVE,
    NOUN,
    VERB,
    Clause,
    decline,
    noun_phrase,
)


@pytest.fixture(scope="module")
def splits() -> phrasebook.Splits:
    return phrasebook.generate(0)


@pytest.fixture(scope="module")
def pairs(splits) -> list[tuple[str, str]]:
    return [pair for split in splits for pair in split]


def sentence(subject, verb, *objects, form="statement", **options) -> tuple[str, str]:
    """Make one sentence of chosen words; each object is (phrase, case)."""
    adjective = options.pop("is_", None)
    clause = Clause(
        subject,
        VERB[verb] if verb else None,
        tuple(objects),
        adjective=ADJECTIVE[adjective] if adjective else None,
        **options,
    )
    return phrasebook.Writer(random.Random(0)).finish(clause, form)


def the(noun: str, adjective: str | None = None, determiner="the", plural=False):
    """Make a noun phrase of chosen words."""
    described = ADJECTIVE[adjective] if adjective else None
    return noun_phrase(NOUN[noun], determiner, described, plural)


def pronoun(english: str):
    """Make a phrase of a pronoun."""
    subjects = [each[0] for each in phrasebook.PRONOUNS]
    return phrasebook.pronoun_phrase(subjects.index(english))


BOBBY = phrasebook.name_phrase("Bobby")
ACCUSATIVE, DATIVE = "accusative", "dative"

# Written by hand, from a grammar book: German determiner, adjective, noun, number; then
# nominative, accusative, dative.
DECLENSIONS = """
der red apple one: der rote Apfel, den roten Apfel, dem roten Apfel
der sweet pear one: die süße Birne, die süße Birne, der süßen Birne
der old house one: das alte Haus, das alte Haus, dem alten Haus
der old house many: die alten Häuser, die alten Häuser, den alten Häusern
ein red apple one: ein roter Apfel, einen roten Apfel, einem roten Apfel
ein ripe plum one: eine reife Pflaume, eine reife Pflaume, einer reifen Pflaume
ein new book one: ein neues Buch, ein neues Buch, einem neuen Buch
ein new book many: neue Bücher, neue Bücher, neuen Büchern
kein new book many: keine neuen Bücher, keine neuen Bücher, keinen neuen Büchern
ihr tired uncle one: ihr müder Onkel, ihren müden Onkel, ihrem müden Onkel
- cold water one: kaltes Wasser, kaltes Wasser, kaltem Wasser
- hot tea one: heißer Tee, heißen Tee, heißem Tee
- fresh milk one: frische Milch, frische Milch, frischer Milch
ein expensive hat one: ein teurer Hut, einen teuren Hut, einem teuren Hut
der - bear one: der Bär, den Bären, dem Bären
der - boy one: der Junge, den Jungen, dem Jungen
der - prince one: der Prinz, den Prinzen, dem Prinzen
der - woman many: die Frauen, die Frauen, den Frauen
der - car many: die Autos, die Autos, den Autos
der - girl many: die Mädchen, die Mädchen, den Mädchen
"""


@pytest.mark.parametrize("line", DECLENSIONS.strip().splitlines())
def test_noun_phrases_decline(line):
    words, expected = line.split(": ")
    determiner, adjective, noun, number = words.split()
    got = [
        decline(
            NOUN[noun],
            determiner.strip("-"),
            ADJECTIVE.get(adjective),
            case,
            plural=number == "many",
        )
        for case in ("nominative", "accusative", "dative")
    ]
    assert ", ".join(got) == expected


CONJUGATIONS = {
    "like": "mag magst mag mögen",
    "buy": "kaufe kaufst kauft kaufen",
    "eat": "esse isst isst essen",
    "see": "sehe siehst sieht sehen",
    "read": "lese liest liest lesen",
    "find": "finde findest findet finden",
    "draw": "zeichne zeichnest zeichnet zeichnen",
    "wash": "wasche wäschst wäscht waschen",
    "greet": "grüße grüßt grüßt grüßen",
    "dance": "tanze tanzt tanzt tanzen",
    "work": "arbeite arbeitest arbeitet arbeiten",
    "feed": "füttere fütterst füttert füttern",
    "give": "gebe gibst gibt geben",
    "help": "helfe hilfst hilft helfen",
    "invite": "lade lädst lädt laden",
    "phone": "rufe rufst ruft rufen",
    "sleep": "schlafe schläfst schläft schlafen",
    "laugh": "lache lachst lacht lachen",
}


@pytest.mark.parametrize("verb", CONJUGATIONS)
def test_verbs_conjugate(verb):
    assert " ".join(VERB[verb].forms) == CONJUGATIONS[verb]


APPLES = (the("apple", determiner="", plural=True), ACCUSATIVE)
CAN, MUST, WANT = phrasebook.MODALS


@pytest.mark.parametrize(
    "made, english, german",
    [
        (
            sentence(BOBBY, "buy", APPLES, negated=True),
            "Bobby does not buy apples.",
            "Bobby kauft keine Äpfel.",
        ),
        (
            sentence(BOBBY, "buy", (the("apple", "red"), ACCUSATIVE), negated=True),
            "Bobby does not buy the red apple.",
            "Bobby kauft den roten Apfel nicht.",
        ),
        (
            sentence(BOBBY, "eat", APPLES, form="question"),
            "Does Bobby eat apples?",
            "Isst Bobby Äpfel?",
        ),
        (
            sentence(pronoun("you"), "eat", APPLES, form="question", modal=WANT),
            "Do you want to eat apples?",
            "Willst du Äpfel essen?",
        ),
        (
            sentence(
                pronoun("she"),
                "give",
                (the("child"), DATIVE),
                (the("orange", determiner="a"), ACCUSATIVE),
            ),
            "She gives the child an orange.",
            "Sie gibt dem Kind eine Orange.",
        ),
        (
            sentence(pronoun("I"), "invite", (the("prince"), ACCUSATIVE), negated=True),
            "I do not invite the prince.",
            "Ich lade den Prinzen nicht ein.",
        ),
        (
            sentence(BOBBY, "phone", (the("aunt"), ACCUSATIVE), modal=MUST),
            "Bobby must phone the aunt.",
            "Bobby muss die Tante anrufen.",
        ),
        (
            sentence(pronoun("they"), "sleep", place=("in the garden", "im Garten")),
            "They sleep in the garden.",
            "Sie schlafen im Garten.",
        ),
        (
            sentence(pronoun("he"), "help", (pronoun("we"), DATIVE)),
            "He helps us.",
            "Er hilft uns.",
        ),
        (
            sentence(the("cherry", plural=True), None, is_="sour", negated=True),
            "The cherries are not sour.",
            "Die Kirschen sind nicht sauer.",
        ),
    ],
)
def test_sentences_are_put_in_order(made, english, german):
    assert made == (english, german)


def test_the_verb_stands_second_after_an_adverbial():
    clause = Clause(BOBBY, VERB["invite"], ((the("queen"), ACCUSATIVE),))
    assert clause.in_german(front="Heute") == "Heute lädt Bobby die Königin ein"
    assert clause.in_german("last") == "Bobby die Königin einlädt"


def test_an_infinitive_stands_before_the_last_verb():
    clause = Clause(BOBBY, VERB["buy"], (APPLES,), modal=CAN)
    assert clause.in_german("last") == "Bobby Äpfel kaufen kann"


def test_splits_have_their_sizes_and_share_no_sentence(splits, pairs):
    assert {name: len(split) for name, split in splits._asdict().items()} == {
        "train": 64_000,
        "validation": 500,
        "test": 1000,
    }
    assert len(set(pairs)) == len(pairs)


def test_the_running_example_is_to_be_translated_unseen(splits):
    assert splits.test[0] == ("Bobby likes blackberries.", "Bobby mag Brombeeren.")
    assert not any(
        "like" in english and "blackberr" in english for english, _ in splits.train
    )


@pytest.mark.parametrize("side", [0, 1], ids=["en-de", "de-en"])
def test_every_sentence_has_one_translation(pairs, side):
    found = defaultdict(set)
    for pair in pairs:
        found[pair[side]].add(pair[1 - side])
    assert [each for each in found.values() if len(each) > 1] == []


def test_held_out_sentences_are_of_well_known_words(splits):
    seen = Counter(word for pair in splits.train for word in phrasebook.words([pair]))
    for word in phrasebook.words(splits.validation + splits.test):
        assert seen[word] >= 5, word


def test_what_is_well_known_is_known_to_every_corpus(splits):
    known = phrasebook.well_known()
    assert len(known) > 800
    assert known <= phrasebook.often_in(splits.train)
    assert known <= phrasebook.often_in(phrasebook.generate(5).train)


def test_the_corpus_is_the_same_on_every_python(splits):
    assert splits.train[0] == (
        "Do you show your old uncle the bears?",
        "Zeigst du deinem alten Onkel die Bären?",
    )
    assert splits.test[-1] == (
        "I buy the tomato soup.",
        "Ich kaufe die Tomatensuppe.",
    )


def test_the_same_seed_writes_the_same_corpus(splits, monkeypatch):
    monkeypatch.setattr(phrasebook, "SIZES", {"train": 300, "validation": 0, "test": 0})
    first = phrasebook.generate(0).train
    assert first == splits.train[:300]
    assert phrasebook.generate(1).train != first


def test_a_combination_kept_from_training_is_kept_under_every_seed():
    kept = [
        ("eat", noun)
        for noun in NOUN
        if phrasebook.split_of((("eat", noun),)) == "test"
    ]
    assert kept
    for seed in (1, 2):
        for english, _ in phrasebook.draw(random.Random(seed), "train", 500, set()):
            for _, noun in kept:
                assert f"eats the {noun}." not in english, english


def test_sentences_are_written_as_sentences(pairs):
    for pair in pairs:
        for text in pair:
            assert text[0].isupper() and text[-1] in ".?"
            assert "  " not in text and text == text.strip()


def test_every_word_of_the_tables_is_trained_on(splits):
    english = " ".join(text.lower() for text, _ in splits.train)
    for word in [*NOUN, *ADJECTIVE, *VERB]:
        assert word in english, word


def test_every_noun_has_a_capital_and_every_plural_its_own_table_entry():
    for noun in NOUN.values():
        assert noun.german[0].isupper() and noun.gender in ("m", "f", "n")
        assert noun.plural or "drink" in noun.kinds
        if noun.weak:
            assert noun.gender == "m" and noun.in_german("dative", False) == noun.plural
