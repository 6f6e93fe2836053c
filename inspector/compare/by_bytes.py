"""Pairs of tensors held against each other by their bytes alone, where no numbers can be counted: the page without a
server. What differs is told, how far it moved is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.compare.held import Held, held_against, kind_of
from inspector.compare.report import Relation, Reshape, TensorDiff
from inspector.weights.meter import Meter


def compare_by_bytes(pairs: Sequence[tuple[Held, Held]], meter: Meter) -> list[TensorDiff]:
    """The answer for each pair, in their order: SAME, CHANGED, RESHAPED, or UNREAD with the reason. Raises only what
    progress raises."""
    found = []
    for a, b in pairs:
        meter.begin(a.tensor.name)
        found.append(held_against(a, b, meter, of_other_shape=_reshaped, of_other_bytes=_changed))
    return found


def _reshaped(_a: Held, _b: Held, found: TensorDiff, _meter: Meter) -> TensorDiff:
    return replace(found, relation=Relation.RESHAPED, reshape=Reshape.UNKNOWN)


def _changed(a: Held, b: Held, found: TensorDiff, _meter: Meter) -> TensorDiff:
    if kind_of(a) != kind_of(b):
        return replace(found, relation=Relation.UNREAD, note="in another type: its numbers were not counted")
    if a.tensor.layout.startswith("sparse"):
        # The same numbers may be listed in another order.
        return replace(found, relation=Relation.UNREAD, note="sparse, and stored with other bytes")
    return replace(found, relation=Relation.CHANGED, note="other bytes; how far was not counted")
