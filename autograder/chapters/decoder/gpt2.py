"""GPT-2's weights in a decoder without an encoder."""

from collections.abc import Callable, Iterator
from functools import partial

import torch

from autograder.chapters.decoder.chapter import chapter
from autograder.chapters.encoder.oracles import draw_state, encoder_shapes
from autograder.exercise.inputs import draw_sizes, seeded
from autograder.exercise.parameters import State
from autograder.exercise.spec import Case, Function, judge_parts
from autograder.exercise.state_dicts import expect_names
from autograder.expect import show
from autograder.interface import Data, StudentFunction

RENAMED = {  # of a block: what keeps its numbers
    "ln_1.weight": "norm_1.gamma",
    "ln_1.bias": "norm_1.beta",
    "attn.c_proj.weight": "attention.w_o",
    "attn.c_proj.bias": "attention.b_o",
    "ln_2.weight": "norm_2.gamma",
    "ln_2.bias": "norm_2.beta",
    "mlp.c_fc.weight": "feed_forward.w_1",
    "mlp.c_fc.bias": "feed_forward.b_1",
    "mlp.c_proj.weight": "feed_forward.w_2",
    "mlp.c_proj.bias": "feed_forward.b_2",
}


def to_gpt2(state: State) -> State:
    """Name and scale the parameters of a DecoderOnly as GPT-2's file has them.

    The file stores a causal mask beside the weights of each block, and is sorted by
    name, so that block 10 comes before block 2.
    """
    table, positions = state["embedding.weight"], state["position.table"]
    root = table.shape[1] ** 0.5
    theirs = {"wte.weight": root * table, "wpe.weight": positions}
    theirs["ln_f.weight"] = state["blocks.norm.gamma"] / root
    theirs["ln_f.bias"] = state["blocks.norm.beta"] / root
    longest = len(positions)
    seen = torch.ones(longest, longest).tril()[None, None]
    for number in range(_count(state, "norm_1.gamma")):
        own, new = f"blocks.layers.{number}.", f"h.{number}."
        theirs |= {new + name: state[own + ours] for name, ours in RENAMED.items()}
        for letter, kind in (("w", "weight"), ("b", "bias")):
            parts = [state[f"{own}attention.{letter}_{each}"] for each in "qkv"]
            theirs[f"{new}attn.c_attn.{kind}"] = torch.cat(parts, dim=-1)
        theirs[f"{new}attn.bias"] = seen
    return dict(sorted(theirs.items()))


def _count(state: State, last: str) -> int:
    return sum(name.endswith(f".{last}") for name in state)


def _in_columns(packed: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return packed.chunk(3, dim=-1)


def translate(
    state: State,
    *,
    powers: tuple[float, float, float, float] = (-0.5, 0, 0.5, 0.5),
    cut: Callable = _in_columns,
    order: str = "qkv",
    turned: str = "",
    blocks: Callable = range,
) -> State:
    """Translate GPT-2's weights.

    Args:
        state: under GPT-2's names.
        powers: of d_model, by which table, positions, last gamma and beta are
            multiplied.
        cut: makes the three parts of c_attn.
        order: names the parts.
        turned: the matrices that are transposed, by the last letter of their names.
        blocks: makes of their number the order in which the blocks are taken.
    """
    names = "wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias"
    ours = "embedding.weight", "position.table", "blocks.norm.gamma", "blocks.norm.beta"
    d = state["wte.weight"].shape[1]
    result = {
        own: state[name] * d**power
        for own, name, power in zip(ours, names, powers, strict=True)
    }
    for new, old in enumerate(blocks(_count(state, "ln_1.weight"))):
        block = {own: state[f"h.{old}.{name}"] for name, own in RENAMED.items()}
        for letter, kind in (("w", "weight"), ("b", "bias")):
            parts = cut(state[f"h.{old}.attn.c_attn.{kind}"])
            named = zip(order, parts, strict=True)
            block |= {f"attention.{letter}_{each}": part for each, part in named}
        for name in [name for name in block if name[-3:-1] == "w_"]:
            block[name] = block[name].T if name[-1] in turned else block[name]
        result |= {f"blocks.layers.{new}.{name}": each for name, each in block.items()}
    return result


translation = Function("gpt2-weights", "weights_from_gpt2", translate)

# --- what goes wrong ------------------------------------------------------------------

TURNED = (
    "a matrix is transposed",
    "GPT-2's Conv1D computes x W + b with W (width in, width out), as you do. Only "
    "nn.Linear stores the transpose: nothing is to be turned.",
)
FORGOTTEN = (
    "the factor √d_model is forgotten",
    "Your Embedding multiplies by √d_model, GPT-2's does not: divide the table by it. "
    "The logits use the same table and become as much smaller: multiply gamma and beta "
    "of the last norm by it.",
)
TABLE = "the table is not divided by √d_model", FORGOTTEN[1]
LAST = (
    "the last norm is not multiplied by √d_model",
    "The logits are products with the table, which was divided by √d_model. Multiply "
    "gamma and beta of the last norm, and they are as large as GPT-2's.",
)
ROOT = (
    "d_model in place of its root",
    "Embedding multiplies by √d_model: math.sqrt(d_model).",
)
ORDER = (
    "the three parts in another order",
    "c_attn has the columns of the queries first, then keys, then values.",
)
MASK = (
    "the causal mask is taken for a bias",
    "attn.bias, of four axes, is the mask of a causal attention that GPT-2's file has "
    "stored as well. It is no parameter: leave it out.",
)


def _reshaped(packed: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(packed.reshape(3, *packed.shape[:-1], packed.shape[-1] // 3))


def _in_turn(packed: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(packed[..., start::3] for start in range(3))


translation.slips(
    translate,
    (*TURNED, {"turned": "qkvo12"}),
    (*TURNED, {"turned": "qkv"}),
    (*TURNED, {"turned": "o"}),
    (*TURNED, {"turned": "12"}),
    (*TURNED, {"turned": "o12"}),
    (*FORGOTTEN, {"powers": (0, 0, 0, 0)}),
    (*TABLE, {"powers": (0, 0, 0.5, 0.5)}),
    (*LAST, {"powers": (-0.5, 0, 0, 0)}),
    (
        "beta of the last norm is not multiplied",
        "The whole result of the last norm has to become √d_model times as large: its "
        "beta, too.",
        {"powers": (-0.5, 0, 0.5, 0)},
    ),
    (
        "the factor the wrong way round",
        "Embedding multiplies by √d_model itself: divide the table, and multiply the "
        "last norm.",
        {"powers": (0.5, 0, -0.5, -0.5)},
    ),
    (
        "the last norm is divided, too",
        "The table is √d_model times smaller, so what meets it in the logits must be "
        "√d_model times larger: multiply gamma and beta.",
        {"powers": (-0.5, 0, -0.5, -0.5)},
    ),
    (*ROOT, {"powers": (-1, 0, 1, 1)}),
    (
        "the positions are divided, too",
        "Positions are added as they are stored, here as there. Only words are "
        "multiplied by √d_model.",
        {"powers": (-0.5, -0.5, 0.5, 0.5)},
    ),
    *((*ORDER, {"order": order}) for order in ("qvk", "kqv", "kvq", "vqk", "vkq")),
    (
        "reshaped in place of cut",
        "reshape and view deal the numbers out row by row. The first d_model columns "
        "belong to the queries: chunk(3, dim=-1).",
        {"cut": _reshaped},
    ),
    (
        "every third column",
        "The first d_model columns belong to the queries, the next to the keys, the "
        "last to the values: blocks, not every third one.",
        {"cut": _in_turn},
    ),
    (
        "cut along the rows",
        "c_attn.weight is (d_model, 3·d_model): queries, keys and values stand side by "
        "side. Cut its columns, dim=-1.",
        {"cut": lambda packed: packed.chunk(3)},
    ),
)


def _last_that_begins(count: int) -> list[int]:
    """For each block, the last one by name whose number begins with its number."""
    names = sorted(map(str, range(count)))
    return [
        int([name for name in names if name.startswith(str(number))][-1])
        for number in range(count)
    ]


for name, why, blocks in (
    (
        "the blocks in alphabetical order",
        "Sorted as texts, h.10 comes before h.2. Number the blocks by the number in "
        "their names.",
        lambda count: sorted(range(count), key=str),
    ),
    (
        "h.10 and h.11 taken for h.1",
        "The names of blocks 10 and 11 begin with h.1, too. What belongs to block 1 "
        "begins with its number and the dot behind it.",
        _last_that_begins,
    ),
):
    translation.mistake(
        name, why, when=lambda state: _count(state, "ln_1.weight") > 10
    )(partial(translate, blocks=blocks))
translation.mistake(*MASK)(
    lambda state: (
        translate(state)
        | {
            f"blocks.layers.{name[2:].replace('attn', 'attention')}": value
            for name, value in state.items()
            if name.endswith("attn.bias")
        }
    )
)

# --- the check ------------------------------------------------------------------------


@chapter.check(section="decoder-only")
def weights_from_gpt2(student: StudentFunction, seed: int = 0) -> None:
    """Every tensor in its place and of its size, of 1, 2 and 12 blocks."""
    generator = seeded(seed)
    for count in (1, 2, 12):
        vocabulary, longest, half = (size + 1 for size in draw_sizes(generator, 3))
        d = 2 * half if count < 12 else 6
        shapes = {"embedding.weight": (vocabulary + 8, d)}
        shapes |= {"position.table": (longest, d)}
        inner = encoder_shapes(count, d, 4 * d, True)
        shapes |= {f"blocks.{name}": shape for name, shape in inner.items()}
        expected = draw_state(generator, shapes)
        theirs = to_gpt2(expected)
        on = f"a GPT-2 of {count} block{'s' * (count > 1)}, d_model {d}"
        case = Case(on, (theirs,), expected, what="the state dict")
        got = student({name: value.contiguous() for name, value in theirs.items()})
        expect_names(got, expected, on, partial(_own, got))
        judge_parts(translation, got, case, expected)


def _own(got: Data, missing: list[str], extra: list[str]) -> Iterator[tuple]:
    masks = (got[name] for name in extra if isinstance(got[name], torch.Tensor))
    yield any(value.dim() == 4 for value in masks), *MASK
    why = "Cut c_attn into the three parts that your layer has: w_q, w_k, w_v."
    yield any("c_attn" in name for name in extra), "c_attn is not cut", why
    why = "Your stack is the submodule blocks: blocks.layers.0.norm_1.gamma."
    lost = bool(extra) and all(f"blocks.{name}" in missing for name in extra)
    yield lost, "the prefix of the blocks is missing", why
    norm = {"blocks.norm.gamma", "blocks.norm.beta"}
    why = f"ln_f is the norm behind the last block: {show(sorted(norm))}."
    yield set(missing) == norm and not extra, "the last norm is left out", why
