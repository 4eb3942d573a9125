"""The everyday corpus: what visitors type, in right German, said in one way."""

import random
import re
from collections import defaultdict

import pytest

from pages import everyday_lexicon
from workbench.data import everyday, phrasebook
from workbench.data.everyday import ADJECTIVE, NOUN, VERB, Clause

SIZE = 6000


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    return everyday.draw(random.Random(0), "train", SIZE)


def phrase(words: str) -> everyday.Phrase:
    """Make a phrase of English words: a pronoun, a name, or an article and a noun."""
    subjects = [each[0] for each in everyday.PRONOUNS]
    if words in subjects:
        return everyday.pronoun_phrase(subjects.index(words))
    if words in everyday.NAMES:
        return everyday.name_phrase(words)
    determiner, *described, noun = words.split()
    plural = noun not in NOUN
    one = next(n for n in NOUN.values() if noun in (n.english, n.several))
    adjectives = [ADJECTIVE[each] for each in described if each != "very"]
    first, second = (*adjectives, None, None)[:2]
    very = "very" in described
    return everyday.noun_phrase(one, determiner, first, plural, second, very)


# Written by hand, from a grammar book: nominative, accusative, dative
DECLENSIONS = """
the dog: der Hund, den Hund, dem Hund
this red apple: dieser rote Apfel, diesen roten Apfel, diesem roten Apfel
these old houses: diese alten Häuser, diese alten Häuser, diesen alten Häusern
every child: jedes Kind, jedes Kind, jedem Kind
two red apples: zwei rote Äpfel, zwei rote Äpfel, zwei roten Äpfeln
many friends: viele Freunde, viele Freunde, vielen Freunden
some books: einige Bücher, einige Bücher, einigen Büchern
no dog: kein Hund, keinen Hund, keinem Hund
our sister: unsere Schwester, unsere Schwester, unserer Schwester
their son: ihr Sohn, ihren Sohn, ihrem Sohn
Anna's old hat: Annas alter Hut, Annas alten Hut, Annas altem Hut
the neighbor: der Nachbar, den Nachbarn, dem Nachbarn
a farmer: ein Bauer, einen Bauern, einem Bauern
the big old dog: der große alte Hund, den großen alten Hund, dem großen alten Hund
a very old cat: eine sehr alte Katze, eine sehr alte Katze, einer sehr alten Katze
"""


@pytest.mark.parametrize("line", DECLENSIONS.strip().splitlines())
def test_noun_phrases_decline(line):
    english, german = line.split(": ")
    assert ", ".join(phrase(english).german.values()) == german


# English with he, past, -ing; German with ich, du, er; participle, request
CONJUGATIONS = """
read: reads, read, reading; lese, liest, liest; haben gelesen, lies
take: takes, took, taking; nehme, nimmst, nimmt; haben genommen, nimm
have: has, had, having; habe, hast, hat; haben gehabt, hab
open: opens, opened, opening; öffne, öffnest, öffnet; haben geöffnet, öffne
sleep: sleeps, slept, sleeping; schlafe, schläfst, schläft; haben geschlafen, schlaf
smile: smiles, smiled, smiling; lächle, lächelst, lächelt; haben gelächelt, lächle
visit: visits, visited, visiting; besuche, besuchst, besucht; haben besucht, besuch
bark: barks, barked, barking; belle, bellst, bellt; haben gebellt, bell
get up: gets up, got up, getting up; stehe, stehst, steht; sein aufgestanden, steh
look at: looks at, looked at, looking at; sehe, siehst, sieht; haben angesehen, sieh
lie: lies, lay, lying; liege, liegst, liegt; haben gelegen, lieg
travel: travels, traveled, traveling; reise, reist, reist; sein gereist, reis
kiss: kisses, kissed, kissing; küsse, küsst, küsst; haben geküsst, küss
wait: waits, waited, waiting; warte, wartest, wartet; haben gewartet, warte
"""


@pytest.mark.parametrize("line", CONJUGATIONS.strip().splitlines())
def test_verbs_conjugate(line):
    english, rest = line.split(": ")
    verb = VERB[english]
    third = Clause.third_person(english)
    got = [
        ", ".join([third, verb.past, verb.doing]),
        ", ".join(verb.forms[:3]),
        f"{verb.auxiliary} {verb.participle}, {verb.command()}",
    ]
    assert "; ".join(got) == rest


def clause(subject: str, verb: str, objects: str = "", **about) -> Clause:
    """Make a clause of English words; an object stands in the accusative."""
    of = ((phrase(objects), "accusative"),) if objects else ()
    return Clause(phrase(subject), VERB[verb], of, **about)


CAN, WANT = everyday.MODALS[0], everyday.MODALS[2]
GLADLY = everyday.MODALS[-1]
MADE = [
    (clause("the dog", "eat"), "Der Hund frisst"),
    (clause("he", "eat"), "Er isst"),
    (clause("we", "have", "no dog"), "Wir haben keinen Hund"),
    (clause("she", "have", "a dog", tense="past"), "Sie hatte einen Hund"),
    (clause("I", "see", "the bear", tense="past"), "Ich habe den Bären gesehen"),
    (clause("they", "get up", tense="past"), "Sie sind aufgestanden"),
    (clause("you", "look at", "it", tense="future"), "Du wirst es ansehen"),
    (clause("I", "look at", "it", late=("now", "jetzt")), "Ich sehe es jetzt an"),
    (clause("I", "read", modal=GLADLY), "Ich lese gern"),
    (clause("you", "see", "the fox", modal=CAN), "Du kannst den Fuchs sehen"),
    (
        clause("Bobby", "see", "the fox", negated=True, often=("also", "auch")),
        "Bobby sieht auch den Fuchs nicht",
    ),
    (clause("he", "buy", "a hat", negated=True), "Er kauft keinen Hut"),
]


@pytest.mark.parametrize(("made", "german"), MADE)
def test_clauses_are_put_in_order(made, german):
    text = made.in_german()
    assert text[0].upper() + text[1:] == german


def test_questions_subordinate_clauses_and_requests_have_their_order():
    made = clause("the boy", "look at", "the fox", tense="past")
    assert made.in_english(question=True) == "did the boy look at the fox"
    assert made.in_german("first") == "hat der Junge den Fuchs angesehen"
    assert made.in_german("last") == "der Junge den Fuchs angesehen hat"
    made = clause("you", "look at", "the fox", negated=True)
    assert made.in_german("last") == "du den Fuchs nicht ansiehst"
    assert made.as_request() == ("do not look at the fox", "sieh den Fuchs nicht an")


def test_a_sentence_has_one_translation(pairs):
    found = defaultdict(set)
    for english, german in pairs:
        found[english].add(german)
    assert [each for each in found.items() if len(each[1]) > 1] == []


def test_german_articles_agree_with_their_nouns(pairs):
    """Each article that stands right before a noun is one that its tables allow."""
    allowed = defaultdict(set)
    for noun in NOUN.values():
        for case in phrasebook.DEFINITE:
            for plural in (False, True) if noun.plural else (False,):
                column = phrasebook.GENDERS.index("p" if plural else noun.gender)
                word = noun.in_german(case, plural)
                allowed[word].add(phrasebook.DEFINITE[case][column])
    seen = 0
    for _, german in pairs:
        for article, word in re.findall(
            r"\b(d(?:er|ie|as|en|em)) ([A-ZÄÖÜ]\w+)", german
        ):
            if word in allowed:
                seen += 1
                assert article in allowed[word], german
    assert seen > SIZE / 4


def test_german_verbs_agree_with_pronouns(pairs):
    """After ich, du, er and wir at the beginning stands a form of that person."""
    rows = {"Ich": 0, "Du": 1, "Er": 2, "Wir": 3}
    helping = [
        *(german for _, german in everyday.TO_BE.values()),
        *everyday.PERFECT.values(),
        *(forms for _, _, forms in everyday.MODALS if forms),
        everyday.HAD,
        everyday.FUTURE,
        ("weiß", "weißt", "weiß", "wissen"),
        ("hoffe", "hoffst", "hofft", "hoffen"),
        ("sage", "sagst", "sagt", "sagen"),
        ("heiße", "heißt", "heißt", "heißen"),
    ]
    verbs = [*VERB.values(), everyday.FEED_ON, everyday.SPEAK]
    forms = [*helping, *(verb.forms for verb in verbs)]
    for _, german in pairs:
        first, _, rest = german.partition(" ")
        if first in rows and rest:
            verb = re.match(r"\w+", rest)[0]
            assert verb in {each[rows[first]] for each in forms}, german


def test_what_is_held_out_is_never_in_training(pairs):
    known = phrasebook.often_in(pairs)
    held = everyday.draw(random.Random(1), "test", 60, known)
    assert len(set(held)) == 60
    assert not set(held) & set(pairs)
    assert phrasebook.words(held) <= known
    assert not any(re.search(r"\blikes? blackberr", english) for english, _ in pairs)


def test_the_corpus_is_the_same_on_every_python(pairs):
    assert pairs[0] == ("My name is David.", "Ich heiße David.")
    assert pairs[-1] == (
        "Today you are not thin.",
        "Heute bist du nicht dünn.",
    )


def test_it_knows_at_least_1200_english_words():
    """Surface forms that training has five times or more, drawn anew."""
    train = everyday.draw(random.Random(0), "train", 20_000)
    assert len(everyday.english_words(train)) >= 1200


# --- What a page knows of it ----------------------------------------------------------


def test_sentences_are_taken_apart_into_entries():
    words = everyday_lexicon.words_of("The police officer picks up Anna's dog.")
    assert words == ["the", "police officer", "picks up", "Anna's", "dog", "."]
    names = [everyday_lexicon.classes().get(word, word) for word in words]
    assert names == ["the", "dog", "goes", "the", "dog", "."]


def test_forms_that_are_new_are_told_from_those_of_training(pairs):
    seen = everyday_lexicon.threes(pairs)
    for known in ("Does the owl like the fox?", "My red hat is here.", "Two dogs."):
        assert everyday_lexicon.threes([(known, "")]) <= seen, known
    for salad in ("Dog the likes.", "The dog dog sleeps.", "Likes the dog."):
        assert not everyday_lexicon.threes([(salad, "")]) <= seen, salad


def test_every_german_word_of_an_entry_has_an_english_one_in_the_sentence(pairs):
    """Nothing in a right translation looks made up, and nothing lost."""
    entries = list(everyday_lexicon.entries())
    said = dict(everyday.SAYINGS)
    for english, german in pairs[:1500]:
        if english in said:
            continue
        there = set(everyday_lexicon.words_of(english))
        forms = {form for entry in entries for form in entry[0]}
        for phrase in there - forms:  # every day: of its words one is an entry
            there = there | set(phrase.split())
        made = set(re.findall(r"\w+", german))
        made |= {word[0].lower() + word[1:] for word in re.findall(r"^\w+", german)}
        found = [entry for entry in entries if entry[0] & there]
        for word in there:  # of one that is a noun and a verb, either will do
            words = [words for forms, words in found if word in forms]
            assert not words or set.union(*words) & made, (english, german, word)
        free = set.union(everyday_lexicon.HELPING, *(words for _, words in found))
        known = set.union(*(words for _, words in entries))
        first = re.match(r"\w+", german)[0]
        invented = (made & known) - free - {first, first.lower()}
        assert not invented, (english, german, invented)
