"""The known mistakes of chapter 7's second part, writing and judging text.

Each list whose name ends in ``_CANDIDATES`` holds (name, what it gives on the arguments
of a case, why it is wrong). The checks compare a wrong answer with them, in this order.
What is right comes from elsewhere: from brute force, PyTorch or sacrebleu.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from autograder.interface import Data

Candidate = tuple[str, Callable[..., Data], str]  # a mistake, what it gives, why
State = dict[str, torch.Tensor]
Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # source, inputs, labels


# --- one epoch ------------------------------------------------------------------------


@dataclass
class Epoch:
    """An epoch of gradient descent that can be varied, on a model of our own.

    Args:
        model: gives the logits of parameters, source ids and target ids.
        state: the parameters at the beginning.
        batches: sources, inputs and labels.
        rate: of learning.
        wanted: stop with a ValueError at other losses.
    """

    model: Callable[[State, torch.Tensor, torch.Tensor], torch.Tensor]
    state: State
    batches: list[Batch]
    rate: float
    wanted: list[float] | None = None

    def __post_init__(self) -> None:
        self.now = self.state

    def run(
        self,
        see: Callable = lambda batch: (batch[0], batch[1]),
        loss: Callable = lambda logits, batch: real_loss(logits, batch[2]),
        *,
        keep: bool = False,
        late: bool = False,
        once: bool = False,
        rate: float | None = None,
    ) -> tuple[list[float], State]:
        """Return the losses and the weights in the end.

        ``keep`` adds to earlier gradients, ``late`` looks at the loss after the step,
        ``once`` makes one step, at the end of the epoch.
        """
        self.now, losses, total = dict(self.state), [], {}
        rate = self.rate if rate is None else rate
        for batch in self.batches:
            value, slopes = self._differentiated(see(batch), batch, loss)
            add = total if keep or once else {}
            total = {name: add.get(name, 0) + slope for name, slope in slopes.items()}
            if not once:
                self.now = self._stepped(self.now, total, rate)
            if late:
                value, _ = self._differentiated(see(batch), batch, loss)
            self._compare(len(losses), value)
            losses.append(value)
        return losses, self._stepped(self.now, total, rate) if once else self.now

    def _compare(self, place: int, value: float, tolerance: float = 3e-4) -> None:
        if self.wanted and abs(self.wanted[place] - value) > tolerance:
            raise ValueError("this is not what the answer did")

    def _differentiated(self, seen, batch, loss) -> tuple[float, State]:
        state = {name: each.clone().requires_grad_() for name, each in self.now.items()}
        value = loss(self.model(state, *seen), batch)
        slopes = torch.autograd.grad(value, state.values(), allow_unused=True)
        pairs = zip(state, slopes, strict=True)
        return value.item(), {k: slope for k, slope in pairs if slope is not None}

    def _stepped(self, state: State, slopes: State, rate: float) -> State:
        return {k: v - rate * slopes[k] if k in slopes else v for k, v in state.items()}

    def adam(self) -> list[float]:
        """Return what Adam gives in place of plain gradient descent.

        Where a gradient is 0 but for rounding, Adam's step is chance: compare losses.
        """
        self.now = {name: each.clone() for name, each in self.state.items()}
        optimiser = torch.optim.Adam(list(self.now.values()), lr=self.rate)
        losses = []
        for batch in self.batches:
            loss = lambda logits, batch: real_loss(logits, batch[2])  # noqa: E731
            value, slopes = self._differentiated(batch[:2], batch, loss)
            for name, tensor in self.now.items():
                tensor.grad = slopes.get(name)
            optimiser.step()
            losses.append(value)
        return losses

    def own_predictions(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the inputs that the model writes itself, from each first token."""
        source, inputs, _ = batch
        written = inputs[:, :1]
        with torch.no_grad():
            while written.shape[1] < inputs.shape[1]:
                last = self.model(self.now, source, written)[:, -1]
                written = torch.cat((written, last.argmax(-1, keepdim=True)), dim=1)
        return source, written


def real_loss(
    logits: torch.Tensor, labels: torch.Tensor, **options: object
) -> torch.Tensor:
    """Average the cross-entropy over the labels that are not padding."""
    return F.cross_entropy(
        logits.transpose(1, 2), labels, **{"ignore_index": 0, **options}
    )


def _all_scored(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    return real_loss(logits, batch[2], ignore_index=-100)


def _multiplied(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    return _all_scored(logits * (batch[2] != 0).unsqueeze(-1), batch)


EPOCH_CANDIDATES: list[Candidate] = [
    (
        "gradients never cleared",
        lambda epoch: epoch.run(keep=True),
        "backward() adds to the gradients that are there. From the second batch on, "
        "those of the batches before take part in the step. Clear them for each batch.",
    ),
    (
        "own predictions as input",
        lambda epoch: epoch.run(see=epoch.own_predictions),
        "With teacher forcing the decoder reads the true tokens, the inputs of the "
        "batch, and one call gives the logits of all positions. What it would choose "
        "itself matters when it writes, not here.",
    ),
    (
        "the source never gets in",
        lambda epoch: epoch.run(see=lambda batch: (batch[1], batch[1])),
        "The encoder read the target in place of the source, so there is nothing to "
        "translate. The model takes the source first, then the inputs.",
    ),
    (
        "the labels as input",
        lambda epoch: epoch.run(see=lambda batch: (batch[0], batch[2])),
        "The decoder reads the inputs, which begin with <sos>. Given the labels, each "
        "position reads the token that it has to predict.",
    ),
    (
        "labels not shifted",
        lambda epoch: epoch.run(loss=lambda y, batch: real_loss(y, batch[1])),
        "Position t was scored with the token that it read, not with the next one. "
        "The labels are the third entry of a batch.",
    ),
    (
        "multiplied by the mask",
        lambda epoch: epoch.run(loss=_multiplied),
        "Logits of zero are a prediction, too: all tokens equally probable. They are "
        "scored, with a loss of ln V. Leave padding out of the mean: sequence_loss.",
    ),
    (
        "padding is scored",
        lambda epoch: epoch.run(loss=_all_scored),
        "The labels that are padding belong to no sentence and must not enter the "
        "mean. sequence_loss leaves them out.",
    ),
    (
        "softmax before the loss",
        lambda epoch: epoch.run(
            loss=lambda y, batch: real_loss(y.softmax(-1), batch[2])
        ),
        "The loss takes the softmax itself. Of probabilities it makes a second one, "
        "which can never come near 0 or 1. Give it the logits.",
    ),
    (
        "the loss after the step",
        lambda epoch: epoch.run(late=True),
        "The loss was computed once more, with the weights that the step has changed. "
        "Remember the one that went backwards.",
    ),
    (
        "the weights never change",
        lambda epoch: epoch.run(rate=0.0),
        "The weights are what they were. Either no step() follows backward(), or the "
        "gradients were cleared between the two, and the step found none: clear them "
        "before backward().",
    ),
    (
        "labels shifted twice",
        lambda epoch: epoch.run(
            see=lambda batch: (batch[0], batch[1][:, :-1]),
            loss=lambda y, batch: real_loss(y, batch[2][:, 1:]),
        ),
        "inputs and labels come from shift_right and are one step apart already. Cut "
        "and shifted once more, each position is asked for the token after the next.",
    ),
    (
        "the loss is smoothed",
        lambda epoch: epoch.run(
            loss=lambda y, batch: real_loss(y, batch[2], label_smoothing=0.1)
        ),
        "Label smoothing was switched on. Here the plain sequence_loss is asked for.",
    ),
    (
        "one step for all batches",
        lambda epoch: epoch.run(once=True),
        "The gradients of all batches were added up and one step was taken at the "
        "end. Each batch has its own: step() belongs into the loop.",
    ),
    (
        "the sum in place of the mean",
        lambda epoch: epoch.run(
            loss=lambda y, batch: real_loss(y, batch[2], reduction="sum")
        ),
        "The loss of a batch is a mean over its real labels. A sum makes the step "
        "longer, the longer the sentences are.",
    ),
    *(
        (
            "the learning rate is not used",
            lambda epoch, rate=rate: epoch.run(rate=rate),
            "The step has another length than the argument learning_rate says. Pass it "
            "on: lr=learning_rate.",
        )
        for rate in (1e-3, 1e-2, 1e-1, 1.0)
    ),
]


# --- texts that a model writes --------------------------------------------------------


@dataclass
class Language:
    """What the given model knows, as two tables of logits.

    Row i of ``table`` follows token i; row j of ``start`` is added in a text that
    begins with token j.
    """

    table: torch.Tensor
    start: torch.Tensor

    def logits(self, ids: list[int]) -> torch.Tensor:
        """Return the logits of each position, (t, V)."""
        return (self.table[ids] + self.start[ids[0]]).double()


Draft = tuple[float, list[int]]  # the sum of a hypothesis, its ids


def _greedy(
    language: Language,
    prefix: list[int],
    eos_id: int,
    limit: int,
    *,
    see: Callable = lambda ids: ids,
    choose: Callable = lambda logits: int(logits[-1].argmax()),
    stop: bool = True,
    least: int = 0,
) -> list[int]:
    """Write by a rule that can be varied; ``least`` new tokens come without a test."""
    ids = list(prefix)
    while len(ids) < max(limit, len(prefix) + least):
        ids.append(choose(language.logits(see(ids))))
        if stop and ids[-1] == eos_id:
            break
    return ids


def _without_end(ids: list[int], eos_id: int) -> list[int]:
    return ids[:-1] if ids[-1] == eos_id else ids


ONLY_LAST = (
    "The model was given the last token alone, so it has forgotten how the text "
    "began. Call it with everything written so far."
)

GREEDY_CANDIDATES: list[Candidate] = [
    (
        "the wrong row of logits",
        lambda *given: _greedy(*given, choose=lambda x: int(x[0].argmax())),
        "The model answers with a row for each position, and the first row says what "
        "follows the first token. What comes next is in the last row: logits[0, -1].",
    ),
    (
        "only the last token is read",
        lambda *given: _greedy(*given, see=lambda ids: ids[-1:]),
        ONLY_LAST,
    ),
    (
        "the model reads the prefix again and again",
        lambda lm, prefix, *given: _greedy(
            lm, prefix, *given, see=lambda ids: ids[: len(prefix)]
        ),
        "The model was given the prefix in every turn, so it says the same each time. "
        "Give it everything written so far.",
    ),
    (
        "goes on after the end",
        lambda *given: _greedy(*given, stop=False),
        "With eos_id the text is complete. Stop the loop as soon as it was appended.",
    ),
    (
        "the end token is left out",
        lambda lm, ids, eos, n: _without_end(_greedy(lm, ids, eos, n), eos),
        "eos_id belongs to the result: append first, then test whether to stop.",
    ),
    (
        "the prefix is left out",
        lambda lm, ids, eos, n: _greedy(lm, ids, eos, n)[len(ids) :],
        "The result begins with the prefix; only what is new was returned.",
    ),
    (
        "max_length counts the new tokens alone",
        lambda lm, ids, eos, n: _greedy(lm, ids, eos, n + len(ids)),
        "max_length is the largest number of ids of the result, with the prefix.",
    ),
    (
        "one token too many",
        lambda lm, ids, eos, n: _greedy(lm, ids, eos, n + 1),
        "The result may have max_length ids and no more: go on while len(ids) < "
        "max_length.",
    ),
    (
        "one token too many",
        lambda *given: _greedy(*given, least=1),
        "A prefix that has max_length ids is complete. Test before you append.",
    ),
    (
        "one token too few",
        lambda lm, ids, eos, n: _greedy(lm, ids, eos, n - 1),
        "The result may have max_length ids: go on while len(ids) < max_length.",
    ),
    (
        "the least probable token",
        lambda *given: _greedy(*given, choose=lambda x: int(x[-1].argmin())),
        "The smallest logit was taken. The most probable token has the largest.",
    ),
]


def beam(
    language: Language,
    prefix: list[int],
    eos_id: int,
    width: int,
    limit: int,
    alpha: float,
    *,
    see: Callable = lambda ids: ids,
    gains: Callable = lambda logits: logits.log_softmax(-1),
    start: float = 0.0,
    each: bool = False,
    free: bool = False,
    shrink: bool = False,
    go_on: bool = False,
    first: int = 0,
    uncounted: bool = False,
    pool: str = "both",
    score: Callable | None = None,
    gaps: list[float] | None = None,
) -> tuple[list[int], float]:
    """Search with a beam, by rules that can be varied.

    ``each`` keeps the best of each hypothesis, ``free`` gives finished ones no place,
    ``shrink`` takes their places away for good, ``go_on`` extends what has ended,
    ``first`` stops when so many have ended, ``uncounted`` leaves <eos> out of the
    length. ``pool`` is what is chosen from. ``gaps`` is filled with how clear each
    choice was.
    """
    known: dict[tuple[int, int], list[float]] = {}

    def row(ids: list[int]) -> list[float]:
        ends = ids[0], ids[-1]
        if ends not in known:
            known[ends] = gains(language.logits(ids)[-1]).tolist()
        return known[ends]

    alive: list[Draft] = [(start, list(prefix))]
    finished: list[Draft] = []
    while alive and len(alive[0][1]) < limit and not 0 < first <= len(finished):
        places = width - len(finished) if shrink else width
        families = [
            sorted(
                (
                    (total + gain, [*ids, token])
                    for token, gain in enumerate(row(see(ids)))
                ),
                reverse=True,
            )
            for total, ids in alive
        ]
        if each:
            kept = [draft for family in families for draft in family[:places]]
        else:
            grown = sorted(itertools.chain(*families), reverse=True)
            kept = _kept(grown, places, eos_id if free else None)
            if gaps is not None and len(grown) > places:
                gaps.append(grown[places - 1][0] - grown[places][0])
        finished += [draft for draft in kept if draft[1][-1] == eos_id and not go_on]
        alive = [draft for draft in kept if draft[1][-1] != eos_id or go_on]
    pools = {"both": finished + alive, "finished": finished or alive}
    pools["alive"] = alive or finished
    rate = score or (lambda total, new, whole: total / new**alpha)
    rated = []
    for total, ids in pools[pool]:
        new = len(ids) - len(prefix)
        if uncounted and ids[-1] == eos_id:
            new = max(1, new - 1)
        rated.append((rate(total, new, len(ids)), ids))
    rated.sort(reverse=True)
    if gaps is not None:
        for some in (finished, alive):
            sums = sorted((total for total, _ in some), reverse=True)
            gaps += [sums[0] - sums[1]] if len(sums) > 1 else []
        gaps += [rated[0][0] - rated[1][0]] if len(rated) > 1 else []
    best, ids = rated[0]
    return ids, best


def _kept(drafts: list[Draft], places: int, free: int | None) -> list[Draft]:
    """Keep the best; drafts that end with ``free`` take no place."""
    kept, taken = [], 0
    for draft in drafts:
        if taken == places:
            break
        kept.append(draft)
        taken += draft[1][-1] != free
    return kept


def _last_gain(language: Language, prefix: list[int], *given) -> tuple:
    ids, _ = beam(language, prefix, *given)
    rows = language.logits(ids[:-1])[-1].log_softmax(-1)
    return ids, float(rows[ids[-1]])


def _divided_late(language: Language, prefix: list[int], *given) -> tuple:
    ids, total = beam(language, prefix, *given, score=lambda total, *_: total)
    return ids, total / (len(ids) - len(prefix)) ** given[-1]


def _scored(score: Callable) -> Callable:
    """Make a candidate that rates by ``score(alpha)(total, new, whole)``."""
    return lambda *given: beam(*given, score=score(given[-1]))


BEAM_CANDIDATES: list[Candidate] = [
    (
        "the width is not used",
        lambda lm, ids, eos, width, n, alpha: beam(lm, ids, eos, 1, n, alpha),
        "Only one hypothesis was kept in each round: that is greedy decoding. Keep "
        "the beam_width best.",
    ),
    (
        "only the last token is read",
        lambda *given: beam(*given, see=lambda ids: ids[-1:]),
        ONLY_LAST,
    ),
    (
        "the beam is taken for each hypothesis",
        lambda *given: beam(*given, each=True),
        "Each hypothesis kept its own beam_width extensions, so their number grows "
        "from round to round. Choose among the extensions of all together.",
    ),
    (
        "finished ones take no place in the beam",
        lambda *given: beam(*given, free=True),
        "More than beam_width extensions were kept in a round, because those that end "
        "were not counted. Keep the beam_width best first, then divide them into "
        "finished and alive.",
    ),
    (
        "the beam shrinks",
        lambda *given: beam(*given, shrink=True),
        "Finished hypotheses took places in later rounds. Each round keeps the "
        "beam_width best extensions of those alive.",
    ),
    (
        "goes on after the end",
        lambda *given: beam(*given, go_on=True),
        "A hypothesis that ends with eos_id was extended further. Set it aside.",
    ),
    (
        "stops at the first that ends",
        lambda *given: beam(*given, first=1),
        "Another hypothesis that is still alive may end with a better score. Go on "
        "until none lives or they have max_length ids.",
    ),
    (
        "stops when beam_width have ended",
        lambda lm, ids, eos, width, n, alpha: beam(
            lm, ids, eos, width, n, alpha, first=width
        ),
        "One that is still alive may end with a better score than those that have "
        "ended. Go on until none lives or they have max_length ids.",
    ),
    (
        "max_length counts the new tokens alone",
        lambda lm, ids, eos, width, n, alpha: beam(
            lm, ids, eos, width, n + len(ids), alpha
        ),
        "max_length is the largest number of all ids, the prefix included.",
    ),
    (
        "finished ones are forgotten",
        lambda *given: beam(*given, pool="alive"),
        "The best was chosen among those alive at the end. Compare the finished ones "
        "as well.",
    ),
    (
        "those alive are forgotten",
        lambda *given: beam(*given, pool="finished"),
        "The best was chosen among the finished ones. What reached max_length without "
        "an end is compared as well.",
    ),
    (
        "alpha is not used",
        _scored(lambda alpha: lambda total, new, whole: total),
        "The sum is divided by the number of new tokens to the power alpha.",
    ),
    (
        "chosen by the sum, divided too late",
        _divided_late,
        "The hypothesis with the best sum was chosen, and only its own score was "
        "divided. Divide the sum of each one first, then compare the scores.",
    ),
    (
        "the length leaves out <eos>",
        lambda *given: beam(*given, uncounted=True),
        "<eos> is a new token like the others: its log-probability is in the sum, so "
        "it counts in the length.",
    ),
    (
        "the mean at every alpha",
        _scored(lambda alpha: lambda total, new, whole: total / new),
        "The sum is divided by the number of new tokens *to the power alpha*; at alpha "
        "= 0 it stays what it is.",
    ),
    (
        "alpha as a factor",
        _scored(lambda a: lambda total, new, whole: total / (new * a if a else 1)),
        "alpha is an exponent: new ** alpha, which is 1 at alpha = 0.",
    ),
    (
        "the length counts the prefix",
        _scored(lambda alpha: lambda total, new, whole: total / whole**alpha),
        "The prefix was given, and none of its tokens has a log-probability in the "
        "sum. Divide by the number of new tokens alone.",
    ),
    (
        "multiplied by the length",
        _scored(lambda alpha: lambda total, new, whole: total * new**alpha),
        "The length divides. Log-probabilities are negative: multiplied, a long "
        "sentence is punished twice.",
    ),
    (
        "another length penalty",
        _scored(lambda a: lambda total, new, whole: total / ((5 + new) / 6) ** a),
        "That is the penalty of Wu et al. (2016), ((5 + n)/6)^alpha. Here the sum is "
        "divided by n^alpha.",
    ),
    (
        "logits in place of log-probabilities",
        lambda *given: beam(*given, gains=lambda logits: logits),
        "Logits of different rows are no common measure: each row has its own "
        "normaliser. Take log_softmax of the row first.",
    ),
    (
        "probabilities are added",
        lambda *given: beam(*given, gains=lambda logits: logits.softmax(-1)),
        "Probabilities of tokens are multiplied, so their logarithms are added. Take "
        "log_softmax in place of softmax.",
    ),
    (
        "a probability in place of its logarithm",
        lambda *given: (beam(*given)[0], math.exp(beam(*given)[1])),
        "The score is the sum of log-probabilities, divided by a power of the length. "
        "Do not take the exponential.",
    ),
    (
        "the score of the last token alone",
        _last_gain,
        "The gain of the last token was returned. The sum over all new tokens is "
        "asked for: add to what the hypothesis had.",
    ),
    (
        "only the new tokens are returned",
        lambda lm, ids, *given: (
            beam(lm, ids, *given)[0][len(ids) :],
            beam(lm, ids, *given)[1],
        ),
        "The result begins with the prefix.",
    ),
]


# --- filters and chance ---------------------------------------------------------------


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

FILTER_CANDIDATES: list[Candidate] = [
    (
        "multiplied by the temperature",
        lambda x, t=1.0, *limits: _filter(x, 1 / t, *limits),
        "Multiplied, a high temperature makes the distribution sharper. Divide the "
        "logits by it.",
    ),
    (
        "the temperature is not used",
        lambda x, t=1.0, *limits: _filter(x, 1.0, *limits),
        "The logits are divided by the temperature before anything else.",
    ),
    (
        "zeros in place of −∞",
        lambda *given: _filter(*given, never=0.0),
        "A logit of 0 is a token like others, e⁰ = 1 before it is normalised. Never is "
        "−∞: its exponential is 0.",
    ),
    *(
        (
            "a large negative number in place of −∞",
            lambda *given, never=never: _filter(*given, never=never),
            "It works only as long as no logit comes near it, and a number is no way "
            "to tell who was dropped. Put −∞, -math.inf.",
        )
        for never in (-1e4, -1e9, -1e10, -1e30)
    ),
    *(
        (
            "ties are cut",
            lambda *given, by=by: _filter(
                *given, k_stays=lambda x, k: _exactly(x, k, by=by)
            ),
            TIES,
        )
        for by in ("topk", "sort")
    ),
    (
        "the k-th is dropped",
        lambda *given: _filter(
            *given, k_stays=lambda x, k: x > x.topk(k).values[..., -1:]
        ),
        "k tokens stay, and the k-th largest is one of them: only what is *smaller* "
        "becomes −∞.",
    ),
    (
        "the smallest are kept",
        lambda *given: _filter(
            *given, k_stays=lambda x, k: x <= x.topk(k, largest=False).values[..., -1:]
        ),
        "The k smallest logits were kept; topk gives the largest when it is not told "
        "otherwise.",
    ),
    (
        "one token short",
        lambda *given: _filter(*given, p_stays=lambda x, p: _nucleus(x, p, own=True)),
        ONE_SHORT,
    ),
    (
        "one token short",
        lambda *given: _filter(
            *given, p_stays=lambda x, p: _nucleus(x, p, own=True, at_least_one=True)
        ),
        ONE_SHORT,
    ),
    (
        "in the order of the sorted",
        lambda *given: _filter(*given, p_stays=lambda x, p: _nucleus(x, p, undo=False)),
        "What to drop was found among the sorted probabilities and applied to the "
        "unsorted logits. Bring it back into the order of the vocabulary.",
    ),
    (
        "the sorting is done twice, not undone",
        lambda *given: _filter(
            *given,
            p_stays=lambda x, p: _nucleus(x, p, undo=False).gather(
                -1, x.softmax(-1).sort(dim=-1, descending=True).indices
            ),
        ),
        "order says which token stands at each place of the sorted. To go back you "
        "need the place of each token: gather(-1, order.argsort(-1)).",
    ),
    (
        "each probability compared with p",
        lambda *given: _filter(*given, p_stays=lambda x, p: x.softmax(-1) >= p),
        "p is no limit for a single token. Add up the probabilities, the largest "
        "first, and keep tokens until the sum reaches p.",
    ),
    (
        "one limit for all rows",
        lambda *given: _filter(
            *given, k_stays=lambda x, k: x >= x.flatten().topk(k).values[-1]
        ),
        "Each row is a distribution of its own and has its own k-th largest: topk "
        "along the last axis.",
    ),
    (
        "softmax along the wrong axis",
        lambda *given: _filter(
            *given,
            p_stays=lambda x, p: _nucleus(x, p, weights=x.softmax(0).nan_to_num(0.0)),
        ),
        "The softmax ran over the rows. Each row is a distribution: dim=-1.",
    ),
    (
        "top-p from the least probable",
        lambda *given: _filter(
            *given, p_stays=lambda x, p: _nucleus(x, p, descending=False)
        ),
        "sort() begins with the smallest. The largest probabilities are added first: "
        "descending=True.",
    ),
    (
        "top-p before top-k",
        lambda *given: _filter(*given, p_first=True),
        "Top-p takes the probabilities of what top-k has left, which are larger than "
        "before. Filter by k first, then take the softmax.",
    ),
    (
        "top-p of all tokens",
        lambda x, t=1.0, k=None, p=None: _filter(
            x,
            t,
            k,
            p,
            p_stays=lambda y, p: _nucleus(y, p, weights=(x / t).softmax(-1)),
        ),
        "The probabilities were computed before top-k dropped some tokens. Those of "
        "what is left sum to 1.",
    ),
    (
        "top-p without the temperature",
        lambda x, t=1.0, k=None, p=None: _filter(
            x,
            t,
            k,
            p,
            p_stays=lambda y, p: _nucleus(
                y, p, weights=(y * t).softmax(-1).nan_to_num(0.0)
            ),
        ),
        "The probabilities for top-p are those after the temperature. Go on with the "
        "divided logits.",
    ),
    (
        "sums of logits",
        lambda *given: _filter(*given, p_stays=lambda x, p: _nucleus(x, p, weights=x)),
        "p is a share of probability. Take the softmax before you add.",
    ),
    (
        "top-p is not used",
        lambda x, t=1.0, k=None, p=None: _filter(x, t, k),
        "With top_p, what lies outside the smallest set that reaches p becomes −∞.",
    ),
    (
        "top-k is not used",
        lambda x, t=1.0, k=None, p=None: _filter(x, t, None, p),
        "With top_k, what is smaller than the k-th largest becomes −∞.",
    ),
    (
        "probabilities in place of logits",
        lambda *given: _filter(*given).softmax(-1),
        "Logits go in and logits come out; the softmax is taken by who draws.",
    ),
    (
        "either top-k or top-p",
        lambda x, t=1.0, k=None, p=None: _filter(x, t, k, None if k else p),
        "With both given, both limit: first k, then p of what k has left. Write two "
        "ifs, not if and elif.",
    ),
    (
        "either top-k or top-p",
        lambda x, t=1.0, k=None, p=None: _filter(x, t, None if p else k, p),
        "With both given, both limit: first k, then p of what k has left. Write two "
        "ifs, not if and elif.",
    ),
    (
        "log-probabilities in place of logits",
        lambda *given: _filter(*given).log_softmax(-1),
        "What stays is the logit divided by the temperature, and nothing else is "
        "done to it; the softmax is taken by who draws.",
    ),
]


def _passed(
    probabilities: torch.Tensor,
    uniform: torch.Tensor,
    *,
    axis: int = -1,
    scaled: bool = True,
    equal: bool = True,
    clamped: bool = False,
) -> torch.Tensor:
    """Count the running sums that a number has passed, by rules that can be varied."""
    sums = probabilities.cumsum(axis)
    number = uniform.unsqueeze(-1) * (sums[..., -1:] if scaled else 1)
    count = ((sums <= number) if equal else (sums < number)).sum(-1)
    return count.clamp(max=probabilities.shape[-1] - 1) if clamped else count


def _of_sorted(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    return _passed(probabilities.sort(-1, descending=True).values, uniform)


CHANCE_CANDIDATES: list[Candidate] = [
    (
        "the most probable token",
        lambda p, u: p.argmax(-1),
        "argmax does not draw: the same token comes up whatever the number is. A token "
        "of probability 0.3 has to come up in 30 % of all draws.",
    ),
    (
        "a token of probability 0 is drawn",
        lambda p, u: _passed(p, u, equal=False),
        "Its interval is empty, and so is the place where its running sum equals the "
        "number. The first sum that is *larger* counts: pass those that are equal.",
    ),
    (
        "a number that no sum exceeds",
        lambda p, u: _passed(p, u, scaled=False),
        "In float32 the last running sum may be a little below 1, and a number above "
        "it finds no id. Multiply the number by the last sum first.",
    ),
    (
        "a number that no sum exceeds",
        lambda p, u: (p.cumsum(-1) > u.unsqueeze(-1)).int().argmax(-1),
        "In float32 the last running sum may be a little below 1. Above it nothing is "
        "True, and argmax of that is 0. Multiply the number by the last sum first.",
    ),
    (
        "no running sums",
        lambda p, u: (p <= u.unsqueeze(-1)).sum(-1),
        "The number was compared with each probability. The tokens lie end to end: "
        "compare it with the running sums, cumsum.",
    ),
    (
        "no running sums",
        lambda p, u: (p > u.unsqueeze(-1)).int().argmax(-1),
        "The number was compared with each probability. The tokens lie end to end: "
        "compare it with the running sums, cumsum.",
    ),
    (
        "clamped to the last id",
        lambda p, u: _passed(p, u, scaled=False, clamped=True),
        "If the last token has the probability 0, it must not be drawn, not even when "
        "rounding leaves the last sum below the number. Multiply the number by the "
        "last sum; then nothing has to be clamped.",
    ),
    (
        "running sums along the wrong axis",
        lambda p, u: _passed(p, u, axis=0),
        "The sums ran over the rows. Each row is a distribution of its own: dim=-1.",
    ),
    (
        "one id too far",
        lambda p, u: _passed(p, u) + 1,
        "The number of sums that are not larger *is* the id, as ids begin with 0.",
    ),
    (
        "one id too early",
        lambda p, u: _passed(p, u) - 1,
        "The id asked for is the first whose running sum is larger, not the last whose "
        "sum is not.",
    ),
    (
        "one id too early",
        lambda p, u: (_passed(p, u) - 1).clamp(min=0),
        "The id asked for is the first whose running sum is larger, not the last whose "
        "sum is not.",
    ),
    (
        "ids of the sorted probabilities",
        _of_sorted,
        "The probabilities were sorted, and the place among the sorted was returned. "
        "Intervals may lie in any order: leave that of the vocabulary.",
    ),
    (
        "the last sum that exceeds it",
        lambda p, u: torch.full_like(p.argmax(-1), p.shape[-1] - 1),
        "All later sums exceed the number, too. Take the first.",
    ),
]


# --- the cache ------------------------------------------------------------------------


def attend_step(
    q: torch.Tensor,
    k_new: torch.Tensor,
    v_new: torch.Tensor,
    cache: State | None,
    *,
    join: Callable = lambda old, new: torch.cat((old, new), dim=-2),
    rows: str = "last",
    scale: float | None = None,
    remember: str = "all",
) -> tuple[torch.Tensor, State]:
    """Attend with a cache, by rules that can be varied."""
    k, v = k_new, v_new
    if cache is not None:
        k, v = join(cache["k"], k_new), join(cache["v"], v_new)
    new, length = q.shape[-2], k.shape[-2]
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    mask = {
        "last": causal[length - new :],
        "first": causal[:new],
        "none": None,
        "strict": causal.tril(-1)[length - new :],
        "hidden": ~causal[length - new :],
    }[rows]
    output = F.scaled_dot_product_attention(q, k, v, mask, scale=scale).nan_to_num(0.0)
    kept = {
        "all": {"k": k, "v": v},
        "new": {"k": k_new, "v": v_new},
        "swapped": {"k": v, "v": k},
        "last": {"k": k[..., -1:, :], "v": v[..., -1:, :]},
    }
    return output, kept[remember]


def attend_in_pieces(step: Callable, q, k, v, pieces: list[int]) -> list:
    """Feed a text to ``step`` piece by piece; return each output and each cache."""
    cache, answers, begin = None, [], 0
    for size in pieces:
        part = [x[..., begin : begin + size, :] for x in (q, k, v)]
        answer = step(*part, cache)
        answers.append(answer)
        cache, begin = answer[1], begin + size
    return answers


def _varied(**rules) -> Callable:
    def answer(*given):
        return attend_in_pieces(lambda *x: attend_step(*x, **rules), *given)

    return answer


CACHE_CANDIDATES: list[Candidate] = [
    (
        "no mask among the new tokens",
        _varied(rows="none"),
        "Of several new tokens the first looked at the later ones. With one token at a "
        "time no mask is needed; with more, take the last rows of a causal mask.",
    ),
    (
        "the first rows of the mask",
        _varied(rows="first"),
        "These rows belong to the oldest tokens: the new ones saw the beginning of the "
        "text and neither its end nor themselves. Take the last T_new rows.",
    ),
    (
        "a token does not see itself",
        _varied(rows="strict"),
        "New token i attends to everything up to and including its own position. The "
        "diagonal of the causal mask is True.",
    ),
    (
        "True hides",
        _varied(rows="hidden"),
        "In this course True means 'may attend'. PyTorch's nn.Transformer has it the "
        "other way round.",
    ),
    (
        "the cache holds the new ones alone",
        _varied(remember="new"),
        "What came before is lost with the next call. Return the old keys and values "
        "with the new ones behind them.",
    ),
    (
        "the cache holds the last position alone",
        _varied(remember="last"),
        "Later tokens attend to all earlier positions, so the cache keeps them all.",
    ),
    (
        "the cache is not used",
        _varied(join=lambda old, new: new),
        "The new tokens attended to each other alone. Put the cached keys and values "
        "in front.",
    ),
    (
        "the new ones in front",
        _varied(join=lambda old, new: torch.cat((new, old), dim=-2)),
        "The new positions come after the cached ones; otherwise the rows of the mask "
        "hide the wrong keys: torch.cat((old, new)).",
    ),
    (
        "the scores are not scaled",
        _varied(scale=1.0),
        "Attention divides the scores by the root of d_k, here as in chapter 4.",
    ),
    (
        "keys and values exchanged in the cache",
        _varied(remember="swapped"),
        'cache["k"] holds keys, cache["v"] holds values.',
    ),
]


# --- two ways to judge ----------------------------------------------------------------


def _losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")


def _real(logits, labels, pad_id=0) -> torch.Tensor:
    return _losses(logits, labels)[labels != pad_id]


def _of_sentences(logits, labels, pad_id=0) -> torch.Tensor:
    real = labels != pad_id
    return (_losses(logits, labels) * real).sum(1) / real.sum(1)


def _smoothed(logits, labels, pad_id=0, smoothing=0.1) -> torch.Tensor:
    options = {"ignore_index": pad_id, "label_smoothing": smoothing}
    return F.cross_entropy(logits.transpose(1, 2), labels, **options).exp()


PERPLEXITY_CANDIDATES: list[Candidate] = [
    (
        "no exponential",
        lambda *given: _real(*given).mean(),
        "This is the mean loss in nats. Perplexity is e to it.",
    ),
    (
        "the mean of the exponentials",
        lambda *given: _real(*given).exp().mean(),
        "The exponential was taken of each loss, and then the mean, which a single bad "
        "token dominates. The mean belongs inside.",
    ),
    (
        "the mean of sentence means",
        lambda *given: _of_sentences(*given).mean().exp(),
        "A word of a short sentence counted for more than one of a long sentence. "
        "Average once, over all real labels of the batch.",
    ),
    (
        "the mean of sentence perplexities",
        lambda *given: _of_sentences(*given).exp().mean(),
        "Each sentence got its own perplexity. Average the losses of all real labels "
        "of the batch, then take the exponential once.",
    ),
    (
        "a perplexity for each sentence",
        lambda *given: _of_sentences(*given).exp(),
        "One number is asked for, over all real labels of the batch.",
    ),
    (
        "pad_id is not used",
        lambda logits, labels, pad_id=0: _real(logits, labels).mean().exp(),
        "Padding was looked for under the id 0. It is where the labels equal the "
        "argument pad_id: pass it on.",
    ),
    (
        "padding is counted",
        lambda logits, labels, pad_id=0: _losses(logits, labels).mean().exp(),
        "Labels that are padding are no text. Leave them out of the mean.",
    ),
    (
        "divided by all positions",
        lambda logits, labels, pad_id=0: (
            _real(logits, labels, pad_id).sum() / labels.numel()
        ).exp(),
        "The losses of padding were set to 0 but still counted. Divide by the number "
        "of real labels.",
    ),
    (
        "base 2 in place of e",
        lambda *given: 2 ** _real(*given).mean(),
        "The losses are in nats, from the natural logarithm; 2 belongs to bits.",
    ),
    (
        "the sum in place of the mean",
        lambda *given: _real(*given).sum().exp(),
        "e to the sum is one over the probability of the whole batch, and grows with "
        "every word. Take the mean.",
    ),
    (
        "smoothing belongs to training",
        _smoothed,
        "Perplexity measures the probability of the labels themselves, so smoothing "
        "is 0 here.",
    ),
    (
        "the sign is missing",
        lambda *given: (-_real(*given).mean()).exp(),
        "Perplexity is at least 1: it is e to the mean *negative* log-likelihood.",
    ),
    (
        "one over the mean probability",
        lambda *given: 1 / (-_real(*given)).exp().mean(),
        "The probabilities were averaged. Average their logarithms.",
    ),
]

Corpus = list[list[str]]


def _matches(
    ours: list[str], theirs: list[str], n: int, mode: str = "clip"
) -> tuple[int, int]:
    """Return how many n-grams match, and how many there are."""
    grams = [
        Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))
        for text in (ours, theirs)
    ]
    mine, other = grams
    if mode == "once":
        return len(mine.keys() & other.keys()), len(mine)
    if mode == "all":
        return sum(c for gram, c in mine.items() if gram in other), mine.total()
    both = sum(min(count, other[gram]) for gram, count in mine.items())
    return both, (other if mode == "recall" else mine).total()


def _brevity(c: int, r: int) -> float:
    return 1.0 if c > r else math.exp(1 - r / c)


def _bleu(
    hypotheses: Corpus,
    references: Corpus,
    maximum: int = 4,
    *,
    mode: str = "clip",
    penalty: Callable = _brevity,
    add: int = 0,
    skip: bool = False,
    mean: Callable = lambda ps: math.prod(ps) ** (1 / len(ps)),
) -> float:
    """BLEU by rules that can be varied."""
    shares = []
    for n in range(1, maximum + 1):
        pairs = zip(hypotheses, references, strict=True)
        counts = [_matches(*pair, n, mode) for pair in pairs]
        found, there = (sum(column) for column in zip(*counts, strict=True))
        plus = add if n > 1 else 0
        if skip and not found:
            continue
        if not there + plus:
            return 0.0
        shares.append((found + plus) / (there + plus))
    if not shares:
        return 0.0
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    return 100 * penalty(c, r) * mean(shares) if c else 0.0


def _mean_of_shares(hypotheses: Corpus, references: Corpus, maximum: int = 4) -> float:
    logarithms = 0.0
    for n in range(1, maximum + 1):
        pairs = zip(hypotheses, references, strict=True)
        counts = [_matches(*pair, n) for pair in pairs]
        shares = [found / there for found, there in counts if there]
        share = sum(shares) / len(shares) if shares else 0.0
        if share == 0:
            return 0.0
        logarithms += math.log(share) / maximum
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    return 100 * _brevity(c, r) * math.exp(logarithms)


def _mean_of_sentences(hypotheses: Corpus, references: Corpus, *maximum: int) -> float:
    pairs = zip(hypotheses, references, strict=True)
    scores = [_bleu([ours], [theirs], *maximum) for ours, theirs in pairs]
    return sum(scores) / len(scores)


BLEU_CANDIDATES: list[Candidate] = [
    (
        "counts are not clipped",
        lambda *given: _bleu(*given, mode="all"),
        "An n-gram counts at most as often as its reference has it; otherwise 'Bobby "
        "Bobby Bobby' is perfect. Take the smaller of the two counts.",
    ),
    (
        "each n-gram counts once",
        lambda *given: _bleu(*given, mode="once"),
        "Sets forget how often an n-gram occurs. Count with a Counter.",
    ),
    (
        "recall in place of precision",
        lambda *given: _bleu(*given, mode="recall"),
        "The matches were divided by the n-grams of the references. p_n is a share of "
        "the hypotheses' n-grams.",
    ),
    (
        "the mean of sentence scores",
        _mean_of_sentences,
        "Each sentence got its own score. Matches and n-grams are added up over the "
        "whole corpus first, and divided once.",
    ),
    (
        "the mean of sentence precisions",
        _mean_of_shares,
        "The precision of each sentence was computed, and then the mean. Add matches "
        "and n-grams up over the corpus, and divide once.",
    ),
    (
        "no brevity penalty",
        lambda *given: _bleu(*given, penalty=lambda c, r: 1.0),
        "Precision alone rewards a text of one sure word. If the hypotheses have no "
        "more tokens than the references, multiply by exp(1 − r/c).",
    ),
    (
        "the brevity penalty is turned round",
        lambda *given: _bleu(*given, penalty=lambda c, r: _brevity(r, c)),
        "Long texts paid and short ones did not. c are the tokens of the hypotheses, r "
        "those of the references: exp(1 − r/c) if c is not larger than r.",
    ),
    (
        "the penalty grows with short texts",
        lambda *given: _bleu(
            *given, penalty=lambda c, r: 1.0 if c > r else math.exp(1 - c / r)
        ),
        "1 − c/r is positive when the text is too short. The penalty is exp(1 − r/c), "
        "at most 1.",
    ),
    (
        "a reward for long texts",
        lambda *given: _bleu(*given, penalty=lambda c, r: math.exp(1 - r / c)),
        "exp(1 − r/c) is above 1 when c is larger than r. There the penalty is 1.",
    ),
    (
        "a ratio in place of the exponential",
        lambda *given: _bleu(*given, penalty=lambda c, r: min(1.0, c / r)),
        "The penalty is exp(1 − r/c), not c/r.",
    ),
    (
        "the arithmetic mean of the precisions",
        lambda *given: _bleu(*given, mean=lambda ps: sum(ps) / len(ps)),
        "The mean of BLEU is the geometric one, the exponential of the mean logarithm: "
        "it is 0 as soon as one precision is.",
    ),
    (
        "the product without the root",
        lambda *given: _bleu(*given, mean=math.prod),
        "The logarithms are averaged: divide their sum by N before the exponential.",
    ),
    (
        "only the longest n-grams",
        lambda *given: _bleu(*given, mean=lambda ps: ps[-1]),
        "All lengths from 1 to N count: the geometric mean of p_1 to p_N.",
    ),
    (
        "always up to four",
        lambda hypotheses, references, maximum=4: _bleu(hypotheses, references, 4),
        "The argument maximum says how long the n-grams become, and by what the sum of "
        "logarithms is divided.",
    ),
    (
        "one length too few",
        lambda a, b, maximum=4: _bleu(a, b, maximum - 1) if maximum > 1 else 0.0,
        "range(1, maximum) ends before maximum.",
    ),
    (
        "smoothed",
        lambda *given: _bleu(*given, add=1),
        "1 was added to matches and n-grams. That is another score; here a precision "
        "of 0 makes BLEU 0.",
    ),
    (
        "lengths without a match are skipped",
        lambda *given: _bleu(*given, skip=True),
        "A precision of 0 makes the geometric mean 0. Leaving it out rewards a text "
        "without a single longer match.",
    ),
    (
        "from 0 to 1",
        lambda *given: _bleu(*given) / 100,
        "By custom BLEU runs from 0 to 100: multiply by 100.",
    ),
]
