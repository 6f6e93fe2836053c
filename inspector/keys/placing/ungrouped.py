"""Names in which layers that are numbered in groups are counted through: stages.1.0 as stages.2 where stages.0 has two.

A network runs its groups one after the other, so that counting goes on from group to group. Where the first of each
group first would give layers of the same shapes in the same order, nothing tells the two apart, and names stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from inspector.checkpoint.types import Shape
from inspector.keys.placing.tree import Leaf

_NUMBERS = re.compile(r"(.*?\.|)([0-9]{1,4})\.([0-9]{1,4})(?=\.)")


def ungrouped(side: Sequence[Leaf]) -> list[Leaf] | None:
    """The same tensors under names without groups, in their order; None where there are none, or counting is unsure."""
    rows: dict[str, dict[tuple[int, int], dict[str, Shape | None]]] = {}
    for leaf in side:
        found = _NUMBERS.match(leaf.name)
        if found is not None:
            layer = rows.setdefault(found[1], {}).setdefault((int(found[2]), int(found[3])), {})
            layer[leaf.name[found.end() :]] = leaf.shape
    rows = {before: layers for before, layers in rows.items() if len({group for group, _ in layers}) > 1}
    if not rows or any(_is_unsure(layers) for layers in rows.values()):
        return None
    names = [leaf.name for leaf in side]
    if any(re.match(rf"{re.escape(before)}[0-9]+\.(?![0-9]+\.)", name) for before in rows for name in names):
        return None  # something stands in a group beside its layers
    at = {before: {number: n for n, number in enumerate(sorted(layers))} for before, layers in rows.items()}
    made = []
    for leaf in side:
        found = _NUMBERS.match(leaf.name)
        if found is None or found[1] not in at:
            made.append(leaf)
        else:
            number = at[found[1]][int(found[2]), int(found[3])]
            made.append(Leaf(f"{found[1]}{number}{leaf.name[found.end() :]}", leaf.shape))
    return made


def _is_unsure(layers: dict[tuple[int, int], dict[str, Shape | None]]) -> bool:
    through = [layers[number] for number in sorted(layers)]
    across = [layers[number] for number in sorted(layers, key=lambda number: number[::-1])]
    return through == across and len({group for group, _ in layers}) < len(layers)
