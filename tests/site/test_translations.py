"""The kinds of errors, each shown by a sentence in which it was made by hand."""

import random

import pytest

from pages.translations import KINDS, RIGHT, kind_of_error, same_word
from workbench.data import phrasebook

CASES = [
    ("Bobby mag Brombeeren.", "Bobby mag Brombeeren. ", RIGHT),
    ("Hilft er meiner Maus?", "Hilft er meinen Maus?", "agreement"),
    ("Sie geben mir ein Ei.", "Sie gibst mir ein Ei.", "agreement"),
    ("Er sieht den alten Bären.", "Er sieht den alte Bär.", "agreement"),
    ("Sie lädt ihn ein.", "Sie laden ihn ein.", "agreement"),
    ("Er mag keine Eier.", "Er mag Eier.", "negation"),
    ("Er mag die Eier.", "Er mag die Eier nicht.", "negation"),
    ("Er mag keine Eier.", "Er mag die Eier nicht.", "negation"),
    ("Er hilft der Katze nicht.", "Er hilft keiner alten Katze.", "negation"),
    ("Heute mag Anna Eier.", "Heute Anna mag Eier.", "word order"),
    ("Mia bringt ihr ihr Gedicht.", "Mia bringt ihr Gedicht.", "lost or doubled"),
    ("Mia hilft Lena.", "Mia hilft Lena Lena.", "lost or doubled"),
    ("Bobby mag Brombeeren.", "Bobby mag Erdbeeren.", "another word"),
    ("Bobby mag Brombeeren.", "", "lost or doubled"),
]


@pytest.mark.parametrize(("reference", "written", "kind"), CASES)
def test_a_mistake_made_by_hand_has_its_name(reference, written, kind):
    assert kind_of_error(reference, written) == kind
    assert kind in (RIGHT, *KINDS)


def test_every_right_translation_is_right_and_every_form_is_known():
    for _, german in phrasebook.draw(random.Random(1), "train", 300, set()):
        assert kind_of_error(german, german) == RIGHT


@pytest.mark.parametrize(
    ("first", "second"),
    [("mag", "mögen"), ("bären", "bär"), ("dem", "die"), ("süßen", "süß")],
)
def test_forms_of_one_word_are_the_same_word(first, second):
    assert same_word(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [("mein", "dein"), ("brombeeren", "erdbeeren"), ("mag", "isst"), ("zzz", "zzz")],
)
def test_different_or_unknown_words_are_not(first, second):
    assert not same_word(first, second)
