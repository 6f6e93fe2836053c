"""Reports as plain data for `--json`, downloads and other programs.

Strict JSON: NaN and infinities become the strings "NaN", "Infinity", "-Infinity", bytes and sources are left out. The
text is made piece by piece: of a file with fifty thousand tensors, all of it and the dicts for it take a gigabyte.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Mapping
from enum import Enum
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

#: Fields that are no data, or too much of it: open files, arrays with file formats of their own, packed value tables.
#: Text of that name is data: a tensor's key in the file, where numbers come from.
LEFT_OUT = frozenset({"source", "heat", "raw", "logits", "table"})
_TEXT = ("str", "str | None", str)
_PACKED = ("bytes", bytes)
# What a reader wants first is often derived: it is said once, here, for every face.
_DERIVED = ("label", "holds", "loaded", "total", "flops", "numel")
_PIECE = 1 << 16
_FOREIGN = re.compile(r"[^\n -~]+")


@functools.cache
def _names(kind: type) -> tuple[str, ...]:
    """The keys of a kind of report: its fields, and what is derived from them."""
    fields = [f for f in dataclasses.fields(kind) if f.type not in _PACKED]
    names = [f.name for f in fields if f.name not in LEFT_OUT or f.type in _TEXT]
    return (*names, *(d for d in _DERIVED if d not in names and isinstance(getattr(kind, d, None), property)))


def _content(report: object) -> Any:
    """("{", pairs) of what becomes an object, ("[", items) of a list, else the text, number, truth or None it is."""
    if isinstance(report, Enum):
        return report.value
    if report is None or isinstance(report, str | bool | int):
        return report
    if isinstance(report, float):
        if math.isfinite(report):
            return report
        return "NaN" if math.isnan(report) else "Infinity" if report > 0 else "-Infinity"
    if isinstance(report, list | tuple | set | frozenset):
        return "[", report
    if dataclasses.is_dataclass(report) and not isinstance(report, type):
        return "{", ((name, getattr(report, name)) for name in _names(type(report)))
    if isinstance(report, Mapping):
        return "{", {str(key): value for key, value in report.items()}.items()
    return str(report)


def fields_of(report: object) -> dict[str, object]:
    """A report's own keys as `as_json` writes them, for what is written with something beside it."""
    kind: type = type(report)
    return {name: getattr(report, name) for name in _names(kind)}


def as_plain(report: object) -> Any:
    """A frozen report as dicts, lists, text and numbers; keys are the field names."""
    content = _content(report)
    if not isinstance(content, tuple):
        return content
    sign, items = content
    return {key: as_plain(value) for key, value in items} if sign == "{" else [as_plain(item) for item in items]


def as_json(report: object, *, indent: int | None = 2) -> str:
    """The same as text. What a terminal would obey, or nobody could see, is spelled as JSON spells it: \\u202e."""
    pieces: list[str] = []
    write_json(report, pieces.append, indent=indent)
    return "".join(pieces)


def write_json(report: object, write: Callable[[str], object], *, indent: int | None = 2) -> None:
    """Hand the same text to `write` piece by piece, each of some 64 kB, as it is made."""
    pieces: list[str] = []
    length = 0

    def collect(text: str) -> None:
        nonlocal length
        pieces.append(text)
        length += len(text)
        if length >= _PIECE:
            write("".join(pieces))
            pieces.clear()
            length = 0

    _write(report, collect, "" if indent is None else "\n", " " * (indent or 0))
    write("".join(pieces))


def _write(report: object, write: Callable[[str], None], gap: str, step: str) -> None:
    """gap: the line break and indent of what is around it, "" where all goes on one line."""
    content = _content(report)
    if not isinstance(content, tuple):
        write(_scalar(content))
        return
    sign, items = content
    inner = gap + step if gap else ""
    before, between = sign + inner, "," + inner if gap else ", "
    for item in items:
        if sign == "{":
            key, item = item
            write(f"{before}{_text(key)}: ")
        else:
            write(before)
        _write(item, write, inner, step)
        before = between
    closing = "}" if sign == "{" else "]"
    write(gap + closing if before is between else sign + closing)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return float.__repr__(value) if isinstance(value, float) else int.__repr__(value)


def _text(text: str) -> str:
    made = encode_basestring(text)
    if made.isascii() and made.isprintable():
        return made
    return _FOREIGN.sub(lambda found: "".join(map(_spelled, found[0])), made)


def _spelled(char: str) -> str:
    return char if char.isprintable() else encode_basestring_ascii(char)[1:-1]
