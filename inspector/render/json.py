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
from operator import attrgetter
from typing import Any

from inspector.checkpoint.types import TensorInfo

#: Fields that are no data, or too much of it: open files, arrays with file formats of their own, packed value tables.
#: Text of that name is data: a tensor's key in the file, where numbers come from.
LEFT_OUT = frozenset({"source", "heat", "raw", "logits", "table"})
_TEXT = ("str", "str | None", str)
_PACKED = ("bytes", bytes)
# What a reader wants first is often derived: it is said once, here, for every face.
_DERIVED = ("label", "holds", "loaded", "total", "flops", "numel")
# Values, of some 30 characters each: 64 kB.
_PIECES = 1 << 11
# Texts that are kept as they were spelled: 10 MB at most.
_LONGEST_KEPT, _MOST_KEPT = 100, 1 << 16
# Tensors that are kept as they were written, in characters: some 50,000 of them.
_MOST_WRITTEN = 1 << 25
_WORDS: Mapping[bool | None, str] = {None: "null", True: "true", False: "false"}
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
    writer = _Writer(write, " " * (indent or 0))
    writer.add(report, "" if indent is None else "\n")
    writer.flush()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """How reports of one kind are written at one depth. get: all values of one. before: what stands before each."""

    get: Callable[[object], tuple[object, ...]]
    before: tuple[str, ...]
    inner: str
    closing: str


class _Writer:
    """Text on its way. A file of twenty thousand tensors has two million values: what is the same for all of a kind is
    made once, and nothing is called for a value that stands by itself."""

    def __init__(self, write: Callable[[str], object], step: str) -> None:
        self._write, self._step = write, step
        self._pieces: list[str] = []
        # Names come again and again.
        self._texts: dict[str, str] = {}
        self._forms: dict[tuple[type, str], _Form | None] = {}
        # A tensor stands in the file's list, in its state dict and in the module's tree: by id, with the gap it had.
        self._written: dict[int, tuple[TensorInfo, str, str]] = {}
        self._left = _MOST_WRITTEN
        self._flushed = 0

    def flush(self) -> None:
        """What is left."""
        self._write("".join(self._pieces))
        self._pieces.clear()
        self._flushed += 1

    def add(self, report: object, gap: str) -> None:
        """gap: the line break and indent of what is around it, "" where all goes on one line."""
        plain = self._plain(report)
        if plain is not None:
            self._pieces.append(plain)
            return
        kind = type(report)
        if kind is TensorInfo:
            self._add_tensor(report, gap)  # type: ignore[arg-type]
            return
        self._add_report(report, kind, gap)

    def _add_tensor(self, tensor: TensorInfo, gap: str) -> None:
        """A tensor as it was written before, moved to this depth: no text has a line break of its own in it."""
        known = self._written.get(id(tensor))
        if known is not None:
            _, before, text = known
            self._pieces.append(text if before == gap else text.replace(before, gap))
            return
        first, flushed = len(self._pieces), self._flushed
        self._add_report(tensor, TensorInfo, gap)
        if flushed != self._flushed or self._left <= 0:
            return
        text = "".join(self._pieces[first:])
        self._written[id(tensor)] = (tensor, gap, text)
        self._left -= len(text)

    def _add_report(self, report: object, kind: type, gap: str) -> None:
        if (kind, gap) not in self._forms:
            self._forms[kind, gap] = self._form(kind, gap)
        form = self._forms[kind, gap]
        if form is not None:
            self._add_fields(report, form)
            return
        content = _content(report)
        if not isinstance(content, tuple):
            self._pieces.append(_scalar(content))
            return
        sign, items = content
        inner = gap + self._step if gap else ""
        before, between = sign + inner, "," + inner if gap else ", "
        pieces = self._pieces
        for item in items:
            if sign == "{":
                key, item = item
                before += f"{self._text(key)}: "
            plain = self._plain(item)
            if plain is not None:
                pieces.append(before + plain)
            else:
                pieces.append(before)
                self.add(item, inner)
            before = between
            if len(pieces) > _PIECES:
                self.flush()
        closing = "}" if sign == "{" else "]"
        pieces.append(gap + closing if before is between else sign + closing)

    def _form(self, kind: type, gap: str) -> _Form | None:
        """Of a kind of report that stands so deep; None for what is none, or has no two keys."""
        if not dataclasses.is_dataclass(kind) or issubclass(kind, Enum | list | tuple | set | frozenset | str | float):
            return None
        names = _names(kind)
        if len(names) < 2:
            return None
        inner = gap + self._step if gap else ""
        signs = ("{" + inner, *(["," + inner if gap else ", "] * (len(names) - 1)))
        before = tuple(f"{sign}{_text(name)}: " for sign, name in zip(signs, names, strict=True))
        return _Form(get=attrgetter(*names), before=before, inner=inner, closing=gap + "}")

    def _add_fields(self, report: object, form: _Form) -> None:
        pieces, plain_of = self._pieces, self._plain
        for before, value in zip(form.before, form.get(report), strict=True):
            plain = plain_of(value)
            if plain is not None:
                pieces.append(before + plain)
            else:
                pieces.append(before)
                self.add(value, form.inner)
        pieces.append(form.closing)
        if len(pieces) > _PIECES:
            self.flush()

    def _plain(self, value: object) -> str | None:
        """Of what most values are, and of nothing derived from it; None for all others."""
        kind = type(value)
        if kind is str:
            return self._text(value)  # type: ignore[arg-type]
        if kind is int:
            return int.__repr__(value)
        if kind is tuple and not value:
            return "[]"
        return _WORDS[value] if value is None or kind is bool else None  # type: ignore[index]

    def _text(self, text: str) -> str:
        made = self._texts.get(text)
        if made is None:
            made = _text(text)
            if len(text) <= _LONGEST_KEPT and len(self._texts) < _MOST_KEPT:
                self._texts[text] = made
        return made


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    return float.__repr__(value) if isinstance(value, float) else int.__repr__(value)


def _text(text: str) -> str:
    made = encode_basestring(text)
    if made.isascii() and made.isprintable():
        return made
    return _FOREIGN.sub(lambda found: "".join(map(_spelled, found[0])), made)


def _spelled(char: str) -> str:
    return char if char.isprintable() else encode_basestring_ascii(char)[1:-1]
