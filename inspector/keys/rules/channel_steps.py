"""Which numbers of channels convolutions end on, each a step from the channels it takes in to those it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# So many channels the pictures themselves have.
COLOURS = 4


def ends_of(steps: Sequence[tuple[int, int]]) -> list[frozenset[int]]:
    """Groups of widths that convolutions end on, the widest first.

    Pictures themselves have few channels: what makes them is no way back to what reads them.
    """
    few = {other for _, other in steps if other <= COLOURS} - {one for one, _ in steps}
    wide = [(one if one > COLOURS else other, other) for one, other in steps if other > COLOURS]
    return [*sinks_of(wide), *(frozenset({x}) for x in sorted(few, reverse=True))]


def sinks_of(steps: Sequence[tuple[int, int]]) -> list[frozenset[int]]:
    """Widths that steps from one to another end on: groups that lead to each other and nowhere else."""
    on: dict[int, set[int]] = {}
    for one, other in steps:
        on.setdefault(one, set()).add(other)
        on.setdefault(other, set())
    reached = {width: _reached(width, on) for width in on}
    ends = {frozenset(there) for width, there in reached.items() if all(width in reached[x] for x in there)}
    return sorted(ends, key=lambda group: -max(group))


def _reached(width: int, on: Mapping[int, set[int]]) -> set[int]:
    found, waiting = {width}, [width]
    while waiting:
        new = on[waiting.pop()] - found
        found |= new
        waiting += new
    return found
