"""What Python shows of a report at its prompt: its fields, each in a few words.

A dataclass's own repr writes out everything below it: of a file with a long configuration that is megabytes, of a
large network a line per tensor, and prompts, notebooks and failing tests print it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from inspector.units import shorten_middle

_WIDEST, _FIRST = 120, 2


def short_repr(record: object) -> str:
    """For a dataclass as its `__repr__`: what is below its fields is only named or counted."""
    assert dataclasses.is_dataclass(record)
    fields = (f for f in dataclasses.fields(record) if f.repr)
    inside = ", ".join(f"{f.name}={_short(getattr(record, f.name))}" for f in fields)
    return f"{type(record).__qualname__}({inside})"


def _short(value: object) -> str:
    if isinstance(value, str):
        # Of a long text nothing but its ends is written, since nothing else would be seen.
        ends = value if len(value) <= 2 * _WIDEST else value[:_WIDEST] + value[-_WIDEST:]
        return shorten_middle(repr(ends), _WIDEST)
    if isinstance(value, bytes):
        return f"<{len(value):,} bytes>"
    if isinstance(value, Mapping):
        pairs = [f"{_one(key)}: {_one(value[key])}" for key, _ in zip(value, range(_FIRST), strict=False)]
        return f"{{{', '.join([*pairs, *_more(len(value))])}}}"
    if isinstance(value, Sequence):
        first = [_one(value[n]) for n in range(min(_FIRST, len(value)))]
        return f"({', '.join([*first, *_more(len(value))])})"
    return _one(value)


def _one(value: object) -> str:
    if dataclasses.is_dataclass(value):
        named = getattr(value, "name", getattr(value, "id", ""))
        return f"{type(value).__qualname__}({_short(named) if isinstance(named, str) and named else '...'})"
    if isinstance(value, str | bytes):
        return _short(value)
    if isinstance(value, Mapping | Sequence):
        return f"<{len(value):,} in a {type(value).__name__}>" if len(value) > _FIRST else _short(value)
    return shorten_middle(repr(value), _WIDEST)


def _more(length: int) -> list[str]:
    return [f"... {length - _FIRST:,} more"] if length > _FIRST else []
