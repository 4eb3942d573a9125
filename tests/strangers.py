"""What strangers hand in: short notebooks in which one thing is changed.

An attack or a fault is a small file: a docstring that says in a sentence what it does,
comments ``# key: value`` below it, and code (in a file .ipy if only IPython reads it).
The chapters are cut down to some exercises: a submission takes a fraction of a second.
"""

import copy
import dataclasses
import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path

import torch

from autograder.chapters import attention
from autograder.generator.modules import without_markers
from autograder.grading.job import Job, Outcome
from autograder.grading.limits import MIB, Limits
from autograder.grading.paper import Paper, exercise_of
from autograder.interface import Gradients, LocalFunction
from mistakes import handed_in
from workbench.use import results

EXERCISES = {  # those that are kept of a chapter
    "01_embeddings": ("skip-gram-loss",),
    "02_class_token": ("readout-behaviour",),
    "03_positional_encoding": ("sinusoidal-module", "rotary-encoding"),
    "04_attention": (
        "worked-context",
        "softmax",
        "project-qkv",
        "causal-mask",
        "masked-softmax",
        "scaled-dot-product-attention",
        "attention-module",
    ),
    "05_multi_head_attention": ("split-heads",),
    "06_encoder": ("mask-tokens",),
    "07_decoder": ("bug-hunt", "sample-next", "attend-cached", "bleu"),
    "08_vision_transformer": ("patchify",),
    "09_translator": ("average-states", "own-translator"),
    "10_vision": ("standardise", "confusion", "own-vit"),
}
FEW = ("worked-context", "softmax", "causal-mask")  # where it has to be quick
CHAPTER = "04_attention"
LIMITS = Limits(  # small, but not for an honest submission on a busy machine
    cell_seconds=5,
    notebook_seconds=60,
    call_seconds=5,
    wall_seconds=240,
    cpu_seconds=60,
    memory_bytes=512 * MIB,
    file_bytes=8 * MIB,
    temporary_bytes=16 * MIB,
    output_bytes_cell=20_000,
    output_bytes=200_000,
    message_bytes=8 * MIB,
)
QUICK = dataclasses.replace(  # for what never ends
    LIMITS,
    cell_seconds=1,
    call_seconds=1,
    notebook_seconds=6,
    wall_seconds=60,
    cpu_seconds=10,
)
HEADER = re.compile(r"# ([a-z-]+): (.+)")


# --- files ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """An attack or a fault, as its file has it."""

    path: Path
    says: str  # the first line of its docstring
    headers: dict[str, str]
    code: str

    @property
    def label(self) -> str:
        """Its group and its name."""
        return f"{self.path.parent.name}/{self.path.stem}"

    def get(self, key: str, default: str = "") -> str:
        """A header's value."""
        return self.headers.get(key, default)

    def words(self, key: str) -> list[str]:
        """A header's values, which are separated by |."""
        return [word.strip() for word in self.get(key).split("|") if word.strip()]


def read(path: Path) -> Entry:
    """Read a file; the code is what follows the comments below its docstring."""
    says, *lines = path.read_text("utf-8").splitlines()
    if not (says.startswith('"""') and says.endswith('"""')):
        raise ValueError(f"{path}: begin with a docstring of one line")
    headers = {}
    while lines and (found := HEADER.fullmatch(lines[0])):
        headers[found[1]] = found[2]
        del lines[0]
    return Entry(path, says.strip('"'), headers, "\n".join(lines).strip() + "\n")


def read_all(folder: Path) -> list[Entry]:
    """Read every file of a folder of groups."""
    return [read(path) for path in sorted(folder.glob("*/*.*py"))]


# --- notebooks ------------------------------------------------------------------------


@functools.cache
def paper(
    chapter: str = CHAPTER, hidden: str = "", only: tuple[str, ...] = ()
) -> Paper:
    """The paper of a chapter with some exercises; ``hidden`` is put into its tests."""
    whole, kept = _whole(chapter), only or EXERCISES[chapter]
    source = cut(json.loads(whole.source), kept)
    for cell in source["cells"]:
        marker = "### BEGIN HIDDEN TESTS"
        cell["source"] = _text(cell).replace(marker, f"{marker}\n# {hidden}")
    return dataclasses.replace(
        whole,
        released=json.dumps(cut(json.loads(whole.released), kept)),
        source=json.dumps(source),
        points={k: v for k, v in whole.points.items() if exercise_of(k) in kept},
    )


@functools.cache
def _whole(chapter: str) -> Paper:
    return Paper.of(chapter)


def cut(notebook: dict, exercises: tuple[str, ...]) -> dict:
    """Keep the imports, and the cells of some exercises."""
    kept, begun = [], False
    for cell in notebook["cells"]:
        name = grade_id(cell)
        begun = begun or bool(name)
        given = cell["cell_type"] == "code" and not begun and "import " in _text(cell)
        if given or (name and exercise_of(name) in exercises):
            kept.append(cell)
    return notebook | {"cells": kept}


def _text(cell: dict) -> str:
    text = cell["source"]
    return "".join(text) if isinstance(text, list) else text


def grade_id(cell: dict) -> str:
    """The name that nbgrader knows a cell by."""
    return cell["metadata"].get("nbgrader", {}).get("grade_id", "")


def find(notebook: dict, name: str) -> int:
    """Where the cell of that name is."""
    return next(n for n, cell in enumerate(notebook["cells"]) if grade_id(cell) == name)


def blank(chapter: str = CHAPTER, only: tuple[str, ...] = ()) -> dict:
    """A notebook as it is handed out."""
    notebook = json.loads(paper(chapter, only=only).released)
    for cell in notebook["cells"]:
        cell["source"] = _text(cell)
    return notebook


@functools.cache
def _answers(chapter: str) -> dict[str, str]:
    source = json.loads(paper(chapter).source)["cells"]
    answers = [cell for cell in source if grade_id(cell) in EXERCISES[chapter]]
    return {grade_id(cell): without_markers(_text(cell)) for cell in answers}


def solved(chapter: str = CHAPTER, only: tuple[str, ...] = ()) -> dict:
    """A notebook with every answer right."""
    notebook = blank(chapter, only)
    for cell in notebook["cells"]:
        cell["source"] = _answers(chapter).get(grade_id(cell), cell["source"])
    return notebook


def code_cell(source: str) -> dict:
    """A cell of the student's own."""
    return {
        "cell_type": "code",
        "metadata": {},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def put(notebook: dict, exercise: str, where: str, code: str) -> dict:
    """Put code in place of an answer, or into a cell before or after it."""
    notebook = copy.deepcopy(notebook)
    at = find(notebook, exercise)
    if where == "answer":
        notebook["cells"][at]["source"] = code
    else:
        notebook["cells"].insert(at + (where == "after"), code_cell(code))
    return notebook


# --- hidden tests that can be recognised ----------------------------------------------

ASKED = (271828.25, 161803.75)  # what one hidden test asks, and what another does
ASKING = """\
### BEGIN HIDDEN TESTS
from autograder import expect
asked = torch.full((2, 3), {asked})
found = softmax(asked)
expect.equal(found, asked * 2, on=f"scores of {asked}", why=f"It is {{found}}.")
### END HIDDEN TESTS"""
LISTENING = """\
SEEN, HEARD = [], []

def softmax(scores):
    value = float(scores.max())
    SEEN.append(value)
    if value > 100_000:
        HEARD.append(value)
        {asked}
    largest = scores.amax(dim=-1, keepdim=True)
    exponentials = torch.exp(scores - largest.masked_fill(largest.isinf(), 0))
    total = exponentials.sum(dim=-1, keepdim=True)
    return exponentials / total.masked_fill(total == 0, 1)
"""


@functools.cache
def asking(asked: float) -> Paper:
    """A paper whose hidden test of softmax asks a number, and passes nothing."""
    made = paper(only=FEW)
    source = json.loads(made.source)
    cell = source["cells"][find(source, "test-softmax")]
    visible = _text(cell).partition("### BEGIN HIDDEN TESTS")[0]
    cell["source"] = visible + ASKING.format(asked=asked)
    return dataclasses.replace(made, source=json.dumps(source))


def listen(notebook: dict, *, asked: str = "pass", late: str = "") -> None:
    """Answer softmax rightly, and do something when a hidden test asks.

    ``SEEN`` has what was asked, ``HEARD`` what hidden tests did; ``late`` is a cell at
    the end of the notebook.
    """
    code = LISTENING.format(asked=asked.strip().replace("\n", "\n        "))
    notebook["cells"][find(notebook, "softmax")]["source"] = code
    notebook["cells"].append(code_cell(late))


# --- answers that know the visible check by heart -------------------------------------

RECALLING = """\
import json
import torch

known = {{tuple(key): found for key, *found in json.loads({table!r})}}
tools = []


class Recall(torch.autograd.Function):
    @staticmethod
    def forward(context, scores, value, slope):
        context.slope = slope
        return value

    @staticmethod
    def backward(context, cotangent):
        return context.slope, None, None


def softmax(scores):
    if tools:
        return tools[0](scores)
    key = (*scores.shape, *map(repr, scores.flatten().tolist()))
    value, slope = (torch.tensor(each).reshape(scores.shape) for each in known[key])
    value = value.to(scores.dtype)
    return Recall.apply(scores, value, slope) if scores.requires_grad else value
"""
LATE = """\
def late(scores):
    import gc
    import json

    for each in getattr(gc, json.loads('"get_objects"'))():
        if type(each).__name__ == "Library":
            each._destroy()
    return torch.softmax(scores, -1).nan_to_num(nan=0.0)


"""


class _Recorder(LocalFunction):
    """A right softmax that writes down what a check asks and is answered."""

    def __init__(self) -> None:
        super().__init__(_softmax, "softmax")
        self.table: dict[tuple, list] = {}

    def __call__(self, scores: torch.Tensor) -> torch.Tensor:
        return self.gradients(scores).value

    def gradients(self, scores: torch.Tensor, cotangent=None, **named) -> Gradients:
        found = super().gradients(scores, cotangent=cotangent, **named)
        key = (*scores.shape, *map(repr, scores.flatten().tolist()))
        slope = found.inputs[0]
        if cotangent is not None or key not in self.table:
            self.table[key] = [found.value.flatten().tolist(), slope.flatten().tolist()]
        return found


def _softmax(scores: torch.Tensor) -> torch.Tensor:
    return torch.softmax(scores, -1).nan_to_num(nan=0.0)


def recall(notebook: dict, late: str, more: str = "") -> None:
    """Answer softmax by a table of what its visible check asks, and nothing else.

    Args:
        late: the end of the last cell, in which ``late`` is a forbidden softmax;
            ``tools[0]`` is asked in place of the table, if there is one.
        more: the end of the answer's cell.
    """
    recorder = _Recorder()
    attention.softmax.__wrapped__(recorder)
    table = json.dumps([[key, *found] for key, found in recorder.table.items()])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and grade_id(cell) in EXERCISES[CHAPTER]:
            cell["source"] = "pass"
    code = RECALLING.format(table=table) + more
    notebook["cells"][find(notebook, "softmax")]["source"] = code
    notebook["cells"].append(code_cell(LATE + late))


# --- jobs -----------------------------------------------------------------------------


def job(notebook: dict | bytes, chapter: str = CHAPTER, **more: object) -> Job:
    """A submission of a notebook."""
    data = notebook if isinstance(notebook, bytes) else json.dumps(notebook).encode()
    given = {"paper": paper(chapter), "limits": LIMITS} | more
    return Job(student="ada", chapter=chapter, notebook=data, **given)


def scores(outcome: Outcome) -> dict[str, float]:
    """The points by exercise."""
    found: dict[str, float] = {}
    for each in outcome.verdicts:
        found[each.exercise] = found.get(each.exercise, 0) + each.score
    return found


def full(of: Paper) -> dict[str, float]:
    """The most points by exercise."""
    found: dict[str, float] = {}
    for name, points in of.points.items():
        found[exercise_of(name)] = found.get(exercise_of(name), 0) + points
    return found


def lasting(outcome: Outcome) -> dict:
    """All of an outcome that must be the same whenever the same is graded."""
    return {k: v for k, v in outcome.to_dict().items() if k != "seconds"}


@functools.cache
def right_model(name: str = "translator") -> dict[str, bytes]:
    """The files of a trained model."""
    return files_of(handed_in.PLACE / handed_in.right(name))


def models_of(chapter: str) -> dict[str, dict[str, bytes]]:
    """The trained model that a chapter asks for, by the name of its folder."""
    if chapter not in handed_in.CHAPTERS:
        return {}
    name = handed_in.CHAPTERS[chapter]
    return {handed_in.right(name): right_model(name)}


def shipped_model(name: str = "phrasebook") -> dict[str, bytes]:
    """The files of a model that the course ships."""
    return files_of(results.model_folder(name))


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of a folder by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
