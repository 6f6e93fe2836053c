"""Pairs of tensors held against each other by their bytes alone, where no numbers can be counted: the page without a
server. What differs is told, how far it moved is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.compare.held import Held, kind_of, same_bytes
from inspector.compare.report import Relation, Reshape, TensorDiff
from inspector.errors import InspectorError
from inspector.weights.meter import Meter


def compare_by_bytes(pairs: Sequence[tuple[Held, Held]], meter: Meter) -> list[TensorDiff]:
    """The answer for each pair, in their order: SAME, CHANGED, RESHAPED, or UNREAD with the reason. Raises only what
    progress raises."""
    found = []
    for a, b in pairs:
        meter.begin(a.tensor.name)
        found.append(_compared(a, b, meter))
    return found


def _compared(a: Held, b: Held, meter: Meter) -> TensorDiff:
    found = TensorDiff(a=a.side, b=b.side, relation=Relation.SAME)
    if a.place == b.place:
        return replace(found, note="one tensor of one file")
    if a.tensor.shape != b.tensor.shape:
        return replace(found, relation=Relation.RESHAPED, reshape=Reshape.UNKNOWN)
    if kind_of(a) != kind_of(b):
        return replace(found, relation=Relation.UNREAD, note="in another type: its numbers were not counted")
    try:
        if same_bytes(a, b, meter):
            return found
    except InspectorError as error:
        return replace(found, relation=Relation.UNREAD, note=error.says)
    except (OSError, ValueError, MemoryError) as error:
        return replace(found, relation=Relation.UNREAD, note=f"it could not be read: {error}")
    if a.tensor.layout.startswith("sparse"):
        # The same numbers may be listed in another order.
        return replace(found, relation=Relation.UNREAD, note="sparse, and stored with other bytes")
    return replace(found, relation=Relation.CHANGED, note="other bytes; how far was not counted")
