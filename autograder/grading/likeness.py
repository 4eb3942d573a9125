"""Which submissions look alike: a hint where to look, never a verdict.

An answer is read as a syntax tree, so that comments, layout, annotations and the names
of variables do not count. Runs of ``RUN`` nodes are hashed, and some of the hashes are
kept by winnowing (Schleimer, Wilkerson and Aiken, 2003): two answers that share
``RUN + WINDOW - 1`` nodes in a row share a fingerprint. What the stub holds is taken
off.

Short exercises have few right answers, and everybody's look alike. So a fingerprint
weighs the more, the rarer it is in the class; two answers are alike if they share most
of that weight; and each exercise in which two students are alike counts by its surprise
in bits: log2 of how many students there are for each who wrote the same, less for short
answers and for ordinary ones. The model answer counts as if half of the class had
written it, and a class as if ``UNSEEN`` more students were in it. A pair is reported
when its bits, over all exercises of the chapter, exceed what chance would show in one
of 2 ** ``MARGIN`` classes of this size.

Two answers that are alike share one of the rarest fingerprints of either: all others
together weigh too little (the prefix filter of Chaudhuri, Ganti and Kaushik, 2006). So
only pairs that share one of these are compared. In a class of more than ``CROWD``, one
that more students have than that forms no pairs, and the work grows as the class does,
not as its square. Pairs may be missed so, and the report says where. How many wrote an
answer of which pairs may be missing is estimated from ``CROWD`` students.
"""

import ast
import hashlib
import itertools
import math
import warnings
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from autograder.grading.trees import remembered

RUN, WINDOW = 8, 4  # nodes in a fingerprint; of so many in a row one is kept
UNSEEN = 10  # students that every class is taken to have besides
SHARE = 0.75  # of what weighs in either answer, that both must have
USUAL = 12  # rare fingerprints that make an answer long enough to count in full
MOST = 2.0  # how often in full a long answer counts
LEAST = 0.5  # bits: less is not worth adding up
MARGIN = 6  # bits beyond what the number of pairs explains
LONGEST = 50_000  # characters of an answer that are read
BAD_LINES = 20  # how many lines Python may stumble over
CROWD = 500  # students: a fingerprint that more of them have forms no pairs
BLOCK = 1_000_000  # pairs of students that are looked at together
ENTRIES = 4_000_000  # fingerprints of all answers that are compared together


@dataclass(frozen=True)
class Pair:
    """Two students whose answers are more alike than chance explains."""

    first: str
    second: str
    bits: float  # how surprising what they share is, over all exercises named
    exercises: dict[str, float]  # -> the share that the two answers have in common


def _rank(pair: Pair) -> tuple[float, str, str]:
    return -pair.bits, pair.first, pair.second


@dataclass
class _Exercise:
    """The answers to one exercise: by student's number, the fingerprints."""

    starter: frozenset[int]
    model: frozenset[int]
    prints: dict[int, array] = field(default_factory=dict)


@dataclass(frozen=True)
class _Alike:
    """Pairs of students that are alike in one exercise."""

    pairs: np.ndarray  # smaller number times the number of students, plus the larger
    bits: np.ndarray
    share: np.ndarray
    is_crowded: bool  # whether some pairs were not formed


class Class:
    """The answers of a class to one chapter; keeps fingerprints, not texts.

    ``starters`` and ``models`` give, by exercise, the stub and the model answer.

    Attributes:
        crowded: the exercises in which ``pairs`` did not form every pair.
    """

    def __init__(self, starters: Mapping[str, str], models: Mapping[str, str]) -> None:
        self.crowded: list[str] = []
        self._students: list[str] = []
        self._exercises = {}
        for name, text in starters.items():
            starter = frozenset(_hashes(tokens(text)))
            model = fingerprints(models.get(name, "")) - starter
            self._exercises[name] = _Exercise(starter, model)

    def add(self, student: str, answers: Mapping[str, str]) -> None:
        """Add a student's answers, by exercise."""
        found = {name: fingerprints(answers.get(name, "")) for name in self._exercises}
        number = len(self._students)
        self._students.append(student)
        for name, exercise in self._exercises.items():
            if own := found[name] - exercise.starter:
                exercise.prints[number] = array("Q", sorted(own))

    def pairs(self) -> list[Pair]:
        """Return the pairs that look alike, the most surprising first."""
        alike = {name: self._alike(each) for name, each in self._exercises.items()}
        self.crowded = [name for name, each in alike.items() if each.is_crowded]
        keys = np.concatenate([each.pairs for each in alike.values()] or [_NONE])
        bits = np.concatenate([each.bits for each in alike.values()] or [_NONE])
        found, places = np.unique(keys, return_inverse=True)
        in_all = np.bincount(places, weights=bits, minlength=len(found))
        reported = {
            int(key): self._pair(int(key), float(total))
            for key, total in zip(found, in_all, strict=True)
            if total >= self._threshold()
        }
        for name, each in alike.items():
            for place in np.isin(each.pairs, list(reported)).nonzero()[0]:
                pair = reported[int(each.pairs[place])]
                pair.exercises[name] = float(each.share[place])
        return sorted(reported.values(), key=_rank)

    def _size(self) -> int:
        return len(self._students) + UNSEEN

    def _threshold(self) -> float:
        """Return the bits that a pair needs: many pairs make rare things happen."""
        return math.log2(math.comb(self._size(), 2)) + MARGIN

    def _pair(self, key: int, bits: float) -> Pair:
        first, second = divmod(key, len(self._students))
        return Pair(self._students[first], self._students[second], bits, {})

    def _alike(self, exercise: _Exercise) -> _Alike:
        """Compare the answers to an exercise that share something rare."""
        answers = _Answers(*self._table(exercise))
        first, second, common, share = answers.alike()
        writers = answers.writers(first, second)
        writers += answers.with_model() * self._size() / 2
        bits = self._bits(common, writers[first])
        kept = bits >= LEAST
        rows = np.array([*exercise.prints], dtype=int)
        pairs = rows[first[kept]] * len(self._students) + rows[second[kept]]
        return _Alike(pairs, bits[kept], share[kept], bool(answers.is_crowded.any()))

    def _bits(self, common: np.ndarray, writers: np.ndarray) -> np.ndarray:
        """Say how surprising it is that two students wrote the same."""
        writers = np.clip(writers, 2, self._size())
        rare = common / math.log2(self._size() / 2)  # as if each were shared by two
        length = np.minimum(rare / USUAL, MOST)
        return np.log2(self._size() / writers) * length

    def _table(self, exercise: _Exercise) -> tuple[sparse.csr_array, np.ndarray]:
        """Return who (row) has which fingerprint (column), and the columns' weights."""
        answers = [*exercise.prints.values(), sorted(exercise.model)]
        table, columns = _incidence(answers)
        owners = np.asarray(table[:-1].sum(axis=0)).ravel()
        expected = np.array([each in exercise.model for each in columns], dtype=float)
        owners = np.clip(owners + expected * self._size() / 2, 1, self._size())
        return table, np.log2(self._size() / owners)


_NONE = np.array([], dtype=int)


class _Answers:
    """The answers to an exercise as rows of a table, the model answer the last.

    Args:
        table: who (row) has which fingerprint (column), as 0 and 1.
        weights: of the columns.

    Attributes:
        is_crowded: for each student, whether he may be alike to some with whom he forms
            no pair, as they share only what many have.
    """

    def __init__(self, table: sparse.csr_array, weights: np.ndarray) -> None:
        order = np.argsort(-weights, kind="stable")
        self._table = table[:, order].tocsr()
        self._table.sort_indices()  # in every row the rarest comes first
        self._weights = weights[order]
        self._totals = self._table @ self._weights
        self._links, self.is_crowded = self._split()

    def _split(self) -> tuple[sparse.csr_array, np.ndarray]:
        """Return which fingerprints form pairs, and who is crowded."""
        table = self._table[:-1]
        rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
        owners = np.bincount(table.indices, minlength=table.shape[1])[table.indices]
        is_rare = self._is_rare(table, rows)
        forms = is_rare & (owners <= CROWD)
        places = rows[forms], table.indices[forms]
        links = sparse.csr_array((np.ones(len(places[0])), places), shape=table.shape)
        left = np.bincount(rows[is_rare & ~forms], minlength=table.shape[0])
        return links, left > 0

    def _is_rare(self, table: sparse.csr_array, rows: np.ndarray) -> np.ndarray:
        """Say of each entry whether two alike answers may share none before it."""
        weights = self._weights[table.indices]
        before = np.cumsum(weights) - weights
        begins = before[table.indptr[rows]]
        rest = self._totals[rows] - (before - begins)
        return rest >= SHARE * self._totals[rows] - 1e-6  # sums are not exact

    def alike(self) -> tuple[np.ndarray, ...]:
        """Return pairs of students: two rows, the weight in common, and its share."""
        parts: list[tuple[np.ndarray, ...]] = [(_NONE, _NONE, np.zeros(0), np.zeros(0))]
        for start, end in self._blocks():
            found = (self._links[start:end] @ self._links.T).tocoo()
            later = found.col > found.row + start
            first, second = found.row[later] + start, found.col[later]
            parts.extend(self._compared(first, second))
        return tuple(map(np.concatenate, zip(*parts, strict=True)))

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Cut the rows into blocks of some ``BLOCK`` pairs, or of one row."""
        pairs = np.cumsum(self._links @ self._links.sum(axis=0))
        cuts = (np.diff(pairs // BLOCK) > 0).nonzero()[0] + 1
        return itertools.pairwise([0, *cuts.tolist(), len(pairs)])

    def _compared(
        self, first: np.ndarray, second: np.ndarray
    ) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield those of the pairs that are alike, in parts."""
        lengths = np.diff(self._table.indptr)
        size = max(1, ENTRIES // max(1, lengths.max()))
        for start in range(0, len(first), size):
            a, b = first[start : start + size], second[start : start + size]
            both = self._table[a].multiply(self._table[b]).tocsr()
            common = both @ self._weights
            share = self._share(common, self._totals[a] + self._totals[b])
            kept = share >= SHARE
            yield a[kept], b[kept], common[kept], share[kept]

    def writers(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Say how many wrote like each student, himself among them.

        ``first`` and ``second`` are all pairs that are alike.
        """
        found = np.ones(len(self.is_crowded))
        for each in (first, second):
            found += np.bincount(each, minlength=len(found))
        crowded = self.is_crowded.nonzero()[0]
        found[crowded] = np.maximum(found[crowded], self._estimated(crowded))
        return found

    def _estimated(self, rows: np.ndarray) -> np.ndarray:
        """Estimate how many wrote like each of some students from a part of all."""
        students = len(self.is_crowded)
        asked = np.random.default_rng(0).permutation(students)[:CROWD]
        table = (self._table[asked] * self._weights).tocsr().T
        parts, size = [np.zeros(0)], max(1, BLOCK // CROWD)
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            common = (self._table[block] @ table).toarray()
            share = self._share(common, self._totals[block, None] + self._totals[asked])
            parts.append((share >= SHARE).sum(axis=1) * students / len(asked))
        return np.concatenate(parts)

    def with_model(self) -> np.ndarray:
        """Say which students' answers are like the model answer."""
        model = self._table[[-1]].toarray()[0] * self._weights
        common = self._table[:-1] @ model
        return self._share(common, self._totals[:-1] + self._totals[-1]) >= SHARE

    @staticmethod
    def _share(common: np.ndarray, both: np.ndarray) -> np.ndarray:
        """Return which share of what two answers have, they have in common."""
        return common / np.maximum(both - common, 1e-9)


def _incidence(
    answers: Sequence[Sequence[int]],
) -> tuple[sparse.csr_array, list[int]]:
    """Return a table of 0 and 1, and which fingerprint each column stands for."""
    numbers: dict[int, int] = {}
    columns = [
        numbers.setdefault(each, len(numbers)) for row in answers for each in row
    ]
    rows = np.repeat(np.arange(len(answers)), [len(row) for row in answers])
    shape = len(answers), len(numbers)
    ones = np.ones(len(columns))
    return sparse.csr_array((ones, (rows, columns)), shape=shape), list(numbers)


# --- fingerprints ---------------------------------------------------------------------


@remembered(4096)  # many hand in the same text, or nothing
def fingerprints(text: str) -> frozenset[int]:
    """Return the fingerprints of an answer; none of one that cannot be read."""
    return frozenset(winnow(_hashes(tokens(text))))


def winnow(hashes: list[int]) -> Iterator[int]:
    """Keep the smallest hash of every window."""
    for start in range(max(1, len(hashes) - WINDOW + 1)):
        if window := hashes[start : start + WINDOW]:
            yield min(window)


def _hashes(words: list[str]) -> list[int]:
    """Hash every run of nodes; what is shorter than a run is hashed whole."""
    if not words:
        return []
    runs = max(1, len(words) - RUN + 1)
    return [_hash(" ".join(words[start : start + RUN])) for start in range(runs)]


def _hash(text: str) -> int:
    """Return the same 64 bits for a text in every process."""
    data = text.encode("utf-8", "backslashreplace")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


# --- normalised syntax trees ----------------------------------------------------------


def tokens(text: str) -> list[str]:
    """Return the nodes of a text's syntax tree in order, without what is only taste."""
    nodes: list[ast.AST] = []
    waiting = [_parse(text[:LONGEST])]
    while waiting:  # a loop: the tree may be deeper than Python may recurse
        nodes.append(waiting.pop())
        waiting.extend(reversed(list(_children(nodes[-1]))))
    own = _own_names(nodes)
    words = (_word(node, own) for node in nodes)
    return [word for word in words if word]


def _parse(text: str) -> ast.AST:
    """Read code, leaving out the lines that Python stumbles over."""
    lines = text.splitlines()
    for _ in range(BAD_LINES):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of doubtful escapes
                return ast.parse("\n".join(lines))
        except SyntaxError as error:
            if not error.lineno or not 1 <= error.lineno <= len(lines):
                break
            del lines[error.lineno - 1]
        except (ValueError, RecursionError, MemoryError):
            break
    return ast.Module([], [])


def _own_names(nodes: Sequence[ast.AST]) -> set[str]:
    """Name what the answer binds itself: variables, helpers, attributes of self."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, (ast.Name, ast.Attribute)):
            if isinstance(node.ctx, ast.Store):
                names.add(node.id if isinstance(node, ast.Name) else f".{node.attr}")
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names |= {node.name, f".{node.name}"}
    return names


def _word(node: ast.AST, own: set[str]) -> str:
    """Return what counts of a node."""
    if isinstance(node, ast.Name):
        return "name" if node.id in own else node.id
    if isinstance(node, ast.Attribute):
        return ".name" if f".{node.attr}" in own else f".{node.attr}"
    if isinstance(node, ast.keyword):
        return f"{node.arg}="
    if isinstance(node, ast.Constant):
        return type(node.value).__name__ if _is_text(node) else repr(node.value)
    if isinstance(node, ast.AnnAssign):
        return "Assign"
    if isinstance(node, (ast.Module, ast.expr_context, ast.Expr, ast.arguments)):
        return ""
    return type(node).__name__


def _is_text(node: ast.Constant) -> bool:
    return isinstance(node.value, (str, bytes))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node, less annotations, imports and idle texts."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "ctx", "type_comment", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_idle(child):
                yield child


def _is_idle(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass))
