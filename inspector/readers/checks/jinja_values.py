"""The constants that expressions of a template make, as far as names can be made of them.

Nothing is rendered: a value is known only when literals alone make it, and it is short.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

# Made by the template in a way that is not followed, so that it may be any text; and what the caller hands over.
BUILT = object()
DATA = object()
_LONGEST = 2000
_MOST_NODES = 200
_MOST_LETTERS = 100_000
_DUNDER = re.compile(r"__\w+__")
_METHODS = frozenset(
    {
        "join",
        "replace",
        "format",
        "lower",
        "upper",
        "strip",
        "lstrip",
        "rstrip",
        "title",
        "capitalize",
        "swapcase",
        "split",
    }
)


def same(a: object, b: object) -> bool:
    return a is b or (type(a) is type(b) and a == b)


def either(a: object, b: object) -> object:
    """One of two values: the worse one, or built where one of them could be part of a name with underscores."""
    for value in (a, b):
        if isinstance(value, str) and _DUNDER.fullmatch(value):
            return value
    return BUILT if any(value is BUILT or "_" in "".join(texts_in(value)) for value in (a, b)) else DATA


def texts_in(value: object) -> Iterator[str]:
    """All texts of a constant."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from texts_in([*value, *value.values()])
    elif isinstance(value, Sequence):
        for item in value:
            yield from texts_in(item)


def is_constant(value: object) -> bool:
    """Whether literals alone make it."""
    if isinstance(value, list | tuple):
        return all(map(is_constant, value))
    if isinstance(value, dict):
        return all(map(is_constant, value.values()))
    return value is not BUILT and value is not DATA


def is_built(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(map(is_built, value))
    return value is BUILT or (isinstance(value, dict) and any(map(is_built, value.values())))


def small(value: object) -> object:
    """The container, or what may be any text where variables have made it large."""
    left, nodes = [value], 0
    while left:
        item = left.pop()
        nodes += 1
        if nodes > _MOST_NODES:
            return any_of([t for t, _ in zip(texts_in(value), range(_MOST_NODES), strict=False)])
        left += item.values() if isinstance(item, dict) else item if isinstance(item, list | tuple) else ()
    return value


def short(text: str) -> object:
    return text if len(text) <= _LONGEST else BUILT


def begins_safely(value: object) -> bool:
    """A text whose beginning is no beginning of a name with underscores."""
    return isinstance(value, str) and bool(value) and not value.startswith("_")


def added(value: object, other: object) -> object:
    if isinstance(value, str) and isinstance(other, str):
        return short(value + other)
    if isinstance(value, list | tuple) and isinstance(other, list | tuple) and len(value) + len(other) <= _LONGEST:
        return small([*value, *other])
    if type(value) is int and type(other) is int:
        return (value + other) % (1 << 60)
    if is_built(value) or is_built(other):
        return BUILT
    texts = isinstance(value, str) or isinstance(other, str)
    return BUILT if texts and not begins_safely(value) else DATA


def multiplied(value: object, other: object, sign: str) -> object:
    if sign == "*" and {type(value), type(other)} == {str, int}:
        text, times = (value, other) if isinstance(value, str) else (other, value)
        if isinstance(text, str) and isinstance(times, int):
            return text * times if len(text) * times <= _LONGEST else BUILT
    if sign == "%" and isinstance(value, str):
        # A width or a precision would make a text of any length.
        if is_constant(other) and not re.search(r"%[^%a-zA-Z]*[\d*(]", value):
            try:
                return short(value % (tuple(other) if isinstance(other, list) else other))
            except (TypeError, ValueError, OverflowError):
                return BUILT
        return BUILT
    return BUILT if isinstance(value, str) or is_built(value) or is_built(other) else DATA


def item_of(value: object, index: object) -> object:
    if isinstance(value, str | list | tuple):
        if type(index) is int and -len(value) <= index < len(value):
            return value[index]
        return any_of(value)
    return BUILT if is_built(value) else DATA


def any_of(value: object) -> object:
    """Any of the texts in a value."""
    texts = list(texts_in(value))
    if len(texts) == 1:
        return texts[0]
    return BUILT if is_built(value) or any("_" in text for text in texts) else DATA


def called(value: object, name: str, given: list[object]) -> object:
    """value.name(*given), or value|name(*given), where constants alone make it and it is short."""
    if isinstance(value, str) and name in _METHODS and all(map(is_constant, given)):
        letters = len(value) * (1 + sum(map(len, texts_in(given))))
        if letters > _MOST_LETTERS or (name == "format" and re.search(r"\{[^}]*[.:\[!]", value)):
            return BUILT
        try:
            made = getattr(value, name)(*given)
        except (TypeError, ValueError, IndexError, KeyError, AttributeError):
            return BUILT
        return made if not isinstance(made, str) else short(made)
    if isinstance(value, str) or is_built(value) or any(map(is_built, given)):
        return BUILT
    return BUILT if isinstance(value, list | tuple) and any("_" in text for text in texts_in(value)) else DATA
