"""The tree of Python values around the tensors, as it can be shown: text and numbers only, nothing alive.

A pickle makes a graph (shared and cyclic references are legal). Here it is a tree with bounds: a second visit to the
same object is a `seen above` leaf, and what exceeds `Limits.nodes` or `Limits.depth` is counted instead of shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from inspector.short_repr import short_repr


class ValueKind(StrEnum):
    """What a node is, for icons and filters."""

    MAPPING = "mapping"
    SEQUENCE = "sequence"
    SET = "set"
    TENSOR = "tensor"
    MODULE = "module"
    OBJECT = "object"
    GLOBAL = "global"
    ARRAY = "array"
    TEXT = "text"
    BYTES = "bytes"
    NUMBER = "number"
    BOOLEAN = "boolean"
    NONE = "none"
    SEEN = "seen above"
    CUT = "not shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value.

    type_name: "dict", "torch.nn.modules.conv.Conv2d", ... as the file names it.
    says: the value in short ("0.1", "512x512x3x3 float32", "338 entries"), at most a few hundred characters.
    children: (label, value): keys of a mapping, indices of a sequence, attributes of an object.
    size: how many children the file has, which may be more than are shown.
    name: for tensors, the dotted path that finds the `TensorInfo`.
    inert: True where a real unpickle would have called code to make this value.
    """

    __repr__ = short_repr

    kind: ValueKind
    type_name: str
    says: str
    children: tuple[tuple[str, Value], ...] = ()
    size: int = 0
    name: str = ""
    inert: bool = False


def value_at(root: Value, path: Iterable[str]) -> Value | None:
    """The value that these labels lead to, None where one of them is not shown."""
    value: Value | None = root
    for label in path:
        value = next((child for key, child in value.children if key == label), None) if value is not None else None
    return value
