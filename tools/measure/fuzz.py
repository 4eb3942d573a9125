"""Mutate notebooks and grade them: no crash, no hang, no point that is not deserved.

``python -m tools.measure.fuzz --count 10000 --seed 0 --out results/grader/fuzz.json``

A submission starts as a mixture of right, wrong and untouched answers. Cells are then
dropped, swapped, copied and retyped, metadata and JSON filled with garbage, bytes cut,
and code changed token by token or in its syntax tree. What must hold of each:

- it ends graded or ungraded with a reason, within its time, and every check has one
  verdict between nothing and its points;
- what ran is what was handed in or handed out;
- an exercise that earned points passes its checks in a notebook of its own, too: a
  referee runs the same cells in one process, without the grader, and must agree.
"""

import argparse
import ast
import copy
import dataclasses
import hashlib
import io
import itertools
import json
import multiprocessing
import os
import resource
import sys
import time
import tokenize
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import hypothesis
import matplotlib
import torch
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from IPython.core.inputtransformer2 import TransformerManager

from autograder.chapters import attention
from autograder.files import write_beside
from autograder.grading.grader import Grader
from autograder.grading.job import GRADED, UNGRADED, Outcome
from tests import strangers
from tools import provenance
from workbench import plots

EXERCISES = strangers.FEW
LIMITS = strangers.QUICK
REFEREE_SECONDS = 30
LONGEST = 60.0  # seconds that a submission may take before it counts as hanging
GARBAGE = [None, True, 0, -1, 1e308, "", "x", [], {}, [[]], {"a": None}, "\ud83d"]
WORDS = "torch math scores mask softmax nn length None 0 1 -1 2.5 dim == != < + - * / "
WORDS += (
    "@ ( ) [ ] { } : , = . if else return lambda not and for in while def \n \t 'x'"
)
POOL = WORDS.split(" ")


# --- mutations ------------------------------------------------------------------------


def _any_cell(draw, notebook: dict) -> dict:
    return draw(st.sampled_from(notebook["cells"]))


def _place(draw, notebook: dict) -> int:
    return draw(st.integers(0, len(notebook["cells"]) - 1))


def drop(draw, notebook: dict) -> None:
    """Take a cell out."""
    del notebook["cells"][_place(draw, notebook)]


def swap(draw, notebook: dict) -> None:
    """Exchange two cells."""
    cells, a, b = notebook["cells"], _place(draw, notebook), _place(draw, notebook)
    cells[a], cells[b] = cells[b], cells[a]


def duplicate(draw, notebook: dict) -> None:
    """Put a copy of a cell somewhere."""
    cell = copy.deepcopy(_any_cell(draw, notebook))
    notebook["cells"].insert(_place(draw, notebook), cell)


def retype(draw, notebook: dict) -> None:
    """Make a cell one of another type."""
    kinds = ["code", "markdown", "raw", "heading", 7, None]
    _any_cell(draw, notebook)["cell_type"] = draw(st.sampled_from(kinds))


def rename(draw, notebook: dict) -> None:
    """Give a cell the nbgrader metadata of another one, or garbage in them."""
    cell, other = _any_cell(draw, notebook), _any_cell(draw, notebook)
    grading = copy.deepcopy(other.get("metadata", {}).get("nbgrader", {}))
    if grading and draw(st.booleans()):
        name = draw(st.sampled_from(sorted(grading)))
        grading[name] = draw(st.sampled_from(GARBAGE))
    cell["metadata"] = {"nbgrader": grading}


def garble(draw, notebook: dict) -> None:
    """Put garbage in the place of something in a cell or in the notebook."""
    target = draw(st.sampled_from([notebook, *notebook["cells"]]))
    keys = sorted(key for key in target if key != "cells")
    if keys:
        target[draw(st.sampled_from(keys))] = draw(st.sampled_from(GARBAGE))


def as_lines(draw, notebook: dict) -> None:
    """End the lines of a cell differently."""
    cell = _any_cell(draw, notebook)
    cell["source"] = cell["source"].replace("\n", draw(st.sampled_from(["\r\n", "\r"])))


def move_code(draw, notebook: dict) -> None:
    """Append the code of one cell to another."""
    cell, other = _any_cell(draw, notebook), _any_cell(draw, notebook)
    cell["source"] += "\n\n" + other["source"]


def change_tokens(draw, notebook: dict) -> None:
    """Take out, double, exchange or replace some tokens of a cell."""
    cell = _any_cell(draw, notebook)
    tokens = _tokens(cell["source"])
    for _ in range(draw(st.integers(1, 3))):
        if not tokens:
            break
        at = draw(st.integers(0, len(tokens) - 1))
        what = draw(st.integers(0, 3))
        if what == 0:
            del tokens[at]
        elif what == 1:
            tokens.insert(at, tokens[draw(st.integers(0, len(tokens) - 1))])
        elif what == 2:
            other = draw(st.integers(0, len(tokens) - 1))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        else:
            tokens[at] = draw(st.sampled_from(POOL))
    cell["source"] = "".join(tokens)


def _tokens(text: str) -> list[str]:
    """Split a text into tokens and what is between them."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    try:
        found = list(tokenize.generate_tokens(io.StringIO(text).readline))
        cuts = {starts[t.start[0] - 1] + t.start[1] for t in found}
        cuts |= {starts[t.end[0] - 1] + t.end[1] for t in found}
    except (tokenize.TokenError, SyntaxError, IndexError, ValueError):
        return text.split(" ")
    edges = sorted({0, len(text), *(cut for cut in cuts if cut <= len(text))})
    return [text[a:b] for a, b in itertools.pairwise(edges)]


def change_tree(draw, notebook: dict) -> None:
    """Change one node of a cell's syntax tree to another of its kind."""
    cell = _any_cell(draw, notebook)
    try:
        tree = ast.parse(cell["source"])
    except (SyntaxError, ValueError, RecursionError):
        return
    kinds = (ast.Constant, ast.BinOp, ast.Compare, ast.Name, ast.Call, ast.FunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    if nodes:
        _change_node(draw, draw(st.sampled_from(nodes)), nodes)
        cell["source"] = ast.unparse(ast.fix_missing_locations(tree))


def _change_node(draw, node: ast.AST, nodes: list[ast.AST]) -> None:
    if isinstance(node, ast.Constant):
        node.value = draw(st.sampled_from([0, 1, -1, 2, 1e9, None, True, "x"]))
    elif isinstance(node, ast.BinOp):
        operators = [ast.Add, ast.Sub, ast.Mult, ast.Div, ast.MatMult, ast.Pow]
        node.op = draw(st.sampled_from(operators))()
    elif isinstance(node, ast.Compare):
        node.ops[0] = draw(st.sampled_from([ast.Eq, ast.NotEq, ast.Lt, ast.GtE]))()
    elif isinstance(node, ast.Name):
        names = sorted({each.id for each in nodes if isinstance(each, ast.Name)})
        node.id = draw(st.sampled_from(names))
    elif isinstance(node, ast.Call):
        parts = node.keywords if node.keywords else node.args
        if parts:
            del parts[draw(st.integers(0, len(parts) - 1))]
    elif len(node.body) > 1:
        del node.body[draw(st.integers(0, len(node.body) - 1))]


MUTATIONS = {
    each.__name__: each
    for each in (
        *(drop, swap, duplicate, retype, rename, as_lines, move_code),
        *(change_tokens, change_tree),
    )
}


@st.composite
def submissions(draw) -> bytes:
    """Draw the file of a submission."""
    notebook, untouched = _notebooks()
    notebook = copy.deepcopy(notebook)
    for name in EXERCISES:
        if draw(st.integers(0, 3)) == 0:
            at = strangers.find(notebook, name)
            notebook["cells"][at]["source"] = untouched[name]
    names = [*MUTATIONS, "change_tokens", "change_tree", "change_tree"]
    for name in draw(st.lists(st.sampled_from(names), max_size=5)):
        if notebook["cells"]:
            MUTATIONS[name](draw, notebook)
    for _ in range(draw(st.integers(0, 2))):
        garble(draw, notebook)
    data = json.dumps(notebook).encode()
    if draw(st.integers(0, 15)) == 0:
        data = _bytes_changed(draw, data)
    return data


def _notebooks() -> tuple[dict, dict[str, str]]:
    blank = strangers.blank(only=EXERCISES)
    texts = {strangers.grade_id(cell): cell["source"] for cell in blank["cells"]}
    return strangers.solved(only=EXERCISES), texts


def _bytes_changed(draw, data: bytes) -> bytes:
    at = draw(st.integers(0, len(data)))
    what = draw(st.integers(0, 3))
    if what == 0:
        return data[:at]
    if what == 1:
        return data[:at] + draw(st.binary(max_size=8)) + data[at:]
    if what == 2:
        return data[:at] + draw(st.binary(min_size=1, max_size=4)) + data[at + 4 :]
    return data.decode().encode(draw(st.sampled_from(["utf-16", "utf-8-sig"])))


# --- the referee ----------------------------------------------------------------------

_known: dict[str, frozenset[str]] = {}  # what passes, by the text of all cells


def passes(notebook: dict) -> frozenset[str]:
    """Say which check cells pass when a notebook runs in one process."""
    cells = [
        (strangers.grade_id(cell), "".join(cell["source"]))
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]
    key = hashlib.sha256(repr(cells).encode()).hexdigest()
    if key not in _known:
        _known[key] = _run_apart(cells)
    return _known[key]


def _run_apart(cells: list[tuple[str, str]]) -> frozenset[str]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(theirs, cells), daemon=True)
    process.start()
    theirs.close()
    found = set()
    try:
        while ours.poll(REFEREE_SECONDS):
            found.add(ours.recv())
    except (EOFError, OSError):
        pass
    process.kill()
    process.join()
    return frozenset(found)


def _run(connection, cells: list[tuple[str, str]]) -> None:
    memory = 8 * 2**30
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (REFEREE_SECONDS, REFEREE_SECONDS))
    torch.manual_seed(0)
    names: dict = {"__name__": "__main__"}
    checks = {f"test-{name}" for name in EXERCISES}
    for name, text in cells:
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                code = TransformerManager().transform_cell(text)
                seen = names | {"check": attention} if name in checks else names
                exec(compile(code, name or "cell", "exec"), seen)
        except BaseException:
            continue
        if name in checks:
            connection.send(name)
    connection.close()
    os._exit(0)


# --- what must hold -------------------------------------------------------------------


def complaints(data: bytes, outcome: Outcome, seconds: float) -> list[str]:
    """Say what is wrong about an outcome."""
    found = []
    if outcome.status not in (GRADED, UNGRADED):
        found.append(f"the status is {outcome.status!r}")
    if outcome.status == UNGRADED and not outcome.reason:
        found.append("ungraded without a reason")
    if outcome.log or outcome.again:
        found.append(f"the grader failed: {outcome.reason} {outcome.log}")
    if seconds > LONGEST:
        found.append(f"it took {seconds:.0f} seconds")
    found += [text for text in outcome.limited if "could not be run" in text]
    if outcome.status == GRADED:
        found += _about_verdicts(outcome)
        found += _about_cells(data, outcome)
        found += _undeserved(outcome)
    return found


def _about_verdicts(outcome: Outcome) -> list[str]:
    given = [verdict.grade_id for verdict in outcome.verdicts]
    points = strangers.paper(only=EXERCISES).points
    if given != list(points):
        return [f"verdicts on {given}"]
    return [
        f"{each.grade_id}: {each.score} of {points[each.grade_id]}"
        for each in outcome.verdicts
        if each.score not in (0, points[each.grade_id])
    ]


def _about_cells(data: bytes, outcome: Outcome) -> list[str]:
    """Every cell that ran must have been handed in or handed out."""
    try:
        known = data.decode(json.detect_encoding(data))
    except UnicodeDecodeError:  # then it is read as Latin-1, and the student is told
        known = data.decode("latin-1")
    handed_in = _texts(json.loads(known).get("cells", []))
    handed_out = _texts(strangers.blank(only=EXERCISES)["cells"])
    handed_out |= _texts(json.loads(strangers.paper(only=EXERCISES).source)["cells"])
    ran = _texts(json.loads(outcome.notebook)["cells"])
    return [f"it ran {text[:200]!r}" for text in ran - handed_in - handed_out]


def _texts(cells: list[dict]) -> set[str]:
    found = set()
    for cell in cells:
        text = cell.get("source")
        if isinstance(text, list):
            text = "".join(line for line in text if isinstance(line, str))
        if isinstance(text, str):
            found.add(text.encode("utf-8", "replace").decode().strip())
    return found | {""}


def _undeserved(outcome: Outcome) -> list[str]:
    scored = {each.grade_id for each in outcome.verdicts if each.score}
    if not scored:
        return []
    return [
        f"{name}: points, but its check fails in a notebook of its own"
        for name in sorted(scored - passes(json.loads(outcome.notebook)))
    ]


def identity(data: bytes) -> str:
    """Tell a file from others."""
    return hashlib.sha256(data).hexdigest()


# --- running --------------------------------------------------------------------------


@dataclasses.dataclass
class Tally:
    """What came out of many submissions."""

    count: int = 0
    longest: float = 0.0
    different: set[str] = dataclasses.field(default_factory=set)
    statuses: Counter = dataclasses.field(default_factory=Counter)
    reasons: Counter = dataclasses.field(default_factory=Counter)
    scores: Counter = dataclasses.field(default_factory=Counter)
    wrong: list[tuple[str, bytes]] = dataclasses.field(default_factory=list)

    def add(self, data: bytes, outcome: Outcome, seconds: float) -> list[str]:
        """Count an outcome; return what is wrong about it."""
        self.count += 1
        self.longest = max(self.longest, seconds)
        self.different.add(identity(data))
        self.statuses[outcome.status] += 1
        if outcome.status == GRADED:
            self.scores[outcome.score] += 1
        else:
            self.reasons[outcome.reason.split("(")[0].split("while")[0].strip()] += 1
        found = complaints(data, outcome, seconds)
        if found:
            self.wrong.append(("; ".join(found), data))
        return found

    def join(self, other: "Tally") -> None:
        """Add what another one has counted."""
        self.count += other.count
        self.longest = max(self.longest, other.longest)
        self.different |= other.different
        for name in ("statuses", "reasons", "scores"):
            getattr(self, name).update(getattr(other, name))
        self.wrong += other.wrong


def grade(data: bytes, grader: Grader) -> tuple[Outcome, float]:
    """Grade a file; return what came out, and the seconds that it took."""
    paper = strangers.paper(only=EXERCISES)
    began = time.monotonic()
    outcome = grader.grade(strangers.job(data, paper=paper, limits=LIMITS))
    return outcome, time.monotonic() - began


def prepare(grader: Grader) -> None:
    """Start the grader; import here what the referee's notebooks will."""
    matplotlib.use("agg")
    torch.set_num_threads(1)
    plots.use_course_style()
    grade(json.dumps(_notebooks()[0]).encode(), grader)


def fuzz(count: int, seed: int) -> Tally:
    """Grade that many mutated notebooks; no two are the same."""
    tally = Tally()
    with Grader() as grader:
        prepare(grader)

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=count,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @hypothesis.given(submissions())
        def one(data: bytes) -> None:
            hypothesis.assume(identity(data) not in tally.different)
            tally.add(data, *grade(data, grader))
            if tally.count % 100 == 0 or tally.count == count:
                print(f"{seed}: {tally.count}, {len(tally.wrong)} wrong", flush=True)

        one()
    return tally


def record(tally: Tally, made: dict, seconds: float) -> dict:
    """Write down what was done, by what, and what came of it."""
    return {
        **made,
        "torch": torch.__version__,
        "hypothesis": hypothesis.__version__,
        "submissions": tally.count,
        "different": len(tally.different),
        "statuses": dict(sorted(tally.statuses.items())),
        "scores": {f"{k:g}": v for k, v in sorted(tally.scores.items())},
        "reasons": dict(tally.reasons.most_common()),
        "longest_seconds": round(tally.longest, 1),
        "seconds": round(seconds),
        "wrong": [text for text, _ in tally.wrong],
    }


def main() -> int:
    """Grade as many as asked for; write the record, and what was wrong beside it."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.measure.fuzz", description=__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--count", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the record (JSON)")
    arguments = parser.parse_args()
    count, jobs = arguments.count, max(1, min(arguments.jobs, arguments.count))
    command = f"python -m tools.measure.fuzz --count {arguments.count}"
    command += f" --seed {arguments.seed}"
    made, began, tally = provenance.made_by(command), time.monotonic(), Tally()
    shares = [count // jobs + (number < count % jobs) for number in range(jobs)]
    seeds = [arguments.seed * 1000 + number for number in range(jobs)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context) as pool:
        for each in pool.map(fuzz, shares, seeds):
            tally.join(each)
    made = record(tally, made, time.monotonic() - began)
    text = json.dumps(made, indent=1) + "\n"
    print(text)
    if arguments.out:
        write_beside(arguments.out, text)
        for number, (_, data) in enumerate(tally.wrong):
            path = arguments.out.with_name(f"{arguments.out.stem}-wrong-{number}.ipynb")
            path.write_bytes(data)
    return bool(tally.wrong)


if __name__ == "__main__":
    sys.exit(main())
