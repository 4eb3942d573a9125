"""Every way that we know to what an exercise forbids, public and private.

``autograder.forbidden`` refuses while a notebook runs; here is what the same names
stand for in a text. An entry is the last part of a dotted name, or several parts, as
in ``nn.Transformer``; ``*`` stands for any letters. Whatever a library has under such
a name is taken for it, wherever the library keeps it: torch.softmax and
scipy.special.softmax end in ``softmax``, torch.ops.aten.softmax.int leads through it.
"""

import builtins
import functools
import importlib.util
import re
import sys
from collections.abc import Iterable

import torch

from autograder.forbidden import (
    DECODER_LAYER,
    ENCODER_LAYER,
    GELU,
    LAYER_NORM,
    MULTI_HEAD,
    RMS_NORM,
    SCALED_DOT_PRODUCT,
    SOFTMAX,
    TRANSFORMER,
)

_WHOLE = ("nn.Transformer", "modules.Transformer", "transformer.Transformer")
_ENCODERS = ("TransformerEncoderLayer", "TransformerEncoder")
_DECODERS = ("TransformerDecoderLayer", "TransformerDecoder")
_ENCODERS_BELOW = ("_transformer_encoder_layer_fwd",)
_HEADS = (
    "MultiheadAttention",
    "multi_head_attention_forward",
    "_native_multi_head_attention",
    "_triton_multi_head_attention",
)
_ATTENTION = (
    "scaled_dot_product_attention",
    "_scaled_dot_product_*",
    "_fa?_scaled_dot_product_*",
    "scaled_dot_product_flash_attention_for_cpu",
    "_triton_scaled_dot_attention",
    "_flash_attention_forward*",
    "_fa?_flash_attention_*",
    "_efficient_attention_forward",
    "_cudnn_attention_forward",
    "flex_attention",
    "flex_attention_hop",
    "math_attention",
    "_math_attention_inner",
    "varlen_attn",
    "varlen_attn_out",
)

WAYS: dict[str, tuple[str, ...]] = {
    SOFTMAX: (
        *("softmax", "_softmax", "special_softmax", "Softmax", "Softmax2d"),
        *("log_softmax", "_log_softmax", "special_log_softmax", "LogSoftmax"),
        *("softmin", "Softmin", "gumbel_softmax", "AdaptiveLogSoftmaxWithLoss"),
        *("_safe_softmax", "safe_softmax", "_masked_softmax"),
        *("_sparse_softmax", "_sparse_log_softmax"),
        *("_nested_tensor_softmax_with_shape", "prepare_softmax_online"),
        *("_softmax_backward_data", "_log_softmax_backward_data"),
        *("cross_entropy", "cross_entropy_loss", "CrossEntropyLoss"),
        *("linear_cross_entropy", "LinearCrossEntropyLoss"),
        *("distributions.Categorical", "categorical.Categorical"),
        *("OneHotCategorical*", "RelaxedOneHotCategorical"),
        *("distributions.Multinomial", "multinomial.Multinomial"),
        *("logits_to_probs", "SoftmaxTransform"),
        *(*_ATTENTION, *_HEADS, *_ENCODERS, *_ENCODERS_BELOW, *_DECODERS, *_WHOLE),
    ),
    SCALED_DOT_PRODUCT: (
        *(*_ATTENTION, *_HEADS, *_ENCODERS, *_ENCODERS_BELOW, *_DECODERS, *_WHOLE),
    ),
    MULTI_HEAD: (*_HEADS, *_ENCODERS, *_ENCODERS_BELOW, *_DECODERS, *_WHOLE),
    ENCODER_LAYER: (*_ENCODERS, *_ENCODERS_BELOW, *_DECODERS, *_WHOLE),
    DECODER_LAYER: (*_DECODERS, *_ENCODERS, *_ENCODERS_BELOW, *_WHOLE),
    TRANSFORMER: _WHOLE,
    LAYER_NORM: (
        *("layer_norm", "native_layer_norm", "LayerNorm", "native_layer_norm_fake"),
        *(*_ENCODERS, *_ENCODERS_BELOW, *_DECODERS, *_WHOLE),
    ),
    RMS_NORM: ("rms_norm", "_fused_rms_norm*", "RMSNorm"),
    GELU: (
        *("gelu", "gelu_", "GELU", "gelu_backward", "gelu_impl"),
        *(*_ENCODERS, *_ENCODERS_BELOW, *_DECODERS, *_WHOLE),
    ),
}

COURSE = ("autograder", "transformer", "workbench")  # packages of ours
# Packages of others that students know, and that need not be installed here.
WELL_KNOWN = frozenset(
    (
        *("pandas", "seaborn", "plotly", "tqdm", "einops", "torchvision", "torchaudio"),
        *("torchtext", "transformers", "datasets", "tensorflow", "keras", "jax"),
        *("nltk", "spacy", "timm", "lightning", "sympy", "requests", "google"),
        *("statsmodels", "torchinfo", "torchmetrics", "cv2", "networkx", "xgboost"),
    )
)
# What keeps nothing that it is handed: it may come back in what they return, no more.
KEEPING_NOTHING = re.compile(
    r"builtins\.(?!delattr|object|super)\w+"
    r"|(?:inspect|functools|itertools|typing|copy|timeit|dataclasses|abc|enum|math)\."
    r".*"
    r"|operator\.(?!setitem|i)\w+|contextlib\.\w+|IPython\.display\..*"
    r"|torch\.(?:nn|func|autograd|jit|vmap|compile|overrides)\b.*|torch\.[a-z_]+"
    r"|(?:numpy|matplotlib|autograder|transformer|workbench)\..*"
)
# Methods of a file's path that write one.
WRITING = ("write_text", "write_bytes")
IMPORTABLE = (".py", ".pyc", ".pth", ".so", ".zip", ".ipy", ".ipynb")

# Why it cannot be told what a call gives, or what a name is used for.
COMPUTED = {
    "ctypes": "it reaches into memory",
    "_ctypes": "it reaches into memory",
    "cffi": "it reaches into memory",
    "pickle": "it makes objects of bytes",
    "_pickle": "it makes objects of bytes",
    "dill": "it makes objects of bytes",
    "cloudpickle": "it makes objects of bytes",
    "joblib": "it makes objects of bytes",
    "shelve": "it makes objects of bytes",
    "marshal": "it makes code of bytes",
    "types.FunctionType": "a function is made of code",
    "types.LambdaType": "a function is made of code",
    "types.CodeType": "code is made of bytes",
    "runpy": "it runs another file",
    "code": "it runs text",
    "codeop": "it compiles text",
    "zipimport": "it imports from an archive",
    "importlib.util": "it imports in a way of its own",
    "importlib.machinery": "it imports in a way of its own",
    "importlib._bootstrap": "it imports in a way of its own",
    "importlib._bootstrap_external": "it imports in a way of its own",
    "importlib.resources": "it reads files of a package",
    "pkgutil": "it goes through packages",
    "pydoc.locate": "it finds objects by their names",
    "pydoc.resolve": "it finds objects by their names",
    "inspect.getmembers": "it goes through the names of an object",
    "inspect.getmembers_static": "it goes through the names of an object",
    "inspect.getclosurevars": "it goes through the names of a function",
    "operator.methodcaller": "a method is called by its name",
    "torch.fx": "it makes code while it runs",
    "torch.hub": "it loads code",
    "torch.package": "it loads code",
    "torch.overrides": "it goes through the functions of torch",
    "torch.jit.load": "it loads code",
    "torch.export": "it loads code",
    "torch.utils.cpp_extension": "it compiles code",
    "torch.ops.load_library": "it loads code",
    "torch.ops.loaded_libraries": "it loads code",
    "bdb": "it runs text",
    "pdb": "it runs text",
    "cProfile": "it runs text",
    "profile": "it runs text",
    "trace": "it runs text",
    "torch.utils.benchmark": "it runs text",
    "typing.get_type_hints": "it evaluates text",
    "inspect.signature": "it reads what a function holds",
    "inspect.getfullargspec": "it reads what a function holds",
    "inspect.get_annotations": "it reads what a function holds",
    "logging.config": "it finds objects by their names",
    "importlib.metadata": "it finds objects by their names",
    "traitlets": "it finds objects by their names",
    "onnx": "it runs another program",
    "onnxruntime": "it runs another program",
    "numba": "it compiles code",
}
MEDDLING = {  # wherever it stands, since it may change what the answer does
    "ctypes": "it reaches into memory",
    "gc.get_objects": "it goes through all objects",
    "gc.get_referrers": "it goes through all objects",
    "gc.get_referents": "it goes through all objects",
    "sys._getframe": "it walks the stack",
    "sys._current_frames": "it walks the stack",
    "sys.settrace": "it watches every step",
    "sys.setprofile": "it watches every step",
    "sys.monitoring": "it watches every step",
    "threading.settrace": "it watches every step",
    "threading.setprofile": "it watches every step",
    "sys.meta_path": "it changes how modules are imported",
    "sys.path_hooks": "it changes how modules are imported",
    "inspect.stack": "it walks the stack",
    "inspect.trace": "it walks the stack",
    "inspect.currentframe": "it walks the stack",
    "inspect.getouterframes": "it walks the stack",
    "inspect.getinnerframes": "it walks the stack",
    "doctest": "it runs text",
    "unittest.mock": "it changes what names stand for",
    "torch.library": "it changes what PyTorch's functions do",
    "torch._library": "it changes what PyTorch's functions do",
    "torch._C": "it is PyTorch's own inside",
    "torch.utils._python_dispatch": "it changes what PyTorch's functions do",
    "autograder": "it uses the grader's own code",
    "IPython.core": "it changes how cells are run",
}
FRAMES = frozenset(  # attributes that lead out of an object, whatever it is
    (
        *("__code__", "__closure__", "__subclasses__", "__builtins__", "__loader__"),
        *("__annotations__", "__defaults__", "__kwdefaults__"),
        *("f_back", "f_globals", "f_locals", "f_builtins", "f_code"),
        *("gi_frame", "cr_frame", "ag_frame", "tb_frame", "gi_code", "cr_code"),
    )
)


@functools.lru_cache(maxsize=1_000)
def is_known_module(path: str) -> bool:
    """Tell whether it is Python's, the course's, installed here or well known.

    A module that is nobody's was written by the notebook itself.
    """
    root = path.partition(".")[0]
    if root in sys.stdlib_module_names or root in WELL_KNOWN or root in COURSE:
        return True
    try:
        return importlib.util.find_spec(root) is not None
    except (ImportError, ValueError, TypeError):  # such as __main__
        return root == "__main__"


def keeps_nothing(path: str) -> bool:
    """Tell whether what a library's function is handed can only come back from it."""
    return KEEPING_NOTHING.fullmatch(path) is not None and not _is_an_error(path)


def _is_an_error(path: str) -> bool:
    """Tell whether it is an exception of Python's, which keeps its arguments."""
    found = getattr(builtins, path.removeprefix("builtins."), None)
    return isinstance(found, type) and issubclass(found, BaseException)


def _pattern(ways: Iterable[str]) -> re.Pattern[str]:
    parts = (
        re.escape(way).replace(r"\*", r"\w*").replace(r"\?", r"\w") for way in ways
    )
    return re.compile(rf"(?:.*\.)?(?:{'|'.join(parts)})")


_PATTERNS = {name: _pattern(ways) for name, ways in WAYS.items()}
_ANY = _pattern(sorted({way for ways in WAYS.values() for way in ways}))
WORDS = tuple(
    sorted({way.rpartition(".")[2] for ways in WAYS.values() for way in ways})
)
METHODS = frozenset(word for word in WORDS if hasattr(torch.Tensor, word))
# Names that a way leads through; whoever computes one of them may be on it.
GATES = (
    *("nn", "functional", "special", "ops", "aten", "default", "Tensor", "modules"),
    *("activation", "_C", "_nn", "_refs", "_decomp", "attention", "__dict__"),
)


@functools.lru_cache(maxsize=10_000)
def names_of(path: str) -> frozenset[str]:
    """Return the forbidden names that a dotted name of a library is a way to.

    >>> sorted(names_of("scipy.special.softmax"))
    ['torch.softmax']
    """
    if not _ANY.fullmatch(path) or _is_ours(path):
        return frozenset()
    return frozenset(name for name, way in _PATTERNS.items() if way.fullmatch(path))


def _is_ours(path: str) -> bool:
    """Tell whether it is a name of the course's own, and not one that leads out."""
    parts = path.split(".")
    if parts[0] not in COURSE:
        return False
    return len(parts) <= (4 if parts[:2] == ["autograder", "chapters"] else 3)


@functools.lru_cache(maxsize=10_000)
def why_computed(path: str) -> str:
    """Say why it cannot be told what a library's name gives; "" if it can."""
    return _longest(path, COMPUTED) or (
        "it is PyTorch's own inside"
        if re.match(r"torch(\.\w+)*\._[a-zA-Z]", path)
        else ""
    )


@functools.lru_cache(maxsize=10_000)
def why_meddling(path: str) -> str:
    """Say how a library's name changes what other code does; "" if it does not."""
    if re.match(r"autograder\.chapters\.\w+\.[a-z]\w*$", path) or path.count(".") == 0:
        return ""
    if re.match(r"autograder\.chapters(\.\w+)?$", path):
        return ""
    return _longest(path, MEDDLING)


def _longest(path: str, table: dict[str, str]) -> str:
    while path:
        if path in table:
            return table[path]
        path = path.rpartition(".")[0]
    return ""
