"""Masked language modelling: what is hidden from the model."""

import functools

import torch

from autograder import expect
from autograder.chapters.encoder.chapter import chapter
from autograder.exercise.copies import expect_new
from autograder.exercise.inputs import draw_sizes, seeded
from autograder.exercise.spec import Case, Function, judge_parts
from autograder.expect import show
from autograder.forms import several
from autograder.interface import StudentFunction

UNSCORED = -100  # the label of a position that does not count


def by_rules(ids, uniform, kind, random_ids, mask_id, special_ids, probability):
    """Follow the rules of masking position by position."""
    inputs, labels = ids.clone(), torch.full_like(ids, UNSCORED)
    for b, t in ((b, t) for b in range(ids.shape[0]) for t in range(ids.shape[1])):
        if uniform[b, t] < probability and int(ids[b, t]) not in special_ids:
            labels[b, t] = ids[b, t]
            if kind[b, t] < 0.8:
                inputs[b, t] = mask_id
            elif kind[b, t] < 0.9:
                inputs[b, t] = random_ids[b, t]
    return inputs, labels


masking = Function("mask-tokens", "mask_tokens", by_rules)


# --- what goes wrong ------------------------------------------------------------------


def _choose(uniform, probability, ordinary):
    return (uniform < probability) & ordinary


def _hide(ids, chosen, kind, other, mask, low=0.8, high=0.9):
    random = torch.where(chosen & (kind < high), other, ids)
    return torch.where(chosen & (kind < low), mask, random)


def _label(ids, inputs, chosen, mask):
    return torch.where(chosen, ids, UNSCORED)


def _masked(
    ids, uniform, kind, other, mask, special, probability,
    spare=lambda special, mask: special, choose=_choose, hide=_hide, label=_label,
):  # fmt: skip
    """Mask by rules: what is spared, chosen, made of it, and scored."""
    spared = torch.tensor(spare(special, mask))
    chosen = choose(uniform, probability, ~torch.isin(ids, spared))
    inputs = hide(ids, chosen, kind, other, mask)
    return inputs, label(ids, inputs, chosen, mask)


SHARES = (
    "Of the chosen, 80 percent become the mask (kind below 0.8), 10 percent a random "
    "token (below 0.9), 10 percent stay."
)
SIDE = "Chosen is where uniform is smaller than probability: 15 percent, not 85."
TURNED = "the shares 80/10/10 turned round"
ALL_CHOSEN = (
    "All chosen positions are scored, also the replaced and the unchanged ones."
)
NUMBER = (
    "another number than −100",
    "What is not scored gets −100, the number that PyTorch's loss ignores.",
)
masking.slips(
    _masked,
    (
        "special tokens masked",
        "Padding, class token and the like are never chosen: uniform < probability and "
        "not one of special_ids.",
        {"choose": lambda u, p, ordinary: u < p},
    ),
    (
        "mask_id is spared, too",
        "Special is what special_ids lists, and nothing else. A token that is the mask "
        "already may be chosen, and then it is scored.",
        {"spare": lambda special, mask: [*special, mask]},
    ),
    *(
        (
            "only one of the special ids is spared",
            "special_ids is a list: a token is spared if it is any of them, "
            "torch.isin(ids, torch.tensor(special_ids)).",
            {"spare": lambda special, mask, part=part: special[part]},
        )
        for part in (slice(0, 1), slice(-1, None))
    ),
    (
        "the wrong side of probability is chosen",
        SIDE,
        {"choose": lambda u, p, ordinary: (u >= p) & ordinary},
    ),
    (
        "the wrong side of probability is chosen",
        SIDE,
        {"choose": lambda u, p, ordinary: (u > p) & ordinary},
    ),
    (
        "probability is always 0.15",
        "The share is an argument: compare uniform with probability.",
        {"choose": lambda u, p, ordinary: (u < 0.15) & ordinary},
    ),
    (
        "uniform equal to probability is chosen",
        "Chosen is where uniform is smaller than probability, not equal: for a "
        "probability of 0 nothing may be chosen.",
        {"choose": lambda u, p, ordinary: (u <= p) & ordinary},
    ),
    (
        "all chosen tokens become the mask",
        SHARES,
        {"hide": functools.partial(_hide, low=2.0)},
    ),
    (TURNED, SHARES, {"hide": functools.partial(_hide, low=0.1)}),
    (TURNED, SHARES, {"hide": functools.partial(_hide, low=0.1, high=0.2)}),
    (
        TURNED,
        SHARES,
        {"hide": lambda ids, chosen, kind, *to: _hide(ids, chosen, 1 - kind, *to)},
    ),
    (
        TURNED,
        SHARES,
        {
            "hide": lambda ids, chosen, kind, other, mask: torch.where(
                chosen & (kind >= 0.8), torch.where(kind >= 0.9, other, mask), ids
            )
        },
    ),
    (
        "random and unchanged exchanged",
        SHARES,
        {
            "hide": lambda ids, chosen, kind, other, mask: torch.where(
                chosen & (kind < 0.8),
                mask,
                torch.where(chosen & (kind >= 0.9), other, ids),
            )
        },
    ),
    ("nothing stays unchanged", SHARES, {"hide": functools.partial(_hide, high=2.0)}),
    ("no random tokens", SHARES, {"hide": functools.partial(_hide, high=0.0)}),
    (
        "kind equal to 0.8 becomes the mask",
        "The mask stands where kind is below 0.8: compare with <, not with <=.",
        {"hide": functools.partial(_hide, low=0.8 + 1e-6)},
    ),
    (
        "kind equal to 0.8 stays unchanged",
        "From 0.8 on, 0.8 included, a random token takes its place: compare with >=, "
        "or ask for the mask first and for kind < 0.9 of what is left.",
        {
            "hide": lambda ids, chosen, kind, *to: _hide(
                ids, chosen & (kind != 0.8), kind, *to
            )
        },
    ),
    ("nothing is hidden", SHARES, {"hide": lambda ids, *_: ids.clone()}),
    (
        "nothing is hidden",
        SHARES,
        {"choose": lambda u, p, ordinary: torch.zeros_like(ordinary)},
    ),
    (
        "labels scored everywhere",
        "Only chosen positions are scored; all other labels are −100.",
        {"label": lambda ids, *_: ids.clone()},
    ),
    (
        "the labels are what the model sees",
        "A label is the original token. Write the labels from ids, before or without "
        "changing ids.",
        {"label": lambda ids, seen, chosen, mask: _label(seen, None, chosen, mask)},
    ),
    (
        "only masked tokens are scored",
        ALL_CHOSEN,
        {
            "label": lambda ids, seen, chosen, mask: _label(
                ids, seen, seen == mask, mask
            )
        },
    ),
    (
        "only changed tokens are scored",
        ALL_CHOSEN,
        {"label": lambda ids, seen, chosen, mask: _label(ids, seen, seen != ids, mask)},
    ),
    (
        "chosen and not chosen exchanged in the labels",
        "−100 means 'do not score': it stands where a token was not chosen.",
        {"label": lambda ids, seen, chosen, mask: _label(ids, seen, ~chosen, mask)},
    ),
    (
        *NUMBER,
        {"label": lambda ids, _, chosen, mask: torch.where(chosen, ids, mask)},
    ),
    (*NUMBER, {"label": lambda ids, seen, chosen, mask: torch.where(chosen, ids, -1)}),
    (*NUMBER, {"label": lambda ids, seen, chosen, mask: torch.where(chosen, ids, 100)}),
    (*NUMBER, {"label": lambda ids, seen, chosen, mask: ids * chosen}),
)


@masking.mistake(
    "one draw for both decisions",
    "uniform decides what is chosen, kind what becomes of it. The chosen all have a "
    "small uniform, so by uniform all of them would be masked.",
)
def _(ids, uniform, kind, *given):
    return _masked(ids, uniform, uniform, *given)


@masking.mistake(
    "inputs and labels exchanged", "First what the model sees, then the labels."
)
def _(*given):
    return by_rules(*given)[::-1]


# --- the check ------------------------------------------------------------------------

OWN = (
    "the caller's own ids are returned",
    "Where no token is chosen, the inputs are the very tensor that came in. Whoever "
    "writes into them changes the batch. Work on a copy in every case.",
)


@chapter.check(section="encoder-masked-language")
def mask_tokens(student: StudentFunction, seed: int = 0) -> None:
    """Check the example by hand, every position by the rules, several shares."""
    hand = (
        torch.tensor([[2, 5, 6, 7, 8, 9, 0]]),
        torch.tensor([[0.05, 0.50, 0.10, 0.02, 0.14, 0.90, 0.01]]),
        torch.tensor([[0.10, 0.10, 0.85, 0.30, 0.95, 0.10, 0.10]]),
        torch.arange(11, 18).unsqueeze(0),
    )
    expected = (
        torch.tensor([[2, 5, 13, 3, 8, 9, 0]]),
        torch.tensor([[-100, -100, 6, 7, 8, -100, -100]]),
    )
    case = Case("the example by hand", (*hand, 3, [0, 2]), expected, (0.15,))
    _judge_masked(student, case)
    generator = seeded(seed)
    b, t = draw_sizes(generator, 2)
    b, t = 3 * b + 5, 5 * t + 10
    for probability in (0.15, 0.25, 1.0, 0.0):
        ids = torch.randint(0, 30, (b, t), generator=generator)
        uniform, kind = torch.rand(2, b, t, generator=generator)
        uniform[0, :4] = 0.25  # exactly the probability is not below it
        uniform[1, :4], kind[1, :4] = 0.0, 0.8  # 0.8 is not below 0.8
        uniform[1, 4:8] = probability / 2
        kind[1, 4:8] = 0.8
        ids[:2, :8] = 9
        random_ids = torch.randint(4, 30, (b, t), generator=generator)
        given = ids, uniform, kind, random_ids, 3, [0, 1, 2]
        on = (
            f"ids {(b, t)}, special_ids [0, 1, 2], mask_id 3, probability {probability}"
        )
        if probability == 0.15:  # which is the default
            _judge_masked(student, Case(on, given, given=(probability,)))
        else:
            case = Case(on, (*given, probability))
            _judge_masked(student, case)
    expect_new(student, case, *OWN, place=0)


def _judge_masked(student: StudentFunction, case: Case) -> None:
    got = several(student(*case.inputs))
    pair = isinstance(got, tuple) and len(got) == 2
    why = "The function ends without `return`." if got is None else "Return both."
    say = {"on": case.on, "got": show(got), "expected": "(inputs, labels)", "why": why}
    expect.true(pair, "the result is not a pair", **say)
    judge_parts(masking, got, case, ("inputs", "labels"))
