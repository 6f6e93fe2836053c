"""A container on the way through a pickle's graph: what is left of it, and what was made of it so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from inspector.checkpoint.types import Access, TensorInfo
from inspector.checkpoint.values import Value, ValueKind

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Versions:
    """torch's `_metadata` of a state dict. found: (module path, version). alone: the attributes are that and nothing
    else, so that nothing else is to be shown of them. odd: it is not what torch writes, and no load gets past it."""

    found: tuple[tuple[str, int], ...] = ()
    alone: bool = True
    odd: bool = False


@dataclass(slots=True, kw_only=True)
class Frame:
    """A container being walked. unnamed: labels that are no text keys, and the key of each. elsewhere: tensors listed
    by `gather`.

    lent: bytes that its list of children takes until it is closed. is_optimizer: it has what an optimizer's state has,
    so that what lies below is no set of weights.
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
    versions: Versions = field(default_factory=Versions)
    lent: int = 0
    is_optimizer: bool = False
    # As Python indexes it; known once something asked for it (`access_of`).
    access: Access | None = None
    children: list[tuple[str, Value]] = field(default_factory=list)
    tensors: list[TensorInfo] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


_LONGEST_KEY = 200


def access_of(frames: Sequence[Frame], path: Path) -> Access:
    """The path as Python indexes it: what lies in a list by its position, what has a number as its key by it.

    frames: the containers on the way, from the root.
    """
    end = min(len(frames), len(path))
    # Thousands of mappings lie in one: the way to it is worked out once.
    start = next((n for n in range(end - 1, 0, -1) if frames[n].access is not None), 0)
    steps: list[str | int | float | bytes | None] = list(frames[start].access or ()) if end else []
    for frame, label in zip(frames[start:end], path[start:end], strict=True):
        frame.access = tuple(steps)
        key = frame.unnamed.get(label, label)
        if frame.kind is ValueKind.SEQUENCE and label.isdigit():
            key = int(label)
        steps.append(key if _is_short(key) else label)
    return tuple(steps)


def _is_short(key: object) -> TypeGuard[str | int | float | bytes | None]:
    """Whether it can be written down as an index; a number of a million digits is shown and not kept."""
    if isinstance(key, int):
        return key.bit_length() < 64
    return isinstance(key, str | float | None) or (isinstance(key, bytes) and len(key) <= _LONGEST_KEY)
