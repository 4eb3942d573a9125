"""The model: a configuration, the parts that it is built of, and its files.

Everything in a model is made of the functions and classes that the exercises ask for,
the reference's or a student's own. What can be exchanged, by ``use_fast``, is
how the same numbers are computed. A trained model is a folder with two files, which are
data and never code: ``model.safetensors`` and ``config.json``.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from autograder.files import replacing, write_beside
from workbench.errors import WorkbenchError
from workbench.model import variants
from workbench.model.attention import fused_attention
from workbench.model.baseline import GROUPS, ConvNet
from workbench.model.kernels import use_kernels

PACKAGE = "transformer"
MODULES = (
    "embeddings",
    "class_token",
    "positional_encoding",
    "attention",
    "multi_head_attention",
    "encoder",
    "decoder",
    "vision_transformer",
    "language_model",
)
WEIGHTS_FILE, CONFIG_FILE = "model.safetensors", "config.json"

# So that a file from somebody else cannot make the computer build for hours, or fill
# its memory, before anything is compared with the weights.
LARGEST = {"layers": 256, "max_length": 100_000, "stages": 12, "width": 4096}
LARGEST_NUMBER = 10_000_000

# the choices of a language model's blocks; the first was made in 2017
NORMS = ("layer", "rms")
FEED_FORWARDS = ("relu", "gelu", "swiglu")
POSITIONS = ("learned", "rotary")


# --- configurations -------------------------------------------------------------------


@dataclass(frozen=True)
class TranslatorConfig:
    """The shape of a translator, and which language it translates to which."""

    vocab_size: int
    d_model: int = 128
    heads: int = 4
    layers: int = 4
    d_ff: int = 256
    max_length: int = 128
    dropout: float = 0.3
    norm_first: bool = True
    activation: str = "relu"
    source: str = "en"
    target: str = "de"
    tied: bool = True  # False: see workbench.model.variants
    scaled: bool = True

    def __post_init__(self) -> None:
        _check_values(self)
        _choose(self, "activation", ("relu", "gelu"))
        if self.d_model % 2:
            raise WorkbenchError(f"d_model: {self.d_model} is odd, choose an even one")


@dataclass(frozen=True)
class VisionConfig:
    """The shape of a Vision Transformer; image_size is a side or (height, width)."""

    image_size: int | tuple[int, int]
    patch_size: int
    channels: int
    classes: int
    d_model: int
    heads: int
    layers: int
    d_ff: int
    dropout: float = 0.0
    pooling: str = "class"

    def __post_init__(self) -> None:
        if isinstance(self.image_size, list):  # JSON has no tuples
            object.__setattr__(self, "image_size", tuple(self.image_size))
        _check_values(self)
        _choose(self, "pooling", ("class", "mean"))
        for side in self.sides:
            if side % self.patch_size:
                raise WorkbenchError(
                    f"patch_size: {self.patch_size} pixels do not divide image_size "
                    f"{self.image_size}; choose a divisor"
                )

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width of the images, in pixels."""
        size = self.image_size
        return (size, size) if isinstance(size, int) else size


@dataclass(frozen=True)
class BaselineConfig:
    """The shape of the convolutional network that a Vision Transformer is set beside.

    Its image_size is a side or (height, width).
    """

    image_size: int | tuple[int, int]
    channels: int
    classes: int
    width: int
    stages: int
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.image_size, list):  # JSON has no tuples
            object.__setattr__(self, "image_size", tuple(self.image_size))
        _check_values(self)
        if self.width % GROUPS:
            raise WorkbenchError(f"width: {self.width} is no multiple of {GROUPS}")
        if min(self.sides) < 2 ** (self.stages - 1):
            raise WorkbenchError(
                f"stages: image_size {self.image_size} cannot be halved "
                f"{self.stages - 1} times; choose fewer stages"
            )

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width of the images, in pixels."""
        size = self.image_size
        return (size, size) if isinstance(size, int) else size


@dataclass(frozen=True)
class LanguageModelConfig:
    """The shape of a language model, and the choices that its blocks are made by."""

    vocab_size: int
    d_model: int = 128
    heads: int = 4
    kv_heads: int = 4
    layers: int = 4
    d_ff: int = 352
    max_length: int = 256
    dropout: float = 0.0
    norm: str = "rms"
    feed_forward: str = "swiglu"
    positions: str = "rotary"
    qk_norm: bool = True
    tokenizer: str = "unknown"  # the checksum of the one it was trained with

    def __post_init__(self) -> None:
        _check_values(self)
        _choose(self, "norm", NORMS)
        _choose(self, "feed_forward", FEED_FORWARDS)
        _choose(self, "positions", POSITIONS)
        if self.heads % self.kv_heads:
            raise WorkbenchError(
                f"kv_heads: {self.kv_heads} do not divide the {self.heads} heads"
            )
        if self.positions == "rotary" and self.d_model // self.heads % 2:
            raise WorkbenchError(
                f"heads: each has {self.d_model // self.heads} features, and rotary "
                "positions need an even number"
            )


Config = TranslatorConfig | VisionConfig | BaselineConfig | LanguageModelConfig
KINDS: dict[str, type] = {
    "translator": TranslatorConfig,
    "vit": VisionConfig,
    "cnn": BaselineConfig,
    "lm": LanguageModelConfig,
}


def kind_of(config: Config) -> str:
    """The name that the command line has for such a model."""
    return next(name for name, each in KINDS.items() if type(config) is each)


def to_json(config: Config) -> str:
    """Write a configuration down, with its kind."""
    return json.dumps({"kind": kind_of(config), **asdict(config)}, indent=2) + "\n"


def from_json(text: str, name: str = CONFIG_FILE) -> Config:
    """Read a configuration.

    Args:
        text: what to_json wrote.
        name: of the file, for messages.

    Raises:
        WorkbenchError: not JSON; an unknown kind; a key that is unknown, missing, of
            another type or out of range.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WorkbenchError(
            f"{name}: is not JSON ({error}); it was cut short or edited, take a copy "
            "of the original"
        ) from None
    if not isinstance(values, dict) or values.get("kind") not in tuple(KINDS):
        found = values.get("kind") if isinstance(values, dict) else values
        raise WorkbenchError(
            f"{name}: kind is {found!r}, and must be one of {', '.join(KINDS)}"
        )
    wanted = KINDS[values.pop("kind")]
    names = {each.name for each in fields(wanted)}
    for problem, keys in (
        ("has no key", names - set(values)),
        ("has an unknown key", set(values) - names),
    ):
        if keys:
            raise WorkbenchError(f"{name}: {problem} {', '.join(sorted(keys))}")
    try:
        return wanted(**values)
    except WorkbenchError as error:
        raise WorkbenchError(f"{name}: {error}") from None


def _check_values(config: Config) -> None:
    """Refuse values of another type, or out of range, by the name of their key."""
    for each in fields(config):
        value, kind = getattr(config, each.name), str(each.type)
        if kind == "float" and type(value) is int:
            value = float(value)
            object.__setattr__(config, each.name, value)
        good = {
            "int": lambda v: type(v) is int,
            "float": lambda v: type(v) is float and 0 <= v < 1,
            "bool": lambda v: type(v) is bool,
            "str": lambda v: type(v) is str and v != "",
        }.get(kind, _is_size)
        if not good(value):
            expected = {"float": "a number from 0 to below 1", "int": "a whole number"}
            expected |= {"bool": "true or false", "str": "a text"}
            what = expected.get(kind, "a whole number or two of them")
            raise WorkbenchError(f"{each.name} must be {what}, not {value!r}")
        largest = LARGEST.get(each.name, LARGEST_NUMBER)
        numbers = value if type(value) is tuple else (value,)
        for number in numbers:
            if type(number) is int and not 1 <= number <= largest:
                raise WorkbenchError(
                    f"{each.name} must be from 1 to {largest}, not {number}"
                )
    if not isinstance(config, BaselineConfig) and config.d_model % config.heads:
        raise WorkbenchError(
            f"heads: {config.heads} do not divide d_model {config.d_model}"
        )


def _is_size(value: Any) -> bool:
    pair = type(value) is tuple and len(value) == 2
    return all(type(each) is int for each in (value if pair else (value,)))


def _choose(config: Config, name: str, choices: tuple[str, ...]) -> None:
    if getattr(config, name) not in choices:
        found = getattr(config, name)
        raise WorkbenchError(f"{name} must be {' or '.join(choices)}, not {found!r}")


# --- the parts ------------------------------------------------------------------------


@dataclass
class Parts:
    """What the exercises ask for: the modules of a transformer/ and what they define.

    ``parts.decoder`` is a module, ``parts.Transformer`` a class in one of them; both
    raise WorkbenchError if they are not there.
    """

    place: str
    modules: dict[str, ModuleType]
    failures: dict[str, str] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked for by copy, pickle and others
            raise AttributeError(name)
        if name in self.modules:
            return self.modules[name]
        for module in self.modules.values():
            found = vars(module).get(name)
            if str(getattr(found, "__module__", "")).startswith(f"{PACKAGE}."):
                return found
        reasons = [f"{module}.py {why}" for module, why in self.failures.items()]
        raise WorkbenchError(
            f"{self.place}: there is no {name}"
            + (f" ({'; '.join(reasons)})" if reasons else "")
            + "; complete its exercise and assemble again, or add --fill"
        )


def load_parts(path: Path | None = None) -> Parts:
    """Import the modules that a model is built of.

    Args:
        path: a folder that holds a transformer/ (as ``assemble`` makes it), or such a
            folder itself. None: the one that is installed with the course.

    Returns:
        The modules. Two different sets can be in use at the same time.

    Raises:
        WorkbenchError: no transformer/ is there.
    """
    if path is None:
        return _import_reference()
    path = Path(path)
    folder = path if path.name == PACKAGE else path / PACKAGE
    if not any((folder / f"{name}.py").is_file() for name in MODULES):
        raise WorkbenchError(
            f"{path}: holds no {PACKAGE}/ with the modules of the course; make it with "
            f"python -m workbench assemble NOTEBOOKS -o {path}"
        )
    with _alone_under_the_name(folder.resolve().parent):
        modules, failures = _import_modules(folder)
    _rename(modules, folder)
    return Parts(str(folder), modules, failures)


def _import_reference() -> Parts:
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise WorkbenchError(
            f"the reference {PACKAGE}/ is not installed here; name your own with "
            "--parts DIR (python -m workbench assemble makes it)"
        )
    folder = Path(found.submodule_search_locations[0])
    return Parts(str(folder), *_import_modules(folder))


def _import_modules(folder: Path) -> tuple[dict[str, ModuleType], dict[str, str]]:
    """Import every module that can be; say of the others why not."""
    modules, failures = {}, {}
    for name in MODULES:
        if not (folder / f"{name}.py").is_file():
            failures[name] = "is missing"
            continue
        try:
            modules[name] = importlib.import_module(f"{PACKAGE}.{name}")
        except Exception as error:  # it is somebody's own code: anything can happen
            failures[name] = f"cannot be imported: {type(error).__name__}: {error}"
    return modules, failures


@contextlib.contextmanager
def _alone_under_the_name(parent: Path) -> Iterator[None]:
    """Let ``import transformer`` find the one in this folder, inside the block only."""
    before = _take_out()
    sys.path.insert(0, str(parent))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(parent))
        _take_out()
        sys.modules.update(before)


def _take_out() -> dict[str, ModuleType]:
    """Remove the package and its modules from the imported ones, and return them."""
    names = [each for each in sys.modules if each.split(".")[0] == PACKAGE]
    return {name: sys.modules.pop(name) for name in names}


def _rename(modules: dict[str, ModuleType], folder: Path) -> None:
    """Give the modules a name of their own.

    torch.compile looks a function's globals up by the name of its module; under the
    common name it would find those of the reference.
    """
    digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
    for name, module in modules.items():
        module.__name__ = f"{PACKAGE}_{digest}.{name}"
        sys.modules[module.__name__] = module


# --- the model ------------------------------------------------------------------------


def build(config: Config, parts: Parts | None = None) -> Any:
    """Build a model with new parameters, from torch's global random generator.

    Args:
        config: its shape.
        parts: what it is made of; None: the reference. The baseline needs none.

    Returns:
        An nn.Module. It has what somebody's parts have given it, and no type says that.
    """
    values = {each.name: getattr(config, each.name) for each in fields(config)}
    if isinstance(config, BaselineConfig):
        del values["image_size"]  # it takes images of every size
        return ConvNet(**values)
    parts = load_parts() if parts is None else parts
    if isinstance(config, VisionConfig):
        return parts.VisionTransformer(**values)
    if isinstance(config, LanguageModelConfig):
        # not on top: what a grade of chapter 9 or 10 needs does not go with it
        from workbench.model.language_model import LanguageModel

        return LanguageModel(config, parts)
    for name in ("source", "target", "tied", "scaled"):
        del values[name]
    model = parts.Transformer(**values)
    if not config.tied:
        variants.untie(model, parts)
    return model if config.scaled else variants.unscale(model)


def unwrap(model: nn.Module) -> nn.Module:
    """The model inside what torch.compile or DistributedDataParallel made of it."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and isinstance(model, nn.parallel.DistributedDataParallel):
            inner = model.module
        if inner is None:
            return model
        model = inner


def parameters(model: nn.Module) -> int:
    """How many numbers are trained; a shared parameter counts once."""
    return sum(each.numel() for each in model.parameters())


def parameters_of(config: Config, parts: Parts | None = None) -> int:
    """How many a model of this shape would have, without memory for it."""
    return parameters(_outline(config, parts))


def _outline(config: Config, parts: Parts | None) -> nn.Module:
    with torch.device("meta"):
        return build(config, parts)


# --- attention ------------------------------------------------------------------------


@contextlib.contextmanager
def use_attention(kind: str, parts: Parts | None = None) -> Iterator[None]:
    """Compute the attention of all models of these parts in this way, in the block.

    Args:
        kind: "written", the function of chapter 4 as it is written, or "fused",
            PyTorch's one kernel for all of it: the same numbers, but no weights.
        parts: None: the reference.

    Raises:
        WorkbenchError: if the kind is another word.
    """
    if kind not in ("written", "fused"):
        raise WorkbenchError(f"attention must be 'written' or 'fused', not {kind!r}")
    parts = load_parts() if parts is None else parts
    module = parts.multi_head_attention
    before = module.scaled_dot_product_attention
    written = parts.attention.scaled_dot_product_attention
    module.scaled_dot_product_attention = (
        fused_attention if kind == "fused" else written
    )
    try:
        yield
    finally:
        module.scaled_dot_product_attention = before


@contextlib.contextmanager
def use_fast(kind: str, model: nn.Module, parts: Parts) -> Iterator[None]:
    """Compute a model as it is written, or with PyTorch's kernels, in the block.

    Args:
        kind: see ``use_attention``; "fused" also means what ``use_kernels`` replaces.
        model: made of the parts.
        parts: whose.
    """
    rest = use_kernels(model, parts) if kind == "fused" else contextlib.nullcontext()
    with use_attention(kind, parts), rest:
        yield


@contextlib.contextmanager
def use_hidden(parts: Parts) -> Iterator[None]:
    """Let translators of these parts return hidden states, not logits, in the block.

    For a loss that makes the logits itself, a few at a time: ``tied_loss``.
    """
    before = parts.decoder.tied_logits
    parts.decoder.tied_logits = lambda hidden, table: hidden
    try:
        yield
    finally:
        parts.decoder.tied_logits = before


@contextlib.contextmanager
def use_masks(device: torch.device, parts: Parts | None = None) -> Iterator[None]:
    """Make the causal masks of all models of these parts on a device, in the block.

    As it is written, the mask is made on the CPU and then copied at every step, for
    which a GPU is waited for, and which cannot be part of a graph.

    Args:
        device: of the model.
        parts: None: the reference.
    """
    module = (load_parts() if parts is None else parts).decoder
    before = module.causal_mask

    def causal_mask(length: int) -> torch.Tensor:
        return torch.ones(length, length, dtype=torch.bool, device=device).tril()

    module.causal_mask = causal_mask
    try:
        yield
    finally:
        module.causal_mask = before


# --- files ----------------------------------------------------------------------------


def save(
    folder: Path,
    model: nn.Module,
    config: Config,
    extra_files: Mapping[str, str | bytes] | None = None,
) -> None:
    """Write model.safetensors and config.json, and further files, into a folder.

    Args:
        folder: made if it is not there.
        model: also compiled or distributed.
        config: what it was built from.
        extra_files: name -> content, for instance of the tokenizer.
    """
    folder = Path(folder)
    state = unwrap(model).state_dict()
    tensors = {name: value.detach().cpu().contiguous() for name, value in state.items()}
    with replacing(folder / WEIGHTS_FILE) as beside:
        save_file(tensors, beside, metadata={"format": "pt"})
    for name, content in {CONFIG_FILE: to_json(config), **(extra_files or {})}.items():
        write_beside(folder / name, content, lasting=True)


def load(folder: Path, parts: Parts | None = None) -> tuple[Any, Config]:
    """Build the model that was saved in a folder, in evaluation mode, on the CPU.

    Raises:
        WorkbenchError: a file is missing, cut short, or does not fit.
    """
    folder = Path(folder)
    config = load_config(folder)
    expected = _outline(config, parts).state_dict()
    tensors = _read_weights(folder / WEIGHTS_FILE, expected)
    with torch.random.fork_rng(devices=[]):  # new parameters, replaced at once
        model = build(config, parts)
    model.load_state_dict(tensors)
    return model.eval(), config


def load_config(folder: Path) -> Config:
    """Read only the configuration of a saved model."""
    path = Path(folder) / CONFIG_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WorkbenchError(
            f"{path}: cannot be read ({error}); name the folder that "
            "python -m workbench train wrote"
        ) from None
    return from_json(text, str(path))


def _read_weights(
    path: Path, expected: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Read the tensors, after their names, shapes and types were found to fit."""
    if not path.is_file():
        raise WorkbenchError(f"{path}: there is no such file; train the model first")
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            _compare(path, file, expected)
            tensors = {name: file.get_tensor(name) for name in expected}
    except (SafetensorError, OSError, ValueError) as error:
        raise WorkbenchError(
            f"{path}: is not a whole safetensors file ({error}); it was cut short, or "
            "is of another format: copy it again, or save the model again"
        ) from None
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise WorkbenchError(f"{path}: {name} holds NaN or infinity; train again")
    return tensors


def _compare(path: Path, file: Any, expected: Mapping[str, torch.Tensor]) -> None:
    found = set(file.keys())
    for problem, names in (
        ("lacks", set(expected) - found),
        ("has, unknown to the model,", found - set(expected)),
    ):
        if names:
            first = ", ".join(sorted(names)[:3])
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise WorkbenchError(
                f"{path}: {problem} {first}{more}; {CONFIG_FILE} or the parts are of "
                "another model"
            )
    for name, outline in expected.items():
        part = file.get_slice(name)
        shape, wanted = tuple(part.get_shape()), tuple(outline.shape)
        if shape != wanted:
            raise WorkbenchError(
                f"{path}: {name} has the shape {shape}, and {CONFIG_FILE} asks for "
                f"{wanted}"
            )
        if part.get_dtype() not in ("F16", "BF16", "F32", "F64"):
            raise WorkbenchError(f"{path}: {name} holds {part.get_dtype()}, no weights")
