"""Tell stories by the grammar, and note where agreement decides what comes next.

The splits differ in combinations, not in words. Who is whose friend, how many of which
animal, which animal is where, who says which proverb: each such pair of words belongs
to one split once and for all (``split_of``). A test story is told with pairs of the
test split alone: two who meet in it never met in training, while each of them was in
many stories.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.data.tales import grammar, words

STORIES = {"train": 4000, "validation": 100, "test": 500}
SHARES = 16  # of the pairs: two for the test, one for validation, the rest to train
TEST, VALIDATION = {0, 8}, {4}
STEP = 5  # any odd number spreads a word's pairs over all shares
PLACE = re.compile(r"\{([\w.]+)\}|<([\w.]+)>")
CLOSE = {False: '."', True: ".'\""}  # without and with a quote inside the quote
KINDS = {  # what is tested, and the words of the grammar that test it
    "having": ("thing",),
    "pronoun": ("they", "their"),
    "counting": ("left",),
    "verb": ("are",),
    "quotes": ("close",),
}


@dataclass(frozen=True)
class Agreement:
    """A place in a story where what was told before decides what comes next.

    ``right`` begins at ``start``, with the space before it; the alternatives are as
    good in themselves, and wrong here.
    """

    kind: str
    start: int
    right: str
    alternatives: tuple[str, ...]


@dataclass(frozen=True)
class Story:
    """A story, which ends in a newline, and its agreements from left to right."""

    text: str
    agreements: tuple[Agreement, ...]


@dataclass(frozen=True)
class Prompt:
    """The beginning of a story, and how it must go on."""

    kind: str
    text: str
    right: str
    alternatives: tuple[str, ...]


@functools.cache
def stories(split: str) -> tuple[Story, ...]:
    """Tell the stories of a split: train, validation or test."""
    generator = random.Random(f"tales {split}")
    return tuple(Telling(split, generator).tell() for _ in range(STORIES[split]))


def prompts(told: Sequence[Story]) -> dict[str, list[Prompt]]:
    """Cut stories before each agreement, by kind."""
    found: dict[str, list[Prompt]] = {kind: [] for kind in KINDS}
    for story in told:
        for each in story.agreements:
            begun = story.text[: each.start]
            found[each.kind].append(
                Prompt(each.kind, begun, each.right, each.alternatives)
            )
    return found


@functools.cache
def split_of(first: str, second: str) -> str:
    """Say to which split a pair of words belongs.

    In the table of all pairs the shares are diagonals, so that no word misses many of
    its partners: who has seen *cats* with two numbers alone cannot know of others.
    """
    share = (places()[first] + STEP * places()[second]) % SHARES
    if share in TEST:
        return "test"
    return "validation" if share in VALIDATION else "train"


@functools.cache
def places() -> dict[str, int]:
    """Return the place of each word that is paired in its list."""
    animals = [one for one, _ in words.ANIMALS]
    lists = [words.GIRLS, words.BOYS, words.NUMBERS, animals, words.SPOTS]
    lists += [words.TELLERS, words.PROVERBS]
    return {word: place for each in lists for place, word in enumerate(each)}


@functools.cache
def pairs_of(split: str, firsts: tuple[str, ...], seconds: tuple[str, ...]) -> list:
    """Return the pairs of a split."""
    pairs = [(first, second) for first in firsts for second in seconds]
    return [pair for pair in pairs if split_of(*pair) == split]


@dataclass(frozen=True)
class Friend:
    """One of the two whom a story is about."""

    name: str
    look: str
    thing: str
    girl: bool

    @property
    def a_thing(self) -> str:
        """The thing when it is first told of: "an old kite"."""
        article = "an" if self.look[0] in "aeiou" else "a"
        return f"{article} {self.look} {self.thing}"

    @property
    def they(self) -> str:
        """He or she."""
        return "she" if self.girl else "he"

    @property
    def their(self) -> str:
        """His or her."""
        return "her" if self.girl else "his"


class Telling:
    """All that is drawn for one story."""

    def __init__(self, split: str, generator: random.Random) -> None:
        """Draw friends and advice from the pairs of a split."""
        self.split, self.random = split, generator
        self.friends = self.two_friends()
        teller, proverb = self.pair(words.TELLERS, words.PROVERBS)
        self.values = {"teller": teller, "proverb": proverb}
        self.values["mood"] = generator.choice(words.MOODS)
        self.values["elder"] = generator.choice(words.ELDERS)

    def pair(self, firsts: Sequence[str], seconds: Sequence[str]) -> tuple[str, str]:
        """Draw one of the split's pairs."""
        return self.random.choice(pairs_of(self.split, tuple(firsts), tuple(seconds)))

    def two_friends(self) -> list[Friend]:
        """Draw a girl and a boy, in either order, and a thing for each."""
        names = self.pair(words.GIRLS, words.BOYS)
        things = self.random.sample(words.THINGS, 2)
        drawn = [
            Friend(name, self.random.choice(words.LOOKS), thing, name in words.GIRLS)
            for name, thing in zip(names, things, strict=True)
        ]
        return self.random.sample(drawn, 2)

    def draw_animals(self, coming: bool) -> None:
        """Draw those who are counted, and those who are met."""
        plural = dict(words.ANIMALS)
        while True:
            many, animal = self.pair(words.NUMBERS[1:7], [*plural])
            count = words.NUMBERS.index(many) + 1
            some = self.random.choice([1, 2]) if coming or count > 2 else 1
            left = count + some if coming else count - some
            # "three geese" must not be trained as a result, either
            of_split = split_of(words.NUMBERS[left - 1], animal)
            if of_split == "train" or self.split != "train":
                break
        self.animal, self.plural, self.left = animal, plural[animal], left
        self.values["many"] = f"{many} {self.plural}"
        self.values["some"] = words.NUMBERS[some - 1]
        creature, spot = self.pair([x for x in plural if x != animal], words.SPOTS)
        several = self.random.random() < 0.5
        self.values["creatures"] = plural[creature] if several else creature
        self.values["spot"], self.values["are"] = spot, "were" if several else "was"

    # --- telling ----------------------------------------------------------------------

    def tell(self) -> Story:
        """Put the scenes together."""
        middle = [self.random.choice(scenes) for scenes in grammar.MIDDLE]
        self.random.shuffle(middle)
        self.draw_animals(coming="coming" in middle)
        text, agreements = "", []
        order: dict[str, list] = {}
        told = set()
        for scene in [*grammar.BEGINNING, *middle, *grammar.END]:
            # the second time the other friend's turn, in other words
            friends = order.get(scene) or self.random.sample(self.friends, 2)
            order[scene] = friends[::-1]
            sentence = self.random.choice([x for x in lines_of(scene) if x not in told])
            told.add(sentence)
            text, found = self.write(scene, sentence, friends, text)
            agreements += found
            text += "\n" if scene == grammar.END[-1] else " "
        return Story(text, tuple(agreements))

    def write(
        self, scene: str, sentence: str, friends: Sequence[Friend], text: str
    ) -> tuple[str, list[Agreement]]:
        """Append a sentence with its words to a text; return the agreements in it."""
        found, last = [], 0
        for match in PLACE.finditer(sentence):
            text += sentence[last : match.start()]
            last = match.end()
            plain, tested = match.groups()
            right, *others = self.words_for(plain or tested, scene, friends)
            if tested:
                space = " " * text.endswith(" ")
                spaced = tuple(space + other for other in others)
                start = len(text) - len(space)
                found.append(Agreement(kind_of(tested), start, space + right, spaced))
            text += right
        return text + sentence[last:], found

    def words_for(self, key: str, scene: str, friends: Sequence[Friend]) -> list[str]:
        """Return the words that stand for a key, and what could stand there as well."""
        who, _, what = key.partition(".")
        if who in ("one", "other"):
            both = friends if who == "one" else friends[::-1]
            return [getattr(each, what or "name") for each in both]
        if key == "left":
            others = [n + 1 for n in range(len(words.NUMBERS)) if n + 1 != self.left]
            return [self.there_are(number) for number in (self.left, *others)]
        if key == "are":
            return [self.values["are"], *({"was", "were"} - {self.values["are"]})]
        if key == "close":
            inside = scene == "retelling"
            return [CLOSE[inside], CLOSE[not inside]]
        value = self.values[key.lower()]
        return [value[0].upper() + value[1:] if key[0].isupper() else value]

    def there_are(self, number: int) -> str:
        """Say how many there are: "were three geese"."""
        if number == 1:
            return f"was one {self.animal}"
        return f"were {words.NUMBERS[number - 1]} {self.plural}"


@functools.cache
def lines_of(scene: str) -> list[str]:
    """Return the sentences of a scene."""
    return [line.strip() for line in grammar.SCENES[scene].strip().splitlines()]


def kind_of(key: str) -> str:
    """Return the kind of agreement that words of the grammar test."""
    name = key.rpartition(".")[2]
    return next(kind for kind, keys in KINDS.items() if name in keys)
