"""Temperature, top-k and top-p: what is left to draw from."""

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch

from autograder import expect
from autograder.chapters.decoder.writing.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.expect import describe_error, refuse, refuse_if, show
from autograder.interface import Data, StudentError, StudentFunction


def _filtered(
    logits: torch.Tensor, temperature=1.0, top_k=None, top_p=None
) -> torch.Tensor:
    """Go through each row with a sorted list."""
    rows = logits.reshape(-1, logits.shape[-1]).double() / temperature
    kept = [_stays(row.tolist(), top_k, top_p) for row in rows]
    never = torch.tensor(-math.inf, dtype=torch.float64)
    return torch.where(torch.tensor(kept), rows, never).reshape(logits.shape).float()


def _stays(row: list[float], k: int | None, p: float | None) -> list[bool]:
    ranked = sorted(row, reverse=True)
    stays = [k is None or value >= ranked[min(k, len(row)) - 1] for value in row]
    if p is not None:
        weights = [math.exp(x) * keep for x, keep in zip(row, stays, strict=True)]
        share, taken = 0.0, set()
        for place in sorted(range(len(row)), key=lambda i: -weights[i]):
            if share >= p:
                break
            share += weights[place] / math.fsum(weights)
            taken.add(place)
        stays = [keep and i in taken for i, keep in enumerate(stays)]
    return stays


HAND = torch.tensor([0.5, 0.25, 0.15, 0.1]).log()

filters = Function("filter-logits", "filter_logits", _filtered)

# --- what goes wrong ------------------------------------------------------------------


def _filter(
    logits: torch.Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    *,
    never: float = -math.inf,
    k_stays: Callable = lambda x, k: x >= x.topk(k).values[..., -1:],
    p_stays: Callable | None = None,
    p_first: bool = False,
) -> torch.Tensor:
    """Filter by rules that can be varied; ``…_stays`` mark what is kept."""
    logits = logits / temperature

    def limit_k(x):
        if top_k is None:
            return x
        return torch.where(k_stays(x, min(top_k, x.shape[-1])), x, never)

    def limit_p(x):
        if top_p is None:
            return x
        return torch.where((p_stays or _nucleus)(x, top_p), x, never)

    first, second = (limit_p, limit_k) if p_first else (limit_k, limit_p)
    return second(first(logits))


def _unsorted(stays: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(stays).scatter(-1, order, stays)


def _nucleus(
    x: torch.Tensor,
    p: float,
    *,
    weights: torch.Tensor | None = None,
    own: bool = False,
    undo: bool = True,
    at_least_one: bool = False,
    descending: bool = True,
) -> torch.Tensor:
    """Mark the nucleus; ``own`` counts a token's own probability against it."""
    chances = x.softmax(-1) if weights is None else weights
    ranked, order = chances.sort(dim=-1, descending=descending)
    sums = ranked.cumsum(-1) - (0 if own else ranked)
    stays = sums <= p if own else sums < p
    if at_least_one:
        stays[..., 0] = True
    return _unsorted(stays, order) if undo else stays


def _exactly(x: torch.Tensor, k: int, *, by: str) -> torch.Tensor:
    if by == "topk":
        order = x.topk(k).indices
    else:
        order = x.sort(dim=-1, descending=True, stable=True).indices[..., :k]
    return torch.zeros_like(x, dtype=torch.bool).scatter(-1, order, True)


TIES = (
    "More than k tokens may be equal to the k-th largest, and all of them stay. "
    "Compare with its value; do not pick k places."
)
ONE_SHORT = (
    "The token with which the sum reaches p belongs to the smallest set that reaches "
    "it. Drop a token only if the sum of those before it is p already."
)

filters.mistake(
    "multiplied by the temperature",
    "Multiplied, a high temperature makes the distribution sharper. Divide the "
    "logits by it.",
)(lambda x, t=1.0, *limits: _filter(x, 1 / t, *limits))
filters.mistake(
    "the temperature is not used",
    "The logits are divided by the temperature before anything else.",
)(lambda x, t=1.0, *limits: _filter(x, 1.0, *limits))
filters.mistake(
    "zeros in place of −∞",
    "A logit of 0 is a token like others, e⁰ = 1 before it is normalised. Never is "
    "−∞: its exponential is 0.",
)(partial(_filter, never=0.0))
for never in (-1e4, -1e9, -1e10, -1e30):
    filters.mistake(
        "a large negative number in place of −∞",
        "It works only as long as no logit comes near it, and a number is no way "
        "to tell who was dropped. Put −∞, -math.inf.",
    )(partial(_filter, never=never))
for by in ("topk", "sort"):
    filters.mistake("ties are cut", TIES)(
        partial(_filter, k_stays=partial(_exactly, by=by))
    )
filters.mistake(
    "the k-th is dropped",
    "k tokens stay, and the k-th largest is one of them: only what is *smaller* "
    "becomes −∞.",
)(partial(_filter, k_stays=lambda x, k: x > x.topk(k).values[..., -1:]))
filters.mistake(
    "the smallest are kept",
    "The k smallest logits were kept; topk gives the largest when it is not told "
    "otherwise.",
)(partial(_filter, k_stays=lambda x, k: x <= x.topk(k, largest=False).values[..., -1:]))
filters.mistake("one token short", ONE_SHORT)(
    partial(_filter, p_stays=partial(_nucleus, own=True))
)
filters.mistake("one token short", ONE_SHORT)(
    partial(_filter, p_stays=partial(_nucleus, own=True, at_least_one=True))
)
filters.mistake(
    "in the order of the sorted",
    "What to drop was found among the sorted probabilities and applied to the "
    "unsorted logits. Bring it back into the order of the vocabulary.",
)(partial(_filter, p_stays=partial(_nucleus, undo=False)))
filters.mistake(
    "the sorting is done twice, not undone",
    "order says which token is at each place of the sorted. To go back you "
    "need the place of each token: gather(-1, order.argsort(-1)).",
)(
    partial(
        _filter,
        p_stays=lambda x, p: _nucleus(x, p, undo=False).gather(
            -1, x.softmax(-1).sort(dim=-1, descending=True).indices
        ),
    )
)
filters.mistake(
    "each probability compared with p",
    "p is no limit for a single token. Add up the probabilities, the largest "
    "first, and keep tokens until the sum reaches p.",
)(partial(_filter, p_stays=lambda x, p: x.softmax(-1) >= p))
filters.mistake(
    "one limit for all rows",
    "Each row is a distribution of its own and has its own k-th largest: topk "
    "along the last axis.",
)(partial(_filter, k_stays=lambda x, k: x >= x.flatten().topk(k).values[-1]))
filters.mistake(
    "softmax over the wrong axis",
    "The softmax ran over the rows. Each row is a distribution: dim=-1.",
)(
    partial(
        _filter,
        p_stays=lambda x, p: _nucleus(x, p, weights=x.softmax(0).nan_to_num(0.0)),
    )
)
filters.mistake(
    "top-p from the least probable",
    "sort() begins with the smallest. The largest probabilities are added first: "
    "descending=True.",
)(partial(_filter, p_stays=partial(_nucleus, descending=False)))
filters.mistake(
    "top-p before top-k",
    "Top-p takes the probabilities of what top-k has left, which are larger than "
    "before. Filter by k first, then take the softmax.",
)(partial(_filter, p_first=True))
filters.mistake(
    "top-p without the temperature",
    "The probabilities for top-p are those after the temperature. Go on with the "
    "divided logits.",
)(
    lambda x, t=1.0, k=None, p=None: _filter(
        x,
        t,
        k,
        p,
        p_stays=lambda y, p: _nucleus(
            y, p, weights=(y * t).softmax(-1).nan_to_num(0.0)
        ),
    )
)
filters.mistake(
    "sums of logits", "p is a share of probability. Take the softmax before you add."
)(partial(_filter, p_stays=lambda x, p: _nucleus(x, p, weights=x)))
filters.mistake(
    "top-p is not used",
    "With top_p, what lies outside the smallest set that reaches p becomes −∞.",
)(lambda x, t=1.0, k=None, p=None: _filter(x, t, k))
filters.mistake(
    "top-k is not used", "With top_k, what is smaller than the k-th largest becomes −∞."
)(lambda x, t=1.0, k=None, p=None: _filter(x, t, None, p))
filters.mistake(
    "probabilities in place of logits",
    "Logits go in and logits come out; the softmax is taken by who draws.",
)(lambda *given: _filter(*given).softmax(-1))
filters.mistake(
    "either top-k or top-p",
    "With both given, both limit: first k, then p of what k has left. Write two "
    "ifs, not if and elif.",
)(lambda x, t=1.0, k=None, p=None: _filter(x, t, k, None if k else p))
filters.mistake(
    "either top-k or top-p",
    "With both given, both limit: first k, then p of what k has left. Write two "
    "ifs, not if and elif.",
)(lambda x, t=1.0, k=None, p=None: _filter(x, t, None if p else k, p))
filters.mistake(
    "log-probabilities in place of logits",
    "What stays is the logit divided by the temperature, and nothing else is "
    "done to it; the softmax is taken by who draws.",
)(lambda *given: _filter(*given).log_softmax(-1))

# --- the check ------------------------------------------------------------------------


def _clear(logits: torch.Tensor, settings: dict) -> bool:
    """Say whether the result would be the same for a p a little smaller or larger."""
    if "top_p" not in settings:
        return True
    around = [{**settings, "top_p": settings["top_p"] + e} for e in (-1e-3, 1e-3)]
    one, two = (_filtered(logits, **each) for each in around)
    return torch.equal(one.isfinite(), two.isfinite())


def _case(on: str, logits: torch.Tensor, **settings) -> Case:
    said = ", ".join(f"{name}={value}" for name, value in settings.items())
    order = ("temperature", "top_k", "top_p")
    settings = {"temperature": 1.0, **settings}
    given = [settings.get(name) for name in order]
    while given[-1] is None:
        given.pop()
    on = f"{on}{', ' if said else ''}{said}"
    return Case(on, (logits, *given), what="the logits")


def _cases(seed: int) -> Iterator[Case]:
    """The table by hand, rows of several shapes, ties, and all three together."""
    generator = seeded(seed)
    for settings in (
        {"top_k": 2},
        {"top_p": 0.7},
        {"top_p": 0.45},
        {"top_k": 3, "top_p": 0.8},
        {"temperature": 0.5, "top_p": 0.7},
        {"top_k": 2, "top_p": 0.95},
        {"temperature": 0.5},
    ):
        yield _case("ln (.5, .25, .15, .1)", HAND, **settings)
    five = torch.tensor([0.3, 0.25, 0.2, 0.15, 0.1]).log()
    yield _case("ln (.3, .25, .2, .15, .1)", five, top_k=4, top_p=0.6)
    b, t = draw_sizes(generator, 2)
    settings = [
        {},
        {"temperature": 2.5},
        {"top_k": 4},
        {"top_p": 0.6},
        {"top_p": 0.93},
        {"temperature": 0.4, "top_p": 0.7},
        {"temperature": 3.0, "top_p": 0.7},
        {"temperature": 0.7, "top_k": 5, "top_p": 0.8},
        {"temperature": 1.7, "top_k": 3, "top_p": 0.55},
    ]
    for number, each in enumerate(settings):
        shape = [(11,), (b, 9), (b, t, 10)][number % 3]
        logits = 2 * normal(generator, *shape)
        while not _clear(logits, each):
            logits = 2 * normal(generator, *shape)
        yield _case(f"logits {shape}", logits, **each)
    ties = torch.tensor([[1.0, 3, 2, 2, 0, 2], [5.0, 5, 5, -1, 4, 4]])
    yield _case("rows with ties", ties, top_k=2)
    yield _case("rows with ties", ties, top_k=3, temperature=2.0)
    yield _case("even logits", torch.zeros(2, 4), top_p=1.0)


@chapter.check(section="decoder-sampling")
def filter_logits(student: StudentFunction, seed: int = 0) -> None:
    """Check the table by hand, sorted rows, ties, all three together, refusals."""
    try:
        for case in _cases(seed):
            got = student(*case.inputs)
            _expect_logits(got, case)
            filters.compare(got, case)
        _expect_large_k(student)
    except StudentError as error:
        why = "Settings that are allowed: p may be 1, and k may be larger than V."
        say = {"on": error.call, "got": describe_error(error)}
        strict = error.kind == "ValueError"
        refuse_if(strict, "good settings are refused", why, **say)
        raise
    _expect_refusals(student)


def _expect_logits(got: Data, case: Case) -> None:
    shape = tuple(case.inputs[0].shape)
    expect.tensor(got, shape=shape, finite=False, on=case.on, what="the logits")
    nan = bool(got.isnan().any())
    why = (
        "0 · −∞, or −∞ − (−∞), is nan. Put −∞ into the logits with masked_fill or "
        "torch.where; do not multiply or add."
    )
    say = {"on": case.on, "got": show(got), "expected": "numbers and −∞"}
    expect.true(not nan, "the logits contain nan", why=why, **say)


def _expect_large_k(student: StudentFunction) -> None:
    on = "four logits, top_k=9"
    try:
        got = student(HAND, 1.0, 9)
    except StudentError as error:
        if error.kind in ("RuntimeError", "IndexError") and "range" in error.text:
            why = "There is no 9th largest of 4. Take the smaller of k and V."
            got = describe_error(error)
            refuse("k is larger than the vocabulary", why, on=on, got=got)
        raise
    expect.equal(got, HAND, on=on)


def _expect_refusals(student: StudentFunction) -> None:
    settings = [
        ({"temperature": 0.0}, "a temperature of 0 divides by zero"),
        ({"temperature": -1.0}, "a negative temperature turns the order round"),
        ({"top_k": 0}, "nothing would be left"),
        ({"top_p": 0.0}, "nothing would be left; 0 is a number and not None"),
        ({"top_p": -0.2}, "nothing would be left"),
        ({"top_p": 1.2}, "a probability is at most 1"),
    ]
    for each, reason in settings:
        why = (
            f"Refuse it before anything is computed: {reason}. Test `is not None`, as "
            "`if top_p:` takes 0 for nothing."
        )
        on = ", ".join(f"{name}={value}" for name, value in each.items())
        call = lambda each=each: student(HAND, **each)  # noqa: E731
        name = "bad settings are accepted"
        expect.raises("ValueError", call, on=on, why=why, mistake=name)
