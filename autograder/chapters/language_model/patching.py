"""One activation of a clean run put into a corrupted one, and what it restores."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from autograder import expect
from autograder.chapters.language_model.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.showing import show_both
from autograder.exercise.spec import Case, Function
from autograder.expect import refuse_if
from autograder.interface import StudentFunction, StudentInstance, StudentModule

LOGITS = 1e-4  # tolerance: sums of many terms, in another order
LEFT = "the hook is left in the model"

# --- the notebook's model, computed from its weights ----------------------------------


@dataclass(frozen=True)
class Tiny:
    """The notebook's model: in each block a position reads itself and all before it.

    Args:
        table: the embeddings (V, d), which are the output matrix, too.
        own: for each block a matrix (d, d), of the position itself.
        before: for each block a matrix (d, d), of the mean of all up to the position.
    """

    table: torch.Tensor
    own: tuple[torch.Tensor, ...]
    before: tuple[torch.Tensor, ...]

    @classmethod
    def of(cls, model: Any) -> "Tiny":
        """Take it from a model that was built by the notebook."""
        if isinstance(model, cls):
            return model
        state = model.state_dict()
        named = {
            part: tuple(
                state[f"blocks.{number}.{part}.weight"]
                for number in range(len(model.blocks))
            )
            for part in ("own", "before")
        }
        return cls(state["embedding.weight"], **named)

    @property
    def state(self) -> dict[str, torch.Tensor]:
        """The weights by their names in the notebook's model."""
        named = {"embedding.weight": self.table}
        for number, pair in enumerate(zip(self.own, self.before, strict=True)):
            for part, weight in zip(("own", "before"), pair, strict=True):
                named[f"blocks.{number}.{part}.weight"] = weight
        return named

    @property
    def layers(self) -> int:
        """How many blocks there are."""
        return len(self.own)

    def step(self, layer: int, x: torch.Tensor) -> torch.Tensor:
        """Run one block, (T, d) -> (T, d), in double precision."""
        counts = torch.arange(1, len(x) + 1).unsqueeze(1)
        mean = x.cumsum(dim=0) / counts
        own, before = self.own[layer].double(), self.before[layer].double()
        return x + torch.tanh(x @ own.T + mean @ before.T)

    def stream(self, ids: torch.Tensor) -> list[torch.Tensor]:
        """Return the embeddings and what each block gives, (T, d) each."""
        found = [self.table.double()[ids[0]]]
        for layer in range(self.layers):
            found.append(self.step(layer, found[-1]))
        return found

    def finish(self, x: torch.Tensor, layer: int) -> torch.Tensor:
        """Run the blocks from a layer on, and compute the logits (1, T, V)."""
        for number in range(layer, self.layers):
            x = self.step(number, x)
        return (x @ self.table.double().T).unsqueeze(0).float()

    def logits(self, ids: torch.Tensor) -> torch.Tensor:
        """Run it all."""
        return self.finish(self.stream(ids)[0], 0)


def draw_tiny(generator: torch.Generator, size: int, width: int, layers: int) -> Tiny:
    """Draw a model in which every position has its say."""
    own, before = (
        tuple(normal(generator, width, width) / width**0.5 for _ in range(layers))
        for _ in range(2)
    )
    return Tiny(normal(generator, size, width), own, tuple(2 * each for each in before))


def load(module: StudentModule, tiny: Tiny) -> StudentInstance:
    """Build the notebook's model with these weights."""
    model = module.build(*tiny.table.shape, tiny.layers)
    model.load_state_dict(tiny.state)
    return model


OTHERS = (
    "hooks of others are removed",
    "The blocks had a hook before yours, which counts their runs. Remove the hook that "
    "you have registered, by the handle that registering gave you, and no other.",
)


def _runs(model: StudentInstance) -> list[int]:
    """Return how often each block has run, as its own hook counts."""
    state = model.state_dict().items()
    return [int(value) for name, value in state if name.endswith(".runs")]


def expect_as_before(model: StudentInstance, tiny: Tiny, ids: torch.Tensor) -> None:
    """Expect that the model computes what it did before, and still counts its runs."""
    before = _runs(model)
    got, right = model(ids), tiny.logits(ids)
    why = (
        "Call hook.remove() as soon as the model has run. Until then the hook is "
        "called in every run, also in those that are to be left alone."
    )
    came, wanted = show_both(got, right, LOGITS)
    say = {"on": "the model run once more, after the call", "got": came}
    same = expect.close(got, right, LOGITS)
    refuse_if(not same, LEFT, why, expected=wanted, **say)
    counted = [now - then for then, now in zip(before, _runs(model), strict=True)]
    say["got"] = f"runs that the blocks' own hooks count: {counted}"
    refuse_if(0 in counted, *OTHERS, expected="1 for each block", **say)


ARGUMENTS = (
    "the hook takes other arguments",
    "PyTorch calls a forward hook with three: the module, its inputs (a tuple) and its "
    "output.",
)


def name_accidents(spec: Function) -> None:
    """Name what is behind the exceptions of hooks."""
    spec.accident("positional argument", *ARGUMENTS)


# --- what the blocks give -------------------------------------------------------------


def outputs(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """Return what each block gives, (layers, T, d)."""
    return torch.stack(Tiny.of(model).stream(ids)[1:]).float()


record = Function("patch-activations", "record_activations", outputs)
name_accidents(record)


def _stream(model: Any, ids: torch.Tensor) -> torch.Tensor:
    return torch.stack(Tiny.of(model).stream(ids)).float()


record.mistake(
    "the input of the block in place of its output",
    "What a block gives is the third thing that a forward hook is called with.",
)(lambda model, ids: _stream(model, ids)[:-1])
record.mistake(
    "the embeddings are among them",
    "Return only what the blocks give: a hook on each of model.blocks.",
)(_stream)
record.mistake(
    "what each block adds",
    "Return the residual stream after the block, its whole output.",
)(lambda model, ids: _stream(model, ids).diff(dim=0))
record.mistake("only the last block", "Each block gets a hook of its own.")(
    lambda model, ids: _stream(model, ids)[-1:]
)
record.mistake(
    "the batch is left in",
    "The batch of one is cut off: output[0] is (T, d_model).",
)(lambda model, ids: outputs(model, ids).unsqueeze(1))
record.mistake(
    "layers and positions exchanged", "The layers come first: (layers, T, d_model)."
)(lambda model, ids: outputs(model, ids).transpose(0, 1))
record.mistake("only the last position", "Return all positions: (layers, T, d_model).")(
    lambda model, ids: outputs(model, ids)[:, -1]
)


# --- one activation in the place of another -------------------------------------------


def patched(
    model: Any,
    ids: torch.Tensor,
    layer: int,
    position: int | slice,
    activation: torch.Tensor,
) -> torch.Tensor:
    """Change what one block gives at one position, and go on from there."""
    tiny = Tiny.of(model)
    x = tiny.stream(ids)[layer + 1].clone()
    x[position] = activation.double()
    return tiny.finish(x, layer + 1)


run = Function("patch-activations", "run_patched", patched)
name_accidents(run)
run.accident(
    "is out of bounds for dimension 0",
    "the position taken for the batch",
    "The output of a block is (1, T, d_model): its positions are the second axis, "
    "output[:, position].",
)


@run.mistake(
    "nothing is patched",
    "These are the logits of the model left alone. Does the hook return the changed "
    "output? One that returns nothing leaves the output as it is. And is it registered "
    "before the model runs?",
)
def _(model, ids, layer, position, activation):
    return Tiny.of(model).logits(ids)


@run.mistake(
    "all positions are patched",
    "Only output[:, position] gets the activation; the others stay as they are.",
)
def _(model, ids, layer, position, activation):
    return patched(model, ids, layer, slice(None), activation)


@run.mistake(
    "all positions from this one on are patched",
    "Only one position gets the activation: output[:, position], without a colon.",
    when=lambda model, ids, layer, position, activation: position + 1 < ids.shape[1],
)
def _(model, ids, layer, position, activation):
    return patched(model, ids, layer, slice(position, None), activation)


@run.mistake(
    "the input of the block in place of its output",
    "Layer l is patched after block l: a forward hook, which changes the output, not a "
    "pre-hook, which changes the input.",
)
def _(model, ids, layer, position, activation):
    tiny = Tiny.of(model)
    x = tiny.stream(ids)[layer].clone()
    x[position] = activation.double()
    return tiny.finish(x, layer)


@run.mistake(
    "the block after this one",
    "Layers are counted from 0: layer l is model.blocks[l].",
    when=lambda model, ids, layer, *rest: layer + 1 < Tiny.of(model).layers,
)
def _(model, ids, layer, position, activation):
    return patched(model, ids, layer + 1, position, activation)


@run.mistake(
    "the block before this one",
    "Layers are counted from 0: layer l is model.blocks[l].",
    when=lambda model, *rest: Tiny.of(model).layers > 1,
)
def _(model, ids, layer, position, activation):
    before = (layer - 1) % Tiny.of(model).layers
    return patched(model, ids, before, position, activation)


@run.mistake(
    "added to the output",
    "The activation takes the place of the output at this position; nothing is added.",
)
def _(model, ids, layer, position, activation):
    before = Tiny.of(model).stream(ids)[layer + 1][position]
    return patched(model, ids, layer, position, before + activation.double())


@run.mistake("only the last position", "Return the logits of all positions.")
def _(model, ids, layer, position, activation):
    return patched(model, ids, layer, position, activation)[:, -1]


@run.mistake(
    "every layer is patched",
    "The hook belongs to one block alone, model.blocks[layer].",
    when=lambda model, ids, layer, *rest: layer + 1 < Tiny.of(model).layers,
)
def _(model, ids, layer, position, activation):
    tiny = Tiny.of(model)
    x = tiny.stream(ids)[0]
    for number in range(tiny.layers):
        x = tiny.step(number, x).clone()
        x[position] = activation.double()
    return tiny.finish(x, tiny.layers)


# --- how much comes back --------------------------------------------------------------


def difference(logits: torch.Tensor, right: int, wrong: int) -> float:
    """How much more the last position says for the right token than for the wrong."""
    return (logits[0, -1, right].double() - logits[0, -1, wrong].double()).item()


def _table(
    model: Any,
    clean: torch.Tensor,
    corrupted: torch.Tensor,
    measure: Callable[[torch.Tensor], float],
    share: Callable[[float, float, float], float] = lambda it, high, low: (
        (it - low) / (high - low)
    ),
    *,
    into: Callable = lambda position: position,
    end: Callable = lambda position: None,
    before: int = 0,
) -> torch.Tensor:
    """Patch every layer and position; what is measured and how can be varied."""
    tiny = Tiny.of(model)
    streams = tiny.stream(clean), tiny.stream(corrupted)
    high, low = (measure(tiny.logits(ids)) for ids in (clean, corrupted))
    rows = []
    for layer in range(1 - before, tiny.layers + 1 - before):
        row = []
        for position in range(clean.shape[1]):
            x, place = streams[1][layer].clone(), into(position)
            x[place] = streams[0][layer][place]
            logits = tiny.finish(x, layer)[:, : end(position)]
            row.append(share(measure(logits), high, low))
        rows.append(row)
    return torch.tensor(rows)


def restored(model, clean, corrupted, right, wrong) -> torch.Tensor:
    """Return the share of the difference that each activation brings back."""
    return _table(model, clean, corrupted, lambda x: difference(x, right, wrong))


effect = Function("patch-activations", "patching_effect", restored)
name_accidents(effect)

for name, why, share in (
    (
        "not divided by the whole difference",
        "Divide by clean - corrupted. Then 1 means that all of it came back.",
        lambda it, high, low: it - low,
    ),
    (
        "the corrupted run is not subtracted",
        "Subtract what the corrupted run reaches without any help.",
        lambda it, high, low: it / (high - low),
    ),
    (
        "what is still missing",
        "That is 1 minus the share that came back: (patched - corrupted) / (clean - "
        "corrupted).",
        lambda it, high, low: (high - it) / (high - low),
    ),
    (
        "the sign is turned",
        "The clean run is the goal: divide by clean - corrupted, not by corrupted - "
        "clean.",
        lambda it, high, low: (it - low) / (low - high),
    ),
    (
        "the logit differences themselves",
        "Return the share that comes back: (patched - corrupted) "
        "/ (clean - corrupted).",
        lambda it, high, low: it,
    ),
    (
        "divided by the clean difference alone",
        "Without any help the corrupted run gets 0 and the clean one 1: divide by "
        "clean - corrupted.",
        lambda it, high, low: (it - low) / high,
    ),
    (
        "no brackets above the line",
        "Python divides before it subtracts: patched - corrupted belongs in brackets.",
        lambda it, high, low: it - low / (high - low),
    ),
    (
        "cut off at 0 and 1",
        "A patch can do harm, and it can do more than the clean run does: leave shares "
        "below 0 and above 1 as they are.",
        lambda it, high, low: min(max((it - low) / (high - low), 0.0), 1.0),
    ),
):

    @effect.mistake(name, why)
    def _(model, clean, corrupted, right, wrong, share=share):
        def measure(x):
            return difference(x, right, wrong)

        return _table(model, clean, corrupted, measure, share)


for name, why, measure in (
    (
        "the right token alone",
        "A logit can rise for all tokens at once. Measure the difference of two.",
        lambda x, right, wrong: x[0, -1, right].item(),
    ),
    (
        "probabilities in place of logits",
        "Probabilities are squeezed at 0 and at 1. The logits themselves are compared.",
        lambda x, right, wrong: difference(x.softmax(dim=-1), right, wrong),
    ),
    (
        "the first position's logits",
        "The last position says the next token: logits[0, -1].",
        lambda x, right, wrong: (x[0, 0, right] - x[0, 0, wrong]).item(),
    ),
    (
        "averaged over all positions",
        "Only the last position says the token in question: logits[0, -1].",
        lambda x, right, wrong: (x[0, :, right] - x[0, :, wrong]).mean().item(),
    ),
):

    @effect.mistake(name, why)
    def _(model, clean, corrupted, right, wrong, measure=measure):
        return _table(model, clean, corrupted, lambda x: measure(x, right, wrong))


@effect.mistake(
    "the corrupted activation in the clean run",
    "That asks what breaks the clean run. Here the clean activation goes into the "
    "corrupted run.",
)
def _(model, clean, corrupted, right, wrong):
    return 1 - restored(model, corrupted, clean, right, wrong)


@effect.mistake(
    "the corrupted activation in the clean run",
    "That asks what breaks the clean run. Here the clean activation goes into the "
    "corrupted run.",
)
def _(model, clean, corrupted, right, wrong):
    return restored(model, corrupted, clean, right, wrong)


@effect.mistake(
    "the corrupted activation in the clean run, and no brackets above the line",
    "Here the clean activation goes into the corrupted run. And Python divides before "
    "it subtracts: patched - corrupted belongs in brackets.",
)
def _(model, clean, corrupted, right, wrong):
    return _table(
        model,
        corrupted,
        clean,
        lambda x: difference(x, right, wrong),
        lambda it, high, low: it - high / (low - high),
    )


@effect.mistake(
    "the logits of the patched position",
    "Whatever position is patched, the last one says the next token: logits[0, -1].",
)
def _(model, clean, corrupted, right, wrong):
    return _table(
        model,
        clean,
        corrupted,
        lambda x: difference(x, right, wrong),
        end=lambda position: position + 1,
    )


@effect.mistake(
    "the corrupted run's own activations",
    "They change nothing. What is put in comes from the clean run.",
)
def _(model, clean, corrupted, right, wrong):
    return torch.zeros(Tiny.of(model).layers, clean.shape[1])


@effect.mistake(
    "the input of the block in place of its output",
    "Layer l is patched after block l, with what block l gives.",
)
def _(model, clean, corrupted, right, wrong):
    return _table(
        model, clean, corrupted, lambda x: difference(x, right, wrong), before=1
    )


@effect.mistake(
    "every patched run is the clean one",
    "Every share is 1. Either the clean run itself is patched, or all positions of the "
    "corrupted one at once. Patch the corrupted run, one position at a time.",
)
def _(model, clean, corrupted, right, wrong):
    return _table(
        model,
        clean,
        corrupted,
        lambda x: difference(x, right, wrong),
        into=lambda position: slice(None),
    )


@effect.mistake("layers and positions exchanged", "A row for each layer: (layers, T).")
def _(model, clean, corrupted, right, wrong):
    return restored(model, clean, corrupted, right, wrong).T


# --- the checks -----------------------------------------------------------------------


def _drawn(seed: int) -> Iterator[tuple[str, Tiny, torch.Generator, int]]:
    """Draw models of several shapes, and how many tokens they read."""
    generator = seeded(seed)
    for _ in range(2):
        layers, width, length = draw_sizes(generator, 3, 6)
        size = 9 + layers
        tiny = draw_tiny(generator, size, width, layers)
        on = f"TinyModel({size}, {width}, {layers}), ids (1, {length})"
        yield on, tiny, generator, length


def _draw_ids(generator: torch.Generator, tiny: Tiny, length: int) -> torch.Tensor:
    return torch.randint(len(tiny.table), (1, length), generator=generator)


@chapter.check(section="language-model-patching")
def record_activations(
    student: StudentFunction, tiny_model: StudentModule, seed: int = 0
) -> None:
    """Models of several depths, the same model twice."""
    for on, tiny, generator, length in _drawn(seed):
        model = load(tiny_model, tiny)
        for _ in range(2):
            ids = _draw_ids(generator, tiny, length)
            case = Case(on, (tiny, ids), tolerance=LOGITS)
            with record.accidents_named():
                got = student(model, ids)
            record.compare(got, case)
            expect_as_before(model, tiny, ids)
    _expect_nothing_kept(student, tiny_model, seeded(seed + 1))


def _expect_nothing_kept(
    student: StudentFunction, tiny_model: StudentModule, generator: torch.Generator
) -> None:
    """Expect that a model holds no more on its way than before it was recorded."""
    tiny = draw_tiny(generator, 9, 4, 8)  # deep: what hooks keep is most of it
    model, ids = load(tiny_model, tiny), _draw_ids(generator, tiny, 5)
    _, before = model.memory(ids)
    student(model, ids)
    _, after = model.memory(ids)
    refuse_if(
        after > before,
        LEFT,
        "The values are right, but every later run still keeps what its blocks give. "
        "Each hook has a handle of its own: put all of them into a list, and remove "
        "each one after the run.",
        on="TinyModel(9, 4, 8) run once more, after the call",
        got=f"{after} numbers held at one time",
        expected=f"{before}, as before the call",
    )


@chapter.check(section="language-model-patching")
def run_patched(
    student: StudentFunction, tiny_model: StudentModule, seed: int = 0
) -> None:
    """Every layer, positions at both ends, and the model as it was before."""
    for on, tiny, generator, length in _drawn(seed):
        model = load(tiny_model, tiny)
        ids = _draw_ids(generator, tiny, length)
        # "all positions" and "all from this one on" differ in the middle only
        ends = dict.fromkeys((length - 1, length // 2, 0))
        places = itertools.product(range(tiny.layers), ends)
        for layer, position in places:
            activation = 2 * normal(generator, tiny.table.shape[1])
            asked = ids, layer, position, activation
            where = f"{on}, layer {layer}, position {position}"
            case = Case(where, asked, what="the logits", tolerance=LOGITS)
            with run.accidents_named():
                got = student(model, *asked)
            run.compare(got, replace(case, inputs=(tiny, *asked)))
            expect_as_before(model, tiny, ids)


@chapter.check(section="language-model-patching")
def patching_effect(
    student: StudentFunction,
    patching: StudentFunction,
    recording: StudentFunction,
    tiny_model: StudentModule,
    seed: int = 0,
) -> None:
    """Every layer and position of several models, and the models as they were."""
    with (
        expect.relying_on(record_activations, recording, tiny_model),
        expect.relying_on(run_patched, patching, tiny_model),
    ):
        for on, tiny, generator, length in _drawn(seed):
            model = load(tiny_model, tiny)
            asked = _draw_pair(generator, tiny, length)
            with effect.accidents_named():
                got = student(model, *asked)
            case = Case(on, (tiny, *asked), what="the shares", tolerance=1e-3)
            effect.compare(got, case)
            expect_as_before(model, tiny, asked[0])


def _draw_pair(generator: torch.Generator, tiny: Tiny, length: int) -> tuple:
    """Draw two texts and two tokens between which the texts decide clearly."""
    while True:
        clean, corrupted = (_draw_ids(generator, tiny, length) for _ in range(2))
        right, wrong = torch.randperm(len(tiny.table), generator=generator)[:2].tolist()
        high, low = (
            difference(tiny.logits(ids), right, wrong) for ids in (clean, corrupted)
        )
        if high - low > 1.5 and abs(low) > 0.5 and abs(high) > 0.5:
            return clean, corrupted, right, wrong
