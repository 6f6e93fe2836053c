"""A container on the way through a pickle's graph: what is left of it, and what was made of it so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from inspector.checkpoint.types import TensorInfo
from inspector.checkpoint.values import Value, ValueKind

Path = tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Frame:
    """A container being walked. unnamed: labels that are no text keys, and the key of each. elsewhere: tensors listed
    by `gather`.

    lent: bytes that its list of children takes until it is closed.
    """

    record: object
    label: str
    path: Path
    kind: ValueKind
    type_name: str
    left: Iterator[tuple[str, object]]
    size: int
    says: str
    named: bool = False
    unnamed: dict[str, object] = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()
    transient: frozenset[str] = frozenset()
    inert: bool = False
    name: str = ""
    versions: tuple[tuple[str, int], ...] = ()
    lent: int = 0
    children: list[tuple[str, Value]] = field(default_factory=list)
    tensors: list[TensorInfo] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
