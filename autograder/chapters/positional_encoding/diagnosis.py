"""Which formula made a table: the right one, or one of three wrong ones."""

import contextlib
import random

import torch

from autograder import expect
from autograder.chapters.positional_encoding import formula
from autograder.chapters.positional_encoding.chapter import chapter
from autograder.exercise.spec import Function
from autograder.expect import refuse
from autograder.interface import Data, StudentError, StudentFunction

DIAGNOSES = {
    "right": {},
    "exponent outside the base": formula.changes_of("exponent outside the base"),
    "base 1000": formula.changes_of("base 1000"),
    "cosine first": formula.changes_of(*formula.UNPAIRED),
}


def made(kind: str, length: int, d_model: int) -> torch.Tensor:
    """Return the table of a diagnosis, float32."""
    return formula.table(length, d_model, **DIAGNOSES[kind]).float()


def diagnosed(encoding: torch.Tensor) -> str:
    """Take the nearest of the four tables."""
    return min(
        DIAGNOSES,
        key=lambda kind: float((made(kind, *encoding.shape) - encoding).abs().max()),
    )


diagnoses = Function("diagnose-encoding", "diagnose_encoding", diagnosed)

COSINE_SUSPECTED = (
    "cosine first suspected",
    "Column 0 is a sine here: its first entry is sin 0 = 0. That column 1 starts with "
    "cos 0 = 1 is as it should be.",
)
EXPONENT_SUSPECTED = (
    "misplaced exponent suspected",
    "Column 0 changes from row to row here, as sin(p) should. Look down that column, "
    "from row 1 on, not at a single row: row 1 is the same in both tables.",
)
for right, said, (name, why) in (
    (
        "base 1000",
        "right",
        (
            "base 1000 not noticed",
            "Row 0, the row norms and the first pair are the same for every base, and "
            "at small d_model row 1 hardly differs. Read the angle of the last pair at "
            "position 1: it is base^(-(d-2)/d).",
        ),
    ),
    ("base 1000", "cosine first", COSINE_SUSPECTED),
    ("base 1000", "exponent outside the base", EXPONENT_SUSPECTED),
    (
        "right",
        "base 1000",
        (
            "the right base taken for 1000",
            "How large an entry is depends on d_model as well: solve for the base. The "
            "last pair has the angle base^(-(d-2)/d) at position 1. (Entries are "
            "rounded to float32: do not ask for equality.)",
        ),
    ),
    ("right", "cosine first", COSINE_SUSPECTED),
    ("right", "exponent outside the base", EXPONENT_SUSPECTED),
    (
        "exponent outside the base",
        "right",
        (
            "misplaced exponent not noticed",
            "Row norms are right here, too (sin² + cos² = 1), row 1 is right by "
            "accident (1^x = 1), and a freely fitted shift matrix fits. Look down "
            "column 0: after row 0 it never changes.",
        ),
    ),
    (
        "exponent outside the base",
        "cosine first",
        (
            "misplaced exponent taken for cosine first",
            "Its first entry is sin 1 = .84, since 0^0 = 1: large, but no cosine. Look "
            "down column 0 before you judge the first entry.",
        ),
    ),
    (
        "exponent outside the base",
        "base 1000",
        (
            "misplaced exponent taken for base 1000",
            "Look down column 0 first: after row 0 it never changes here, and no base "
            "does that.",
        ),
    ),
    (
        "cosine first",
        "right",
        (
            "cosine first not noticed",
            "Row 0 of the right matrix starts with 0 = sin 0. This one starts with a "
            "cosine, above .54 at every d_model.",
        ),
    ),
    (
        "cosine first",
        "base 1000",
        (
            "cosine first taken for base 1000 alone",
            "Its base is 1000, true, but its columns are exchanged as well: its first "
            "entry is no sin 0 = 0. Report what is wrong first.",
        ),
    ),
    (
        "cosine first",
        "exponent outside the base",
        (
            "cosine first taken for a misplaced exponent",
            "Both start with a large entry. Only with the misplaced exponent does "
            "column 0 stay the same from row 1 on.",
        ),
    ),
):
    diagnoses.mistake(
        name, why, when=lambda encoding, right=right: diagnosed(encoding) == right
    )(lambda encoding, said=said: said)


# --- the base found from the last pair: what goes wrong -------------------------------


def _exchanged(length: int, d_model: int, base: float) -> torch.Tensor:
    """Exchange sine and cosine in all pairs but the first."""
    encoding = formula.table(length, d_model, base)
    pairs = encoding[:, 2:].unflatten(1, (-1, 2)).flip(-1)
    return torch.cat((encoding[:, :2], pairs.flatten(1)), 1).float()


def _last_angle_is_inverse(length: int, d_model: int, base: float) -> torch.Tensor:
    """Take the base with which the last pair has the angle 1/base at position 1."""
    return formula.table(length, d_model, base ** (d_model / (d_model - 2))).float()


READINGS = (  # and the tables on which who reads so says what is right elsewhere
    (
        "sine and cosine of the angle exchanged",
        "You would be right if sine and cosine were exchanged in each pair. The sine, "
        "an even column, comes first in torch.atan2(sine, cosine); the other way round "
        "you get π/2 minus the angle.",
        _exchanged,
    ),
    (
        "the power d/(d - 2) is missing",
        "You would be right if the last angle were 1/base. It is base^(-(d-2)/d): "
        "1/angle is base^((d-2)/d), 3162 for base 10000 and d = 16. Raise it to the "
        "power d/(d - 2).",
        _last_angle_is_inverse,
    ),
)
BASES = {"right": formula.BASE, "base 1000": 1_000.0}


def _reading_of(student: StudentFunction, sizes: list) -> tuple[str, str] | None:
    """Find the reading with which the student tells the two bases apart."""
    for name, why, read in READINGS:
        with contextlib.suppress(StudentError):
            if all(
                student(read(*size, base)) == kind
                for size in sizes
                for kind, base in BASES.items()
            ):
                return name, why
    return None


@chapter.check(section="position-mistakes")
def diagnose_encoding(student: StudentFunction, seed: int = 0) -> None:
    """Present the right matrix and the wrong ones in several sizes."""
    draw = random.Random(seed)
    sizes = [
        (20, 16),
        (8, 4),
        (draw.choice([9, 11]), draw.choice([6, 10])),
        (draw.choice([100, 130]), 4),
        (draw.choice([33, 50]), draw.choice([128, 512])),
    ]
    for number, (length, d_model) in enumerate(sizes):
        for kind in draw.sample(list(DIAGNOSES), len(DIAGNOSES)):
            encoding = made(kind, length, d_model)
            got = student(encoding)
            on = f"the matrix {kind!r}, length = {length}, d_model = {d_model}"
            if isinstance(got, str) and {got, kind} == BASES.keys():
                reading = _reading_of(student, sizes[:3])
                say = {"on": on, "got": f"{got!r}", "expected": f"{kind!r}"}
                if reading:
                    refuse(*reading, **say)
            if got != kind or not isinstance(got, str):
                _explain(got, kind, encoding, on, first_size=number == 0)


def _explain(
    got: Data, right: str, encoding: torch.Tensor, on: str, *, first_size: bool
) -> None:
    if not isinstance(got, str) or got not in DIAGNOSES:
        why = "Return one of these strings: " + ", ".join(map(repr, DIAGNOSES))
        expect.equal(got, right, what="the diagnosis", on=on, why=why)
    taken = next(each for each in diagnoses.known(encoding) if each.value == got)
    name, why = taken.name, taken.why
    if not first_size:
        name = "right at one size only"
        why = (
            "At length 20 and d_model 16 every verdict was right: a threshold of yours "
            f"fits that size alone.\n{why}"
        )
    refuse(name, why, on=on, got=f"{got!r}", expected=f"{right!r}")
