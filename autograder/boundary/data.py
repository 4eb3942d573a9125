"""Data on their way between a check and a student's process: into bytes and back.

What may cross is what ``interface.to_data`` makes: numbers, strings, None, tensors,
lists, tuples and dicts of them, an ``Opaque`` for whatever is none of these, and the
``Gradients`` of a call. A check may also name an object that stays where it is.

The bytes are a flat row of msgpack objects. A list is a header, which says how many
items follow, and then its items; nothing in msgpack's own sense is nested. Thus every
item is counted before room is made for it, and a few bytes cannot ask for much memory.
Nothing that is read is ever executed.
"""

import functools
import math
import struct
from collections import namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgpack
import torch

from autograder.interface import MAXIMUM_DEPTH, Data, Gradients, Opaque

# Of all that is sent at a time. Right answers need 200 kB, 300 items, 15 keys that are
# no text, and 50 parameters; what items cost in memory and in time is bounded by this.
MAXIMUM_BYTES = 16 * 2**20
MAXIMUM_ITEMS = 20_000  # of all lists, tuples and dicts together
MAXIMUM_KEYS = 1_000  # other than strings: their hashes can be made to collide
MAXIMUM_NAME = 200  # characters of the name of a type
# characters of an error's kind, text, call, function and line
ERROR_SIZES = (200, 10_000, 2_000, 500, 500)
PARAMETERS = 2_000  # of a module
PARAMETER_NAME = 1_000  # characters of the name of one
MAXIMUM_DIGITS = 4_000  # of an integer; Python itself writes no more than 4300
_DEPTH = MAXIMUM_DEPTH + 4  # a request and Gradients are wrapped around data
_BITS = math.floor(MAXIMUM_DIGITS * math.log2(10))
DIMENSIONS = 64  # PyTorch has no more
_EXTENT = 2**40  # the product of a tensor's dimensions, an empty one counted as 1

_LIST, _TUPLE, _DICT, _TENSOR, _INTEGER, _OPAQUE, _NAMED, _GRADIENTS = range(1, 9)
_DTYPES = (
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
    torch.uint16,
    torch.uint32,
    torch.uint64,
)
_NUMBER_OF = {dtype: number for number, dtype in enumerate(_DTYPES)}
_PLAIN = (type(None), bool, int, float, str)

_Header = namedtuple("_Header", "code content")


class BoundaryError(ValueError):
    """Something that is no data, or too much of it, was to cross or has arrived."""


@dataclass(frozen=True)
class Named:
    """Stands for an object in the student's process that a check passes back to it."""

    handle: int


# --- into bytes -----------------------------------------------------------------------


def pack(value: Data) -> bytes:
    """Write data as bytes.

    Args:
        value: data, or data with ``Named``, or ``Gradients``.

    Raises:
        BoundaryError: it is no data, or too large, or too deeply nested.
    """
    writer = _Writer()
    writer.write(value, 0)
    return writer.packer.bytes()


class _Writer:
    """Writes one value; counts what it has written."""

    def __init__(self) -> None:
        self.packer = msgpack.Packer(autoreset=False, buf_size=2**12)
        self.items, self.size = 0, 0

    def write(self, value: Data, depth: int) -> None:
        if value is None or isinstance(value, (bool, float)):
            self.packer.pack(value if value is None else _exactly(value))
        elif isinstance(value, int):
            self._integer(int(value))
        elif isinstance(value, str):
            self._string(str(value))
        elif isinstance(value, torch.Tensor):
            self._tensor(value)
        elif isinstance(value, Opaque):
            self._header(_OPAQUE, _text(value.type_name[:MAXIMUM_NAME]))
        elif isinstance(value, Named):
            self._header(_NAMED, struct.pack(">Q", value.handle))
        else:
            self._container(value, depth)

    def _header(self, code: int, content: bytes = b"") -> None:
        self.packer.pack_ext_type(code, content)

    def _count(self, items: int, size: int = 0) -> None:
        self.items += items
        self.size += size
        if self.items > MAXIMUM_ITEMS:
            raise BoundaryError(f"more than {MAXIMUM_ITEMS:,} items")
        if self.size > MAXIMUM_BYTES:
            raise BoundaryError(f"more than {MAXIMUM_BYTES:,} bytes")

    def _integer(self, value: int) -> None:
        if -(2**63) <= value < 2**64:
            self.packer.pack(value)
        elif value.bit_length() > _BITS:
            self.write(Opaque("int"), 0)
        else:
            size = value.bit_length() // 8 + 1
            self._header(_INTEGER, value.to_bytes(size, "big", signed=True))

    def _string(self, value: str) -> None:
        self._count(0, len(value))
        self.packer.pack(value if value.isascii() else _text(value).decode())

    def _tensor(self, value: torch.Tensor) -> None:
        number = _NUMBER_OF.get(value.dtype)
        if number is None or value.layout != torch.strided or value.is_meta:
            self.write(Opaque(f"tensor of {value.dtype}"), 0)
        elif math.prod(max(size, 1) for size in value.shape) > _EXTENT:
            self.write(Opaque("tensor with too many values"), 0)
        else:
            self._count(0, value.numel() * value.itemsize)
            shape = struct.pack(f">{value.ndim}q", *value.shape)
            self._header(_TENSOR, bytes([number]) + shape)
            plain = value.detach().resolve_conj().resolve_neg().cpu().contiguous()
            self.packer.pack(plain.reshape(-1).view(torch.uint8).numpy().data)

    def _container(self, value: Data, depth: int) -> None:
        if depth >= _DEPTH:
            raise BoundaryError(f"lists and dicts nested more than {_DEPTH} times")
        if isinstance(value, Gradients):
            self._header(_GRADIENTS)
            items: Iterable[Data] = [value.value, value.inputs, value.parameters]
        elif isinstance(value, (list, tuple)):
            self._count(len(value), len(value))
            code = _LIST if isinstance(value, list) else _TUPLE
            self._header(code, struct.pack(">I", len(value)))
            items = value
        elif isinstance(value, dict):
            self._count(2 * len(value), 2 * len(value))
            if sum(not isinstance(key, str) for key in value) > MAXIMUM_KEYS:
                raise BoundaryError(f"more than {MAXIMUM_KEYS:,} keys that are no text")
            self._header(_DICT, struct.pack(">I", len(value)))
            items = [each for pair in value.items() for each in pair]
        else:
            raise BoundaryError(f"a {type(value).__qualname__} is no data")
        for item in items:
            self.write(item, depth + 1)


def _exactly(value: bool | float) -> bool | float:
    """Return the number itself where a class of its own is derived from it."""
    return value if type(value) in (bool, float) else float(value)


def _text(value: str) -> bytes:
    """Encode text; halves of a character, which no encoding has, are written out."""
    return value.encode("utf-8", "backslashreplace")


# --- and back -------------------------------------------------------------------------


def unpack(content: bytes | memoryview, *, named: bool = False) -> Data:
    """Read what ``pack`` has written, or what somebody pretends it has.

    Args:
        content: the bytes.
        named: whether they may name objects, as only a check does.

    Raises:
        BoundaryError: they are not what ``pack`` writes. No other error is raised.
    """
    if len(content) > MAXIMUM_BYTES + 2**20:
        raise BoundaryError(f"more than {MAXIMUM_BYTES:,} bytes")
    try:
        reader = _Reader(content, named)
        value = reader.read(0)
    except BoundaryError:
        raise
    # msgpack's errors, a number that does not fit, a key that cannot be one
    except (ValueError, TypeError, OverflowError, RuntimeError, struct.error) as error:
        raise BoundaryError(f"not data: {type(error).__name__}: {error}") from None
    except msgpack.UnpackException as error:
        raise BoundaryError(f"cut, or not data: {type(error).__name__}") from None
    if reader.unpacker.tell() != len(content):
        raise BoundaryError("not data: something follows the end")
    return value


class _Reader:
    """Reads one value; counts what it has read."""

    def __init__(self, content: bytes | memoryview, named: bool) -> None:
        self.size, self.named = len(content), named
        self.items, self.keys = 0, 0
        self.unpacker = msgpack.Unpacker(
            ext_hook=_Header,
            max_buffer_size=max(len(content), 1),
            max_str_len=len(content),
            max_bin_len=len(content),
            max_ext_len=_BITS // 8 + 1,
            max_array_len=0,
            max_map_len=0,
        )
        self.unpacker.feed(content)

    def read(self, depth: int) -> Data:
        value = self.unpacker.unpack()
        if type(value) in _PLAIN:
            return value
        if type(value) is not _Header:
            raise BoundaryError(f"not data: a {type(value).__name__}")
        read = _READERS.get(value.code)
        if read is None:
            raise BoundaryError(f"not data: an object of kind {value.code}")
        if depth >= _DEPTH:
            raise BoundaryError(f"nested more than {_DEPTH} times")
        return read(self, value.content, depth)

    def _many(self, content: bytes, each: int, depth: int) -> list:
        """Read the items of a container; ``content`` says how many, times ``each``."""
        (count,) = struct.unpack(">I", content)
        self.items += count * each
        if self.items > min(MAXIMUM_ITEMS, self.size):
            raise BoundaryError("more items than there may be, or than there is room")
        return [self.read(depth + 1) for _ in range(count * each)]

    def list(self, content: bytes, depth: int) -> list:
        return self._many(content, 1, depth)

    def tuple(self, content: bytes, depth: int) -> tuple:
        return tuple(self._many(content, 1, depth))

    def dict(self, content: bytes, depth: int) -> dict:
        row = self._many(content, 2, depth)
        keys = row[::2]
        self.keys += sum(type(key) is not str for key in keys)
        if self.keys > MAXIMUM_KEYS:
            raise BoundaryError(f"more than {MAXIMUM_KEYS:,} keys that are no text")
        value = dict(zip(keys, row[1::2], strict=True))
        if len(value) != len(keys):
            raise BoundaryError("a dict with a key twice")
        return value

    def tensor(self, content: bytes, depth: int) -> torch.Tensor:
        number, dimensions = content[0], (len(content) - 1) // 8
        if number >= len(_DTYPES) or dimensions > DIMENSIONS:
            raise BoundaryError("a tensor of no known kind")
        dtype = _DTYPES[number]
        shape = struct.unpack(f">{dimensions}q", content[1:])
        values = self.unpacker.unpack()
        extent = math.prod(max(size, 1) for size in shape)
        if min(shape, default=0) < 0 or extent > _EXTENT or type(values) is not bytes:
            raise BoundaryError("a tensor of no possible shape")
        if math.prod(shape) * dtype.itemsize != len(values):
            raise BoundaryError("a tensor whose shape and values do not fit")
        return _tensor_of(values, dtype, shape)

    def integer(self, content: bytes, depth: int) -> int:
        return int.from_bytes(content, "big", signed=True)

    def opaque(self, content: bytes, depth: int) -> Opaque:
        name = content.decode("utf-8")
        if len(name) > MAXIMUM_NAME:
            raise BoundaryError(f"a name of more than {MAXIMUM_NAME} characters")
        return Opaque(name)

    def name(self, content: bytes, depth: int) -> Named:
        if not self.named:
            raise BoundaryError("not data: a name of an object")
        return Named(*struct.unpack(">Q", content))

    def gradients(self, content: bytes, depth: int) -> Gradients:
        if depth > 1 or content:
            raise BoundaryError("gradients inside of data")
        value, inputs, parameters = (self.read(depth + 1) for _ in range(3))
        fits = type(inputs) is tuple and type(parameters) is dict
        if not fits or any(type(name) is not str for name in parameters):
            raise BoundaryError("gradients of no possible form")
        for each in (*inputs, *parameters.values()):
            if each is not None and type(each) is not torch.Tensor:
                raise BoundaryError("a gradient that is no tensor")
        return Gradients(value, inputs, parameters)


_READERS: dict[int, Callable[[_Reader, bytes, int], Any]] = {
    _LIST: _Reader.list,
    _TUPLE: _Reader.tuple,
    _DICT: _Reader.dict,
    _TENSOR: _Reader.tensor,
    _INTEGER: _Reader.integer,
    _OPAQUE: _Reader.opaque,
    _NAMED: _Reader.name,
    _GRADIENTS: _Reader.gradients,
}


def _tensor_of(values: bytes, dtype: torch.dtype, shape: tuple) -> torch.Tensor:
    if not values:
        return torch.empty(shape, dtype=dtype)
    # a bytearray is a copy: a tensor on bytes themselves could not be written to
    flat = functools.partial(torch.frombuffer, bytearray(values))
    if dtype == torch.bool:  # any byte may have come, and only 0 and 1 are booleans
        return flat(dtype=torch.uint8).ne(0).reshape(shape)
    return flat(dtype=dtype).reshape(shape)
