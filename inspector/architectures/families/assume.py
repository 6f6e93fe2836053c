"""What no shape tells and a forward pass depends on: stated somewhere, or assumed until somebody confirms it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from inspector.architectures.families.entry import Assume, Family, Settings
from inspector.architectures.types import Assumption, OptionValue


def assumptions(
    family: Family, settings: Settings, stated: Mapping[str, tuple[str, str]]
) -> tuple[tuple[Assumption, ...], tuple[Assumption, ...]]:
    """(what is assumed, what is stated) beyond the settings. stated: key -> (text, where it stands)."""
    assumed, confirmed = [], []
    for one in family.assumes:
        if one.name in settings or (one.when is not None and not one.when(settings)):
            continue
        said = _stated(one, settings, stated)
        if said is not None:
            confirmed.append(said)
            continue
        value = one.value(settings) if callable(one.value) else one.value
        assumed.append(Assumption(name=one.name, value=value, why=one.why))
    return tuple(assumed), tuple(confirmed)


def assumed_clause(assumed: Sequence[Assumption]) -> str:
    """What is assumed, in one clause however much it is: the first with its value and, alone, its reason."""
    first, count = assumed[0], len(assumed) - 1
    said = f"{first.name} = {first.value}"
    return f"{said} and {count} more" if count else f"{said} ({first.why})"


def _stated(one: Assume, settings: Settings, stated: Mapping[str, tuple[str, str]]) -> Assumption | None:
    for key in one.stated:
        if key not in stated:
            continue
        text, where = stated[key]
        value = _read(text, one.value(settings) if callable(one.value) else one.value)
        if value is not None and (one.fits is None or one.fits(settings, value)):
            return Assumption(name=one.name, value=value, why=f'"{key}" in {where}')
    return None


def _read(text: str, usual: OptionValue) -> OptionValue | None:
    """The text as a value of the usual one's kind, None where it is of another."""
    if len(text) > 4096:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text.strip("'\"")
    match usual:
        case bool():
            return value if isinstance(value, bool) else None
        case int():
            return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31 else None
        case float():
            right = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
            return float(value) if right else None
        case str():
            return value if isinstance(value, str) and value.replace("_", "").replace("-", "").isalnum() else None
        case tuple():
            right = isinstance(value, list) and all(type(n) is int and 0 < n < 1 << 31 for n in value)
            return tuple(value) if right and len(value) == len(usual) else None
