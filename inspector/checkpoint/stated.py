"""What a file's metadata states as structured text: JSON, or a Python literal as a pickled value is shown."""

from __future__ import annotations

import ast
import json

from inspector.checkpoint.types import Checkpoint
from inspector.checkpoint.values import Value, ValueKind

_MOST_CHARACTERS = 1_000_000
_MOST_PLACES = 200
_DEPTH = 3


def stated(checkpoint: Checkpoint | None, key: str) -> object:
    """The value under `key` in the file's own metadata, parsed; None when it is absent or not parseable.

    A key may stand under a prefix ("config.preprocessing"); the plain one wins. Mappings and lists that a pickle holds
    directly, or in a mapping of its settings, are taken as they are. Nothing is executed.
    """
    if checkpoint is None:
        return None
    for exact in (True, False):
        for name, text in checkpoint.own_metadata:
            if name == key if exact else name.rpartition(".")[2] == key:
                found = _parsed(text)
                if found is not None:
                    return found
    return _in_the_file(checkpoint.root, key)


def told(checkpoint: Checkpoint | None, key: str) -> object:
    """The same, and plain text as it stands: a pickled "regression" is shown without its quotation marks."""
    found = stated(checkpoint, key)
    if found is not None or checkpoint is None:
        return found
    for exact in (True, False):
        for name, text in checkpoint.own_metadata:
            if name == key if exact else name.rpartition(".")[2] == key:
                return None if text in ("null", "None") else text
    return None


def stated_beside(checkpoint: Checkpoint | None, file: str, key: str) -> object:
    """The same in a file that lies beside the checkpoint ("config.json"), or in a folder above it."""
    for name, text in checkpoint.metadata if checkpoint is not None else ():
        place, _, label = name.partition(": ")
        if label == key and place.rpartition("/")[2] == file:
            return _parsed(text)
    return None


def told_beside(checkpoint: Checkpoint | None, file: str, key: str) -> object:
    """The same, and plain text as it stands: JSON's "bicubic" arrives here without its quotation marks."""
    found = stated_beside(checkpoint, file, key)
    if found is not None or checkpoint is None:
        return found
    for name, text in checkpoint.metadata:
        place, _, label = name.partition(": ")
        if label == key and place.rpartition("/")[2] == file:
            return None if text in ("null", "None") else text
    return None


def _in_the_file(root: Value, key: str) -> object:
    """A mapping or list under this key, directly or one level down."""
    places = [root, *(child for _, child in root.children[:_MOST_PLACES] if child.kind is ValueKind.MAPPING)]
    for place in places:
        for label, child in place.children[:_MOST_PLACES]:
            if label == key and child.kind in (ValueKind.MAPPING, ValueKind.SEQUENCE):
                return _plain(child)
    return None


def _plain(value: Value, depth: int = 0) -> object:
    """The value itself; None for what is not plain or not shown whole."""
    if value.kind is ValueKind.TEXT:
        return value.says
    if value.kind in (ValueKind.NUMBER, ValueKind.BOOLEAN):
        return _parsed(value.says)
    if value.size != len(value.children) or depth > _DEPTH:
        return None
    if value.kind is ValueKind.MAPPING:
        return {label: _plain(child, depth + 1) for label, child in value.children}
    if value.kind is ValueKind.SEQUENCE:
        return [_plain(child, depth + 1) for _, child in value.children]
    return None


def _parsed(text: str) -> object:
    if len(text) > _MOST_CHARACTERS:
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            found: object = parse(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        # JSON inside a quoted string: the text of a pickled value that was JSON itself.
        return _parsed(found) if isinstance(found, str) and found != text else found
    return None
