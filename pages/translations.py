"""What is wrong with a translation into the phrasebook's German, in one word.

The grammar is known, so that two forms of one word can be told from two words: "meiner"
and "meinen" are one word that agrees with different things.
"""

from __future__ import annotations

import functools
import re

from workbench.data import phrasebook

RIGHT = "right"
KINDS = ("agreement", "negation", "word order", "lost or doubled", "another word")
DETERMINERS = ("ein", "mein", "dein", "sein", "ihr")
ENDINGS = ("", "e", "en", "em", "er", "es")


def words(text: str) -> list[str]:
    """Cut a sentence into words, in small letters, without punctuation."""
    return re.findall(r"\w+", text.lower())


def denials(sentence: list[str]) -> list[str]:
    """How a sentence is negated: "nicht" and "kein", whatever its ending."""
    found = [word for word in sentence if word == "nicht" or word.startswith("kein")]
    return sorted("nicht" if word == "nicht" else "kein" for word in found)


@functools.cache
def families() -> dict[str, frozenset[str]]:
    """Say of each form which words it may be a form of.

    A form may belong to several: "essen" is a verb, "der" an article of any gender.
    """
    found: dict[str, set[str]] = {}

    def add(name: str, *forms: str) -> None:
        for form in forms:
            for word in words(form):
                found.setdefault(word, set()).add(name)

    for noun in phrasebook.NOUN.values():
        cases = (noun.in_german(c, False) for c in phrasebook.DEFINITE)
        add(f"noun {noun.english}", *cases)
        if noun.plural:
            cases = (noun.in_german(c, True) for c in phrasebook.DEFINITE)
            add(f"noun {noun.english}", *cases)
    for verb in phrasebook.VERB.values():
        forms = (*verb.forms, verb.infinitive)
        joined = (verb.prefix + form for form in forms)
        add(f"verb {verb.english}", *forms, *joined)
    for english, _, of_modal in phrasebook.MODALS:
        add(f"verb {english}", *of_modal)
    for each in phrasebook.ADJECTIVE.values():
        add(f"adjective {each.english}", each.german)
        add(f"adjective {each.english}", *(each.stem + end for end in ENDINGS))
    for case in phrasebook.DEFINITE.values():
        add("the", *case)
    for stem in (*DETERMINERS, "kein"):
        add(f"determiner {stem}", *(stem + end for end in ENDINGS))
    for english, nominative, _, accusative, dative, _ in phrasebook.PRONOUNS:
        add(f"pronoun {english}", nominative, accusative, dative)
    add("verb be", "bin bist ist sind")
    return {form: frozenset(names) for form, names in found.items()}


def same_word(first: str, second: str) -> bool:
    """Whether two forms may be forms of one word."""
    known = families()
    return bool(known.get(first, frozenset()) & known.get(second, frozenset()))


def kind_of_error(reference: str, written: str) -> str:
    """Name what is wrong with a translation.

    Args:
        reference: the right one.
        written: what the model wrote.

    Returns:
        RIGHT, or the first of these that fits: "word order" (the same words),
        "negation" (nicht or kein is missing, too many, or one stands for the other),
        "lost or doubled" (fewer or more words), "agreement" (only the forms differ),
        "another word".
    """
    if reference.strip() == written.strip():
        return RIGHT
    right, found = words(reference), words(written)
    if sorted(right) == sorted(found):
        return "word order"
    if denials(right) != denials(found):
        return "negation"
    if len(right) != len(found):
        return "lost or doubled"
    pairs = [(a, b) for a, b in zip(right, found, strict=True) if a != b]
    if all(same_word(a, b) for a, b in pairs):
        return "agreement"
    return "another word"
