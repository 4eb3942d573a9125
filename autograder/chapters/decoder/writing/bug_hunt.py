"""The bug hunt: fifteen lines of a listing and what is wrong with each."""

import hashlib
import itertools

from autograder import expect
from autograder.chapters.decoder.writing.chapter import chapter
from autograder.exercise.showing import first_few
from autograder.expect import refuse, refuse_if, show
from autograder.interface import StudentFunction

NAMES = (
    "a name never assigned",
    "a tab among spaces",
    "all positions appended again",
    "argmax over positions",
    "classes on the wrong axis",
    "counts the source",
    "gradients never cleared",
    "labels not shifted",
    "multiplied by the mask",
    "no <eos>",
    "own predictions as input",
    "pointless empty leaf",
    "softmax before the loss",
    "starts from the source",
    "the graph is kept",
    "the mask hides the past",
    "the source never gets in",
)
# line -> digest of its line and name: reading this file does not spoil the hunt. Who
# tries all names finds them, as in the notebook, where the check answers for each line.
BUGS = {
    3: "7d254015f402",
    5: "afc3081ea82e",
    6: "309f644dff03",
    7: "9d1ca417ba3f",
    8: "7a7904da9afa",
    9: "98a7f3e148e9",
    10: "c9a05610ec82",
    11: "c5b6225c364e",
    12: "01e3327f7198",
    13: "90272c5efe51",
    14: "51a1c5b1249a",
    15: "92ebeafc0fb6",
    16: "6a28e414b861",
    17: "698832d460e8",
    18: "28ba2e651253",
}
QUESTIONS = {
    3: "Write down one row of target for a sentence of two words. What is the last "
    "thing that the model could learn to predict from it?",
    5: "What is the gradient of this tensor good for? What does the line promise that "
    "the next lines do not need?",
    6: "Which language does the first column hold?",
    7: "Of which sentence does the loop count the tokens?",
    8: "What should the encoder read, and what does it read here?",
    9: "Read each name in the line, and look for the line above that gives it a value.",
    10: "What does F.cross_entropy expect: logits, probabilities or logarithms?",
    11: "How many rows of scores does this line append in the first turn, how many in "
    "the second? How many are new?",
    12: "scores is (B, t, V). Which axis disappears here? What do the numbers count?",
    13: "Where do the tokens come from that the decoder reads in the next turn? Are "
    "they those of the true translation?",
    14: "What is the loss of a row of logits that are all 0? Is it left out?",
    15: "Compare the first label with the first prediction: which token do they mean?",
    16: "collected is (B, T, V). On which axis does F.cross_entropy look for classes?",
    17: "Does Python read this line at all? The arrow is a character, too.",
    18: "What does backward() do with gradients that are there already? Which call is "
    "missing before the next batch?",
}


def _is_bug(line: int, name: str) -> bool:
    digest = hashlib.sha256(f"{line} {name}".encode()).hexdigest()
    return BUGS.get(line) == digest[:12]


@chapter.check(section="decoder-bug-hunt")
def find_bugs(student: StudentFunction, seed: int = 0) -> None:
    """Check each line's name; ``seed`` changes nothing, the listing is always this."""
    found, on = student(), "the listing, lines 1 to 19"
    if not isinstance(found, dict):
        expect.equal(found, {}, on=on)
    _expect_lines(found, on)
    for line, name in found.items():
        got = f"line {line}: {show(name)}"
        why = (
            "Copy the name from the table of the exercise, letter by letter, without "
            "the backticks."
        )
        say = {"on": on, "got": got, "expected": "a name of the table"}
        known = isinstance(name, str) and name in NAMES
        refuse_if(not known, "a name that the table does not have", why, **say)
    _expect_names_once(found, on)
    wrong = [line for line in found if line in BUGS and not _is_bug(line, found[line])]
    _expect_no_exchange(found, wrong, on)
    for line in sorted(found):
        why = (
            "Fifteen lines have a bug; four do what they should. Ask of this one: what "
            "would go wrong if it were the only suspicious line of its loop?"
        )
        say = {"on": f"line {line}", "got": show(found[line]), "expected": "no bug"}
        refuse_if(line not in BUGS, "a line that is right", why, **say)
    for line in sorted(wrong):
        name = found[line]
        fits = any(_is_bug(other, name) for other in BUGS)
        title = "a bug on another line" if fits else "a name that fits nowhere"
        why = QUESTIONS[line]
        if not fits:
            why = f"Two names of the table are not in the listing. {why}"
        refuse(title, why, on=f"line {line}", got=show(name), expected="another name")
    missing = sorted(BUGS.keys() - found.keys())
    if missing:
        why = f"The {len(found)} that you named are right. {QUESTIONS[missing[0]]}"
        got = f"{len(found)} lines, without line {missing[0]}"
        refuse("not all bugs are named", why, on=on, got=got, expected="15 lines")


def _expect_lines(found: dict, on: str) -> None:
    """Expect line numbers from 1 to 19 as keys."""
    say = {"on": on, "expected": "line number -> name"}
    turned = bool(found) and all(isinstance(line, str) for line in found)
    why = "The keys are the numbers of the lines, and the values are the names."
    got = f"the keys {first_few(map(repr, found), 2)}"
    refuse_if(turned, "lines and names exchanged", why, got=got, **say)
    for line in found:
        good = type(line) is int and 1 <= line <= 19
        if line == 0 or not good:
            why = "The lines are numbered as printed, from 1 to 19."
            refuse("a line that is not there", why, got=f"line {show(line)}", **say)
    shifted = len(found) > 3 and all(_is_bug(k + 1, v) for k, v in found.items())
    why = "Your names are right, each one line too early: the first line printed is 1."
    got = f"lines {min(found, default=0)} to {max(found, default=0)}"
    refuse_if(shifted, "lines counted from 0", why, got=got, **say)


def _expect_names_once(found: dict, on: str) -> None:
    for one, two in itertools.combinations(sorted(found), 2):
        if found[one] == found[two]:
            why = (
                "Each name fits one line at most. Keep it where the bug is first made, "
                "and look at the other line again."
            )
            got = f"lines {one} and {two}: {show(found[one])}"
            expected = "fifteen different names"
            refuse("one name for two lines", why, on=on, got=got, expected=expected)


def _expect_no_exchange(found: dict, wrong: list[int], on: str) -> None:
    for one, two in itertools.combinations(sorted(wrong), 2):
        if _is_bug(one, found[two]) and _is_bug(two, found[one]):
            why = f"Read both again. Line {one}: {QUESTIONS[one]}"
            got = f"line {one}: {show(found[one])}, line {two}: {show(found[two])}"
            expected = "the other way round"
            name = "two lines have each other's names"
            refuse(name, why, on=on, got=got, expected=expected)
