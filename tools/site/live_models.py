"""Trained models in the form in which a browser runs them: ONNX, served with the site.

    python -m tools.site.live_models

makes runtime.js (ONNX Runtime Web), everyday.js and digits.js (graphs and weights),
everyday_folder.js and tales_folder.js (the files of a model, for look_inside), and says
how large they are. tools/site/figure_data/ puts them on the site; a page loads them
when its reader asks for it.

A page opened from a disk may load a script, and nothing else. So each file is a script
that hands over one text: base64 of gzip of some files put together. It is as small on a
disk as on the way, whatever the server compresses.

The graphs are written down here, in the order in which solutions/transformer computes;
tests/site/test_live_models.py compares them with it.
"""

import base64
import copy
import functools
import gzip
import hashlib
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path

import torch
from onnx import TensorProto, helper
from safetensors.torch import load_file, save

from autograder.files import write_beside
from pages import everyday_lexicon
from tools.site import fetch_runtime
from tools.steps import ROOT
from workbench.data import everyday
from workbench.data.tokenizer import TOKENIZER_FILE, Tokenizer
from workbench.model import models
from workbench.use import results

CACHE = ROOT / "_build" / "live"
WORKER = ROOT / "tools" / "site" / "live_worker.js"
UNPACK = ROOT / "tools" / "site" / "live_unpack.js"  # stands before it
WEIGHTS = "weights"  # the file that the graphs of a model share
OPSET, IR_VERSION = 17, 8  # 17 is the first with LayerNormalization
FLOAT, INTEGER, BYTE = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT8
TYPES = {torch.float32: FLOAT, torch.int8: BYTE}
SCALES = ".scales"  # behind the name of a tensor of bytes


class Weights:
    """The numbers of a model, one after the other, for all of its graphs."""

    def __init__(self, tensors: dict[str, torch.Tensor], small: Iterable[str] = ()):
        """Keep tensors; `small`: those that are kept as bytes, with a scale per row."""
        self.tensors = {}
        for name, tensor in tensors.items():
            tensor = tensor.detach().float()
            if name in small:
                tensor, self.tensors[name + SCALES] = as_bytes(tensor)
            self.tensors[name] = tensor.contiguous()
        self.places: dict[str, tuple[int, int]] = {}
        self.content = b""
        for name, tensor in sorted(self.tensors.items(), key=alignment):
            data = tensor.numpy().tobytes()
            self.places[name] = len(self.content), len(data)
            self.content += data

    def outside(self, name: str) -> TensorProto:
        """Name a tensor, and say where in the file WEIGHTS it is."""
        offset, length = self.places[name]
        tensor = self.tensors[name]
        made = TensorProto(name=name, data_type=TYPES[tensor.dtype], dims=tensor.shape)
        made.data_location = TensorProto.EXTERNAL
        where = {"location": WEIGHTS, "offset": offset, "length": length}
        for key, value in where.items():
            made.external_data.add(key=key, value=str(value))
        return made


def alignment(named: tuple[str, torch.Tensor]) -> bool:
    """Order tensors: bytes come last, so that numbers begin where they may."""
    return named[1].dtype == torch.int8


def as_bytes(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Round a matrix to whole numbers from -127 to 127, and give each row's unit."""
    units = matrix.abs().amax(1, keepdim=True).clamp_min(1e-12) / 127  # (rows, 1)
    return (matrix / units).round().to(torch.int8), units


def rounded(model: torch.nn.Module) -> torch.nn.Module:
    """Give a copy of a model with the weights that a page has of it."""
    made = copy.deepcopy(model)
    for weight in made.state_dict().values():
        if weight.ndim == 2:
            whole, units = as_bytes(weight)
            weight.copy_(whole * units)
    return made


class Graph:
    """A graph in the making: every method adds a node and gives its output's name."""

    def __init__(self, weights: Weights, heads: int):
        self.weights, self.heads = weights, heads
        self.nodes, self.constants, self.opened = [], {}, {}

    def node(self, kind: str, *inputs: str, name: str | None = None, **attributes):
        """Add one operation with one output."""
        output = name or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def weight(self, name: str) -> str:
        """Use one of the model's tensors; bytes are multiplied by their scales."""
        if name in self.opened:
            return self.opened[name]
        self.constants[name] = self.weights.outside(name)
        scales = name + SCALES
        self.opened[name] = name
        if scales in self.weights.tensors:
            self.constants[scales] = self.weights.outside(scales)
            numbers = self.node("Cast", name, to=FLOAT)
            self.opened[name] = self.node("Mul", numbers, scales)
        return self.opened[name]

    def number(self, value: float) -> str:
        """Use a number."""
        return self._constant(FLOAT, (), [value])

    def integers(self, *values: int) -> str:
        """Use a list of integers: a shape, axes, places."""
        return self._constant(TensorProto.INT64, (len(values),), values)

    def _constant(self, kind: int, shape: tuple, values) -> str:
        name = f"constant_{kind}_{'_'.join(map(str, values))}"
        self.constants[name] = helper.make_tensor(name, kind, shape, values)
        return name

    # What solutions/transformer is made of ------------------------------------------

    def affine(self, x: str, weight: str, bias: str) -> str:
        """Compute x W + b."""
        product = self.node("MatMul", x, self.weight(weight))
        return self.node("Add", product, self.weight(bias))

    def norm(self, x: str, name: str) -> str:
        """Compute a LayerNorm."""
        scale, shift = (self.weight(f"{name}.{part}") for part in ("gamma", "beta"))
        return self.node("LayerNormalization", x, scale, shift, epsilon=1e-5)

    def gelu(self, x: str) -> str:
        """Compute x Φ(x)."""
        error = self.node("Erf", self.node("Mul", x, self.number(1 / math.sqrt(2))))
        gate = self.node("Add", error, self.number(1.0))
        return self.node("Mul", self.node("Mul", x, self.number(0.5)), gate)

    def feed_forward(self, x: str, name: str, activation: str) -> str:
        """Expand, activate, contract."""
        hidden = self.affine(x, f"{name}.w_1", f"{name}.b_1")
        active = (
            self.gelu(hidden) if activation == "gelu" else self.node("Relu", hidden)
        )
        return self.affine(active, f"{name}.w_2", f"{name}.b_2")

    def project(self, x: str, name: str, which: str) -> str:
        """Project tokens (T, d) to queries, keys or values (heads, T, d_k)."""
        projected = self.affine(x, f"{name}.w_{which}", f"{name}.b_{which}")
        split = self.node("Reshape", projected, self.integers(0, self.heads, -1))
        return self.node("Transpose", split, perm=[1, 0, 2])

    def attend(self, q: str, k: str, v: str, name: str) -> tuple[str, str]:
        """Attend to everything: output (T_q, d), weights (heads, T_q, T_k)."""
        d_model = self.weights.tensors[f"{name}.w_o"].shape[0]
        scores = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 2, 1]))
        scale = self.number(math.sqrt(self.heads / d_model))
        scaled = self.node("Mul", scores, scale)
        weights = self.node("Softmax", scaled, axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", weights, v), perm=[1, 0, 2])
        merged = self.node("Reshape", mixed, self.integers(-1, d_model))
        return self.affine(merged, f"{name}.w_o", f"{name}.b_o"), weights

    def encoder(self, x: str, layers: int, activation: str):
        """Run a pre-norm encoder: its output, and the weights of each layer."""
        maps = []
        for number in range(layers):
            layer = f"encoder.layers.{number}"
            within, normed = f"{layer}.attention", self.norm(x, f"{layer}.norm_1")
            q, k, v = (self.project(normed, within, which) for which in "qkv")
            attended, weights = self.attend(q, k, v, within)
            maps.append(weights)
            x = self.node("Add", x, attended)
            thought = self.feed_forward(
                self.norm(x, f"{layer}.norm_2"), f"{layer}.feed_forward", activation
            )
            x = self.node("Add", x, thought)
        return self.norm(x, "encoder.norm"), maps

    def stack(self, maps: list[str], name: str) -> None:
        """Give an output with an axis for the layers in front."""
        front = self.integers(0)
        apart = [self.node("Unsqueeze", each, front) for each in maps]
        self.node("Concat", *apart, name=name, axis=0)

    def model(self, inputs: dict, outputs: dict) -> bytes:
        """Write it down; inputs and outputs are name -> (type, shape)."""
        ends = [
            [
                helper.make_tensor_value_info(name, *value)
                for name, value in side.items()
            ]
            for side in (inputs, outputs)
        ]
        graph = helper.make_graph(
            self.nodes, "model", *ends, initializer=list(self.constants.values())
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="course",
        )
        return model.SerializeToString(deterministic=True)


# --- the translator -------------------------------------------------------------------


def translator(
    model: torch.nn.Module, config: models.TranslatorConfig, small: bool = False
) -> dict:
    """Make the two graphs of a translator, and their weights: name -> content.

    `small`: with the weights of `rounded`, a quarter as long.
    """
    if not (config.norm_first and config.tied and config.scaled):
        raise ValueError("only pre-norm, tied, scaled translators are written so far")
    tensors = dict(model.state_dict())
    tensors["positions"] = model.position(
        torch.zeros(config.max_length, config.d_model)
    )
    matrices = [name for name, each in model.state_dict().items() if each.ndim == 2]
    weights = Weights(tensors, matrices if small else ())
    return {
        "encoder": reader(weights, config),
        "decoder": writer(weights, config),
        WEIGHTS: weights.content,
    }


def embedded(graph: Graph, ids: str, positions: str, d_model: int) -> str:
    """Look up ids and add their positions."""
    rows = graph.node("Gather", graph.weight("embedding.weight"), ids)
    scaled = graph.node("Mul", rows, graph.number(math.sqrt(d_model)))
    return graph.node("Add", scaled, positions)


def reader(weights: Weights, config: models.TranslatorConfig) -> bytes:
    """Make the encoder: ids (S,) -> keys and values of the source for every layer."""
    graph = Graph(weights, config.heads)
    end = graph.node("Shape", "ids")
    table = graph.weight("positions")
    places = graph.node("Slice", table, graph.integers(0), end, graph.integers(0))
    x = embedded(graph, "ids", places, config.d_model)
    memory, _ = graph.encoder(x, config.layers, config.activation)
    outputs = {}
    for number in range(config.layers):
        across = f"decoder.layers.{number}.cross_attention"
        for which in "kv":
            made = graph.project(memory, across, which)
            name = f"across_{which}_{number}"
            graph.node("Identity", made, name=name)
            outputs[name] = FLOAT, (config.heads, "S", config.d_model // config.heads)
    return graph.model({"ids": (INTEGER, ("S",))}, outputs)


def writer(weights: Weights, config: models.TranslatorConfig) -> bytes:
    """Make one step of the decoder, with a cache.

    In: id and place (1,), what the encoder has made, and keys and values of the t
    tokens before. Out: logits (V,), the weights of the cross-attention (layers, heads,
    S), and the cache with one token more, next_….
    """
    heads, width = config.heads, config.d_model // config.heads
    graph = Graph(weights, heads)
    inputs = {"id": (INTEGER, (1,)), "place": (INTEGER, (1,))}
    outputs = {
        "logits": (FLOAT, (config.vocab_size,)),
        "attention": (FLOAT, (config.layers, heads, "S")),
    }
    row = graph.node("Gather", graph.weight("positions"), "place")
    x, maps = embedded(graph, "id", row, config.d_model), []
    for number in range(config.layers):
        layer = f"decoder.layers.{number}"
        # 1. Look back
        within, normed = f"{layer}.self_attention", graph.norm(x, f"{layer}.norm_1")
        for which in "kv":
            name = f"back_{which}_{number}"
            newest = graph.project(normed, within, which)
            graph.node("Concat", name, newest, name=f"next_{name}", axis=1)
            inputs[name] = FLOAT, (heads, "t", width)
            outputs[f"next_{name}"] = FLOAT, (heads, "t_next", width)
        seen, _ = graph.attend(
            graph.project(normed, within, "q"),
            f"next_back_k_{number}",
            f"next_back_v_{number}",
            within,
        )
        x = graph.node("Add", x, seen)
        # 2. Look across
        across, normed = f"{layer}.cross_attention", graph.norm(x, f"{layer}.norm_2")
        q = graph.project(normed, across, "q")
        names = [f"across_{which}_{number}" for which in "kv"]
        inputs |= dict.fromkeys(names, (FLOAT, (heads, "S", width)))
        read, looked = graph.attend(q, *names, across)
        maps.append(graph.node("Squeeze", looked, graph.integers(1)))
        x = graph.node("Add", x, read)
        # 3. Think
        normed = graph.norm(x, f"{layer}.norm_3")
        name = f"{layer}.feed_forward"
        thought = graph.feed_forward(normed, name, config.activation)
        x = graph.node("Add", x, thought)
    graph.stack(maps, "attention")
    hidden = graph.node("Squeeze", graph.norm(x, "decoder.norm"), graph.integers(0))
    graph.node("MatMul", graph.weight("embedding.weight"), hidden, name="logits")
    return graph.model(inputs, outputs)


# --- the Vision Transformer -----------------------------------------------------------


def vision(model: torch.nn.Module, config: models.VisionConfig) -> dict:
    """Make the graph of a Vision Transformer: name -> content.

    In: an image (channels, height, width), normalised, and the numbers of the patches
    that it may see. Out: logits (classes,), attention (layers, heads, T, T).
    """
    if config.pooling != "mean":
        raise ValueError("only a Vision Transformer that pools is written so far")
    weights = Weights(dict(model.state_dict()))
    graph, p, c = Graph(weights, config.heads), config.patch_size, config.channels
    rows, columns = (side // p for side in config.sides)
    split = graph.node("Reshape", "image", graph.integers(c, rows, p, columns, p))
    ordered = graph.node("Transpose", split, perm=[1, 3, 2, 4, 0])
    flat = graph.node("Reshape", ordered, graph.integers(rows * columns, p * p * c))
    tokens = graph.affine(flat, "patches.weight", "patches.bias")
    placed = graph.node("Add", tokens, graph.weight("position.table"))
    seen = graph.node("Gather", placed, "patches", axis=0)
    hidden, maps = graph.encoder(seen, config.layers, "gelu")
    graph.stack(maps, "attention")
    mean = graph.node("ReduceMean", hidden, axes=[0], keepdims=0)
    product = graph.node("MatMul", mean, graph.weight("head.weight"))
    graph.node("Add", product, graph.weight("head.bias"), name="logits")
    attention = (config.layers, config.heads, "T", "T")
    made = graph.model(
        {"image": (FLOAT, (c, *config.sides)), "patches": (INTEGER, ("T",))},
        {"logits": (FLOAT, (config.classes,)), "attention": (FLOAT, attention)},
    )
    return {"vision": made, WEIGHTS: weights.content}


# --- files ----------------------------------------------------------------------------


def runtime() -> dict[str, bytes]:
    """Give the files of the library."""
    names = dict(zip(("library", "glue", "wasm"), fetch_runtime.FILES, strict=True))
    files = {key: fetch_runtime.unpacked(name) for key, name in names.items()}
    # a browser's tools would look for the map, which nobody needs
    files["library"] = files["library"].split(b"\n//# sourceMappingURL=")[0]
    return files


@functools.cache  # two scripts have them, and the corpus takes a while
def everyday_rules() -> dict:
    """Give what the page knows of sentences: see ``pages.everyday_lexicon``."""
    train = everyday.generate().train
    known = everyday.english_words(train)
    always = everyday_lexicon.always_capital()
    written = {word for each in always for word in re.findall(r"\w+", each)}
    words = known - {word.lower() for word in written} | written
    entries = [[sorted(side) for side in each] for each in everyday_lexicon.entries()]
    said = set(everyday.SAYINGS)  # these are known as wholes
    threes = everyday_lexicon.threes(pair for pair in train if pair not in said)
    return {
        "words": sorted(words | {word for word in always if "'" in word}),
        "numbers": everyday_lexicon.digits(),
        "classes": everyday_lexicon.classes(),
        "threes": sorted("\t".join(three) for three in threes),
        "entries": entries,
        "helping": sorted(everyday_lexicon.HELPING),
        "giving": everyday_lexicon.giving(),
        "unsaid": everyday_lexicon.unsaid(),
        "sayings": [english for english, _ in everyday.SAYINGS],
        "groups": everyday_lexicon.groups(),
    }


def everyday_translator() -> dict[str, bytes]:
    """Give the files of the translator, with its tokenizer and the sizes to run it."""
    folder = results.model_folder("everyday")
    model, config = models.load(folder)
    learned = json.loads((folder / TOKENIZER_FILE).read_text("utf-8"))["model"]
    vocabulary = sorted(learned["vocab"], key=learned["vocab"].get)
    about = {
        "layers": config.layers,
        "heads": config.heads,
        "width": config.d_model // config.heads,
        "longest": config.max_length,
        "start": Tokenizer.SOS,
        "end": Tokenizer.EOS,
        "never": [Tokenizer.PAD, Tokenizer.SOS],
        "vocabulary": vocabulary,
        "merges": learned["merges"],
    }
    text = json.dumps(about | everyday_rules())
    return translator(model, config, small=True) | {"about": text.encode()}


def digits() -> dict[str, bytes]:
    """Give the files of the Vision Transformer."""
    return vision(*models.load(results.model_folder("digits")))


def everyday_folder() -> dict[str, bytes]:
    """Give the translator's own files, and what the page knows of sentences."""
    rules = json.dumps(everyday_rules()).encode()
    return folder_of("everyday") | {"rules.json": rules}


def folder_of(name: str) -> dict[str, bytes]:
    """Give a recorded model's own files, its matrices as bytes with a unit per row.

    book/_static/live/model.js reads them as it reads a folder of its reader's.
    """
    folder = results.model_folder(name)
    state = load_file(folder / models.WEIGHTS_FILE)
    small = Weights(state, [key for key, each in state.items() if each.ndim == 2])
    texts = {file: folder / file for file in (models.CONFIG_FILE, TOKENIZER_FILE)}
    return {
        **{file: path.read_bytes() for file, path in texts.items()},
        models.WEIGHTS_FILE: save(small.tensors),
    }


MADE = {
    "runtime": runtime,
    "everyday": everyday_translator,
    "digits": digits,
    "everyday_folder": everyday_folder,
    "tales_folder": functools.partial(folder_of, "tales"),
}


def together(files: dict[str, bytes]) -> bytes:
    """Put files into one: a length, their names and lengths as JSON, their contents."""
    names = json.dumps({name: len(content) for name, content in files.items()}).encode()
    return len(names).to_bytes(4, "little") + names + b"".join(files.values())


def as_text(files: dict[str, bytes]) -> str:
    """Put files into one text: base64 of gzip."""
    return base64.b64encode(gzip.compress(together(files), 9, mtime=0)).decode()


def worker(script: Path) -> str:
    """Give a worker's text, with what unpacks files before it."""
    return UNPACK.read_text("utf-8") + script.read_text("utf-8")


@functools.cache
def script(name: str) -> bytes:
    """Give the script of the runtime or of a model; it is made once, and kept."""
    sources = [
        Path(__file__),
        UNPACK,
        WORKER,
        fetch_runtime.SUMS,
        ROOT / "constraints.txt",
    ]
    sources += sorted((ROOT / "results" / "models").glob("*/*"))
    sources += sorted((ROOT / "solutions" / "transformer").glob("*.py"))
    sources += sorted((ROOT / "workbench" / "data").glob("everyday*.py"))
    sources.append(ROOT / "workbench" / "data" / "phrasebook.py")
    sources.append(ROOT / "pages" / "everyday_lexicon.py")
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources))
    kept = CACHE / f"{name}.js"
    mark = f"// made from {digest.hexdigest()}\n".encode()
    if kept.is_file() and (found := kept.read_bytes()).startswith(mark):
        return found
    given = [name, as_text(MADE[name]())]
    if name == "runtime":
        given.append(worker(WORKER))
    content = mark + f"Live.receive({json.dumps(given)[1:-1]});\n".encode()
    write_beside(kept, content, shared=True)
    return content


def facts(name: str) -> dict:
    """Say where a script is, how large it is, also compressed, and which version."""
    return facts_of(name, script(name))


def facts_of(name: str, content: bytes) -> dict:
    """Say of a script what a page has to know before it loads it."""
    return {
        "name": name,
        "length": len(content),
        "bytes": len(gzip.compress(content, 9, mtime=0)),
        "version": hashlib.sha256(content).hexdigest()[:12],
    }


def files(names: Iterable[str]) -> dict[str, bytes]:
    """Give scripts, and whose the library is: path below _static/ -> content."""
    scripts = {f"live/{name}.js": script(name) for name in names}
    if "runtime" not in names:
        return scripts
    licence = (fetch_runtime.FOLDER / fetch_runtime.LICENCE).read_bytes()
    notices = fetch_runtime.unpacked(fetch_runtime.NOTICES)
    heading = f"ONNX Runtime Web {fetch_runtime.VERSION}\n\n".encode()
    return scripts | {"live/onnxruntime.txt": heading + licence + b"\n\n" + notices}


def main() -> None:
    """Make all scripts, and say how large they are."""
    for name in MADE:
        print(f"{name:12} {facts(name)['bytes']:>10,} bytes compressed")


if __name__ == "__main__":
    main()
