"""The class token: trained vectors in front of every sequence."""

from collections.abc import Iterator

import torch

from autograder.chapters.class_token.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.parameters import (
    Shapes,
    State,
    expect_parameters,
    expect_spread,
)
from autograder.exercise.spec import CUT_OFF, Case, Module
from autograder.expect import refuse_if, show
from autograder.interface import StudentInstance, StudentModule


def one_by_one(x: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
    """Prepend the class tokens to one sequence after another."""
    return torch.stack([torch.cat((token, sequence)) for sequence in x])


prepended = Module("class-token", "ClassToken", one_by_one)

# --- what goes wrong ------------------------------------------------------------------


def over_the_batch(x: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
    """Give the class tokens the axis of the batch."""
    return token.expand(len(x), *token.shape)


def _several(x: torch.Tensor, token: torch.Tensor) -> bool:
    return len(token) > 1


NOT_EXPANDED = (
    "the class token is not expanded over the batch",
    "torch.cat joins tensors that agree on every axis but one, and it does not "
    "broadcast. Give the token the axis of the batch first: "
    "self.token.expand(number of sequences, -1, -1) is (B, count, d_model).",
)
OTHER_AXIS = (
    "joined along another axis than the positions",
    "Axis 0 is the batch, axis 2 the features. The class token is one more position, "
    "axis 1: torch.cat(..., dim=1).",
)
ONE_VECTOR = (
    "one vector for all class tokens",
    "count class tokens are count vectors of their own. If they were one vector, the "
    "encoder could not tell them apart, and their outputs would be equal.",
)
for words, accident in (
    ("must match except in dimension 0", OTHER_AXIS),
    ("must match except in dimension 2", OTHER_AXIS),
    ("Tensors must have same number of dimensions", NOT_EXPANDED),
    ("Sizes of tensors must", NOT_EXPANDED),
):
    prepended.accident(words, *accident)
prepended.mistake(*NOT_EXPANDED)(lambda x, token: torch.cat((token[None], x), 1))
prepended.mistake(*OTHER_AXIS)(
    lambda x, token: torch.cat((over_the_batch(x, token), x), -1)
)
prepended.mistake(
    "the class token is appended at the end",
    "The order in torch.cat is the order of the positions. At the front the token is "
    "at position 0 whatever the length; at the end, padding would come before it.",
)(lambda x, token: torch.cat((x, over_the_batch(x, token)), 1))
prepended.mistake(
    "the class token replaces the first token",
    "The sequence is still T long, and its beginning is gone. The class token is one "
    "position more: the result is count + T long.",
)(lambda x, token: torch.cat((over_the_batch(x, token), x[:, len(token) :]), 1))
prepended.mistake(
    "the class token is added to every token",
    "A sum shifts all tokens by the same vector and adds no position. The class token "
    "is one more row: torch.cat along the axis of the positions.",
)(lambda x, token: x + token[:1])
prepended.mistake(
    "a class token before every token",
    "One class token serves the whole sequence; it collects from all tokens.",
)(lambda x, token: torch.stack((token[0].expand_as(x), x), 2).flatten(1, 2))
prepended.mistake(
    "one token per sequence position",
    "T copies of the class token were prepended. expand the axis of the batch, and "
    "leave that of the positions at count.",
)(lambda x, token: torch.cat((token[0].expand_as(x), x), 1))
prepended.mistake(
    "the class token is a sequence of its own",
    "Joined along axis 0, it is another sequence in the batch, and no attention ever "
    "connects sequences. Positions are axis 1: dim=1.",
)(lambda x, token: torch.cat((token[0].expand(1, *x.shape[1:]), x), 0))
prepended.mistake(
    "the factor 0.02 is applied at every call",
    "Multiply the random numbers once, before they become the parameter. The row "
    "in front is then the parameter itself.",
)(lambda x, token: one_by_one(x, 0.02 * token))
prepended.mistake(
    "several class tokens in reverse order",
    "Row i of the parameter belongs at position i, where the head of task i reads.",
    when=_several,
)(lambda x, token: one_by_one(x, token.flip(0)))
prepended.mistake(
    "the class tokens are mixed up over the batch",
    "repeat_interleave repeats each row before the next one comes, so after a reshape "
    "a sequence has the same row several times. expand adds the axis of the batch in "
    "front.",
    when=_several,
)(
    lambda x, token: torch.cat(
        (token.repeat_interleave(len(x), 0).reshape(len(x), *token.shape), x), 1
    )
)
prepended.mistake(*ONE_VECTOR, when=_several)(
    lambda x, token: one_by_one(x, token[:1].expand_as(token))
)
prepended.mistake(
    "only one of several class tokens is prepended",
    "With count class tokens the result is count + T long.",
    when=_several,
)(lambda x, token: one_by_one(x, token[:1]))
prepended.mistake("no gradient comes back", CUT_OFF)(
    lambda x, token: one_by_one(x, token.detach())
)

# --- the check ------------------------------------------------------------------------


def _misread(state: State, missing: list, extra: list, wanted: tuple) -> Iterator:
    found = tuple(state["token"].shape) if "token" in state else wanted
    yield (
        len(found) == 3 and found[-2:] == wanted,
        "one axis too many",
        "The batch is no business of a parameter: store (count, d_model) and let "
        "expand add the axis of the batch in forward, for batches of any size.",
    )
    yield (
        found == wanted[1:],
        "an axis missing in the parameter",
        "Store (count, d_model), also when count is 1: several class tokens then need "
        "no other code.",
    )
    yield (found != wanted and found == (1, wanted[1]), *ONE_VECTOR)


def built(
    student: StudentModule, shape: tuple[int, int], *, default: bool = False
) -> tuple[StudentInstance, str]:
    """Build the module, without its second argument if that is the default."""
    count, d_model = shape
    options = {} if default else {"count": count}
    on = f"ClassToken({d_model}{'' if default else f', count={count}'})"
    module = student.build(d_model, **options)
    shapes: Shapes = {"token": (count, d_model)}
    expect_parameters(
        module, shapes, on, lambda *found: _misread(*found, (count, d_model))
    )
    return module, on


def expect_prepended(
    student: StudentModule, x: torch.Tensor, token: torch.Tensor, default: bool
) -> None:
    """Expect the class tokens in front of every sequence, and gradients."""
    module, on = built(student, tuple(token.shape), default=default)
    module.load_state_dict({"token": token})
    on += f", x {tuple(x.shape)}"
    if x.numel() <= 8:
        on = f"token {show(token)}, x {x.tolist()}"
    case = Case(on, (x,), given=(token,))
    prepended.judge(module, case)
    length = len(token) + x.shape[1]
    cotangent = normal(seeded(len(token)), len(x), length, x.shape[2])
    prepended.judge_gradient(module, case, cotangent)


def expect_start(student: StudentModule) -> None:
    """Expect small random numbers, of which no two class tokens have the same."""
    module, on = built(student, (40, 64))
    token = module.state_dict()["token"]
    alike = (
        "Equal class tokens attend alike, give equal outputs and get equal gradients "
        "from what they share. Random numbers make them different. (A single class "
        "token may start at 0; ViT's does.)"
    )
    refuse_if(
        bool(token.std(0).max() < 1e-6),
        "the weights all start alike",
        alike,
        on=f"{on}, freshly built",
        got=f"token = {show(token)}",
        expected="rows that differ",
    )
    why = (
        "A vector of norm √d_model that means nothing yet would drown what the tokens "
        "say. Start small: 0.02 * torch.randn(...)."
    )
    expect_spread(token, 0.02, on, name="token", formula="the factor", why=why)


@chapter.check(section="class-token-prepend")
def class_token(student: StudentModule, seed: int = 0) -> None:
    """One shared parameter, first in every sequence, trained by every sequence."""
    generator = seeded(seed)
    batch, length, d_model = draw_sizes(generator, 3, largest=8)
    hand = torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    expect_prepended(student, hand, torch.tensor([[0.5, -0.5]]), default=True)
    for count, shape in (
        (1, (batch, length, d_model)),
        (3, (length, 5, 4)),
        (2, (1, 5, 4)),
    ):
        token, x = normal(generator, count, shape[-1]), normal(generator, *shape)
        expect_prepended(student, x, token, default=count == 1)
    expect_start(student)
