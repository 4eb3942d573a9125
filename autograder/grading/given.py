"""Who is judged once more, with which right answers given, and what these may be asked.

An answer that fails may be right in itself and use an earlier one that is wrong. Then
it is judged again with a right one in its place, of which the student's process only
gets a stand-in (``autograder.boundary.given``). The policy, on the trusted side:

- Judged again is what failed, is not as it was handed out, uses a name of another
  answer that failed, and has a right answer that uses this name, too.
- While an exercise's cell runs or is checked, the names that its own right answer uses,
  directly or through other answers, may be asked for, and those that its checks hand to
  it; in other cells, none.
- The points are for what passes its whole check and has asked. A wrong answer of one's
  own keeps its 0: while it is checked, its names are the student's.

So a stand-in gives nothing but what a right earlier answer would have given. To hand it
in under another name earns nothing: an exercise may ask for no name of its own, and for
others only where its right answer does the same. Who breaks an answer on purpose loses
its points, and gets for the rest what the rest is worth. A student's code may find out
values of right answers, while nothing that it shows is kept.

Not judged again: what needs something that cannot be asked as data, such as a model
that an answer is called with; what calls a stand-in from another thread, or inside of
``vmap``; what differentiates it twice; and an answer that uses an earlier one where the
right answer does without.
"""

import ast
import atexit
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import nbformat
import torch

from autograder.boundary.given import is_plain, tensors_of
from autograder.grading.needless import binds, reads
from autograder.grading.paper import Paper, exercise_of
from autograder.grading.reference import NoReferenceError, Reference, RightAnswers
from autograder.interface import Data

QUESTIONS = 20_000  # of a submission
SECONDS = 30  # of processor time for all of them
ELEMENTS = 4_000_000  # of all tensors of a question
ITEMS = 100_000  # of all its lists and dicts
NAME = 1_000  # characters of anything that names something
DTYPES = {
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
}


# --- who uses what --------------------------------------------------------------------


@dataclass(frozen=True)
class Answers:
    """The right answers of a paper, and who uses whom.

    Args:
        code: all that it takes to run them.
        owner: the exercise that defines a name.
        uses: by exercise, the other exercises' names that its right answer needs, or
            that its checks hand to it.
        checks: by exercise, the text of its checks.
    """

    code: RightAnswers
    owner: dict[str, str]
    uses: dict[str, frozenset[str]]
    checks: dict[str, str]


def answers_of(paper: Paper) -> Answers:
    """Read the right answers out of a paper; it holds them wherever it is graded."""
    known = _known.get(paper.chapter)
    if known is None or known[0] != paper:
        known = _known[paper.chapter] = paper, _read(paper)
    return known[1]


_known: dict[str, tuple[Paper, Answers]] = {}  # all of a class have the same paper


def _read(paper: Paper) -> Answers:
    own: list[str] = []
    answers: dict[str, str] = {}
    checks: dict[str, str] = {}
    for cell in nbformat.reads(paper.source, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        grading = cell.metadata.get("nbgrader", {})
        if grading.get("solution"):
            answers[grading.grade_id] = cell.source
            own.append(cell.source)
        elif grading.get("grade"):
            exercise = exercise_of(grading.grade_id)
            checks[exercise] = f"{checks.get(exercise, '')}\n{cell.source}"
        elif cell.metadata.get("course", {}).get("module"):
            own.append(cell.source)
    owner = {name: each for each, text in answers.items() for name in defined(text)}
    uses = {
        exercise: frozenset(
            name
            for name in reached(f"{text}\n{checks.get(exercise, '')}", own)
            if owner.get(name, exercise) != exercise
        )
        for exercise, text in answers.items()
    }
    code = RightAnswers(paper.parts, tuple(own), tuple(owner))
    return Answers(code, owner, uses, checks)


def defined(text: str) -> list[str]:
    """Name the functions and classes that a cell defines for others."""
    kinds = ast.FunctionDef, ast.ClassDef
    return [node.name for node in ast.parse(text).body if isinstance(node, kinds)]


def reached(text: str, cells: Iterable[str]) -> set[str]:
    """Name what a cell may use, directly or through what other cells define."""
    by_name: dict[str, list[str]] = {}
    for cell in cells:
        for name in binds(cell):
            by_name.setdefault(name, []).append(cell)
    found: set[str] = set()
    waiting = [text]
    while waiting:
        new = reads(waiting.pop()) - found
        found |= new
        waiting += [cell for name in new for cell in by_name.get(name, ())]
    return found


@dataclass(frozen=True)
class Plan:
    """What to judge again.

    Args:
        again: by exercise, the names that are given to it.
    """

    again: dict[str, frozenset[str]]

    @property
    def names(self) -> frozenset[str]:
        """All names that are given to anybody."""
        return frozenset().union(*self.again.values())


def plan(
    answers: Answers,
    failed: Iterable[str],
    written: Mapping[str, str],
    cells: Iterable[str],
) -> Plan:
    """Say which exercises to judge again.

    Args:
        answers: of the paper.
        failed: the exercises that have failed a check.
        written: by exercise, the answers that are not as they were handed out.
        cells: all code of the notebook.
    """
    failed, cells = set(failed), list(cells)
    wrong = {name for name, exercise in answers.owner.items() if exercise in failed}
    again = {}
    for exercise in failed & written.keys():
        given = answers.uses.get(exercise, frozenset()) & wrong
        text = f"{written[exercise]}\n{answers.checks.get(exercise, '')}"
        if given and given & reached(text, cells):
            again[exercise] = given
    return Plan(again)


# --- what they may be asked -----------------------------------------------------------


class Given:
    """Answers what a submission's process asks of right answers, or refuses.

    ``asked`` holds the names that the exercise whose turn it is has asked for, in its
    cell and in its checks.

    Args:
        reference: knows the right answers.
        plan: who may ask for what.
    """

    def __init__(self, reference: Reference, plan: Plan) -> None:
        self._reference, self._plan = reference, plan
        self._permitted: frozenset[str] = frozenset()
        self._asked: dict[str, set[str]] = {}
        self._questions, self._seconds = QUESTIONS, float(SECONDS)
        self.turn("")

    def turn(self, exercise: str) -> None:
        """Say whose cell or check is run now; "" is nobody's."""
        self._permitted = self._plan.again.get(exercise, frozenset())
        self.asked = self._asked.setdefault(exercise, set())

    def describe(self, names: Iterable[str]) -> dict[str, Data]:
        """Describe those of the names that can be given.

        Raises:
            NoReferenceError: nobody knows them.
        """
        known = self._reference.describe()
        return {name: known[name] for name in names if name in known}

    def answer(self, question: Data) -> dict:
        """Answer a question, which may be anything; raise nothing."""
        try:
            self._count()
            _check(question)
            if question["name"] not in self._permitted:
                raise _Refused("it is not given here")
            found = self._reference.ask(question)
        except _Refused as error:
            return {"refused": str(error)}
        except NoReferenceError:
            self._questions = 0  # whoever kills it once gets no second try
            return {"refused": "it took too much"}
        self._seconds -= found.pop("seconds")
        if "refused" not in found:
            self.asked.add(question["name"])
        return found

    def _count(self) -> None:
        self._questions -= 1
        if self._questions < 0 or self._seconds < 0:
            raise _Refused("too many questions")


class _Refused(Exception):
    """A question is not answered; the text says why."""


_TEXTS = ("do", "name", "method", "path")
_FORMS = {  # of a question's entries
    **dict.fromkeys(_TEXTS, str),
    **{"args": tuple, "kwargs": dict, "state": dict, "modes": dict},
    **{"build": tuple, "seed": int, "wanted": list, "cotangents": tuple},
}
_MODULE = {"build", "path", "method", "modes"}
_CALL = {"do", "name", "seed", "args", "kwargs", "state", "wanted"}
_ENTRIES = {
    "build": ({"do", "name", "seed", "build"},),
    "call": (_CALL, _CALL | _MODULE),
    "pull": (_CALL | {"cotangents"}, _CALL | _MODULE | {"cotangents"}),
}


def _check(question: Data) -> None:
    """Refuse what does not have the form of a question, or is too large."""
    _expect(type(question) is dict and type(question.get("do")) is str)
    _expect(question.keys() in _ENTRIES.get(question["do"], ()))
    _expect(all(type(value) is _FORMS[key] for key, value in question.items()))
    _expect(all(len(question.get(key, "")) <= NAME for key in _TEXTS))
    _expect(0 <= question["seed"] < 2**31)
    _expect(all(type(each) is bool for each in question.get("wanted", ())))
    for value in (*question.get("cotangents", ()), *question.get("state", {}).values()):
        _expect(value is None or type(value) is torch.Tensor)
    _expect(all(type(mode) is bool for mode in question.get("modes", {}).values()))
    build = question.get("build", ((), {}))
    _expect(len(build) == 2 and type(build[0]) is tuple and type(build[1]) is dict)
    for keys in (build[1], *(question.get(key, {}) for key in _DICTS)):
        _expect(all(type(key) is str and len(key) <= NAME for key in keys))
    _expect(is_plain(question) and _items(question) <= ITEMS)
    tensors = list(tensors_of(question))
    _expect(all(tensor.dtype in DTYPES for tensor in tensors))
    if sum(tensor.numel() for tensor in tensors) > ELEMENTS:
        raise _Refused("the arguments are too large")


_DICTS = ("kwargs", "state", "modes")


def _expect(fits: bool) -> None:
    if not fits:
        raise _Refused("this is no question")


def _items(value: Data) -> int:
    """Count what is in nested lists, tuples and dicts."""
    if isinstance(value, dict):
        return _items(list(value)) + _items(list(value.values()))
    if isinstance(value, (list, tuple)):
        return len(value) + sum(map(_items, value))
    return 0


# --- one process for all submissions of a paper ---------------------------------------


_references: list[Reference] = []


def reference_for(answers: Answers) -> Reference:
    """Return the process that knows a paper's answers; there is one at a time."""
    if _references and _references[0].answers != answers.code:
        close()
    if not _references:
        _references.append(Reference(answers.code))
    return _references[0]


def close() -> None:
    """End the process, if there is one."""
    while _references:
        _references.pop().close()


atexit.register(close)
