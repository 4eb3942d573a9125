"""One epoch of gradient descent, repaired: losses and weights after each step."""

import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.decoder import oracles
from autograder.chapters.decoder.loss import sequence_loss
from autograder.chapters.decoder.transformer import transformer_alone
from autograder.chapters.decoder.writing.chapter import DEEP, chapter
from autograder.exercise.inputs import draw_whole, normal, seeded
from autograder.exercise.naming import Mistake
from autograder.exercise.spec import Case, Function
from autograder.expect import refuse, refuse_if, show
from autograder.interface import Data, StudentFunction, StudentModule

SMALL = 11, 8, 2, 1, 12, 16  # vocabulary, d_model, heads, layers, d_ff, max_length

State = dict[str, torch.Tensor]
Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # source, inputs, labels


class Model:
    """A model of our own, which is trained as the student's is.

    Args:
        state: the parameters at the beginning.
        run: gives the logits of parameters, source ids and target ids.
    """

    def __init__(self, state: State, run: Callable) -> None:
        self.state = {
            name: each.clone().requires_grad_() for name, each in state.items()
        }
        self._run = run

    def parameters(self) -> list[torch.Tensor]:
        """What an optimiser changes."""
        return list(self.state.values())

    def __call__(self, source: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """Map source and inputs to logits (B, T, V)."""
        return self._run(self.state, source, inputs)


@dataclass
class Training(Function):
    """The specification of a function that changes a model: its weights count, too."""

    def known(self, *given: Data) -> Iterator[Mistake]:
        """Train a model of its own with each mistake."""
        all_of_it = [
            replace(each, answer=partial(_trained, each.answer))
            for each in self.mistakes
        ]
        return Function(self.exercise, self.answer, None, all_of_it).known(*given)

    def right(self, case: Case) -> Data:
        """Train as it is asked for."""
        return _trained(self.oracle, *case.inputs)


def _trained(epoch: Callable, model: Model, batches: list[Batch], rate: float) -> dict:
    """Train a copy of the model; return the losses, and the weights in the end."""
    own = copy.deepcopy(model)
    losses = epoch(own, batches, rate)
    weights = {name: each.detach() for name, each in own.state.items()}
    return {"losses": losses, "weights": weights}


def _real_loss(logits: torch.Tensor, labels: torch.Tensor, **options) -> torch.Tensor:
    """Average the cross-entropy over the labels that are not padding."""
    options = {"ignore_index": 0, **options}
    return F.cross_entropy(logits.transpose(1, 2), labels, **options)


def _epoch(
    model: Callable,
    batches: list[Batch],
    learning_rate: float,
    *,
    see: Callable = lambda model, batch: (batch[0], batch[1]),
    loss: Callable = lambda logits, batch: _real_loss(logits, batch[2]),
    optimiser: Callable = torch.optim.SGD,
    keep: bool = False,
    late: bool = False,
    once: bool = False,
) -> list[float]:
    """Train for an epoch; return the losses.

    ``keep`` adds to earlier gradients, ``late`` looks at the loss after the step,
    ``once`` makes one step, at the end of the epoch.
    """
    descent, losses = optimiser(model.parameters(), lr=learning_rate), []
    for batch in batches:
        error = loss(model(*see(model, batch)), batch)
        if not keep and not once:
            descent.zero_grad()
        error.backward()
        if not once:
            descent.step()
        if late:
            error = loss(model(*see(model, batch)), batch)
        losses.append(error.item())
    if once:
        descent.step()
    return losses


training = Training("bug-hunt", "repaired_epoch", _epoch)

# --- what goes wrong ------------------------------------------------------------------


@torch.no_grad()
def _own_predictions(model: Callable, batch: Batch) -> tuple:
    """Return the inputs that the model writes itself, from each first token."""
    source, inputs, _ = batch
    written = inputs[:, :1]
    while written.shape[1] < inputs.shape[1]:
        last = model(source, written)[:, -1]
        written = torch.cat((written, last.argmax(-1, keepdim=True)), dim=1)
    return source, written


def _all_scored(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    return _real_loss(logits, batch[2], ignore_index=-100)


def _multiplied(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    return _all_scored(logits * (batch[2] != 0).unsqueeze(-1), batch)


def _added_up(*given) -> list[float]:
    return list(itertools.accumulate(_epoch(*given)))


AXIS = (
    "F.cross_entropy looks for the classes on axis 1, and logits are (B, T, V). "
    "sequence_loss takes them as they are."
)
training.mistake(
    "gradients never cleared",
    "backward() adds to the gradients that are there. From the second batch on, "
    "those of the batches before take part in the step. Clear them for each batch.",
)(partial(_epoch, keep=True))
training.mistake(
    "own predictions as input",
    "With teacher forcing the decoder reads the true tokens, the inputs of the "
    "batch, and one call gives the logits of all positions. What it would choose "
    "itself matters when it writes, not here.",
)(partial(_epoch, see=_own_predictions))
training.mistake(
    "the source never gets in",
    "The encoder read the target in place of the source, so there is nothing to "
    "translate. The model takes the source first, then the inputs.",
)(partial(_epoch, see=lambda model, batch: (batch[1], batch[1])))
training.mistake(
    "the labels as input",
    "The decoder reads the inputs, which begin with <sos>. Given the labels, each "
    "position reads the token that it has to predict.",
)(partial(_epoch, see=lambda model, batch: (batch[0], batch[2])))
training.mistake(
    "labels not shifted",
    "Position t was scored with the token that it read, not with the next one. "
    "The labels are the third entry of a batch.",
)(partial(_epoch, loss=lambda y, batch: _real_loss(y, batch[1])))
training.mistake(
    "multiplied by the mask",
    "Logits of zero are a prediction, too: all tokens equally probable. They are "
    "scored, with a loss of ln V. Leave padding out of the mean: sequence_loss.",
)(partial(_epoch, loss=_multiplied))
training.mistake(
    "padding is scored",
    "The labels that are padding belong to no sentence and must not enter the "
    "mean. sequence_loss leaves them out.",
)(partial(_epoch, loss=_all_scored))
training.mistake(
    "softmax before the loss",
    "The loss takes the softmax itself. Of probabilities it makes a second one, "
    "which can never come near 0 or 1. Give it the logits.",
)(partial(_epoch, loss=lambda y, batch: _real_loss(y.softmax(-1), batch[2])))
training.mistake(
    "the loss after the step",
    "The loss was computed once more, with the weights that the step has changed. "
    "Remember the one that went backwards.",
)(partial(_epoch, late=True))
momentum = partial(torch.optim.SGD, momentum=0.9)
training.mistake(
    "momentum in place of plain gradient descent",
    "Momentum adds a part of the earlier steps to each step. Take torch.optim.SGD with "
    "the learning rate alone.",
)(partial(_epoch, optimiser=momentum))
training.mistake(
    "momentum in place of plain gradient descent, and the loss after the step",
    "Take torch.optim.SGD with the learning rate alone. And remember the loss that "
    "went backwards, not one computed with the changed weights.",
)(partial(_epoch, optimiser=momentum, late=True))
training.mistake(
    "the weights never change",
    "The weights are what they were. Either no step() follows backward(), or the "
    "gradients were cleared between the two, and the step found none: clear them "
    "before backward().",
)(lambda model, batches, _: _epoch(model, batches, 0.0))
training.mistake(
    "the labels are shifted twice",
    "inputs and labels come from shift_right and are one step apart already. Cut "
    "and shifted once more, each position is asked for the token after the next.",
)(
    partial(
        _epoch,
        see=lambda model, batch: (batch[0], batch[1][:, :-1]),
        loss=lambda y, batch: _real_loss(y, batch[2][:, 1:]),
    )
)
training.mistake(
    "the loss is smoothed",
    "Label smoothing was switched on. Here the plain sequence_loss is asked for.",
)(partial(_epoch, loss=lambda y, batch: _real_loss(y, batch[2], label_smoothing=0.1)))
training.mistake(
    "one step for all batches",
    "The gradients of all batches were added up and one step was taken at the "
    "end. Each batch has its own: step() belongs into the loop.",
)(partial(_epoch, once=True))
training.mistake(
    "the sum in place of the mean",
    "The loss of a batch is a mean over its real labels. A sum makes the step "
    "longer, the longer the sentences are.",
)(partial(_epoch, loss=lambda y, batch: _real_loss(y, batch[2], reduction="sum")))
for rate in (1e-3, 1e-2, 1e-1, 1.0):
    training.mistake(
        "the learning rate is not used",
        "The step has another length than the argument learning_rate says. Pass it "
        "on: lr=learning_rate.",
    )(lambda model, batches, _, rate=rate: _epoch(model, batches, rate))

training.mistake(
    "source and inputs exchanged",
    "The model takes the source first, then the inputs of the decoder.",
)(partial(_epoch, see=lambda model, batch: (batch[1], batch[0])))
training.mistake(
    "the losses are added up",
    "Each entry is the loss of its own batch, not the sum so far.",
)(_added_up)
training.mistake("classes on the wrong axis", AXIS)(
    partial(_epoch, loss=lambda y, batch: F.cross_entropy(y, batch[2]))
)
training.accident("Expected target size", "classes on the wrong axis", AXIS)
training.accident(
    "out of bounds",
    "hidden states in place of logits",
    "What was scored has fewer columns than the vocabulary has tokens. decode gives "
    "hidden states; the call of the whole model, model(source, inputs), gives logits.",
)

# --- the check ------------------------------------------------------------------------

RATE = 0.3


@chapter.check(section="decoder-teacher-forcing")
def repaired_epoch(
    student: StudentFunction,
    transformer: StudentModule,
    loss: StudentFunction,
    seed: int = 0,
) -> None:
    """Check losses and weights after padded batches against steps done here."""
    generator = seeded(seed)
    own = _small_transformer(generator)
    with (
        expect.relying_on(sequence_loss, loss),
        expect.relying_on(transformer_alone, transformer),
    ):
        batches = [
            _batch(generator, *size) for size in ((2, 5, 4), (3, 6, 5), (4, 4, 3))
        ]
        on = f"three batches with padding, learning_rate={RATE}"
        case = Case(on, (own, batches, RATE), tolerance=10 * DEEP)
        case = replace(case, what="what the epoch leaves")
        got, right = _run(student, transformer, case), training.right(case)
        if not expect.close(got["losses"], right["losses"], case.tolerance):
            _expect_no_adam(got["losses"], right["losses"], case)
        training.compare(got, case)
        batches = [_batch(generator, *size) for size in ((3, 4, 6), (4, 7, 3))]
        on = f"two batches, inputs longer or shorter than sources, learning_rate={RATE}"
        case = replace(case, on=on, inputs=(own, batches, RATE))
        got, right = _run(student, transformer, case), training.right(case)
        expect.equal(got, right, on=on, what=case.what, tolerance=case.tolerance)


def _run(student: StudentFunction, transformer: StudentModule, case: Case) -> dict:
    """Train the student's model; return the losses, and the weights in the end."""
    own, batches, rate = case.inputs
    before = {name: each.detach() for name, each in own.state.items()}
    model = transformer.build(*SMALL)
    model.load_state_dict(before)
    with training.accidents_named():
        losses = student(model, batches, rate)
    after = model.parameters()
    _expect_losses(losses, len(batches), case.on)
    _expect_all_learn(before, after, case.on)
    return {"losses": losses, "weights": after}


def _expect_no_adam(losses: list[float], right: list[float], case: Case) -> None:
    """Name Adam by its losses: where a gradient is rounding, its step is chance."""
    adam = _trained(partial(_epoch, optimiser=torch.optim.Adam), *case.inputs)
    why = (
        "The first step of Adam has the length of the rate in every weight. Here plain "
        "gradient descent is asked for, torch.optim.SGD."
    )
    same = expect.close(losses, adam["losses"], 1e-3)
    say = {"on": case.on, "got": show(losses), "expected": show(right)}
    refuse_if(same, "Adam in place of gradient descent", why, **say)


def _small_transformer(generator: torch.Generator) -> Model:
    """Draw the weights of a small Transformer."""
    vocabulary, d, heads, n, d_ff, _ = SMALL
    state, shapes = {}, oracles.transformer_shapes(vocabulary, n, d, d_ff, False)
    for name, shape in sorted(shapes.items()):
        if len(shape) == 2:
            state[name] = 0.4 * normal(generator, *shape)
        else:
            state[name] = torch.full(shape, float(name.endswith("gamma")))
    return Model(state, oracles.torch_transformer(n, d, heads, d_ff, False, "relu", 0))


def _batch(generator: torch.Generator, count: int, t_source: int, t_target: int):
    """Draw a source, the decoder's inputs and its labels; the first row is whole."""
    source = torch.randint(4, 11, (count, t_source), generator=generator)
    target = torch.randint(4, 11, (count, t_target), generator=generator)
    inputs = torch.cat((torch.full((count, 1), 2), target), dim=1)
    labels = torch.cat((target, torch.full((count, 1), 3)), dim=1)
    for row in range(1, count):
        source[row, t_source - 1 - draw_whole(generator, t_source - 2) :] = 0
        real = 1 + draw_whole(generator, t_target - 1)
        inputs[row, real + 1 :] = 0
        labels[row, real], labels[row, real + 1 :] = 3, 0
    return source, inputs, labels


def _expect_losses(got: Data, count: int, on: str) -> None:
    """Expect a list of Python floats, one for each batch."""
    expected = f"a list of {count} floats"
    if isinstance(got, list) and any(isinstance(x, torch.Tensor) for x in got):
        why = (
            "A tensor keeps its whole graph alive, batch for batch. `.item()` gives "
            "the number."
        )
        refuse("tensors in place of numbers", why, on=on, got=show(got[0]))
    if isinstance(got, (float, torch.Tensor)):
        why = "Remember the loss of each batch; the caller may average them."
        name = "one number for the epoch"
        refuse(name, why, on=on, got=show(got), expected=expected)
    if not isinstance(got, list):
        expect.equal(got, [0.0] * count, on=on, what="the list of losses")
    if len(got) == 1:
        why = "Is `return` indented too far? It belongs after the loop."
        name = "returns after the first batch"
        refuse(name, why, on=on, got=show(got), expected=expected)
    good = len(got) == count and all(type(x) is float for x in got)
    expect.true(
        good, "the list of losses is wrong", on=on, got=show(got), expected=expected
    )


def _expect_all_learn(before: dict, after: dict, on: str) -> None:
    """Name what cuts the encoder, or the decoder, off from the loss."""
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    for part, other in (("encoder", "decoder"), ("decoder", "encoder")):
        still = not any(name.startswith(f"{part}.") for name in moved)
        if still and any(name.startswith(f"{other}.") for name in moved):
            why = (
                f"No weight of the {part} changed, so no gradient came back to it. "
                "Call the whole model, without detach() or torch.no_grad(), and give "
                "all its parameters to the optimiser."
            )
            say = {"on": on, "got": f"{part}.* as before", "expected": "changed"}
            refuse(f"the {part} never learns", why, **say)
