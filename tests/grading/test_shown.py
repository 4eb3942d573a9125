"""The sandbox shows nothing that answers: whatever can be called there earns no point.

What is there is found inside, by a cell that imports all it can and walks the modules
and the memory. Each of it is then tried as the answer of every exercise, by the checks.
"""

import contextlib
import importlib
import inspect
import io
import json
import sys
import time
from operator import attrgetter
from pathlib import Path, PurePath
from unittest import mock

import pytest

from autograder import expect, generator, interface
from autograder.boundary.channel import Channel
from autograder.grading import shown
from autograder.grading.limits import Limits
from autograder.grading.paper import Paper
from autograder.grading.sandbox import Sandbox, problem
from autograder.grading.seeds import Keys, drawing
from autograder.grading.sheet import sheet_of
from workbench.data import phrasebook

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = generator.chapters()
COURSE = (
    "autograder",
    "pages",
    "workbench",
    "transformer",
    "mistakes",
    "results",
    "tests",
)
# they change the process that calls them, and return nothing or a file
OF_THE_PROCESS = ("autograder.boundary.walls", "autograder.boundary.zygote")

in_the_sandbox = [
    pytest.mark.sandbox,
    pytest.mark.skipif(bool(problem()), reason=problem() or "works"),
]


# --- what is there --------------------------------------------------------------------

LOOK = """
import gc, importlib, json, pkgutil, sys, types
course, names = {course}, {names}
def ours(name):
    return str(name).partition(".")[0] in course
for package in course:
    try: names += [package, *(each.name for each in pkgutil.walk_packages(
        importlib.import_module(package).__path__, package + "."))]
    except (ImportError, AttributeError): pass
for name in names:
    if not name.endswith("__main__"):
        try: importlib.import_module(name)
        except ImportError: pass
held = [value for name, module in list(sys.modules.items()) if ours(name)
        for value in vars(module).values()]
kinds = (type, types.FunctionType, types.ModuleType)
gc.unfreeze()
held += [each for each in gc.get_objects() if isinstance(each, kinds)]
found, files = set(), set()
for each in held:
    if isinstance(each, types.ModuleType) and ours(each.__name__):
        files.add(str(getattr(each, "__file__", None)))
    for part in (each, *(vars(each).values() if isinstance(each, type) else ())):
        part = getattr(part, "__func__", part)
        if callable(part) and ours(getattr(part, "__module__", "")):
            found.add(part.__module__ + ":" + getattr(part, "__qualname__", "?"))
print(json.dumps([sorted(found), sorted(files)]))
"""


def modules_of_the_course() -> list[str]:
    """All that there are on this side, whether shown or not."""
    paths = [
        path.relative_to(folder).with_suffix("")
        for folder in (ROOT, ROOT / "solutions")
        for package in COURSE
        for path in (folder / package).rglob("*.py")
    ]
    return sorted({".".join(each.parts).removesuffix(".__init__") for each in paths})


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(Limits()) as opened:
        yield opened


def files_of(chapter: str) -> dict[str, bytes]:
    """What is sent with each submission of a chapter."""
    paper = Paper.of(chapter)
    parts = {name: text.encode() for name, text in paper.parts.items()}
    return parts | shown.given_to(paper.released)


def look(sandbox: Sandbox, chapter: str) -> tuple[list[str], list[str]]:
    """Say what a cell can call there, as module:name, and which files it is from."""
    code = LOOK.format(course=COURSE, names=modules_of_the_course())
    cage = sandbox.open(files_of(chapter))
    try:
        channel = Channel(cage.socket)
        request = {"do": "cell", "code": code, "output_bytes": 10**6, "number": 1}
        channel.send(request)
        reply = channel.receive(time.monotonic() + 60)["value"]
    finally:
        cage.end()
    assert not reply["error"], reply["error"]
    return tuple(json.loads(reply["outputs"][-1]["text"].splitlines()[-1]))


# --- whether it answers ---------------------------------------------------------------


class Tried(dict):
    """The names of a check cell: whatever it asks for is the thing that is tried."""

    def __init__(self, imports: list[str], thing: object) -> None:
        super().__init__(drawing(Keys()), __builtins__=__builtins__)
        for statement in imports:
            exec(statement, self)
        self._thing = thing

    def __missing__(self, name: str) -> object:
        if name in self["__builtins__"]:
            raise KeyError(name)
        return self._thing


class FirstCallError(BaseException):
    """What a check asks first; no ``except Exception`` of the check is in its way."""


class Spy(interface.StudentFunction, interface.StudentModule):
    """Tells what a check asks first."""

    name = "spy"

    def __call__(self, *args, **kwargs):
        raise FirstCallError(interface.StudentFunction, args, kwargs)

    def build(self, *args, **kwargs):
        raise FirstCallError(interface.StudentModule, args, kwargs)

    def gradients(self, *args, wrt=(0,), cotangent=None, output=None, **kwargs):
        self(*args, **kwargs)

    def memory(self, *args, **kwargs):
        self(*args, **kwargs)

    def shared(self, *args, **kwargs):
        self(*args, **kwargs)


@contextlib.contextmanager
def in_silence():
    nowhere = io.StringIO()
    with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        yield


@contextlib.contextmanager
def modules_kept():
    """Put back what was imported before: some of what is tried takes modules out."""
    before = dict(sys.modules)
    try:
        yield
    finally:
        sys.modules.update(before)


def first_call(check, imports: list[str]) -> FirstCallError:
    """What a check asks an answer first."""
    with in_silence():
        try:
            exec(check.parts["visible"], Tried(imports, Spy()))
        except FirstCallError as call:
            return call
    raise AssertionError(f"{check.title}: asks nothing")


def fits(thing: object, args: tuple, kwargs: dict) -> bool:
    """Whether a signature takes such arguments, as far as one is known."""
    try:
        inspect.signature(thing).bind(*args, **kwargs)
    except TypeError:
        return False
    except ValueError:  # it has none
        return True
    return True


def survives(call: FirstCallError, thing: object) -> bool:
    """Whether a thing can be called so at all; most cannot, and are not tried."""
    kind, args, kwargs = call.args
    if not fits(thing, args, kwargs):
        return False
    with in_silence():
        try:
            wrapped = interface.wrap(thing, kind)
            asked = wrapped.build if kind is interface.StudentModule else wrapped
            asked(*interface.to_data(args), **interface.to_data(kwargs))
        except interface.StudentError:
            return False
    return True


def accepts(check, imports: list[str], thing: object) -> bool:
    """Whether both parts of a check pass with this as the answer.

    Why not is not asked: to find a name takes far longer.
    """
    unnamed = mock.patch.object(expect, "_by_all_answers", lambda first, again: first)
    with in_silence(), unnamed:
        try:
            for code in check.parts.values():
                exec(code, Tried(imports, thing))
        except (Exception, SystemExit):
            return False
    return True


def answers_among(tried: dict[str, object], sheet) -> list[tuple[str, str]]:
    """Name the checks of a chapter that pass, each with what passes it."""
    answers = []
    for name, check in sheet.checks.items():
        call = first_call(check, sheet.imports)
        likely = [each for each in tried if survives(call, tried[each])]
        found = [e for e in likely if accepts(check, sheet.imports, tried[e])]
        answers += [(name, each) for each in found]
    return answers


def things(names: list[str]) -> dict[str, object]:
    """The same functions and classes on this side; not what is inside of others."""
    found = {}
    for name in names:
        module, _, path = name.partition(":")
        if module not in OF_THE_PROCESS and "<" not in path:
            found[name] = attrgetter(path)(importlib.import_module(module))
    return found


@pytest.mark.sandbox
@pytest.mark.skipif(bool(problem()), reason=problem() or "works")
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_nothing_that_can_be_called_there_is_an_answer(
    chapter, sandbox, monkeypatch, tmp_path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(interface, "SECONDS_PER_CALL", 1.0)
    # a corpus is written in seconds, and tried often
    smaller = {split: size // 16 for split, size in phrasebook.SIZES.items()}
    monkeypatch.setattr(phrasebook, "SIZES", smaller)
    sheet = sheet_of(Paper.of(chapter))
    tried = things(look(sandbox, chapter)[0])
    assert len(tried) > 50
    with modules_kept():
        assert answers_among(tried, sheet) == []


def test_trying_finds_an_answer_where_there_is_one() -> None:
    sheet = sheet_of(Paper.of("04_attention"))
    known = things(["autograder.chapters.attention.oracles:weights_of"])
    (oracle,) = known.values()

    def answer(scores, mask=None):  # the oracle itself is refused as such
        return oracle(scores, mask)

    check = sheet.checks["test-masked-softmax"]
    assert survives(first_call(check, sheet.imports), answer)
    assert accepts(check, sheet.imports, answer)
    assert not accepts(sheet.checks["test-softmax-jacobian"], sheet.imports, answer)


@pytest.mark.sandbox
@pytest.mark.skipif(bool(problem()), reason=problem() or "works")
def test_only_what_is_listed_is_there(sandbox) -> None:
    names, files = look(sandbox, "04_attention")
    modules = {name.partition(":")[0] for name in names}
    given = {name for name in files_of("04_attention") if name.endswith(".py")}
    earlier = {f"transformer.{Path(name).stem}" for name in given}
    others = {name for name in modules if not name.startswith(f"{shown.BOUNDARY}.")}
    assert others <= {*shown.EVERYBODYS, *earlier}
    theirs = {f"/course/{place}" for _, place in shown.files()}
    theirs |= {f"/tmp/work/{name}" for name in given} | {"None"}  # a stand-in has none
    assert set(files) <= theirs


def test_what_is_given_to_a_chapter_is_what_its_notebook_imports() -> None:
    for chapter in CHAPTERS[:7]:
        assert shown.given_to(Paper.of(chapter).released) == {}
    images = shown.given_to(Paper.of("08_vision_transformer").released)
    assert set(images) == {
        "workbench/data/digits.py",
        "workbench/data/digits.safetensors",
    }
    translator, vision = (
        set(shown.given_to(Paper.of(each).released))
        for each in ("09_translator", "10_vision")
    )
    assert {"workbench/data/tokenizer.py", "workbench/model/models.py"} <= translator
    assert "workbench/data/images.py" not in translator
    assert "workbench/data/tokenizer.py" not in vision
    for given, model in ((translator, "phrasebook"), (vision, "digits")):
        folders = {PurePath(name).parent.name for name in given if "/models/" in name}
        assert folders == {model}, "the others would only take room"


@pytest.mark.sandbox
@pytest.mark.skipif(bool(problem()), reason=problem() or "works")
@pytest.mark.parametrize("chapter", CHAPTERS[8:])
def test_what_is_given_imports_nothing_that_is_a_stand_in(chapter, sandbox) -> None:
    """A helper that does nothing would make a given cell fail later, and oddly."""
    names = [
        name.removesuffix(".py").replace("/", ".")
        for name in shown.given_to(Paper.of(chapter).released)
        if name.endswith(".py")
    ]
    code = f"""
import importlib, sys
for name in {names}:
    importlib.import_module(name)
print([n for n, m in sys.modules.items() if type(m).__name__ == "_Stub"])
"""
    cage = sandbox.open(files_of(chapter))
    channel = Channel(cage.socket)
    channel.send({"do": "cell", "code": code, "output_bytes": 9999, "number": 1})
    reply = channel.receive(time.monotonic() + 60)["value"]
    cage.end()
    assert reply["outputs"][0]["text"] == "[]\n", reply


@pytest.mark.sandbox
@pytest.mark.skipif(bool(problem()), reason=problem() or "works")
def test_a_stand_in_can_be_imported_in_every_way_and_does_nothing(sandbox) -> None:
    code = """
import autograder.chapters.attention
from autograder.chapters import attention as check, decoder
from autograder.chapters.encoder import gelu
from workbench import plots
from workbench.use import metrics
import importlib
importlib.reload(check)
print([check.softmax(3), decoder.bleu(maximum=4), gelu(), metrics.bleu_scores([], [])])
for wrong in ("workbench.polts", "autograder.grading", "autograder.chapters.nothing"):
    try: importlib.import_module(wrong)
    except ImportError as error: print(error.name)
"""
    cage = sandbox.open()
    channel = Channel(cage.socket)
    channel.send({"do": "cell", "code": code, "output_bytes": 9999, "number": 1})
    reply = channel.receive(time.monotonic() + 60)["value"]
    cage.end()
    lines = reply["outputs"][0]["text"].splitlines()
    assert lines[0].startswith("attention.softmax: checks are run by the grader")
    assert lines[3].startswith("metrics.bleu_scores: is left out")
    assert lines[4:] == ["[None, None, None, None]", *wrong_names()]


def wrong_names() -> list[str]:
    return ["workbench.polts", "autograder.grading", "autograder.chapters.nothing"]
