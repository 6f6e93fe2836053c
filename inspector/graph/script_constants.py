"""Operators of TorchScript on constants: enough to decide what the file's own settings decide."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from inspector.graph.script_values import UNKNOWN, Data, Known, Module, Value, Weight

_MOST = 1 << 62

_OF_TWO: dict[str, Callable[[object, object], object]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,  # type: ignore[dict-item]
    "le": operator.le,  # type: ignore[dict-item]
    "gt": operator.gt,  # type: ignore[dict-item]
    "ge": operator.ge,  # type: ignore[dict-item]
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "__and__": lambda one, other: bool(one) and bool(other),
    "__or__": lambda one, other: bool(one) or bool(other),
}


def fold(label: str, given: Sequence[Value], *, in_loop: bool) -> Value | None:
    """What an operator gives for these values; None where that is not known without running it.

    in_loop: a list may be another one in the next turn.
    """
    members = _members(given[0], in_loop=in_loop) if given else None
    if label in ("__is__", "__isnot__") and len(given) == 2:
        same = _is_none(given[0]), _is_none(given[1])
        if None in same or not any(same):
            return None
        return Known((same[0] == same[1]) == (label == "__is__"))
    if label == "__getitem__" and len(given) == 2 and members is not None:
        index = given[1].value if isinstance(given[1], Known) else UNKNOWN
        return members[index] if type(index) is int and -len(members) <= index < len(members) else None
    if label == "len" and len(given) == 1 and members is not None:
        return Known(len(members))
    if label == "__contains__" and len(given) == 2 and members is not None:
        known = [_plain(value) for value in (*members, given[1])]
        return Known(known[-1] in known[:-1]) if UNKNOWN not in known else None
    values = [_plain(value) for value in given]
    if any(value is UNKNOWN for value in values):
        return None
    if label in ("__not__", "bool", "Bool") and len(values) == 1:
        return Known(bool(values[0]) == (label != "__not__"))
    if label == "neg" and len(values) == 1 and isinstance(values[0], int | float):
        return Known(-values[0])
    if label in _OF_TWO and len(values) == 2:
        numbers = all(isinstance(value, bool | int | float) and abs(value) < _MOST for value in values)
        texts = label in ("eq", "ne") and all(isinstance(value, str) for value in values)
        if numbers or texts:
            return Known(_OF_TWO[label](*values))
    return None


def _members(value: Value, *, in_loop: bool) -> list[Value] | None:
    return value.items if isinstance(value, Data) and (value.is_tuple or not in_loop) else None


def _plain(value: Value) -> object:
    return value.value if isinstance(value, Known) else UNKNOWN


def _is_none(value: Value) -> bool | None:
    """None where it is not known: an optional argument of the whole network may be given or not."""
    if isinstance(value, Known):
        return None if value.value is UNKNOWN else value.value is None
    if isinstance(value, Weight | Module):
        return False
    return False if isinstance(value, Data) and value.items is not None else None
