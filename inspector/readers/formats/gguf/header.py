"""The header of a GGUF file, walked once: metadata by key, then what it says about each tensor.

Source: ggml/docs/gguf.md (versions 1 to 3). Arrays are counted, not kept: a tokenizer's vocabulary is most of a header.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field

from inspector.checkpoint.source import ByteSource
from inspector.errors import CorruptFile, LimitExceeded
from inspector.limits import Limits
from inspector.readers.cursor import Cursor
from inspector.readers.flat import whole_text

MAGIC = b"GGUF"
_FORMS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_TYPE_NAMES = {
    0: "uint8", 1: "int8", 2: "uint16", 3: "int16", 4: "uint32", 5: "int32", 6: "float32", 7: "bool", 8: "texts",
    9: "arrays", 10: "uint64", 11: "int64", 12: "float64",
}  # fmt: skip
_KEY_NBYTES = 65_535  # The format's own bound.
_SHOWN_NBYTES = 1000
_SHOWN_ENTRIES = 2000
_LONG_NBYTES = 4_000_000
_SHOWN_ITEMS = 8
_DEEPEST = 4
_LIST_ITEMS = 8  # A list in a list costs as much time as so many texts.
_ENTRY_NBYTES = 20  # A tensor's least: an empty name, no sizes, a type and an offset, in version 1.
# What a tensor's records take until the file is open (bytes), as `Limits.memory_nbytes` counts.
_TENSOR_NBYTES = 2000
_MOST_DIMENSIONS = 8  # ggml's own is 4.


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorEntry:
    """One tensor as the header has it. dims: in ggml's order, the fastest first. offset: from the data's beginning."""

    name: str
    dims: tuple[int, ...]
    type_code: int
    offset: int


@dataclass(slots=True, kw_only=True)
class GgufHeader:
    """numbers: integer metadata by key. texts: everything for display; long_texts: those of them that are shown only in
    part, as far as there is room. end: where the header ends in the file."""

    version: int
    big_endian: bool
    tensor_count: int
    texts: list[tuple[str, str]] = field(default_factory=list)
    more_texts: int = 0
    long_texts: list[tuple[str, str]] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    twice: list[str] = field(default_factory=list)
    tensors: list[TensorEntry] = field(default_factory=list)
    end: int = 0


def byte_order(head: bytes) -> tuple[int, bool] | None:
    """(version, big-endian) from the first bytes of a file; None when it is no GGUF."""
    if head[:4] != MAGIC or len(head) < 8:
        return None
    for big in (False, True):
        version = int.from_bytes(head[4:8], "big" if big else "little")
        if 1 <= version <= 0xFFFF:
            return version, big
    return None


def read_header(source: ByteSource, limits: Limits) -> GgufHeader:
    """Raises CorruptFile (cut, senseless) or LimitExceeded."""
    if source.size < 8:
        raise CorruptFile(
            f"{source.name} is a GGUF model cut short after {source.size} bytes.", hint="Download or copy it again."
        )
    found = byte_order(source.read(0, 8))
    if found is None or found[0] > 3:
        says = f"its version is {found[0]:,}" if found else "its version makes no sense"
        raise CorruptFile(f"{source.name} begins as a GGUF model, but {says}; known are 1 to 3.")
    return _Walk(source, limits, *found).run()


class _Walk:
    def __init__(self, source: ByteSource, limits: Limits, version: int, big_endian: bool) -> None:
        self.cursor = Cursor(source, 8)
        self.name = source.name
        self.limits = limits
        self.mark = ">" if big_endian else "<"
        self.length = "I" if version == 1 else "Q"
        self.items = 0
        self.room = _LONG_NBYTES
        forms = {*_FORMS.values(), "I", "Q"}
        self.structs = {form: struct.Struct(self.mark + form) for form in forms}
        self.header = GgufHeader(version=version, big_endian=big_endian, tensor_count=0)

    def run(self) -> GgufHeader:
        header, limits = self.header, self.limits
        header.tensor_count = self.number(self.length)
        entries = self.number(self.length)
        if header.tensor_count > limits.tensors or entries > limits.tensors:
            raise LimitExceeded(
                f"{self.name} announces {header.tensor_count:,} tensors and {entries:,} metadata entries; "
                f"the limit is {limits.tensors:,}."
            )
        seen: set[bytes] = set()
        for _ in range(entries):
            raw = self.text(_KEY_NBYTES, "a key")
            key = whole_text(raw[:_SHOWN_NBYTES])
            if raw in seen:
                header.twice.append(key[:80])
            seen.add(raw)
            says = self.value(key, self.number("I"), 0)
            if len(header.texts) < _SHOWN_ENTRIES:
                header.texts.append((key[:200], says))
            else:
                header.more_texts += 1
        most = (self.cursor.size - self.cursor.at) // _ENTRY_NBYTES
        limits.charge(_TENSOR_NBYTES * min(header.tensor_count, most), f"The list of tensors of {self.name}")
        for _ in range(header.tensor_count):
            header.tensors.append(self.tensor())
        header.end = self.cursor.at
        return header

    def tensor(self) -> TensorEntry:
        name = whole_text(self.text(_KEY_NBYTES, "the name of a tensor"))
        self.limits.charge(len(name), f"The list of tensors of {self.name}")
        n = self.number("I")
        if n > _MOST_DIMENSIONS:
            raise CorruptFile(f"{self.name}: the tensor {name[:80]!r} has {n:,} dimensions; GGUF allows 4.")
        form = f"{self.mark}{n}{self.length}IQ"
        *dims, kind, offset = struct.unpack(form, self.take(struct.calcsize(form)))
        return TensorEntry(name=name, dims=tuple(dims), type_code=kind, offset=offset)

    def number(self, form: str) -> int:
        packed = self.structs[form]
        return int(packed.unpack(self.take(packed.size))[0])

    def take(self, n: int) -> bytes:
        self.check(n)
        return self.cursor.take(n)

    def check(self, n: int) -> None:
        """Before n more bytes of header are walked over."""
        if self.cursor.at + n > self.cursor.size:
            raise CorruptFile(
                f"{self.name} is a GGUF model cut short inside its header: {n:,} bytes are expected at byte "
                f"{self.cursor.at:,}, the file has {self.cursor.size:,}.",
                hint="Download or copy it again.",
            )
        if self.cursor.at + n > self.limits.header_nbytes:
            raise LimitExceeded(f"The header of {self.name} is longer than {self.limits.header_nbytes:,} bytes.")

    def text(self, most: int, what: str) -> bytes:
        n = self.number(self.length)
        if n > most:
            raise CorruptFile(f"{self.name}: {what} at byte {self.cursor.at:,} has {n:,} bytes, more than {most:,}.")
        return self.take(n)

    def long_text(self, key: str) -> str:
        """A text of any length: its beginning. More of it is kept for who looks for what it would run."""
        n = self.number(self.length)
        self.check(n)
        raw = self.cursor.take(min(n, _SHOWN_NBYTES))
        if n > len(raw) and self.room > 0:
            rest = self.cursor.take(max(0, min(n, self.room) - len(raw)))
            self.room -= len(raw) + len(rest)
            self.header.long_texts.append((key[:200], whole_text(raw + rest)))
            self.cursor.at += n - len(raw) - len(rest)
        else:
            self.cursor.at += n - len(raw)
        return whole_text(raw) + (f" … ({n:,} bytes)" if n > len(raw) else "")

    def jump_texts(self, n: int) -> None:
        """Over n texts: a vocabulary has 100,000 and more, so this loop is kept short."""
        cursor, packed = self.cursor, self.structs[self.length]
        take, unpack, size = cursor.take, packed.unpack, packed.size
        end = min(cursor.size, self.limits.header_nbytes)
        for _ in range(n):
            if cursor.at + size > end:
                self.check(size)
            (length,) = unpack(take(size))
            if cursor.at + length > end:
                self.check(length)
            cursor.at += length

    def value(self, key: str, kind: int, depth: int) -> str:
        if kind == _STRING:
            return self.long_text(key)
        if kind == _ARRAY:
            return self.array(key, depth)
        form = _FORMS.get(kind)
        if form is None:
            raise CorruptFile(f"{self.name}: the metadata entry {key[:80]!r} has the unknown type {kind:,}.")
        # A byte that is neither 0 nor 1 is still a byte: struct's "?" takes any as true.
        packed = self.structs[form]
        (value,) = packed.unpack(self.take(packed.size))
        if isinstance(value, float):
            return f"{value:.7g}" if math.isfinite(value) else str(value)
        if depth == 0 and not isinstance(value, bool) and len(self.header.numbers) < _SHOWN_ENTRIES:
            self.header.numbers[key] = value
        return str(value)

    def array(self, key: str, depth: int) -> str:
        kind, n = self.number("I"), self.number(self.length)
        if depth >= _DEEPEST:
            raise CorruptFile(f"{self.name}: the metadata entry {key[:80]!r} is nested deeper than {_DEEPEST} arrays.")
        if kind in _FORMS:
            size = struct.calcsize("=" + _FORMS[kind])
            self.check(n * size)
            start = self.cursor.at
            shown = [self.value(key, kind, depth + 1) for _ in range(min(n, _SHOWN_ITEMS))]
            self.cursor.at = start + n * size
        elif kind in (_STRING, _ARRAY):
            self.items += n if kind == _STRING else _LIST_ITEMS * n
            if self.items > self.limits.memo:
                raise LimitExceeded(
                    f"{self.name}: the metadata lists hold {self.items:,} texts; the limit is {self.limits.memo:,}."
                )
            shown = []
            for number in range(n if kind == _ARRAY else min(n, _SHOWN_ITEMS)):
                item = self.value(key, kind, depth + 1)
                if number < _SHOWN_ITEMS:
                    shown.append(item[:40])
            if kind == _STRING:
                self.jump_texts(n - len(shown))
        else:
            raise CorruptFile(f"{self.name}: the metadata entry {key[:80]!r} is a list of the unknown type {kind:,}.")
        if n <= _SHOWN_ITEMS and depth == 0:
            return "[" + ", ".join(shown) + "]"
        begins = f", beginning {', '.join(shown)}" if shown and depth == 0 else ""
        return f"{n:,} {_TYPE_NAMES[kind]}{begins}"[:_SHOWN_NBYTES]
