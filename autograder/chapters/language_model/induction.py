"""How much a head looks at what followed last time, and which head does so most."""

from collections.abc import Callable, Iterator
from functools import partial

import torch

from autograder.chapters.language_model.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function, expect_several, judge_parts
from autograder.forms import several
from autograder.interface import StudentFunction


def latest(tokens: list[int], place: int) -> int | None:
    """Where the token of a place occurred last before it."""
    found = [before for before in range(place) if tokens[before] == tokens[place]]
    return found[-1] if found else None


def scores_of(weights: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Look at each position in turn, in double precision."""
    ids, rows = tokens.tolist(), []
    for place in range(len(ids)):
        before = latest(ids, place)
        if before is not None:
            rows.append(weights[:, :, place, before + 1].double())
    return (sum(rows) / len(rows)).to(weights.dtype)


induction = Function("induction-score", "induction_scores", scores_of)

induction.accident(
    "is out of bounds for dimension",
    "a position beyond the end",
    "A token is not its own previous occurrence: if it were, p(t) + 1 could lie behind "
    "the last position. Only earlier positions count, .tril(-1).",
)

# --- what goes wrong in the scores ----------------------------------------------------


def _followed(
    weights: torch.Tensor,
    tokens: torch.Tensor,
    *,
    find: Callable[[list[int], int], int | None] = latest,
    step: int = 1,
    join: Callable = lambda rows: rows.mean(dim=-1),
) -> torch.Tensor:
    """Take the weights of pairs of positions that can be varied."""
    ids = tokens.tolist()
    pairs = [(place, find(ids, place)) for place in range(len(ids))]
    pairs = [(place, found) for place, found in pairs if found is not None]
    queries = torch.tensor([place for place, _ in pairs])
    keys = torch.tensor([found + step for _, found in pairs])
    return join(weights[..., queries, keys])


induction.mistake(
    "the previous occurrence itself",
    "A head that looks there finds the same token again. What is worth copying "
    "is one position later: previous + 1.",
)(partial(_followed, step=0))


induction.mistake(
    "the position before in place of after",
    "What came before the previous occurrence says nothing of what comes next: "
    "previous + 1, not previous - 1.",
)(partial(_followed, step=-1))


@induction.mistake(
    "the previous token",
    "That is a previous-token head, which every induction head is built upon. Look "
    "at the position after the previous occurrence of the same token.",
)
def _(weights, tokens):
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1).mean(dim=-1)


def _first(ids: list[int], place: int) -> int | None:
    return ids.index(ids[place]) if ids[place] in ids[:place] else None


NEW = (
    "new tokens count, too",
    "Where a token has not occurred before, nothing followed it, and the position does "
    "not count. A −1 for 'none', plus 1, is key 0.",
)
for found in (latest, _first):
    induction.mistake(*NEW)(
        partial(
            _followed,
            find=lambda ids, place, found=found: (
                -1 if found(ids, place) is None else found(ids, place)
            ),
        )
    )


induction.mistake(
    "the first occurrence in place of the latest",
    "A token can occur more than twice. The previous occurrence is the latest one "
    "before the query.",
    when=lambda weights, tokens: len(tokens) > 2 * len(tokens.unique()),
)(partial(_followed, find=_first))


induction.mistake(
    "an occurrence at position 0 is left out",
    "Position 0 is a position as the others are. Mark 'none' with -1 or with a mask of "
    "its own, and not with 0.",
)(partial(_followed, find=lambda ids, place: latest(ids, place) or None))


def _by_half(weights: torch.Tensor, begin: int, end: int | None = None) -> torch.Tensor:
    """Look back by half of the sequence, for all queries from a position on."""
    queries = torch.arange(begin, end or weights.shape[-1])
    return weights[..., queries, queries + 1 - weights.shape[-1] // 2].mean(dim=-1)


def _is_plain(weights: torch.Tensor, tokens: torch.Tensor) -> bool:
    """Whether it is one segment of different tokens, said twice."""
    half = len(tokens) // 2
    twice = len(tokens) == 2 * half and torch.equal(tokens[:half], tokens[half:])
    return twice and len(tokens.unique()) == half


BY_HALF = (
    "half of the sequence in place of the previous occurrence",
    "A fixed distance is right only if the text is one segment twice, and no token "
    "occurs twice in it. Look the previous occurrence up.",
)


@induction.mistake(*BY_HALF, when=lambda *given: not _is_plain(*given))
def _(weights, tokens):
    return _by_half(weights, len(tokens) // 2)


@induction.mistake(*BY_HALF, when=lambda *given: not _is_plain(*given))
def _(weights, tokens):
    half = len(tokens) // 2
    return _by_half(weights, half, 2 * half)


@induction.mistake(*BY_HALF)
def _(weights, tokens):
    return _by_half(weights, len(tokens) // 2 - 1)


@induction.mistake(
    "the second half alone",
    "Every position counts whose token occurred before, wherever it stands.",
    when=lambda *given: not _is_plain(*given),
)
def _(weights, tokens):
    half = len(tokens) // 2
    return _followed(
        weights,
        tokens,
        find=lambda ids, place: latest(ids, place) if place >= half else None,
    )


def _not_the_last(ids: list[int], place: int) -> int | None:
    found = latest(ids, place)
    return None if found == place - 1 else found


induction.mistake(
    "a token that stands twice in a row is left out",
    "Where the previous occurrence is right before the query, what followed is the "
    "query's own position. It counts as the others do.",
    when=lambda weights, tokens: bool((tokens[1:] == tokens[:-1]).any()),
)(partial(_followed, find=_not_the_last))


@induction.mistake(
    "queries and keys exchanged",
    "The axes are (layers, heads, queries, keys): weights[..., query, previous + 1].",
)
def _(weights, tokens):
    return _followed(weights.mT, tokens)


@induction.mistake(
    "divided by all positions",
    "Only positions whose token occurred before count: divide by how many there are.",
)
def _(weights, tokens):
    return _followed(weights, tokens, join=lambda x: x.sum(-1) / len(tokens))


induction.mistake(
    "the sum in place of the mean",
    "A weight lies between 0 and 1, and so does their mean: divide by the positions.",
)(partial(_followed, join=lambda x: x.sum(dim=-1)))


induction.mistake(
    "the largest weight in place of the mean",
    "One position can be chance. Return the mean over all of them.",
)(partial(_followed, join=lambda x: x.amax(dim=-1)))


@induction.mistake(
    "averaged over the heads",
    "Each head gets a score of its own: (layers, heads).",
)
def _(weights, tokens):
    return _followed(weights, tokens).mean(dim=1)


@induction.mistake(
    "all earlier occurrences",
    "Of several earlier occurrences only the latest counts, for each query once.",
    when=lambda weights, tokens: len(tokens) > 2 * len(tokens.unique()),
)
def _(weights, tokens):
    ids = tokens.tolist()
    pairs = [(t, p) for t in range(len(ids)) for p in range(t) if ids[p] == ids[t]]
    queries, keys = torch.tensor(pairs).T
    return weights[..., queries, keys + 1].mean(dim=-1)


# --- the head with the largest score --------------------------------------------------


def largest(scores: torch.Tensor) -> tuple[int, int]:
    """Walk over all heads."""
    places = [(n, h) for n in range(scores.shape[0]) for h in range(scores.shape[1])]
    return max(places, key=lambda place: scores[place].item())


best = Function("induction-score", "best_head", largest)


@best.mistake("head and layer exchanged", "Return (layer, head), both counted from 0.")
def _(scores):
    return largest(scores)[::-1]


@best.mistake(
    "counted from 1", "Layers and heads are numbered from 0, as their tensors are."
)
def _(scores):
    layer, head = largest(scores)
    return layer + 1, head + 1


@best.mistake(
    "divided by the layers in place of the heads",
    "argmax() counts row by row, and a row has as many entries as there are heads: "
    "divmod(place, heads).",
    when=lambda scores: scores.shape[0] != scores.shape[1],
)
def _(scores):
    return divmod(int(scores.argmax()), scores.shape[0])


@best.mistake("the smallest score", "Find the largest score: argmax.")
def _(scores):
    return largest(-scores)


@best.mistake(
    "the best layer and the best head apart",
    "The best layer on average and the best head on average need not meet in the "
    "best head. Look for the largest of all scores.",
)
def _(scores):
    return int(scores.mean(dim=1).argmax()), int(scores.mean(dim=0).argmax())


@best.mistake(
    "the best layer first, then its best head",
    "The best head need not be in the layer that is best on average. Look for the "
    "largest of all scores.",
    when=lambda scores: largest(scores)[0] != int(scores.mean(dim=1).argmax()),
)
def _(scores):
    layer = int(scores.mean(dim=1).argmax())
    return layer, int(scores[layer].argmax())


# --- the checks -----------------------------------------------------------------------


def _cases(seed: int) -> Iterator[Case]:
    """The example by hand, segments said twice, tokens that occur often."""
    row = [[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.2, 0.6, 0.2, 0], [0.1, 0.2, 0.3, 0.4]]
    hand = torch.tensor([[row]])
    on = f"the example by hand, tokens [7, 4, 7, 4], weights {row}"
    tokens = torch.tensor([7, 4, 7, 4])
    yield Case(on, (hand, tokens), torch.tensor([[0.45]]), what="the scores")
    generator = seeded(seed)
    layers, heads, half = draw_sizes(generator, 3)
    segment = torch.randperm(40, generator=generator)[: half + 3]
    twice = segment.repeat(2)
    once_more = torch.cat((segment, segment[:2], segment[:1] + 50, segment))
    often = torch.randint(4, (17,), generator=generator)
    often[8] = often[7]  # twice in a row
    for what, tokens in (
        ("a segment said twice", twice),
        ("a segment with something between", once_more),
        ("tokens that occur often", often),
    ):
        length = len(tokens)
        weights = 2 * normal(generator, layers, heads, length, length)
        hidden = ~torch.ones(length, length, dtype=torch.bool).tril()
        weights = weights.masked_fill(hidden, -torch.inf).softmax(dim=-1)
        on = f"{what}, tokens {tokens.tolist()}, weights {tuple(weights.shape)}"
        yield Case(on, (weights, tokens), what="the scores")


def _tables(seed: int) -> Iterator[Case]:
    """The example by hand, then tables of any shape."""
    by_hand = torch.tensor([[0.5, 0.6, 0.5], [0.0, 0.1, 0.9]])
    on = "the example by hand, scores [[.5, .6, .5], [0, .1, .9]]"
    yield Case(on, (by_hand,), (1, 2))
    apart = torch.tensor([[0.4, 0.5, 0.3], [0.9, 0.0, 0.1]])
    yield Case("scores [[.4, .5, .3], [.9, 0, .1]]", (apart,))
    generator = seeded(seed)
    for _ in range(5):
        layers, heads = draw_sizes(generator, 2)
        scores = torch.rand(layers, heads, generator=generator)
        yield Case(f"random scores {(layers, heads)}", (scores,))


@chapter.check(section="language-model-induction")
def induction_scores(student: StudentFunction, seed: int = 0) -> None:
    """By hand, segments said twice, tokens that occur often."""
    induction.judge_all(student, _cases(seed))


@chapter.check(section="language-model-induction")
def best_head(student: StudentFunction, seed: int = 0) -> None:
    """By hand, tables of any shape."""
    names = ("the layer", "the head")
    for case in _tables(seed):
        got = expect_several(student(*case.passed), names, case.on)
        judge_parts(best, got, case, names, several)
