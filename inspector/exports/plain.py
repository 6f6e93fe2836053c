"""Plain values of a file (numbers, text, lists, mappings of them) as Python values, to be written again.

What a reader shows of a value is exact for these kinds, or says that it is cut. Everything else (an object, a global, a
value met twice, a mapping whose keys may be no text) raises `NotPlain`: nothing that would run is ever copied.
"""

from __future__ import annotations

import re
from collections import OrderedDict

from inspector.checkpoint.values import Value, ValueKind

# Keys are shown as text; these could be numbers, None, bytes or a key that is an object.
_TEXT_KEY = re.compile(r"[A-Za-z_][^\n]*")
_NOT_TEXT = re.compile(r"None|True|False|nan|inf|b['\"].*|key [0-9]+|\((attributes|default)\)|.*\(\d+\)|.*[({\[<].*")
_DEEPEST = 20


class NotPlain(ValueError):
    """This value is not written again."""


def plain_of(value: Value, depth: int = 0) -> object:
    """The value itself. Raises NotPlain."""
    if value.inert or depth > _DEEPEST:
        raise NotPlain(value.says)
    if value.kind is ValueKind.NONE:
        return None
    if value.kind is ValueKind.BOOLEAN and value.says in ("True", "False"):
        return value.says == "True"
    if value.kind is ValueKind.NUMBER:
        return _number(value)
    if value.kind is ValueKind.TEXT and value.type_name == "str" and len(value.says) == value.size:
        return value.says
    if len(value.children) == value.size:
        if value.kind is ValueKind.SEQUENCE and value.type_name in ("list", "tuple"):
            items = [plain_of(child, depth + 1) for _, child in value.children]
            return tuple(items) if value.type_name == "tuple" else items
        if value.kind is ValueKind.MAPPING and value.type_name in ("dict", "collections.OrderedDict"):
            pairs = [(text_key(label), plain_of(child, depth + 1)) for label, child in value.children]
            return OrderedDict(pairs) if value.type_name != "dict" else dict(pairs)
    raise NotPlain(value.says)


def text_key(label: str) -> str:
    """A mapping's key that was text for certain. Raises NotPlain."""
    if not _TEXT_KEY.fullmatch(label) or _NOT_TEXT.fullmatch(label):
        raise NotPlain(label)
    return label


def _number(value: Value) -> int | float:
    try:
        return int(value.says) if value.type_name == "int" else float(value.says)
    except ValueError as error:
        raise NotPlain(value.says) from error
