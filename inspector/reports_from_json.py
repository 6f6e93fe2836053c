"""A frozen report that another process wrote as JSON, read back and checked field by field.

What comes from a process that ran somebody's code is as little to be trusted as a file: every field must be there and
of its type, and whole numbers in reports are never negative.
"""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Report = TypeVar("Report")

_MOST_TEXT = 20_000


def report_from(cls: type[Report], value: object) -> Report:
    """The report whose dataclasses.asdict json.loads gave as value.

    Raises TypeError or ValueError for what is none.
    """
    found: Report = _value(cls, value)
    return found


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _value(wanted: Any, value: Any) -> Any:
    origin = get_origin(wanted)
    if origin in (Union, types.UnionType):
        return _one_of(get_args(wanted), value)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise TypeError("no list")
        inner = get_args(wanted)
        if len(inner) == 2 and inner[1] is Ellipsis:
            return tuple(_value(inner[0], one) for one in value)
        if len(inner) != len(value):
            raise TypeError("a list of another length")
        return tuple(_value(kind, one) for kind, one in zip(inner, value, strict=True))
    if is_dataclass(wanted) and isinstance(wanted, type):
        if not isinstance(value, dict) or not all(field.name in value for field in fields(wanted)):
            raise TypeError("no report")
        hints = _hints(wanted)
        return wanted(**{field.name: _value(hints[field.name], value[field.name]) for field in fields(wanted)})
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return wanted(value)
    return _plain(wanted, value)


def _one_of(kinds: tuple[Any, ...], value: Any) -> Any:
    for kind in kinds:
        try:
            return _value(kind, value)
        except (TypeError, ValueError):
            continue
    raise TypeError("of no type that it may have")


def _plain(wanted: Any, value: Any) -> Any:
    if wanted is type(None):
        right = value is None
    elif wanted is bool:
        right = isinstance(value, bool)
    elif wanted is int:
        right = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    elif wanted is float:
        right = isinstance(value, int | float) and not isinstance(value, bool)
    elif wanted is str:
        right = isinstance(value, str) and len(value) <= _MOST_TEXT
    else:
        right = False
    if not right:
        raise TypeError(f"no {getattr(wanted, '__name__', wanted)}")
    return value
