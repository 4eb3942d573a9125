"""The tales: what a reader can know is what they say, and nothing of the test is told.

What is right is found here by reading the stories, not by how they were made.
"""

import hashlib
import random
import re

import pytest

from workbench.data.tales import stories
from workbench.data.tales.stories import KINDS, Telling, prompts

GIRLS = [
    "Mia",
    "Anna",
    "Lotte",
    "Clara",
    "Ida",
    "Nora",
    "Rosa",
    "Emma",
    "Greta",
    "Ella",
    "Lina",
    "Marie",
]
NUMBERS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
]
FRIENDS = re.compile(r"(?:friends, |Long ago |lived |story of )(\w+) and (\w+)")
COUNTED = re.compile(
    r"(\w+) (\w+) (?:sat in|on a wall|were dancing|came down).*?"
    r"(One|Two) (of them|more)"
)


def text_of(split: str) -> str:
    return "".join(story.text for story in stories.stories(split))


def having(story: str) -> str:
    """The thing of the one who was named last."""
    owner = max(FRIENDS.search(story).groups(), key=story.rfind)
    return " " + re.search(rf"\b{owner}\b[^,.]*? an? \w+ (\w+)", story)[1]


def pronoun(story: str) -> str:
    """He, she, his or her, by the name of who does what the last sentence tells."""
    sentence = re.split(r"[.\"] ", story)[-1]
    # after "Next to Max," or "When Max was asleep," comes who it is about
    before = re.match(r"(?:Next to|When|After a song for) [^,]*, ", sentence)
    name = re.match(r"\w+", sentence[before.end() :] if before else sentence)[0]
    assert name in FRIENDS.search(story).groups(), sentence
    waits_for_a_verb = re.search(r"(that|for)$", sentence)
    words = (" she", " he") if waits_for_a_verb else (" her", " his")
    return words[name not in GIRLS]


def counting(story: str) -> str:
    many, animals, some, way = COUNTED.search(story).groups()
    change = NUMBERS.index(some.lower()) * (1 if way == "more" else -1)
    left = NUMBERS.index(many.lower()) + change
    if left == 1:
        return " was one " + {"geese": "goose", "mice": "mouse", "foxes": "fox"}.get(
            animals, animals.removesuffix("s")
        )
    return f" were {NUMBERS[left]} {animals}"


def verb(story: str) -> str:
    subject = re.findall(r"The (\w+) ", story)[-1]
    return " were" if subject in ("geese", "mice") or subject.endswith("s") else " was"


def quotes(story: str) -> str:
    opened = story[story.rindex('"') :].count("'")
    return ".'\"" if opened % 2 else '."'


ORACLES = {each.__name__: each for each in (having, pronoun, counting, verb, quotes)}


@pytest.mark.parametrize("kind", KINDS)
def test_each_right_answer_follows_from_what_was_told(kind):
    found = prompts(stories.stories("test"))[kind]
    shared = kind in ("verb", "quotes")  # a story has one of these two
    assert len(found) >= (150 if shared else 500)
    for prompt in found:
        assert prompt.right == ORACLES[kind](prompt.text), prompt
        assert prompt.right not in prompt.alternatives and prompt.alternatives
        assert not prompt.text.endswith(" ")
    assert len({prompt.right for prompt in found}) > 1


def pairs_in(text: str) -> dict[str, set[tuple[str, str]]]:
    """Read all pairs of words out of a text."""
    numbers = "|".join(NUMBERS[1:])
    counted = re.findall(rf"\b({numbers}) (\w+)", text.lower())
    places = r"The (\w+) (?:near|that lived behind|on the other side of|they met at) "
    places += r"(the (?:old mill|stone bridge|[a-z]+ [a-z]+(?= w)|\w+))"
    said = r"(?:said|asked|Then) (the [\w ]+?)[.,]? ?(?:looked.*?said,)?(?:\"|, \").*?"
    said += r"([A-Z][\w ]+)\.'?\""
    return {
        "friends": {(x, y) if x in GIRLS else (y, x) for x, y in FRIENDS.findall(text)},
        "counted": {pair for pair in counted if pair[1] not in ("more", "of", "thing")},
        "place": set(re.findall(places, text)),
        "said": set(re.findall(said, text)),
    }


def test_no_pair_of_the_test_is_trained():
    train, test = pairs_in(text_of("train")), pairs_in(text_of("test"))
    for kind, pairs in test.items():
        assert len(train[kind]) > 50, kind
        if kind == "counted":  # the result may be known: only the beginning is new
            pairs = {(x.lower(), y) for x, y, *_ in COUNTED.findall(text_of("test"))}
        assert len(pairs) >= (10 if kind == "counted" else 15), kind
        assert not pairs & train[kind], kind
        for place in (0, 1):  # new in their combination, not in themselves
            assert {x[place] for x in pairs} <= {x[place] for x in train[kind]}, kind


def test_the_tales_are_the_same_everywhere_and_large_enough():
    text = text_of("train")
    assert len(text.encode()) > 2_000_000 and text.isascii()
    assert len(set(text.split("\n"))) == 4001  # each story once; it ends in a newline
    sums = {
        split: hashlib.sha256(text_of(split).encode()).hexdigest()[:8]
        for split in stories.STORIES
    }
    assert sums == {"train": "e3aea2f2", "validation": "80bd9af2", "test": "0fed006c"}


def test_an_agreement_stands_where_it_says():
    for story in stories.stories("validation"):
        for each in story.agreements:
            assert story.text[each.start :].startswith(each.right)
        kinds = {each.kind for each in story.agreements}
        assert kinds | {"verb", "quotes"} == set(KINDS)  # one of these two
        assert len(kinds & {"verb", "quotes"}) == 1
        assert story.text.index("\n") == len(story.text) - 1


def test_one_story_needs_no_other():
    alone = Telling("train", random.Random("tales train")).tell()
    assert alone == stories.stories("train")[0]
