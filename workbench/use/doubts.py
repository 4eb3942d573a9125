"""What speaks against a translation, as far as the command line can know it."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Sequence, Set
from pathlib import Path

from workbench.data.texts import GRAMMARS
from workbench.training import records
from workbench.use.translator import Translation

# Sentences of a grammar in which all of its English words are found: most sentences are
# made of words of the first ones, and the others take two seconds to write.
FEW, ALL = 4000, 20_000
WORD = re.compile(r"\w+(?:'\w+)*|[^\w\s]")  # or a sign


def notes(translation: Translation, unread: Sequence[str]) -> list[str]:
    """Say in a line each what speaks against a translation.

    Args:
        translation: of a sentence.
        unread: the words of the sentence that the model has never read.
    """
    found = []
    if unread:
        found.append(f"the model has never read {', '.join(map(quoted, unread))}")
    if not translation.ended:
        found.append(f"stopped after {len(translation.ids)} tokens without an end")
    return found


def belief(probability: float) -> str:
    """Say how probable a translation is, as the page of chapter 9 does."""
    return f"the model gives this translation a probability of {probability:.2f}"


def quoted(word: str) -> str:
    """Put a word into quotation marks."""
    return f"“{word}”"


def unread_words(
    folder: Path, language: str, sentences: Sequence[str]
) -> list[list[str]]:
    """List the words of each sentence that a translator has never read.

    They are known where it learned from a grammar of the course, whose sentences can be
    written again, and reads English. Elsewhere nothing is listed: German has forms that
    are found in all of the sentences alone, and other data may not be there any more.

    Args:
        folder: of the translator; its record says what it learned from.
        language: that it reads.
        sentences: N texts.
    """
    name = learned_from(folder)
    if name not in GRAMMARS or language != "en":
        return [[] for _ in sentences]
    for size in (FEW, ALL):
        known = english_words(name, size)
        found = [unread(sentence, known) for sentence in sentences]
        if not any(found):
            break
    return found


def learned_from(folder: Path) -> str:
    """Name the data of a run; an empty text: nobody has noted them."""
    path = folder / records.FILE
    return str(records.read(path)["data"].get("name")) if path.is_file() else ""


@functools.cache
def english_words(grammar: str, size: int) -> frozenset[str]:
    """Return the English words and signs that training begins with, as written.

    Args:
        grammar: its name.
        size: so many sentences are read.
    """
    pairs = GRAMMARS[grammar].draw(random.Random(0), "train", size, set())
    return frozenset(word for english, _ in pairs for word in WORD.findall(english))


def unread(sentence: str, known: Set[str]) -> list[str]:
    """List the words of a sentence that are unknown as they are written, once each.

    The first word of a sentence is known if it is so in small letters.
    """
    words = WORD.findall(sentence)
    found = dict.fromkeys(word for word in words if word not in known)
    if words and words[0][0].lower() + words[0][1:] in known:
        found.pop(words[0], None)
    return list(found)
