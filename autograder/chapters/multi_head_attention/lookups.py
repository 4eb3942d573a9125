"""Two look-ups by two heads, with weights that are chosen by hand."""

import torch

from autograder import expect
from autograder.chapters.multi_head_attention.chapter import chapter
from autograder.chapters.multi_head_attention.steps import run_layer
from autograder.exercise.inputs import seeded
from autograder.exercise.parameters import State
from autograder.expect import refuse, show
from autograder.interface import StudentFunction

LOOKUP_SIZE = 6


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

    def repaired(**changed: torch.Tensor) -> bool:
        return all(_found(weights | changed, each) for each in sequences)

    w_q, w_k, w_v, w_o = (weights[name] for name in ("w_q", "w_k", "w_v", "w_o"))
    dealt = torch.tensor([0, 2, 4, 1, 3, 5])
    for condition, name, why in (
        (
            lambda: repaired(w_q=100 * w_q),
            "the attention is not sharp enough",
            "With larger queries the heads would be right: too much weight is left to "
            "the other tokens. Make the entries of w_q (or w_k) larger.",
        ),
        (
            lambda: repaired(w_q=-w_q) or repaired(w_q=-100 * w_q),
            "the heads avoid the marked tokens",
            "With the opposite sign the heads would be right: the marked token has the "
            "smallest score. It must have the largest.",
        ),
        (
            lambda: repaired(w_o=w_o.roll(3, dims=1)),
            "the slots are exchanged",
            "The value of the token with mark A belongs in the first three numbers, "
            "that of mark B in the last three.",
        ),
        (
            lambda: repaired(w_q=w_k, w_k=w_q) or repaired(w_q=100 * w_k, w_k=w_q),
            "queries and keys exchanged",
            "w_q reads the marks and w_k the constant: then every key is the same, and "
            "all tokens get equal weight. The question is constant, the mark answers.",
        ),
        (
            lambda: (
                repaired(w_q=w_q.T, w_k=w_k.T, w_v=w_v.T, w_o=w_o.T)
                or repaired(w_q=w_q.T, w_k=w_k.T, w_v=w_v.T)
            ),
            "weights transposed",
            "Vectors are rows, y = x W: the row of an entry is the coordinate that is "
            "read, its column the feature that is made.",
        ),
        (
            lambda: repaired(
                w_q=w_q[:, dealt],
                w_k=w_k[:, dealt],
                w_v=w_v[:, dealt],
                w_o=w_o[dealt],
            ),
            "features dealt out in turn",
            "Head 0 owns columns 0, 1, 2 (and rows 0, 1, 2 of w_o), head 1 owns 3, 4, "
            "5; not every second one.",
        ),
    ):
        if condition():
            refuse(name, why, **say)
    a, b = wanted[0, :3], wanted[0, 3:]
    zero, mean = torch.zeros(3), x[:, 2:5].mean(0)
    same = "both heads look up the same token"
    why_same = (
        "Both slots hold the value of one token. Head 1 needs a key made of mark B: in "
        "columns 3 to 5 of w_k."
    )
    empty = "one slot stays empty"
    why_empty = (
        "One half of the output is zero. Each head needs its values in w_v and its "
        "rows in w_o: head 1 has columns and rows 3 to 5."
    )
    idle = "one head looks at nothing"
    why_idle = (
        "One slot is right, the other holds the average of all values: that head's "
        "scores are all equal. Head 0 has the columns 0 to 2 of w_q and w_k, head 1 "
        "the columns 3 to 5, and each needs its query and its key there."
    )
    middle, both = (a + b) / 2, a + b
    asked = torch.cat(
        [
            torch.where(x[:, i : i + 1] == 1, value, mean)
            for i, value in enumerate((a, b))
        ],
        dim=1,
    )
    for parts, name, why in (
        ((a, a), same, why_same),
        ((b, b), same, why_same),
        ((a, zero), empty, why_empty),
        ((zero, b), empty, why_empty),
        (
            (middle, middle),
            "the average of both",
            "Each slot holds the average of the two values: a head shares its weight "
            "between both marks. One mark for each head.",
        ),
        (
            (both, both),
            "the heads are added up",
            "Both heads write into the same numbers. In w_o head 0 (rows 0 to 2) goes "
            "to columns 0 to 2, head 1 (rows 3 to 5) to columns 3 to 5.",
        ),
        (
            (both, zero),
            "the heads are added up",
            "Both heads write into the first three numbers. In w_o head 1 (rows 3 to "
            "5) goes to columns 3 to 5.",
        ),
        ((a, mean), idle, why_idle),
        ((mean, b), idle, why_idle),
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
        (
            asked,
            "only the marked tokens ask",
            "At a marked token its slot is right, elsewhere it is the average of all: "
            "the queries are made of the marks. Every token has to ask: make the query "
            "of coordinate 5, which is 1 for all.",
        ),
    ):
        wrong = parts if isinstance(parts, torch.Tensor) else torch.cat(parts)
        if bool((output - wrong).abs().max() <= 2e-3):
            refuse(name, why, **say)
    why = (
        "Look at one head alone: does its weight fall on the marked token, and do w_v "
        "and w_o carry the coordinates 2 to 4 to its place in the output?"
    )
    expect.true(False, "the output is not the two values", why=why, **say)
