"""What a file's metadata states as structured text: JSON, or a Python literal as a pickled value is shown."""

from __future__ import annotations

import ast
import json

from inspector.checkpoint.types import Checkpoint

_MOST_CHARACTERS = 1_000_000


def stated(checkpoint: Checkpoint | None, key: str) -> object:
    """The value under `key` in the file's own metadata, parsed; None when it is absent or not parseable.

    A key may stand under a prefix ("config.preprocessing"); the plain one wins. Nothing is executed.
    """
    if checkpoint is None:
        return None
    for exact in (True, False):
        for name, text in checkpoint.own_metadata:
            if name == key if exact else name.rpartition(".")[2] == key:
                found = _parsed(text)
                if found is not None:
                    return found
    return None


def stated_beside(checkpoint: Checkpoint | None, file: str, key: str) -> object:
    """The same in a file that lies beside the checkpoint ("config.json"), or in a folder above it."""
    for name, text in checkpoint.metadata if checkpoint is not None else ():
        place, _, label = name.partition(": ")
        if label == key and place.rpartition("/")[2] == file:
            return _parsed(text)
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
