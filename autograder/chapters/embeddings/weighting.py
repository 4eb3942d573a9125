"""tf-idf: how often a word occurs in a document, and in how few."""

import itertools
import math
from collections.abc import Callable

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
    return torch.tensor(rows, dtype=torch.float32)


def with_matrix(name: str, why: str) -> Callable:
    """Add a mistake in the matrix: of the counts, documents, and those with a term."""

    def add(weigh: Callable[[torch.Tensor, int, torch.Tensor], torch.Tensor]) -> None:
        def answer(documents: Documents) -> Weighed:
            terms = terms_of(documents)
            counts = _counts(documents, terms)
            return weigh(counts, len(documents), (counts > 0).sum(0)), terms

        weighting.mistake(name, why)(answer)

    return add


NATURAL = "The natural logarithm is wanted: torch.log, math.log."
OCCURRENCES = "occurrences in place of documents"
VARIANT = (
    "another variant of the formula",
    "Libraries add 1 in the fraction, after the logarithm, or both, and may scale rows "
    "to length 1. Here it is count · ln(documents / those with the term).",
)


def _smooth(number: int, holding: torch.Tensor) -> torch.Tensor:
    return torch.log((1 + number) / (1 + holding))


for name, why, weigh in (
    (
        "only the counts",
        "'the' would be the most important word. Multiply by the logarithm.",
        lambda c, n, h: c,
    ),
    (
        "only the logarithms",
        "How often the term is in this document counts, too: multiply by the count.",
        lambda c, n, h: torch.log(n / h).expand_as(c),
    ),
    (*VARIANT, lambda c, n, h: c * _smooth(n, h)),
    (*VARIANT, lambda c, n, h: c * (_smooth(n, h) + 1)),
    (*VARIANT, lambda c, n, h: c * (torch.log(n / h) + 1)),
    (*VARIANT, lambda c, n, h: c * torch.log(1 + n / h)),
    (*VARIANT, lambda c, n, h: c * torch.log(n / (1 + h))),
    (*VARIANT, lambda c, n, h: F.normalize(c * torch.log(n / h), dim=1)),
    (*VARIANT, lambda c, n, h: F.normalize(c * (_smooth(n, h) + 1), dim=1)),
    (*VARIANT, lambda c, n, h: torch.log(1 + c) * torch.log(n / h)),
    (
        "terms in rows",
        "A document is a row, a term a column.",
        lambda c, n, h: (c * torch.log(n / h)).T,
    ),
):
    with_matrix(name, why)(weigh)


SHARES = (
    "shares in place of counts",
    "The counts were divided by the length of the document; here they are not.",
)
IN_COUNTS = (
    (*SHARES, lambda c: c / c.sum(1, keepdim=True)),
    (*SHARES, lambda c: c / c.sum(1, keepdim=True).clamp(min=1)),
    (
        "0 or 1 in place of counts",
        "A term that occurs twice in a document counts twice.",
        lambda c: (c > 0).float(),
    ),
)
IN_FACTORS = (
    (
        OCCURRENCES,
        "How many documents hold the term, not how often it occurs in all: "
        "(counts > 0).sum(dim=0).",
        lambda c, n, h: torch.log(n / c.sum(0)),
    ),
    (
        OCCURRENCES,
        "The logarithm is of documents over documents that hold the term.",
        lambda c, n, h: torch.log(c.sum() / c.sum(0)),
    ),
    ("logarithm to base 10", NATURAL, lambda c, n, h: torch.log10(n / h)),
    ("logarithm to base 2", NATURAL, lambda c, n, h: torch.log2(n / h)),
    (
        "no logarithm",
        "Without the logarithm, a term that is everywhere has the factor 1, not 0.",
        lambda c, n, h: n / h,
    ),
    (
        "terms counted in place of documents",
        "The logarithm is of all documents over those that hold the term; how many "
        "terms there are has no part in it.",
        lambda c, n, h: torch.log(c.shape[1] / h),
    ),
    (
        "the fraction upside down",
        "The logarithm of (documents with the term / documents) is negative. A rare "
        "term has a large weight: documents over documents with the term.",
        lambda c, n, h: torch.log(h / n),
    ),
)
for name, why, change in IN_COUNTS:
    with_matrix(name, why)(lambda c, n, h, change=change: change(c) * torch.log(n / h))
for name, why, factor in IN_FACTORS:
    with_matrix(name, why)(lambda c, n, h, factor=factor: c * factor(c, n, h))
for (first, reason, change), (second, other, factor) in itertools.product(
    IN_COUNTS, IN_FACTORS
):
    with_matrix(f"{first}, and {second}", f"{reason}\n{other}")(
        lambda c, n, h, change=change, factor=factor: change(c) * factor(c, n, h)
    )


def in_order(documents: Documents, terms: list[str]) -> Weighed:
    """Weigh these terms, in this order."""
    counts = _counts(documents, terms)
    holding = (counts > 0).sum(0)
    return counts * torch.log(len(documents) / holding), terms


weighting.mistake(
    "columns in another order than the terms",
    "The columns are sorted, the list of terms is not: make both from one list.",
)(
    lambda documents: (
        in_order(documents, sorted(terms_of(documents)))[0],
        terms_of(documents),
    )
)
EQUAL = (
    "equal documents are not told apart",
    "A document may occur twice, and each time it is a row of its own. Who looks a "
    "document up finds the first that is equal: number the rows in the order in which "
    "you go through them.",
)


def _repeated(documents: Documents) -> bool:
    return any(documents.index(each) < i for i, each in enumerate(documents))


def _looked_up(documents: Documents, terms: list[str], *, added: bool) -> torch.Tensor:
    """Count into the first row that is equal: once more, or once for all."""
    own = _counts(documents, terms)
    counts = torch.zeros_like(own)
    for document, row in zip(documents, own, strict=True):
        first = documents.index(document)
        counts[first] = row + counts[first] * added
    return counts


for added, from_counts in itertools.product((True, False), repeat=2):

    def _one_row(documents, added=added, from_counts=from_counts):
        terms = terms_of(documents)
        counts = _looked_up(documents, terms, added=added)
        held = counts if from_counts else _counts(documents, terms)
        return counts * torch.log(len(documents) / (held > 0).sum(0)), terms

    weighting.mistake(*EQUAL, when=_repeated)(_one_row)
SORTED = (
    "terms in alphabetical order",
    "Right terms, but sorted. In order of first appearance they match your "
    "vocabulary: dict.fromkeys keeps that order.",
)
TWICE = "a term is listed twice", "A term that occurs again gets no second column."
OTHER_ORDER = (
    "terms in another order",
    "Right terms; wanted in order of first appearance (a set has no order).",
)
for name, why, listed in (
    (*SORTED, lambda documents: sorted(terms_of(documents))),
    (*TWICE, lambda documents: [token for each in documents for token in each]),
    (*OTHER_ORDER, lambda documents: terms_of(documents)[::-1]),
):
    weighting.mistake(name, why)(
        lambda documents, listed=listed: in_order(documents, listed(documents))
    )


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
    drawn[0] += ["zebra"] * count
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
    expect.true(got == terms, "the terms are wrong", why=why, **say)
