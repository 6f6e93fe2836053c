"""Numbers of a file's tree: plain ones, and scalars that are tensors, as torch keeps steps and learning rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.weights.report import TensorStatistics

#: Of each of optimizers, schedules and scalers, more are not looked at.
MOST = 16
_DEEPEST = 4
_HOLDS = (ValueKind.MAPPING, ValueKind.SEQUENCE)
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The tensors of a file with what was measured of them, by path."""

    checkpoint: Checkpoint
    tensors: Mapping[Path, TensorInfo]
    statistics: Mapping[Path, TensorStatistics]

    def number(self, value: Value | None, path: Path) -> float | None:
        """The number at a place of the tree; None for what is none, or was not measured."""
        if value is None:
            return None
        if value.kind is ValueKind.TENSOR:
            return self.scalar(path)
        return plain_number(value)

    def scalar(self, path: Path) -> float | None:
        """The number that a tensor of one element holds; None where it holds more or was not measured."""
        found = self.statistics.get(path)
        if found is None or found.numel != 1:
            return None
        return math.nan if found.nan else math.inf if found.infinite else found.minimum

    def numbers(self, value: Value | None, path: Path) -> tuple[float, ...] | None:
        """The numbers of a list; None where one of them is none, or the list is not shown in full."""
        if value is None or value.kind is not ValueKind.SEQUENCE or len(value.children) != value.size:
            return None
        found = [self.number(child, (*path, label)) for label, child in value.children]
        whole = tuple(number for number in found if number is not None)
        return whole if len(whole) == len(found) else None


def plain_number(value: Value | None) -> float | None:
    """The number itself, where it is one that the tree shows."""
    if value is None or value.kind is not ValueKind.NUMBER:
        return None
    try:
        return float(value.says)
    except (ValueError, OverflowError):  # Cut short, or complex.
        return None


def plain_numbers(value: Value | None) -> tuple[float, ...]:
    """Those of a list or a pair; () where it is none."""
    found = [plain_number(child) for _, child in value.children] if value is not None else []
    numbers = tuple(number for number in found if number is not None)
    return numbers if len(numbers) == len(found) else ()


def find_mappings(
    value: Value, claims: Callable[[Mapping[str, Value]], bool], path: Path = ()
) -> Iterator[tuple[Path, Mapping[str, Value]]]:
    """(path, what it holds) of the mappings near the root that are claimed, without those inside them."""
    if value.kind not in _HOLDS or len(path) > _DEEPEST:
        return
    if value.kind is ValueKind.MAPPING:
        inside = dict(value.children)
        if claims(inside):
            yield path, inside
            return
    for label, child in value.children:
        # Nearly all are numbers and tensors: an optimizer's state has one of twenty thousand parameters.
        if child.kind in _HOLDS:
            yield from find_mappings(child, claims, (*path, label))
