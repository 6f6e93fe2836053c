"""What the pairs of tensors come to, in all and per module at each level."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.dtypes import find_dtype
from inspector.compare.numbers import add_up
from inspector.compare.report import MEASURED, ModuleDiff, Relation, TensorDiff, TensorSide, Totals

_MOST_LEVELS = 64


def total_of(tensors: Sequence[TensorDiff]) -> Totals:
    """Of some tensors together."""
    counts = Counter(tensor.relation for tensor in tensors)
    measured = [(t, t.numbers) for t in tensors if t.numbers is not None and t.relation in MEASURED]
    normed = _with_norms([t for t, _ in measured])
    same = sum(t.a.numel for t in tensors if t.a is not None and t.relation is Relation.SAME)
    return Totals(
        counts=tuple((relation, counts[relation]) for relation in Relation if counts[relation]),
        parameters_a=sum(t.a.numel for t in tensors if t.a is not None),
        parameters_b=sum(t.b.numel for t in tensors if t.b is not None),
        elements=same + sum(numbers.n for _, numbers in measured),
        equal=same + sum(numbers.equal for _, numbers in measured),
        numbers=add_up([t.numbers for t in normed if t.numbers is not None]) if normed else None,
        without_norm=len(measured) - len(normed),
    )


def _with_norms(tensors: Sequence[TensorDiff]) -> list[TensorDiff]:
    """Those whose norms can be added up. One counter of thousands of batches outweighs all parameters: integers count
    only where nothing else differs, as in a quantised network, and counters never."""
    kept = [t for t in tensors if not is_bookkeeping(t.name)]
    floating = [t for t in kept if not any(_is_whole(side) for side in (t.a, t.b))]
    return floating or [t for t in kept if t.a is not None and t.a.numel > 1]


def _is_whole(side: TensorSide | None) -> bool:
    """Whether it holds integers or truth values that stand for nothing else; blocks and codes of floats do not."""
    dtype = find_dtype(side.dtype) if side is not None else None
    return dtype is not None and dtype.native and not dtype.floating


def below_modules(tensors: Sequence[TensorDiff], names: Mapping[str, Sequence[str]]) -> dict[str, list[TensorDiff]]:
    """The pairs below every module of a network, by its path. names: of a tensor in the first file, what the network
    calls it; one that has no name there belongs to no module."""
    below: dict[str, list[TensorDiff]] = {}
    for tensor in tensors:
        paths: dict[str, None] = {}
        for name in names.get(tensor.name, ()):
            segments = name.split(".", _MOST_LEVELS)[:-1]
            paths |= dict.fromkeys(".".join(segments[:level]) for level in range(1, len(segments) + 1))
        for path in paths:
            below.setdefault(path, []).append(tensor)
    return below


def change_of(tensors: Sequence[TensorDiff]) -> tuple[float, float] | None:
    """(|b - a| / |a| over those that are not the same, share of elements with another value); (0, 0) where all are the
    same. The first is infinite where NaN or infinities came or went, which no norm tells. None where none of them can
    be held against another: only in one file, or of another shape."""
    total = total_of(tensors)
    if not total.elements and not total.count(Relation.SAME):
        return None
    odd = total.numbers is not None and total.numbers.became_non_finite
    return math.inf if odd else total.relative or 0.0, total.share_changed


def modules_of(tensors: Sequence[TensorDiff]) -> tuple[ModuleDiff, ...]:
    """Every module that a name spells, those of the second file where only that has the tensor."""
    below: dict[str, list[TensorDiff]] = {"": list(tensors)}
    for tensor in tensors:
        segments = tensor.name.split(".", _MOST_LEVELS)[:-1]
        for level in range(1, len(segments) + 1):
            below.setdefault(".".join(segments[:level]), []).append(tensor)
    order = _depth_first(below)
    return tuple(
        ModuleDiff(path=path, depth=path.count(".") + 1 if path else 0, totals=total_of(below[path])) for path in order
    )


def _depth_first(below: dict[str, list[TensorDiff]]) -> list[str]:
    """Each module before those in it, else in the order in which they come."""
    children: dict[str, list[str]] = {}
    for path in below:
        if path:
            children.setdefault(path.rpartition(".")[0], []).append(path)
    order: list[str] = []
    waiting = [""]
    while waiting:
        path = waiting.pop()
        order.append(path)
        waiting += reversed(children.get(path, []))
    return order
