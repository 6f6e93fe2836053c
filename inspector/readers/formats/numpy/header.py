"""The header of an .npy file: a Python literal, read without Python's own parser.

Source: numpy/lib/_format_impl.py, "Format Version 1.0" to "3.0". numpy gives the literal to `ast.literal_eval`, whose
cost grows faster than the text; here it is a small grammar with a bounded depth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from inspector.checkpoint.dtypes import DTYPES
from inspector.limits import Limits

MAGIC = b"\x93NUMPY"
PREAMBLE_NBYTES = 12
# What numpy itself believes (max_header_size); it refuses longer ones unless pickles are allowed.
NUMPY_NBYTES = 10_000
_MOST_NBYTES = 1 << 20
_DEEPEST = 24


class BadHeader(ValueError):
    """The header says nothing that can be understood; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """What an array is made of. dtype: "" where this package has none for it; says: numpy's spelling, shortened."""

    dtype: str
    itemsize: int
    big_endian: bool
    is_object: bool
    says: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NpyHeader:
    """start: where the elements begin, counted from the magic. nbytes: of the header's text."""

    version: tuple[int, int]
    element: Element
    fortran: bool
    shape: tuple[int, ...]
    start: int
    nbytes: int

    @property
    def numel(self) -> int:
        """Number of elements; 1 for a scalar."""
        count = 1
        for n in self.shape:
            count *= n
        return count

    @property
    def stride(self) -> tuple[int, ...]:
        """In elements."""
        strides = [0] * len(self.shape)
        step = 1
        for axis in range(len(self.shape)) if self.fortran else reversed(range(len(self.shape))):
            strides[axis] = step
            step *= max(1, self.shape[axis])
        return tuple(strides)


def header_span(preamble: bytes) -> int:
    """How many bytes from the magic to the first element, as the first 12 bytes say. Raises BadHeader."""
    if preamble[:6] != MAGIC or len(preamble) < 10:
        raise BadHeader("it does not begin as an .npy file does")
    if preamble[6] not in (1, 2, 3):
        raise BadHeader(f"its version {preamble[6]}.{preamble[7]} is unknown")
    wide = preamble[6] > 1
    if wide and len(preamble) < 12:
        raise BadHeader("it ends inside its preamble")
    span = 12 + int.from_bytes(preamble[8:12], "little") if wide else 10 + int.from_bytes(preamble[8:10], "little")
    if span > _MOST_NBYTES:
        raise BadHeader(f"its header says {span:,} bytes, more than {_MOST_NBYTES:,}")
    return span


def parse_header(raw: bytes, limits: Limits) -> NpyHeader:
    """The header in the first `header_span` bytes of a file. Raises BadHeader."""
    span = header_span(raw[:PREAMBLE_NBYTES])
    if len(raw) < span:
        raise BadHeader(f"it ends after {len(raw):,} of the {span:,} bytes of its header")
    parse = _parsed if span <= NUMPY_NBYTES else _parsed.__wrapped__
    return parse(raw[:span], limits.dimensions)


@lru_cache(maxsize=64)
def _parsed(raw: bytes, most_dimensions: int) -> NpyHeader:
    """Of one whole header; the arrays of an archive have few different ones."""
    text = raw[12 if raw[6] > 1 else 10 :].decode("utf-8" if raw[6] == 3 else "latin-1", "backslashreplace")
    value = _Literal(text).whole()
    if not isinstance(value, dict) or set(value) != {"descr", "fortran_order", "shape"}:
        raise BadHeader("its header is no dictionary with descr, fortran_order and shape")
    shape = value["shape"]
    if not isinstance(shape, tuple) or not all(type(n) is int and 0 <= n < 1 << 62 for n in shape):
        raise BadHeader("its shape is no tuple of sizes")
    if len(shape) > most_dimensions:
        raise BadHeader(f"it has {len(shape):,} dimensions; the limit is {most_dimensions}")
    if not isinstance(value["fortran_order"], bool):
        raise BadHeader("its fortran_order is neither True nor False")
    return NpyHeader(
        version=(raw[6], raw[7]),
        element=_element(value["descr"]),
        fortran=value["fortran_order"],
        shape=shape,
        start=len(raw),
        nbytes=len(text),
    )


# numpy's kinds with the names this package uses for element types.
_CODES = {
    "b1": "bool", "?": "bool", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8",
    "u2": "uint16", "u4": "uint32", "u8": "uint64", "f2": "float16", "f4": "float32", "f8": "float64",
    "c8": "complex64", "c16": "complex128",
}  # fmt: skip
_CODE = re.compile(r"([<>|=]?)([?a-zA-Z])(\d{0,9})(\[[0-9A-Za-z]{1,12}\])?")
# ml_dtypes registers its types as plain bytes, so the name is lost: jax's bfloat16 is '<V2'. Measured with 0.6.
_VOID = {
    1: ("bits8", "raw bytes: float8 and int4 from ml_dtypes (JAX) are saved like this, which one is not written"),
    2: ("bits16", "raw 2-byte elements: bfloat16 from ml_dtypes (JAX) is saved like this"),
}


def _element(descr: object) -> Element:
    if isinstance(descr, list | tuple):
        objects = _holds_objects(descr)
        says = f"structured {repr(descr)[:280]}{', with objects' if objects else ''}"
        return Element(dtype="", itemsize=0, big_endian=False, is_object=objects, says=says)
    if not isinstance(descr, str):
        raise BadHeader("its descr is neither a type nor a list of fields")
    match = _CODE.fullmatch(descr)
    if match is None:
        raise BadHeader(f"its element type {descr[:40]!r} is unknown")
    order, kind, size, unit = match[1], match[2], int(match[3] or 0), match[4]
    big = order == ">"
    name, note = _CODES.get(kind + match[3], ""), ""
    if kind == "O":
        return Element(dtype="", itemsize=0, big_endian=False, is_object=True, says="objects")
    if kind == "V" and size in _VOID:
        name, note = _VOID[size]
    if kind == "f" and size == 1:
        name, note = "float8_e5m2", "saved as <f1, as ml_dtypes writes float8_e5m2"
    if kind in "mM" and size == 8:
        name, note = "int64", f"numpy {'date' if kind == 'M' else 'time span'}{unit or ''}, counted in its unit"
    itemsize = DTYPES[name].itemsize if name else size * 4 if kind == "U" else size
    return Element(dtype=name, itemsize=itemsize, big_endian=big, is_object=False, says=descr[:60], note=note)


def _holds_objects(descr: object) -> bool:
    """Whether a type has a field of objects, at any depth: numpy then unpickles the whole array.

    As numpy's `descr_to_dtype` reads it: a code; a list of fields, (name, type) or (name, type, shape); (type, shape).
    Raises BadHeader for what is none of these, so that no type passes that was not understood.
    """
    if isinstance(descr, str):
        match = _CODE.fullmatch(descr)
        if match is None:
            raise BadHeader(f"its element type {descr[:40]!r} is unknown")
        return match[2] == "O"
    if isinstance(descr, tuple) and len(descr) == 2:
        return _holds_objects(descr[0])
    if isinstance(descr, list):
        fields = [field for field in descr if isinstance(field, tuple) and len(field) in (2, 3)]
        if len(fields) == len(descr):
            return any(_holds_objects(field[1]) for field in fields)
    raise BadHeader("its descr is neither a type nor a list of fields")


class _Literal:
    """Text, numbers, True, False, None, tuples, lists and dictionaries with text keys."""

    _TOKEN = re.compile(
        r"\s*(?:([()\[\]{},:])|(-?\d{1,20})L?|(True|False|None)\b|[uUbB]?'([^'\\]*)'|[uUbB]?\"([^\"\\]*)\")"
    )

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def whole(self) -> object:
        value = self.value(0)
        if self.text[self.at :].strip(" \t\r\n\x00"):
            raise BadHeader("more follows its header's dictionary")
        return value

    def token(self) -> tuple[str, object]:
        match = self._TOKEN.match(self.text, self.at)
        if match is None:
            raise BadHeader(f"its header cannot be read at character {self.at:,}")
        self.at = match.end()
        if match[1]:
            return match[1], None
        if match[2]:
            return "value", int(match[2])
        if match[3]:
            return "value", {"True": True, "False": False, "None": None}[match[3]]
        return "value", match[4] if match[4] is not None else match[5]

    def value(self, depth: int) -> object:
        kind, value = self.token()
        return self.after(kind, value, depth)

    def after(self, kind: str, value: object, depth: int) -> object:
        """The value that begins with a token."""
        if kind == "value":
            return value
        if depth > _DEEPEST:
            raise BadHeader(f"its header is nested deeper than {_DEEPEST} levels")
        if kind == "{":
            return self.mapping(depth)
        if kind in "([":
            return self.items(")" if kind == "(" else "]", depth)
        raise BadHeader(f"its header has {kind!r} in an unexpected place")

    def items(self, close: str, depth: int) -> object:
        found: list[object] = []
        commas = 0
        while True:
            kind, value = self.token()
            if kind == close:
                break
            found.append(self.after(kind, value, depth + 1))
            kind, _ = self.token()
            if kind == close:
                break
            if kind != ",":
                raise BadHeader(f"its header has {kind!r} where a comma belongs")
            commas += 1
        if close == "]":
            return found
        return found[0] if len(found) == 1 and not commas else tuple(found)

    def mapping(self, depth: int) -> dict[str, object]:
        found: dict[str, object] = {}
        while True:
            kind, key = self.token()
            if kind == "}":
                return found
            colon, _ = self.token()
            if not isinstance(key, str) or colon != ":" or key in found:
                raise BadHeader("its header's dictionary has a key that is no text, or one twice")
            found[key] = self.value(depth + 1)
            kind, _ = self.token()
            if kind == "}":
                return found
            if kind != ",":
                raise BadHeader(f"its header has {kind!r} where a comma belongs")
