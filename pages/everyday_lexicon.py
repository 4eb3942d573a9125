"""What a page has to know of the everyday corpus to say whether a sentence is of it.

Two things are kept. The *classes* of the English words, and which three of them stand
beside each other in training: a sentence with three others has a form that the model
never learned. And the *entries*: which German forms each English form can become, so
that a translation that lost a word, or made one up, is found without knowing German.
"""

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from workbench.data import everyday, phrasebook
from workbench.data import everyday_words as tables
from workbench.data.everyday import ADJECTIVE, NOUN, VERB, Clause, Pair

BEFORE, AFTER = "^", "$"  # stand before the first word, and after the last
GROUPS = {  # what readers find together: a heading, and kinds of nouns
    "people": ("person", "child"),
    "animals": ("animal",),
    "food and drink": ("fruit", "food", "drink"),
    "things": ("thing", "clothes", "text"),
    "body and nature": ("body", "nature"),
    "places": ("place", "into", "zu"),
    "ideas": ("idea",),
}
SMALL = {  # words of one kind that no table holds together
    "I": "I",  # "My sister and I are" has a verb that no "I" has elsewhere
    "we": "we they",
    "he": "he she",
    "him": "me him us them",
    "is": "is was",
    "are": "are were",
    "can": "can must should will",
    "because": "because but if",
    "very": "very too",
    "where": "where when why",
}
WISSEN = "weiß weißt wissen"
GLAUBEN = "glaube glaubst glaubt glauben"
MORE_GERMAN = {  # what a verb becomes elsewhere: I think that, I like to, I have to
    "think": GLAUBEN,
    "know": WISSEN,
    "like": "gern möchte möchtest möchten",
    "have": "muss musst müssen",
}
MODALS = {
    "must": "muss musst müssen",
    "can": "kann kannst können",
    "cannot": "kann kannst können",
    "should": "sollte solltest sollten",
}
# What is also said where no English word asks for it: auxiliaries, "I am from", names
HELPING = {"komme", "kommst", "kommt", "kommen", "heiße", "geht"}
HELPING |= {form for forms in everyday.PERFECT.values() for form in forms}
VERBS = [*VERB.values(), everyday.SPEAK]


def words_of(english: str) -> list[str]:
    """Take a sentence apart: words, and the sign at its end.

    The first word is written as inside a sentence, unless it is always so. Words that
    are one entry of the tables, as "police officer", are not taken apart.
    """
    words = re.findall(r"[\w']+|[.?]", english)
    if words[0] not in always_capital():
        words[0] = words[0].lower()
    known, found = classes(), []
    while words:
        size = next(n for n in (3, 2, 1) if n == 1 or " ".join(words[:n]) in known)
        found.append(" ".join(words[:size]))
        del words[:size]
    return found


@functools.cache
def always_capital() -> set[str]:
    """Return words that have a capital wherever they stand."""
    owners = {f"{name}'s" for name in everyday.NAMES}
    places = {each for name in everyday.COUNTRY for each in name.split()}
    days = {"Monday", "Sunday", "Mondays", "Sundays"}
    return {"I", *everyday.NAMES, *owners, *places, *tables.LANGUAGES, *days}


def forms_of(verb: everyday.Verb) -> list[tuple[str, str]]:
    """Give the English forms of a verb, and the class of each; cut has two."""
    third = Clause.third_person(verb.english)
    names = ("go", "goes", "went", "going")
    return list(zip((verb.english, third, verb.past, verb.doing), names, strict=True))


def giving() -> list[str]:
    """Give the English words of which two nouns follow: give the dog a bone; to be."""
    gifts = [verb for verb in VERBS if "gift" in verb.uses]
    to_be = {form for english, _ in everyday.TO_BE.values() for form in english}
    return sorted({form for verb in gifts for form, _ in forms_of(verb)} | to_be)


def unsaid() -> list[str]:
    """Give two words beside each other that mean something else than in the corpus."""
    verbs = [verb for verb in VERBS if verb.english in ("wait", "ask", "pay", "think")]
    return sorted(f"{form} for" for verb in verbs for form, _ in forms_of(verb))


def digits() -> dict[str, str]:
    """Give the words of numbers in figures: 2 -> two."""
    names = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return {str(n): name for n, name in enumerate(names, 2)} | {"12": "twelve"}


@functools.cache
def classes() -> dict[str, str]:
    """Give the class of each English word that has others beside it in a class.

    A word of several classes has both, with a stroke between them.
    """
    found = defaultdict(set)
    for noun in NOUN.values():
        kind = "park" if {"into", "zu"} & set(noun.kinds) else "dog"
        found[noun.english].add(kind if noun.plural else "water")
        if noun.plural:
            found[noun.several].add(f"{kind}s")
    for verb in VERBS:
        for form, name in forms_of(verb):
            found[form].add(name)
    lists: dict[str, Iterable[str]] = {
        "big": ADJECTIVE,
        "Anna": [*everyday.NAMES, *tables.LANGUAGES],
        "Berlin": everyday.COUNTRY,
        "the": [
            *("the", "a", "an", "every"),
            *(each for each in everyday.POSSESSIVES if each != "her"),  # or an object
            *(f"{name}'s" for name in everyday.NAMES),
        ],
        "some": [*everyday.SEVERAL, *tables.NUMBERS],
        "often": tables.OFTEN,
        "today": [
            *(each[0] for each in tables.LATE),
            *(each[0].lower() for each in phrasebook.ADVERBIALS),
        ],
        "here": tables.HERE,
        "with": [each[0] for each in (*everyday.PREPOSITIONS.values(), *everyday.WITH)],
    }

    for name, words in (lists | {k: v.split() for k, v in SMALL.items()}).items():
        for word in words:
            found[word].add(name)
    return {word: "|".join(sorted(kinds)) for word, kinds in found.items()}


def threes(pairs: Iterable[Pair]) -> set[tuple[str, str, str]]:
    """Collect which three classes stand beside each other in English sentences.

    A word of several classes counts as a class of its own; so does any other word.
    """
    known = classes()
    found: set[tuple[str, str, str]] = set()
    for english, _ in pairs:
        row = [BEFORE, *(known.get(word, word) for word in words_of(english)), AFTER]
        found.update(zip(row, row[1:], row[2:], strict=False))
    return found


def entries() -> Iterator[tuple[set[str], set[str]]]:
    """Yield the English forms of each noun, verb and adjective, and the German ones.

    Of what is several words in English, the first that carries meaning stands for it.
    """
    cases = phrasebook.DEFINITE
    for noun in NOUN.values():
        german = {noun.in_german(case, False) for case in cases}
        english = {noun.english}
        if noun.plural:
            english.add(noun.several)
            german |= {noun.in_german(case, True) for case in cases}
        if "trade" in noun.kinds:
            word = everyday.feminine(noun)
            german |= {word, f"{word}nen"}
        yield english, german
    for verb in VERBS:
        german = german_forms(verb)
        german |= set(MORE_GERMAN.get(verb.english, "").split())
        if verb.english == "eat":
            german |= german_forms(everyday.FEED_ON)
        yield {form for form, _ in forms_of(verb)}, german
    for word, translated in MODALS.items():
        yield {word}, set(translated.split())
    for word, translated in (tables.NUMBERS | everyday.SEVERAL).items():
        yield {word}, {translated, f"{translated}n"}
    for name in everyday.NAMES:
        yield {name, f"{name}'s"}, {name, f"{name}s"}
    for word, translated in (everyday.COUNTRY | tables.LANGUAGES).items():
        yield {word}, {translated}
    for adjective in ADJECTIVE.values():
        endings = ("", "e", "en", "er", "es", "em")
        german = {adjective.german, *(adjective.stem + end for end in endings)}
        yield {adjective.english}, german


def german_forms(verb: everyday.Verb) -> set[str]:
    """Give the forms of a German verb, with its prefix and without."""
    forms = {*verb.forms, verb.command(), verb.infinitive}
    joined = {verb.prefix + form for form in (*verb.forms, verb.infinitive)}
    past = set(everyday.HAD) if verb.infinitive == "haben" else {verb.participle}
    return forms | joined | past


def groups() -> dict[str, list[str]]:
    """Give the words that a reader may choose from, under headings."""
    found: dict[str, list[str]] = {}
    taken: set[str] = set()
    for name, kinds in GROUPS.items():
        fitting = {n.english for n in NOUN.values() if set(kinds) & set(n.kinds)}
        found[name] = sorted(fitting - taken)
        taken |= fitting
    found["to do"] = sorted(VERB)
    found["to be"] = sorted(ADJECTIVE)
    found["names"] = [*everyday.NAMES, *everyday.COUNTRY, *tables.LANGUAGES]
    return found
