"""Heads: from the encoder's outputs to logits."""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

from autograder.chapters.class_token.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.parameters import (
    expect_biases_of_zero,
    expect_parameters,
    expect_spread,
)
from autograder.exercise.spec import CUT_OFF, Case, Module, squeezed
from autograder.expect import refuse_if
from autograder.interface import StudentInstance, StudentModule

WEIGHT = torch.tensor([[1.0, 0.0, -1.0], [0.0, 1.0, 1.0]])  # of the examples by hand
BIAS = torch.tensor([0.5, 0.0, 0.0])
WHAT = "the logits"


def linear(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor):
    """Map by PyTorch's own function, which takes the transpose."""
    return F.linear(rows, weight.mT, bias)


first = Module(
    "class-head",
    "ClassHead",
    lambda hidden, weight, bias: linear(hidden.unbind(1)[0], weight, bias),
)

# --- what goes wrong ------------------------------------------------------------------


def headed(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    *,
    read: Callable = lambda hidden: hidden[:, 0],
    biased: Callable = lambda bias: bias,
    form: Callable = lambda logits: logits,
) -> torch.Tensor:
    """Answer by rules that can be varied.

    Args:
        hidden: (B, T, d).
        weight: (d, classes).
        bias: (classes,).
        read: one row of each sequence.
        biased: what is added.
        form: of the logits.
    """
    return form(read(hidden) @ weight + biased(bias))


SQUASHED = (
    "squashed before the linear map",
    "BERT's pooler has such a step. This head maps the vector at position 0 as it is: "
    "y = x W + b.",
)
first.slips(
    headed,
    (
        "the head reads the last position",
        "The class token was put in front: its output is at position 0. The last "
        "position is a word, or padding.",
        {"read": lambda hidden: hidden[:, -1]},
    ),
    (
        "the head reads the mean",
        "That is the other readout, MeanHead. This one takes the class token's output "
        "only: collecting from the others was the encoder's work.",
        {"read": lambda hidden: hidden.mean(1)},
    ),
    (
        "the head reads the maximum",
        "Of each feature the largest entry of all positions was taken. This head takes "
        "position 0 as it is, hidden[:, 0].",
        {"read": lambda hidden: hidden.amax(1)},
    ),
    (
        "the head reads the sum",
        "All positions were added up. This head takes position 0 only, hidden[:, 0].",
        {"read": lambda hidden: hidden.sum(1)},
    ),
    (
        "the head reads the first word",
        "Positions are counted from 0, and the class token is at position 0.",
        {"read": lambda hidden: hidden[:, 1]},
    ),
    (
        "the head reads every position",
        "There is one answer for each sequence, (B, classes). Pick position 0 first.",
        {"read": lambda hidden: hidden},
    ),
    (
        "the axis of the positions is kept",
        "hidden[:, :1] is a piece of length 1, (B, 1, d_model); hidden[:, 0] is one "
        "position, (B, d_model).",
        {"read": lambda hidden: hidden[:, :1]},
    ),
    (
        "the head reads the first sequence",
        "Axis 0 is the batch: hidden[0] is a whole sequence. Positions are axis 1, "
        "hidden[:, 0].",
        {"read": lambda hidden: hidden[0]},
    ),
    (
        "the head reads the first feature",
        "The last axis has the features. Positions are axis 1, hidden[:, 0].",
        {"read": lambda hidden: hidden[..., 0]},
    ),
    (*SQUASHED, {"read": lambda hidden: hidden[:, 0].tanh()}),
    (*SQUASHED, {"read": lambda hidden: hidden[:, 0].relu()}),
    (*SQUASHED, {"read": lambda hidden: F.gelu(hidden[:, 0])}),
    (
        "no gradient comes back",
        CUT_OFF,
        {"read": lambda hidden: hidden[:, 0].detach()},
    ),
    (
        "the bias is not added",
        "y = x W + b: the bias is there but never used.",
        {"biased": torch.zeros_like},
    ),
    (
        "probabilities in place of logits",
        "A softmax was applied. F.cross_entropy wants logits and applies its own "
        "softmax; twice is too often: the gradient becomes small and the loss never "
        "gets near 0.",
        {"form": lambda logits: logits.softmax(-1)},
    ),
    (
        "logarithms of probabilities in place of logits",
        "F.cross_entropy takes the log_softmax itself. Return the logits as they are.",
        {"form": lambda logits: logits.log_softmax(-1)},
    ),
    (
        "a class in place of logits",
        "argmax has no gradient, so nothing could be learned. Return the logits; who "
        "wants a decision takes their argmax.",
        {"form": lambda logits: logits.argmax(-1)},
    ),
    (*squeezed("batch", "for a single sequence"), {"form": torch.squeeze}),
)

# --- the check ------------------------------------------------------------------------


def loaded(
    student: StudentModule, weight: torch.Tensor, bias: torch.Tensor
) -> StudentInstance:
    """Build a head, and give it these numbers."""
    d_model, classes = weight.shape
    on = f"{student.name}(d_model={d_model}, classes={classes})"
    module = student.build(d_model, classes)
    expect_parameters(module, {"weight": (d_model, classes), "bias": (classes,)}, on)
    module.load_state_dict({"weight": weight, "bias": bias})
    return module


def expect_logits(spec: Module, student: StudentModule, case: Case) -> None:
    """Expect the logits of a case, given weight and bias, and their gradients."""
    module = loaded(student, *case.given)
    spec.judge(module, case)
    cotangent = normal(seeded(3), *spec.right(case).shape)
    spec.judge_gradient(module, case, cotangent)


def expect_start(student: StudentModule) -> None:
    """Expect small random weights, or zeros, and a bias that prefers no class."""
    d_model, classes = 128, 20
    on = f"{student.name}(d_model={d_model}, classes={classes})"
    state = student.build(d_model, classes).parameters()
    why = (
        "With entries of standard deviation 1 the logits have one of √d_model: the "
        "untrained head is certain of its guesses, and mostly wrong. Divide by "
        "√d_model."
    )
    spread = state["weight"].std().item()
    refuse_if(
        abs(spread * classes**0.5 - 1) < 0.1,
        "divided by the root of the number of classes",
        "A logit is a sum of d_model products, so its spread grows with √d_model, "
        "however many classes there are. Divide by √d_model.",
        on=f"{on}, freshly built",
        got=f"weight with a standard deviation of {spread:.3f}",
        expected=f"about 1/√d_model = {d_model**-0.5:.3f}",
    )
    if state["weight"].any():  # ViT's head starts from zeros
        say = {"name": "weight", "formula": "1/√d_model", "why": why}
        expect_spread(state["weight"], d_model**-0.5, on, **say)
    expect_biases_of_zero(state, ("bias",), on)


def outputs(seed: int) -> Iterator[Case]:
    """Make an encoder's outputs: all sizes equal, by hand, all different."""
    generator = seeded(seed)
    # where what is read along another axis has a value, too, and the value a name
    drawn = [(4, 4, 4, 4), *(draw_sizes(generator, 4, largest=8) for _ in range(2))]
    for batch, length, d_model, classes in drawn:
        hidden = normal(generator, batch, length, d_model)
        given = normal(generator, d_model, classes), normal(generator, classes)
        on = f"hidden {tuple(hidden.shape)}, weight {tuple(given[0].shape)}"
        yield Case(on, (hidden,), given=given, what=WHAT)
    hidden = torch.tensor([[[1.0, 2.0], [3.0, 0.0], [2.0, 4.0]]])
    on = "the example by hand, hidden [[[1, 2], [3, 0], [2, 4]]]"
    yield Case(on, (hidden,), given=(WEIGHT, BIAS), what=WHAT)
    hidden = normal(generator, 3, 1, 2)
    on = "hidden (3, 1, 2), a single position"
    yield Case(on, (hidden,), given=(WEIGHT, BIAS), what=WHAT)


@chapter.check(section="class-token-head")
def class_head(student: StudentModule, seed: int = 0) -> None:
    """Logits from position 0, from nothing else; parameters; gradients."""
    expect_shapes(student)
    for case in outputs(seed):
        expect_logits(first, student, case)
    expect_start(student)


def expect_shapes(student: StudentModule) -> None:
    """Expect parameters of these shapes where no two sizes are equal."""
    loaded(student, WEIGHT, BIAS)
