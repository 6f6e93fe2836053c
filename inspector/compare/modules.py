"""What the pairs of tensors come to, in all and per module at each level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from inspector.compare.numbers import add_up
from inspector.compare.report import MEASURED, ModuleDiff, Relation, TensorDiff, Totals

_MOST_LEVELS = 64


def total_of(tensors: Sequence[TensorDiff]) -> Totals:
    """Of some tensors together."""
    counts = Counter(tensor.relation for tensor in tensors)
    measured = [t.numbers for t in tensors if t.numbers is not None and t.relation in MEASURED]
    same = sum(t.a.numel for t in tensors if t.a is not None and t.relation is Relation.SAME)
    added = add_up(measured) if measured else None
    return Totals(
        counts=tuple((relation, counts[relation]) for relation in Relation if counts[relation]),
        parameters_a=sum(t.a.numel for t in tensors if t.a is not None),
        parameters_b=sum(t.b.numel for t in tensors if t.b is not None),
        elements=same + (added.n if added is not None else 0),
        equal=same + (added.equal if added is not None else 0),
        numbers=added,
    )


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
