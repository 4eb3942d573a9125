"""Compute what is put together of constants: texts above all, by functions of Python's.

Only functions without side effects are called, on constants that stand in the text, and
only where the result can be neither large nor slow.
"""

import base64
import binascii
import codecs
import contextlib
import itertools
import operator
import re
import string
import types
import urllib.parse
import zlib
from collections.abc import Callable, Iterator, Sequence

from autograder.grading.usage.values import (
    ANY_TEXT,
    ANYTHING,
    MOST_FORMS,
    MOST_ITEMS,
    UNKNOWN,
    Collection,
    Known,
    Text,
    Values,
    join,
    known,
)

LONGEST = 50_000  # characters of a constant that is computed with
MOST_WORK = 2_000_000  # characters of all arguments, multiplied
LARGEST_NUMBER = 10**30
SCALARS = (str, bytes, int, float, bool, complex, types.NoneType, types.EllipsisType)
WIDTH = re.compile(r"\d{4}|\*")  # in a format: that many spaces, or unknown many

_TEXT_METHODS = {
    *("capitalize", "casefold", "encode", "format", "join", "lower", "lstrip"),
    *("partition", "removeprefix", "removesuffix", "replace", "rpartition", "rsplit"),
    *("rstrip", "split", "splitlines", "strip", "swapcase", "title", "translate"),
    *("upper", "decode", "hex", "index", "find", "count", "startswith", "endswith"),
    *("__getitem__", "__add__", "__str__", "__len__"),
}
METHODS = {
    str: _TEXT_METHODS,
    bytes: _TEXT_METHODS,
    int: {"to_bytes", "bit_length", "__add__", "__str__"},
    float: {"hex", "is_integer"},
}


def _inflate(data: bytes) -> bytes:
    return zlib.decompressobj().decompress(data, LONGEST)


FUNCTIONS: dict[str, Callable] = {
    **{f"builtins.{each.__name__}": each for each in (chr, ord, str, bytes, int, len)},
    **{f"builtins.{each.__name__}": each for each in (hex, bin, oct, repr, ascii)},
    **{f"builtins.{each.__name__}": each for each in (list, tuple, set, dict, sorted)},
    **{f"builtins.{each.__name__}": each for each in (float, bool, abs, min, max, sum)},
    "builtins.reversed": lambda values: list(values)[::-1],
    "builtins.zip": lambda *values: list(zip(*values, strict=False)),
    "builtins.enumerate": lambda values, start=0: list(enumerate(values, start)),
    "builtins.range": lambda *ends: _range(*ends),
    "builtins.slice": slice,
    "builtins.bytearray": bytes,
    "builtins.memoryview": bytes,
    "builtins.format": format,
    "builtins.divmod": divmod,
    "builtins.bytes.fromhex": bytes.fromhex,
    "builtins.bytearray.fromhex": bytes.fromhex,
    "builtins.str.join": str.join,
    "builtins.str.lower": str.lower,
    "builtins.str.upper": str.upper,
    "builtins.str.replace": str.replace,
    "builtins.str.maketrans": str.maketrans,
    "builtins.bytes.decode": bytes.decode,
    "builtins.int.from_bytes": int.from_bytes,
    "operator.add": operator.add,
    "operator.concat": operator.add,
    "operator.getitem": operator.getitem,
    "itertools.chain": lambda *values: list(itertools.chain(*values)),
    "base64.b64decode": base64.b64decode,
    "base64.standard_b64decode": base64.b64decode,
    "base64.urlsafe_b64decode": base64.urlsafe_b64decode,
    "base64.b32decode": base64.b32decode,
    "base64.b16decode": base64.b16decode,
    "base64.b85decode": base64.b85decode,
    "base64.a85decode": base64.a85decode,
    "base64.decodebytes": base64.decodebytes,
    "binascii.unhexlify": binascii.unhexlify,
    "binascii.a2b_hex": binascii.unhexlify,
    "binascii.a2b_base64": binascii.a2b_base64,
    "zlib.decompress": _inflate,
    "urllib.parse.unquote": urllib.parse.unquote,
    "codecs.decode": lambda text, how="utf-8": _recode(codecs.decode, text, how),
    "codecs.encode": lambda text, how="utf-8": _recode(codecs.encode, text, how),
}
CONSTANTS = {
    f"string.{name}": value
    for name, value in vars(string).items()
    if name.islower() and isinstance(value, str) and not name.startswith("_")
}
CODECS = {"rot13", "rot_13", "hex", "base64", "utf-8", "utf8", "ascii", "latin-1"}
TEXTS = {  # give a text whatever they are given
    *("builtins.str", "builtins.repr", "builtins.chr", "builtins.ascii"),
    *("builtins.format", "builtins.input", "builtins.hex", "builtins.bin"),
}


def _range(*ends: int) -> range:
    found = range(*ends)
    if len(found) > MOST_ITEMS:
        raise ValueError("too long")
    return found


def _recode(recode: Callable, text: str | bytes, how: str) -> str | bytes:
    if how.lower().replace("_codec", "") not in CODECS:
        raise ValueError(how)
    return recode(text, how)


# --- between values and objects -------------------------------------------------------


class _Unclear(Exception):
    """It is not known, or may be one of several."""


def concrete(values: Values) -> object:
    """Return the object that values stand for, if it is a single one that is known."""
    if len(values) != 1:
        raise _Unclear
    (value,) = values
    if isinstance(value, Known):
        return value.value
    if isinstance(value, Collection) and not value.rest:
        if value.items is not None and not value.table:
            return [concrete(each) for each in value.items]
        if value.items is None:
            return {key: concrete(each) for key, each in value.table.items()}
    raise _Unclear


def lift(found: object, made: Callable[[], Collection]) -> Values:
    """Return what is known of an object; ``made`` gives a collection to fill."""
    if isinstance(found, int) and abs(found) > LARGEST_NUMBER:
        return ANYTHING
    if isinstance(found, (*SCALARS, range, slice)):
        return known(found)
    if isinstance(found, (list, tuple, set)) and len(found) <= MOST_ITEMS:
        collection = made()
        collection.items = [lift(each, Collection) for each in found]
        return frozenset({collection})
    if isinstance(found, dict) and len(found) <= MOST_ITEMS:
        collection = made()
        collection.table = {
            key: lift(each, Collection)
            for key, each in found.items()
            if isinstance(key, SCALARS)
        }
        return frozenset({collection})
    return ANYTHING


def _each(arguments: Sequence[Values]) -> Iterator[tuple]:
    """Give every combination of what the arguments may be, as objects."""
    for chosen in itertools.islice(itertools.product(*arguments), MOST_FORMS):
        yield tuple(concrete(frozenset({each})) for each in chosen)


def _size(value: object) -> int:
    if isinstance(value, (str, bytes, list, dict)):
        if len(value) > LONGEST:
            raise _Unclear
        inner = value if isinstance(value, list) else ()
        return 1 + len(value) + sum(_size(each) for each in inner)
    return 1


def _computed(
    function: Callable, arguments: Sequence[Values], made: Callable[[], Collection]
) -> Values | None:
    """Call a function on constants; None where it is not clear what it gives."""
    found = []
    try:
        for objects in _each(arguments):
            work = 1
            for each in objects:
                work *= 1 + _size(each)
            if work > MOST_WORK or _is_wide(objects):
                return None
            with contextlib.suppress(
                *(ValueError, TypeError, LookupError, ArithmeticError),
                *(AttributeError, binascii.Error, zlib.error),
            ):
                found.append(lift(function(*objects), made))
    except _Unclear:
        return None
    return join(*found) if found else None


def _is_wide(objects: Sequence[object]) -> bool:
    return any(
        isinstance(each, (str, bytes))
        and ("%" in str(each) or "{" in str(each) or len(objects) == 2)
        and len(each) < 1000
        and bool(re.search(r"[%{:][^a-zA-Z]*(\d{4}|\*)", str(each)))
        for each in objects
    )


# --- operations -----------------------------------------------------------------------


def call(path: str, arguments: Sequence[Values], made: Callable) -> Values | None:
    """Return what a function of Python's gives; None if it is none that we compute."""
    if path not in FUNCTIONS:
        return ANY_TEXT if path in TEXTS else None
    found = _computed(FUNCTIONS[path], arguments, made)
    return found or (ANY_TEXT if path in TEXTS else None)


def method(
    receiver: Values, name: str, arguments: Sequence[Values], made: Callable
) -> Values:
    """Return what a method of a constant gives."""

    def run(value: object, *rest: object) -> object:
        if name not in METHODS.get(type(value), ()):
            raise TypeError(name)
        if name in ("decode", "encode") and rest and str(rest[0]).lower() not in CODECS:
            raise ValueError(rest)
        return getattr(value, name)(*rest)

    return _computed(run, [receiver, *arguments], made) or _text_of(receiver)


def _text_of(receiver: Values) -> Values:
    texts = any(isinstance(getattr(each, "value", None), str) for each in receiver)
    return frozenset({Text(), UNKNOWN}) if texts else ANYTHING


_OPERATORS = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Mod": operator.mod,
    "FloorDiv": operator.floordiv,
    "BitXor": operator.xor,
    "BitOr": operator.or_,
    "BitAnd": operator.and_,
    "Div": operator.truediv,
}


def binary(kind: str, left: Values, right: Values, made: Callable) -> Values:
    """Return what an operator gives, such as a text put together of two."""
    if kind in _OPERATORS:
        found = _computed(_OPERATORS[kind], [left, right], made)
        if found is not None:
            return found
    if kind == "Add" and (_is_text(left) or _is_text(right)):
        parts = [
            concatenated([a, b])
            for a, b in itertools.islice(itertools.product(left, right), MOST_FORMS)
        ]
        return join(*parts)
    if kind == "Mod" and _is_text(left):
        return ANY_TEXT
    return ANYTHING


def _is_text(values: Values) -> bool:
    return any(
        isinstance(each, Text)
        or (isinstance(each, Known) and isinstance(each.value, str))
        for each in values
    )


def concatenated(parts: Sequence[object]) -> Values:
    """Return a text of several values, one after the other."""
    found = [""]
    for part in parts:
        if isinstance(part, Known) and isinstance(part.value, SCALARS):
            found[-1] += str(part.value)
        elif isinstance(part, Text):
            found[-1] += part.parts[0]
            found += part.parts[1:]
        else:
            found.append("")
    if sum(map(len, found)) > LONGEST or len(found) > 12:
        return ANY_TEXT
    return known(found[0]) if len(found) == 1 else frozenset({Text(tuple(found))})


def subscript(values: Values, key: Values, made: Callable) -> Values:
    """Return an element or a part of a constant."""
    found = _computed(operator.getitem, [values, key], made)
    return found or (_text_of(values) if values else values)


def elements(value: object) -> list[Values] | None:
    """Return what one gets by going through a constant."""
    if isinstance(value, (str, bytes, range)) and len(value) <= MOST_ITEMS:
        return [known(each) for each in value]
    return None
