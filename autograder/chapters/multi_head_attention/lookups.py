"""Two look-ups by two heads, with weights that are chosen by hand."""

from collections.abc import Callable
from itertools import permutations, product

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.multi_head_attention.chapter import chapter
from autograder.chapters.multi_head_attention.steps import run_layer
from autograder.exercise.inputs import seeded
from autograder.exercise.parameters import State
from autograder.expect import refuse, show
from autograder.interface import StudentFunction

LOOKUP_SIZE = 6
HEADS = slice(0, 3), slice(3, 6)  # the columns of each


Repair = Callable[[State], State]  # gives the weights that are others afterwards


# --- what goes wrong ------------------------------------------------------------------


def _with(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Repair:
    """Change one matrix."""
    return lambda weights: {name: change(weights[name])}


def _turned(*names: str) -> Repair:
    return lambda weights: {f"w_{name}": weights[f"w_{name}"].T for name in names}


def _columns(name: str, head: slice, change: Callable) -> Repair:
    """Change the columns that belong to one head or to both."""

    def repair(weights: State) -> State:
        matrix = weights[name].clone()
        matrix[:, head] = change(matrix[:, head])
        return {name: matrix}

    return repair


def _rows_moved(by: int) -> Callable:
    return lambda matrix: matrix.roll(by, dims=0)


def _marks_exchanged(columns: torch.Tensor) -> torch.Tensor:
    return columns[[1, 0, 2, 3, 4, 5]]


def _asked_by_all(w_q: torch.Tensor) -> torch.Tensor:
    asked = torch.zeros_like(w_q)
    asked[5] = w_q[[0, 1, 5]].sum(0)
    return asked


def _filled(columns: torch.Tensor) -> torch.Tensor:
    """Let a head that hands over nothing hand over the coordinates 2 to 4."""
    return columns if columns.any() else F.pad(torch.eye(3), (0, 0, 2, 1))


def _led_on(head: slice) -> Repair:
    """Lead what a head has found to its place, if it is led nowhere."""

    def repair(w_o: torch.Tensor) -> torch.Tensor:
        own = torch.zeros(6, 1, dtype=torch.bool)
        own[head] = not w_o[head].any()
        return torch.where(own, torch.eye(6), w_o)

    return _with("w_o", repair)


def _own_marks(w_k: torch.Tensor) -> torch.Tensor:
    """Drop what a head's key takes off for the other mark."""
    kept = w_k.clone()
    for head, (own, other) in zip(HEADS, ((0, 1), (1, 0)), strict=True):
        kept[other, head] *= w_k[own, head] * w_k[other, head] > 0
    return kept


def _questions_turned(factor: float) -> Repair:
    return lambda weights: {"w_q": factor * weights["w_k"], "w_k": weights["w_q"]}


DEALT = [0, 2, 4, 1, 3, 5]
SAME = (
    "both heads look up the same token",
    "Both slots hold the value of one token. Head 1 needs a key made of mark B: in "
    "columns 3 to 5 of w_k.",
)
EMPTY = (
    "one slot stays empty",
    "One half of the output is zero. Each head needs its values in w_v and its rows in "
    "w_o: head 1 has columns and rows 3 to 5.",
)
IDLE = (
    "one head looks at nothing",
    "One slot is right, the other holds the average of all values: that head's scores "
    "are all equal. Head 0 has the columns 0 to 2 of w_q and w_k, head 1 the columns 3 "
    "to 5, and each needs its query and its key there.",
)
ASKING = (
    "only the marked tokens ask",
    "At a marked token its slot is right, elsewhere it is the average of all: the "
    "queries are made of the marks. Every token has to ask: make the query of "
    "coordinate 5, which is 1 for all.",
)
ADDED = (
    "the heads are added up",
    "Both heads write into the same numbers. In w_o head 0 (rows 0 to 2) goes to "
    "columns 0 to 2, head 1 (rows 3 to 5) to columns 3 to 5.",
)
REPAIRS: tuple[tuple, ...] = (  # name, why, and the changes that would repair it
    (
        "the attention is not sharp enough",
        "With larger queries the heads would be right: too much weight is left to the "
        "other tokens. Make the entries of w_q (or w_k) larger.",
        _with("w_q", lambda w_q: 100 * w_q),
    ),
    (
        "the heads avoid the marked tokens",
        "With the opposite sign the heads would be right: the marked token has the "
        "smallest score. It must have the largest.",
        _with("w_q", lambda w_q: -w_q),
        _with("w_q", lambda w_q: -100 * w_q),
    ),
    (
        "the slots are exchanged",
        "The value of the token with mark A belongs in the first three numbers, that "
        "of mark B in the last three.",
        _with("w_o", lambda w_o: w_o.roll(3, dims=1)),
    ),
    (
        "queries and keys exchanged",
        "w_q reads the marks and w_k the constant: then every key is the same, and all "
        "tokens get equal weight. The question is constant, the mark answers.",
        _questions_turned(1),
        _questions_turned(100),
    ),
    (
        "weights transposed",
        "Vectors are rows, y = x W: the row of an entry is the coordinate that is "
        "read, its column the feature that is made.",
        *(_turned(*names) for names in ("qkvo", "qkv", "qk", "v", "o", "vo")),
    ),
    (
        "features dealt out in turn",
        "Head 0 owns columns 0, 1, 2 (and rows 0, 1, 2 of w_o), head 1 owns 3, 4, 5; "
        "not every second one.",
        lambda weights: {
            name: matrix[DEALT] if name == "w_o" else matrix[:, DEALT]
            for name, matrix in weights.items()
        },
    ),
    (
        "the value is taken from other coordinates",
        "The value of a token is in the coordinates 2, 3 and 4: these rows of w_v lead "
        "to a head's three columns, the first to the first.",
        *(
            _columns("w_v", head, _rows_moved(by))
            for head in (slice(0, 6), *HEADS)
            for by in (-1, 1, -2, 2, -3)
        ),
    ),
    (
        "the marks are taken from other coordinates",
        "Mark A is in coordinate 0, mark B in coordinate 1: these are the rows of w_k "
        "that count.",
        *(_columns("w_k", slice(0, 6), _rows_moved(by)) for by in (-1, 1)),
    ),
    (
        "one mark taken off the other",
        "Where one token carries both marks, its key is 0 like that of all others. A "
        "head's key is made of one mark alone.",
        _with("w_k", _own_marks),
    ),
    (*ASKING, _with("w_q", _asked_by_all)),
    (*SAME, *(_columns("w_k", head, _marks_exchanged) for head in HEADS)),
    (
        *ADDED,
        _with("w_o", lambda w_o: torch.cat((w_o[:3], w_o[3:].roll(3, dims=1)))),
        _with("w_o", lambda w_o: torch.cat((w_o[:3].roll(3, dims=1), w_o[3:]))),
    ),
    (
        *EMPTY,
        *(_columns("w_v", head, _filled) for head in HEADS),
        *map(_led_on, HEADS),
    ),
)


def _repaired(weights: State, sequences: list, *repairs: Repair) -> bool:
    """Whether the weights are right after these changes, made one after the other."""
    for repair in repairs:
        weights = weights | repair(weights)
    return all(_found(weights, each) for each in sequences)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="multi-head-why")
def two_lookups(student: StudentFunction, seed: int = 0) -> None:
    """Both values in their slots, at every position of random sequences."""
    got = student()
    names = ("w_q", "w_k", "w_v", "w_o")
    if not isinstance(got, dict) or set(got) != set(names):
        why = "The function ends without `return`." if got is None else ""
        why = why or "The dict needs these four keys, spelt exactly so."
        seen = f"{list(got)}" if isinstance(got, dict) else show(got)
        on = "the keys of the result"
        refuse("an entry is missing", why, on=on, got=seen, expected=f"{list(names)}")
    for name in names:
        shape = (LOOKUP_SIZE, LOOKUP_SIZE)
        what = f"the entry {name!r}"
        expect.tensor(got[name], shape=shape, dtype=torch.float32, what=what)
    generator = seeded(seed)
    sequences = [
        _sequence([[0.5, 0, 1], [-1, 1, 0], [2, -1, 1]], a=2, b=0),
        _sequence([[2, 2, 2]] + [[-2, -2, -2]] * 11, a=0, b=5),
        _sequence([[-2, 2, 1]] + [[2, -2, -1]] * 11, a=4, b=0),
    ]
    for length in (2, 3, 5, 8, 12):
        a, b = torch.randperm(length, generator=generator)[:2].tolist()
        values = 4 * torch.rand(length, 3, generator=generator) - 2
        sequences.append(_sequence(values, a, b))
        sequences.append(_sequence(values, b, b))
    for x in sequences:
        if not _found(got, x):
            _explain_lookup(got, x, sequences)


def _sequence(values: torch.Tensor | list, a: int, b: int) -> torch.Tensor:
    """Make tokens (mark A, mark B, value, 1)."""
    values = torch.as_tensor(values, dtype=torch.float32)
    marks = torch.zeros(len(values), 2)
    marks[a, 0] = marks[b, 1] = 1.0
    return torch.cat([marks, values, torch.ones(len(values), 1)], dim=1)


def _look(weights: State, x: torch.Tensor) -> torch.Tensor:
    return run_layer(x, x, weights, 2)[0]


def _wanted(x: torch.Tensor) -> torch.Tensor:
    """Give the two values by the marks: marks as one-hot rows pick them."""
    return (x[:, :2].T @ x[:, 2:5]).reshape(1, 6).expand(len(x), 6)


def _found(weights: State, x: torch.Tensor) -> bool:
    return bool((_look(weights, x) - _wanted(x)).abs().max() <= 1e-3)


def _explain_lookup(weights: State, x: torch.Tensor, sequences: list) -> None:
    """Say what would repair the weights, or what the output is instead."""
    output, wanted = _look(weights, x), _wanted(x)
    error = (output - wanted).abs().amax(-1)
    row = int(error.argmax())
    marks = ", ".join(
        f"mark {n} at {int(x[:, i].argmax())}" for i, n in enumerate("AB")
    )
    say = {
        "on": f"a sequence of {len(x)} tokens, {marks}; output at position {row}",
        "got": show(output[row]),
        "expected": f"{show(wanted[row])}, to within 0.001",
    }
    for name, why, *ways in REPAIRS:
        if any(_repaired(weights, sequences, way) for way in ways):
            refuse(name, why, **say)
    a, b = wanted[0, :3], wanted[0, 3:]
    zero, mean = torch.zeros(3), x[:, 2:5].mean(0)
    middle, both = (a + b) / 2, a + b
    asked = torch.cat(
        [
            torch.where(x[:, i : i + 1] == 1, value, mean)
            for i, value in enumerate((a, b))
        ],
        dim=1,
    )
    for parts, name, why in (
        ((a, a), *SAME),
        ((b, b), *SAME),
        ((a, zero), *EMPTY),
        ((zero, b), *EMPTY),
        (
            (middle, middle),
            "the average of both",
            "Each slot holds the average of the two values: a head shares its weight "
            "between both marks. One mark for each head.",
        ),
        ((both, both), *ADDED),
        ((both, zero), *ADDED),
        ((a, mean), *IDLE),
        ((mean, b), *IDLE),
        (
            (middle, mean),
            "both marks in head 0",
            "Head 0 looks at both marked tokens, head 1 at nothing. The columns 0 to 2 "
            "of w_q and w_k belong to head 0, the columns 3 to 5 to head 1: the query "
            "and the key for mark B are in these.",
        ),
        (
            (mean, mean),
            "all tokens get the same weight",
            "Each slot holds the average of all values: the scores do not depend on "
            "the marks. w_k has to read the coordinates 0 and 1.",
        ),
        (asked, *ASKING),
    ):
        wrong = parts if isinstance(parts, torch.Tensor) else torch.cat(parts)
        if bool((output - wrong).abs().max() <= 2e-3):
            refuse(name, why, **say)
    _explain_two(weights, sequences, say)
    why = (
        "Look at one head alone: does its weight fall on the marked token, and do w_v "
        "and w_o carry the coordinates 2 to 4 to its place in the output?"
    )
    expect.true(False, "the output is not the two values", why=why, **say)


def _explain_two(weights: State, sequences: list, say: dict[str, str]) -> None:
    """Say which two changes, one after the other, would repair the weights."""
    for (name, why, *ways), (other, more, *others) in permutations(REPAIRS, 2):
        for pair in product(ways, others):
            if _repaired(weights, sequences, *pair):
                refuse(f"{name}, and {other}", f"{why}\n{more}", **say)
