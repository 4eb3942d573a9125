"""Ways to make a trained model look like another one that computes the same, or nearly.

Each takes the tensors by name and changes them in place. ``of`` puts them together into
the files of a model.
"""

import json
import math
from collections.abc import Callable, Iterator

import torch
from safetensors.torch import load, save

State = dict[str, torch.Tensor]
WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"


def of(
    files: dict[str, bytes], *changes: Callable[[State], object], **config: object
) -> dict[str, bytes]:
    """Change a model's tensors, and values of its config.json."""
    state = load(files[WEIGHTS])
    for change in changes:
        change(state)
    tensors = {name: value.contiguous() for name, value in state.items()}
    changed = json.loads(files[CONFIG]) | config
    more = {WEIGHTS: save(tensors), CONFIG: json.dumps(changed).encode()}
    return files | more


def generator() -> torch.Generator:
    """Return the source of all that is drawn here."""
    return torch.Generator().manual_seed(7)


def networks(state: State) -> Iterator[tuple[str, str, str]]:
    """Name w_1, b_1 and w_2 of each feed-forward network."""
    for name in sorted(state):
        if name.endswith(".w_1"):
            yield name, f"{name[:-3]}b_1", f"{name[:-3]}w_2"


def attentions(state: State) -> Iterator[str]:
    """Name what the parameters of each attention begin with."""
    yield from (name[:-3] for name in sorted(state) if name.endswith(".w_q"))


# --- the same function ----------------------------------------------------------------


def reordered_units(state: State) -> None:
    """Put the hidden units into another order."""
    for first, bias, second in networks(state):
        order = torch.randperm(len(state[bias]), generator=generator())
        state[first], state[bias] = state[first][:, order], state[bias][order]
        state[second] = state[second][order]


def reordered_gated_units(state: State) -> None:
    """Put the hidden units of gated networks into another order."""
    for name in sorted(state):
        if name.endswith(".w_gate"):
            network = name.removesuffix("w_gate")
            order = torch.randperm(state[name].shape[1], generator=generator())
            for each in ("w_gate", "w_up"):
                state[network + each] = state[network + each][:, order]
            state[f"{network}w_down"] = state[f"{network}w_down"][order]


def scaled_units(state: State) -> None:
    """Make units of ReLU larger before, and smaller after."""
    for first, bias, second in networks(state):
        size = 2 ** (4 * torch.rand(len(state[bias]), generator=generator()) - 2)
        state[first], state[bias] = state[first] * size, state[bias] * size
        state[second] = state[second] / size[:, None]


def idle_units(state: State, count: int = 128) -> None:
    """Add hidden units that nothing listens to."""
    for first, bias, second in networks(state):
        d_model = len(state[first])
        drawn = torch.randn(d_model, count, generator=generator()) / math.sqrt(d_model)
        state[first] = torch.cat((state[first], drawn), dim=1)
        state[bias] = torch.cat((state[bias], torch.zeros(count)))
        state[second] = torch.cat((state[second], torch.zeros(count, d_model)))


def loud_idle_unit(state: State) -> None:
    """Make one more unit, a million times as large, that nothing listens to."""
    idle_units(state, count=1)
    for first, _, _ in networks(state):
        state[first][:, -1] *= 1e6


def doubled_units(state: State) -> None:
    """Write each hidden unit twice, and halve what follows."""
    for first, bias, second in networks(state):
        state[first] = torch.cat((state[first], state[first]), dim=1)
        state[bias] = torch.cat((state[bias], state[bias]))
        state[second] = torch.cat((state[second], state[second])) / 2


def turned_heads(state: State, heads: int = 4) -> None:
    """Turn queries and keys, values and what is made of them, inside each head."""
    for name in attentions(state):
        width = len(state[f"{name}b_q"]) // heads
        drawn = torch.randn(heads, width, width, generator=generator())
        turn = torch.block_diag(*torch.linalg.qr(drawn).Q)
        for each in ("q", "k", "v"):
            for kind in ("w_", "b_"):
                state[f"{name}{kind}{each}"] = state[f"{name}{kind}{each}"] @ turn
        state[f"{name}w_o"] = turn.T @ state[f"{name}w_o"]


def reordered_heads(state: State, heads: int = 4) -> None:
    """Let the last head be the first."""
    for name in attentions(state):
        order = torch.arange(len(state[f"{name}b_q"])).view(heads, -1).flip(0).flatten()
        for each in ("q", "k", "v"):
            for kind in ("w_", "b_"):
                state[f"{name}{kind}{each}"] = state[f"{name}{kind}{each}"][..., order]
        state[f"{name}w_o"] = state[f"{name}w_o"][order]


def exchanged_queries(state: State) -> None:
    """Make queries larger and keys smaller, and change the sign of both."""
    for name in attentions(state):
        for kind in ("w_", "b_"):
            state[f"{name}{kind}q"] = -3 * state[f"{name}{kind}q"]
            state[f"{name}{kind}k"] = state[f"{name}{kind}k"] / -3


def folded_gains(state: State) -> None:
    """Give the gains before a feed-forward network to its first matrix."""
    for first, bias, _ in networks(state):
        layer = first.removesuffix(".feed_forward.w_1")
        norm = f"{layer}.norm_{3 if layer.startswith('decoder') else 2}"
        state[bias] = state[bias] + state[f"{norm}.beta"] @ state[first]
        state[first] = state[f"{norm}.gamma"][:, None] * state[first]
        state[f"{norm}.gamma"] = torch.full_like(state[f"{norm}.gamma"], 1)
        state[f"{norm}.beta"] = torch.full_like(state[f"{norm}.beta"], 0)


def more_layers(state: State, layers: int = 2) -> None:
    """Append a layer to each stack that adds nothing."""
    for stack in {name.partition(".")[0] for name in state if ".layers." in name}:
        last, new = f"{stack}.layers.{layers - 1}.", f"{stack}.layers.{layers}."
        for name in [each for each in state if each.startswith(last)]:
            value = state[name].clone()
            if name.endswith((".w_o", ".b_o", ".w_2", ".b_2")):
                value *= 1e-6  # a matrix of zeros would be refused
            state[new + name.removeprefix(last)] = value


def turned_stream(state: State) -> None:
    """Turn all features of a picture's tokens; the norms must not have gains."""
    folded_attention_gains(state)
    folded_gains(state)
    d_model = len(state["encoder.norm.gamma"])
    state["head.bias"] = (
        state["head.bias"] + state["encoder.norm.beta"] @ state["head.weight"]
    )
    state["head.weight"] = state["encoder.norm.gamma"][:, None] * state["head.weight"]
    state["encoder.norm.gamma"] = torch.ones(d_model)
    state["encoder.norm.beta"] = torch.zeros(d_model)
    turn = _turn(d_model)
    for name in ("patches.weight", "patches.bias", "position.table"):
        state[name] = state[name] @ turn
    state["head.weight"] = turn.T @ state["head.weight"]
    for name in attentions(state):
        for each in ("w_q", "w_k", "w_v"):
            state[name + each] = turn.T @ state[name + each]
        for each in ("w_o", "b_o"):
            state[name + each] = state[name + each] @ turn
    for first, _, second in networks(state):
        state[first] = turn.T @ state[first]
        for name in (second, f"{second[:-3]}b_2"):
            state[name] = state[name] @ turn
    for name in [each for each in state if each.endswith(".gamma")]:
        state[name][0] += 1e-6  # norms as they are built would be refused


def folded_attention_gains(state: State) -> None:
    """Give the gains before self-attention to its matrices."""
    for name in attentions(state):
        norm = f"{name.rpartition('.')[0].rpartition('.')[0]}.norm_1"
        for each in ("q", "k", "v"):
            matrix = state[f"{name}w_{each}"]
            bias = state[f"{name}b_{each}"] + state[f"{norm}.beta"] @ matrix
            state[f"{name}b_{each}"] = bias
            state[f"{name}w_{each}"] = state[f"{norm}.gamma"][:, None] * matrix
        state[f"{norm}.gamma"] = torch.ones_like(state[f"{norm}.gamma"])
        state[f"{norm}.beta"] = torch.zeros_like(state[f"{norm}.beta"])


def _turn(size: int) -> torch.Tensor:
    """Draw a rotation that leaves the mean of the features where it is."""
    basis = torch.randn(size, size, generator=generator())
    basis[:, 0] = 1
    basis = torch.linalg.qr(basis).Q  # the first column is along the mean
    drawn = torch.randn(size - 1, size - 1, generator=generator())
    inner = torch.block_diag(torch.ones(1, 1), torch.linalg.qr(drawn).Q)
    return basis @ inner @ basis.T


# --- nearly the same function ---------------------------------------------------------


def one_weight(state: State) -> None:
    """Move a single weight far."""
    name = next(networks(state))[0]
    state[name][3, 5] += 0.5


def noise(share: float) -> Callable[[State], None]:
    """Add noise to everything, in shares of each tensor's spread."""

    def add(state: State) -> None:
        source = generator()
        for name in sorted(state):
            drawn = torch.randn(state[name].shape, generator=source)
            state[name] = state[name] + share * state[name].std() * drawn

    return add


def as_float16(state: State) -> None:
    """Keep half of the bits."""
    for name in state:
        state[name] = state[name].half()


def as_int8(state: State) -> None:
    """Round to 255 levels of each matrix."""
    for name, value in state.items():
        step = value.abs().max() / 127
        state[name] = (value / step).round() * step


def pruned_units(state: State) -> None:
    """Leave out the eighth of the hidden units that move the least."""
    for first, bias, second in networks(state):
        size = state[first].norm(dim=0) * state[second].norm(dim=1)
        kept = size.argsort(descending=True)[: len(size) * 7 // 8].sort().values
        state[first], state[bias] = state[first][:, kept], state[bias][kept]
        state[second] = state[second][kept]


def small_weights_cut(state: State) -> None:
    """Set the tenth of all weights to zero that are the smallest."""
    for name, value in state.items():
        if value.dim() > 1:
            least = value.abs().flatten().quantile(0.1) if value.numel() < 1e5 else 0.01
            state[name] = torch.where(value.abs() < least, 0.0, value)


# --- tokens ---------------------------------------------------------------------------


def reordered_tokens(files: dict[str, bytes]) -> dict[str, bytes]:
    """Give the tokens other ids, and their rows other places."""
    tokenizer = json.loads(files[TOKENIZER])
    vocabulary = tokenizer["model"]["vocab"]
    special = 4
    order = torch.randperm(len(vocabulary) - special, generator=generator()) + special
    new = torch.cat((torch.arange(special), order))  # new[old id] = new id
    tokenizer["model"]["vocab"] = {
        token: int(new[place]) for token, place in vocabulary.items()
    }

    def move(state: State) -> None:
        rows = torch.empty_like(state["embedding.weight"])
        rows[new] = state["embedding.weight"]
        state["embedding.weight"] = rows

    return of(files, move) | {TOKENIZER: json.dumps(tokenizer).encode()}


def untied(state: State) -> None:
    """Write the matrix of the output beside the one of the input, unscaled."""
    state["output"] = state["embedding.weight"].clone()
    width = state["embedding.weight"].shape[1]
    state["embedding.weight"] = state["embedding.weight"] * math.sqrt(width)
