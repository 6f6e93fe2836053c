"""A frozen report that another process wrote as JSON, read back and checked field by field.

What comes from a process that ran somebody's code is as little to be trusted as a file: every field must be there and
of its type, and whole numbers in reports are never negative. A report that was kept (`KEPT`) may be older than a field
with a default, and says what is no finite number as `render/json.py` writes it.
"""

from __future__ import annotations

import types
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Report = TypeVar("Report")

_NO_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is let pass. most_text: characters of one text. defaults: a field that is not there takes its default.
    no_numbers: "NaN" and the infinities stand for floats."""

    most_text: int = 20_000
    defaults: bool = False
    no_numbers: bool = False


STRICT = Reading()
#: Of a report that was written to be kept.
KEPT = Reading(most_text=4_000_000, defaults=True, no_numbers=True)


def report_from(cls: type[Report], value: object, reading: Reading = STRICT) -> Report:
    """The report whose dataclasses.asdict json.loads gave as value.

    Raises TypeError or ValueError for what is none.
    """
    found: Report = _value(cls, value, reading)
    return found


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _value(wanted: Any, value: Any, reading: Reading) -> Any:
    origin = get_origin(wanted)
    if origin in (Union, types.UnionType):
        return _one_of(get_args(wanted), value, reading)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise TypeError("no list")
        inner = get_args(wanted)
        if len(inner) == 2 and inner[1] is Ellipsis:
            return tuple(_value(inner[0], one, reading) for one in value)
        if len(inner) != len(value):
            raise TypeError("a list of another length")
        return tuple(_value(kind, one, reading) for kind, one in zip(inner, value, strict=True))
    if is_dataclass(wanted) and isinstance(wanted, type):
        if not isinstance(value, dict):
            raise TypeError("no report")
        given = [field for field in fields(wanted) if field.name in value]
        if not all(field in given or (reading.defaults and _has_default(field)) for field in fields(wanted)):
            raise TypeError("no report")
        hints = _hints(wanted)
        return wanted(**{field.name: _value(hints[field.name], value[field.name], reading) for field in given})
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return wanted(value)
    return _plain(wanted, value, reading)


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _one_of(kinds: tuple[Any, ...], value: Any, reading: Reading) -> Any:
    for kind in kinds:
        try:
            return _value(kind, value, reading)
        except (TypeError, ValueError):
            continue
    raise TypeError("of no type that it may have")


def _plain(wanted: Any, value: Any, reading: Reading) -> Any:
    if wanted is float and reading.no_numbers and isinstance(value, str) and value in _NO_NUMBERS:
        return _NO_NUMBERS[value]
    if wanted is type(None):
        right = value is None
    elif wanted is bool:
        right = isinstance(value, bool)
    elif wanted is int:
        right = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    elif wanted is float:
        right = isinstance(value, int | float) and not isinstance(value, bool)
    elif wanted is str:
        right = isinstance(value, str) and len(value) <= reading.most_text
    else:
        right = False
    if not right:
        raise TypeError(f"no {getattr(wanted, '__name__', wanted)}")
    return value
