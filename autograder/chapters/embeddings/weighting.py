"""tf-idf: how often a word occurs in a document, and in how few."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.embeddings.chapter import chapter
from autograder.chapters.embeddings.texts import called, write
from autograder.chapters.embeddings.vocabularies import numbered
from autograder.exercise.inputs import draw_several, draw_sizes, seeded
from autograder.exercise.spec import Case, Function, expect_several, judge_parts
from autograder.expect import refuse_if
from autograder.forms import several
from autograder.interface import Data, StudentFunction

Documents = list[list[str]]
Weighed = tuple[torch.Tensor, list[str]]


def terms_of(documents: Documents) -> list[str]:
    """List the terms in order of first appearance."""
    return list(numbered([token for each in documents for token in each], ()))


def by_definition(documents: Documents) -> Weighed:
    """Compute one entry after the other, in Python's own numbers."""
    terms = terms_of(documents)
    holding = [sum(term in document for document in documents) for term in terms]
    matrix = [
        [
            document.count(term) * math.log(len(documents) / number)
            for term, number in zip(terms, holding, strict=True)
        ]
        for document in documents
    ]
    return torch.tensor(matrix).view(len(documents), len(terms)), terms


weighting = Function("tf-idf", "tf_idf", by_definition)


# --- what goes wrong ------------------------------------------------------------------


def _counts(documents: Documents, terms: list[str]) -> torch.Tensor:
    rows = [[document.count(term) for term in terms] for document in documents]
    return torch.tensor(rows, dtype=torch.float32).view(len(documents), len(terms))


def weighed(
    documents: Documents,
    *,
    listed: Callable = terms_of,
    columns: Callable = lambda terms: terms,
    rows: Callable = _counts,
    frequency: Callable = lambda counts: counts,
    total: Callable = len,
    holding: Callable = lambda counts, own: (counts > 0).sum(0),
    fraction: Callable = lambda number, held: number / held,
    logarithm: Callable = torch.log,
    more: float = 0.0,
    joined: Callable = torch.mul,
    form: Callable = lambda matrix: matrix,
) -> Weighed:
    """Weigh with slips, which may be several.

    Args:
        documents: tokens of each.
        listed: the terms, of the documents.
        columns: the terms in the order of the columns, of the terms as they are listed.
        rows: counts of the terms in the documents, of both.
        frequency: the first factor, of the counts.
        total: the number of documents, of the counts.
        holding: documents with the term, of the counts and of those that are right.
        fraction: of both.
        logarithm: of the fraction.
        more: what is added to the logarithm.
        joined: both factors in one.
        form: of the matrix.
    """
    terms = listed(documents)
    order = columns(terms)
    counts = rows(documents, order)
    held = holding(counts, _counts(documents, order))
    special = logarithm(fraction(torch.as_tensor(total(counts)), held)) + more
    return form(joined(frequency(counts), special)), terms


OCCURRENCES = "occurrences in place of documents"
HOW_MANY = "The logarithm is of documents over documents that hold the term."
NATURAL = "The natural logarithm is wanted: torch.log, math.log."
NO_FRACTION = "not the logarithm of the fraction"
VARIANT = (
    "another variant of the formula",
    "Libraries add 1 in the fraction, after the logarithm, or both, and may scale rows "
    "to length 1. Here it is count · ln(documents / those with the term).",
)
EMPTY = (
    "an empty document is left out",
    "A document without any word is a document, too: it has a row, of zeros, and it "
    "counts among the documents.",
)
EQUAL = (
    "equal documents are not told apart",
    "A document may occur twice, and each time it is a row of its own. Who looks a "
    "document up finds the first that is equal: number the rows in the order in which "
    "you go through them.",
)
ORDER = (
    "columns in another order than the terms",
    "The columns are sorted, the list of terms is not: make both from one list.",
)
SORTED = (
    "terms in alphabetical order",
    "Right terms, but sorted. In order of first appearance they match your "
    "vocabulary: dict.fromkeys keeps that order.",
)
TWICE = "a term is listed twice", "A term that occurs again gets no second column."
CAPITALS = (
    "capital letters are lost",
    "Zebra and zebra are two tokens, and two terms: take the tokens as they are.",
)
FEWER = (
    "terms are missing",
    "Every token that occurs in any of the documents is a term, however rare, frequent "
    "or short it is.",
)
OTHER_ORDER = (
    "terms in another order",
    "Right terms; wanted in order of first appearance (a set has no order).",
)


def _looked_up(documents: Documents, terms: list[str], *, added: bool) -> torch.Tensor:
    """Count into the first row that is equal: once more, or once for all."""
    own = _counts(documents, terms)
    counts = torch.zeros_like(own)
    for document, row in zip(documents, own, strict=True):
        first = documents.index(document)
        counts[first] = row + counts[first] * added
    return counts


def _small(terms: list[str]) -> list[str]:
    return list(dict.fromkeys(term.lower() for term in terms))


def _normalized(matrix: torch.Tensor) -> torch.Tensor:
    return F.normalize(matrix, dim=1)


DIVISORS: tuple[tuple[str, Callable], ...] = (
    ("the length of the document", lambda c: c.sum(1, True)),
    ("the length of the document", lambda c: c.sum(1, True).clamp(1)),
    ("the number of its different words", lambda c: (c > 0).sum(1, True).clamp(1)),
    ("the largest of the document", lambda c: c.amax(1, True).clamp(1)),
    ("the number of all terms", lambda c: c.shape[1]),
    ("how often the term occurs in all", lambda c: c.sum(0)),
    ("the number of all words", torch.sum),
)
PLAIN: dict[str, Callable] = {"logarithm": lambda fraction: fraction}
ADDED: dict[str, Callable] = {"total": lambda counts: 1 + len(counts)}
HELD: dict[str, Callable] = {"holding": lambda counts, own: 1 + (counts > 0).sum(0)}
ALL: dict[str, Callable] = {"holding": lambda counts, own: counts.sum(0)}
OWN: dict[str, Callable] = {"holding": lambda counts, own: (own > 0).sum(0)}
SLIPS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (*VARIANT, {"frequency": torch.log1p}),
    (*VARIANT, {"frequency": lambda c: (1 + c.clamp(1).log()) * (c > 0)}),
    (*VARIANT, ADDED | HELD),
    (*VARIANT, ADDED | HELD | {"more": 1.0}),
    (*VARIANT, {"more": 1.0}),
    (*VARIANT, {"logarithm": torch.log1p}),
    (*VARIANT, HELD),
    (*VARIANT, ADDED),
    (*VARIANT, HELD | {"more": 1.0}),
    (*VARIANT, {"fraction": lambda number, held: (number - held) / held}),
    (*VARIANT, {"form": _normalized}),
    (*VARIANT, ADDED | HELD | {"more": 1.0, "form": _normalized}),
    *(
        (
            "shares in place of counts",
            f"The counts were divided by {what}; here they are not.",
            {"frequency": lambda counts, divisor=divisor: counts / divisor(counts)},
        )
        for what, divisor in DIVISORS
    ),
    (
        "0 or 1 in place of counts",
        "A term that occurs twice in a document counts twice.",
        {"frequency": lambda c: (c > 0).float()},
    ),
    (
        "only the counts",
        "'the' would be the most important word. Multiply by the logarithm.",
        {"joined": lambda c, special: c},
    ),
    (
        "only the logarithms",
        "How often the term is in this document counts, too: multiply by the count.",
        {"joined": lambda c, special: special.expand_as(c)},
    ),
    (
        "a sum in place of the product",
        "Multiply the count by the logarithm: a word that is not there then gets 0.",
        {"joined": torch.add},
    ),
    (
        OCCURRENCES,
        "How many documents hold the term, not how often it occurs in all: "
        "(counts > 0).sum(dim=0).",
        ALL,
    ),
    (OCCURRENCES, HOW_MANY, {"total": torch.sum} | ALL),
    (OCCURRENCES, HOW_MANY, {"total": torch.sum}),
    (
        "terms counted in place of documents",
        "The logarithm is of all documents over those that hold the term; how many "
        "terms there are has no part in it.",
        {"total": lambda counts: counts.shape[1]},
    ),
    (
        "the fraction upside down",
        "The logarithm of (documents with the term / documents) is negative. A rare "
        "term has a large weight: documents over documents with the term.",
        {"fraction": lambda number, held: held / number},
    ),
    (
        "the fraction is rounded down",
        "// drops what stands behind the point: of 3 documents over 2 it makes 1, and "
        "the logarithm is 0. Divide with /.",
        {"fraction": lambda number, held: number // held},
    ),
    ("logarithm to base 10", NATURAL, {"logarithm": torch.log10}),
    ("logarithm to base 2", NATURAL, {"logarithm": torch.log2}),
    (
        "no logarithm",
        "Without the logarithm, a term that is everywhere has the factor 1, not 0.",
        PLAIN,
    ),
    (
        NO_FRACTION,
        "Divide first; then take the logarithm of the quotient.",
        {"fraction": lambda number, held: number.log() / held} | PLAIN,
    ),
    (
        NO_FRACTION,
        "ln(a / b) is no quotient of two logarithms. Divide first, then take one.",
        {"fraction": lambda number, held: number.log() / held.log()} | PLAIN,
    ),
    ("terms in rows", "A document is a row, a term a column.", {"form": torch.t}),
    (*ORDER, {"columns": sorted}),
    (*ORDER, {"columns": lambda terms: terms[::-1]}),
    (*EMPTY, {"total": lambda counts: counts.any(1).sum()}),
    (
        *EMPTY,
        {"rows": lambda documents, terms: _counts([*filter(None, documents)], terms)},
    ),
    (*EQUAL, {"rows": partial(_looked_up, added=True)}),
    (*EQUAL, {"rows": partial(_looked_up, added=False)}),
    (*EQUAL, {"rows": partial(_looked_up, added=True)} | OWN),
    (*EQUAL, {"rows": partial(_looked_up, added=False)} | OWN),
    (*SORTED, {"listed": lambda documents: sorted(terms_of(documents))}),
    (*TWICE, {"listed": lambda documents: [t for each in documents for t in each]}),
    (*CAPITALS, {"listed": lambda documents: _small(terms_of(documents))}),
    (*FEWER, {"listed": lambda documents: terms_of(documents[:1])}),
    (*OTHER_ORDER, {"listed": lambda documents: terms_of(documents)[::-1]}),
)
SHOWS = {
    EMPTY[0]: lambda documents: not all(documents),
    EQUAL[0]: lambda documents: any(
        documents.index(each) < i for i, each in enumerate(documents)
    ),
}
for name, why, slip in SLIPS:
    weighting.mistake(name, why, when=SHOWS.get(name))(partial(weighed, **slip))


@weighting.mistake(
    "a term is found inside other words",
    "`term in text` finds 'a' in 'cat' as well, so too many documents hold the term. "
    "Ask whether the list has it, not the joined text.",
)
def _(documents):
    texts = [" ".join(tokens) for tokens in documents]
    found = [[term in text for term in terms_of(documents)] for text in texts]
    return weighed(documents, holding=lambda *_: torch.tensor(found).sum(0))


# --- the check ------------------------------------------------------------------------


@chapter.check(section="embeddings-count-vectors")
def tf_idf(student: StudentFunction, seed: int = 0) -> None:
    """scikit-learn's counts and weights, by hand and on random documents."""
    generator = seeded(seed)
    count, *lengths = draw_sizes(generator, 5)
    stock = ["zebra", "the", "a", "cat", "dog", "sees", "mice", "tea"]
    drawn = [
        [stock[i] for i in draw_several(generator, 0, 8, 4 + length)]
        for length in lengths
    ]
    drawn[0] += ["zebra"] * count + ["Zebra"]
    hand = ["the cat sees the dog", "the dog sleeps", "the cat sleeps"]
    for documents in (
        [each.split() for each in hand],
        drawn,
        [["tea", "tea"]],
        [["tea", "milk", "tea"], [], ["tea", "milk", "tea"]],
    ):
        names, on = ("the matrix", "the terms"), called("tf_idf", documents)
        got = expect_several(student(documents), names, on)
        case = Case(on, (documents,))
        _expect_terms(got[1], terms_of(documents), on)
        judge_parts(weighting, got, case, names, several)


def _expect_terms(got: Data, terms: list[str], on: str) -> None:
    say = {"on": on, "got": write(got), "expected": write(terms)}
    listed = isinstance(got, list) and all(isinstance(each, str) for each in got)
    why = "The second result is the list of the terms, each once."
    expect.true(listed, "the terms are no list of strings", why=why, **say)
    refuse_if(got != terms and got == sorted(terms), *SORTED, **say)
    refuse_if(len(got) > len(set(got)), *TWICE, **say)
    refuse_if(got != terms and set(got) == set(terms), *OTHER_ORDER, **say)
    refuse_if(got == _small(terms) != terms, *CAPITALS, **say)
    refuse_if(set(got) < set(terms), *FEWER, **say)
    expect.true(got == terms, "the terms are wrong", why=why, **say)
