"""Which of five normalisations was that?"""

import itertools
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.encoder.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Function
from autograder.expect import refuse_if, show
from autograder.interface import Data, StudentFunction

HOW_TO_TELL = {
    "layer norm": "Here the root mean square of a token of y is σ/√(σ² + ε), with its "
    "own biased σ: 0.30 for σ = 0.001.",
    "batch norm": "Here every feature of y has mean 0 over all B·T tokens, the axes "
    "(0, 1), and the tokens have not.",
    "whole tensor": "Here neither tokens nor features of y have mean 0, only all "
    "numbers together.",
    "unbiased variance": "Here y is a little smaller than layer norm's, by up to "
    "√((d − 1)/d). Mind that x.var() divides by d − 1 unless correction=0.",
    "epsilon outside the root": "Here the root mean square of a token of y is "
    "σ/(σ + ε): 0.99 even for σ = 0.001.",
}


def norms_by_name(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Compute the five normalisations, by PyTorch."""
    d, n = x.shape[-1], x.numel()
    spread = x.std(-1, correction=0, keepdim=True)
    centred = x - x.mean(-1, keepdim=True)
    return {
        "layer norm": F.layer_norm(x, (d,)),
        "batch norm": F.batch_norm(x.flatten(0, 1), None, None, training=True).view(
            x.shape
        ),
        "whole tensor": F.layer_norm(x.flatten(), (n,)).view(x.shape),
        "unbiased variance": centred / (x.var(-1, keepdim=True) + 1e-5).sqrt(),
        "epsilon outside the root": centred / (spread + 1e-5),
    }


def nearest(
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    choose: Callable = min,
    distance: Callable = torch.max,
    exchanged: tuple[str, str] = ("", ""),
) -> str:
    """Return the name of the norm that made y, or another name.

    Args:
        x: what was normalised.
        y: what came out.
        choose: one of the distances, the smallest.
        distance: from all absolute differences.
        exchanged: two names that stand for each other.
    """
    suspects = norms_by_name(x)
    name = choose(suspects, key=lambda one: float(distance((suspects[one] - y).abs())))
    return dict([exchanged, exchanged[::-1]]).get(name, name)


SLIPS: tuple[tuple[str, str, dict], ...] = (
    *(
        (
            "the farthest in place of the nearest",
            "The norm that made y is the one whose result differs from it least: take "
            "the smallest of the largest differences.",
            {"choose": max, "distance": distance},
        )
        for distance in (torch.max, torch.mean, torch.norm)
    ),
    *(
        (
            f"“{one}” and “{other}” exchanged",
            f"{HOW_TO_TELL[one]}\n{HOW_TO_TELL[other]}",
            {"exchanged": (one, other)},
        )
        for one, other in itertools.combinations(HOW_TO_TELL, 2)
    ),
)
rules = Function("diagnose-norm", "diagnose_norm", nearest)  # of all answers together
rules.slips(nearest, *SLIPS)
diagnosis = Function("diagnose-norm", "diagnose_norm", nearest)
for told, truth in itertools.permutations(HOW_TO_TELL, 2):
    diagnosis.mistake(
        f"takes “{truth}” for “{told}”",
        f"{HOW_TO_TELL[truth]} Do you try all five?",
        when=lambda x, y, truth=truth: nearest(x, y) == truth,
    )(lambda x, y, told=told: told)


FIRST = (
    "the first within a tolerance in place of the nearest",
    "Two suspects may both lie within it. The wider the tokens and the smaller their "
    "spread, the less it shows whether the variance divides by d or d − 1. Compare "
    "the distances of all five.",
)


def _slips() -> Iterator[tuple[str, str, dict]]:
    """Give name, reason and rules of one slip, and then of two."""
    yield from SLIPS
    for one, other in itertools.combinations(SLIPS, 2):
        if one[2].keys().isdisjoint(other[2]):
            yield (
                f"{one[0]}, and {other[0]}",
                f"{one[1]}\n{other[1]}",
                one[2] | other[2],
            )


def _by_a_tolerance(found: list[tuple]) -> bool:
    """Whether all answers are the first suspect that comes near enough to y."""
    return any(
        all(answer == _first_within(*given, *each) for answer, _, _, given in found)
        for tolerance in (0.1, 0.05, 0.01, 0.001)
        for each in ((0.0, tolerance), (tolerance, tolerance))
    )


def _is_ever_right(found: list[tuple], truth: str) -> bool:
    return any(answer == each == truth for answer, each, *_ in found)


def _first_within(x, y, relative: float, absolute: float) -> str:
    suspects = norms_by_name(x)
    near = (n for n, z in suspects.items() if torch.allclose(z, y, relative, absolute))
    return next(near, list(suspects)[-1])


@chapter.check(section="encoder-epsilon")
def diagnose_norm(student: StudentFunction, seed: int = 0) -> None:
    """Check that five normalisations are told apart at several sizes."""
    generator = seeded(seed)
    found = []
    for case in range(5):
        b, t, d = draw_sizes(generator, 3)
        d = (4, d + 2, 16, 3 * d + 4, 128)[case]
        spread = 1e-3 * 10 ** torch.rand(b, t, 1, generator=generator)
        if case == 4:  # where layer norm and the unbiased variance are most alike
            spread = torch.full_like(spread, 1e-3)
        centred = F.layer_norm(normal(generator, b, t, d), (d,))
        x = spread * centred + 0.005 * normal(generator, b, t, 1)
        for truth, y in norms_by_name(x).items():
            on = f"x and y {tuple(x.shape)}, where y was made by {truth!r}"
            found.append((student(x, y), truth, on, (x, y)))
    for answer, truth, on, _ in found:
        _expect_word(answer, truth, on)
    (first, *_), *_ = found
    same = all(answer == first for answer, *_ in found)
    why = "There are five possible answers, and each of them occurs in this check."
    say = {"on": "five y from different norms", "got": f"{first!r} each time"}
    refuse_if(same, "always the same answer", why, **say)
    for answer, truth, on, _ in found:
        say = {"on": on, "got": repr(answer), "expected": repr(truth)}
        for name, why, slip in _slips() if answer != truth else ():
            made = all(answer == nearest(*given, **slip) for answer, *_, given in found)
            refuse_if(made, name, why, **say)
    for answer, truth, on, given in found:
        say = {"on": on, "got": repr(answer), "expected": repr(truth)}
        near = answer != truth and _by_a_tolerance(found)
        # who always takes one for another may mean it so, whatever the tolerance
        refuse_if(near and _is_ever_right(found, truth), *FIRST, **say)
        known = diagnosis.known(*given)
        expect.equal(answer, truth, on=on, what="the answer", mistakes=known)


def _expect_word(answer: Data, truth: str, on: str) -> None:
    why = f"The five are: {', '.join(HOW_TO_TELL)}."
    if answer is None:
        why += (
            " No `return` was reached: numbers computed in two ways are hardly ever "
            "equal, so ask which suspect is nearest."
        )
    other = not isinstance(answer, str) or answer not in HOW_TO_TELL
    say = {"on": on, "got": show(answer), "expected": f"{truth!r}"}
    refuse_if(other, "another word than the five", why, **say)
